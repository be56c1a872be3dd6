"""From a stored row to mass, coverage and share of each group (methods/probabilities#mass-coverage-share)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

from biaskit.errors import RunError
from biaskit.models.token_trie import TokenIds, shortest_extensions
from biaskit.records import CellShares
from biaskit.runs.shares.top_k import Sought, bound_masses
from biaskit.stats.proportions import wilson

COVERAGE_TOLERANCE = 1e-6
MAY_HIDE = "a listed token may hide another with the same text"


def cell_shares(
    cell: Any,
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


def _measured(cell: Any, row: Mapping[str, Any], groups: tuple[str, ...], word_boundary: str) -> CellShares:
    """Sum log-probabilities that are points: `exact`, `selected-ids`, `echo`."""
    target_words, estimator = row["target_words"], str(row["estimator"])
    peak, relative = own_masses(target_words, word_boundary)
    relative_of: defaultdict[str, list[float]] = defaultdict(list)
    for e, value in zip(target_words, relative, strict=True):
        relative_of[e["group"]].append(value)
    sums = [math.fsum(relative_of[group]) for group in groups]
    total = math.fsum(sums)
    masses = tuple(value * math.exp(peak) for value in sums)
    coverage = math.fsum(masses)
    if not coverage:  # not even 1e-323: parts of nothing, in three groups 33.3 % each
        return CellShares(cell, estimator, masses, coverage, None, "no probability on any target word")
    if coverage > 1 + COVERAGE_TOLERANCE:
        raise RunError(
            f"Row {row['key']}: the target words have a total probability of {coverage:.7f}, above 1."
        )
    # Rounding may put a whole distribution a hair above one.
    return CellShares(cell, estimator, masses, min(1.0, coverage), _parts(sums, total))


def _parts(numbers: Iterable[float], whole: float) -> tuple[float, ...]:
    return tuple(number / whole for number in numbers)


def own_masses(target_words: Sequence[Mapping[str, Any]], word_boundary: str) -> tuple[float, list[float]]:
    """Find the largest log-probability, and each target word's own mass relative to its exponential.

    Relative, so that shares keep their digits where masses are near 1e-308. A text counts under its longest
    target word: the mass of longer ones is taken off. Without any probability the first is -inf, all are 0.
    """
    logs = [-math.inf if e["log_prob"] is None else e["log_prob"] for e in target_words]
    peak = max(logs, default=-math.inf)
    if peak == -math.inf:
        return peak, [0.0] * len(logs)
    relative = [math.exp(value - peak) for value in logs]
    own = list(relative)
    for i, extensions in enumerate(extensions_of(target_words, word_boundary)):
        for j in extensions:
            own[i] -= relative[j]
        own[i] = max(0.0, own[i])
    return peak, own


def _bounded(
    cell: Any, row: Mapping[str, Any], groups: tuple[str, ...], contrast: tuple[str, str] | None
) -> CellShares:
    """Bound what `top-k` listed: points are of the listed mass, ends of all that it can be."""
    sought = []
    for e in row["target_words"]:
        tokens, ids = e.get("tokens"), e.get("token_ids")
        tokens = None if tokens is None else tuple(tokens)
        sought.append(Sought(e["group"], e["text"], tokens, None if ids is None else tuple(ids)))
    hides = row.get("may_hide", False)
    bounds = bound_masses(row["listed"], row["k"], sought, groups, may_hide=hides)
    total = math.fsum(bounds.point)
    nothing = "no target word listed"
    found = CellShares(cell, str(row["estimator"]), bounds.point, min(1.0, total), None, nothing)
    if total:
        found = replace(found, shares=_parts(bounds.point, total), reason=MAY_HIDE if hides else None)
    return replace(
        found,
        share_ends=tuple(map(bounds.share_ends, groups)),
        coverage_ends=bounds.coverage_ends(),
        difference_ends=bounds.difference_ends(*contrast) if contrast else None,
    )


def _counted(cell: Any, row: Mapping[str, Any], groups: tuple[str, ...]) -> CellShares:
    """Count what `sampling` drew: shares are of the samples that name a target word."""
    group_of = {e["text"]: e["group"] for e in row["target_words"]}
    samples_of = dict.fromkeys(groups, 0)
    for text, count in row["counts"].items():
        samples_of[group_of[text]] += count
    n, matched, estimator = row["samples"], sum(samples_of.values()), str(row["estimator"])
    coverage = row.get("coverage", matched / n)  # of several batches not matched/n (`sample_batches`)
    found = CellShares(cell, estimator, (0.0,) * len(groups), coverage, None, "no sample matched")
    found = replace(found, coverage_ends=wilson(coverage * n, n), matched=matched)
    if not matched:
        return found
    shares = _parts(samples_of.values(), matched)
    masses = tuple(share * coverage for share in shares)
    ends = tuple(wilson(count, matched) or (0.0, 1.0) for count in samples_of.values())
    return replace(found, masses=masses, shares=shares, reason=None, share_ends=ends)


def extensions_of(target_words: Sequence[Mapping[str, Any]], word_boundary: str) -> list[list[int]]:
    """Find for each target word the places of longer ones whose mass is taken off it; none without tokens."""
    for key in ("token_ids", "tokens"):  # a server that tells no ids tells the tokens' texts, or nothing
        tokens = [e.get(key) for e in target_words]
        if None not in tokens:
            break
    number: dict[object, int] = {}
    ids = []
    for path in tokens:
        ids.append(tuple(number.setdefault(token, len(number)) for token in path or ()))
    if not all(ids):
        return [[] for _ in target_words]
    return _extensions_of(tuple(ids), tuple(str(e["text"]) for e in target_words), word_boundary)


@lru_cache(maxsize=256)
def _extensions_of(ids: tuple[TokenIds, ...], texts: tuple[str, ...], word_boundary: str) -> list[list[int]]:
    if word_boundary == "token":
        return shortest_extensions(ids)
    # With `word` a form ends before a letter, so its mass holds only extensions past that end; and one that
    # goes on inside the word of a shorter one ("Non-binary" and "Non-b" of "Non") is not in the shorter.
    inside = []
    for short, text in zip(ids, texts, strict=True):
        places = []
        for j, longer in enumerate(ids):
            begun = len(longer) > len(short) and longer[: len(short)] == short
            if begun and not texts[j][len(text) : len(text) + 1].isalnum():
                places.append(j)
        inside.append(places)
    shortest = []
    for places in inside:
        between = set(chain.from_iterable(inside[k] for k in places))
        shortest.append([j for j in places if j not in between])
    return shortest
