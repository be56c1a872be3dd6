"""Tests between models that wrote about the same jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biaskit.compare.comparison import MODELS, Comparison
from biaskit.compare.pairs import PairTests, SidePair, model_pairs
from biaskit.compare.units import Values, unit_rows
from biaskit.stats.contrast import Contrast, Scope
from biaskit.tables.query import Row


def compare(comparison: Comparison) -> None:
    """Add tests of the share of texts between models of several runs."""
    runs = comparison.runs("mentions")
    values = _values([row for run in runs for row in run.tables["mentions"]])

    def test(pair: SidePair) -> PairTests:
        return _rows(pair, values, comparison.margins), []

    comparison.test_models(comparison.models(runs), test, "mentions")


def between_models(
    rows: Sequence[Row], models: Sequence[str], margins: Mapping[str, float]
) -> list[Contrast]:
    """Test every pair of models of one run, later named − earlier."""
    values = _values(rows)
    return [row for pair in model_pairs(models) for row in _rows(pair, values, margins)]


def _values(rows: Sequence[Row]) -> dict[str, dict[str, float | None]]:
    values: dict[str, dict[str, float | None]] = {}
    for row in rows:
        values.setdefault(row["model"], {})[row["job"]] = row.get("share")
    return values


def _rows(pair: SidePair, values: Mapping[str, Values], margins: Mapping[str, float]) -> list[Contrast]:
    scope = Scope("mentions", MODELS, pair[0].name, pair[1].name, quantity="mentions")
    return unit_rows(pair, values, scope, margins, seed=1)
