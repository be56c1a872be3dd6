"""A row of probe.jsonl: an answer with what it answers (docs/reading.md#rows)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from biaskit.probe.shares.cells import as_json
from biaskit.records import Cell, Estimator, EstimatorName, Expression, LogProb, Prompt, Scored, as_record

Json = dict[str, Any]


def row_of(
    answer: Scored, cell: Cell, prompt: Prompt, estimator: Estimator, number: int = 0
) -> dict[str, Any]:
    """A row of probe.jsonl (docs/reading.md#rows); `number`: of the round, where draws are counted."""
    row = {
        "key": answer.key,
        **columns_of(cell),
        "prompt": answer.prompt,
        "system": prompt.system,
        "estimator": answer.estimator,
        "answered_by": answer.answered.by,
        "answered_at": answer.answered.at,
        "prompt_tokens": answer.answered.prompt_tokens,
        "expressions": [_expression(e, answer.estimator) for e in answer.log_probs],
    }
    if answer.listed is not None:
        row |= {
            "k": estimator.k,
            "listed": {before: list(listed) for before, listed in answer.listed.items()},
        }
    if answer.listed_next is not None:
        # Six decimals: float32 sums are not better.
        row["listed_next"] = [[one.text, round(one.log_prob, 6), one.id] for one in answer.listed_next]
    if answer.counts is not None:
        row |= {"round": number, "draws": answer.draws, "counts": dict(answer.counts)}
        row["answers"] = [list(one) for one in answer.answers or ()]
    return row


def columns_of(cell: Cell) -> Json:
    """The columns of a row that say which cell it answers."""
    return {name: value for name, value in as_record(cell).items() if name != "labour_female_share"}


def _expression(e: LogProb, estimator: EstimatorName) -> dict[str, Any]:
    """One expression of a row: a point, or the ends of what is known; JSON has no -inf, so that is null."""
    shown: dict[str, Any] = {"group": e.group, "text": e.text, "log_prob": None, "token_ids": e.token_ids}
    if estimator == "top-k":
        shown |= {"low": _finite(e.low), "high": _finite(e.high)}
    elif estimator != "sampling":
        shown["log_prob"] = _finite(e.high)
    return shown if e.tokens is None else {**shown, "tokens": e.tokens}


def _finite(log_prob: float | None) -> float | None:
    return None if log_prob is None else as_json(log_prob)


def expressions_of(texts: Mapping[str, Sequence[str]]) -> tuple[Expression, ...]:
    """Group → texts as expressions, in order."""
    return tuple(Expression(group, text) for group, listed in texts.items() for text in listed)
