"""What labels by a person say of the rules, and of the shares that the rules give."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.common.plain import group_by
from biaskit.common.wording import count, joined
from biaskit.measurement import words
from biaskit.measures.personas.labels.drawing import CELL, FOLDER, Drawn, Stored, who_counts
from biaskit.measures.personas.labels.sheets import NONE, UNCLEAR
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.documents import TextDocument, TextDocuments
from biaskit.records import ALL, GENDERS
from biaskit.stats.arrays import FloatArray, IntArray
from biaskit.stats.prediction_powered import FEWEST_LABELS, FEWEST_OF_STRATUM, corrected_share, pooled
from biaskit.stats.proportions import wilson
from biaskit.tables.query import Row

_CLASSES = (NONE, *GENDERS, UNCLEAR)  # what rules or a judge may say: strata, if each has enough labels
_NOTHING = -1
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
    """Add corrected shares to rows of representation.csv; give rows of label_validation.csv and notes too.

    Of a text whose gender is known a reader corrects nothing, who may find none in its words.
    """
    drawn, known = Drawn.stored_in(run), _known(documents)
    label_of, waiting = labels.settled()
    said = (labels.judge or _by_rules(documents)) | known
    settled = label_of | {key: known[key] for key in label_of.keys() & known.keys()}
    columns, n_then = {}, {(model, occupation): n for model, occupation, n in drawn.n_texts}
    for cell, texts in group_by(who_counts(documents, study), CELL).items():
        found = _look_up(texts, settled, said, drawn.probability)
        columns[cell] = _corrected(texts, found, n_then.get(cell), documents.template_ids)
    with_labels: list[Row] = []
    for row in rows:
        own = columns.get((row["model"], row["occupation"]), {}) if row["template_id"] == ALL else {}
        added = {name: own.get(name) for name in _COLUMNS}
        with_labels.append({**row, **added, "reason": joined([row["reason"], own.get("reason")])})
    validated = validation_rows(documents, label_of, drawn.probability, labels.judge)
    return with_labels, validated, [*labels.notes, *_notes(label_of, drawn, waiting)]


def validation_rows(
    documents: TextDocuments,
    label_of: Mapping[str, str],
    probability: Mapping[str, float],
    judge: Mapping[str, str] | None = None,
) -> list[Row]:
    """Make label_validation.csv; known genders are labels, too, of all texts that have one."""
    rows, known, said = list[Row](), _known(documents), judge or _by_rules(documents)
    labels, drawn = {**label_of, **known}, {**probability, **dict.fromkeys(known, 1.0)}
    classes = _CLASSES if UNCLEAR in said.values() else _CLASSES[:-1]  # only a model says so
    for model, texts in group_by(documents.texts, attrgetter("model")).items():
        if judge is not None or model not in documents.lacking("represented"):
            rows += _validation(model, classes, _look_up(texts, labels, said, drawn))
    return rows


def _known(documents: TextDocuments) -> dict[str, str]:
    return {text.key: text.person_gender for text in documents.texts if text.gender and text.person_gender}


def _by_rules(documents: TextDocuments) -> dict[str, str]:
    return {text.key: text.inferred_gender or NONE for text in documents.texts}


def _notes(label_of: Mapping[str, str], drawn: Drawn, waiting: Sequence[str]) -> Iterator[str]:
    """Say how many texts of the sheet have no label or two, and how many labels correct nothing."""
    says, is_labelled = words("personas")["labels"], [key in label_of for key in drawn.probability]
    if not all(is_labelled):
        yield says["labelled"].format(sum(is_labelled), count(len(is_labelled), "text"))
    while is_labelled and not is_labelled[-1]:
        is_labelled.pop()
    if skipped := is_labelled.count(False):
        yield says["skipped"].format(count(skipped, "text"))
    if apart := len(label_of.keys() - drawn.probability.keys()):
        yield says["not_drawn"].format(count(apart, "label"))
    if waiting:
        yield says["waiting"].format(count(len(waiting), "text"), f"{FOLDER}/{sheet_of(waiting)}")


@dataclass(frozen=True, slots=True)
class _Classes:
    """What a person, and the rules or a judge, say of n texts: places in `_CLASSES`, `[n]`; -1 is nothing."""

    by_person: IntArray
    by_rules: IntArray
    probability: FloatArray  # [n], with which each was drawn; 0 of those that were not
    units: IntArray  # [n], the number of the unit of evidence that each is one of


def _look_up(
    texts: Sequence[TextDocument],
    label_of: Mapping[str, str],
    said: Mapping[str, str],
    probability: Mapping[str, float],
) -> _Classes:
    """Find the labels of texts by their keys, and what the rules or a judge said."""
    n, place_of = len(texts), {name: place for place, name in enumerate(_CLASSES)}
    units = np.unique(list(map(attrgetter("unit"), texts)), return_inverse=True)[1]
    found = _Classes(np.full(n, _NOTHING), np.full(n, _NOTHING), np.zeros(n), units)
    for i, text in enumerate(texts):
        found.by_person[i] = place_of.get(label_of.get(text.key, ""), _NOTHING)
        found.by_rules[i] = place_of.get(said.get(text.key, ""), _NOTHING)
        found.probability[i] = probability.get(text.key, 0.0)
    return found


def _corrected(
    texts: Sequence[TextDocument], found: _Classes, n_then: int | None, templates: Sequence[str]
) -> Row:
    """Make the columns of one model and occupation; `n_then`: of how many texts labels were drawn."""
    is_drawn, by_rules = found.probability > 0, found.by_rules
    by_person = np.where(is_drawn, found.by_person, _NOTHING)
    labelled = by_person != _NOTHING
    n, prompts = int(labelled.sum()), np.array([templates.index(text.template_id) for text in texts])
    if n < FEWEST_LABELS:
        return {"n_labelled": n, "reason": f"{count(n, 'label')}: a corrected share needs {FEWEST_LABELS}"}
    if n_then != len(texts):
        return {"n_labelled": n, "reason": f"labels were drawn of {n_then} texts, now there are {len(texts)}"}
    n_of = np.bincount(prompts[labelled], minlength=len(templates)).tolist()
    if min(n_of) < FEWEST_OF_STRATUM:
        prompt = f"{count(min(n_of), 'label')} of prompt {templates[n_of.index(min(n_of))]}"
        return {"n_labelled": n, "reason": f"{prompt}: a corrected share needs {FEWEST_OF_STRATUM} of each"}
    probability = np.where(is_drawn, found.probability, 1.0)
    strata, n_copies = pooled(by_rules, prompts, labelled), Counter(text.unit for text in texts).values()
    independent = len(texts) ** 2 / sum(c * c for c in n_copies)

    def share(gender: str, rules: IntArray, strata: IntArray) -> Any:
        careful, cheap = _about(by_person, gender), _about(rules, gender)
        return corrected_share(careful, cheap, probability, strata, prompts, independent)

    women, nonbinary = share("female", by_rules, strata), share("nonbinary", by_rules, strata)
    if women is None or nonbinary is None:
        return {"n_labelled": n, "reason": "too few labelled texts name a gender"}
    alone = share("female", np.zeros_like(by_rules), prompts)  # as if rules said `none` of all
    are_pooled = len({*strata}) < len({*zip(prompts, by_rules, strict=True)})
    few = f"classes of texts with fewer than {FEWEST_OF_STRATUM} labels pooled" if are_pooled else None
    of_two = [women.estimate, *women.ci95, women.se, nonbinary.estimate]
    values = [*of_two, n, alone.estimate, *alone.ci95]
    return {**dict(zip(_COLUMNS, values, strict=True)), "reason": few}


def _about(classes: IntArray, gender: str) -> FloatArray:
    """Say of each text whether it is of that gender, and whether of any, `[n, 2]`; NaN without a label."""
    is_gender, is_any = classes == _CLASSES.index(gender), (classes > 0) & (classes <= len(GENDERS))
    about = np.stack([is_gender, is_any], axis=1).astype(np.float64)
    about[classes == _NOTHING] = np.nan
    return about


def _validation(model: str, classes: Sequence[str], found: _Classes) -> Iterator[Row]:
    """Make label_validation.csv; shares have weights 1/π, and Wilson's interval of (Σ w)²/Σ w² units."""
    by_person, by_rules = found.by_person, found.by_rules
    labelled = (by_person != _NOTHING) & (by_rules != _NOTHING)
    for place, name in enumerate(classes if labelled.any() else ()):
        counts = np.bincount(by_person[labelled & (by_rules == place)], minlength=len(_CLASSES)).tolist()
        row: dict[str, Any] = {"model": model, "gender": name, "reason": None}
        row |= {f"n_{label}": n for label, n in zip(_CLASSES, counts, strict=True)}
        for measure, among in (("precision", by_rules), ("recall", by_person)):
            row |= dict.fromkeys((measure, f"{measure}_low", f"{measure}_high"))
            if name not in GENDERS:
                continue
            chosen = labelled & (found.probability > 0) & (among == place)
            if not chosen.any():
                row["reason"] = joined([row["reason"], f"no labelled text for {measure}"])
                continue
            right, weights = (by_person == by_rules)[chosen], 1.0 / found.probability[chosen]
            part = float(weights @ right / weights.sum())
            n = weights.sum() ** 2 / np.square(np.bincount(found.units[chosen], weights)).sum()
            low, high = wilson(min(part * n, n), n) or (0.0, 1.0)
            row |= {measure: part, f"{measure}_low": low, f"{measure}_high": high}
        yield row
