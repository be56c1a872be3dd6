"""Fixtures of the tests of endpoints."""

from __future__ import annotations

import importlib.util
import os

import pytest
from needs import missing

from biaskit.models.api import wire

AIOHTTP = importlib.util.find_spec("aiohttp") is not None


@pytest.fixture(autouse=True)
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """That of a base install, whatever is installed here; tests in processes of their own have the other."""
    chosen: str = getattr(request, "param", "httpx2")
    if chosen == "aiohttp" and not AIOHTTP:
        missing('aiohttp is not installed: pip install "biaskit[inspect]" brings it')
    monkeypatch.setattr(wire, "has_aiohttp", lambda: chosen == "aiohttp")
    return chosen


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys of OpenAI nor proxies of the machine that runs the tests."""
    for name in list(os.environ):
        if name.startswith("OPENAI_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
