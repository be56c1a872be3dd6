"""What a design of the prober can show before it runs (docs/methods.md#power)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from biaskit.corpora.variance import CellVariance, load_cell_variance
from biaskit.errors import RunError
from biaskit.probe.design import ProbeDesign
from biaskit.probe.rounds import Rounds
from biaskit.records import BiasType
from biaskit.stats.arms import group_pairs
from biaskit.stats.contrasts import MOST_EMPTY
from biaskit.stats.power import LEVEL, POWER, Design, Side, power, smallest_difference
from biaskit.tables.query import Row, Tables, distinct, first, in_main_setting, where, without_instruction
from biaskit.wording import listed, people, percent, points

N_CLAIMS = 16
"""Comparisons that a page of one model without instructions adjusts together."""

NOT_WORTH_NAMING = 0.05
MOST = 500
"""Jobs of a group, templates or draws that a search goes up to."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a design is within one bias type."""

    jobs: tuple[int, ...]  # of the group, or of the two groups that are compared
    templates: int
    draws: int | None = None  # of a round in each cell; None: the share is known without draws
    most: int = 0  # draws of a cell, where a cell without enough of them is drawn on


@dataclass(frozen=True, slots=True)
class Shown:
    """The smallest difference that a design shows in 80 % of runs, and where its variance comes from."""

    bias_type: BiasType
    gender: str
    groups: tuple[str, ...]  # two that are compared, or one against a fixed share
    size: Size
    difference: float | None  # by itself, at a level of 5 %
    on_page: float | None  # as the first of `N_CLAIMS` comparisons, Holm-adjusted
    parts: Mapping[str, float]  # jobs, templates, cells, draws: of the variance, as fractions
    reason: str | None = None  # why no difference gets a verdict


@dataclass(frozen=True, slots=True)
class Matched:
    """What draws of one cell come to at a coverage."""

    empty: float  # cells in which no draw names an expression
    inverse: float  # mean of 1/K over the others, K the draws that do
    drawn: float  # mean number of draws


@dataclass(frozen=True, slots=True)
class Outlook:
    """One bias type of a study with the variances that are assumed of it."""

    bias_type: BiasType
    gender: str
    variances: tuple[CellVariance, ...]  # of the groups in `groups`
    size: Size
    coverage: float

    @property
    def groups(self) -> tuple[str, ...]:
        """The one or two groups of jobs."""
        return tuple(v.group for v in self.variances)

    def at(self, size: Size) -> Outlook:
        """The same question asked with another design."""
        return replace(self, size=size)

    def design(self) -> Design:
        """What is reckoned with: the noise of draws is part of a cell's variance."""
        draws = self.matched().inverse if self.size.draws else 0.0
        sides = tuple(
            Side(n, v.var_job, v.var_residual + draws * _spread_of_a_draw(v))
            for n, v in zip(self.size.jobs, self.variances, strict=True)
        )
        of_templates = [
            v.var_template if len(sides) == 1 else v.var_difference or 0.0 for v in self.variances
        ]
        return Design(sides, self.size.templates, float(np.mean(of_templates)))

    def matched(self) -> Matched:
        """What the draws of a cell come to."""
        return matched_draws(self.size.draws or 1, self.size.most, self.coverage)

    def shown(self) -> Shown:
        """What it can show."""
        design, reason = self.design(), self.no_verdict()
        at = (LEVEL, LEVEL / N_CLAIMS)
        alone, on_page = (None if reason else smallest_difference(design, level=level) for level in at)
        if reason is None and alone is None:
            reason = "no difference is large enough"
        return Shown(
            self.bias_type, self.gender, self.groups, self.size, alone, on_page, self._parts(design), reason
        )

    def shows(self, difference: float) -> bool:
        """Whether a difference would get its verdict in 80 % of runs."""
        return self.no_verdict() is None and power(self.design(), difference) >= POWER

    def larger(self) -> dict[str, list[Size]]:
        """What can be made larger, each by itself and jobs with templates, by growing size."""
        size, sizes = self.size, range(2, MOST + 1)
        per_job = size.templates / max(size.jobs)
        ways = {
            "templates": [replace(size, templates=n) for n in sizes],
            "jobs": [replace(size, jobs=(n,) * len(size.jobs)) for n in sizes],
            "jobs and templates": [
                replace(size, jobs=(n,) * len(size.jobs), templates=max(2, math.ceil(n * per_job)))
                for n in sizes
            ],
        }
        return ways | (
            {"draws": [replace(size, draws=n, most=max(n, size.most)) for n in sizes]} if size.draws else {}
        )

    def no_verdict(self) -> str | None:
        """Why nothing that such a design measures gets a verdict, or None."""
        if min(self.size.jobs) < 2:
            return "conditional on one job: no verdict"
        if self.size.templates < 2:
            return "conditional on one template: no verdict"
        if self.size.draws and (empty := self.matched().empty) > MOST_EMPTY:
            return (
                f"{percent(empty)} % of the cells would stay empty at a coverage of {self.coverage:.2g}:"
                " no verdict above 10 %"
            )
        return None

    def _parts(self, design: Design) -> dict[str, float]:
        parts = design.parts()
        known = replace(self, size=replace(self.size, draws=None)).design().parts()["cells"]
        parts = {**parts, "cells": known, "draws": parts["cells"] - known}
        total = sum(parts.values())
        return {name: part / total if total else 0.0 for name, part in parts.items()}


def _spread_of_a_draw(v: CellVariance) -> float:
    """Mean of p (1 − p) over a group's cells, by the mean and the variance of p."""
    return max(v.share * (1.0 - v.share) - v.var_job - v.var_template - v.var_residual, 0.0)


@lru_cache(maxsize=4096)
def matched_draws(round_size: int, most: int, coverage: float) -> Matched:
    """What a cell comes to that is drawn in rounds at a coverage."""
    ends = Rounds.of(round_size, most).ends(coverage).items()
    empty = math.fsum(chance for (_, k), chance in ends if not k)
    inverse = math.fsum(chance / k for (_, k), chance in ends if k)
    known = math.fsum(chance for (_, k), chance in ends if k)
    drawn = math.fsum(chance * n for (n, _), chance in ends)
    return Matched(empty, inverse / known if known > 0 else 1.0, drawn)


def outlooks(
    design: ProbeDesign, variances: Sequence[CellVariance], *, draws: int | None, coverage: float | None
) -> list[Outlook]:
    """For each bias type of a study that the variances know, what is reckoned with.

    Args:
        draws: of a round of each cell; None where the estimator draws nothing.
        coverage: the probability that a draw names an expression; None: that of the variances.
    """
    found = []
    most = design.study.max_draws_per_cell if draws else 0
    jobs_of = {group: [i.name for i in design.items if i.group == group] for group in _groups(design)}
    for bias_type in dict.fromkeys(template.bias_type for template in design.templates):
        own = [v for v in variances if v.bias_type == bias_type]
        if not own:
            continue
        names = next(iter(group_pairs(list(jobs_of))), tuple(jobs_of))
        chosen = tuple(_of_group(own, name) for name in names)
        templates = sum(template.bias_type == bias_type for template in design.templates)
        size = Size(tuple(len(jobs_of[name]) for name in names), templates, draws, most)
        known = float(np.mean([v.coverage for v in own]))
        found.append(Outlook(bias_type, own[0].gender, chosen, size, known if coverage is None else coverage))
    return found


def _groups(design: ProbeDesign) -> list[str]:
    return list(dict.fromkeys(item.group for item in design.items))


def _of_group(own: Sequence[CellVariance], name: str) -> CellVariance:
    """The group's own variances where it is known by name, else the mean of those that are."""
    for v in own:
        if v.group == name:
            return v

    def mean(of: str) -> float:
        return float(np.mean([value for v in own if (value := getattr(v, of)) is not None] or [0.0]))

    return CellVariance(
        own[0].bias_type,
        name,
        own[0].gender,
        share=mean("share"),
        coverage=mean("coverage"),
        var_job=mean("var_job"),
        var_template=mean("var_template"),
        var_residual=mean("var_residual"),
        var_difference=mean("var_difference"),
    )


# --- from a run's tables ---------------------------------------------------------------------------------


def variance_of_tables(tables: Tables, model: str, gender: str, where_from: str) -> list[CellVariance]:
    """The variances of one model of a run, without an instruction and in its main setting.

    `where_from` names the run in the error of one that has none. The noise that draws bring to a cell, by
    `se_sampling`, is no part of var_residual.
    """
    groups, parts, templates = (
        in_main_setting(without_instruction(where(tables.get(name, ()), model=model, gender=gender)))
        for name in ("probe_groups", "probe_variance", "probe_templates")
    )
    found = []
    for bias_type in distinct(groups, "bias_type"):
        rows = where(groups, bias_type=bias_type)
        names = next(iter(group_pairs(distinct(rows, "job_group"))), tuple(distinct(rows, "job_group")))
        own = [_of_row(row, parts) for name in names for row in where(rows, job_group=name)]
        if any(v is None for v in own):
            continue
        known = [v for v in own if v is not None]
        between = _between_templates(where(templates, bias_type=bias_type), names)
        if between is not None:
            cells = sum(
                first(rows, job_group=v.group)["n_jobs"] ** -1 * residual  # type: ignore[index]
                for v, residual in zip(known, _residuals(known, parts), strict=True)
            )
            known = [replace(v, var_difference=max(between - cells, 0.0)) for v in known]
        found += known
    if not found:
        raise RunError(
            f"{where_from} has no variance of {model}: it takes two jobs of each group and two templates."
        )
    return found


def _residuals(known: Sequence[CellVariance], parts: Sequence[Row]) -> Iterator[float]:
    """The residual variances as measured, noise of draws included."""
    for v in known:
        row = first(parts, bias_type=v.bias_type, job_group=v.group)
        yield 0.0 if row is None else float(row["var_residual"])


def _of_row(row: Row, parts: Sequence[Row]) -> CellVariance | None:
    own = first(parts, bias_type=row["bias_type"], job_group=row["job_group"])
    if own is None or own["var_residual"] is None or row["share"] is None or row["coverage"] is None:
        return None
    noise = (row["se_sampling"] or 0.0) ** 2 * row["n_jobs"] * row["n_templates"]
    return CellVariance(
        row["bias_type"],
        str(row["job_group"]),
        str(row["gender"]),
        row["share"],
        row["coverage"],
        own["var_job"],
        own["var_template"],
        max(own["var_residual"] - noise, 0.0),
        None,
    )


def _between_templates(rows: Sequence[Row], groups: Sequence[str]) -> float | None:
    """Sample variance over templates of the difference of two groups' mean shares."""
    if len(groups) < 2:
        return None
    shares = [{r["template_id"]: r["share"] for r in where(rows, job_group=group)} for group in groups]
    both = [
        one - shares[1][t] for t, one in shares[0].items() if one is not None and shares[1].get(t) is not None
    ]
    return float(np.var(both, ddof=1)) if len(both) > 1 else None


# --- in words --------------------------------------------------------------------------------------------


def plan_sentence(design: ProbeDesign, estimator: str, draws: int | None, *, of_demo: bool) -> str:
    """What a plan says before it runs, by the variance of the demo model's own run; "" where it knows none.

    Of draws by another model than the demo all are taken to name a listed word.
    """
    known = [v for v in load_cell_variance() if v.gender == gender_of(design)]
    drawn = draws if estimator == "sampling" else None
    coverage = None if of_demo or drawn is None else 1.0
    found = [outlook.shown() for outlook in outlooks(design, known, draws=drawn, coverage=coverage)]
    also = "as the demo does" if coverage is None else "as the demo does and every draw names a listed word"
    return sentence(found, also, bounds=estimator == "top-k")


def gender_of(design: ProbeDesign) -> str:
    """Whose share is spoken of: women's, else that of the contrast's first group."""
    return "female" if "female" in design.groups else design.contrast[0]


def sentence(found: Sequence[Shown], varies: str, *, bounds: bool = False) -> str:
    """The smallest differences in words, with where their variance comes from."""
    parts = []
    for one in (one for one in found if one.difference is not None):
        most = sorted(one.parts.items(), key=lambda part: -part[1])
        sources = [f"{name} {percent(part)} %" for name, part in most if part >= NOT_WORTH_NAMING]
        parts.append(f"{points(one.difference or 0.0)} ({one.bias_type}; variance: {', '.join(sources)})")
    said = []
    if parts:
        groups = found[0].groups
        between = f"between {' and '.join(groups)} jobs" if len(groups) > 1 else "from 50 %"
        more = ", and the bounds of top-k come on top" if bounds else ""
        said.append(
            f"Differences of {listed(parts)} in the share of {people(found[0].gender)} {between} would show"
            f" in {percent(POWER)} % of such runs, each by itself, if the model varies {varies}{more} (see"
            " biaskit plan)."
        )
    said += [f"No {one.bias_type} difference would show: {one.reason}." for one in found if one.reason]
    return " ".join(said)
