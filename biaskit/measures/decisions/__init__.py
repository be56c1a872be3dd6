"""Decisions: does the same case get another answer when the person is a woman, a man, of another race?"""
