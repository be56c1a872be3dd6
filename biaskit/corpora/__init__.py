"""What is asked about: shipped lists and a user's own, read and checked, and how prompts are put together."""
