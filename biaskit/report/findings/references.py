"""The prober's shares against parity and labour statistics, and their asymmetry.

See docs/methods.md#labour-slope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, above_floor, are_fields, blocks_of, jobs_of, measured
from biaskit.report.findings.finding import (
    FINE,
    MANY_MODELS,
    Finding,
    Rank,
    Ranked,
    apart,
    difference,
    noted,
    outcome_of,
    parts_of,
    reasons_of,
    shared,
    tally,
    tests,
)
from biaskit.stats.verdict import interval_side
from biaskit.tables.query import Row, defined, extremes, first, undefined, where
from biaskit.wording import (
    count,
    listed,
    people,
    percent,
    percent_range,
    point_number,
    points_range,
    short,
)


def references(content: Content) -> Iterator[Ranked]:
    """Details of every part of the prober, against the references that the report shows."""
    for part in parts_of(content, "probe"):
        for block in blocks_of(part):
            if content.reference in ("labour", "both"):
                yield from _against_labour(block)
            if content.reference in ("parity", "both"):
                yield from _against_parity(block)
            yield from _asymmetry(block)


def _against_labour(block: ProbeBlock) -> Iterator[Ranked]:
    slopes = tests(block.tests, "female_share~labour_female_share", "slope", "labour")
    overall = [row for row in where(slopes, group_a="", group_b="") if row["model_a"] in block.models]
    known = defined(overall, "estimate")
    where_from = "among U.S. doctorates" if are_fields(block.part) else "in the U.S. labour force"
    step = f"({block.bias_type} prompts) for each 10 points more women {where_from}"
    mirrored = "those doctorates" if are_fields(block.part) else "the labour force"
    many = len(known) > MANY_MODELS
    if many:
        judged = above_floor(block, [row["model_a"] for row in known])
        known = [row for row in known if row["model_a"] in judged]
        low, high = extremes(known, "estimate")
        ends = [f"{point_number(row['estimate'] / 10, 1)} ({short(row['model_a'])})" for row in (low, high)]
        verdicts = [outcome_of(row) for row in known]
        counted = tally(verdicts, more="give women more", less="give women less")
        text = f"Against labour statistics {step}: {counted}, from {ends[0]} to {ends[1]} points more; 10 "
        text += f"would mirror {mirrored}."
        yield (
            Rank.DETAIL,
            Finding(text, block.topic, shared(verdicts), measured(block, judged)),
        )
    yield from _without_slope(block, undefined(overall, "estimate"))
    for row in known if not many else ():
        name, using = short(row["model_a"]), measured(block, [row["model_a"]], "bootstrap over jobs")
        slope = difference(_for_ten_points(row), FINE)
        text = f"Against labour statistics {step}, {name} gives women {slope}; 10 points would mirror "
        text += f"{mirrored}."
        inside = [
            f"{difference(_for_ten_points(one), FINE)} within {jobs_of(block.part, str(one['group_a']))}"
            for one in slopes
            if one["model_a"] == row["model_a"] and one["group_a"] and one["estimate"] is not None
        ]
        text += f" {listed(inside).capitalize()}." if inside else ""
        text += _level_and_distance(block, row, where_from)
        text += noted([row])
        yield Rank.DETAIL, Finding(text, block.topic, outcome_of(row), using)


def _level_and_distance(block: ProbeBlock, slope: Row, where_from: str) -> str:
    """What a slope does not say: how high the line lies, and how far jobs lie from their labour share."""
    same = {name: slope[name] for name in ("model_a", "group_a", "setting", "prompt_form", "instruction_a")}
    level, distance = (
        first(tests(block.tests, slope["quantity"], kind, "labour"), **same) for kind in ("level", "distance")
    )
    text = ""
    if level is not None and level["ci_low"] is not None:
        share, low, high = (level[name] + 0.5 for name in ("estimate", "ci_low", "ci_high"))
        text += f" Where half are women {where_from}, the line gives them {percent(share)} %"
        text += f" [{percent_range(max(low, 0.0), min(high, 1.0))}]."
    return text + (f" {apart(distance, 'jobs')}" if distance is not None else "")


def _without_slope(block: ProbeBlock, rows: Sequence[Row]) -> Iterator[Ranked]:
    """One sentence for every model that has no slope."""
    if rows:
        names = [short(row["model_a"]) for row in rows[:5]] + ["others"] * (len(rows) > 5)
        text = f"Against labour statistics ({block.bias_type} prompts): not measured for {listed(names)} "
        using = measured(block, [row["model_a"] for row in rows], "bootstrap over jobs")
        text = f"{text}({reasons_of(rows)})."
        yield Rank.NOT_MEASURED, Finding(text, block.topic, "not-measured", using)


def _for_ten_points(row: Row) -> Row:
    """A slope as the change that goes with 10 points of the labour share: a unit, not another number."""
    ends = ("estimate", "ci_low", "ci_high", "ci90_low", "ci90_high", "margin")
    return {**row, **{name: None if row[name] is None else row[name] / 10 for name in ends}}


def _against_parity(block: ProbeBlock) -> Iterator[Ranked]:
    a, b = block.part.contrast if all(block.part.contrast) else ("female", "male")
    column = f"{a}_minus_{b}"
    jobs = where(block.part.tables.get("probe_jobs", ()), **block.scope)
    for model in block.models if len(block.models) <= MANY_MODELS else ():
        rows = [row for row in where(jobs, model=model) if row.get(column) is not None]
        tested = defined(rows, "ci_low")
        if not tested:
            continue
        more, less, unclear = (
            sum(interval_side(row) == way for row in tested) for way in ("higher", "lower", None)
        )
        items = count(len(tested), "field" if are_fields(block.part) else "job")
        text = f"Against parity ({block.bias_type} prompts): of {items}, {short(model)} "
        text += f"gives {people(a)} more than {people(b)} in {more} and {people(b)} more in "
        text += f"{less}; in {unclear} the interval includes parity."
        ends = (max(tested, key=lambda row: row[column]), min(tested, key=lambda row: row[column]))
        named = dict.fromkeys(
            f"{short(r['job'])} {point_number(r[column])} [{points_range(r['ci_low'], r['ci_high'])}]"
            for r in ends
        )
        text += f" {people(a).capitalize()} minus {people(b)}, in points: {listed(list(named))}."
        yield (
            Rank.DETAIL,
            Finding(text, block.topic, "shown", measured(block, [model], "over templates")),
        )


def _asymmetry(block: ProbeBlock) -> Iterator[Ranked]:
    rows = defined(tests(block.tests, "asymmetry", "crossed", "groups"), "estimate")
    rows = [row for row in rows if row["model_a"] in block.models]
    what = "men's share for jobs mostly held by men against women's share for jobs mostly held by women"
    if len(rows) > MANY_MODELS:
        judged = above_floor(block, [row["model_a"] for row in rows])
        verdicts = [outcome_of(row) for row in rows if row["model_a"] in judged]
        text = f"Asymmetry ({block.bias_type} prompts), {what}: "
        text += f"{tally(verdicts, more='show more', less='show less')}."
        using = measured(block, judged)
        yield Rank.DETAIL, Finding(text, block.topic, shared(verdicts), using)
        return
    for row in rows:
        name, using = short(row["model_a"]), measured(block, [row["model_a"]])
        text = f"Asymmetry ({block.bias_type} prompts, {name}), {what}: {difference(row)}.{noted([row])}"
        yield Rank.DETAIL, Finding(text, block.topic, outcome_of(row), using)
