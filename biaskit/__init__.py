"""Measures how a language model treats gender, and how sure that is.

    import biaskit as bk

    result = bk.probe("demo", study="occugender", jobs="nurse,plumber")
    result.groups  # a DataFrame: share, interval and coverage per group of jobs

    texts = bk.analyze_texts(df, text="text", gender="gender", occupation="job")
    texts.srb  # a DataFrame: Subset Representational Bias per occupation and gender

Names load when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from biaskit.errors import BiaskitError
    from biaskit.personas.srb.score import chamfer_distance, srb
    from biaskit.personas.texts.association import associate_gender
    from biaskit.progress import Silent
    from biaskit.workflow import (
        PersonasResult,
        ProbeResult,
        analyze_texts,
        calibrate,
        cite,
        compare,
        doctor,
        load,
        marked_words,
        personas,
        probe,
        report,
        score_continuations,
    )

__version__ = "0.1.0"

_FACE = {
    "BiaskitError": "biaskit.errors",
    "PersonasResult": "biaskit.workflow",
    "ProbeResult": "biaskit.workflow",
    "Silent": "biaskit.progress",
    "analyze_texts": "biaskit.workflow",
    "associate_gender": "biaskit.personas.texts.association",
    "calibrate": "biaskit.workflow",
    "chamfer_distance": "biaskit.personas.srb.score",
    "cite": "biaskit.workflow",
    "compare": "biaskit.workflow",
    "doctor": "biaskit.workflow",
    "load": "biaskit.workflow",
    "marked_words": "biaskit.workflow",
    "personas": "biaskit.workflow",
    "probe": "biaskit.workflow",
    "report": "biaskit.workflow",
    "score_continuations": "biaskit.workflow",
    "srb": "biaskit.personas.srb.score",
}

__all__ = [
    "BiaskitError",
    "PersonasResult",
    "ProbeResult",
    "Silent",
    "analyze_texts",
    "associate_gender",
    "calibrate",
    "chamfer_distance",
    "cite",
    "compare",
    "doctor",
    "load",
    "marked_words",
    "personas",
    "probe",
    "report",
    "score_continuations",
    "srb",
]


def __getattr__(name: str) -> object:
    if name in _FACE:
        return getattr(import_module(_FACE[name]), name)
    raise AttributeError(f"module 'biaskit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_FACE])


def _function(name: str) -> property:
    """The function of a name that a package has too.

    Importing a package writes its module to that name; `from biaskit.probe.design import ...` does not need
    the write, and it is ignored.
    """

    def read(_: object) -> object:
        return __getattr__(name)

    def ignore(_: object, __: object) -> None:
        """Keep the function."""

    return property(read, ignore)


class _Face(ModuleType):
    """Keeps `biaskit.probe` and the like the functions."""

    probe = _function("probe")
    personas = _function("personas")
    compare = _function("compare")
    report = _function("report")


sys.modules[__name__].__class__ = _Face
