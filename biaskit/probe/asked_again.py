"""A stored row of the prober beside the same question asked again, and beside its own arithmetic.

Nothing is asked here: `workflow/verify.py` draws rows and asks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biaskit.models.matching import match
from biaskit.probe.design import ProbeDesign
from biaskit.probe.planned import PlannedCells
from biaskit.probe.rounds import Rounds
from biaskit.records import Scored, ScoreRequest
from biaskit.runs.manifest import draws_of

TOLERANCES = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.25}
"""How far a log-probability may move with processor, batch and library, by the dtype of the weights.

Batch shapes alone move float32 by up to 6e-5, two machines by less than 1e-3; the others keep 11 and 8 bits.
"""
OF_SERVERS = 0.25
"""The same where a server answers, whose dtype nobody tells: a quarter, as for bfloat16."""
_ABOVE_ONE = 1e-4
_ROUNDED = 2e-6
"""Listed next tokens are stored with six decimals."""
_NEGLIGIBLE = math.log(1e-9)
"""Below a probability of 1e-9 the difference of two logarithms says nothing of a share."""


@dataclass(frozen=True, slots=True)
class Apart:
    """How far an answer is from its row, and where most."""

    largest: float = 0.0
    where: str = ""

    def __or__(self, other: Apart) -> Apart:
        return max(self, other, key=lambda one: one.largest)


class StoredCells:
    """Which model and which request a stored row answers, by the run's manifest."""

    def __init__(self, manifest: Mapping[str, Any], design: ProbeDesign) -> None:
        self._planned: dict[str, tuple[str, PlannedCells, Rounds]] = {}
        for label, entry in manifest["models"].items():
            how = entry.get("estimator", "exact")
            cells = PlannedCells(design, label, entry["prompt_form"], entry["fingerprint"], how)
            rounds = Rounds.of(draws_of(entry), design.study.max_draws_per_cell)
            self._planned.setdefault(cells.model_key, (label, cells, rounds))

    def request_of(self, row: Mapping[str, Any]) -> tuple[str, ScoreRequest] | None:
        """(model, request) of a row; None where this question has no such cell."""
        label, cells, rounds = self._planned.get(str(row.get("model_key")), ("", None, Rounds()))
        try:
            if cells is None:
                return None
            return label, rounds.request(cells.requests[cells.place_of(row)], int(row.get("round", 0)))
        except (LookupError, TypeError, ValueError):
            return None


def cell_name(row: Mapping[str, Any]) -> str:
    """'explicit template 3, nurse', with what else tells a cell apart."""
    more = f", instruction {row['instruction_id']}" if row.get("instruction_id") else ""
    more += f", {row['setting']}" if row.get("setting") not in (None, "plain") else ""
    more += f", round {row['round'] + 1}" if row.get("round") else ""
    return f"{row.get('bias_type')} template {row.get('template_id')}, {row.get('job')}{more}"


# --- a row and its own arithmetic ----------------------------------------------------------------------


def own_fault(row: Mapping[str, Any], word_boundary: str) -> str | None:
    """What in a believable row contradicts the rest of it; None where nothing does."""
    if "counts" in row:
        return _counts_fault(row)
    if word_boundary == "word" or row["estimator"] not in ("exact", "selected-ids", "echo"):
        return None
    points = [e for e in row["expressions"] if e["log_prob"] is not None and e["token_ids"]]
    single = {e["token_ids"][0]: e for e in points if len(e["token_ids"]) == 1}
    total = math.fsum(math.exp(e["log_prob"]) for e in single.values())
    if total > 1 + _ABOVE_ONE:
        return f"its probabilities add up to {total:.4g}"
    listed = {token: log_prob for _, log_prob, token in row.get("listed_next", ())}
    least = min(listed.values(), default=-math.inf)
    for e in points:
        first = e["token_ids"][0]
        known = listed.get(first, least if listed else 0.0)
        alone = len(e["token_ids"]) == 1 and first in listed
        if e["log_prob"] > known + _ROUNDED or (alone and abs(e["log_prob"] - known) > _ROUNDED):
            return f"{e['text']!r} is {e['log_prob']:.4f} and its token {known:.4f} in the list beside it"
    return None


def _counts_fault(row: Mapping[str, Any]) -> str | None:
    if not (answers := row.get("answers")):
        return None
    counts = dict.fromkeys(row["counts"], 0)
    for text, finish in answers:
        said = None if finish in ("refusal", "filter") else match(text, counts, ended=finish != "length")
        if said is not None:
            counts[said] += 1
    wrong = [text for text in counts if counts[text] != row["counts"][text]]
    if not wrong:
        return None
    return f"{wrong[0]!r} is counted {row['counts'][wrong[0]]} times and said {counts[wrong[0]]} times"


# --- a row and the answer of today -----------------------------------------------------------------------


def apart(row: Mapping[str, Any], answer: Scored) -> Apart:
    """The largest difference in log-probability between a row and an answer that gives points or lists.

    Another prompt, another set of expressions, or a probability that only one of them has is infinitely far.
    """
    if row.get("prompt") != answer.prompt:
        return Apart(math.inf, "the prompt is put in other words or another chat template now")
    found = Apart()
    if answer.listed is not None:
        for before, listed in answer.listed.items():
            found |= _lists_apart(dict(row.get("listed", {}).get(before, ())), dict(listed))
        return found
    now = {(e.group, e.text): e.high for e in answer.log_probs}
    stored = {(e["group"], e["text"]): e["log_prob"] for e in row["expressions"]}
    if now.keys() != stored.keys():
        return Apart(math.inf, "the expressions are others now")
    for name, before in stored.items():
        found |= _points_apart(repr(name[1]), before, now[name])
    return found


def _points_apart(name: str, before: float | None, after: float | None) -> Apart:
    low, high = sorted(-math.inf if one is None else one for one in (before, after))
    if high < _NEGLIGIBLE:
        return Apart()
    said = [
        f"{one:.4f}" if one is not None and math.isfinite(one) else "impossible" for one in (before, after)
    ]
    return Apart(high - low, f"{name} is {said[0]} stored, {said[1]} now")


def _lists_apart(before: Mapping[str, float], after: Mapping[str, float]) -> Apart:
    """Lists of the most probable tokens: one that only one list has stands at the end of the other's."""
    found = Apart()
    if not before or not after:
        return found if not before and not after else Apart(math.inf, "a list of tokens is missing")
    ends = min(before.values()), min(after.values())
    for token in before.keys() | after.keys():
        one, two = before.get(token, ends[0]), after.get(token, ends[1])
        found |= _points_apart(repr(token), one, two)
    return found


def drawn_apart(row: Mapping[str, Any], answer: Scored) -> int:
    """How many draws of a row with texts are not, byte for byte, those of the answer."""
    stored = [tuple(one) for one in row.get("answers", ())]
    now = list(answer.answers or ())
    return sum(one != two for one, two in zip(stored, now, strict=False)) + abs(len(stored) - len(now))


def counts_by_group(row: Mapping[str, Any], groups: Sequence[str]) -> list[int]:
    """Draws that say each group, then those that say none."""
    return _by_group(row["expressions"], row["counts"], row["draws"], groups)


def answer_by_group(answer: Scored, groups: Sequence[str]) -> list[int]:
    """The same of an answer."""
    listed = [{"group": e.group, "text": e.text} for e in answer.log_probs]
    return _by_group(listed, answer.counts or {}, answer.draws or 0, groups)


def _by_group(
    expressions: Sequence[Mapping[str, Any]], counts: Mapping[str, int], draws: int, groups: Sequence[str]
) -> list[int]:
    group_of = {e["text"]: e["group"] for e in expressions}
    own = [sum(n for text, n in counts.items() if group_of.get(text) == group) for group in groups]
    return [*own, draws - sum(own)]
