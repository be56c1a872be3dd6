"""Pairs of sentences that differ in a gender: which one does a model find more probable."""
