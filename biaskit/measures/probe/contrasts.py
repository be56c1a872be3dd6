"""The named contrasts that a run of one model writes to tests.csv (methods/tests#contrasts)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from operator import sub
from typing import Any, Literal

import numpy as np

from biaskit.common.wording import joined
from biaskit.records import NO_DEBIASING, PromptCell
from biaskit.stats.arms import (
    FEMALE_DOMINATED,
    MALE_DOMINATED,
    Arm,
    CellValues,
    CrossedCells,
    complete_in_all,
    group_pairs,
    mean_of,
    part_of_two,
    rows_of_groups,
)
from biaskit.stats.contrast import BINARY, Contrast, Scope
from biaskit.stats.contrasts import against_workforce, between_groups, estimate_only, within_jobs
from biaskit.stats.verdict import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCells:
    """The choices of a study that reach its tables, and its cells by arm, which `effects.tables` fills in."""

    groups: tuple[str, ...]  # gender groups, in the order of the cells' shares
    contrast: tuple[str, str]  # first minus second
    levels: Mapping[str, tuple[int, ...]]  # level of abstraction → its debiasing prompts
    margins: Mapping[str, float]  # quantity → margin of equivalence
    seed: int
    min_coverage: float  # cells of less coverage are counted
    interval: Literal["crossed", "bootstrap"]  # of probe_jobs and probe_groups
    rule: Rule = field(default_factory=Rule)  # of verdicts
    frames: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Bias type → template → frame: averaged first."""
    blocks: dict[Arm, CrossedCells] = field(default_factory=dict)
    group_of: dict[str, str] = field(default_factory=dict)  # job → job group, in study order
    workforce_of: dict[str, float | None] = field(default_factory=dict)
    rating_of: dict[str, float | None] = field(default_factory=dict)

    @property
    def binary(self) -> tuple[int, int]:
        """The places of the contrast's two groups among the shares."""
        first, second = map(self.groups.index, self.contrast)
        return first, second

    @property
    def numbers(self) -> list[Number]:
        """List what is contrasted."""
        return numbers_of(self.groups, self.contrast[0])


Number = tuple[int, str, str]
"""A place among `CrossedCells.numbers_at`, its gender, and what stands before its quantities."""


def numbers_of(groups: Sequence[str], first: str = "") -> list[Number]:
    """List the shares of groups and, last, the part of two of the group that is contrasted first, if any."""
    numbers = [(k, group, "") for k, group in enumerate(groups)]
    return [*numbers, (len(groups), first, BINARY)] if first else numbers


def contrast_rows(study: StudyCells) -> list[Contrast]:
    """Make every contrast within a model (methods/tests#contrasts); its p-values are not adjusted yet."""
    makers = (_groups, _asymmetry, _debiasing_prompts, _levels, _contexts, _effects, _bias_types, _workforce)
    rows: list[Contrast] = []
    for maker in makers:
        rows += maker(study)
    return rows


def arms_of_levels(study: StudyCells) -> Iterator[tuple[Arm, dict[str, list[CrossedCells]]]]:
    """Pair each arm without a debiasing prompt with the levels that were run, each with its blocks."""
    for none in dict.fromkeys(arm._replace(debiasing_id=NO_DEBIASING) for arm in study.blocks):
        run: dict[str, list[CrossedCells]] = {}
        for level, ids in study.levels.items():
            for number in ids:
                block = study.blocks.get(none._replace(debiasing_id=number))
                if block is not None:
                    run.setdefault(level, []).append(block)
        yield none, run


def columns_of(groups: Sequence[str], ending: str) -> list[str]:
    """Name the columns that hold a number of each gender group; `ending`: such as share_low."""
    return [f"{group}_{ending}" for group in groups]


def arm_of(cell: PromptCell) -> Arm:
    """Name the arm that a cell belongs to."""
    return Arm(cell.model, cell.bias_type, cell.debiasing_id, cell.context, cell.prompt_format)


def scope_of(arm: Arm, contrast: str) -> Scope:
    """Scope a row within one arm: what is not contrasted is the same on both sides."""
    number = str(arm.debiasing_id)
    where = arm.bias_type, arm.context, arm.prompt_format
    return Scope("probe", contrast, arm.model, arm.model, *where, number, number)


def between_job_groups(
    values: Sequence[CellValues],
    rows_of: Mapping[str, list[int]],
    numbers: Sequence[Number],
    scope: Scope,
    margins: Mapping[str, float],
    note: str | None,
) -> Iterator[Contrast]:
    """Contrast numbers `[I, J]`, or what they change from one arm to another, of every two groups of jobs.

    A change of a gap is positive where the gap is larger in the first arm.
    """
    for (group_a, group_b), (k, gender, prefix) in product(group_pairs(list(rows_of)), numbers):
        own = replace(scope, quantity=prefix + scope.quantity, gender=gender)
        own = replace(own, group_a=group_a, group_b=group_b)
        a, b = values[k][rows_of[group_a]], values[k][rows_of[group_b]]
        yield from between_groups(a, b, scope=own, margins=margins, note=note)


def in_each_group(
    rows_of: Mapping[str, list[int]], numbers: Sequence[Number], scope: Scope
) -> Iterator[tuple[Scope, int, list[int]]]:
    """Yield the scope of each job group and number, with the places of the number and of the group's jobs."""
    for (job_group, rows), (k, gender, prefix) in product(rows_of.items(), numbers):
        quantity = prefix + scope.quantity
        yield replace(scope, quantity=quantity, gender=gender, group_a=job_group, group_b=job_group), k, rows


def between_arms(
    a: Sequence[CellValues],
    b: Sequence[CellValues],
    rows_of: Mapping[str, list[int]],
    numbers: Sequence[Number],
    scope: Scope,
    margins: Mapping[str, float],
    note: str | None,
) -> Iterator[Contrast]:
    """Contrast numbers `[I, J]` of the same jobs and templates in two arms, a − b, in each group of jobs.

    Of shares between models, and with a debiasing prompt, also the gap between groups of jobs.
    """
    for each, k, rows in in_each_group(rows_of, numbers, scope):
        yield from within_jobs(a[k][rows], b[k][rows], scope=each, margins=margins, note=note)
    if scope.quantity == "share" and scope.contrast in ("models", "debiasing"):
        of_gap = replace(scope, quantity="group_gap")
        yield from between_job_groups(list(map(sub, a, b)), rows_of, numbers, of_gap, margins, note)


def _groups(study: StudyCells) -> Iterator[Contrast]:
    for arm, block in study.blocks.items():
        templates, note = complete_in_all([block])
        values, rows_of = block.numbers_at(templates), rows_of_groups(block.jobs, study.group_of)
        scope = scope_of(arm, "groups")
        yield from between_job_groups(values, rows_of, study.numbers, scope, study.margins, note)


def _asymmetry(study: StudyCells) -> Iterator[Contrast]:
    genders = study.groups
    if "male" not in genders or "female" not in genders:
        return
    for arm, block in study.blocks.items():
        rows_of = rows_of_groups(block.jobs, study.group_of)
        if FEMALE_DOMINATED not in rows_of or MALE_DOMINATED not in rows_of:
            continue
        templates, note = complete_in_all([block])
        values = block.numbers_at(templates)
        women, men = values[genders.index("female")], values[genders.index("male")]
        sides = {"group_a": MALE_DOMINATED, "group_b": FEMALE_DOMINATED}
        for prefix, of_men, of_women in (
            ("", men, women),
            (BINARY, part_of_two(men, women), part_of_two(women, men)),
        ):
            scope = replace(scope_of(arm, "groups"), quantity=f"{prefix}asymmetry", **sides)
            a, b = of_men[rows_of[MALE_DOMINATED]], of_women[rows_of[FEMALE_DOMINATED]]
            yield from between_groups(a, b, scope=scope, margins=study.margins, note=note)


def _debiasing_prompts(study: StudyCells) -> Iterator[Contrast]:
    for arm, block in study.blocks.items():
        none = study.blocks.get(arm._replace(debiasing_id=NO_DEBIASING))
        if none is not None and none is not block:
            scope = replace(scope_of(arm, "debiasing"), debiasing_b=str(NO_DEBIASING))
            yield from _two_arms(study, [block], [none], scope)


def _levels(study: StudyCells) -> Iterator[Contrast]:
    for arm, run in arms_of_levels(study):
        none = study.blocks.get(arm)
        if none is None:
            continue
        for level, members in run.items():
            scope = replace(scope_of(arm, "levels"), debiasing_a=level)
            yield from _two_arms(study, members, [none], scope)


def _contexts(study: StudyCells) -> Iterator[Contrast]:
    for arm, block in study.blocks.items():
        plain = study.blocks.get(arm._replace(context="plain"))
        if arm.context == "dialogue" and plain is not None:
            scope = replace(scope_of(arm, "contexts"), context="dialogue-plain")
            yield from _two_arms(study, [block], [plain], scope)


def _effects(study: StudyCells) -> Iterator[Contrast]:
    """Contrast the debiasing prompt's effect in the dialogue with its effect in the plain context."""
    for arm in study.blocks:
        if arm.context != "dialogue" or arm.debiasing_id == NO_DEBIASING:
            continue
        none, plain = arm._replace(debiasing_id=NO_DEBIASING), arm._replace(context="plain")
        arms = (arm, none, plain, none._replace(context="plain"))
        if not {*arms} <= study.blocks.keys():
            continue
        blocks = [study.blocks[needed] for needed in arms]
        templates, note = complete_in_all(blocks)
        with_dialogue, no_dialogue, with_plain, no_plain = (block.numbers_at(templates) for block in blocks)
        scope = replace(
            scope_of(arm, "contexts"),
            quantity="debiasing_effect",
            context="dialogue-plain",
            debiasing_b=str(NO_DEBIASING),
        )
        a, b = list(map(sub, with_dialogue, no_dialogue)), list(map(sub, with_plain, no_plain))
        rows_of = rows_of_groups(blocks[0].jobs, study.group_of)
        yield from between_arms(a, b, rows_of, study.numbers, scope, study.margins, note)


def _two_arms(
    study: StudyCells, a: list[CrossedCells], b: list[CrossedCells], scope: Scope
) -> Iterator[Contrast]:
    """Contrast a − b, each the plain mean of its blocks, on the templates that are complete in all blocks."""
    templates, note = complete_in_all([*a, *b])
    means = mean_of(a, templates), mean_of(b, templates)
    rows_of = rows_of_groups(a[0].jobs, study.group_of)
    yield from between_arms(*means, rows_of, study.numbers, scope, study.margins, note)


def _bias_types(study: StudyCells) -> Iterator[Contrast]:
    """Contrast the bias types, each over its own complete templates: they have none in common."""
    for arm, implicit in study.blocks.items():
        explicit = study.blocks.get(arm._replace(bias_type="explicit"))
        if arm.bias_type != "implicit" or explicit is None:
            continue
        of_a, note_a = complete_in_all([implicit])
        of_b, note_b = complete_in_all([explicit])
        a, b = implicit.numbers_at(of_a), explicit.numbers_at(of_b)
        note = joined([note_a and f"implicit: {note_a}", note_b and f"explicit: {note_b}"])
        scope = replace(scope_of(arm, "bias-types"), bias_type="implicit-explicit")
        rows_of = rows_of_groups(implicit.jobs, study.group_of)
        for each, k, rows in in_each_group(rows_of, study.numbers, scope):
            yield from estimate_only(a[k][rows], b[k][rows], scope=each, note=note)


def _workforce(study: StudyCells) -> Iterator[Contrast]:
    rated = any(rating is not None for rating in study.rating_of.values())
    for arm, block in study.blocks.items():
        yield from _against(study, arm, block, "workforce_share", study.workforce_of)
        for row in _against(study, arm, block, "rating", study.rating_of) if rated else ():
            if row.kind in ("slope", "spearman"):
                yield row


def _against(
    study: StudyCells, arm: Arm, block: CrossedCells, column: str, number_of: Mapping[str, float | None]
) -> Iterator[Contrast]:
    """Hold a block's shares against what its jobs have in a column of their list."""
    first, _ = study.contrast
    templates, note = complete_in_all([block])
    # The workforce counts two genders: what is neither would pass for a flatter line.
    shares = block.numbers_at(templates)[-1]
    numbers = np.array([number_of[job] for job in block.jobs], dtype=np.float64)  # of None NaN
    scope = scope_of(arm, column.removesuffix("_share"))
    scope = replace(scope, quantity=f"{first}_share~{column}", gender=first)
    how: Any = {"margins": study.margins, "seed": study.seed, "note": note}
    parts: dict[str | None, list[int]] = {None: list(range(len(block.jobs)))}
    parts.update(rows_of_groups(block.jobs, study.group_of).items())
    parts.pop("", None)  # a group without a name would write the row of all jobs a second time
    for job_group, rows in parts.items():
        own = replace(scope, group_a=job_group, group_b=job_group)
        yield from against_workforce(shares[rows], numbers[rows], scope=own, **how)
