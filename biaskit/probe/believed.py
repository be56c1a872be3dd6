"""Whether a stored row can be believed: what it holds against what its study asks and its estimator needs.

A checksum shows that nobody changed a row; it does not show that a row fits (docs/reading.md#row-files).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from biaskit.records import Expression

POINTS = ("exact", "selected-ids", "echo")
_ABOVE_ONE = 1e-6
"""How far rounding may put a log-probability above 0."""


def why_not(row: Mapping[str, Any], expected: Sequence[Expression]) -> str | None:
    """What is wrong with a row of a cell whose study has these expressions; None where nothing is."""
    expressions: Any = row.get("expressions")
    estimator = row.get("estimator")
    if not _is_list_of(expressions, dict):
        return "it has no list of expressions"
    if estimator not in (*POINTS, *_NEEDS):
        return f"its estimator {str(estimator)[:40]!r} is not known"
    if not all(isinstance(e.get(name), str) for e in expressions for name in ("group", "text")):
        return "an expression lacks its group or its text"
    if not _are_those(sorted((e["group"], e["text"]) for e in expressions), expected):
        return "its expressions are not those of the study"
    for expression in expressions:
        ids, tokens = expression.get("token_ids"), expression.get("tokens")
        if not (ids is None or _is_list_of(ids, int)) or not (tokens is None or _is_list_of(tokens, str)):
            return f"the tokens of {expression['text'][:40]!r} are no tokens"
    if "listed_next" in row and not _lists_next(row["listed_next"]):
        return "its list of next tokens holds something else than tokens with log-probability and id"
    if estimator in POINTS:
        wrong = [e["text"] for e in expressions if not _is_log_prob(e.get("log_prob", ""))]
        return f"the log-probability of {wrong[0][:40]!r} is missing or no number" if wrong else None
    return _NEEDS[str(estimator)](row)


def _are_those(found: Sequence[tuple[str, str]], expected: Sequence[Expression]) -> bool:
    """Each expected form once, after the word boundary, without it, or both (models/conversation.py)."""
    have = set(found)
    spaces = [space for space in ("", " ") if (expected[0].group, space + expected[0].text) in have]
    wanted = [(one.group, space + one.text) for one in expected for space in spaces]
    return bool(spaces) and list(found) == sorted(wanted)


def _is_list_of(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(type(one) is kind for one in value)


def _is_log_prob(value: object) -> bool:
    """A number of at most 0, or null: impossible."""
    if value is None:
        return True
    return type(value) in (int, float) and math.isfinite(value) and value <= _ABOVE_ONE  # type: ignore[arg-type,operator]


def _lists(row: Mapping[str, Any]) -> str | None:
    """What `top-k` needs: k, and after each prefix the listed tokens with their log-probabilities."""
    listed, k = row.get("listed"), row.get("k")
    if type(k) is not int or k < 1:
        return "it has no k"
    if not isinstance(listed, dict) or "" not in listed:
        return "it has no list of tokens"
    for pairs in listed.values():
        whole = isinstance(pairs, list) and all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and _is_number(pair[1])
            for pair in pairs
        )
        if not whole:
            return "its list of tokens holds something else than tokens and log-probabilities"
    return None


def _lists_next(listed: object) -> bool:
    return isinstance(listed, list) and all(
        isinstance(one, list)
        and len(one) == 3
        and isinstance(one[0], str)
        and _is_number(one[1])
        and one[1] <= _ABOVE_ONE
        and type(one[2]) is int
        for one in listed
    )


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _counts(row: Mapping[str, Any]) -> str | None:
    """What `sampling` needs: draws, and how many of them said each expression."""
    draws, counts = row.get("draws"), row.get("counts")
    if type(draws) is not int or draws < 1:
        return "it has no number of draws"
    if type(row.get("round", 0)) is not int or row.get("round", 0) < 0:
        return "its round is no number"
    if not isinstance(counts, dict) or not all(type(n) is int and n >= 0 for n in counts.values()):
        return "it has no counts"
    answers = row.get("answers", [])
    if not isinstance(answers, list) or not all(_is_list_of(one, str) and len(one) == 2 for one in answers):
        return "its answers are no texts with what ended them"
    if answers and len(answers) != draws:
        return "it has not one answer for each draw"
    if counts.keys() - {e["text"] for e in row["expressions"]} or sum(counts.values()) > draws:
        return "its counts are not those of its draws"
    return None


_NEEDS: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {"top-k": _lists, "sampling": _counts}
