"""From two arrays of shares to the rows of tests.csv that compare them (docs/methods.md#contrasts)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from biaskit.stats.arrays import FloatArray
from biaskit.stats.correlation import slope, spearman
from biaskit.stats.crossed import (
    Spread,
    difference_interval,
    joined,
    spread_of_difference,
    spread_of_mean,
)
from biaskit.stats.multiplicity import holm
from biaskit.stats.resampling import Resampled, bootstrap_of_units, generator
from biaskit.stats.swaps import SwapTest, swap_test
from biaskit.stats.welch import SignedRanks, TTest, paired, welch, wilcoxon

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
    rows = _Rows(scope, (a.shape[0], b.shape[0]), margins, note)
    if not a.shape[1]:
        return rows.empty("welch", "crossed")
    test = welch(a.mean(axis=1), b.mean(axis=1))
    return [rows.of("welch", test), rows.crossed(test.estimate, spread_of_difference(a, b), limit=1.0)]


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
    rows = _Rows(scope, (a.shape[0], b.shape[0]), margins, note)
    if not a.size:
        return rows.empty("paired", "crossed")
    test = paired(a.mean(axis=1), b.mean(axis=1))
    return [rows.of("paired", test), rows.crossed(test.estimate, spread_of_mean(a - b), limit=limit)]


def estimate_only(a: FloatArray, b: FloatArray, *, scope: Scope, note: str | None = None) -> list[Row]:
    """One row of a − b that is shown and never tested; a `[I, J_a]` and b `[I, J_b]` share no template."""
    rows = _Rows(scope, (a.shape[0], b.shape[0]), {}, note)
    if not a.size or not b.size:
        return rows.empty("estimate")
    return [rows.of("estimate", TTest(float(a.mean() - b.mean())))]


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
    rows = _Rows(scope, (int(x.size), None), margins, note)
    made = []
    for kind, statistic in (("slope", slope), ("spearman", spearman)):
        result = Resampled(None)
        if x.size < MIN_LABOUR_ITEMS:
            few = f"{x.size} items with a labour share, at least {MIN_LABOUR_ITEMS} are needed"
            result = Resampled(None, reason=few)
        elif shares.size:
            rng = generator(seed, "tests", [*_identity(scope), kind])
            result = bootstrap_of_units(statistic, x, shares[known].mean(axis=1), rng=rng)
        made.append(rows.of(kind, result))
    return made


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
    rows = _Rows(scope, (int(a.size), int(b.size)), margins, note)
    if not a.size:
        return rows.empty(*kinds, reason=f"no {scope.unit} has both numbers")
    tests: Mapping[str, Callable[[], _Result]] = {
        "welch": lambda: welch(a, b),
        "paired": lambda: paired(a, b),
        "wilcoxon": lambda: wilcoxon(a, b),
        "permutation": lambda: swap_test(
            a, b, rng=generator(seed, "tests", [*_identity(scope), "permutation"])
        ),
    }
    return [rows.of(kind, tests[kind]()) for kind in kinds]


def adjust(rows: Sequence[Mapping[str, object]]) -> list[Row]:
    """Fill p_adjusted in the rows of one tests.csv: Holm within each `family`, over the whole file."""
    families = [str(row["family"]) for row in rows]
    p_values = [p if isinstance(p := row["p_value"], float) else None for row in rows]
    return [
        {**row, "p_adjusted": adjusted} for row, adjusted in zip(rows, holm(families, p_values), strict=True)
    ]


# --- one row ---------------------------------------------------------------------------------------


_Result = TTest | SignedRanks | SwapTest | Resampled


@dataclass(frozen=True, slots=True)
class _Rows:
    """What the rows of one contrast have in common."""

    scope: Scope
    n: tuple[int, int | None]
    margins: Mapping[str, float]
    note: str | None

    def empty(self, *kinds: str, reason: str = "no template") -> list[Row]:
        """A row without numbers for each kind."""
        return [self.of(kind, Resampled(None, reason=None if self.note else reason)) for kind in kinds]

    def crossed(self, estimate: float, spread: Spread, *, limit: float) -> Row:
        """The row of an estimate whose jobs and templates are both taken as drawn at random."""
        if spread.variance is None or spread.dof is None:
            return self.of("crossed", TTest(estimate, reason=spread.reason))
        ci95, ci90 = (
            difference_interval(estimate, spread.variance, spread.dof, limit=limit, level=level)
            for level in (0.95, 0.90)
        )
        result = TTest(
            estimate,
            dof=float(spread.dof),
            ci95=(float(ci95[0]), float(ci95[1])),
            ci90=(float(ci90[0]), float(ci90[1])),
            reason=spread.reason,
        )
        # Of one job nothing follows for jobs, so such an interval gives no verdict
        # (docs/methods.md#one-job-one-template).
        return self.of("crossed", result, speaks_of_jobs=not spread.of_one_job)

    def of(self, kind: str, result: _Result, *, speaks_of_jobs: bool = True) -> Row:
        """A row of tests.csv; what a kind of test does not have is empty."""
        scope = self.scope
        ci95, ci90 = (getattr(result, name, None) for name in ("ci95", "ci90"))
        may_judge = kind in _VERDICT_KINDS.get(scope.engine, ())
        margin = self.margins.get(scope.quantity) if may_judge else None
        equivalent = None
        if margin is not None and ci90 is not None and speaks_of_jobs:
            equivalent = -margin <= ci90[0] and ci90[1] <= margin
        return {
            "engine": scope.engine,
            "family": f"{scope.engine}/{scope.quantity}/{kind}/{scope.contrast}",
            **{name: getattr(scope, name) for name in _SCOPE_COLUMNS},
            "kind": kind,
            "unit": scope.unit,
            **{name: getattr(result, name, None) for name in _NUMBERS},
            "p_adjusted": None,
            "ci_low": ci95[0] if ci95 else None,
            "ci_high": ci95[1] if ci95 else None,
            "n_a": self.n[0],
            "n_b": self.n[1],
            "ci90_low": ci90[0] if ci90 else None,
            "ci90_high": ci90[1] if ci90 else None,
            "margin": margin,
            "equivalent": equivalent,
            "reason": joined([self.note, result.reason]),
        }


_SCOPE_COLUMNS = (
    *("quantity", "gender", "model_a", "model_b", "bias_type", "setting", "prompt_form"),
    *("instruction_a", "instruction_b", "group_a", "group_b"),
)
_NUMBERS = ("estimate", "effect_size", "statistic", "dof", "p_value")


def _identity(scope: Scope) -> list[str | None]:
    """Name the key columns of a row but its kind: what its random numbers are drawn for."""
    return [
        *(scope.engine, scope.contrast, scope.quantity, scope.gender, scope.model_a, scope.model_b),
        *(scope.bias_type, scope.setting, scope.prompt_form, scope.instruction_a, scope.instruction_b),
        *(scope.group_a, scope.group_b),
    ]
