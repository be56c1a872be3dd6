"""How often intervals over pairs of sentences contain the truth, and how many pages find what is not there.

    python benchmarks/pair_worlds.py [WORLDS]

Each world samples stereotypes, items and languages anew; a pair's log-ratio is the sum of what each adds, and
what the stereotype adds on the side that it expects. The tables are those of `biaskit pairs`.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from biaskit.measures.pairs.analysis import group_rows, score_of
from biaskit.records import SentencePair
from biaskit.stats.clustered import FEWEST_LANGUAGES, FEWEST_STEREOTYPES
from biaskit.stats.contrasts import adjust
from biaskit.tables.query import first, where

N_WORLDS = 1_000
LEAN = -0.5  # men's sentences are the more probable ones
NODES = np.polynomial.hermite_e.hermegauss(60)


@dataclass(frozen=True, slots=True)
class World:
    """Items of each stereotype of women and of men, languages; and in log-odds what each varies by."""

    women: tuple[int, ...]
    men: tuple[int, ...]
    n_languages: int
    effect: float  # between the two sides that stereotypes expect
    stereotype: float = 0.7
    item: float = 1.0
    pair: float = 1.0

    @property
    def language(self) -> float:
        """Fewer than four languages are no sample of languages: the truth is of these."""
        return 0.5 if self.n_languages >= FEWEST_LANGUAGES else 0.0

    @property
    def within(self) -> float:
        """A stereotype acts in each language in a way of its own."""
        return self.language

    def mean(self, centre: float, *parts: float) -> float:
        """The mean share about a centre, over what varies."""
        nodes, weights = NODES
        return float((expit(centre + math.hypot(*parts) * nodes) * weights).sum() / weights.sum())

    def truth(self) -> dict[str, float]:
        """The gap and the rate over all stereotypes, items and languages that there could be."""
        parts = (self.stereotype, self.item, self.pair, self.language, self.within)
        women, men = (self.mean(LEAN + side * self.effect / 2, *parts) for side in (1, -1))
        spread = math.hypot(*parts)
        rates = ndtr((LEAN + self.effect / 2) / spread), ndtr(-(LEAN - self.effect / 2) / spread)
        sides = len(self.women), len(self.men)  # each stereotype has the same weight
        share, rate = (float(np.average(of_sides, weights=sides)) for of_sides in ((women, men), rates))
        return {"gap": women - men, "female_share": share, "expected_rate": rate}

    def sample(self, rng: np.random.Generator) -> tuple[list[SentencePair], np.ndarray, np.ndarray]:
        """The pairs, their log-ratios, and the mean share of each stereotype."""
        sizes = (*self.women, *self.men)
        s, i, k = len(sizes), max(sizes), self.n_languages
        side = np.where(np.arange(s) < len(self.women), 1, -1)
        of_stereotype = LEAN + side * self.effect / 2 + self.stereotype * rng.standard_normal(s)
        languages = self.language * rng.standard_normal(k)
        within = self.within * rng.standard_normal((s, 1, k))
        items = self.item * rng.standard_normal((s, i, 1))
        ratios = of_stereotype[:, None, None] + languages + within + items
        ratios = ratios + self.pair * rng.standard_normal((s, i, k))
        parts = (self.item, self.pair, self.language, self.within)
        pairs = [
            SentencePair(
                *(f"{a}-{b}", "x", "y"),
                stereotype=f"s{a}",
                direction="female" if side[a] > 0 else "male",
                language=f"l{c}",
            )
            for a in range(s)
            for b in range(sizes[a])
            for c in range(k)
        ]
        ratios = ratios[np.arange(i) < np.array(sizes)[:, None]]
        return pairs, ratios.ravel(), np.array([self.mean(centre, *parts) for centre in of_stereotype])


EVEN = [  # stereotypes, items of each, languages, effect
    *((12, 3, 1, 1.0), (12, 10, 1, 1.0), (16, 30, 1, 1.0), (12, 3, 4, 1.0), (12, 3, 4, 0.0)),
    *((12, 10, 4, 1.0), (16, 10, 8, 1.0), (6, 30, 1, 1.0), (6, 10, 1, 1.0), (12, 10, 2, 1.0)),
    *((12, 10, 2, 0.0), (6, 10, 1, 0.0), (12, 10, 1, 0.0), (16, 10, 8, 0.0)),
]
UNEVEN = [  # items of the stereotypes of women, and of men
    ((200, 5, 5, 5, 5, 5), (200, 5, 5, 5, 5, 5)),
    ((60, 30, 15, 8, 4, 2), (60, 30, 15, 8, 4, 2)),
    ((10, 10, 10), (10,) * 10),
    ((10, 10), (10,) * 10),
    ((10, 10), (10, 10)),
]
WORLDS = [
    *(World((n,) * (s // 2), (n,) * (s // 2), k, effect) for s, n, k, effect in EVEN),
    *(World(*sizes, 1, effect) for sizes in UNEVEN for effect in (1.0, 0.0)),
]


def analysed(pairs: list[SentencePair], ratios: np.ndarray) -> dict[str, list[dict[str, Any]]]:
    """The tables of a model with these log-ratios."""
    log_odds = np.column_stack([-np.logaddexp(0, -ratios), -np.logaddexp(0, ratios)])
    scores = []
    for pair, (women, men) in zip(pairs, log_odds.tolist(), strict=True):
        said = [{"group": "female", "log_prob": women}, {"group": "male", "log_prob": men}]
        scores.append(score_of(pair, said) | {"model": "m", "estimator": "exact"})
    groups, tests = group_rows(scores, {"share": 0.05})
    return {"pair_scores": scores, "pair_groups": groups, "tests": adjust(tests)}


def simulate(world: World, n_worlds: int) -> dict[str, float]:
    """The part of the worlds whose intervals contain the truth, and of pages that name a direction."""
    truth, named = world.truth(), 0
    ends = {"gap": "gap", "female_share": "ci", "expected_rate": "expected"}
    if min(len(world.women), len(world.men)) < FEWEST_STEREOTYPES:
        del ends["gap"]  # of these stereotypes alone, and says so
    held: dict[str, list[bool]] = {}
    widths = []
    for seed in range(n_worlds):
        pairs, ratios, of_stereotypes = world.sample(np.random.default_rng(seed))
        tables = analysed(pairs, ratios)
        whole = first(tables["pair_groups"], language="all", stereotype="all")
        assert whole is not None
        for name, end in ends.items():
            low, high = whole[f"{end}_low"], whole[f"{end}_high"]
            held.setdefault(name, []).append(low <= truth[name] <= high)
        widths.append(whole["gap_high"] - whole["gap_low"])
        for row in where(tables["pair_groups"], language="all"):
            if row["stereotype"] != "all" and row["ci_low"] is not None:
                share = of_stereotypes[int(row["stereotype"][1:])]
                held.setdefault("a stereotype", []).append(row["ci_low"] <= share <= row["ci_high"])
        named += any(row["verdict"] in ("higher", "lower") for row in tables["tests"])
    found = {name: 100 * float(np.mean(values)) for name, values in held.items()}
    return {**found, "width of the gap": 100 * float(np.mean(widths)), "pages": 100 * named / n_worlds}


def main() -> None:
    """Print a line for each world."""
    n_worlds = int(sys.argv[1]) if len(sys.argv) > 1 else N_WORLDS
    print(
        "stereotypes items languages effect: gap (from 3 + 3 stereotypes), mean, rate, a stereotype: coverage"
        " in %; width; pages in %"
    )
    for world in WORLDS:
        found = simulate(world, n_worlds)
        numbers = " ".join(f"{value:6.1f}" for value in found.values())
        even = len({*world.women, *world.men}) == 1
        items = str(world.women[0]) if even else "-".join(map(str, world.women))
        stereotypes = f"{len(world.women)}+{len(world.men)}"
        print(f"{stereotypes:5} {items:12} {world.n_languages:3} {world.effect:4} {numbers}", flush=True)


if __name__ == "__main__":
    main()
