"""Stored runs in the formats of other tools, and logs of other tools as runs."""
