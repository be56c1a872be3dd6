"""Tests between models on the pairs of sentences that both were asked (methods/comparisons#model-pairs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from biaskit.common.wording import joined
from biaskit.compare.pairs import SidePair
from biaskit.stats.arms import OF_PAIRS, Arm
from biaskit.stats.clustered import gap_of_pairs, spread_of_pairs
from biaskit.stats.contrasts import Row, one_row, scope_of
from biaskit.stats.crossed import crossed_test
from biaskit.tables.query import Row as StoredRow
from biaskit.tables.query import distinct
from biaskit.tables.reasons import ESTIMATORS_DIFFER

Scores = Mapping[str, Mapping[tuple[Any, ...], StoredRow]]
"""Model → its rows of pair_scores.csv that have a share, by language, prefix and both sentences."""


def scores_of(rows: Sequence[StoredRow], pairs: Sequence[Mapping[str, Any]]) -> Scores:
    """Read the models of one run; `pairs`: as its manifest holds them."""
    asked = ("language", "prefix", "female", "male")
    pair_of = {(p["language"], p["item"]): tuple(p[name] for name in asked) for p in pairs}
    scores: dict[str, dict[tuple[Any, ...], StoredRow]] = {}
    for row in rows:
        of_model = scores.setdefault(str(row["model"]), {})
        if row["female_share"] is not None:
            of_model[pair_of[row["language"] or "", row["item"]]] = row
    return scores


def pair_rows_of_sentences(pair: SidePair, scores: Scores, margins: Mapping[str, float]) -> list[Row]:
    """Test the later side minus the earlier in the share of the feminine sentence, and in its gap.

    On the pairs with the same sentences that all models have answered; a side is the mean over its models.
    """
    later, earlier = ([scores.get(model, {}) for model in side.models] for side in pair)
    members = [*later, *earlier]
    common = [key for key in members[0] if all(key in member for member in members)]
    if not common:
        return []
    rows = [members[0][key] for key in common]
    a, b = (
        np.array([np.mean([member[key]["female_share"] for member in side]) for key in common])
        for side in (later, earlier)
    )
    n_left_out = len({key for member in members for key in member}) - len(common)
    estimators = distinct([member[common[0]] for member in members], "estimator")
    note = joined(
        [
            f"{n_left_out} pairs left out, not in every model" if n_left_out else None,
            f"{ESTIMATORS_DIFFER}: {' against '.join(estimators)}" if len(estimators) > 1 else None,
        ]
    )
    tests = {"share": (crossed_test(float((a - b).mean()), spread_of_pairs(a - b, rows)), len(common))}
    if (gap := gap_of_pairs(a - b, rows, limit=2.0)) is not None:
        tests["group_gap"] = gap.test, gap.n_pairs
    scope = replace(scope_of(Arm("", *OF_PAIRS), "models"), model_a=pair[0].name, model_b=pair[1].name)
    scope = replace(scope, gender="female", unit="pair")
    return [
        one_row("crossed", test, scope=replace(scope, quantity=name), n=n, margins=margins, note=note)
        for name, (test, n) in tests.items()
    ]
