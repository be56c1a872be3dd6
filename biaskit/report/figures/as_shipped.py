"""Imports matplotlib as it ships: no variable and no matplotlibrc of the user's decides whether it loads.

A notebook sets MPLBACKEND for its own plots and hands it on to every command that it starts; matplotlib stops
at a backend that it does not know, and at a matplotlibrc that it cannot read.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path


def import_matplotlib() -> None:
    """Import it once; a program that has it already keeps what it has."""
    if "matplotlib" in sys.modules:
        return
    spec = importlib.util.find_spec("matplotlib")
    assert spec is not None
    assert spec.origin is not None
    shipped = Path(spec.origin).parent / "mpl-data"
    with _environment(MATPLOTLIBRC=str(shipped / "matplotlibrc")), _beside_no_settings(shipped):
        log = logging.getLogger("matplotlib")
        level = log.level
        log.setLevel(logging.ERROR)  # advice about its cache, for a user without a home
        try:
            import matplotlib  # noqa: F401
        finally:
            log.setLevel(level)


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.pop(name, None) for name in ("MPLBACKEND", *values)}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _beside_no_settings(elsewhere: Path) -> Iterator[None]:
    """Be elsewhere where the working folder has a matplotlibrc, which matplotlib reads before any other."""
    if not os.path.lexists("matplotlibrc"):
        yield
        return
    here = os.open(".", os.O_RDONLY) if hasattr(os, "fchdir") else os.getcwd()
    os.chdir(elsewhere)
    try:
        yield
    finally:
        os.chdir(here)
        if isinstance(here, int):
            os.close(here)
