"""From a stored row to mass, coverage and share of each group (methods/probabilities#mass-coverage-share)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from biaskit.errors import RunError
from biaskit.measures.probe.shares.top_k import Sought, bound_masses
from biaskit.models.token_trie import TokenIds, shortest_extensions
from biaskit.records import Cell, CellShares
from biaskit.stats.proportions import wilson

COVERAGE_TOLERANCE = 1e-6
MAY_HIDE = "a listed token may hide another with the same text"


def cell_shares(
    cell: Cell,
    row: Mapping[str, Any] | None,
    groups: tuple[str, ...],
    *,
    word_boundary: str = "token",
    contrast: tuple[str, str] | None = None,
) -> CellShares:
    """Find mass, coverage and shares of one cell, or the reason; `contrast`: whose difference gets ends."""
    if row is None:
        return CellShares(cell, None, None, None, None, "no answer stored")
    if row["estimator"] == "top-k":
        return _bounded(cell, row, groups, contrast)
    if row["estimator"] == "sampling":
        return _counted(cell, row, groups)
    return _measured(cell, row, groups, word_boundary)


def _measured(cell: Cell, row: Mapping[str, Any], groups: tuple[str, ...], word_boundary: str) -> CellShares:
    """Sum log-probabilities that are points: `exact`, `selected-ids`, `echo`."""
    expressions, estimator = row["expressions"], str(row["estimator"])
    peak, relative = own_masses(expressions, word_boundary)
    if peak == -math.inf:
        zero = (0.0,) * len(groups)
        return CellShares(cell, estimator, zero, 0.0, None, "no probability on any target word")
    sums = [
        math.fsum(value for value, e in zip(relative, expressions, strict=True) if e["group"] == group)
        for group in groups
    ]
    total = math.fsum(sums)
    masses = tuple(value * math.exp(peak) for value in sums)
    coverage = math.fsum(masses)
    if coverage > 1 + COVERAGE_TOLERANCE:
        raise RunError(
            f"Row {row['key']}: the target words have a total probability of {coverage:.7f}, above 1."
        )
    # Rounding may put a whole distribution a hair above one.
    return CellShares(cell, estimator, masses, min(1.0, coverage), tuple(value / total for value in sums))


def own_masses(expressions: Sequence[Mapping[str, Any]], word_boundary: str) -> tuple[float, list[float]]:
    """Find the largest log-probability, and each expression's own mass relative to its exponential.

    Relative, so that shares survive where the masses underflow. A text counts under its longest expression:
    the mass of longer ones is taken off. Without any probability the first is -inf and all masses are 0.
    """
    logs = [e["log_prob"] for e in expressions]
    peak = max((value for value in logs if value is not None), default=-math.inf)
    if peak == -math.inf:
        return peak, [0.0] * len(logs)
    relative = [math.exp(value - peak) if value is not None else 0.0 for value in logs]
    own = list(relative)
    for i, extensions in enumerate(extensions_of(expressions, word_boundary)):
        for j in extensions:
            own[i] -= relative[j]
    return peak, [max(0.0, value) for value in own]


def _bounded(
    cell: Cell, row: Mapping[str, Any], groups: tuple[str, ...], contrast: tuple[str, str] | None
) -> CellShares:
    """Bound what `top-k` listed: points are of the listed mass, ends of all that it can be."""
    sought = [
        Sought(e["group"], e["text"], _as_tuple(e.get("tokens")), _as_tuple(e.get("token_ids")))
        for e in row["expressions"]
    ]
    hides = row.get("may_hide", False)
    bounds = bound_masses(row["listed"], row["k"], sought, groups, may_hide=hides)
    total = math.fsum(bounds.point)
    return CellShares(
        cell,
        str(row["estimator"]),
        masses=bounds.point,
        coverage=min(1.0, total),
        shares=tuple(mass / total for mass in bounds.point) if total else None,
        reason=(MAY_HIDE if hides else None) if total else "no target word listed",
        share_ends=tuple(bounds.share_ends(group) for group in groups),
        coverage_ends=bounds.coverage_ends(),
        difference_ends=bounds.difference_ends(*contrast) if contrast else None,
    )


def _as_tuple(stored: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if stored is None else tuple(stored)


def _counted(cell: Cell, row: Mapping[str, Any], groups: tuple[str, ...]) -> CellShares:
    """Count what `sampling` drew: shares are of the draws that name an expression."""
    group_of = {e["text"]: e["group"] for e in row["expressions"]}
    draws_of = dict.fromkeys(groups, 0)
    for text, count in row["counts"].items():
        draws_of[group_of[text]] += count
    n, matched = row["draws"], sum(draws_of.values())
    ends = [wilson(draws_of[group], matched) for group in groups]
    return CellShares(
        cell,
        str(row["estimator"]),
        masses=tuple(count / n for count in draws_of.values()),
        coverage=matched / n,
        shares=tuple(count / matched for count in draws_of.values()) if matched else None,
        reason=None if matched else "no sample matched",
        share_ends=tuple(pair for pair in ends if pair is not None) or None,
        coverage_ends=wilson(matched, n),
        matched=matched,
    )


def extensions_of(expressions: Sequence[Mapping[str, Any]], word_boundary: str) -> list[list[int]]:
    """Find for each expression the places of longer ones whose mass is taken off it; none without tokens."""
    tokens = [e.get("token_ids") for e in expressions]
    if any(ids is None for ids in tokens):  # a server that tells no ids tells the tokens' texts, or nothing
        tokens = [e.get("tokens") for e in expressions]
    number: dict[object, int] = {}
    ids = tuple(tuple(number.setdefault(token, len(number)) for token in path or ()) for path in tokens)
    if not all(ids):
        return [[] for _ in expressions]
    return _extensions_of(ids, tuple(str(e["text"]) for e in expressions), word_boundary)


@lru_cache(maxsize=256)
def _extensions_of(ids: tuple[TokenIds, ...], texts: tuple[str, ...], word_boundary: str) -> list[list[int]]:
    if word_boundary == "token":
        return shortest_extensions(ids)
    # With `word` a form ends before a letter, so its mass holds only extensions past that end; and one that
    # goes on inside the word of a shorter one ("Non-binary" and "Non-b" of "Non") is not in the shorter.
    n = range(len(ids))
    begun = [[j for j in n if len(ids[j]) > len(ids[i]) and ids[j][: len(ids[i])] == ids[i]] for i in n]
    inside = [[j for j in begun[i] if not texts[j][len(texts[i]) : len(texts[i]) + 1].isalnum()] for i in n]
    return [[j for j in longer if not any(j in inside[k] for k in longer)] for longer in inside]
