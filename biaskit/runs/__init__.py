"""A run on disk: its manifest, its rows, what was used, who answered."""
