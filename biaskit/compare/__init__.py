"""Beside the engines: pairs stored tables of runs and of engines; trains nothing (METHODS §3)."""
