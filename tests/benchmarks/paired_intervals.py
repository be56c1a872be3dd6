"""How often intervals of a difference of paired proportions hold the truth: Tango's, Newcombe's and Wald's.

    python tests/benchmarks/paired_intervals.py [WORLDS]

Newcombe's is his method 10 (square-and-add with the corrected φ), as docs/methods.md#logs cites it.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy import stats

from biaskit.stats.matched import tango
from biaskit.stats.proportions import wilson

Ends = tuple[float, float]
Z = float(stats.norm.ppf(0.975))


def newcombe(both: int, b: int, c: int, none: int) -> Ends:
    """Newcombe 1998, method 10."""
    n = both + b + c + none
    first, second = wilson(both + b, n), wilson(both + c, n)
    assert first is not None
    assert second is not None
    p, q = (both + b) / n, (both + c) / n
    rows = (both + b) * (c + none) * (both + c) * (b + none)
    cross = both * none - b * c
    phi = 0.0
    if rows:
        phi = (max(cross - n / 2, 0.0) if cross > 0 else cross) / math.sqrt(rows)
    dl1, du1, dl2, du2 = p - first[0], first[1] - p, q - second[0], second[1] - q
    low = math.sqrt(max(dl1**2 - 2 * phi * dl1 * du2 + du2**2, 0))
    high = math.sqrt(max(du1**2 - 2 * phi * du1 * dl2 + dl2**2, 0))
    return p - q - low, p - q + high


def wald(b: int, c: int, n: int) -> Ends:
    """The interval of most scripts."""
    d = (b - c) / n
    half = Z * math.sqrt(max(b + c - (b - c) ** 2 / n, 0)) / n
    return d - half, d + half


def main(worlds: int) -> None:
    """Worlds whose answers are right by a chance of their own, near 1 in half of them."""
    rng = np.random.default_rng(1)
    print(f"{'n':>5}  {'':9} {'mean':>6} {'least':>6} {'length':>7}")
    for n in (20, 50, 200, 1000):
        held: dict[str, list[float]] = {}
        lengths: dict[str, list[float]] = {}
        for _ in range(40):
            right = rng.uniform(0.9, 1) if rng.random() < 0.5 else rng.uniform(0.2, 0.9)
            apart = rng.uniform(0.0, 0.15) * right
            chances = np.array([right - apart, apart, rng.uniform(0, 1 - right), 0.0])
            chances[3] = 1 - chances.sum()
            truth = chances[1] - chances[2]
            inside: dict[str, int] = {}
            for both, b, c, none in rng.multinomial(n, chances, size=worlds).tolist():
                found = {
                    "Tango": tango(b, c, n),
                    "Newcombe": newcombe(both, b, c, none),
                    "Wald": wald(b, c, n),
                }
                for name, (low, high) in found.items():
                    inside[name] = inside.get(name, 0) + (low <= truth <= high)
                    lengths.setdefault(name, []).append(high - low)
            for name, k in inside.items():
                held.setdefault(name, []).append(k / worlds)
        for name, shares in held.items():
            mean, least = np.mean(shares), min(shares)
            print(f"{n:>5}  {name:9} {mean:6.3f} {least:6.3f} {np.mean(lengths[name]):7.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
