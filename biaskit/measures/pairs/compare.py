"""Tests between models on the pairs of sentences that both were asked (methods/comparisons#model-pairs)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from biaskit.common.wording import joined
from biaskit.compare.changes import ZONE, Change, shown_prompt
from biaskit.compare.comparison import MODELS, Comparison
from biaskit.compare.pairs import PairTests, SidePair, members_of, model_pairs, nothing_common
from biaskit.records import ALL, WOMEN_AND_MEN
from biaskit.stats.arrays import FloatArray
from biaskit.stats.changes import TIE_ZONE
from biaskit.stats.clustered import gap_of_pairs, mean_of_pairs
from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.contrasts import adjust, one_row
from biaskit.stats.crossed import crossed_test
from biaskit.stats.proportions import at_an_end
from biaskit.tables.query import Row, distinct

Scores = Mapping[tuple[Any, ...], Row]
"""One model's rows of pair_scores.csv that have a share, by language, prefix and both sentences."""


def compare(comparison: Comparison) -> None:
    """Add tests of shares and gaps between models that were asked pairs."""
    runs = comparison.runs("pairs")
    scores: dict[str, Scores] = {}
    for run in runs:
        scores |= _scores_of(run.tables.get("pair_scores", ()), run.manifest.resolved["pairs"])
    models = [model for model in comparison.models(runs) if model.label in scores]

    def test(pair: SidePair) -> PairTests:
        rows = _pair_rows(pair, scores, comparison.margins)
        return rows, [] if rows else [nothing_common(pair)]

    comparison.test_models(models, test, "pairs")
    groups_of = dict.fromkeys(scores, (WOMEN_AND_MEN, WOMEN_AND_MEN))

    def changes(before: str, after: str) -> tuple[list[Row], list[Row]]:
        return change_rows_of_pairs(before, after, scores, comparison.margins)

    comparison.add_changes(models, groups_of, changes)


def between_models_on_pairs(
    rows: Sequence[Row], pairs: Sequence[Mapping[str, Any]], margins: Mapping[str, float]
) -> list[Contrast]:
    """Test every pair of models of one run, later named − earlier; `rows`: of pair_scores.csv."""
    scores = _scores_of(rows, pairs)
    made: list[Contrast] = []
    for pair in model_pairs(list(scores)):
        made += _pair_rows(pair, scores, margins)
    return adjust(made)


def _scores_of(rows: Sequence[Row], pairs: Sequence[Mapping[str, Any]]) -> dict[str, Scores]:
    """Read the models of one run; `pairs`: as its manifest holds them."""
    asked: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for pair in pairs:
        asked[pair["language"], pair["item"]] = itemgetter("language", "prefix", "female", "male")(pair)
    scores: dict[str, dict[tuple[Any, ...], Row]] = {}
    for row in rows:
        of_model = scores.setdefault(str(row["model"]), {})
        if row["female_share"] is not None:
            of_model[asked[row["language"] or "", row["item"]]] = row
    return dict(scores)


def _pair_rows(pair: SidePair, scores: Mapping[str, Scores], margins: Mapping[str, float]) -> list[Contrast]:
    """Test the later side minus the earlier in the share of the feminine sentence, and in its gap.

    On the pairs with the same sentences that all models have answered; a side is the mean over its models.
    Where all shares are almost 0 or 1 and differ, the numbers are of log-ratios.
    """
    later, earlier = pair
    members = members_of(pair, scores)
    common, values = _table(members, "female_share")
    quantities, most = ("share", "group_gap"), 1.0
    finite, ratios = _table(members, "log_ratio")
    if finite and at_an_end(*values) and (ratios != ratios[0]).any():  # a model against itself is the same
        common, values, quantities, most = finite, ratios, ("log_ratio", "log_ratio_gap"), math.inf
    if not common:
        return []
    change = values[: len(later.models)].mean(axis=0) - values[len(later.models) :].mean(axis=0)
    rows = [members[0][key] for key in common]
    n_left_out = len(set().union(*members)) - len(common)
    notes = [f"{n_left_out} pairs left out, not in every model"] if n_left_out else []
    note = joined(notes)
    scope = Scope(
        "pairs", MODELS, later.name, earlier.name, quantity=quantities[0], gender="female", unit="pair"
    )
    test = crossed_test(*mean_of_pairs(change, rows), limit=most)
    made = [one_row("crossed", test, scope=scope, n=len(common), margins=margins, note=note)]
    if (gap := gap_of_pairs(change, rows, limit=2 * most)) is not None:
        scope = replace(scope, quantity=quantities[1])
        made.append(one_row("crossed", gap.test, scope=scope, n=gap.n_pairs, margins=margins, note=note))
    return made


def change_rows_of_pairs(
    before: str, after: str, scores: Mapping[str, Scores], margins: Mapping[str, float]
) -> tuple[list[Row], list[Row]]:
    """Count the pairs of which another sentence is preferred, and list them."""
    common, shares = _table([scores[before], scores[after]], "female_share")
    n_unmatched = len(scores[before]) - len(common)
    key = {"before": before, "after": after, "bias_type": "pairs", "debiasing_id": 0, "prompt_format": ""}
    row = {**key, "context": "", "job_group": ALL, "n_prompts": 0, "n_unmatched": n_unmatched}
    if not common:
        return [{**row, "reason": "no pair that both answered"}], []
    old, new = (np.stack([share, 1 - share]) for share in shares)
    change = Change(old, new, WOMEN_AND_MEN, WOMEN_AND_MEN, margins.get(ZONE, TIE_ZONE))
    changed: list[Row] = []
    for (i,), numbers in change.listed():
        pair, (_, prefix, *sentences) = scores[before][common[i]], common[i]
        where = {"job": pair["item"], "job_group": pair["stereotype"], "context": pair["language"]}
        prompt = shown_prompt(prefix or "", " / ".join(sentences))
        changed.append({**key, **where, "prompt": prompt, **numbers})
    estimators = distinct([scores[model][common[0]] for model in (before, after)], "estimator")
    return [{**row, **change.counts(), "estimator": " against ".join(estimators)}], changed


def _table(members: Sequence[Scores], name: str) -> tuple[list[tuple[Any, ...]], FloatArray]:
    """List the pairs of which every model has a number, with the numbers `[models, pairs]`."""
    keys = list(members[0])
    for member in members:
        keys = [key for key in keys if key in member and member[key][name] is not None]
    table = []
    for member in members:
        table.append([member[key][name] for key in keys])
    return keys, np.array(table)
