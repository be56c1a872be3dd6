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
    from biaskit.errors import BiaskitError as BiaskitError
    from biaskit.models.writer import writer as writer
    from biaskit.personas.srb.score import chamfer_distance as chamfer_distance
    from biaskit.personas.srb.score import srb as srb
    from biaskit.personas.texts.association import associate_gender as associate_gender
    from biaskit.progress import Silent as Silent
    from biaskit.workflow.analyze import load as load
    from biaskit.workflow.batch_answers import import_answers as import_answers
    from biaskit.workflow.calibrate import calibrate as calibrate
    from biaskit.workflow.callback import ModelCallback as ModelCallback
    from biaskit.workflow.check import check as check
    from biaskit.workflow.cite import cite as cite
    from biaskit.workflow.compare import compare as compare
    from biaskit.workflow.doctor import doctor as doctor
    from biaskit.workflow.export import export as export
    from biaskit.workflow.marked_words import marked_words as marked_words
    from biaskit.workflow.objects import model as model
    from biaskit.workflow.own_texts import analyze_texts as analyze_texts
    from biaskit.workflow.personas import PersonasResult as PersonasResult
    from biaskit.workflow.personas import personas as personas
    from biaskit.workflow.probe import ProbeResult as ProbeResult
    from biaskit.workflow.probe import probe as probe
    from biaskit.workflow.probe import score_continuations as score_continuations
    from biaskit.workflow.prompt_formats import prompt_formats as prompt_formats
    from biaskit.workflow.report import report as report
    from biaskit.workflow.verify import verify as verify

__version__ = "0.1.0"

_COMMANDS = (
    *("calibrate", "check", "cite", "compare", "doctor", "export", "marked_words", "personas"),
    *("probe", "prompt_formats", "report", "verify"),
)
"""Functions whose module is called as they are."""
_FACE = {
    **{name: f"biaskit.workflow.{name}" for name in _COMMANDS},
    "BiaskitError": "biaskit.errors",
    "ModelCallback": "biaskit.workflow.callback",
    "PersonasResult": "biaskit.workflow.personas",
    "ProbeResult": "biaskit.workflow.probe",
    "Silent": "biaskit.progress",
    "analyze_texts": "biaskit.workflow.own_texts",
    "associate_gender": "biaskit.personas.texts.association",
    "chamfer_distance": "biaskit.personas.srb.score",
    "import_answers": "biaskit.workflow.batch_answers",
    "load": "biaskit.workflow.analyze",
    "model": "biaskit.workflow.objects",
    "score_continuations": "biaskit.workflow.probe",
    "srb": "biaskit.personas.srb.score",
    "writer": "biaskit.models.writer",
}

__all__ = sorted(_FACE.keys() - {"ModelCallback"})  # its base is transformers': `import *` needs none


def __getattr__(name: str) -> object:
    if name in _FACE:
        return getattr(import_module(_FACE[name]), name)
    raise AttributeError(f"module 'biaskit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_FACE])


class _Face(ModuleType):
    """Keeps `biaskit.probe` and the like the functions.

    Importing a package writes its module to that name; `from biaskit.probe.design import ...` does not need
    the write, and it is ignored.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _FACE:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face
