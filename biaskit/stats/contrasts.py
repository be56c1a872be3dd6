"""From two arrays of shares to the rows of tests.csv that compare them (docs/methods.md#contrasts)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from biaskit.stats.correlation import slope, spearman
from biaskit.stats.crossed import (
    CONDITIONAL_ON_ONE_JOB,
    FloatArray,
    Spread,
    difference_interval,
    joined,
    spread_of_difference,
    spread_of_mean,
)
from biaskit.stats.multiplicity import holm
from biaskit.stats.resampling import Resampled, bootstrap_of_units, generator
from biaskit.stats.swaps import swap_test
from biaskit.stats.welch import TTest, paired, welch, wilcoxon

Row = dict[str, object]

MIN_LABOUR_ITEMS = 10

# The kinds of a row that can say "equivalent", by engine; the prober's `share` has its verdict from
# `crossed` alone, since it has no slope (docs/methods.md#equivalence).
_VERDICT_KINDS = {"probe": ("crossed", "slope", "spearman"), "personas": ("paired",)}


@dataclass(frozen=True, slots=True)
class Scope:
    """What a row of tests.csv speaks of; None where a column does not apply."""

    engine: str
    contrast: str  # groups, instructions, levels, settings, bias-types, genders, models, labour
    model_a: str
    model_b: str
    bias_type: str = ""
    setting: str = ""
    prompt_form: str = ""
    instruction_a: str = ""
    instruction_b: str = ""
    quantity: str = "share"
    gender: str | None = None
    group_a: str | None = None
    group_b: str | None = None
    unit: str = "job"


def between_groups(
    a: FloatArray, b: FloatArray, *, scope: Scope, margins: Mapping[str, float], note: str | None = None
) -> list[Row]:
    """Rows welch and crossed of the mean share of one group of jobs minus another's, a − b.

    a is `[I_a, J]`, b `[I_b, J]` on the same templates; `note` says what was left out. Without a template
    both rows are there, empty, with the note as reason.
    """
    n = (a.shape[0], b.shape[0])
    if not a.shape[1]:
        return _empty(scope, ("welch", "crossed"), n, margins, note)
    test = welch(a.mean(axis=1), b.mean(axis=1))
    spread = spread_of_difference(a, b)
    return [
        _of_test(scope, "welch", test, n, margins, note),
        _of_spread(scope, test.estimate, spread, n, margins, note, limit=1.0),
    ]


def within_jobs(
    a: FloatArray,
    b: FloatArray,
    *,
    scope: Scope,
    margins: Mapping[str, float],
    note: str | None = None,
    limit: float = 1.0,
) -> list[Row]:
    """Rows paired and crossed of the same jobs and templates in two arms, a − b.

    a and b are `[I, J]`, cell by cell the same; `limit` is the largest value the difference can have.
    """
    n = (a.shape[0], b.shape[0])
    if not a.size:
        return _empty(scope, ("paired", "crossed"), n, margins, note)
    test = paired(a.mean(axis=1), b.mean(axis=1))
    spread = spread_of_mean(a - b)
    return [
        _of_test(scope, "paired", test, n, margins, note),
        _of_spread(scope, test.estimate, spread, n, margins, note, limit=limit),
    ]


def estimate_only(a: FloatArray, b: FloatArray, *, scope: Scope, note: str | None = None) -> list[Row]:
    """One row of a − b that is shown and never tested; a `[I, J_a]` and b `[I, J_b]` share no template."""
    n = (a.shape[0], b.shape[0])
    if not a.size or not b.size:
        return _empty(scope, ("estimate",), n, {}, note)
    return [_row(scope, "estimate", n=n, margins={}, estimate=float(a.mean() - b.mean()), reasons=[note])]


def against_labour(
    shares: FloatArray,
    labour: FloatArray,
    *,
    scope: Scope,
    margins: Mapping[str, float],
    seed: int,
    note: str | None = None,
) -> list[Row]:
    """Rows slope and spearman of jobs' mean shares `[I, J]` on their labour shares `[I]`, NaN where unknown.

    Fewer than ten jobs with a labour share: both rows are there, empty, with their number as reason.
    """
    known = ~np.isnan(labour)
    x = labour[known]
    rows = []
    for kind, statistic in (("slope", slope), ("spearman", spearman)):
        if x.size < MIN_LABOUR_ITEMS:
            few = f"{x.size} items with a labour share, at least {MIN_LABOUR_ITEMS} are needed"
            found = Resampled(None, reason=few)
        elif not shares.size:
            found = Resampled(None)
        else:
            rng = generator(seed, "tests", [*_identity(scope), kind])
            found = bootstrap_of_units(statistic, x, shares[known].mean(axis=1), rng=rng)
        rows.append(
            _row(
                scope,
                kind,
                n=(int(x.size), None),
                margins=margins,
                estimate=found.estimate,
                ci=found.ci95,
                ci90=found.ci90,
                reasons=[note, found.reason],
            )
        )
    return rows


def within_units(
    a: FloatArray,
    b: FloatArray,
    *,
    scope: Scope,
    kinds: Sequence[str],
    margins: Mapping[str, float],
    seed: int = 1,
    note: str | None = None,
) -> list[Row]:
    """Rows of the named kinds for one number of the same units in two arms, a − b: a `[n]`, b `[n]`.

    welch takes the arms as independent; paired, wilcoxon and permutation pair them unit by unit. Without a
    unit every row is there, empty, with the note as reason.
    """
    n = (int(a.size), int(b.size))
    if not a.size:
        return _empty(scope, kinds, n, margins, note or f"no {scope.unit} has both numbers")
    return [_of_kind(a, b, kind, scope, n, margins, seed, note) for kind in kinds]


def _of_kind(
    a: FloatArray,
    b: FloatArray,
    kind: str,
    scope: Scope,
    n: tuple[int, int],
    margins: Mapping[str, float],
    seed: int,
    note: str | None,
) -> Row:
    if kind in ("welch", "paired"):
        return _of_test(scope, kind, welch(a, b) if kind == "welch" else paired(a, b), n, margins, note)
    if kind == "wilcoxon":
        ranks = wilcoxon(a, b)
        return _row(
            scope,
            kind,
            n=n,
            margins=margins,
            effect_size=ranks.effect_size,
            statistic=ranks.statistic,
            p_value=ranks.p_value,
            reasons=[note, ranks.reason],
        )
    swaps = swap_test(a, b, rng=generator(seed, "tests", [*_identity(scope), kind]))
    return _row(
        scope,
        kind,
        n=n,
        margins=margins,
        estimate=swaps.estimate,
        statistic=swaps.statistic,
        p_value=swaps.p_value,
        reasons=[note, swaps.reason],
    )


def adjust(rows: Sequence[Mapping[str, object]]) -> list[Row]:
    """Fill p_adjusted in the rows of one tests.csv: Holm within each `family`, over the whole file."""
    families = [str(row["family"]) for row in rows]
    p_values = [p if isinstance(p := row["p_value"], float) else None for row in rows]
    return [
        {**row, "p_adjusted": adjusted} for row, adjusted in zip(rows, holm(families, p_values), strict=True)
    ]


# --- one row ---------------------------------------------------------------------------------------


def _of_test(
    scope: Scope,
    kind: str,
    test: TTest,
    n: tuple[int, int],
    margins: Mapping[str, float],
    note: str | None,
) -> Row:
    return _row(
        scope,
        kind,
        n=n,
        margins=margins,
        estimate=test.estimate,
        effect_size=test.effect_size,
        statistic=test.statistic,
        dof=test.dof,
        p_value=test.p_value,
        ci=test.ci95,
        ci90=test.ci90,
        reasons=[note, test.reason],
    )


def _of_spread(
    scope: Scope,
    estimate: float,
    spread: Spread,
    n: tuple[int, int],
    margins: Mapping[str, float],
    note: str | None,
    *,
    limit: float,
) -> Row:
    ci = ci90 = dof = None
    if spread.variance is not None and spread.dof is not None:
        ends95 = difference_interval(estimate, spread.variance, spread.dof, limit=limit)
        ends90 = difference_interval(estimate, spread.variance, spread.dof, limit=limit, level=0.90)
        ci, ci90 = (float(ends95[0]), float(ends95[1])), (float(ends90[0]), float(ends90[1]))
        dof = float(spread.dof)
    reasons = [note, spread.reason]
    return _row(
        scope, "crossed", n=n, margins=margins, estimate=estimate, dof=dof, ci=ci, ci90=ci90, reasons=reasons
    )


def _empty(
    scope: Scope, kinds: Sequence[str], n: tuple[int, int], margins: Mapping[str, float], note: str | None
) -> list[Row]:
    return [_row(scope, kind, n=n, margins=margins, reasons=[note or "no template"]) for kind in kinds]


def _row(
    scope: Scope,
    kind: str,
    *,
    n: tuple[int, int | None],
    margins: Mapping[str, float],
    reasons: Sequence[str | None],
    estimate: float | None = None,
    effect_size: float | None = None,
    statistic: float | None = None,
    dof: float | None = None,
    p_value: float | None = None,
    ci: tuple[float, float] | None = None,
    ci90: tuple[float, float] | None = None,
) -> Row:
    margin = margins.get(scope.quantity) if kind in _VERDICT_KINDS.get(scope.engine, ()) else None
    equivalent = None
    # Of one job nothing follows for jobs, so such an interval gives no verdict
    # (docs/methods.md#one-job-one-template).
    if margin is not None and ci90 is not None and CONDITIONAL_ON_ONE_JOB not in reasons:
        equivalent = -margin <= ci90[0] and ci90[1] <= margin
    return {
        "engine": scope.engine,
        "family": f"{scope.engine}/{scope.quantity}/{kind}/{scope.contrast}",
        "quantity": scope.quantity,
        "gender": scope.gender,
        "model_a": scope.model_a,
        "model_b": scope.model_b,
        "bias_type": scope.bias_type,
        "setting": scope.setting,
        "prompt_form": scope.prompt_form,
        "instruction_a": scope.instruction_a,
        "instruction_b": scope.instruction_b,
        "group_a": scope.group_a,
        "group_b": scope.group_b,
        "kind": kind,
        "unit": scope.unit,
        "estimate": estimate,
        "effect_size": effect_size,
        "statistic": statistic,
        "dof": dof,
        "p_value": p_value,
        "p_adjusted": None,
        "ci_low": ci[0] if ci else None,
        "ci_high": ci[1] if ci else None,
        "n_a": n[0],
        "n_b": n[1],
        "ci90_low": ci90[0] if ci90 else None,
        "ci90_high": ci90[1] if ci90 else None,
        "margin": margin,
        "equivalent": equivalent,
        "reason": joined(reasons),
    }


def _identity(scope: Scope) -> list[str | None]:
    """Name the key columns of a row but its kind: what its random numbers are drawn for."""
    return [
        *(scope.engine, scope.contrast, scope.quantity, scope.gender, scope.model_a, scope.model_b),
        *(scope.bias_type, scope.setting, scope.prompt_form, scope.instruction_a, scope.instruction_b),
        *(scope.group_a, scope.group_b),
    ]
