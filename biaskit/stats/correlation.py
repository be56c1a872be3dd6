"""Least-squares slope and rank correlation, of one sample or of many resamples at once."""

from __future__ import annotations

import numpy as np

from biaskit.stats.arrays import FloatArray
from biaskit.stats.crossed import CONDITIONAL_ON_TEMPLATES, Spread, combined, crossed_test
from biaskit.stats.resampling import N_RESAMPLES
from biaskit.stats.welch import NO_SPREAD, Statistic, varies


def spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    """Compute Spearman's rank correlation of x and y `[..., n]`, ties at their average rank: in [−1, 1].

    NaN (for the caller to turn into None) where x or y has no spread.
    Reference: methods/representation#workforce-slope; checked against `scipy.stats.spearmanr`.
    """
    from scipy.stats import rankdata

    dx, dy = (rankdata(values, axis=-1) - (x.shape[-1] + 1) / 2 for values in (x, y))
    below = np.sqrt(np.square(dx).sum(axis=-1) * np.square(dy).sum(axis=-1))
    spread = [np.ptp(v, axis=-1) > NO_SPREAD * np.abs(v).max(axis=-1) for v in (x, y)]
    r = np.divide((dx * dy).sum(axis=-1), below, out=np.full_like(below, np.nan), where=spread[0] & spread[1])
    clipped: FloatArray = np.clip(r, -1.0, 1.0)
    return clipped


def slope_test(x: FloatArray, y: FloatArray) -> Statistic:
    """Test a least-squares slope whose units may vary differently; positive when y rises with x.

    Formula: the slope b of the units' means, ± t √v. V: its HC3 variance, n − 2 degrees of freedom. With J
        templates, b_j the slope in template j, w the row of the pseudo-inverse that gives b, and E the mean
        square of what the lines of templates leave beside those of the units, (n − 2)(J − 1) degrees:
        T = s²(b_j)/J, W = E Σw²/J, v = max(V + T − W, V, T), dof as in crossed rows.
    x is `[n]`, y `[n]` or, by templates, `[n, J]`; n ≥ 3. x without spread: NaN is no estimate, so the reason
    stands alone; one unit that alone sets the slope: no test, since its HC3 residual is 0 / 0; one template:
    no p-value.
    Reference: methods/representation#workforce-slope; statsmodels' `OLS` with `cov_type="HC3"`. At 10 to 20
        units a percentile bootstrap covers 89 to 93 % only.
    """
    return _of_line(x, y, 1)


def level_test(x: FloatArray, y: FloatArray, at: float) -> Statistic:
    """Test how far a least-squares line lies above the diagonal at one place: its level apart from its slope.

    Formula: (line at x = `at`) − `at`, ± t × its HC3 standard error, n − 2 degrees of freedom.
    Reference: methods/representation#workforce-slope; else as `slope_test`.
    """
    return _of_line(x - at, y - at, 0)


def level_weights(x: FloatArray, at: float) -> FloatArray:
    """Find the weight of each y in a least-squares line's value at x = `at`: `[n]`, sum 1, also negative.

    Reference: methods/representation#workforce-slope; a row of the hat matrix.
    """
    dx = x - x.mean()
    weights: FloatArray = 1 / x.size + (at - x.mean()) * dx / np.square(dx).sum()
    return weights


def _of_line(x: FloatArray, y: FloatArray, which: int) -> Statistic:
    """Test the constant (0) or the slope (1) of a line."""
    means = y if y.ndim == 1 else y.mean(axis=1)
    if not varies(x, x):
        return Statistic(None, reason="zero variance: no estimate")
    if not varies(means, means):
        return Statistic(0.0 if which else float(means[0]), reason="zero variance: no test")
    from statsmodels.regression.linear_model import OLS

    line = OLS(means, np.column_stack([np.ones(x.size), x])).fit()
    estimate, units = float(line.params[which]), x.size - 2
    if line.get_influence().hat_matrix_diag.max() > 1 - NO_SPREAD:
        return Statistic(estimate, reason="one unit determines the line: no test")
    with np.errstate(divide="ignore", invalid="ignore"):  # a line through every point
        variance = line.get_robustcov_results("HC3").cov_params()[which, which]
    dof, n_templates = np.asarray(float(units)), y.shape[1] if y.ndim > 1 else 0
    reason = CONDITIONAL_ON_TEMPLATES.get(n_templates)
    if n_templates and reason is None:
        to_line = line.model.pinv_wexog  # from values to constant and slope, [2, n]
        lines = to_line @ y  # of each template, [2, J]
        left = y - means[:, None] - line.model.exog @ (lines - line.params[:, None])
        degrees = units * (n_templates - 1)
        of_cells = np.square(left).sum() / degrees * np.square(to_line[which]).sum() / n_templates
        of_templates = lines[which].var(ddof=1) / n_templates
        terms = [(variance, units)], (of_templates, n_templates - 1), [(of_cells, degrees)]
        variance, dof = combined(*terms)
    return crossed_test(estimate, Spread(variance, dof, reason, (units + 1,), n_templates), limit=np.inf)


def rank_correlation(x: FloatArray, y: FloatArray, *, rng: np.random.Generator) -> Statistic:
    """Compute Spearman's rank correlation with a percentile interval and the p-value of no association.

    Formula: n units drawn with replacement, 2,000 times; numpy's linear percentiles. p: two-sided, by t
        with n − 2 degrees.
    No spread in x or y `[n]`: None with the reason; resamples without spread are left out and counted in the
    reason, and if more than half are, there is no interval and no p-value.
    Reference: methods/representation#workforce-slope; checked by plain loops; p by `scipy.stats.spearmanr`.
    """
    from scipy.stats import spearmanr

    estimate = float(spearman(x, y))
    if np.isnan(estimate):
        return Statistic(reason="zero variance: no estimate")
    picks = rng.integers(0, x.size, size=(N_RESAMPLES, x.size))
    drawn = spearman(x[picks], y[picks])
    defined = drawn[~np.isnan(drawn)]
    left_out = N_RESAMPLES - defined.size
    reason = f"{left_out} of {N_RESAMPLES} resamples without spread left out" if left_out else None
    if 2 * defined.size < N_RESAMPLES:
        return Statistic(estimate, reason=f"{reason}: no interval")
    low95, low90, high90, high95 = np.quantile(defined, [0.025, 0.05, 0.95, 0.975]).tolist()
    p_value = float(spearmanr(x, y).pvalue)
    return Statistic(estimate, p_value=p_value, ci95=(low95, high95), ci90=(low90, high90), reason=reason)
