"""From stored log-probabilities to mass, coverage and share of each group (METHODS §1.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from biaskit.errors import RunError
from biaskit.models.token_trie import TokenIds, shortest_extensions
from biaskit.records import Cell, CellShares

COVERAGE_TOLERANCE = 1e-6


def cell_shares(
    cell: Cell, row: Mapping[str, Any] | None, groups: tuple[str, ...], *, word_boundary: str = "token"
) -> CellShares:
    """Mass, coverage and share of one cell; without a row, or without any mass, `None` and the reason."""
    if row is None:
        return CellShares(cell, None, None, None, None, "no answer stored")
    expressions = row["expressions"]
    logs = [e["log_prob"] for e in expressions]
    peak = max((value for value in logs if value is not None), default=-math.inf)
    estimator = str(row["estimator"])
    if peak == -math.inf:
        zero = (0.0,) * len(groups)
        return CellShares(cell, estimator, zero, 0.0, None, "no probability on any listed expression")
    # Relative to the most probable expression, so that shares survive where the masses underflow.
    relative = [math.exp(value - peak) if value is not None else 0.0 for value in logs]
    own = list(relative)
    for i, extensions in enumerate(_extensions(expressions, word_boundary)):
        for j in extensions:
            own[i] -= relative[j]
    sums = [
        math.fsum(max(0.0, value) for value, e in zip(own, expressions, strict=True) if e["group"] == group)
        for group in groups
    ]
    total = math.fsum(sums)
    masses = tuple(value * math.exp(peak) for value in sums)
    coverage = math.fsum(masses)
    if coverage > 1 + COVERAGE_TOLERANCE:
        raise RunError(
            f"Row {row['key']}: the listed expressions have a probability of {coverage:.7f}"
            " together, more than 1."
        )
    # Rounding may put a whole distribution a hair above one.
    return CellShares(cell, estimator, masses, min(1.0, coverage), tuple(value / total for value in sums))


def _extensions(expressions: Sequence[Mapping[str, Any]], word_boundary: str) -> list[list[int]]:
    ids = [e.get("token_ids") for e in expressions]
    if any(i is None for i in ids):
        return [[] for _ in expressions]
    texts = tuple(str(e["text"]) for e in expressions)
    return _extensions_of(tuple(tuple(i) for i in ids if i is not None), texts, word_boundary)


@lru_cache(maxsize=256)
def _extensions_of(ids: tuple[TokenIds, ...], texts: tuple[str, ...], word_boundary: str) -> list[list[int]]:
    found = shortest_extensions(ids)
    if word_boundary == "token":
        return found
    # With `word`, an expression already ends before a letter; only extensions past its word end are in it.
    return [
        [j for j in extensions if not texts[j][len(texts[i]) : len(texts[i]) + 1].isalnum()]
        for i, extensions in enumerate(found)
    ]


def as_json(log_prob: float) -> float | None:
    """A log-probability as a row holds it: JSON has no -inf, so impossible is null."""
    return log_prob if math.isfinite(log_prob) else None
