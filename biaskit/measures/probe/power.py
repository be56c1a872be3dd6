"""Which differences a design of the prober would show, as its plan says (methods/averages#power)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from biaskit.common.wording import listed, people, percent, points
from biaskit.corpora.variance import CellVariance, load_cell_variance
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.rounds import Rounds
from biaskit.stats.arms import group_pairs
from biaskit.stats.contrasts import MOST_EMPTY
from biaskit.stats.power import (
    FEWEST_UNITS,
    LARGEST_PLANNED,
    NOT_JUDGED,
    POWER,
    Design,
    Side,
    smallest_difference,
)
from biaskit.stats.verdict import LEVEL, first_level

NOT_WORTH_NAMING = 0.05


@dataclass(frozen=True, slots=True)
class Matched:
    """What the draws of one cell amount to on average, at a coverage."""

    coverage: float
    empty: float  # part of the cells in which no draw names an expression
    inverse: float  # mean of 1/K over the others, K the draws that do


@dataclass(frozen=True, slots=True)
class Shown:
    """The smallest difference that a design shows in 80 % of runs, and where its variance comes from."""

    difference: float | None  # None: there is a reason, or none is large enough
    parts: dict[str, float]  # jobs, templates, cells, draws: fractions of the variance
    reason: str | None = None  # why no difference gets a conclusion


_PARTS = {"jobs": "jobs", "templates": "templates", "cells": "residual", "draws": "samples"}


def plan_sentence(
    design: ProbeDesign, estimator: str, draws: int | None, *, of_demo: bool, n_models: int = 1
) -> str:
    """Say before a run which differences it can detect; "" where the variance of its shares is not known.

    The level is the first lead's (methods/tests#tree). The variances are those of the base demo's own run.
    Another model's samples are all assumed to name a target word.
    """
    gender = "female" if "female" in design.groups else design.contrast[0]
    of_gender = [v for v in load_cell_variance() if v.gender == gender]
    jobs_of = Counter(item.group for item in design.items)
    pairs = group_pairs(list(jobs_of))
    groups = next(iter(pairs), tuple(jobs_of))
    if min(jobs_of[name] for name in groups) < FEWEST_UNITS:
        return f"Detectable difference: {NOT_JUDGED}, a group has fewer than {FEWEST_UNITS} jobs."
    ways = {template.bias_type for template in design.templates}
    helped = any(design.instructions) or len(design.settings) > 1
    n_questions = 1 + (n_models > 1) + helped
    n_leads = max(len(pairs), 1) * len(ways) * n_models
    level = first_level(n_questions, n_leads, strict=design.study.strict)
    drawn = draws if estimator == "sampling" else None
    shown_parts, not_shown = [], []
    for bias_type in dict.fromkeys(template.bias_type for template in design.templates):
        of_type = [v for v in of_gender if v.bias_type == bias_type]
        if not of_type:
            continue
        units = {t.frame or t.id for t in design.templates if t.bias_type == bias_type}
        matched = None
        if drawn is not None:
            coverage = float(np.mean([v.coverage for v in of_type])) if of_demo else 1.0
            matched = matched_draws(drawn, design.study.max_samples_per_prompt, coverage)
        shown = smallest_shown(
            [variance_of_group(of_type, name) for name in groups],
            [jobs_of[name] for name in groups],
            len(units),
            matched,
            level,
        )
        if shown.reason:
            not_shown.append(f"No {bias_type} difference can be tested: {shown.reason}.")
            continue
        if shown.difference is None or shown.difference > LARGEST_PLANNED:
            not_shown.append(f"Detectable {bias_type} difference: {NOT_JUDGED}.")
            continue
        most = sorted(shown.parts.items(), key=lambda part: -part[1])
        sources = [f"{_PARTS[name]} {percent(part)} %" for name, part in most if part >= NOT_WORTH_NAMING]
        shown_parts.append(f"{points(shown.difference)} ({bias_type}; variance: {', '.join(sources)})")
    if not shown_parts:
        return " ".join(not_shown)
    between = f"between {' and '.join(groups)} jobs" if len(groups) > 1 else "from 50 %"
    assumed = "demo-base's variance"
    if drawn is not None and not of_demo:
        assumed += " and a target word in every sample"
    if estimator == "top-k":
        assumed += ", plus the width of the top-k bounds"
    said = (
        f"Detectable difference in the share of {people(gender)} {between}: {listed(shown_parts)};"
        f" {percent(POWER)} % power per comparison, assuming {assumed}."
    )
    return " ".join([said, *not_shown])


def smallest_shown(
    variances: Sequence[CellVariance],
    jobs: Sequence[int],
    n_templates: int,
    matched: Matched | None,  # None: no draws
    level: float = LEVEL,
) -> Shown:
    """Solve for the difference between two groups that a design shows; of one group, from a fixed share."""
    reason = None
    if n_templates < 2:
        reason = "there is only one template or scenario"
    elif matched is not None and matched.empty > MOST_EMPTY:
        reason = (
            f"at a coverage of {matched.coverage:.2g}, {percent(matched.empty)} % of the prompts would stay"
            " empty, and above 10 % there is no conclusion"
        )
    of_templates = [v.var_template if len(jobs) == 1 else v.var_difference or 0.0 for v in variances]
    # The mean of p (1 − p) over a group's cells, by the mean and the variance of p.
    spread = [v.share * (1.0 - v.share) - v.var_job - v.var_template - v.var_residual for v in variances]
    noise = [max(of_a_draw, 0.0) * (matched.inverse if matched else 0.0) for of_a_draw in spread]
    sides = tuple(
        Side(n, v.var_job, v.var_residual + of_draws)
        for n, v, of_draws in zip(jobs, variances, noise, strict=True)
    )
    design = Design(sides, n_templates, float(np.mean(of_templates)))
    draws = sum(of_draws / (n * n_templates) for n, of_draws in zip(jobs, noise, strict=True))
    parts, total = design.parts(), design.variance()
    parts = {**parts, "cells": parts["cells"] - draws, "draws": draws}
    fractions = {name: part / total if total else 0.0 for name, part in parts.items()}
    return Shown(None if reason else smallest_difference(design, level), fractions, reason)


@lru_cache(maxsize=64)
def matched_draws(round_size: int, most: int, coverage: float) -> Matched:
    """Compute what the samples of a prompt amount to when they come in batches at a coverage."""
    ends = Rounds.up_to(round_size, most).ends(coverage).items()
    empty = math.fsum(chance for (_, k), chance in ends if not k)
    inverse = math.fsum(chance / k for (_, k), chance in ends if k)
    not_empty = math.fsum(chance for (_, k), chance in ends if k)
    return Matched(coverage, empty, inverse / not_empty if not_empty > 0 else 1.0)


def variance_of_group(variances: Sequence[CellVariance], name: str) -> CellVariance:
    """Find a group's own variances; for a group that has none take the mean of all groups."""
    for v in variances:
        if v.group == name:
            return v
    numbers = ("share", "coverage", "var_job", "var_template", "var_residual", "var_difference")
    means = {field: float(np.mean([getattr(v, field) for v in variances])) for field in numbers}
    return variances[0].model_copy(update={"group": name, **means})
