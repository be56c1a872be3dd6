"""Fixtures of the tests of endpoints."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys of OpenAI nor proxies of the machine that runs the tests."""
    for name in list(os.environ):
        if name.startswith("OPENAI_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
