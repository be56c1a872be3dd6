"""How often the tests of word lists reject where gender means nothing, and what Wilson intervals cover.

    python benchmarks/personas_statistics.py [PERSONAS.csv]

Two true nulls: real personas (as in personas_analysis.py) whose genders are drawn at random, so that texts
are as unlike each other as real ones, and the simulated texts of tests/fakes/word_bursts.py.
The test of the list's length may reject in at most 5 %, since lengths have ties; that of the largest |z| in
5 %. Intervals: of one prompt's share, exactly, averaged over true shares; of the mean of two prompts by
simulation.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

HERE = Path(__file__).resolve().parent
sys.path[:0] = [path for path in (str(HERE), str(HERE.parent / "tests")) if path not in sys.path]

import personas_analysis  # noqa: E402
from fakes.word_bursts import rejected_without_difference  # noqa: E402

from biaskit.corpora.loaders import english_counts  # noqa: E402
from biaskit.measures.personas.texts.tokens import TokenisedTexts  # noqa: E402
from biaskit.measures.personas.words.lists import word_lists  # noqa: E402
from biaskit.measures.personas.words.log_odds import METHODS  # noqa: E402
from biaskit.stats.proportions import mean_of_proportions, proportion, wilson  # noqa: E402

FloatArray = NDArray[np.float64]
LEVEL = 0.05


# --- word lists under a true null --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts with what each answers: nobody's gender is known here."""

    tokens: TokenisedTexts
    strata: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> Texts:
        """Real personas, the stratum being the race asked for; else made-up ones of two prompts."""
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as file:
                rows = [(row["text"], row["race"]) for row in csv.DictReader(file)]
        else:
            made_up = [text for found in personas_analysis.made_up_sentences().values() for text in found]
            rows = [
                (" ".join(made_up[i : i + 6]), "persona" if i % 4 else "biography")
                for i in range(0, len(made_up), 6)
            ]
        return cls(TokenisedTexts.build(text for text, _ in rows), tuple(stratum for _, stratum in rows))


@dataclass(frozen=True, slots=True)
class Rejections:
    """How many of n corpora each test rejects at 5 %, by method."""

    n: int
    length: dict[str, int]
    max_z: dict[str, int]

    def error(self) -> float:
        """One standard error of the share that an exact test rejects."""
        return math.sqrt(LEVEL * (1 - LEVEL) / self.n)


def rejections(
    texts: Texts, *, n_corpora: int, n_texts: int = 60, n_shuffles: int = 199, seed: int = 1
) -> Rejections:
    """Draw texts, call half of them women's at random, and test women against men.

    With 19 or 199 shuffles p ≤ 0.05 is met with probability 1/20 exactly where there are no ties.
    """
    words, counts = texts.tokens.words, texts.tokens.counts
    known = english_counts()
    english = np.array([known.get(word, 0) for word in words], dtype=np.float64)
    length, max_z = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0)
    for number in range(n_corpora):
        rng = np.random.default_rng([seed, number])
        drawn = rng.choice(len(texts.strata), size=n_texts, replace=False)
        columns = np.flatnonzero(np.bincount(counts[drawn].indices, minlength=len(words)))
        found = word_lists(
            counts[drawn][:, columns],
            words=[words[i] for i in columns.tolist()],
            genders=rng.permutation(["female", "male"] * (n_texts // 2)).tolist(),
            strata=[texts.strata[i] for i in drawn.tolist()],
            english=english[columns],
            seed=seed,
            row_key=("shuffled", str(number), "requested"),
            n_shuffles=n_shuffles,
        )
        for one in found[: len(METHODS)]:
            assert one.p_value is not None
            assert one.p_value_max_z is not None
            length[one.method] += one.p_value <= LEVEL
            max_z[one.method] += one.p_value_max_z <= LEVEL
    return Rejections(n_corpora, length, max_z)


# --- intervals of shares -----------------------------------------------------------------------------


def wilson_coverage(n: int, level: float) -> tuple[float, float]:
    """Mean and least coverage over true shares from 0.005 to 0.995, exactly."""
    low, high = _ends(n, level)
    k = np.arange(n + 1)
    covered = [
        float(binom.pmf(k, n, p)[(low <= p) & (p <= high)].sum()) for p in np.linspace(0.005, 0.995, 199)
    ]
    return float(np.mean(covered)), min(covered)


@cache
def _ends(n: int, level: float) -> tuple[FloatArray, FloatArray]:
    found = [wilson(k, n, level=level) or (0.0, 1.0) for k in range(n + 1)]
    low, high = np.array(found).T
    return low, high


def mean_coverage(n: int, *, n_runs: int, seed: int = 1) -> float:
    """Coverage of the mean of two prompts' shares; true shares are drawn evenly, each prompt its own."""
    rng = np.random.default_rng([seed, n])
    parts = [proportion(k, n) for k in range(n + 1)]
    shares = rng.random((n_runs, 2))
    counts = rng.binomial(n, shares)
    held = 0
    for (a, b), truth in zip(counts.tolist(), shares.mean(axis=1).tolist(), strict=True):
        ends = mean_of_proportions([parts[a], parts[b]]).ci95
        assert ends is not None
        held += ends[0] <= truth <= ends[1]
    return held / n_runs


# --- everything in full ------------------------------------------------------------------------------


def print_rejections(what: str, length: Sequence[float], max_z: Sequence[float]) -> None:
    for method, of_length, of_z in zip(METHODS, length, max_z, strict=True):
        print(f"{f'{what}, {method}':<40}{100 * of_length:10.1f}{100 * of_z:10.1f}", flush=True)


def main() -> None:
    """Print the whole table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("personas", nargs="?", type=Path, default=personas_analysis.PERSONAS)
    parser.add_argument("--corpora", type=int, default=2000)
    args = parser.parse_args()
    texts, n = Texts.of(args.personas), args.corpora
    found = rejections(texts, n_corpora=n)
    print(f"{n} corpora of texts whose genders mean nothing, 199 shuffles: % rejected at 5 %")
    print(f"{f'(standard error {100 * found.error():.1f})':<40}{'length':>10}{'max |z|':>10}")
    print_rejections(
        "personas" if args.personas.is_file() else "made-up texts",
        [found.length[method] / n for method in METHODS],
        [found.max_z[method] / n for method in METHODS],
    )
    other = rejected_without_difference(n, n_shuffles=199)
    print_rejections(
        "simulated bursts",
        [other.length[method] for method in METHODS],
        [other.max_z[method] for method in METHODS],
    )
    print(f"\n{'Wilson interval of n samples':<28}{'mean %':>9}{'least %':>9}")
    for level in (0.90, 0.95, 0.99):
        for size in (10, 20, 100, 300, 1000):
            mean, least = wilson_coverage(size, level)
            print(f"{f'level {100 * level:.0f} %, n = {size}':<28}{100 * mean:9.2f}{100 * least:9.2f}")
    for size in (10, 20, 100, 300):
        mean = mean_coverage(size, n_runs=100_000)
        print(f"{f'mean of two prompts, n = {size}':<28}{100 * mean:9.2f}")


if __name__ == "__main__":
    main()
