"""What `biaskit calibrate` and `bk.calibrate` do: C and alpha for one's own texts, as a study file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from biaskit.arguments import checked
from biaskit.common.files import check_replaceable, write_or_refuse
from biaskit.common.inputs import expanded
from biaskit.corpora.loaders import english_counts
from biaskit.errors import RunError, UsageError, nearest
from biaskit.measurement import words
from biaskit.measures.personas.design import read
from biaskit.measures.personas.texts.documents import REQUESTED, manifest_of_texts, texts_of
from biaskit.measures.personas.texts.names import names_among
from biaskit.measures.personas.words.alpha import MarkedList
from biaskit.measures.personas.words.calibration import Calibration
from biaskit.measures.personas.words.calibration import calibrate as calibrate_texts
from biaskit.measures.personas.words.comparisons import TextComparison, text_comparisons
from biaskit.measures.personas.words.log_odds import counts_in
from biaskit.measures.personas.words.run_lists import prior_of
from biaskit.records import WOMEN_AND_MEN
from biaskit.report.render.cells import number
from biaskit.report.render.document import Document, TitledTable, listed_table
from biaskit.report.render.html import Printed
from biaskit.report.result import RunResult, run_path
from biaskit.tables.io import read_table
from biaskit.tables.sets import TABLES, write_alone

if TYPE_CHECKING:
    import pandas as pd

_SUMMARY = "alpha and c calibrated on "
"""What the summary of a study file that `calibrate` wrote begins with."""


@dataclass(frozen=True)
class CalibrationResult(Printed):
    """What was found for one model and occupation: table and, unless no list is stable, study file."""

    path: Path
    found: Calibration
    study_file: Path | None
    signature: str
    warnings: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """calibration.csv: every C and alpha that was tried, with its numbers of words."""
        return read_table(self.path / TABLES / "calibration.csv")

    def document(self) -> Document:
        """Lay out C of each prior, and the sweep over alpha."""
        rows, says = [], words("personas")["calibration"]["priors"]
        for name, search in (("topic", self.found.c_topic), ("English", self.found.c_english)):
            above = " ".join(search.stopped_by) or search.reason or "none up to 1"
            rows.append((name, number(search.c, 4), above))
        constants = listed_table(says["title"], says["heads"], rows)
        return Document((constants, _sweep(self.found)), self.warnings, self.signature)


@checked()
def calibrate(
    run: str | Path | RunResult,
    *,
    occupation: str | None = None,
    model: str | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> CalibrationResult:
    """Search C and alpha of Calibrated Marked Words on those texts of a run whose gender was requested.

    Writes calibration.csv to the run's tables and, unless no list is stable, a study file with alpha and c:
    the recommended alpha, or 0.15 where none is clearly more stable.

    >>> bk.calibrate(written).table[["prior", "c", "alpha", "n_marked"]].values.tolist()[-1]
    ['hybrid', 1.0, 1.0, 2]

    Args:
        run: a result or a run's folder.
        occupation: whose texts; by default the occupation with most of them.
        model: whose texts, where the run has several models.
        out: the study file; by default calibrated.toml in the run's folder.
        settings: keys of the analysis such as c_rule, prior, tokenizer, names.

    Returns `table`, one row per prior, C, alpha and list, and `study_file`, which `--study` reads, or None.
    Raises `BiaskitError` where the run has no such texts, model or occupation.
    """
    path = run_path(run)
    manifest = manifest_of_texts(path, "; calibration needs texts")
    target = expanded(out) if out else path / "calibrated.toml"
    check_replaceable(target, "study file", (".toml",), _is_calibrated)
    design = read(manifest.resolved, settings)
    study, documents = design.study, texts_of(path, manifest, design)
    if documents.lacking("words").keys() >= {*documents.models}:
        raise UsageError(words("personas")["notes"]["needs_words"].format("calibrate"))
    chosen = _chosen(list(text_comparisons(documents, study)), documents.models, model, occupation)
    vocabulary = documents.tokens.words
    english = counts_in(english_counts(study.english_prior), vocabulary)
    names = names_among(vocabulary, study.names, documents.evidence.get(chosen.model))
    how: Any = {"words": vocabulary, "english": english, "names": names, "model": chosen.model}
    how |= {"occupation": chosen.occupation, "seed": study.seed, "c_rule": study.c_rule}
    of_texts = documents.counts_of(chosen.texts), chosen.genders, chosen.prompts
    calibration = calibrate_texts(*of_texts, prior=prior_of(study), **how)
    signature = design.sign(manifest.models, c_rule=study.c_rule)
    author, prior = f"{chosen.occupation} ({chosen.model})", calibration.prior
    verdict = "" if prior else "no study file: "
    if calibration.recommended:
        verdict = "recommended: "
    notes = [f"calibrated on {len(chosen.texts)} texts of {author}", f"{verdict}{calibration.reason}"]
    if rows := list(calibration.rows()):
        about = {"signature": signature, "model": chosen.model, "occupation": chosen.occupation}
        notes += write_alone(path, "calibration", rows, about)
    if prior is not None:
        content = {"name": study.name, "measurement": "personas", "summary": f"{_SUMMARY}{author}"}
        found = {"alpha": prior.alpha, "c": prior.constant}
        write_or_refuse(target, tomli_w.dumps(content | found).encode("utf-8"))
    return CalibrationResult(path, calibration, target if prior else None, signature, tuple(notes))


def _chosen(
    compared: Sequence[TextComparison], models: Sequence[str], model: str | None, occupation: str | None
) -> TextComparison:
    """Choose the texts with a requested gender: of the named occupation, else of that with most of them."""
    if model is None and len(models) > 1:
        raise UsageError(f"The run has several models: choose one with --model ({', '.join(models)}).")
    if model is not None and model not in models:
        raise UsageError(
            f"The run has no model {model!r}.{nearest(model, models)} It has {', '.join(models)}."
        )
    of_model = [c for c in compared if c.origin == REQUESTED and c.model == (model or models[0])]
    with_texts = {comparison.occupation: comparison for comparison in of_model if comparison.texts}
    if not with_texts:
        raise RunError("The run has no texts with a requested gender: there is nothing to calibrate on.")
    if occupation is None:
        return max(with_texts.values(), key=lambda c: len(c.texts))  # the first of the study among equals
    if occupation not in with_texts:
        raise UsageError(
            f"{occupation!r} has no texts with a requested gender.{nearest(occupation, with_texts)}"
            f" There are {', '.join([*with_texts][:20])}."
        )
    return with_texts[occupation]


def _is_calibrated(content: bytes) -> bool:
    """Tell whether `calibrate` wrote a study file: it has five keys and nothing else."""
    try:
        study = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    keys = {"name", "measurement", "summary", "alpha", "c"}
    return study.keys() == keys and str(study["summary"]).startswith(_SUMMARY)


def _sweep(calibration: Calibration) -> TitledTable:
    rows = []
    for step in calibration.sweep:
        list_of = {(marked.gender, marked.against): marked for marked in step.lists}
        women, men = (_sizes(list_of.get(pair)) for pair in (WOMEN_AND_MEN, WOMEN_AND_MEN[::-1]))
        sizes = [f"{of_women}/{of_men}" for of_women, of_men in zip(women, men, strict=True)]
        stability = f"{number(step.stability_low, 2)} to {number(step.stability_high, 2)}"
        shuffled, chosen = number(step.stability_shuffled, 3), calibration.recommended
        recommended = "recommended" if chosen is not None and chosen.alpha == step.alpha else ""
        of_step = (f"{step.alpha:.2f}", number(step.c, 4), *sizes, number(step.stability, 3))
        rows.append((*of_step, stability, shuffled, recommended))
    says = words("personas")["calibration"]["sweep"]
    return listed_table(says["title"], says["heads"], rows, n_text=0, note=says["note"])


def _sizes(marked: MarkedList | None) -> tuple[object, object, object]:
    """Count a list's words: all, without gendered words and names, on the calibration list."""
    if marked is None or marked.words is None:
        return "–", "–", "–"
    return len(marked.words), marked.n_beyond, marked.n_common
