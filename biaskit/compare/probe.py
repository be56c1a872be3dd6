"""Tests between models of the prober, on the cells that both were asked (methods/comparisons#model-pairs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from biaskit.common.wording import joined
from biaskit.compare.pairs import PairNote, SidePair
from biaskit.compare.same_prompts import PromptTexts, all_equal
from biaskit.errors import TableError
from biaskit.stats.arms import Arm, CrossedCells, complete_in_all, cross, mean_of, rows_of_groups
from biaskit.stats.contrasts import Row, gaps_between_groups, scope_of, within_jobs
from biaskit.tables.reasons import ESTIMATORS_DIFFER

CONTRAST = "models"


@dataclass(frozen=True, slots=True)
class Answers:
    """One model's cells by arm, and the texts that asked for them."""

    model: str
    groups: tuple[str, ...]  # gender groups
    blocks: Mapping[Arm, CrossedCells]
    group_of: Mapping[str, str]  # job → job group
    asked: PromptTexts = field(default_factory=PromptTexts)


def answers_of(
    rows: Sequence[Mapping[str, Any]], groups: Sequence[str], where: str, asked: PromptTexts | None = None
) -> dict[str, Answers]:
    """Read the models of one run from its rows of probe_cells.csv, in order of appearance.

    Raises `TableError` for rows of other gender groups, and where jobs × templates are not all there.
    """
    wanted = [*(f"{group}_mass" for group in groups), *(f"{group}_share" for group in groups), "coverage"]
    ends = [f"{group}_share_{end}" for end in ("low", "high") for group in groups]
    if rows and (unknown := [name for name in wanted if name not in rows[0]]):
        raise TableError(f"{where}: no column {unknown[0]!r}; the run has other gender groups.")
    values, bounds = (
        np.array(
            [[np.nan if row.get(name) is None else row[name] for name in names] for row in rows],
            dtype=np.float64,
        ).reshape(len(rows), len(names))
        for names in (wanted, ends)
    )
    try:
        blocks = cross(
            [Arm(*(row[name] for name in Arm._fields)) for row in rows],
            [row["job"] for row in rows],
            [row["template_id"] for row in rows],
            [row["estimator"] or None for row in rows],
            values,
            bounds,
        )
    except ValueError as error:
        raise TableError(f"{where}: {error}. `biaskit analyze` rebuilds the tables.") from error
    group_of = {row["job"]: row["job_group"] for row in rows}
    asked = asked or PromptTexts()
    blocks_of_model: dict[str, dict[Arm, CrossedCells]] = {}
    for arm, block in blocks.items():
        blocks_of_model.setdefault(arm.model, {})[arm] = block
    return {m: Answers(m, tuple(groups), own, group_of, asked) for m, own in blocks_of_model.items()}


def pair_rows(
    pair: SidePair,
    answers: Mapping[str, Answers],
    margins: Mapping[str, float],
    *,
    quantity: str = "share",
    contrast: str = CONTRAST,
) -> tuple[list[Row], list[str]]:
    """Test the later side minus the earlier: rows paired and crossed, and the arms without a row.

    Of shares also the gap between two groups of jobs: rows welch and crossed.

    An arm is a bias type, instruction, setting and prompt form; it needs all models of both sides. Compared
    are the jobs that all have, on templates with the same text that are complete in all; a side's share in
    a cell is the mean over its models. `quantity` and `contrast`: the rows' own columns of that name.
    """
    later, earlier = pair
    members = [answers[model] for model in (*later.models, *earlier.models)]
    rows: list[Row] = []
    left_out: list[str] = []
    for arm in dict.fromkeys(arm._replace(model="") for member in members for arm in member.blocks):
        blocks = [member.blocks.get(arm._replace(model=member.model)) for member in members]
        present = [block for block in blocks if block is not None]
        same = (
            len(present) == len(members)
            and all_equal([member.asked.instruction(arm.instruction_id) for member in members])
            and all_equal([member.asked.dialogue(arm.setting) for member in members])
        )
        if not same:
            # Where only the prompt form differs, `forms_apart` has a sentence on it.
            asked = [{a._replace(model="", prompt_form="") for a in member.blocks} for member in members]
            in_another_form = all(arm._replace(prompt_form="") in arms for arms in asked)
            if len(present) == len(members) or not in_another_form:
                left_out.append(f"{arm.bias_type}, debiasing prompt {arm.instruction_id}, {arm.setting}")
            continue
        common, note = _common(arm, members, present)
        common = [block.by_frame(members[0].asked.frames(arm.bias_type)) for block in common]
        templates, incomplete = complete_in_all(common)
        # A difference between estimators is part of the difference between models.
        estimators = list(dict.fromkeys(str(block.estimator) for block in common))
        between = " against " if len(members) == 2 else ", "
        differing = f"{ESTIMATORS_DIFFER}: {between.join(estimators)}" if len(estimators) > 1 else None
        sides = common[: len(later.models)], common[len(later.models) :]
        a, b = (mean_of([block.shares_at(templates) for block in side]) for side in sides)
        reason = joined([note, incomplete, differing])
        scope_of_arm = replace(
            scope_of(arm, contrast), quantity=quantity, model_a=later.name, model_b=earlier.name
        )
        rows_of = rows_of_groups(common[0].jobs, members[0].group_of)
        genders = members[0].groups
        for job_group, places in rows_of.items():
            for k, gender in enumerate(genders):
                scope = replace(scope_of_arm, gender=gender, group_a=job_group, group_b=job_group)
                rows += within_jobs(a[k, places], b[k, places], scope=scope, margins=margins, note=reason)
        if quantity == "share":
            gaps = gaps_between_groups(
                a - b, rows_of, genders, scope=scope_of_arm, margins=margins, note=reason
            )
            rows += gaps
    return rows, left_out


def _common(
    arm: Arm, members: Sequence[Answers], blocks: Sequence[CrossedCells]
) -> tuple[list[CrossedCells], str | None]:
    """Cut blocks to the jobs that all have and the templates of the same text; say what was cut."""
    jobs = set(blocks[0].jobs).intersection(*(block.jobs for block in blocks[1:]))
    jobs = {job for job in jobs if all_equal([member.group_of[job] for member in members])}
    asked: dict[int, list[object]] = {}
    for member, block in zip(members, blocks, strict=True):
        for template in block.templates:
            asked.setdefault(template, []).append(member.asked.template(arm.bias_type, template))
    differing = {template for template, texts in asked.items() if not all_equal(texts)}
    n_jobs = len({job for block in blocks for job in block.jobs}) - len(jobs)
    n_differing = max(len(differing & set(block.templates)) for block in blocks)
    reasons = [
        f"{n_jobs} jobs left out, not in every model" if n_jobs else None,
        f"{n_differing} templates with another text or other target words left out" if n_differing else None,
    ]
    cut = [block.cut(sorted(jobs), [t for t in block.templates if t not in differing]) for block in blocks]
    return cut, joined(reasons)


def same_templates(members: Sequence[Answers], bias_type: str, prompt_form: str) -> bool:
    """Whether the means of jobs are over the same templates in all models (instruction 0, plain)."""
    asked = []
    for member in members:
        block = member.blocks.get(Arm(member.model, bias_type, 0, "plain", prompt_form))
        templates = block.templates if block else ()
        asked.append([(t, member.asked.template(bias_type, t)) for t in templates])
    return all_equal(asked)


# --- notes on a pair ------------------------------------------------------------------------------


def groups_apart(pair: SidePair, answers: Mapping[str, Answers]) -> PairNote | None:
    """Return a note if the gender groups differ: then nothing is compared."""
    side_of = {", ".join(answers[model].groups): side.name for side in pair for model in side.models}
    if len(side_of) < 2:
        return None
    listed = " and ".join(f"{name} ({groups})" for groups, name in side_of.items())
    text = f"{listed} have different gender groups, so there is no test between them."
    return PairNote("gender groups", text)


def forms_apart(pair: SidePair, answers: Mapping[str, Answers], rows: Sequence[Row]) -> PairNote | None:
    """Return a note if two sides have the same cells in different prompt forms, or no cell in common."""
    compared = {(r["bias_type"], r["instruction_a"], r["setting"]) for r in rows}
    forms: list[dict[tuple[str, str, str], set[str]]] = [{}, {}]
    for forms_of_cell, side in zip(forms, pair, strict=True):
        for arm in (arm for model in side.models for arm in answers[model].blocks):
            cell = (arm.bias_type, str(arm.instruction_id), arm.setting)
            forms_of_cell.setdefault(cell, set()).add(arm.prompt_form)
    if any(len(forms[0][cell] | forms[1][cell]) > 1 for cell in forms[0].keys() & forms[1].keys() - compared):
        return PairNote("prompt formats")
    if not rows:
        return nothing_common(pair)
    return None


def nothing_common(pair: SidePair) -> PairNote:
    """Return the note on two sides without a common prompt, or pair of sentences."""
    text = f"{pair[0].name} and {pair[1].name} have no common prompt, so there is no test between them."
    return PairNote("no common cell", text)
