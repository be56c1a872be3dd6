"""Beside the engines: pairs stored tables of runs and of engines; trains nothing.

See docs/methods.md#both-engines.
"""
