"""What is said of a change from one model to another, in worlds whose change is known.

    python benchmarks/change_worlds.py [WORLDS]

Each world samples jobs and templates anew. The log-odds of a prompt are the sum of what job, template and
cell add, before and after; the change has a mean and a spread of its own over jobs, templates and cells. The
truth is that of all jobs and templates that there could be, by 4 million draws. In %; samples: texts of a
prompt that name a group.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest

from biaskit.compare.changes import Change
from biaskit.runs.sample_batches import ENOUGH
from biaskit.stats.arrays import FloatArray
from biaskit.stats.changes import (
    TIE_ZONE,
    flip_interval,
    is_separable,
    mean_of_sizes,
    squares_without_noise,
)
from biaskit.stats.crossed import crossed_test, share_interval, spread_of_mean
from biaskit.stats.proportions import wilson

N_WORLDS = 1_000
N_DRAWS = 4_000_000
GROUPS = ("female", "male")


@dataclass(frozen=True)
class World:
    """Sizes, and what jobs, templates and cells add on the logit scale: to shares, and to the change (SD)."""

    name: str
    n_jobs: int
    n_templates: int
    change: tuple[float, float, float]
    mean: float = 0.0  # of the change
    centre: float = -0.5
    spread: tuple[float, float, float] = (1.5, 0.5, 0.5)

    def sample(self, rng: np.random.Generator, n_jobs: int, n_templates: int) -> Change:
        """Shares of women and of men before and after."""
        before = self.centre + _effects(rng, self.spread, n_jobs, n_templates)
        after = before + self.mean + _effects(rng, self.change, n_jobs, n_templates)
        shares = [np.stack([expit(side), expit(-side)]) for side in (before, after)]
        return Change(*shares, GROUPS, GROUPS, TIE_ZONE)

    def worlds(self, n: int) -> Iterator[tuple[np.random.Generator, Change]]:
        """The worlds, each with what samples of it are drawn by."""
        for number in range(n):
            rng = np.random.default_rng([number, self.n_jobs, self.n_templates])
            yield rng, self.sample(rng, self.n_jobs, self.n_templates)

    @cached_property
    def truth(self) -> tuple[float, float, float]:
        """The rate of flips, the mean absolute change and the typical change over all that there could be."""
        every = self.sample(np.random.default_rng(0), N_DRAWS, 1)
        size = np.abs(every.sides[1] - every.sides[0])
        return float(every.answers[2].mean()), float(size.mean()), float(np.sqrt(np.square(size).mean()))


def _effects(
    rng: np.random.Generator, sd: tuple[float, float, float], n_jobs: int, n_templates: int
) -> FloatArray:
    """What jobs, templates and cells add `[I, J]`; with one template each job has one of its own."""
    of_job, of_template, of_cell = sd
    templates = (n_jobs, 1) if n_templates == 1 else (1, n_templates)
    made: FloatArray = rng.normal(0, of_job, (n_jobs, 1)) + rng.normal(0, of_template, templates)
    return made + rng.normal(0, of_cell, (n_jobs, n_templates))


EXACT = (
    World("none", 20, 10, (0.0, 0.0, 0.0)),
    World("rare, of cells", 20, 10, (0.0, 0.0, 0.15)),
    World("rare, of jobs", 20, 10, (0.2, 0.05, 0.1)),
    World("some, of cells", 20, 10, (0.1, 0.1, 0.6)),
    World("some, of jobs", 20, 10, (0.8, 0.2, 0.3)),
    World("some, of templates", 20, 10, (0.2, 0.8, 0.3)),
    World("many, of all", 20, 10, (1.0, 0.8, 1.0)),
    World("many, to one side", 20, 10, (0.8, 0.6, 0.6), mean=1.0),
    World("rare, of jobs", 40, 20, (0.2, 0.05, 0.1)),
    World("some, of jobs", 40, 20, (0.8, 0.2, 0.3)),
    World("some, of templates", 40, 20, (0.2, 0.8, 0.3)),
    World("many, of all", 40, 20, (1.0, 0.8, 1.0)),
)


def held_by(world: World, n: int) -> tuple[dict[str, list[bool]], float]:
    """Whether each interval holds the truth, world by world, and the mean rate of flips."""
    rate, absolute, _ = world.truth
    held: dict[str, list[bool]] = {"flips": [], "wilson": [], "logit": [], "absolute": []}
    seen = []
    for _, change in world.worlds(n):
        flips = change.answers[2].astype(np.float64)
        seen.append(flips.mean())
        low, high, _ = flip_interval(float(flips.mean()), flips, flips.size)
        held["flips"].append(low is not None and high is not None and low <= rate <= high)
        ends = wilson(int(flips.sum()), flips.size)
        held["wilson"].append(ends is not None and ends[0] <= rate <= ends[1])
        spread = spread_of_mean(flips)
        below, above = share_interval(float(flips.mean()), spread.variance, spread.dof)  # type: ignore[arg-type]
        held["logit"].append(bool(below <= rate <= above))
        _, below, above = mean_of_sizes(np.abs(change.sides[1] - change.sides[0]))
        held["absolute"].append(below is not None and above is not None and below <= absolute <= above)
    return held, float(np.mean(seen))


def exact_line(world: World, n: int) -> str:
    """How often each interval holds the truth."""
    (rate, absolute, _), (held, seen) = world.truth, held_by(world, n)
    shown = "".join(f"{100 * np.mean(of):9.1f}" for of in held.values())
    size = f"{world.n_jobs:3} × {world.n_templates:<3}"
    return f"{world.name:20}{size}{100 * rate:7.1f}{100 * seen:7.1f}{shown}{100 * absolute:8.1f}"


# --- the direction of flips -----------------------------------------------------------------------

SIDES = (
    World("a mean change of 0", 20, 10, (0.3, 0.1, 0.5), centre=-1.0),
    World("a mean change of 0", 20, 10, (0.8, 0.3, 0.5), centre=-1.0),
    World("a mean change of 0", 40, 20, (0.8, 0.3, 0.5), centre=-2.0),
    World("a true change", 20, 10, (0.5, 0.2, 0.5), mean=0.4, centre=0.0),
)


def side_line(world: World, n: int) -> str:
    """How often tests of the flips' direction, and the test of the mean log-odds, find one."""
    found: dict[str, list[bool]] = {"binomial": [], "signs": [], "crossed": [], "mean": []}
    for rng, change in world.worlds(n):
        _, new, flips, _ = change.answers
        to_first = np.where(flips, np.where(new == 0, 1.0, -1.0), 0.0)
        n_first, n_flips = int((to_first > 0).sum()), int(flips.sum())
        found["binomial"].append(n_flips > 0 and binomtest(n_first, n_flips).pvalue < 0.05)
        of_jobs = to_first.mean(axis=1)
        signs = rng.choice((-1.0, 1.0), (999, len(of_jobs)))
        reaching = np.abs((signs * of_jobs).mean(axis=1)) >= abs(of_jobs.mean()) - 1e-12
        found["signs"].append((1 + reaching.sum()) / 1000 < 0.05)
        found["crossed"].append(_p(to_first) < 0.05)
        found["mean"].append(_p(change.sides[1] - change.sides[0]) < 0.05)
    shown = "".join(f"{100 * np.mean(of):9.1f}" for of in found.values())
    return f"{world.name:20}{world.n_jobs:3} × {world.n_templates:<3}{shown}"


def _p(values: FloatArray) -> float:
    p = crossed_test(float(values.mean()), spread_of_mean(values)).p_value
    return 1.0 if p is None else float(p)


# --- samples --------------------------------------------------------------------------------------

Draw = Callable[[np.random.Generator, FloatArray], tuple[FloatArray, FloatArray]]
"""Shares → what samples say of them, and how many name a group."""


def of_size(n: int) -> Draw:
    """Draw `n` texts of each prompt."""
    return lambda rng, shares: (rng.binomial(n, shares) / n, np.full(shares.shape, float(n)))


def in_batches(rng: np.random.Generator, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Draw batches of 10 texts, of which 30 % name a group, until enough do; at most 10 batches."""
    n = rng.binomial(10, 0.3, shares.shape)
    for _ in range(9):
        n = np.where(n < ENOUGH, n + rng.binomial(10, 0.3, shares.shape), n)
    with np.errstate(invalid="ignore"):
        return rng.binomial(n, shares) / n, n.astype(np.float64)


SAMPLED: tuple[tuple[World, str, Draw], ...] = tuple(
    (world, name, draw)
    for world in (
        World("nothing", 20, 10, (0.0, 0.0, 0.0)),
        World("nothing", 40, 20, (0.0, 0.0, 0.0)),
        World("some, of jobs", 20, 10, (0.5, 0.2, 0.3)),
        World("many, of all", 20, 10, (1.0, 0.6, 0.8)),
    )
    for name, draw in (("10 texts", of_size(10)), ("20 texts", of_size(20)), ("in batches", in_batches))
)


def seen_in(world: World, draw: Draw, n: int) -> list[float]:
    """What samples show of the change: naively, and without their noise."""
    flips, absolute, less, squares, separable = [], [], [], [], []
    for rng, change in world.worlds(n):
        (before, n_before), (after, n_after) = (draw(rng, side[0]) for side in (change.before, change.after))
        known = np.isfinite(before + after)
        flips.append(((before > 0.5) != (after > 0.5))[known].mean())
        absolute.append(np.abs(after - before)[known].mean())
        p = (before + after) / 2
        noise = np.sqrt(p * (1 - p) * (1 / n_before + 1 / n_after) * 2 / np.pi)
        less.append((np.abs(after - before) - noise)[known].mean())
        with np.errstate(invalid="ignore", divide="ignore"):
            found = squares_without_noise(before, after, (1 / n_before, 1 / n_after))
        squares.append(np.nanmean(found))
        separable.append(bool(is_separable(found)[0]))
    _, true_absolute, typical = world.truth
    shown = [np.mean(flips), np.mean(absolute), true_absolute, np.mean(less)]
    shown += [typical, np.sqrt(max(np.mean(squares), 0.0)), np.mean(separable)]
    return list(map(float, shown))


def sampled_line(world: World, name: str, draw: Draw, n: int) -> str:
    """Write the same."""
    shown = seen_in(world, draw, n)
    size = f"{world.n_jobs:3} × {world.n_templates:<3}"
    return f"{world.name:16}{size}{name:>12}" + "".join(f"{100 * value:11.1f}" for value in shown)


def main(n: int) -> None:
    """Print three tables."""
    print(
        "exact: how often 95 % intervals hold the truth; Wilson's over prompts, the logit interval: not used"
    )
    heads = ("interval", "Wilson", "logit", "|change|")
    print(
        f"{'changed':20}  size   {'flips':>8}{'seen':>7}"
        + "".join(f"{head:>9}" for head in heads)
        + "    true"
    )
    for world in EXACT:
        print(exact_line(world, n), flush=True)
    print("\ntests of the flips' direction find one (none is made)")
    print(f"{'log-odds':20}  size  {'binomial':>9}{'signs':>9}{'crossed':>9}{'mean':>9}")
    for world in SIDES:
        print(side_line(world, n), flush=True)
    print("\nsamples: flips and |change| as seen, |change| less its expected noise, and the typical change")
    heads = ("flips", "|change|", "true", "less noise", "typical", "found", "separable")
    print(f"{'changed':16}  size  {'':>12}" + "".join(f"{head:>11}" for head in heads))
    for world, name, draw in SAMPLED:
        print(sampled_line(world, name, draw, n), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else N_WORLDS)
