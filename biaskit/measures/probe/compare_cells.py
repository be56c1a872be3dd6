"""Tests between models on the cells that both were asked (methods/comparisons#model-pairs)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biaskit.common.wording import joined
from biaskit.compare.comparison import MODELS
from biaskit.compare.pairs import SidePair, members_of
from biaskit.compare.same_prompts import PromptTexts, all_equal
from biaskit.errors import TableError
from biaskit.measures.probe.contrasts import between_arms, columns_of, numbers_of, scope_of
from biaskit.stats.arms import Arm, CrossedCells, Label, complete_in_all, cross, mean_of, rows_of_groups
from biaskit.stats.arrays import FloatArray
from biaskit.stats.contrast import Contrast, Scope
from biaskit.tables.reasons import ESTIMATORS_DIFFER, do_differ


@dataclass(frozen=True, slots=True)
class Answers:
    """One model's cells by arm, and the texts that asked for them."""

    groups: tuple[str, ...]  # gender groups
    contrast: tuple[str, ...]  # the two that are held against each other, if any
    blocks: dict[Arm, CrossedCells]  # by arm, without the model
    group_of: Mapping[str, str]  # job → job group
    asked: PromptTexts

    def wording(self, arm: Arm) -> tuple[object, object]:
        """The texts of an arm's debiasing prompt and of its conversation; None where it has none."""
        number, talks = arm.debiasing_id, arm.context == "dialogue"
        debiasing = self.asked.text(f"debiasing prompt {number}") if number else None
        return debiasing, self.asked.text("dialogue") if talks else None

    def has_format_of(self, arm: Arm) -> bool:
        """Whether it has the arm, or the same in another prompt format."""
        return any(arm == own._replace(prompt_format=arm.prompt_format) for own in self.blocks)

    def frames(self, bias_type: str) -> dict[int, str]:
        """Template → its frame, for the templates of a bias type that have one."""
        frame_of = {}
        for name, frame in self.asked.question.get("frame of", {}).items():
            of_type, _, number = name.rpartition(" template ")
            if of_type == bias_type:
                frame_of[int(number)] = frame
        return frame_of


def answers_of(
    rows: Sequence[Mapping[str, Any]],
    groups: Sequence[str],
    where: str,  # the file, for a message
    asked: PromptTexts,
    *,
    contrast: Sequence[str] = (),
    gaps: bool = False,
) -> dict[str, Answers]:
    """Read the models of one run from its rows of probe_prompts.csv, in order of appearance.

    `contrast`: the two groups whose parts of both are compared too. Raises `TableError` for rows of other
    gender groups, and where jobs × templates are not all there, unless there may be `gaps`.
    """
    wanted = [*columns_of(groups, "mass"), *columns_of(groups, "share"), "coverage"]
    ends = [*columns_of(groups, "share_low"), *columns_of(groups, "share_high")]
    for name in wanted if rows else ():
        if name not in rows[0]:
            raise TableError(f"{where}: no column {name!r}; the run has other gender groups.")
    labels: list[Label] = []
    group_of: dict[str, str] = {}
    for row in rows:
        arm = Arm(*map(row.__getitem__, Arm._fields))
        labels.append((arm, row["job"], row["template_id"], row["estimator"] or None))
        group_of[row["job"]] = row["job_group"]
    binary = (groups.index(contrast[0]), groups.index(contrast[1])) if contrast else None
    try:
        blocks = cross(labels, _numbers(rows, wanted), _numbers(rows, ends), binary=binary, gaps=gaps)
    except ValueError as error:
        raise TableError(f"{where}: {error}. `biaskit analyze` rebuilds the tables.") from error
    answers: dict[str, Answers] = {}
    for arm, block in blocks.items():
        new = Answers(tuple(groups), tuple(contrast), {}, group_of, asked)
        answers.setdefault(arm.model, new).blocks[arm._replace(model="")] = block
    return answers


def _numbers(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> FloatArray:
    """Read columns as `[rows, columns]`; NaN where a row has no such number."""
    table = [list(map(row.get, columns)) for row in rows]  # of None NaN
    return np.array(table, dtype=np.float64).reshape(len(rows), len(columns))


def pair_rows(
    pair: SidePair,
    answers: Mapping[str, Answers],
    margins: Mapping[str, float],
    *,
    quantity: str = "share",
    contrast: str = MODELS,
) -> tuple[list[Contrast], list[str]]:
    """Test the later side minus the earlier: rows paired and crossed, and the arms without a row.

    Of shares also the gap between two groups of jobs: rows welch and crossed. An arm is a bias type,
    debiasing prompt, context and prompt format; it needs all models of both sides. Compared are the jobs that
    all have, on templates with the same text that are complete in all; a side's share in a cell is the mean
    over its models.
    """
    later, earlier = pair
    members = members_of(pair, answers)
    rows: list[Contrast] = []
    left_out: list[str] = []
    arms: dict[Arm, None] = {}
    for member in members:
        arms |= dict.fromkeys(member.blocks)
    for arm in arms:
        having = [member for member in members if arm in member.blocks]
        if len(having) == len(members) and asked_alike(arm, members):
            scope = scope_of(arm, contrast)
            scope = replace(scope, quantity=quantity, model_a=later.name, model_b=earlier.name)
            rows += _rows_of_arm(arm, members, len(later.models), scope, margins)
        elif len(having) == len(members) or not all(member.has_format_of(arm) for member in members):
            left_out.append(f"{arm.bias_type}, debiasing prompt {arm.debiasing_id}, {arm.context}")
    return rows, left_out


def _rows_of_arm(
    arm: Arm,
    members: Sequence[Answers],
    n_later: int,  # of the members
    scope: Scope,
    margins: Mapping[str, float],
) -> Iterator[Contrast]:
    cut, note = common_cells(arm, members)
    frames = members[0].frames(arm.bias_type)
    common = [block.by_frame(frames) for block in cut]
    templates, incomplete = complete_in_all(common)
    # A difference between estimators is part of the difference between models.
    estimators = list(dict.fromkeys(str(block.estimator) for block in common))
    between = " against " if len(members) == 2 else ", "
    differing = f"{ESTIMATORS_DIFFER}: {between.join(estimators)}" if do_differ(estimators) else None
    means = mean_of(common[:n_later], templates), mean_of(common[n_later:], templates)
    reason = joined([note, incomplete, differing])
    rows_of = rows_of_groups(common[0].jobs, members[0].group_of)
    # The part of two other groups would be another number.
    first = members[0].contrast[:1] if all_equal(member.contrast for member in members) else ()
    numbers = numbers_of(members[0].groups, *first)
    yield from between_arms(*means, rows_of, numbers, scope, margins, reason)


def asked_alike(arm: Arm, members: Sequence[Answers]) -> bool:
    """Tell whether an arm's debiasing prompt and conversation are the same texts."""
    return all_equal(member.wording(arm) for member in members)


def common_cells(arm: Arm, members: Sequence[Answers]) -> tuple[list[CrossedCells], str | None]:
    """Cut blocks to the jobs that all have and the templates of the same text; say what was cut."""
    group_of: dict[str, list[str]] = {}  # a list for each job and template: one entry of each model
    asked: dict[int, list[object]] = {}
    for member in members:
        for job in member.blocks[arm].jobs:
            group_of.setdefault(job, []).append(member.group_of[job])
        for template in member.blocks[arm].templates:
            asked.setdefault(template, []).append(member.asked.template(arm.bias_type, template))
    jobs = [job for job, groups in group_of.items() if groups == groups[:1] * len(members)]
    differing = {template for template, texts in asked.items() if not all_equal(texts)}
    cut = []
    n_differing = 0
    for member in members:
        block = member.blocks[arm]
        kept = [template for template in block.templates if template not in differing]
        n_differing = max(n_differing, len(block.templates) - len(kept))
        cut.append(block.cut(sorted(jobs), kept))
    reasons = []
    if n_jobs := len(group_of) - len(jobs):
        reasons.append(f"{n_jobs} jobs left out, not in every model")
    if n_differing:
        reasons.append(f"{n_differing} templates with another text or other target words left out")
    return cut, joined(reasons)
