"""The named contrasts that a run of one model writes to tests.csv (methods/tests#contrasts)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from biaskit.records import NO_INSTRUCTION, Cell
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
from biaskit.stats.contrasts import (
    Row,
    Scope,
    against_labour,
    between_groups,
    estimate_only,
    gaps_between_groups,
    scope_of,
    within_jobs,
)
from biaskit.stats.crossed import joined

Interval = Literal["crossed", "bootstrap"]


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of a study that reach its tables."""

    groups: tuple[str, ...]  # gender groups, in the order of the cells' shares
    contrast: tuple[str, str]  # first minus second
    levels: Mapping[str, tuple[int, ...]]  # level of abstraction → its instructions
    margins: Mapping[str, float]  # quantity → margin of equivalence
    seed: int
    floor: float  # cells of less coverage are counted
    interval: Interval


@dataclass(frozen=True, slots=True)
class _Study:
    blocks: Mapping[Arm, CrossedCells]
    group_of: Mapping[str, str]  # job → job group, in study order
    labour_of: Mapping[str, float | None]
    choices: Choices


def contrast_rows(
    blocks: Mapping[Arm, CrossedCells],
    group_of: Mapping[str, str],
    labour_of: Mapping[str, float | None],
    choices: Choices,
) -> list[Row]:
    """Make every contrast within a model (methods/tests#contrasts); its p-values are not adjusted yet."""
    study = _Study(blocks, group_of, labour_of, choices)
    makers = (_groups, _asymmetry, _instructions, _levels, _settings, _effects, _bias_types, _labour)
    rows: list[Row] = []
    for maker in makers:
        rows += maker(study)
    return rows


def arms_of_levels(
    blocks: Mapping[Arm, CrossedCells], levels: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[Arm, dict[str, list[CrossedCells]]]]:
    """Pair each arm without an instruction with the levels that were run, each with its blocks."""
    for none in dict.fromkeys(arm._replace(instruction_id=NO_INSTRUCTION) for arm in blocks):
        run: dict[str, list[CrossedCells]] = {}
        for level, ids in levels.items():
            arms = (none._replace(instruction_id=i) for i in ids)
            if members := [blocks[arm] for arm in arms if arm in blocks]:
                run[level] = members
        yield none, run


def arm_of(cell: Cell) -> Arm:
    """Name the arm that a cell belongs to."""
    return Arm(cell.model, cell.bias_type, cell.instruction_id, cell.setting, cell.prompt_form)


def _each_group_and_gender(
    study: _Study, block: CrossedCells, scope: Scope
) -> Iterator[tuple[Scope, int, list[int]]]:
    for job_group, rows in rows_of_groups(block.jobs, study.group_of).items():
        for k, gender in enumerate(study.choices.groups):
            yield replace(scope, gender=gender, group_a=job_group, group_b=job_group), k, rows


# --- between groups of jobs ------------------------------------------------------------------------


def _groups(study: _Study) -> Iterator[Row]:
    for arm, block in study.blocks.items():
        templates, note = complete_in_all([block])
        shares = block.shares_at(templates)
        rows_of = rows_of_groups(block.jobs, study.group_of)
        for group_a, group_b in group_pairs(list(rows_of)):
            for k, gender in enumerate(study.choices.groups):
                scope = replace(scope_of(arm, "groups"), gender=gender, group_a=group_a, group_b=group_b)
                a, b = shares[k, rows_of[group_a]], shares[k, rows_of[group_b]]
                yield from between_groups(a, b, scope=scope, margins=study.choices.margins, note=note)


def _asymmetry(study: _Study) -> Iterator[Row]:
    genders = study.choices.groups
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
        yield from between_groups(a, b, scope=scope, margins=study.choices.margins, note=note)


# --- the same jobs in two arms ---------------------------------------------------------------------


def _instructions(study: _Study) -> Iterator[Row]:
    for arm, block in study.blocks.items():
        none = study.blocks.get(arm._replace(instruction_id=NO_INSTRUCTION))
        if none is not None and none is not block:
            scope = replace(scope_of(arm, "instructions"), instruction_b=str(NO_INSTRUCTION))
            yield from _two_arms(study, [block], [none], scope)


def _levels(study: _Study) -> Iterator[Row]:
    for arm, run in arms_of_levels(study.blocks, study.choices.levels):
        none = study.blocks.get(arm)
        if none is None:
            continue
        for level, members in run.items():
            scope = replace(scope_of(arm, "levels"), instruction_a=level)
            yield from _two_arms(study, members, [none], scope)


def _settings(study: _Study) -> Iterator[Row]:
    for arm, block in study.blocks.items():
        plain = study.blocks.get(arm._replace(setting="plain"))
        if arm.setting == "dialogue" and plain is not None:
            scope = replace(scope_of(arm, "settings"), setting="dialogue-plain")
            yield from _two_arms(study, [block], [plain], scope)


def _effects(study: _Study) -> Iterator[Row]:
    """Contrast the instruction's effect in the dialogue with its effect in the plain setting."""
    for arm in study.blocks:
        if arm.setting != "dialogue" or arm.instruction_id == NO_INSTRUCTION:
            continue
        none, plain = arm._replace(instruction_id=NO_INSTRUCTION), arm._replace(setting="plain")
        arms = (arm, none, plain, none._replace(setting="plain"))
        if not {*arms} <= study.blocks.keys():
            continue
        blocks = [study.blocks[needed] for needed in arms]
        templates, note = complete_in_all(blocks)
        with_dialogue, no_dialogue, with_plain, no_plain = (block.shares_at(templates) for block in blocks)
        scope = replace(
            scope_of(arm, "settings"),
            quantity="instruction_effect",
            setting="dialogue-plain",
            instruction_b=str(NO_INSTRUCTION),
        )
        for each, k, rows in _each_group_and_gender(study, blocks[0], scope):
            a = with_dialogue[k, rows] - no_dialogue[k, rows]
            b = with_plain[k, rows] - no_plain[k, rows]
            yield from within_jobs(a, b, scope=each, margins=study.choices.margins, note=note, limit=2.0)


def _two_arms(study: _Study, a: list[CrossedCells], b: list[CrossedCells], scope: Scope) -> Iterator[Row]:
    """Contrast a − b, each the plain mean of its blocks, on the templates that are complete in all blocks."""
    templates, note = complete_in_all([*a, *b])
    mean_a = mean_of([block.shares_at(templates) for block in a])
    mean_b = mean_of([block.shares_at(templates) for block in b])
    for each, k, rows in _each_group_and_gender(study, a[0], scope):
        yield from within_jobs(
            mean_a[k, rows], mean_b[k, rows], scope=each, margins=study.choices.margins, note=note
        )
    if scope.contrast == "instructions":
        rows_of, choices = rows_of_groups(a[0].jobs, study.group_of), study.choices
        change = mean_a - mean_b
        yield from gaps_between_groups(
            change, rows_of, choices.groups, scope=scope, margins=choices.margins, note=note
        )


def _bias_types(study: _Study) -> Iterator[Row]:
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
        for each, k, rows in _each_group_and_gender(study, implicit, scope):
            yield from estimate_only(a[k, rows], b[k, rows], scope=each, note=note)


# --- against labour statistics ---------------------------------------------------------------------


def _labour(study: _Study) -> Iterator[Row]:
    first, _ = study.choices.contrast
    k, other = map(study.choices.groups.index, study.choices.contrast)
    for arm, block in study.blocks.items():
        templates, note = complete_in_all([block])
        # The labour force counts two genders: what is neither would pass for a flatter line.
        both = block.shares_at(templates)
        shares = part_of_two(both[k], both[other])
        labour = np.array([study.labour_of[job] for job in block.jobs], dtype=np.float64)  # of None NaN
        scope = replace(scope_of(arm, "labour"), quantity=f"{first}_share~labour_female_share", gender=first)
        parts: dict[str | None, list[int]] = {None: list(range(len(block.jobs)))}
        parts.update(rows_of_groups(block.jobs, study.group_of).items())
        parts.pop("", None)  # a group without a name would write the row of all jobs a second time
        for job_group, rows in parts.items():
            yield from against_labour(
                shares[rows],
                labour[rows],
                scope=replace(scope, group_a=job_group, group_b=job_group),
                margins=study.choices.margins,
                seed=study.choices.seed,
                note=note,
            )
