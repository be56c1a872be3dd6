"""Servers, models and runs that tests stand on: nothing in here is a test."""
