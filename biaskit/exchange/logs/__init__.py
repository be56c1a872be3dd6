"""Logs that other tools wrote, sample by sample: read, gathered, paired."""
