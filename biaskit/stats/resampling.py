"""Bootstraps and shuffles, each row's from a generator of its own so that none moves another's numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biaskit.common.provenance import first_name
from biaskit.stats.arrays import FloatArray

N_RESAMPLES = 2_000


def generator(study_seed: int, table: str, row_key: Sequence[object]) -> np.random.Generator:
    """Make the generator of one row: PCG64 seeded by SHA-256 of (study seed, table, row key).

    Adding a model, a job or a row therefore changes no other number (methods/index#random-numbers).
    """
    named = [first_name(part) if isinstance(part, str) else part for part in row_key]
    text = json.dumps([study_seed, table, named], separators=(",", ":"))
    digest = hashlib.sha256(text.encode("ascii")).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


def shuffled_within(
    strata: Sequence[str], labels: NDArray[Any], rng: np.random.Generator, n: int
) -> NDArray[Any]:
    """Shuffle labels within strata n times, `[n, documents]`; the order of documents counts."""
    shuffled, names = np.tile(labels, (n, 1)), np.asarray(strata, dtype=object)
    for stratum in sorted(set(strata)):
        members = np.flatnonzero(names == stratum)
        # Labels as wide as a machine word move fastest.
        shuffled[:, members] = rng.permuted(shuffled[:, members].astype(np.intp), axis=1)
    return shuffled


def crossed_bootstrap(
    values: FloatArray, *, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray] | None:
    """Find the 95 % percentile interval of a mean, jobs and templates both resampled.

    Formula: I jobs and J templates drawn with replacement, n times; the mean of the drawn rows and columns;
        numpy's linear percentiles of the n means. All tables in front are under the same draws.
    None without cells and with one job and one template; with one job (one template) only templates (jobs)
    are resampled.
    Reference: methods/averages#bootstrap-intervals, `interval = bootstrap`; checked against plain loops. Too
        short with few templates: 90 % at 5, 83 % at 3.
    """
    n_jobs, n_templates = values.shape[-2:]
    if n_jobs * n_templates < 2:
        return None
    jobs, templates = _drawn(rng, n_jobs), _drawn(rng, n_templates)
    means = ((jobs @ values) * templates).sum(axis=-1) / (n_jobs * n_templates)
    low, high = np.quantile(means, [0.025, 0.975], axis=-1)
    return low, high


def _drawn(rng: np.random.Generator, n: int) -> FloatArray:
    """Count how often each of n levels is drawn in each resample: `[N_RESAMPLES, n]`."""
    picks = rng.integers(0, n, size=(N_RESAMPLES, n)) + n * np.arange(N_RESAMPLES)[:, None]
    return np.bincount(picks.ravel(), minlength=n * N_RESAMPLES).reshape(N_RESAMPLES, n).astype(np.float64)
