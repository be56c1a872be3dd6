"""What changed, prompt by prompt, between two models that were probed (methods/comparisons#change)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biaskit.common.wording import joined
from biaskit.compare.changes import Matched, shown_prompt
from biaskit.compare.comparison import MODELS
from biaskit.compare.same_prompts import SLOT
from biaskit.measures.probe.compare_cells import Answers, asked_alike, common_cells
from biaskit.measures.probe.contrasts import scope_of
from biaskit.records import ALL
from biaskit.stats.arms import BOUNDED, Arm, CrossedCells, complete_in_all, frame_places, rows_of_groups
from biaskit.stats.arrays import FloatArray
from biaskit.stats.changes import flip_interval, is_separable, mean_of_sizes, squares_without_noise
from biaskit.stats.contrasts import within_jobs
from biaskit.tables.query import Row
from biaskit.tables.reasons import ESTIMATORS_DIFFER

NOTHING_COMMON = "no prompt that both answered in the same words and format"
OF_SAMPLES = "sampling: single answers cannot be compared"
OF_BOUNDS = "bounds: single answers and sizes of changes are not known"


@dataclass(frozen=True, slots=True)
class Change:
    """The prompts of an arm that two models answered in the same words, cut to the jobs of a group."""

    before: CrossedCells
    after: CrossedCells
    frames: Mapping[int, str]
    groups: tuple[str, ...]  # gender groups
    contrast: tuple[str, ...]
    zone: float

    @property
    def estimators(self) -> list[str]:
        """The estimators of both, each once."""
        return list(dict.fromkeys(str(block.estimator) for block in (self.before, self.after)))

    @property
    def unknown(self) -> str | None:
        """Why single answers are not known; None where they are points."""
        if BOUNDED in self.estimators:
            return OF_BOUNDS
        exact = self.before.inverse is None and self.after.inverse is None
        return None if exact else OF_SAMPLES

    @property
    def matched(self) -> Matched:
        """Both models' shares `[groups, I, J]`."""
        return Matched(self.before.shares, self.after.shares, self.groups, self.contrast, self.zone)

    def of_jobs(self, places: Sequence[int]) -> Change:
        """Cut to some jobs."""
        jobs, templates = [self.before.jobs[i] for i in places], self.before.templates
        return replace(self, before=self.before.cut(jobs, templates), after=self.after.cut(jobs, templates))

    def by_frame(self, values: FloatArray) -> FloatArray:
        """Average the templates of each frame `[..., I, J]`: they are one unit of an interval."""
        places = frame_places(self.before.templates, self.frames).values()
        return np.stack([values[..., own].mean(axis=-1) for own in places], axis=-1)

    def squares(self) -> FloatArray:
        """The square of each change, less what sampling adds."""
        first = self.groups.index(self.contrast[0])
        inverse = self.before.inverse, self.after.inverse
        return squares_without_noise(self.before.shares[first], self.after.shares[first], inverse)

    def numbers(self) -> tuple[dict[str, Any], str | None]:
        """Count and test over jobs and templates all of a row but the mean; also returns a reason."""
        matched, unknown = self.matched, self.unknown
        row: dict[str, Any] = {"n_prompts": self.before.coverage.size, "n_jobs": len(self.before.jobs)}
        row["coverage"] = min(float(block.coverage.mean()) for block in (self.before, self.after))
        if unknown == OF_BOUNDS:
            return row, unknown
        squares = self.by_frame(self.squares())
        if unknown:
            if np.isnan(squares).all():
                return row, joined([unknown, "no prompt with two samples of both"])
            row["separable"], reason = is_separable(squares)
            row["typical_change"] = math.sqrt(max(float(np.nanmean(squares)), 0.0))
            return row, joined([unknown, reason])
        row["typical_change"] = math.sqrt(float(squares.mean()))
        absolute = mean_of_sizes(self.by_frame(np.abs(matched.change)))
        names = ("mean_absolute_change", "mean_absolute_low", "mean_absolute_high")
        row |= zip(names, absolute, strict=True)
        row |= matched.counts()
        flips = self.by_frame(matched.flips.astype(np.float64))
        row["flips_low"], row["flips_high"], reason = flip_interval(row["flips"], flips, row["n_prompts"])
        of_jobs = replace(matched, before=_over(matched.before), after=_over(matched.after))
        return row | {"n_jobs_flipped": int(of_jobs.flips.sum())}, reason


def _over(shares: FloatArray) -> FloatArray:
    """Average shares over templates."""
    means: FloatArray = shares.mean(axis=-1)
    return means


def change_rows(
    before: str, after: str, answers: Mapping[str, Answers], margins: Mapping[str, float], zone: float
) -> tuple[list[Row], list[Row]]:
    """Make the rows of changes.csv and of changed_prompts.csv of two models, for every arm of `before`."""
    early, late = answers[before], answers[after]
    rows: list[Row] = []
    prompts: list[Row] = []
    for arm, block in early.blocks.items():
        key: Row = {"before": before, "after": after, **arm._asdict()}
        answered = ~np.isnan(block.shares[0])
        change, note = matched_in((early, late), arm, zone)
        if change is None:
            n = int(answered.sum())
            rows.append({**key, "job_group": ALL, "n_prompts": 0, "n_unmatched": n, "reason": note})
            continue
        groups = rows_of_groups(change.before.jobs, early.group_of)
        groups.pop(ALL, None)
        every = {ALL: list(range(len(change.before.jobs))), **(groups if len(groups) > 1 else {})}
        for job_group, places in every.items():
            own = change.of_jobs(places)
            numbers, reason = own.numbers()
            in_group = [job_group in (ALL, early.group_of[job]) for job in block.jobs]
            numbers["n_unmatched"] = int(answered[in_group].sum()) - numbers["n_prompts"]
            told = joined([note, reason])
            row = {**key, "job_group": job_group, "estimator": " against ".join(own.estimators)}
            rows.append(row | _mean_change(own, arm, margins) | numbers | {"reason": told})
        if not change.unknown:
            for (i, j), changed in change.matched.listed():
                job, template = change.before.jobs[i], change.before.templates[j]
                where = {"job": job, "job_group": early.group_of[job], "template_id": template}
                prompts.append({**key, **where, "prompt": _prompt(early, arm, template, job), **changed})
    return rows, prompts


def matched_in(members: Sequence[Answers], arm: Arm, zone: float) -> tuple[Change | None, str | None]:
    """Cut an arm of the first and the last of some models to what all answered; None with the reason."""
    first = members[0]
    if not all(arm in member.blocks for member in members) or not asked_alike(arm, members):
        return None, NOTHING_COMMON
    common, note = common_cells(arm, members)
    templates, incomplete = complete_in_all(common)
    if not templates or not common[0].jobs:
        return None, joined([NOTHING_COMMON, note, incomplete])
    before, after = (block.cut(block.jobs, templates) for block in (common[0], common[-1]))
    contrast = first.contrast or first.groups[:2]
    change = Change(before, after, first.frames(arm.bias_type), first.groups, contrast, zone)
    differing = f"{ESTIMATORS_DIFFER}: {' against '.join(change.estimators)}"
    return change, joined([note, incomplete, differing if len(change.estimators) > 1 else None])


def _mean_change(change: Change, arm: Arm, margins: Mapping[str, float]) -> dict[str, Any]:
    """Test the mean change of the first group's share as tests.csv does, frames averaged."""
    first = change.groups.index(change.contrast[0])
    shares = []
    for block in (change.after, change.before):
        framed = block.by_frame(change.frames)
        shares.append(framed.shares_at(framed.templates)[first])
    scope = scope_of(arm, MODELS)
    test = within_jobs(*shares, scope=scope, margins=margins)[-1]
    return {
        "mean_change": test.estimate,
        "mean_change_low": test.ci_low,
        "mean_change_high": test.ci_high,
        "margin": test.margin,
        "equivalent": test.equivalent,
    }


def _prompt(asked: Answers, arm: Arm, template: int, job: str) -> str:
    texts: Any = asked.asked.text(f"{arm.bias_type} template {template}")
    return shown_prompt(*texts or ()).replace(SLOT, job)
