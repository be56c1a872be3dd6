"""Shares of many texts with a cheap label, corrected by careful labels of a random few (PPI++)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.crossed import share_interval
from biaskit.stats.proportions import wilson
from biaskit.stats.welch import varies

FEWEST_LABELS = 10  # careful ones that a share needs
FEWEST_OF_STRATUM = 5  # that a variance of its own needs, and a prompt; ten hide rare errors of the rules
_FLOOR = 0.35  # part of what one label of another kind would bring: all of it over-covers


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
    prompts: IntArray,
    independent: float | None = None,
) -> CorrectedShare | None:
    """Estimate the share of women among texts that name a gender, whatever errors the cheap labels have.

    Formula: share θ = Σ_p θ_p/k over k prompts, each θ_p = Y/D; Y and D each Σ W_h (m_h + λ_h (f'_h − f_h))
        over the prompt's strata h, with W_h the part of its texts, m_h and f_h the means of the careful and
        the cheap labels of the same n_h texts, weighted by 1/π, and f'_h what is left of the mean cheap label
        of all for the N'_h others. With ψ = (y − θ_p d)/D and g the same of cheap labels, λ_h =
        cov(ψ, g)/var(g) times the part of the others, within [0, 1].
        Variance: Σ_p [Σ W_h² (v_h + λ² var(g)/N'_h) + Σ W_h ψ̄_h²/N_p]/k², v_h that of the weighted mean of
        ψ − λ g, at least 0.35 q(1 − q)/(D² n_h), q = 0.5/(n_h + 1); ψ̄_h from the corrected means, since the
        texts are themselves drawn. Interval: t on the logit scale, with Satterthwaite's degrees of freedom;
        where all labels name one gender, at least Wilson's of (Σ a)²/Σ a² texts, a = d/(π N_p D).
    careful and cheap are `[N, 2]`: y (about women) and d (about anybody) of each text, NaN in careful where
    it has no careful label; `probability` π is that with which a text was drawn for one; `strata` and
    `prompts` `[N]` are numbered from 0, a stratum is of one prompt and has two careful labels at least;
    `independent`: how many texts the N are worth (N²/Σ c² with c copies each). None where no careful label of
    a prompt names a gender, or its corrected D is not above 0.
    Reference: methods/representation#corrected; Angelopoulos, Duchi and Zrnic 2023 (PPI++), Fisch et al. 2024
        (strata). Of a mean (d = 1) with equal π as glide-py 0.11.0, but for the last term and the floor.
    """
    labelled, n_of = ~np.isnan(careful[:, 0]), np.bincount(prompts)
    weights, strata_now, first, prompt_of, sizes = [], [], [], [], []
    for h in range(strata.max() + 1):
        texts = strata == h
        known, others = texts & labelled, texts & ~labelled
        w = 1.0 / probability[known]
        prompt_of.append(prompts[texts][0])
        sizes.append(texts.sum() / n_of[prompt_of[h]])
        weights.append(w / w.sum())
        strata_now.append((careful[known], cheap[known], cheap[others]))
        first.append(weights[-1] @ careful[known])
    parts, means = np.zeros((n_of.size, len(sizes))), np.array(first)
    parts[prompt_of, range(len(sizes))] = sizes
    for _ in range(2):  # λ depends on θ, and the first θ is that of the careful labels alone
        women, anybody = (parts @ means).T
        if anybody.min() <= 0:
            return None
        directions = (np.array([np.ones(n_of.size), -women / anybody]) / anybody).T[prompt_of]
        found = []
        for of, w, direction in zip(strata_now, weights, directions, strict=True):
            found.append(_stratum(*of, w, direction))
        corrected, variances_of, power = zip(*found, strict=True)
        means = np.array(corrected)
    women, anybody = (parts @ means).T
    if anybody.min() <= 0:
        return None
    share = float(np.clip(women / anybody, 0.0, 1.0).mean())
    of_strata = np.square(sizes)[:, None] * np.array(variances_of)
    of_texts = parts @ np.square((means * directions).sum(axis=1)) / n_of
    variances = np.append(of_strata, of_texts) / n_of.size**2
    degrees = np.append([[len(y) - 1.0, len(others) - 1.0] for y, _, others in strata_now], n_of - 1.0)
    variance = float(variances.sum())
    dof = variance**2 / (np.square(variances) / np.maximum(degrees, 1.0)).sum()
    variance *= len(strata) / (independent or len(strata))
    weight = 1.0 / (probability * (n_of * anybody)[prompts])[labelled, None]
    of_women, of_anybody = (careful[labelled] * weight).T
    ends = [share]
    if of_women.sum() in (0.0, of_anybody.sum()):  # labels of one gender show no variance
        n = of_anybody.sum() ** 2 / np.square(of_anybody).sum()
        ends = [*(wilson(n * bool(of_women.any()), n) or (0.0, 1.0))]
        variance = max(variance, ((ends[1] - ends[0]) / 3.92) ** 2)
    ends += map(float, share_interval(share, np.array(variance), np.array(dof)))
    return CorrectedShare(share, (min(ends), max(ends)), variance**0.5, power)


def _stratum(
    careful: FloatArray, cheap: FloatArray, others: FloatArray, weights: FloatArray, direction: FloatArray
) -> tuple[FloatArray, tuple[float, float], float]:
    """Compute the corrected mean `[2]` of a stratum, the two terms of its variance, and λ.

    Careful and cheap labels `[n, 2]` are of the same texts, `others` `[N', 2]` the cheap ones of the others;
    `weights` `[n]` sum to 1, and `direction` makes ψ of (y, d).
    """
    n, n_others, every = len(careful), len(others), np.concatenate([cheap, others])
    psi, g = careful @ direction, cheap @ direction
    g_of_all, mean, power = every @ direction, weights @ careful, 0.0
    if n_others and varies(g_of_all, g_of_all):
        covariance = (weights @ (psi * g) - (weights @ psi) * (weights @ g)) * n / (n - 1)
        power = float(np.clip(covariance / g_of_all.var(ddof=1) * n_others / len(every), 0.0, 1.0))
        # With unequal π the mean of the others is what is left of that of all texts.
        mean = mean + power * (every.mean(axis=0) - weights @ cheap) * len(every) / n_others
    left, q = psi - power * g, 0.5 / (n + 1)
    of_careful = float(np.square(weights) @ np.square(left - weights @ left)) * n / (n - 1)
    of_cheap = power**2 * float((others @ direction).var(ddof=1)) / n_others if n_others > 1 else 0.0
    return mean, (max(of_careful, _FLOOR * q * (1.0 - q) * direction[0] ** 2 / n), of_cheap), power


def pooled(classes: IntArray, prompts: IntArray, labelled: BoolArray) -> IntArray:
    """Number the strata of prompt and class, `[N]`; one with fewer than five careful labels joins the next.

    A prompt's last joins those before it: whatever its labels, a prompt has a stratum of its own.
    """
    joined, new = np.zeros_like(classes), -1
    for prompt in np.unique(prompts):
        new, first, n = new + 1, new + 1, 0
        for h in np.unique(classes[prompts == prompt]):
            if n >= FEWEST_OF_STRATUM:
                new, n = new + 1, 0
            texts = (prompts == prompt) & (classes == h)
            joined[texts], n = new, n + int(labelled[texts].sum())
        if n < FEWEST_OF_STRATUM and new > first:
            new -= 1
            joined[joined > new] = new
    return joined
