"""Jobs and templates as crossed random factors (methods/averages#crossed-intervals).

Values are `[..., I, J]`: I jobs by J templates, any number of such tables in front, all of them complete.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biaskit.common.wording import ROUNDING
from biaskit.stats.arrays import FloatArray
from biaskit.stats.welch import Statistic

MANY = 1e6
"""Degrees of freedom where nothing limits them."""
FEW_TEMPLATES, LEAST_P = 5, 0.001
"""With fewer templates no p-value is smaller: so few do not show how rare a difference is."""
CONDITIONAL_ON_ONE_JOB = "conditional on one job"
CONDITIONAL_ON_TEMPLATES = {1: "conditional on one template", 2: "conditional on two templates"}
"""By their number: two are no sample of templates (intervals over them held 87 to 98 % in simulation)."""
CONDITIONAL = (CONDITIONAL_ON_ONE_JOB, *CONDITIONAL_ON_TEMPLATES.values())
"""Reasons of an interval that holds for this job or these templates alone: no verdict."""


@dataclass(frozen=True, slots=True)
class MeanSquares:
    """Mean squares `[...]` of tables of I jobs and J templates; None where a factor has one level."""

    jobs: FloatArray | None
    templates: FloatArray | None
    residual: FloatArray | None
    n_jobs: int
    n_templates: int


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of an estimate and its degrees of freedom, both `[...]`; None where neither is defined."""

    variance: FloatArray | None
    dof: FloatArray | None
    reason: str | None = None  # what the spread is conditional on, or why there is none
    n_jobs: tuple[int, ...] = ()  # of each group
    n_templates: float = 1

    @property
    def conditional(self) -> bool:
        """Whether the spread is of one job, or of one or two templates, alone."""
        return self.reason in CONDITIONAL


Term = tuple[FloatArray, float]
"""What a mean square adds to a variance, `[...]`, and its degrees of freedom."""


def mean_squares(values: FloatArray) -> MeanSquares:
    """Compute mean squares of jobs, templates and residual of a crossed table with one value per cell.

    Formula: A = J Σ_i (x_i. − x_..)² / (I−1);  B = I Σ_j (x_.j − x_..)² / (J−1);
        E = Σ_ij (x_ij − x_i. − x_.j + x_..)² / ((I−1)(J−1)).
    A is None with one job, B with one template, E with either.
    Reference: methods/averages#crossed-intervals, the two-way table without replication; checked against
        statsmodels' `anova_lm` of `value ~ C(job) + C(template)`.
    """
    n_jobs, n_templates = values.shape[-2:]
    grand = values.mean(axis=(-2, -1), keepdims=True)
    of_jobs = values.mean(axis=-1, keepdims=True)
    of_templates = values.mean(axis=-2, keepdims=True)
    jobs = templates = residual = None
    if n_jobs > 1:
        jobs = n_templates * np.square(of_jobs - grand).sum(axis=(-2, -1)) / (n_jobs - 1)
    if n_templates > 1:
        templates = n_jobs * np.square(of_templates - grand).sum(axis=(-2, -1)) / (n_templates - 1)
    if n_jobs > 1 and n_templates > 1:
        left = values - of_jobs - of_templates + grand
        residual = np.square(left).sum(axis=(-2, -1)) / ((n_jobs - 1) * (n_templates - 1))
    return MeanSquares(jobs, templates, residual, n_jobs, n_templates)


def spread_of_mean(values: FloatArray) -> Spread:
    """Estimate the variance of the mean over jobs and templates, both taken as drawn at random.

    Formula: v = max(A + B − E, A, B) / (I J);
        dof = (I J v)² / (A²/(I−1) + B²/(J−1) + E²/((I−1)(J−1))), at least 1.
        One job: v = s²/J over its templates, dof = J−1. One or two templates: v = A/(I J), dof = I−1.
    Values are differences of cells for a paired contrast. No cell, or one job with one template: None with
    the reason; one job, or one or two templates: the reason says what it is conditional on.
    Reference: methods/averages#crossed-intervals; checked against plain loops and in simulation
        (`benchmarks/interval_coverage.py`).
    """
    squares = mean_squares(values) if values.size else MeanSquares(None, None, None, *values.shape[-2:])
    a, b, e = squares.jobs, squares.templates, squares.residual
    cells = squares.n_jobs * squares.n_templates
    if a is not None and squares.n_templates in CONDITIONAL_ON_TEMPLATES:
        reason = CONDITIONAL_ON_TEMPLATES[squares.n_templates]
        return Spread(a / cells, np.full_like(a, squares.n_jobs - 1), reason)
    if a is not None and b is not None and e is not None:
        i, j = squares.n_jobs - 1, squares.n_templates - 1
        total, dof = combined([(a, i)], (b, j), [(e, i * j)])
        return Spread(total / cells, dof, None, (squares.n_jobs,), squares.n_templates)
    if b is not None:
        return Spread(b / cells, np.full_like(b, squares.n_templates - 1), CONDITIONAL_ON_ONE_JOB)
    return Spread(None, None, "one job and one template: no interval" if cells else None)


def spread_of_difference(a: FloatArray, b: FloatArray) -> Spread:
    """Estimate the variance of the difference of two groups' means: other jobs, the same templates.

    Formula: D = sample variance over templates of (mean of a − mean of b), for each group i
        A_i, E_i its mean squares: V = Σ A_i/(I_i J), W = Σ E_i/(I_i J); v = max(V + D/J − W, V, D/J);
        dof = v² / (Σ (A_i/(I_i J))²/(I_i−1) + (D/J)²/(J−1) + Σ (E_i/(I_i J))²/((I_i−1)(J−1))), at least 1.
        A group of one job drops its A and E. One template, or two and no such group: v = V with the dof of
        the A terms.
    a is `[..., I_a, J]`, b `[..., I_b, J]`. No cell, or one template where a group has one job: None with the
    reason; one job, or one or two templates: the reason says what it is conditional on.
    Reference: methods/averages#group-difference-intervals; checked against a plain-loop re-implementation.
    """
    n_templates = a.shape[-1]
    one_job = 1 in (a.shape[-2], b.shape[-2])
    if not a.size or not b.size:
        return Spread(None, None)
    if one_job and n_templates == 1:
        return Spread(None, None, "one template and a group of one job: no interval")
    jobs: list[Term] = []
    residual: list[Term] = []
    for values in (a, b):
        squares = mean_squares(values)
        cells, i, j = values.shape[-2] * n_templates, values.shape[-2] - 1, n_templates - 1
        if squares.jobs is not None:
            jobs.append((squares.jobs / cells, i))
        if squares.residual is not None:
            residual.append((squares.residual / cells, i * j))
    if n_templates in CONDITIONAL_ON_TEMPLATES and not one_job:
        return Spread(*combined(jobs, None, []), CONDITIONAL_ON_TEMPLATES[n_templates])
    of_templates = (a.mean(axis=-2) - b.mean(axis=-2)).var(axis=-1, ddof=1) / n_templates
    spread = combined(jobs, (of_templates, n_templates - 1), residual)
    n_jobs = a.shape[-2], b.shape[-2]
    return Spread(*spread, CONDITIONAL_ON_ONE_JOB if one_job else None, n_jobs, n_templates)


def not_below(spread: Spread, noise: float) -> Spread:
    """Widen a spread whose 95 % interval is narrower than that of counting alone, of variance `noise`.

    Where all samples agree their spread is 0, and still others could come (methods/averages#counted).
    """
    if not noise or spread.variance is None or spread.dof is None:
        return spread
    many = np.full_like(spread.dof, MANY)
    wider = _t(many, 0.95) ** 2 * noise > _t(spread.dof, 0.95) ** 2 * spread.variance
    variance, dof = np.where(wider, noise, spread.variance), np.where(wider, many, spread.dof)
    return replace(spread, variance=variance, dof=dof)


def combined(
    jobs: Sequence[Term], templates: Term | None, residual: Sequence[Term]
) -> tuple[FloatArray, FloatArray]:
    """Combine mean squares to the variance of an estimate over crossed jobs and templates, and its dof.

    Formula: V = Σ jobs, T = templates (or 0), W = Σ residual; v = max(V + T − W, V, T);
        dof = v² / Σ (term² / its dof), at least 1 (Satterthwaite).
    Reference: methods/averages#crossed-intervals, #group-difference-intervals.
    """
    of_jobs = np.asarray(sum(x for x, _ in jobs), np.float64)
    of_residual = np.asarray(sum(x for x, _ in residual), np.float64)
    of_templates = np.zeros(()) if templates is None else templates[0]
    # V + T − W alone can fall below what one factor brings, and then the interval is too short.
    variance = np.maximum(of_jobs + of_templates - of_residual, np.maximum(of_jobs, of_templates))
    terms = [*jobs, *([] if templates is None else [templates]), *residual]
    below = np.asarray(sum(x**2 / dof for x, dof in terms), np.float64)
    # 1 where nothing varies: an interval of width 0 needs none.
    dof = np.divide(variance**2, below, out=np.ones_like(variance), where=below > 0)
    return variance, np.maximum(dof, 1.0)


def share_interval(
    mean: FloatArray | float, variance: FloatArray, dof: FloatArray, *, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Find the interval of a mean share on the logit scale, so that it stays inside [0, 1].

    Formula: logit(m) ± t √v / (m (1 − m)), transformed back; m exactly 0 or 1: m ± t √v, clipped.
    Elementwise `[...]`, with lower ≤ m ≤ upper; v = 0 gives [m, m].
    Reference: methods/averages#crossed-intervals; checked against plain loops with scipy's t.
    """
    from scipy.special import expit, logit

    m = np.asarray(mean, dtype=np.float64)
    half = _t(dof, level) * np.sqrt(variance)
    inside = (m > 0.0) & (m < 1.0)
    middle = np.where(inside, m, 0.5)
    with np.errstate(over="ignore"):  # a reach of inf ends at 0 and 1
        centre, reach = logit(middle), half / (middle * (1.0 - middle))
    low = np.where(inside, expit(centre - reach), np.clip(m - half, 0.0, 1.0))
    high = np.where(inside, expit(centre + reach), np.clip(m + half, 0.0, 1.0))
    # The way to the logit scale and back may cost the last bit, and v = 0 must give m itself.
    return np.minimum(low, m), np.maximum(high, m)


def difference_interval(
    difference: FloatArray | float,
    variance: FloatArray,
    dof: FloatArray,
    *,
    limit: float = 1.0,
    level: float = 0.95,
) -> tuple[FloatArray, FloatArray]:
    """Find the interval of a difference of shares, clipped to what such a difference can be.

    Formula: d ± t √v, clipped to [−limit, limit]; limit is 2 for a difference of differences.
    Reference: methods/averages#crossed-intervals; checked against plain loops with scipy's t.
    """
    d = np.asarray(difference, dtype=np.float64)
    half = _t(dof, level) * np.sqrt(variance)
    return np.clip(d - half, -limit, limit), np.clip(d + half, -limit, limit)


def with_tails(
    variance: FloatArray, dof: FloatArray, n_jobs: Sequence[int], n_templates: float
) -> tuple[FloatArray, FloatArray]:
    """Give a difference the tails of the factor with the fewest degrees; its 95 % interval stays.

    Formula: of jobs (Σ 1/I)² / Σ 1/(I² (I−1)), Welch's at equal variances; f = min(dof, of jobs, J−1);
        v' = v (t(0.975, dof) / t(0.975, f))². A factor of one level, and a group of one job, drop their term.
    Returns v' and f as `[...]`, for p-values and for intervals at other levels.
    Reference: methods/averages#tails; with the dof of the whole variance a p of 0.1 % comes in 0.4 % of runs
        at five templates, in 1.5 % at three.
    """
    fewest = n_templates - 1.0 if n_templates > 1 else MANY
    if several := [n for n in n_jobs if n > 1]:
        of_jobs = sum(1 / n for n in several) ** 2 / sum(1 / (n * n * (n - 1)) for n in several)
        fewest = min(fewest, of_jobs)
    tails = np.minimum(dof, fewest)
    return variance * np.square(_t(dof, 0.95) / _t(tails, 0.95)), tails


def crossed_test(estimate: float, spread: Spread, *, limit: float = 1.0) -> Statistic:
    """Test an estimate over crossed jobs and templates against 0, with intervals (methods/averages#tails).

    Below five templates p is at least 0.001. An undefined spread leaves only the estimate, with the reason;
    one that is conditional has no t and no p.
    """
    variance, dof = spread.variance, spread.dof
    if variance is None or dof is None:
        return Statistic(estimate, reason=spread.reason)
    of_tails, tails = with_tails(variance, dof, spread.n_jobs, spread.n_templates)
    statistic, p = p_of_difference(estimate, float(of_tails), float(tails))
    if 1 < spread.n_templates < FEW_TEMPLATES:
        p = max(p, LEAST_P)
    intervals = (difference_interval(estimate, variance, dof, limit=limit, level=a) for a in (0.95, 0.90))
    ci95, ci90 = ((float(low), float(high)) for low, high in intervals)
    test = Statistic(estimate, None, statistic, float(tails), p, ci95, ci90, spread.reason)
    return replace(test, statistic=None, p_value=None) if spread.conditional else test


def p_of_difference(difference: float, variance: float, dof: float) -> tuple[float | None, float]:
    """Compute the t statistic and two-sided p-value of a difference against 0.

    Formula: t = d / √v on dof degrees of freedom. v = 0 has no t; its p is 1 where d is 0 up to rounding,
        else 0.
    Reference: methods/averages#crossed-intervals, the test that its interval inverts.
    """
    from scipy.special import stdtr

    if variance <= ROUNDING**2:
        return None, 1.0 if abs(difference) <= ROUNDING else 0.0
    t = difference / math.sqrt(variance)
    return t, float(2.0 * stdtr(dof, -abs(t)))


def p_of_interval(difference: float, low: float, high: float, dof: float) -> float:
    """Recover the p-value of a difference from its 95 % interval (methods/averages#crossed-intervals)."""
    half = (high - low) / 2.0 / float(_t(np.asarray(dof), 0.95))
    return p_of_difference(difference, half**2, dof)[1]


def _t(dof: FloatArray, level: float) -> FloatArray:
    """Find a two-sided t quantile: `scipy.stats.t.ppf` gives the same at a hundred times the cost."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(dof, 0.5 + level / 2.0), dtype=np.float64)


def variance_components(values: FloatArray) -> dict[str, Any]:
    """Split the cells' variance `[I, J]` into that between jobs, that between templates, and the rest.

    Formula: job (A − E)/J, template (B − E)/I, residual E: components, not fractions.
    Returns the columns of probe_variance.csv: a negative component is 0, and the reason names it; None with
    one job or one template, with the reason.
    Reference: methods/averages#variance-components, the method of moments; checked against plain loops.
    """
    squares = mean_squares(values) if values.size else None
    if squares is None or squares.jobs is None or squares.templates is None or squares.residual is None:
        one = [name for name, n in zip(("job", "template"), values.shape, strict=True) if n == 1]
        reason = f"one {' and one '.join(one)}: no components" if one else None
        return dict.fromkeys(("var_job", "var_template", "var_residual")) | {"reason": reason}
    residual = float(squares.residual)
    job = (float(squares.jobs) - residual) / squares.n_templates
    template = (float(squares.templates) - residual) / squares.n_jobs
    below = [f"var_{name} was {x:.2g}" for name, x in (("job", job), ("template", template)) if x < 0]
    reason = f"{' and '.join(below)}, shown as 0" if below else None
    found = {"var_job": max(job, 0.0), "var_template": max(template, 0.0), "var_residual": residual}
    return {**found, "reason": reason}


def se_over_templates(values: FloatArray) -> float | None:
    """Estimate the standard error of a group's mean over its templates' means; None with fewer than two.

    Formula: s(x_.j) / √J with the sample SD (J − 1) of the template means.
    Reference: methods/averages#se-templates: the ± of OccuGender's Tables 3-4, most likely.
    """
    n_templates = values.shape[-1]
    if n_templates < 2:
        return None
    return float(values.mean(axis=-2).std(ddof=1)) / math.sqrt(n_templates)
