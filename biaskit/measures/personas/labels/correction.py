"""What labels by a person say of the rules, and of the shares that the rules give."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.common.plain import group_by
from biaskit.common.wording import count, joined
from biaskit.measures.personas.labels.drawing import CELL, FOLDER, Drawn, Stored, who_counts
from biaskit.measures.personas.labels.sheets import NONE, UNCLEAR
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.documents import TextDocument, TextDocuments
from biaskit.records import GENDERS
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.prediction_powered import FEWEST_LABELS, corrected_share, pooled
from biaskit.stats.proportions import wilson
from biaskit.tables.query import Row

_CLASSES = (NONE, *GENDERS, UNCLEAR)  # what rules or a judge may say: strata, if each has enough labels
_NO_LABEL = -1
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
            given = [labels[key] for labels in self.readers[:2] if key in labels]
            if len({*given}) != 1:
                of_third = [labels[key] for labels in self.readers[2:] if key in labels]
                if not of_third:
                    waiting.append(key)
                given = of_third or given
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
    by_rules = {t.key: (t.association.gender if t.read else None) or NONE for t in documents.texts}
    said = labels.judge or by_rules
    label_of, waiting = labels.settled()
    columns = {}
    for cell, texts in group_by(who_counts(documents, study), CELL).items():
        columns[cell] = _corrected(cell, texts, label_of, drawn, said)
    found: list[Row] = []
    for row in rows:
        own = columns.get((row["model"], row["occupation"]), {}) if row["template_id"] == "all" else {}
        added = {name: own.get(name) for name in _COLUMNS}
        found.append({**row, **added, "reason": joined([row["reason"], own.get("reason")])})
    notes = [*labels.notes, *_notes(label_of, drawn, waiting)]
    return found, list(_validation(documents.texts, label_of, drawn, said)), notes


def _notes(label_of: Mapping[str, str], drawn: Drawn, waiting: Sequence[str]) -> Iterator[str]:
    """Say how many texts of the sheet have no label or two, and how many labels correct nothing."""
    is_labelled = [key in label_of for key in drawn.probability]
    if not all(is_labelled):
        yield f"{sum(is_labelled):,} of {count(len(is_labelled), 'text')} of the sheet are labelled"
    while is_labelled and not is_labelled[-1]:
        is_labelled.pop()
    if skipped := is_labelled.count(False):
        yield f"{count(skipped, 'text')} of the sheet skipped: if they were hard ones, shares are biased"
    if apart := len(label_of.keys() - drawn.probability.keys()):
        yield f"{count(apart, 'label')} of texts that were not drawn: counted, but correct nothing"
    if waiting:
        yield (
            f"readers differ on {count(len(waiting), 'text')}, where one of the labels counts, by lot: let a"
            f" third fill {FOLDER}/{sheet_of(waiting)} of the run, and name it last in --labels"
        )


def _corrected(
    cell: tuple[str, str],
    texts: Sequence[TextDocument],
    label_of: Mapping[str, str],
    drawn: Drawn,
    said: Mapping[str, str],
) -> Row:
    """Make the columns of one model and occupation."""
    by_person = np.full(len(texts), _NO_LABEL)
    for place, text in enumerate(texts):
        if text.key in drawn.probability and text.key in label_of:
            by_person[place] = _CLASSES.index(label_of[text.key])
    labelled = by_person != _NO_LABEL
    n, n_then = int(labelled.sum()), {(m, o): n for m, o, n in drawn.n_texts}.get(cell)
    if n < FEWEST_LABELS:
        return {"n_labelled": n, "reason": f"{count(n, 'label')}: a corrected share needs {FEWEST_LABELS}"}
    if n_then != len(texts):
        return {"n_labelled": n, "reason": f"labels were drawn of {n_then} texts, now there are {len(texts)}"}
    by_rules = np.array([_CLASSES.index(said[text.key]) for text in texts])
    probability = np.array([drawn.probability.get(text.key, 1.0) for text in texts])
    strata, n_copies = pooled(by_rules, labelled), Counter(text.unit for text in texts).values()
    independent = len(texts) ** 2 / sum(c * c for c in n_copies)

    def share(gender: str, rules: IntArray, strata: IntArray) -> Any:
        careful, cheap = _about(by_person, gender), _about(rules, gender)
        return corrected_share(careful, cheap, probability, strata, independent)

    women, nonbinary = share("female", by_rules, strata), share("nonbinary", by_rules, strata)
    if women is None or nonbinary is None:
        return {"n_labelled": n, "reason": "too few labelled texts name a gender"}
    alone = share("female", np.zeros_like(by_rules), np.zeros_like(strata))  # as if rules said `none` of all
    few = "classes of texts with fewer than 10 labels pooled" if len({*strata}) < len({*by_rules}) else None
    values = [women.estimate, *women.ci95, women.se, nonbinary.estimate, n]
    values += [alone.estimate, *alone.ci95]
    return {**dict(zip(_COLUMNS, values, strict=True)), "reason": few}


def _about(classes: IntArray, gender: str) -> FloatArray:
    """Say of each text whether it is of that gender, and whether of any, `[n, 2]`; NaN without a label."""
    is_gender, is_any = classes == _CLASSES.index(gender), (classes > 0) & (classes <= len(GENDERS))
    about = np.stack([is_gender, is_any], axis=1).astype(np.float64)
    about[classes == _NO_LABEL] = np.nan
    return about


def _validation(
    texts: Sequence[TextDocument], label_of: Mapping[str, str], drawn: Drawn, said: Mapping[str, str]
) -> Iterator[Row]:
    """Make label_validation.csv; shares have weights 1/π, and Wilson's interval of (Σ w)²/Σ w² texts."""
    for model, of_model in group_by(texts, attrgetter("model")).items():
        own = [text.key for text in of_model if text.key in said]
        labelled = {key: label_of[key] for key in own if key in label_of}
        drawn_ones = [key for key in labelled if key in drawn.probability]
        for name in _CLASSES if labelled else ():
            if name == UNCLEAR and name not in said.values():  # only a model says so
                continue
            counts = Counter(label for key, label in labelled.items() if said[key] == name)
            row: dict[str, Any] = {"model": model, "gender": name, "reason": None}
            row |= {f"n_{label}": counts[label] for label in (*GENDERS, NONE, UNCLEAR)}
            for measure, among in (("precision", said), ("recall", labelled)):
                keys = [key for key in drawn_ones if among[key] == name in GENDERS]
                right = np.array([said[key] == labelled[key] for key in keys])
                weights = np.array([1.0 / drawn.probability[key] for key in keys])
                row |= _part_right(measure, right, weights)
                if name in GENDERS and not keys:
                    row["reason"] = joined([row["reason"], f"no labelled text for {measure}"])
            yield row


def _part_right(measure: str, right: BoolArray, weights: FloatArray) -> Row:
    """Make the columns of the weighted part of texts that are right, `[n]` each; undefined without a text."""
    if not right.size:
        return dict.fromkeys((measure, f"{measure}_low", f"{measure}_high"))
    part = float(weights @ right / weights.sum())
    n = weights.sum() ** 2 / np.square(weights).sum()
    low, high = wilson(min(part * n, n), n) or (0.0, 1.0)
    return {measure: part, f"{measure}_low": low, f"{measure}_high": high}
