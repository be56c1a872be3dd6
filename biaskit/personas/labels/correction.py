"""What labels by a person say of the rules, and of the shares that the rules give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.common.files import write_or_refuse
from biaskit.common.inputs import Inputs
from biaskit.common.provenance import canonical_json
from biaskit.common.wording import count
from biaskit.errors import RunError
from biaskit.personas.labels.drawing import FOLDER, Cell, Drawn, by_cell, read_drawn
from biaskit.personas.texts.documents import TextDocument
from biaskit.records import GENDERS
from biaskit.stats.arrays import FloatArray
from biaskit.stats.prediction_powered import FEWEST_LABELS, corrected_share, pooled
from biaskit.stats.proportions import wilson
from biaskit.tables.query import Row

_USED = "used.json"
_FILE = Inputs(RunError, most=2**28, remedy="Read the sheets again: biaskit analyze RUN --labels SHEET.")
NONE = "none"
_CLASSES = (NONE, *GENDERS)  # strata with few labels join the next one

_WITHOUT: Mapping[str, object] = dict.fromkeys(
    (
        *("share_corrected", "corrected_low", "corrected_high", "corrected_se", "nonbinary_corrected"),
        *("n_labelled", "share_labelled", "labelled_low", "labelled_high"),
    )
)


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that an analysis uses."""

    readers: tuple[Mapping[str, str], ...]  # key → label, one for each sheet
    judge: Mapping[str, str] | None  # labels of a model, in place of the rules'
    files: tuple[str, ...]  # names of the sheets
    notes: tuple[str, ...]  # what their reading said

    def store(self, run: Path) -> None:
        """Put the labels into the run's folder, for every later analysis."""
        record: dict[str, Any] = {"readers": list(self.readers), "judge": self.judge}
        record |= {"files": list(self.files), "notes": list(self.notes)}
        write_or_refuse(run / FOLDER / _USED, canonical_json(record).encode())

    def record(self) -> Row:
        """Say in analysis.json what was used."""
        given = {key for of_reader in self.readers for key in of_reader}
        return {"n": len(given), "readers": len(self.readers), "judge": self.judge is not None}

    def of(self, key: str) -> list[str]:
        """List the labels of a text: of its readers, or the third's, who decides."""
        given = [labels[key] for labels in self.readers if key in labels]
        return given[-1:] if len(given) > 2 else given


def read_labels(run: Path) -> Labels | None:
    """Read the labels that an earlier `analyze --labels` left in the run; None where it has none."""
    path = run / FOLDER / _USED
    if not path.is_file():
        return None
    stored: dict[str, Any] = _FILE.json(path)
    try:
        return Labels(
            tuple(map(dict, stored["readers"])),
            stored["judge"] and dict(stored["judge"]),
            tuple(stored["files"]),
            tuple(stored["notes"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} is not what biaskit wrote. {_FILE.remedy}") from error


def forget_labels(run: Path) -> None:
    """Take the labels out of the run."""
    (run / FOLDER / _USED).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Corrections:
    """What labels bring to the tables."""

    columns: Mapping[Cell, Row]  # of the rows `all` of representation.csv
    validation: Sequence[Row]  # label_validation.csv
    notes: Sequence[str]

    def beside(self, rows: Sequence[Row]) -> list[Row]:
        """Add the columns to the rows of representation.csv."""
        found = []
        for row in rows:
            own = self.columns.get((row["model"], row["occupation"])) if row["template_id"] == "all" else None
            reasons = [reason for reason in (row["reason"], own and own["reason"]) if reason]
            found.append({**row, **(own or _WITHOUT), "reason": "; ".join(reasons) or None})
        return found


def corrections(run: Path, labels: Labels, texts: Sequence[TextDocument]) -> Corrections:
    """Correct the share of women of each model and occupation, and hold the rules against the labels.

    `texts`: those that could be drawn.
    """
    drawn = read_drawn(run) or Drawn(0, {}, {})
    given = {key for of_reader in labels.readers for key in of_reader}
    said = {text.key: _said(text, labels) for text in texts}
    columns: dict[Cell, Row] = {}
    for cell, of_cell in by_cell(texts).items():
        columns[cell] = _corrected(of_cell, labels, drawn, said, drawn.n_texts.get(cell))
    notes = list(labels.notes)
    if apart := len(given - drawn.probability.keys()):
        notes.append(
            f"{count(apart, 'labelled text')} not drawn by biaskit label: only in the counts of label_validation.csv"
        )
    if both := differing_labels(labels):
        notes.append(f"{count(both, 'text')} with two different labels count half for each")
    return Corrections(columns, list(_validation(texts, labels, drawn, said)), notes)


def differing_labels(labels: Labels) -> int:
    """Count the texts on which two readers differ and no third decides."""
    keys = {key for of_reader in labels.readers for key in of_reader}
    return sum(len(set(labels.of(key))) > 1 for key in keys)


def _said(text: TextDocument, labels: Labels) -> str:
    """Say what the cheap label of a text is: the judge's, or the rules'."""
    if labels.judge is not None:
        label = labels.judge[text.key]
        return NONE if label == "unclear" else label
    return text.gender or NONE


def _corrected(
    texts: Sequence[TextDocument], labels: Labels, drawn: Drawn, said: Mapping[str, str], n_drawn_from: int | None
) -> Row:
    keys = [text.key for text in texts]
    used = [labels.of(key) if key in drawn.probability else [] for key in keys]
    n = sum(map(bool, used))
    columns = {**_WITHOUT, "n_labelled": n, "reason": None}
    if n < FEWEST_LABELS:
        why = f"{count(n, 'label')}: a corrected share needs {FEWEST_LABELS}"
        return {**columns, "reason": why if n or labels.readers else None}
    if n_drawn_from != len(texts):
        return {**columns, "reason": f"{n_drawn_from} texts when labels were drawn and {len(texts)} now"}
    probability = np.array([drawn.probability.get(key, 1.0) for key in keys])
    units = Counter(text.unit for text in texts)
    independent = len(texts) ** 2 / sum(c * c for c in units.values())
    classes = np.array([_CLASSES.index(said[key]) for key in keys])
    strata = pooled(classes, np.array([bool(of_text) for of_text in used]))
    found: dict[str, Any] = {}
    for gender in ("female", "nonbinary"):
        careful = np.array([_part_of(of_text, gender) for of_text in used])
        cheap = np.array([_part_of([said[key]], gender) for key in keys])
        found[gender] = corrected_share(careful, cheap, probability, strata, independent)
        nothing = np.zeros_like(cheap)
        found[f"{gender} alone"] = corrected_share(careful, nothing, probability, np.zeros_like(strata))
    share, alone = found["female"], found["female alone"]
    if share is None:
        return {**columns, "reason": "no labelled text names a gender"}
    return {
        **columns,
        "share_corrected": share.estimate,
        "corrected_low": share.ci95[0],
        "corrected_high": share.ci95[1],
        "corrected_se": share.se,
        "nonbinary_corrected": found["nonbinary"].estimate,
        "share_labelled": alone.estimate,
        "labelled_low": alone.ci95[0],
        "labelled_high": alone.ci95[1],
        "reason": "strata with fewer than 10 labels pooled" if len(set(strata)) < len(set(classes)) else None,
    }


def _part_of(labels: Sequence[str], gender: str) -> tuple[float, float]:
    """Give (is of that gender, names a gender), means over the labels of a text; NaN where it has none."""
    if not labels:
        return np.nan, np.nan
    n = len(labels)
    return sum(label == gender for label in labels) / n, sum(label in GENDERS for label in labels) / n


def _validation(
    texts: Sequence[TextDocument], labels: Labels, drawn: Drawn, said: Mapping[str, str]
) -> Iterator[Row]:
    """Make the rows of label_validation.csv: what the rules said, against what readers said."""
    for model in dict.fromkeys(text.model for text in texts):
        labelled = [(t.key, labels.of(t.key)[-1]) for t in texts if t.model == model and labels.of(t.key)]
        if not labelled:
            continue
        for name in _CLASSES:
            counts = Counter(label for key, label in labelled if said[key] == name)
            row: dict[str, Any] = {"model": model, "gender": name}
            row |= {f"n_{label}": counts[label] for label in (*GENDERS, NONE, "unclear")}
            of_drawn = [(key, label) for key, label in labelled if key in drawn.probability]
            right = np.array([said[key] == label == name for key, label in of_drawn], dtype=float)
            weights = np.array([1.0 / drawn.probability[key] for key, _ in of_drawn])
            for measure, among in (
                ("precision", [said[key] == name for key, _ in of_drawn]),
                ("recall", [label == name for _, label in of_drawn]),
            ):
                chosen = np.array(among, dtype=bool) & (name != NONE)
                share, low, high = _weighted_share(right[chosen], weights[chosen])
                row |= {measure: share, f"{measure}_low": low, f"{measure}_high": high}
            yield {**row, "reason": None if of_drawn else "no labelled text was drawn"}


def _weighted_share(right: FloatArray, weights: FloatArray) -> tuple[float | None, float | None, float | None]:
    """Estimate a share of weighted texts, with Wilson's interval of (Σ w)²/Σ w² texts (Kish 1965)."""
    if not right.size:
        return None, None, None
    n = weights.sum() ** 2 / np.square(weights).sum()
    share = float(weights @ right / weights.sum())
    low, high = wilson(min(share * n, n), n) or (0.0, 1.0)
    return share, low, high
