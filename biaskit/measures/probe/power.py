"""Which differences a design of the prober would show, as its plan says (methods/averages#power)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from biaskit.common.wording import listed, people, percent, points
from biaskit.corpora.variance import CellVariance, load_cell_variance
from biaskit.measurement import words
from biaskit.measures.probe.design import ProbeDesign
from biaskit.runs.sample_batches import SampleBatches
from biaskit.stats.arms import group_pairs
from biaskit.stats.contrast import LEVEL
from biaskit.stats.contrasts import MOST_EMPTY
from biaskit.stats.crossed import CONDITIONAL_ON_TEMPLATES
from biaskit.stats.power import FEWEST_UNITS, NOT_JUDGED, POWER, Design, Side, is_named, smallest_difference
from biaskit.stats.verdict import first_level

NOT_WORTH_NAMING = 0.05
_SAYS: Mapping[str, Any] = words("probe")["power"]


@dataclass(frozen=True, slots=True)
class Matched:
    """What the samples of one cell amount to on average, at a coverage."""

    coverage: float
    empty: float  # part of the cells in which no sample names a target word
    inverse: float  # mean of 1/K over the others, K the samples that do


@dataclass(frozen=True, slots=True)
class Shown:
    """The smallest difference that a design shows in 80 % of runs, and where its variance comes from."""

    difference: float | None  # None: there is a reason, or none is large enough
    parts: dict[str, float]  # jobs, templates, cells, samples: fractions of the variance
    reason: str | None = None  # why no difference gets a conclusion


def plan_sentence(
    design: ProbeDesign, estimator: str, samples: int | None, *, of_demo: bool, n_models: int = 1
) -> str:
    """Say before a run which differences it can detect; "" where the variance of its shares is not known.

    The level is the first lead's (methods/tests#tree). The variances are those of the base demo's own run.
    Another model's samples are all assumed to name a target word.
    """
    gender = "female" if "female" in design.groups else design.contrast[0]
    jobs_of = Counter(item.group for item in design.items)
    pairs = group_pairs(list(jobs_of))
    groups = next(iter(pairs), tuple(jobs_of))
    sizes = [jobs_of[name] for name in groups]
    if min(sizes) < FEWEST_UNITS:
        return str(_SAYS["few_jobs"]).format(NOT_JUDGED, FEWEST_UNITS)
    units: dict[str, set[str | int]] = {}  # bias type → what counts as a template
    for template in design.templates:
        units.setdefault(template.bias_type, set()).add(template.frame or template.id)
    helped = any(design.debiasing_prompts) or len(design.contexts) > 1
    n_leads = max(len(pairs), 1) * len(units) * n_models
    level = first_level(1 + (n_models > 1) + helped, n_leads, strict=design.study.strict)
    drawn = samples if estimator == "sampling" else None
    known = load_cell_variance()
    if all(v.gender != gender for v in known):
        return str(_SAYS["own_groups"]).format(NOT_JUDGED)
    shown_parts, not_shown, between_models = [], [], []
    for bias_type, of_units in units.items():
        of_type = [v for v in known if (v.gender, v.bias_type) == (gender, bias_type)]
        if not of_type:
            continue
        matched = None
        if drawn is not None:
            coverage = float(np.mean([v.coverage for v in of_type])) if of_demo else 1.0
            matched = matched_samples(drawn, design.study.max_samples_per_prompt, coverage)
        variances = [variance_of_group(of_type, name) for name in groups]
        shown = smallest_shown(variances, sizes, len(of_units), matched, level)
        if shown.reason:
            not_shown.append(_SAYS["untestable"].format(bias_type, shown.reason))
            continue
        if not is_named(shown.difference):
            not_shown.append(_SAYS["too_large"].format(bias_type, NOT_JUDGED))
            continue
        if n_models > 1:
            of_models = smallest_shown(variances, sizes, len(of_units), matched, level, n_models=2).difference
            found = "over 100 points" if of_models is None else points(of_models)
            between_models.append(f"{found} ({bias_type})")
        sources = []
        for name, part in sorted(shown.parts.items(), key=lambda part: -part[1]):
            if part >= NOT_WORTH_NAMING:
                sources.append(f"{_SAYS['parts'][name]} {percent(part)} %")
        shown_parts.append(f"{points(shown.difference)} ({bias_type}; variance: {', '.join(sources)})")
    if not shown_parts:
        return " ".join(not_shown)
    between = f"between {' and '.join(groups)} jobs" if len(groups) > 1 else "from 50 %"
    assumed = "demo-base's variance"
    if drawn is not None and not of_demo:
        assumed += " and a target word in every sample"
    if estimator == "top-k":
        assumed += ", plus the width of the top-k bounds"
    of_two = f"{people(gender)} among {' and '.join(map(people, design.contrast))}"
    said = _SAYS["shown"].format(of_two, between, listed(shown_parts), percent(POWER), assumed)
    if between_models:
        said += " " + _SAYS["between_models"].format(listed(between_models))
    return " ".join([said, *not_shown])


def smallest_shown(
    variances: Sequence[CellVariance],
    jobs: Sequence[int],
    n_templates: int,
    matched: Matched | None,  # None: no samples
    level: float = LEVEL,
    *,
    n_models: int = 1,
) -> Shown:
    """Solve for the difference between two groups that a design shows; of one group, from a fixed share.

    `n_models` = 2: for how far two models differ in it, as if nothing of their variance were shared.
    """
    reason = None
    if n_templates in CONDITIONAL_ON_TEMPLATES:
        reason = _SAYS["few_templates"][n_templates - 1]
    elif matched is not None and matched.empty > MOST_EMPTY:
        reason = _SAYS["empty"].format(matched.coverage, percent(matched.empty))
    sides, of_templates, samples = [], [], 0.0
    for n, v in zip(jobs, variances, strict=True):
        # The mean of p (1 − p) over a group's cells, by the mean and the variance of p.
        of_a_sample = v.share * (1.0 - v.share) - v.var_job - v.var_template - v.var_residual
        of_samples = max(of_a_sample, 0.0) * (matched.inverse if matched else 0.0)
        samples += n_models * of_samples / (n * n_templates)
        sides.append(Side(n, n_models * v.var_job, n_models * (v.var_residual + of_samples)))
        of_templates.append(n_models * (v.var_template if len(jobs) == 1 else v.var_difference))
    design = Design(tuple(sides), n_templates, float(np.mean(of_templates)))
    parts, total = design.parts(), design.variance()
    parts = {**parts, "cells": parts["cells"] - samples, "samples": samples}
    fractions = {name: part / total if total else 0.0 for name, part in parts.items()}
    return Shown(None if reason else smallest_difference(design, level), fractions, reason)


@lru_cache(maxsize=64)
def matched_samples(size_of_batch: int, most: int, coverage: float) -> Matched:
    """Compute what the samples of a prompt amount to when they come in batches at a coverage."""
    empty, others, inverse = [], [], []
    for (_, k), chance in SampleBatches.up_to(size_of_batch, most).ends(coverage).items():
        if not k:
            empty.append(chance)
            continue
        others.append(chance)
        inverse.append(chance / k)
    not_empty = math.fsum(others)
    return Matched(coverage, math.fsum(empty), math.fsum(inverse) / not_empty if not_empty > 0 else 1.0)


def variance_of_group(variances: Sequence[CellVariance], name: str) -> CellVariance:
    """Find a group's own variances; for a group that has none take the mean of all groups."""
    for v in variances:
        if v.group == name:
            return v
    update: dict[str, object] = {"group": name}
    for number in ("share", "coverage", "var_job", "var_template", "var_residual", "var_difference"):
        update[number] = float(np.mean([getattr(v, number) for v in variances]))
    return variances[0].model_copy(update=update)
