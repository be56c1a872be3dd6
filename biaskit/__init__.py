"""Measures how a language model treats gender, and how sure that is.

    import biaskit as bk

    result = bk.probe("demo", study="occugender", jobs="nurse,plumber")
    result.groups  # a DataFrame: share, interval and coverage per group of jobs

Names load when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from biaskit.errors import BiaskitError
    from biaskit.workflow import ProbeResult, load, probe, score_continuations

__version__ = "0.1.0"

_FACE = {
    "BiaskitError": "biaskit.errors",
    "ProbeResult": "biaskit.workflow",
    "load": "biaskit.workflow",
    "probe": "biaskit.workflow",
    "score_continuations": "biaskit.workflow",
}

__all__ = ["BiaskitError", "ProbeResult", "load", "probe", "score_continuations"]


def __getattr__(name: str) -> object:
    if name in _FACE:
        return getattr(import_module(_FACE[name]), name)
    raise AttributeError(f"module 'biaskit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_FACE])


class _Face(ModuleType):
    """Keeps `biaskit.probe` the function: importing the engine's package writes its module to that name."""

    @property
    def probe(self) -> object:
        return __getattr__("probe")

    @probe.setter
    def probe(self, module: object) -> None:
        """Ignore the import system's write; `from biaskit.probe.cells import ...` does not need it."""


sys.modules[__name__].__class__ = _Face
