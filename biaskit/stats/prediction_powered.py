"""Shares of many texts with a cheap label, corrected by careful labels of a random few (PPI++)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biaskit.stats.arrays import FloatArray, IntArray
from biaskit.stats.crossed import share_interval

FEWEST_LABELS = 10
"""Careful labels that a stratum needs for a variance of its own."""
_FLOOR = 0.25  # of what one differing label would bring; more over-covers, see benchmarks/RESULTS.md


@dataclass(frozen=True, slots=True)
class CorrectedShare:
    """A corrected share with its interval, as fractions, and the power λ of the cheap labels by stratum."""

    estimate: float
    ci95: tuple[float, float]
    se: float
    power: tuple[float, ...]


def corrected_share(
    careful: FloatArray,
    cheap: FloatArray,
    probability: FloatArray,
    strata: IntArray,
    independent: float | None = None,
) -> CorrectedShare | None:
    """Estimate the share of women among texts that name a gender, whatever errors the cheap labels have.

    Formula: share θ = Y/D; Y and D each Σ_h W_h (m_h(y) + λ_h (m'_h(f) - m_h(f))), with m_h the mean over the
        careful labels of stratum h weighted by 1/π, m'_h that of the cheap labels of its other texts, W_h its
        part of all texts; λ_h = cov(ψ, g)/var(g) times the part without a careful label, within [0, 1], of
        ψ = (y - θ d)/D and g, the same of the cheap labels. V = Σ W_h² (var(ψ - λ g)/n_h + λ² var(g)/N_h)
        + Σ W_h ψ̄_h²/N, the last since the texts are themselves drawn; var(ψ - λ g) is at least 0.25 q(1 - q)/D²,
        q = 0.5/(n_h + 1). Interval: t on the logit scale, Satterthwaite's degrees of freedom.
    Arguments: careful and cheap `[N, 2]`: y (about women) and d (about anybody) of each text, NaN in careful
        where there is no careful label; π `[N]`, the probability with which a text was drawn for one; strata
        `[N]`, of which each has two careful labels; independent, what the N texts are worth beside copies.
    Missing or empty input: None where the labels name nobody's gender.
    Reference: methods/representation#corrected; Angelopoulos, Duchi and Zrnic 2023 (PPI++); Fisch et al. 2024
        (strata). For a mean (d = 1) and equal π as glide-py 0.11.0, but for the last term of V.
    """
    labelled = ~np.isnan(careful[:, 0])
    n_texts = len(labelled)
    members = [strata == h for h in np.unique(strata)]
    parts = [m.sum() / n_texts for m in members]
    weights = [_normalised(1.0 / probability[m & labelled]) for m in members]
    of_labelled = [w @ careful[m & labelled] for m, w in zip(members, weights, strict=True)]
    total = np.average(of_labelled, axis=0, weights=parts)
    power = np.zeros(len(members))
    # λ depends on θ and θ on λ: the first pass is without cheap labels, as in PPI++.
    for _ in range(2):
        if total[1] <= 0:
            return None
        share = total[0] / total[1]
        variances, degrees, between = [], [], 0.0
        moved = []
        for h, (m, w) in enumerate(zip(members, weights, strict=True)):
            psi, g = (x @ np.array([1.0, -share]) / total[1] for x in (careful[m & labelled], cheap[m]))
            with_label, n = g[labelled[m]], int(labelled[m].sum())
            rest = 1.0 - n / len(g)
            if rest > 0 and (of_g := g.var(ddof=1)) > 0:
                covariance = (w @ (psi * with_label) - (w @ psi) * (w @ with_label)) * n / (n - 1)
                power[h] = np.clip(covariance / of_g * rest, 0.0, 1.0)
            to_rest = (cheap[m].mean(axis=0) - w @ cheap[m & labelled]) / rest if rest > 0 else np.zeros(2)
            moved.append(of_labelled[h] + power[h] * to_rest)
            left = psi - power[h] * with_label
            q = 0.5 / (n + 1)
            spread = float(np.square(w) @ np.square(left - w @ left)) * n / (n - 1)
            spread = max(spread, _FLOOR * q * (1 - q) / total[1] ** 2 / n)
            of_rest = float(g[~labelled[m]].var(ddof=1)) / (len(g) - n) if len(g) - n > 1 else 0.0
            variances += [parts[h] ** 2 * spread, parts[h] ** 2 * power[h] ** 2 * of_rest]
            degrees += [n - 1.0, max(len(g) - n - 1.0, 1.0)]
            between += parts[h] * (moved[h] @ np.array([1.0, -share]) / total[1]) ** 2 / n_texts
        total = np.average(moved, axis=0, weights=parts)
    terms = np.array([*variances, between])
    variance, scale = terms.sum(), n_texts / (independent or n_texts)
    dof = variance**2 / (np.square(terms) / np.array([*degrees, max(n_texts - 1.0, 1.0)])).sum()
    estimate = float(np.clip(total[0] / total[1], 0.0, 1.0)) if total[1] > 0 else float(share)
    low, high = share_interval(estimate, variance * scale, dof)
    return CorrectedShare(
        estimate, (float(low), float(high)), float(np.sqrt(variance * scale)), tuple(power.tolist())
    )


def pooled(strata: IntArray, labelled: IntArray) -> IntArray:
    """Join each stratum with fewer than ten careful labels to the one after it, the last to those before.

    Arguments: strata `[N]` and `[N]` whether a text has a careful label. Returns the strata `[N]`, renumbered.
    """
    joined, new, n = np.zeros_like(strata), 0, 0
    for h in np.unique(strata):
        if n >= FEWEST_LABELS:
            new, n = new + 1, 0
        joined[strata == h] = new
        n += int(labelled[strata == h].sum())
    return np.where(joined == new, max(new - 1, 0), joined) if n < FEWEST_LABELS else joined


def _normalised(weights: FloatArray) -> FloatArray:
    return weights / weights.sum()
