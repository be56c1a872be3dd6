"""What `biaskit calibrate` and `bk.calibrate` do: C and alpha for one's own texts, as a study file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from biaskit.arguments import checked
from biaskit.corpora.loaders import english_counts
from biaskit.errors import RunError, UsageError, nearest
from biaskit.files import write_atomically
from biaskit.personas.analysis import texts_of
from biaskit.personas.sampling.stored_design import design_signature, read_design
from biaskit.personas.texts.documents import SPECIFIED
from biaskit.personas.texts.names import names_among
from biaskit.personas.words.calibration import Calibration, Step
from biaskit.personas.words.calibration import calibrate as calibrate_texts
from biaskit.personas.words.comparisons import TextComparison, text_comparisons
from biaskit.personas.words.run_lists import prior_of
from biaskit.records import WOMEN_AND_MEN
from biaskit.report.render.document import Document, Heading, TitledTable
from biaskit.runs.manifest import read_manifest
from biaskit.tables.io import write_table
from biaskit.workflow.result import RunResult, run_path

if TYPE_CHECKING:
    import pandas as pd

STUDY_FILE = "calibrated.toml"


@dataclass(frozen=True)
class CalibrationResult:
    """What was found for one model and occupation, its table and, where there is one, the study file."""

    path: Path
    found: Calibration
    study_file: Path | None
    signature: str
    warnings: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """calibration.csv: every C and alpha that was tried, with its numbers of words."""
        from biaskit.tables.io import read_table

        return read_table(self.path / "tables" / "calibration.csv")

    def document(self) -> Document:
        """C of each prior, the sweep over alpha, and the words that alpha decides."""
        return Document(
            (_constants(self.found), _sweep(self.found), _words(self.found)), self.warnings, self.signature
        )


@checked()
def calibrate(
    run: str | Path | RunResult,
    *,
    occupation: str | None = None,
    model: str | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> CalibrationResult:
    """Search C and alpha on the texts of a run whose gender was specified.

    See docs/methods.md#calibration, Calibration.

    Args:
        run: a result or a run's folder. occupation: by default the one with most such texts.
        model: needed where the run has several.
        out: the study file; by default calibrated.toml in the run's folder.
        settings: analysis keys such as c_rule, prior, tokenizer, names.

    Writes calibration.csv to the run's tables and, unless no list is stable, a study file with alpha and c,
    which `--study` reads: the recommended alpha, or 0.15 where none is clearly more stable.
    """
    path = run_path(run)
    manifest = read_manifest(path)
    if manifest["engine"] != "personas":
        raise UsageError(f"{path} is a run of the prober; calibration needs texts (biaskit personas).")
    design = read_design(manifest["resolved"], settings)
    documents = texts_of(path, manifest, design)
    one = _chosen(list(text_comparisons(documents, design.study)), documents.models, model, occupation)
    study = design.study
    known = english_counts(study.english_prior)
    words = documents.tokens.words
    found = calibrate_texts(
        documents.tokens.counts()[[text.place for text in one.texts]],
        one.genders,
        [text.template_id for text in one.texts],
        words=words,
        english=np.array([known.get(word, 0) for word in words], dtype=np.float64),
        names=names_among(words, study.names, documents.evidence.get(one.model)),
        model=one.model,
        occupation=one.occupation,
        seed=study.seed,
        c_rule=study.c_rule,
        prior=prior_of(study),
    )
    rows = list(found.rows())
    if rows:
        write_table(path / "tables" / "calibration.csv", "calibration", rows)
    target = _write_study(Path(out) if out else path / STUDY_FILE, study.name, found)
    signature = design_signature(design, manifest["models"], c_rule=study.c_rule)
    return CalibrationResult(path, found, target, signature, tuple(_notes(found, one)))


def _chosen(
    compared: Sequence[TextComparison], models: Sequence[str], model: str | None, occupation: str | None
) -> TextComparison:
    """The specified texts that are meant; the occupation with most of them where none is named."""
    if model is None and len(models) > 1:
        raise UsageError(f"The run has several models: choose one with --model ({', '.join(models)}).")
    if model is not None and model not in models:
        raise UsageError(
            f"The run has no model {model!r}.{nearest(model, models)} It has {', '.join(models)}."
        )
    own = [c for c in compared if c.origin == SPECIFIED and c.texts and c.model == (model or models[0])]
    if not own:
        raise RunError("The run has no texts whose gender was specified: there is nothing to calibrate on.")
    if occupation is None:
        return max(own, key=lambda one: len(one.texts))  # the first of the study among equals
    names = [one.occupation for one in own]
    if occupation not in names:
        raise UsageError(
            f"No texts with a specified gender are of {occupation!r}.{nearest(occupation, names)}"
            f" There are {', '.join(names[:20])}."
        )
    return own[names.index(occupation)]


def _write_study(path: Path, name: str, found: Calibration) -> Path | None:
    """Alpha and c as a study that `--study` reads; none where no list is stable."""
    import tomli_w

    if found.prior is None:
        return None
    content = {
        "name": name,
        "engine": "personas",
        "summary": f"alpha and c calibrated on {found.occupation} ({found.model})",
        "alpha": found.prior.alpha,
        "c": found.prior.constant,
    }
    try:
        write_atomically(path, tomli_w.dumps(content).encode("utf-8"))
    except OSError as error:
        raise RunError(
            f"{path} cannot be written: {error.strerror or error}. Choose another --out."
        ) from error
    return path


def _notes(found: Calibration, one: TextComparison) -> list[str]:
    decision = "recommended: " if found.recommended else "nothing is recommended: " if not found.prior else ""
    return [
        f"calibrated on {len(one.texts)} texts of {found.occupation} ({found.model})",
        f"{decision}{found.reason}",
    ]


# --- what is printed -----------------------------------------------------------------------------------


def _constants(found: Calibration) -> TitledTable:
    rows = []
    for name, constant in (("topic", found.c_topic), ("English", found.c_english)):
        shown = "–" if constant.c is None else f"{constant.c:.4f}"
        rows.append((name, shown, " ".join(constant.stopped_by) or constant.reason or "none up to 1"))
    return TitledTable(
        "C of each prior alone: the largest at which no criterion word is marked, women against men",
        ((Heading("prior"), Heading("C"), Heading("first criterion words marked above it")),),
        tuple(rows),
        n_text=1,
    )


def _sweep(found: Calibration) -> TitledTable:
    rows = []
    for step in found.sweep:
        of_pair = {(one.gender, one.against): one for one in step.lists}
        pairs = [of_pair.get(pair) for pair in (WOMEN_AND_MEN, WOMEN_AND_MEN[::-1])]
        sizes = [str(len(one.words)) if one and one.words is not None else "–" for one in pairs]
        common = [str(one.n_common) if one and one.n_common is not None else "–" for one in pairs]
        beyond = [str(one.n_beyond) if one and one.n_beyond is not None else "–" for one in pairs]
        chosen = found.recommended is not None and found.recommended.alpha == step.alpha
        rows.append(
            (
                f"{step.alpha:.2f}",
                "–" if step.c is None else f"{step.c:.4f}",
                *("/".join(numbers) for numbers in (sizes, beyond, common)),
                *_stability(step),
                "recommended" if chosen else "",
            )
        )
    heads = ("alpha", "C", "words", "beyond", "common", "stability", "95 %", "shuffled", "")
    return TitledTable(
        "Hybrid prior: marked words of women/men at each alpha, C searched anew",
        (tuple(Heading(text) for text in heads),),
        tuple(rows),
        note="beyond: without gender words and names; common: words of the calibration list; stability: how"
        " far the lists of two halves of the texts agree beyond chance (1: the same words, 0: chance), gender"
        " words and names left out, mean over pairs of genders; shuffled: with shuffled genders."
        " calibration.csv has every pair, the words gained and lost, and every C that was tried.",
        n_text=0,
    )


def _stability(step: Step) -> tuple[str, str, str]:
    if step.stability is None:
        return "–", "–", "–"
    ends = f"{step.stability_low:.2f} to {step.stability_high:.2f}"
    return f"{step.stability:.3f}", ends, f"{step.stability_shuffled:.3f}"


def _words(found: Calibration) -> TitledTable:
    rows = []
    for step in found.sweep:
        for one in step.lists:
            if one.differing is not None and {one.gender, one.against} == set(WOMEN_AND_MEN):
                rows.append((f"{step.alpha:.2f}", one.gender, " ".join(one.differing[:15]) or "(none)"))
    return TitledTable(
        "Words not in the lists of all five alphas (GAS(P), Tables 3 and 5; first fifteen)",
        ((Heading("alpha"), Heading("marks"), Heading("words")),),
        tuple(rows),
        n_text=3,
    )
