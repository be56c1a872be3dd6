"""Tests of how gaps go together, and of how two models' gaps differ (methods/comparisons#relations)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from biaskit.compare.gaps import Measure
from biaskit.compare.pairs import SidePair
from biaskit.compare.personas import unit_rows
from biaskit.stats.contrasts import MIN_LABOUR_ITEMS, Row, Scope, one_row
from biaskit.stats.correlation import rank_correlation, slope_test
from biaskit.stats.resampling import generator
from biaskit.stats.welch import Statistic
from biaskit.tables.quantities import RELATIONS, relation

ENGINE = "compare"


def relation_rows(measured: Sequence[Measure], margins: Mapping[str, float], seed: int) -> Iterator[Row]:
    """Test one model's gaps against each other and the labour gap over occupations: rows slope and spearman.

    A relation with probe_gap has rows for each bias type and prompt form. With fewer than ten occupations
    that have both gaps the row is empty, and its reason says how many there are.
    """
    related = [(y, x) for pair in RELATIONS for y in measured for x in measured if (y.gap, x.gap) == pair]
    for y, x in related:
        contrast = "labour" if x.gap == "labour_gap" else "gaps"
        asked = y.bias_type or x.bias_type, y.prompt_form or x.prompt_form
        scope = _scope(contrast, y.model, y.model, relation(y.gap, x.gap), *asked)
        pairs = [
            (x_value, y_value)
            for occupation, y_value in sorted(y.values.items())
            if y_value is not None and (x_value := x.values.get(occupation)) is not None
        ]
        n_out = len(y.values) - len(pairs)
        note = f"{n_out} occupations without both gaps left out" if n_out else None
        if len(pairs) < MIN_LABOUR_ITEMS:
            few = f"{len(pairs)} occupations with both gaps, at least {MIN_LABOUR_ITEMS} are needed"
            results = [Statistic(reason=few)] * 2
        else:
            x_values, y_values = np.array(pairs, dtype=np.float64).T
            place = [ENGINE, scope.contrast, scope.quantity, y.model, scope.bias_type, scope.prompt_form]
            rng = generator(seed, "tests", [*place, "spearman"])
            results = [slope_test(x_values, y_values), rank_correlation(x_values, y_values, rng=rng)]
        for kind, result in zip(("slope", "spearman"), results, strict=True):
            yield one_row(kind, result, scope=scope, n=len(pairs), margins=margins, note=note)


def _scope(contrast: str, a: str, b: str, quantity: str, bias_type: str, form: str) -> Scope:
    """Scope of a row; gaps of the prober are without an instruction, in the plain setting."""
    instruction = "0" if bias_type else ""
    where = bias_type, "plain" if bias_type else "", form
    return Scope(ENGINE, contrast, a, b, *where, instruction, instruction, quantity, unit="occupation")


def gap_tests(
    pair: SidePair,
    measured: Mapping[str, Sequence[Measure]],
    comparable: Callable[[SidePair, Measure], bool],
    margins: Mapping[str, float],
    seed: int,
) -> Iterator[Row]:
    """Test each gap between two sides over common occupations: rows welch and paired, later − earlier.

    `comparable(pair, measure)`: whether all were asked the same in one prompt form and, for the spread, have
    one vector model. The labour gap is the same for every model and is not tested.
    """
    members = [model for side in pair for model in side.models]
    if not all(model in measured for model in members):
        return
    for first in measured[members[0]]:
        key = (first.gap, first.bias_type, first.prompt_form)
        values = {
            measure.model: measure.values
            for model in members
            for measure in measured[model]
            if (measure.gap, measure.bias_type, measure.prompt_form) == key
        }
        if first.gap == "labour_gap" or len(values) < len(members) or not comparable(pair, first):
            continue
        sides = pair[0].name, pair[1].name
        scope = _scope("models", *sides, *key)
        yield from unit_rows(pair, values, scope, margins, seed)
