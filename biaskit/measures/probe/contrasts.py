"""The named contrasts that a run of one model writes to tests.csv (methods/tests#contrasts)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

import numpy as np

from biaskit.common.wording import joined
from biaskit.records import NO_DEBIASING, PromptCell
from biaskit.stats.arms import (
    FEMALE_DOMINATED,
    MALE_DOMINATED,
    Arm,
    CrossedCells,
    complete_in_all,
    group_pairs,
    mean_of,
    part_of_two,
    rows_of_groups,
)
from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.contrasts import (
    against_workforce,
    between_groups,
    estimate_only,
    gaps_between_groups,
    within_jobs,
)


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
    frames: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Bias type → template → frame: averaged first."""
    strict: bool = False  # the rule of verdicts
    blocks: dict[Arm, CrossedCells] = field(default_factory=dict)
    group_of: dict[str, str] = field(default_factory=dict)  # job → job group, in study order
    workforce_of: dict[str, float | None] = field(default_factory=dict)


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
    block: CrossedCells,
    group_of: Mapping[str, str],
    names: Mapping[int, str],  # place among the block's shares → gender, or what else they are of
    scope: Scope,
    margins: Mapping[str, float],
) -> Iterator[Contrast]:
    """Contrast every two groups of jobs in an arm."""
    templates, note = complete_in_all([block])
    shares, rows_of = block.shares_at(templates), rows_of_groups(block.jobs, group_of)
    for group_a, group_b in group_pairs(list(rows_of)):
        for k, name in names.items():
            a, b = shares[k, rows_of[group_a]], shares[k, rows_of[group_b]]
            own = replace(scope, gender=name, group_a=group_a, group_b=group_b)
            yield from between_groups(a, b, scope=own, margins=margins, note=note)


def in_each_group(
    rows_of: Mapping[str, list[int]], names: Iterable[tuple[int, str]], scope: Scope
) -> Iterator[tuple[Scope, int, list[int]]]:
    """Yield the scope of each job group and gender, with the places of its shares and of its jobs."""
    for (job_group, rows), (k, name) in product(rows_of.items(), names):
        yield replace(scope, gender=name, group_a=job_group, group_b=job_group), k, rows


def _genders(study: StudyCells, block: CrossedCells, scope: Scope) -> Iterator[tuple[Scope, int, list[int]]]:
    return in_each_group(rows_of_groups(block.jobs, study.group_of), enumerate(study.groups), scope)


# --- between groups of jobs ------------------------------------------------------------------------


def _groups(study: StudyCells) -> Iterator[Contrast]:
    names = dict(enumerate(study.groups))
    for arm, block in study.blocks.items():
        yield from between_job_groups(block, study.group_of, names, scope_of(arm, "groups"), study.margins)


def _asymmetry(study: StudyCells) -> Iterator[Contrast]:
    genders = study.groups
    if "male" not in genders or "female" not in genders:
        return
    for arm, block in study.blocks.items():
        rows_of = rows_of_groups(block.jobs, study.group_of)
        if FEMALE_DOMINATED not in rows_of or MALE_DOMINATED not in rows_of:
            continue
        templates, note = complete_in_all([block])
        shares = block.shares_at(templates)
        a = shares[genders.index("male"), rows_of[MALE_DOMINATED]]
        b = shares[genders.index("female"), rows_of[FEMALE_DOMINATED]]
        scope = replace(
            scope_of(arm, "groups"), quantity="asymmetry", group_a=MALE_DOMINATED, group_b=FEMALE_DOMINATED
        )
        yield from between_groups(a, b, scope=scope, margins=study.margins, note=note)


# --- the same jobs in two arms ---------------------------------------------------------------------


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
        with_dialogue, no_dialogue, with_plain, no_plain = (block.shares_at(templates) for block in blocks)
        scope = replace(
            scope_of(arm, "contexts"),
            quantity="debiasing_effect",
            context="dialogue-plain",
            debiasing_b=str(NO_DEBIASING),
        )
        for each, k, rows in _genders(study, blocks[0], scope):
            a = with_dialogue[k, rows] - no_dialogue[k, rows]
            b = with_plain[k, rows] - no_plain[k, rows]
            yield from within_jobs(a, b, scope=each, margins=study.margins, note=note, limit=2.0)


def _two_arms(
    study: StudyCells, a: list[CrossedCells], b: list[CrossedCells], scope: Scope
) -> Iterator[Contrast]:
    """Contrast a − b, each the plain mean of its blocks, on the templates that are complete in all blocks."""
    templates, note = complete_in_all([*a, *b])
    mean_a, mean_b = mean_of(a, templates), mean_of(b, templates)
    rows_of = rows_of_groups(a[0].jobs, study.group_of)
    for each, k, rows in in_each_group(rows_of, enumerate(study.groups), scope):
        yield from within_jobs(mean_a[k, rows], mean_b[k, rows], scope=each, margins=study.margins, note=note)
    if scope.contrast == "debiasing":
        yield from gaps_between_groups(
            mean_a - mean_b, rows_of, study.groups, scope=scope, margins=study.margins, note=note
        )


def _bias_types(study: StudyCells) -> Iterator[Contrast]:
    """Contrast the bias types, each over its own complete templates: they have none in common."""
    for arm, implicit in study.blocks.items():
        explicit = study.blocks.get(arm._replace(bias_type="explicit"))
        if arm.bias_type != "implicit" or explicit is None:
            continue
        of_a, note_a = complete_in_all([implicit])
        of_b, note_b = complete_in_all([explicit])
        a, b = implicit.shares_at(of_a), explicit.shares_at(of_b)
        note = joined([note_a and f"implicit: {note_a}", note_b and f"explicit: {note_b}"])
        scope = replace(scope_of(arm, "bias-types"), bias_type="implicit-explicit")
        for each, k, rows in _genders(study, implicit, scope):
            yield from estimate_only(a[k, rows], b[k, rows], scope=each, note=note)


# --- against labour statistics ---------------------------------------------------------------------


def _workforce(study: StudyCells) -> Iterator[Contrast]:
    first, _ = study.contrast
    k, other = map(study.groups.index, study.contrast)
    for arm, block in study.blocks.items():
        templates, note = complete_in_all([block])
        # The workforce counts two genders: what is neither would pass for a flatter line.
        both = block.shares_at(templates)
        shares = part_of_two(both[k], both[other])
        workforce = np.array([study.workforce_of[job] for job in block.jobs], dtype=np.float64)  # of None NaN
        scope = replace(scope_of(arm, "workforce"), quantity=f"{first}_share~workforce_share", gender=first)
        parts: dict[str | None, list[int]] = {None: list(range(len(block.jobs)))}
        parts.update(rows_of_groups(block.jobs, study.group_of).items())
        parts.pop("", None)  # a group without a name would write the row of all jobs a second time
        for job_group, rows in parts.items():
            yield from against_workforce(
                shares[rows],
                workforce[rows],
                scope=replace(scope, group_a=job_group, group_b=job_group),
                margins=study.margins,
                seed=study.seed,
                note=note,
            )
