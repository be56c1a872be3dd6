"""Measure how a language model treats gender, and how sure that is.

>>> import biaskit as bk
>>> bk.associate_gender("She is a nurse.").gender
'female'

Query models::

    probe                probabilities of words for women, men and neither in prompts about jobs
    pairs                which of two sentences that differ in gender is the more probable one
    decisions            whether one case gets another decision when the person is another
    personas             texts about people: who is represented, and in which words
    score_continuations  log-probabilities of your continuations of your prompts
    doctor               what a model can answer, and with which estimator
    prompt_formats       which prompt format reaches the target words
    model, writer        a model in memory, or a callable, as a model
    import_answers       the answers of a batch service as rows of a run

Read texts and stored runs; no model is loaded, except by verify::

    analyze_texts        your own texts: genders, marked words, SRB
    analyze_decisions    decisions that were made: gaps within cases, impact ratios
    load                 the tables of a stored run, made again from its rows
    label                a sheet of texts for a person to label, which corrects shares
    compare              models side by side, with tests between them
    check                whether runs stay within thresholds
    verify               whether a stored run is what it says
    report               a page with figures and tables for a paper
    export, cite         files for other tools; signature and BibTeX
    calibrate            C and alpha of Calibrated Marked Words for your texts
    runs, corpora        what a folder stores, and what biaskit ships

Compute on plain lists::

    associate_gender     the gender that a text speaks of
    marked_words         words that mark women's or men's texts
    srb                  Subset Representational Bias of a list of words
    chamfer_distance     how far a set of vectors is from another

Classes: `ProbeResult`, `PairsResult`, `DecisionsResult` and `PersonasResult` (a run, its tables as
DataFrames), `BiaskitError` (the error to catch), `Silent` (a `watcher` that shows nothing), `ModelCallback`
(probes in training; needs transformers).

Each command is a function of its name, but `biaskit analyze` is `load`, `analyze_texts` and
`analyze_decisions`, `biaskit import` is `import_answers`, and `biaskit doctor` is also `prompt_formats`.
Examples continue those of `probe`, `pairs`, `decisions`, `analyze_texts` and `compare`, whose results are
`probed`, `paired`, `hired`, `written` and `compared`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from biaskit.measurement import KINDS as _KINDS

if TYPE_CHECKING:
    from biaskit.errors import BiaskitError as BiaskitError
    from biaskit.measures.decisions.command import DecisionsResult as DecisionsResult
    from biaskit.measures.decisions.command import decisions as decisions
    from biaskit.measures.decisions.logs import analyze_decisions as analyze_decisions
    from biaskit.measures.pairs.command import PairsResult as PairsResult
    from biaskit.measures.pairs.command import pairs as pairs
    from biaskit.measures.personas.calibrate import calibrate as calibrate
    from biaskit.measures.personas.command import PersonasResult as PersonasResult
    from biaskit.measures.personas.command import personas as personas
    from biaskit.measures.personas.label import label as label
    from biaskit.measures.personas.marked_words import marked_words as marked_words
    from biaskit.measures.personas.own_texts import analyze_texts as analyze_texts
    from biaskit.measures.personas.srb.score import chamfer_distance as chamfer_distance
    from biaskit.measures.personas.srb.score import srb as srb
    from biaskit.measures.personas.texts.association import associate_gender as associate_gender
    from biaskit.measures.probe.command import ProbeResult as ProbeResult
    from biaskit.measures.probe.command import probe as probe
    from biaskit.measures.probe.prompt_formats import prompt_formats as prompt_formats
    from biaskit.models.writer import writer as writer
    from biaskit.progress import Silent as Silent
    from biaskit.runs.objects import model as model
    from biaskit.workflow.analyze import corpora as corpora
    from biaskit.workflow.analyze import load as load
    from biaskit.workflow.analyze import runs as runs
    from biaskit.workflow.batch_answers import import_answers as import_answers
    from biaskit.workflow.callback import ModelCallback as ModelCallback
    from biaskit.workflow.check import check as check
    from biaskit.workflow.cite import cite as cite
    from biaskit.workflow.compare import compare as compare
    from biaskit.workflow.doctor import doctor as doctor
    from biaskit.workflow.export import export as export
    from biaskit.workflow.report import report as report
    from biaskit.workflow.score_continuations import score_continuations as score_continuations
    from biaskit.workflow.verify import verify as verify

__version__ = "0.1.0"

_COMMANDS = ("check", "cite", "compare", "doctor", "export", "report", "score_continuations", "verify")
_NAMES = {
    "errors": "BiaskitError",
    "models.writer": "writer",
    "measures.personas.calibrate": "calibrate",
    "measures.personas.label": "label",
    "measures.personas.marked_words": "marked_words",
    "measures.personas.own_texts": "analyze_texts",
    "measures.personas.srb.score": "chamfer_distance srb",
    "measures.personas.texts.association": "associate_gender",
    "progress": "Silent",
    "workflow.analyze": "corpora load runs",
    "workflow.batch_answers": "import_answers",
    "workflow.callback": "ModelCallback",
    "runs.objects": "model",
    "measures.decisions.command": "DecisionsResult decisions",
    "measures.decisions.logs": "analyze_decisions",
    "measures.pairs.command": "PairsResult pairs",
    "measures.personas.command": "PersonasResult personas",
    "measures.probe.command": "ProbeResult probe",
    "measures.probe.prompt_formats": "prompt_formats",
    **{f"workflow.{name}": name for name in _COMMANDS},
}
_FACE = {name: f"biaskit.{module}" for module, names in _NAMES.items() for name in names.split()}
"""Name → module; names load when they are first used, so that importing the package costs nothing."""

__all__ = sorted({*_FACE, *_KINDS} - {"ModelCallback"})  # its base is transformers': `import *` needs none


def __getattr__(name: str) -> object:
    if name in _FACE:
        return getattr(import_module(_FACE[name]), name)
    if name in _KINDS:
        from biaskit.measurement import measurement
        from biaskit.workflow.measure import function_of

        return function_of(measurement(name))
    raise AttributeError(f"module 'biaskit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _Face(ModuleType):
    """Keeps `biaskit.probe`, `biaskit.runs` and the like the functions.

    Importing a package writes its module to that name; neither `from biaskit.compare.pairs import ...` nor
    `import biaskit.runs.store` needs the write, and it is ignored.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _FACE:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face
