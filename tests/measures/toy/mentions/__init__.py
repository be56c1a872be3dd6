"""How often texts about a job mention a word: the smallest kind of measurement, for the tests."""
