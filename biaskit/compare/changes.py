"""What changed between two models that were asked the same, prompt by prompt (methods/comparisons#change)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from biaskit.common.foreign import is_formula
from biaskit.common.wording import ROUNDING, joined
from biaskit.compare.pairs import SidePair, model_pairs
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.changes import flip_interval, is_separable, mean_of_sizes, squares_without_noise
from biaskit.tables.io import columns
from biaskit.tables.query import Row

CHANGES = ("changes", "changed_prompts")
ZONE = "tie_zone"
"""Among margins: how far apart the two most probable groups of a prompt are nearly a tie."""
LARGEST, MOST_MODELS = 5, 5
"""Changes that are listed beside every other answer, and models of which every pair is."""
OF_SAMPLES = "sampling: single answers cannot be compared"


@dataclass(frozen=True)
class Change:
    """Shares `[groups, I, J]` of the same prompts before and after."""

    before: FloatArray
    after: FloatArray
    groups: Sequence[str]
    contrast: Sequence[str]  # two of them; the share of the first is what changes
    zone: float  # of ties
    inverse: tuple[FloatArray | None, FloatArray | None] = (None, None)  # 1/n of sampled shares `[I, J]`
    frames: Sequence[Sequence[int]] = ()  # places of the templates that are one unit; none: each its own

    @cached_property
    def answers(self) -> tuple[IntArray, IntArray, BoolArray, BoolArray]:
        """The most probable group before and after; which answers flip, and which are near a tie."""
        *_, second, largest = np.sort([self.before, self.after], axis=1).swapaxes(0, 1)
        near: BoolArray = (largest - second).min(axis=0) <= self.zone + ROUNDING
        old, new = self.before.argmax(axis=0), self.after.argmax(axis=0)
        return old, new, (old != new) & ~near, near

    @property
    def sides(self) -> tuple[FloatArray, FloatArray]:
        """The share of the contrast's first group, before and after."""
        first = self.groups.index(self.contrast[0])
        return self.before[first], self.after[first]

    @property
    def is_sampled(self) -> bool:
        """Whether a side's shares were counted."""
        return self.inverse[0] is not None or self.inverse[1] is not None

    def counts(self) -> dict[str, Any]:
        """Count flips, to each group and between the two of the contrast, and changes near a tie."""
        old, new, flips, near = self.answers
        row: dict[str, Any] = {"n_prompts": flips.size, "n_flips": int(flips.sum()), "flips": flips.mean()}
        for k, group in enumerate(self.groups):
            row[f"to_{group}"] = int((flips & (new == k)).sum())
        for one, other in (self.contrast, self.contrast[::-1]):
            is_this = (old == self.groups.index(one)) & (new == self.groups.index(other))
            row[f"{one}_to_{other}"] = int((flips & is_this).sum())
        return row | {"n_near_tie": int(((old != new) & near).sum()), ZONE: self.zone}

    def numbers(self) -> tuple[dict[str, Any], str | None]:
        """Count and test over jobs and templates all of a row but the mean change; also returns a reason."""
        squares = self.by_frame(squares_without_noise(*self.sides, self.inverse))
        if np.isnan(squares).all():
            return {}, joined([OF_SAMPLES, "no prompt with two samples of both that name a group"])
        row: dict[str, Any] = {"typical_change": math.sqrt(max(float(np.nanmean(squares)), 0.0))}
        if self.is_sampled:
            row["separable"], reason = is_separable(squares)
            return row, joined([OF_SAMPLES, reason])
        before, after = self.sides
        absolute = mean_of_sizes(self.by_frame(np.abs(after - before)))
        row["mean_absolute_change"], row["mean_absolute_low"], row["mean_absolute_high"] = absolute
        for name, end in zip(("typical_low", "typical_high"), mean_of_sizes(squares)[1:], strict=True):
            row[name] = None if end is None else math.sqrt(end)
        flips, row = self.answers[2], row | self.counts()
        of_flips = flip_interval(row["flips"], self.by_frame(flips.astype(np.float64)), flips.size)
        row["flips_low"], row["flips_high"], reason = of_flips
        of_jobs = replace(self, before=self.before.mean(axis=-1), after=self.after.mean(axis=-1))
        return row | {"n_jobs_flipped": int(of_jobs.answers[2].sum())}, reason

    def by_frame(self, values: FloatArray) -> FloatArray:
        """Average the templates of each frame `[..., I, J]`."""
        means = [values[..., places].mean(axis=-1) for places in self.frames]
        return np.stack(means, axis=-1) if means else values

    def listed(self) -> Iterator[tuple[tuple[int, ...], Row]]:
        """Yield place and row of the largest changes and of every other answer, by size."""
        old, new, _, near = self.answers
        change = self.sides[1] - self.sides[0]
        places = zip(*np.unravel_index(np.argsort(-np.abs(change), axis=None), change.shape), strict=True)
        for rank, place in enumerate(places):
            if rank < LARGEST or old[place] != new[place]:
                row: dict[str, Any] = {"near_tie": bool(near[place]), "change": change[place]}
                for name, answer, shares in (("before", old, self.before), ("after", new, self.after)):
                    row[f"answer_{name}"] = self.groups[answer[place]]
                    for group, share in zip(self.groups, shares, strict=True):
                        row[f"{group}_{name}"] = share[place]
                yield place, row


def pairs_of(models: Sequence[str], most: int = MOST_MODELS) -> Iterator[SidePair]:
    """Pair every model with every earlier one; of more than `most` with the first and with namesakes."""
    for later, earlier in model_pairs(models):
        same = later.name.partition(" (")[0] == earlier.name.partition(" (")[0]
        if len(models) <= most or earlier.name == models[0] or same:
            yield later, earlier


def shown_prompt(*texts: str) -> str:
    """Write a prompt in one line that no spreadsheet runs."""
    line = " ".join(" ".join(texts).split())
    return f"“{line}”" if is_formula(line) else line


def completed(name: str, rows: Sequence[Row], groups: Sequence[str], contrast: tuple[str, str]) -> list[Row]:
    """Fill up rows of a table with the columns that they lack, and leave out what is none."""
    names = [*map(attrgetter("name"), columns(name, groups=groups, contrast=contrast))]
    return [dict(zip(names, map(row.get, names), strict=True)) for row in rows]
