"""A study: every key with its default, and how file and options set them."""
