"""Rows of changes.csv and changed_prompts.csv that all kinds make alike (methods/comparisons#change)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from biaskit.common.foreign import is_formula
from biaskit.compare.pairs import SidePair, model_pairs
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.changes import answers
from biaskit.tables.io import columns
from biaskit.tables.query import Row

CHANGES = ("changes", "changed_prompts")
LARGEST = 5
"""So many of the largest changes are listed beside every flip."""
MOST_MODELS = 5
"""Of more models each is held against the first alone: every flip of every pair would be millions of rows."""


@dataclass(frozen=True)
class Matched:
    """Shares `[groups, ...]` of the same prompts before and after; which answers changed, `[...]`."""

    before: FloatArray
    after: FloatArray
    groups: Sequence[str]
    contrast: Sequence[str]  # two of them; the first's share is what changes
    zone: float  # of ties

    @cached_property
    def answers(self) -> tuple[IntArray, IntArray]:
        """The most probable group of each prompt, before and after."""
        return answers(self.before, self.zone)[0], answers(self.after, self.zone)[0]

    @cached_property
    def near_tie(self) -> BoolArray:
        """Whether another answer is near a tie, before or after."""
        near = answers(self.before, self.zone)[1] | answers(self.after, self.zone)[1]
        return self._changed & near

    @cached_property
    def flips(self) -> BoolArray:
        """Whether another answer is not near a tie."""
        return self._changed & ~self.near_tie

    @property
    def _changed(self) -> BoolArray:
        old, new = self.answers
        changed: BoolArray = old != new
        return changed

    @property
    def change(self) -> FloatArray:
        """Change of the share of the contrast's first group."""
        first = self.groups.index(self.contrast[0])
        change: FloatArray = self.after[first] - self.before[first]
        return change

    def counts(self) -> dict[str, Any]:
        """Count flips, to each group and between the two of the contrast, and changes near a tie."""
        old, new = (answer[self.flips] for answer in self.answers)
        first, second = self.contrast
        one, other = map(self.groups.index, self.contrast)
        row: dict[str, Any] = {"n_flips": new.size, "flips": new.size / self.flips.size}
        for k, group in enumerate(self.groups):
            row[f"to_{group}"] = int((new == k).sum())
        row[f"{second}_to_{first}"] = int(((old == other) & (new == one)).sum())
        row[f"{first}_to_{second}"] = int(((old == one) & (new == other)).sum())
        return row | {"n_near_tie": int(self.near_tie.sum())}

    def listed(self) -> Iterator[tuple[tuple[int, ...], Row]]:
        """Yield the place and the row of every other answer and of the largest changes, those first."""
        change = self.change
        size = np.abs(change)
        in_order = [tuple(map(int, place)) for place in np.argwhere(size >= 0)]
        in_order.sort(key=lambda place: -size[place])
        chosen = dict.fromkeys(islice(in_order, LARGEST))
        chosen |= dict.fromkeys(place for place in in_order if self._changed[place])
        sides = [*zip(("before", "after"), self.answers, (self.before, self.after), strict=True)]
        for place in chosen:
            row: dict[str, Any] = {"near_tie": bool(self.near_tie[place]), "change": change[place]}
            for name, answer, shares in sides:
                row[f"answer_{name}"] = self.groups[answer[place]]
                row |= {
                    f"{group}_{name}": share[place] for group, share in zip(self.groups, shares, strict=True)
                }
            yield place, row


def pairs_of(models: Sequence[str]) -> Iterator[SidePair]:
    """Pair every model with every earlier one, or with the first where there are more than `MOST_MODELS`."""
    for later, earlier in model_pairs(models):
        if len(models) <= MOST_MODELS or earlier.name == models[0]:
            yield later, earlier


def shown_prompt(*texts: str) -> str:
    """Write a prompt in one line that no spreadsheet runs."""
    line = " ".join(" ".join(texts).split())
    return f"“{line}”" if is_formula(line) else line


def completed(name: str, rows: Sequence[Row], groups: Sequence[str], contrast: tuple[str, str]) -> list[Row]:
    """Fill up rows of one of `CHANGES` with the columns that they lack, and those of other groups."""
    names = [column.name for column in columns(name, groups=groups, contrast=contrast)]
    return [dict(zip(names, map(row.get, names), strict=True)) for row in rows]
