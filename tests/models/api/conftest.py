"""Fixtures of the tests of endpoints."""

from __future__ import annotations

import os
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from fakes.api_cases import QUICK, Ask, Left
from fakes.command import Cli

from biaskit.models.api.abilities import Abilities
from biaskit.models.api.controller import Policy


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys of OpenAI nor proxies of the machine that runs the tests."""
    for name in list(os.environ):
        if name.startswith("OPENAI_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that ask again at once."""
    monkeypatch.setattr(Policy.__init__, "__defaults__", astuple(replace(QUICK, dead_after=60.0)))


@pytest.fixture
def fifty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty requests at once, whatever doctor measured."""
    monkeypatch.setattr(Abilities, "at_once", lambda self, **kind: 50)


@pytest.fixture
def cli(folder: Path, console: Cli) -> Ask:
    """The console script in this process, its run in the folder `run`."""
    return lambda *arguments: Left.by(console(*arguments, "--out", "run"), folder / "run")
