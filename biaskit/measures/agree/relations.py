"""Tests of how gaps go together, and of how two models' gaps differ (methods/comparisons#relations)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from operator import attrgetter

import numpy as np

from biaskit.compare.comparison import MODELS
from biaskit.compare.pairs import SidePair, members_of
from biaskit.compare.same_prompts import all_equal, one_vector_model
from biaskit.compare.units import unit_rows
from biaskit.measures.agree.gaps import Measure
from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.contrasts import MIN_WORKFORCE_ITEMS, one_row
from biaskit.stats.correlation import rank_correlation, slope_test
from biaskit.stats.resampling import generator
from biaskit.stats.welch import Statistic
from biaskit.tables.quantities import RELATIONS, relation

MEASUREMENT = "compare"


def relation_rows(measured: Sequence[Measure], margins: Mapping[str, float], seed: int) -> Iterator[Contrast]:
    """Test one model's gaps against each other and the workforce gap: rows slope and spearman.

    A relation with probe_gap has rows for each bias type and prompt format. With fewer than ten occupations
    that have both gaps the row is empty, and its reason says how many there are.
    """
    by_gap: dict[str, list[Measure]] = {}
    for measure in measured:
        by_gap.setdefault(measure.gap, []).append(measure)
    for y_gap, x_gap in RELATIONS:
        for y, x in product(by_gap.get(y_gap, ()), by_gap.get(x_gap, ())):
            yield from _relation(y, x, margins, seed)


def _relation(y: Measure, x: Measure, margins: Mapping[str, float], seed: int) -> Iterator[Contrast]:
    contrast = "workforce" if x.gap == "workforce_gap" else "gaps"
    asked = y.bias_type or x.bias_type, y.prompt_format or x.prompt_format
    scope = _scope(contrast, y.model, y.model, relation(y.gap, x.gap), *asked)
    pairs = []
    for occupation, y_value in sorted(y.values.items()):
        x_value = x.values.get(occupation)
        if y_value is not None and x_value is not None:
            pairs.append((x_value, y_value))
    n_out = len(y.values) - len(pairs)
    note = f"{n_out} occupations without both gaps left out" if n_out else None
    if len(pairs) < MIN_WORKFORCE_ITEMS:
        few = f"{len(pairs)} occupations with both gaps, at least {MIN_WORKFORCE_ITEMS} are needed"
        slope = rank = Statistic(reason=few)
    else:
        x_values, y_values = np.array(pairs, dtype=np.float64).T
        place = [MEASUREMENT, contrast, scope.quantity, y.model, *asked, "spearman"]
        slope = slope_test(x_values, y_values)
        rank = rank_correlation(x_values, y_values, rng=generator(seed, "tests", place))
    for kind, result in (("slope", slope), ("spearman", rank)):
        yield one_row(kind, result, scope=scope, n=len(pairs), margins=margins, note=note)


def _scope(contrast: str, a: str, b: str, quantity: str, bias_type: str, prompt_format: str) -> Scope:
    """Scope of a row; gaps of the prober are without a debiasing prompt, in the plain context."""
    debiasing = "0" if bias_type else ""
    where = bias_type, "plain" if bias_type else "", prompt_format
    return Scope(MEASUREMENT, contrast, a, b, *where, debiasing, debiasing, quantity, unit="occupation")


def gap_tests(
    pair: SidePair, measured: Mapping[str, Sequence[Measure]], margins: Mapping[str, float], seed: int
) -> Iterator[Contrast]:
    """Test each gap between two sides over common occupations: rows welch and paired, later − earlier.

    All must have been asked the same in one prompt format, for the spread with one vector model. The
    workforce gap is the same for every model and is not tested.
    """
    later, earlier = pair
    first, *others = members_of(pair, measured)
    for measure in first:
        members = [measure]
        for of_model in others:
            members += [other for other in of_model if other.place == measure.place]
        labels = set(map(attrgetter("label"), members))
        if measure.gap == "workforce_gap" or not len(labels) == len(members) == 1 + len(others):
            continue
        alike = all_equal(map(attrgetter("asked"), members))
        if alike and one_vector_model(map(attrgetter("vectors"), members)):
            values = {member.model: member.values for member in members}
            scope = _scope(MODELS, later.name, earlier.name, *measure.place)
            yield from unit_rows(pair, values, scope, margins, seed)
