"""Answers and beginnings of texts with labels given by hand, and how often the rules agree with them.

See tests/golden/README.md for where they come from.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from places import GOLDEN

from biaskit.corpora.loaders import load_target_word_sets, render_forms
from biaskit.measures.personas.texts.outcomes import OUTCOMES as TEXT_OUTCOMES
from biaskit.measures.personas.texts.outcomes import text_outcome
from biaskit.measures.probe.outcomes import OUTCOMES, outcome_of

DEVELOPMENT, HELD_OUT = "development", "held-out"


@dataclass(frozen=True, slots=True)
class Labelled:
    """One label beside what the rules say; of answers also the group that both name."""

    id: str
    half: str
    origin: str
    text: str
    outcome: str
    group: str
    said: str
    said_group: str
    rule_id: str
    opening: bool = False  # goes on after the opening of a sentence


def labelled_answers() -> list[Labelled]:
    """Every labelled answer, with the words that its own target word set lists."""
    sets = load_target_word_sets("corpus:target-words/sets.toml")
    found = []
    for row in _rows("answers.csv", "question", "answer"):
        target_words = render_forms(sets[row["set"]])
        groups = tuple(dict.fromkeys(one.group for one in target_words))
        said = outcome_of(row["answer"], question=row["question"], target_words=target_words, groups=groups)
        scope = (row["id"], row["half"], row["origin"], row["answer"], row["outcome"], row["group"])
        opening = "\n" in row["question"]
        found.append(Labelled(*scope, said.outcome, said.group, said.rule_id, opening))
    return found


def labelled_texts() -> list[Labelled]:
    """Every labelled beginning of a text."""
    found = []
    for row in _rows("texts.csv", "text"):
        said = text_outcome(row["text"])
        scope = (row["id"], row["half"], row["origin"], row["text"], row["outcome"], "")
        found.append(Labelled(*scope, said.outcome, "", said.rule_id))
    return found


def _rows(name: str, *escaped: str) -> list[dict[str, str]]:
    """The rows of a golden file, whose texts are JSON strings without their quotation marks."""
    with (GOLDEN / name).open(encoding="ascii", newline="") as file:
        return [row | {key: json.loads(f'"{row[key]}"') for key in escaped} for row in csv.DictReader(file)]


def held_out(labels: Iterable[Labelled]) -> list[Labelled]:
    """The half that no rule was tuned on."""
    return [one for one in labels if one.half == HELD_OUT]


def confusion(labels: Sequence[Labelled], outcomes: Sequence[str]) -> str:
    """A confusion matrix as text: a row for each label, a column for what the rules say, then both rates."""
    counts = Counter((one.outcome, one.said) for one in labels)
    lines = ["label".ljust(11) + "".join(o.rjust(10) for o in outcomes) + "    recall  precision"]
    for label in outcomes:
        hits = counts[label, label]
        given = sum(counts[label, said] for said in outcomes)
        taken = sum(counts[other, label] for other in outcomes)
        cells = "".join(str(counts[label, said]).rjust(10) for said in outcomes)
        lines.append(f"{label:11}{cells}{_rate(hits, given):>10}{_rate(hits, taken):>11}")
    agreed = sum(counts[o, o] for o in outcomes)
    return "\n".join([*lines, f"the same: {agreed} of {len(labels)} ({100 * agreed / len(labels):.1f} %)\n"])


def _rate(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "-"


def summary() -> str:
    """What docs/verification.md shows: the held-out halves of both sets."""
    answers, texts = held_out(labelled_answers()), held_out(labelled_texts())
    right_group = sum(one.group == one.said_group for one in answers if one.outcome == one.said == "listed")
    n_listed = sum(one.outcome == one.said == "listed" for one in answers)
    parts = ["Answers, held out\n", confusion(answers, OUTCOMES)]
    parts.append(f"the same group where both say listed: {right_group} of {n_listed}\n")
    for name, part in (
        ("questions, written", [x for x in answers if not x.opening and x.origin == "written"]),
        ("questions, demo model", [x for x in answers if not x.opening and x.origin == "demo"]),
        ("openings, written", [x for x in answers if x.opening and x.origin == "written"]),
        ("openings, demo model", [x for x in answers if x.opening and x.origin == "demo"]),
    ):
        parts.append(f"{name}: {sum(x.outcome == x.said for x in part)} of {len(part)}\n")
    return "".join([*parts, "\nTexts, held out\n", confusion(texts, TEXT_OUTCOMES)])
