"""Tests between models on the decisions that both made (methods/comparisons#model-pairs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from biaskit.compare.comparison import MODELS, Comparison
from biaskit.compare.pairs import PairTests, SidePair, members_of, model_pairs, nothing_common
from biaskit.measures.decisions.gaps import gaps_of
from biaskit.measures.decisions.study import DecisionsStudy
from biaskit.records import ALL
from biaskit.stats.contrast import Contrast
from biaskit.tables.query import Row, defined, distinct, grouped

ASKED = ("question", "wording", "job", "case", "person", "sex", "race", "position")
"""Columns of decisions.csv that say what was decided."""
Decided = Mapping[tuple[Any, ...], float]


def compare(comparison: Comparison) -> None:
    """Add tests of the change of each gap between models that decided on the same."""
    runs = comparison.runs("decisions")
    decided: dict[str, Decided] = {}
    for run in runs:
        decided |= _decided(run.tables.get("decisions", ()))
    reference = str(runs[0].analysis["choices"]["reference_race"]) if runs else ""

    def test(pair: SidePair) -> PairTests:
        rows = _changes(pair, decided, reference, comparison.margins)
        return rows, [] if rows else [nothing_common(pair)]

    models = [model for model in comparison.models(runs) if model.label in decided]
    comparison.test_models(models, test, "decisions")


def between_models(rows: Sequence[Row], models: Sequence[str], study: DecisionsStudy) -> list[Contrast]:
    """Test every pair of models of one run, later named − earlier; `rows`: of decisions.csv."""
    decided, made = _decided(rows), list[Contrast]()
    for pair in model_pairs([model for model in models if model in decided]):
        made += _changes(pair, decided, study.reference_race, study.margin)
    return made


def reference_in(rows: Sequence[Row], stated: str) -> str:
    """Find the reference race as rows write it; empty where they lack it."""
    return next((race for race in distinct(rows, "race") if race.casefold() == stated.casefold()), "")


def _decided(rows: Sequence[Row]) -> dict[str, Decided]:
    """Map each model to its probabilities by what was decided."""
    found: dict[str, Decided] = {}
    for (model,), own in grouped(rows, "model").items():
        known = defined(own, "p_yes", "selected")  # scores have no selected
        found[model] = {tuple(map(row.get, ASKED)): row["p_yes"] for row in known}
    return found


def _changes(
    pair: SidePair, decided: Mapping[str, Decided], reference: str, margins: Mapping[str, float]
) -> list[Contrast]:
    """Test the later side's gaps minus the earlier's, prompt by prompt; a side is the mean of its models."""
    import pandas as pd

    members, later = members_of(pair, decided), len(pair[0].models)
    rows = []
    for key in members[0]:
        values = [member[key] for member in members if key in member]
        if len(values) == len(members):
            change = sum(values[:later]) / later - sum(values[later:]) / (len(values) - later)
            rows.append({**dict(zip(ASKED, key, strict=True)), "p_yes": change})
    made = []
    for (question,), own in grouped(rows, "question").items():
        base = reference_in(own, reference)
        for gap in gaps_of(pd.DataFrame(own), reference_race=base, scores=True):
            if gap.row["job"] == ALL and gap.row["contrast"] in ("sex", "race"):
                test = gap.contrast(pair[0].name, margins.get("gap"))
                made.append(replace(test, contrast=MODELS, model_b=pair[1].name, context=question))
    return made
