"""Models that can answer: local transformers models, models behind a server, and a scripted double."""
