"""What labels by a person say of the rules, and of the shares that the rules give."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.common.wording import count
from biaskit.measures.personas.labels.drawing import FOLDER, Cell, Drawn, Stored, by_cell, who_counts
from biaskit.measures.personas.labels.sheets import NONE, UNCLEAR
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.documents import TextDocument, TextDocuments
from biaskit.records import GENDERS
from biaskit.stats.crossed import joined
from biaskit.stats.prediction_powered import FEWEST_LABELS, corrected_share, pooled
from biaskit.stats.proportions import wilson
from biaskit.tables.query import Row

_CLASSES = (NONE, *GENDERS, UNCLEAR)  # what rules or a judge may say: strata, if each has enough labels
_COLUMNS = (
    *("share_corrected", "corrected_low", "corrected_high", "corrected_se", "nonbinary_corrected"),
    *("n_labelled", "share_labelled", "labelled_low", "labelled_high"),
)


class Labels(Stored):
    """The labels that an analysis uses, and every later one."""

    file = "used.json"
    readers: tuple[dict[str, str], ...]  # key of a text → label, for each sheet
    judge: dict[str, str] | None = None  # labels of a model, in place of the rules'
    notes: tuple[str, ...] = ()  # what reading the sheets showed

    def settled(self) -> tuple[dict[str, str], list[str]]:
        """Map texts to labels, a third reader's where two differ; list those that wait for a third."""
        label_of, waiting = dict[str, str](), list[str]()
        for key in dict.fromkeys(key for labels in self.readers for key in labels):
            two, more = ([x[key] for x in part if key in x] for part in (self.readers[:2], self.readers[2:]))
            if len({*two}) > 1 and not more:
                waiting.append(key)
            given = two if len({*two}) == 1 else more or two
            # By lot, as the key falls: halves of two labels would vary less than whole ones do.
            label_of[key] = given[sum(key.encode()) % len(given)]
        return label_of, waiting


def sheet_of(waiting: Sequence[str]) -> str:
    """Name the sheet of these texts for a third reader: each set has its own, for one may be begun."""
    return f"differing-{hashlib.sha256(''.join(waiting).encode()).hexdigest()[:6]}.csv"


def corrected(
    run: Path, labels: Labels, documents: TextDocuments, study: PersonasStudy, rows: Sequence[Row]
) -> tuple[list[Row], list[Row], list[str]]:
    """Add corrected shares to rows of representation.csv; give rows of label_validation.csv and notes too."""
    drawn = Drawn.stored_in(run)
    said = labels.judge or {
        t.key: (t.association.gender if t.read else None) or NONE for t in documents.texts
    }
    label_of, waiting = labels.settled()
    cells = by_cell(who_counts(documents, study))
    columns = {cell: _corrected(cell, own, label_of, drawn, said) for cell, own in cells.items()}
    found: list[Row] = []
    for row in rows:
        own = columns.get((row["model"], row["occupation"]), {}) if row["template_id"] == "all" else {}
        added = {name: own.get(name) for name in _COLUMNS}
        found.append({**row, **added, "reason": joined([row["reason"], own.get("reason")])})
    is_labelled = [key in label_of for key in drawn.probability]
    notes = list(labels.notes)
    if not all(is_labelled):
        notes.append(f"{sum(is_labelled):,} of {count(len(is_labelled), 'text')} of the sheet are labelled")
    while is_labelled and not is_labelled[-1]:
        is_labelled.pop()
    if skipped := is_labelled.count(False):
        notes.append(
            f"{count(skipped, 'text')} of the sheet skipped: if they were hard ones, shares are biased"
        )
    if apart := len(label_of.keys() - drawn.probability.keys()):
        notes.append(f"{count(apart, 'label')} of texts that were not drawn: counted, but correct nothing")
    if waiting:
        notes.append(
            f"readers differ on {count(len(waiting), 'text')}, where one of the labels counts, by lot: let a"
            f" third fill {FOLDER}/{sheet_of(waiting)} of the run, and name it last in --labels"
        )
    return found, list(_validation(documents.texts, label_of, drawn, said)), notes


def _corrected(
    cell: Cell,
    texts: Sequence[TextDocument],
    label_of: Mapping[str, str],
    drawn: Drawn,
    said: Mapping[str, str],
) -> Row:
    """Make the columns of one model and occupation."""
    used = [label_of.get(text.key) if text.key in drawn.probability else None for text in texts]
    labelled = np.array([label is not None for label in used])
    n, n_then = int(labelled.sum()), {(m, o): n for m, o, n in drawn.n_texts}.get(cell)
    if n < FEWEST_LABELS:
        return {"n_labelled": n, "reason": f"{count(n, 'label')}: a corrected share needs {FEWEST_LABELS}"}
    if n_then != len(texts):
        return {"n_labelled": n, "reason": f"labels were drawn of {n_then} texts, now there are {len(texts)}"}
    probability = np.array([drawn.probability.get(text.key, 1.0) for text in texts])
    copies = Counter(text.unit for text in texts).values()
    classes = np.array([_CLASSES.index(said[text.key]) for text in texts])
    strata = pooled(classes, labelled)

    def share(gender: str, *, rules: bool = True) -> Any:
        careful = np.array([_about(label, gender) for label in used])
        cheap = np.array([_about(said[text.key] if rules else NONE, gender) for text in texts])
        now = strata if rules else np.zeros_like(strata)
        return corrected_share(careful, cheap, probability, now, len(texts) ** 2 / sum(c * c for c in copies))

    women, nonbinary = share("female"), share("nonbinary")
    if women is None or nonbinary is None:
        return {"n_labelled": n, "reason": "too few labelled texts name a gender"}
    alone = share("female", rules=False)
    few = "classes of texts with fewer than 10 labels pooled" if len({*strata}) < len({*classes}) else None
    values = [women.estimate, *women.ci95, women.se, nonbinary.estimate, n]
    values += [alone.estimate, *alone.ci95]
    return {**dict(zip(_COLUMNS, values, strict=True)), "reason": few}


def _about(label: str | None, gender: str) -> tuple[float, float]:
    """Turn a label into (is of that gender, names a gender); NaN without one."""
    return (np.nan, np.nan) if label is None else (float(label == gender), float(label in GENDERS))


def _validation(
    texts: Sequence[TextDocument], label_of: Mapping[str, str], drawn: Drawn, said: Mapping[str, str]
) -> Iterator[Row]:
    """Make label_validation.csv; shares have weights 1/π, and Wilson's interval of (Σ w)²/Σ w² texts."""
    for model in dict.fromkeys(text.model for text in texts):
        own = [text.key for text in texts if text.model == model and text.key in said]
        labelled = {key: label_of[key] for key in own if key in label_of}
        for name in _CLASSES if labelled else ():
            if name == UNCLEAR and name not in said.values():  # only a model says so
                continue
            counts = Counter(label for key, label in labelled.items() if said[key] == name)
            row: dict[str, Any] = {"model": model, "gender": name, "reason": None}
            row |= {f"n_{label}": counts[label] for label in (*GENDERS, NONE, UNCLEAR)}
            for measure, among in (("precision", said), ("recall", labelled)):
                of = [k for k in labelled if k in drawn.probability and among[k] == name in GENDERS]
                row |= dict.fromkeys((measure, f"{measure}_low", f"{measure}_high"))
                if of:
                    weights = np.array([1.0 / drawn.probability[key] for key in of])
                    right = float(weights @ [said[key] == labelled[key] for key in of] / weights.sum())
                    n = weights.sum() ** 2 / np.square(weights).sum()
                    low, high = wilson(min(right * n, n), n) or (0.0, 1.0)
                    row |= {measure: right, f"{measure}_low": low, f"{measure}_high": high}
                elif name in GENDERS:
                    row["reason"] = joined([row["reason"], f"no labelled text for {measure}"])
            yield row
