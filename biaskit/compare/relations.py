"""How the gaps go together over occupations, and whether two models' gaps differ.

See docs/methods.md#relations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from biaskit.compare.gaps import Measure
from biaskit.compare.pairs import SidePair
from biaskit.compare.personas import unit_rows
from biaskit.stats.contrasts import MIN_LABOUR_ITEMS, Row, Scope
from biaskit.stats.correlation import rank_correlation, slope_test
from biaskit.stats.crossed import joined
from biaskit.stats.resampling import generator
from biaskit.stats.welch import Statistic
from biaskit.tables.io import columns
from biaskit.tables.quantities import RELATIONS, relation

ENGINE = "compare"
KINDS = ("slope", "spearman")


def relation_rows(measured: Sequence[Measure], margins: Mapping[str, float], seed: int) -> Iterator[Row]:
    """Rows slope and spearman of one model's gaps on each other and on the labour gap, units occupations.

    A relation that holds probe_gap is made for each bias type and prompt form apart. Fewer than ten
    occupations with both numbers: the row is there, empty, with their number as reason.
    """
    for of_y, of_x in RELATIONS:
        for y in measured:
            for x in measured:
                if (y.gap, x.gap) == (of_y, of_x):
                    for kind in KINDS:
                        yield _relation(y, x, kind, margins, seed)


def _relation(
    y: Measure,
    x: Measure,
    kind: str,
    margins: Mapping[str, float],
    seed: int,
) -> Row:
    quantity = relation(y.gap, x.gap)
    contrast = "labour" if x.gap == "labour_gap" else "gaps"
    bias_type, form = y.bias_type or x.bias_type, y.prompt_form or x.prompt_form
    pairs = [
        (a, b)
        for occupation in sorted(y.values)
        if (b := y.values[occupation]) is not None and (a := x.values.get(occupation)) is not None
    ]
    if len(pairs) < MIN_LABOUR_ITEMS:
        few = f"{len(pairs)} occupations with both gaps, at least {MIN_LABOUR_ITEMS} are needed"
        found = Statistic(reason=few)
    else:
        of_x, of_y = np.array(pairs, dtype=np.float64).T
        rng = generator(seed, "tests", [ENGINE, contrast, quantity, y.model, bias_type, form, kind])
        found = slope_test(of_x, of_y) if kind == "slope" else rank_correlation(of_x, of_y, rng=rng)
    n_out = len(y.values) - len(pairs)
    note = f"{n_out} occupations without both gaps left out" if n_out else None
    row: Row = dict.fromkeys(column.name for column in columns("tests"))
    row |= {
        "engine": ENGINE,
        "family": f"{ENGINE}/{quantity}/{kind}/{contrast}",
        "quantity": quantity,
        "model_a": y.model,
        "model_b": y.model,
        "bias_type": bias_type,
        "prompt_form": form,
        "setting": "plain" if bias_type else "",
        "kind": kind,
        "unit": "occupation",
        "instruction_a": "0" if bias_type else "",
        "instruction_b": "0" if bias_type else "",
        "estimate": found.estimate,
        "statistic": found.statistic,
        "dof": found.dof,
        "p_value": found.p_value,
        "n_a": len(pairs),
        "reason": joined([note, found.reason]),
    }
    for name, ends in (("ci", found.ci95), ("ci90", found.ci90)):
        row |= {f"{name}_low": ends[0] if ends else None, f"{name}_high": ends[1] if ends else None}
    return judged(row, margins)


def gap_tests(
    pair: SidePair,
    measured: Mapping[str, Sequence[Measure]],
    comparable: Callable[[SidePair, Measure], bool],
    margins: Mapping[str, float],
    seed: int,
) -> Iterator[Row]:
    """Rows welch and paired of each gap between two sides over common occupations, later − earlier.

    `comparable(pair, measure)` says whether all were asked the same in one prompt form, and for the spread
    have one vector model; the labour gap is the same for every model and is not tested.
    """
    members = [model for side in pair for model in side.models]
    if not all(model in measured for model in members):
        return
    for first in measured[members[0]]:
        own = {
            one.model: one.values
            for model in members
            for one in measured[model]
            if (one.gap, one.bias_type, one.prompt_form) == (first.gap, first.bias_type, first.prompt_form)
        }
        if first.gap == "labour_gap" or len(own) < len(members) or not comparable(pair, first):
            continue
        scope = Scope(
            engine=ENGINE,
            contrast="models",
            model_a=pair[0].name,
            model_b=pair[1].name,
            bias_type=first.bias_type,
            setting="plain" if first.bias_type else "",
            prompt_form=first.prompt_form,
            instruction_a="0" if first.bias_type else "",
            instruction_b="0" if first.bias_type else "",
            quantity=first.gap,
            unit="occupation",
        )
        for row in unit_rows(pair, own, scope, margins, seed):
            yield judged(row, margins) if row["kind"] == "paired" else row


def judged(row: Row, margins: Mapping[str, float]) -> Row:
    """The row with its verdict, where a margin is set for its quantity."""
    margin = margins.get(str(row["quantity"]))
    low, high = row["ci90_low"], row["ci90_high"]
    equivalent = None
    if margin is not None and isinstance(low, float) and isinstance(high, float):
        equivalent = -margin <= low and high <= margin
    return {**row, "margin": margin, "equivalent": equivalent}
