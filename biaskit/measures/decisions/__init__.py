"""Decisions about people: is the same case answered otherwise for a woman, a man, another race."""
