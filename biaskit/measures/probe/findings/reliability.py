"""Say how stable a run's numbers are: between halves of the templates, between ways to ask."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence

from biaskit.common.wording import plain_number, point_number, points, points_range
from biaskit.measurement import words
from biaskit.measures.probe.findings.blocks import ProbeBlock, blocks_in, measured
from biaskit.measures.probe.reliability import HALVES, MEDIAN, SAME, TEMPLATES_SD, WAYS_SD, WITHOUT
from biaskit.records import ALL
from biaskit.report.content import Content
from biaskit.report.findings.sentence import DETAIL, Foreign, Piece, Sentence, filled, sentence_of
from biaskit.tables.query import Row, among, column, defined, where

_SAYS = words("probe")["reliability"]
_LEAST, _STABLE = (0.7, 0.9), ("not stable", "fairly stable", "stable")
_ANSWERS = {"explicit", "implicit", "sampled"}


def stability(content: Content) -> Iterator[Sentence]:
    """Say of each model whether other templates would order jobs alike, and what other ways would show."""
    for block in blocks_in(content):
        for model in block.models:
            of_model, using = rows_of(block, model), measured(block, model)
            pieces: dict[str, Piece] = {"opening": block.opening(), "model": Foreign(model)}
            said: dict[str, str] = {}  # text → its first number
            for row in where(of_model, measure=HALVES, job_group=ALL):
                said |= _said("halves", row, "value", pieces)
            for row in where(block.part.tables.get("validity", ()), model=model):
                first, second = row["measure_a"], row["measure_b"]
                other = second.removeprefix(f"{first}, ")
                if second.startswith(block.bias_type) and {first, other} <= _ANSWERS:
                    said |= _said("validity", row, "correlation", {**pieces, "first": first, "other": other})
            if ways := ways_in_numbers(of_model):
                said[filled(*_SAYS["ways"], **pieces, **ways)] = ""
            for text, number in said.items():
                how = {"about": "sure", "number": number}
                topic, weak = block.topic, block.is_weak(model)
                yield sentence_of(text, topic, "sure", "shown", using, **how, strength=DETAIL, weak=weak)


def _said(template: str, row: Row, name: str, pieces: Mapping[str, Piece]) -> dict[str, str]:
    """Say a number of a row that has one with its interval: text → number."""
    if row[name] is None:
        return {}
    value, *ends = map(plain_number, map(row.__getitem__, (name, "ci_low", "ci_high")))
    own = {
        "value": value,
        "interval": f" [{' to '.join(ends)}]",
        "stable": _STABLE[bisect(_LEAST, row[name])],
    }
    own["noise"] = " (not corrected for noise)" if row["reason"] else ""
    return {filled(_SAYS[template], **pieces, **own): f"{value}{own['interval']}"}


def rows_of(block: ProbeBlock, model: str) -> list[Row]:
    """Pick a model's rows of reliability.csv."""
    return where(block.part.tables.get("reliability", ()), model=model, **block.way)


def ways_in_numbers(rows: Sequence[Row]) -> Mapping[str, str]:
    """Write what the ways of one model and bias type differ by; empty where fewer than two are counted."""
    row_of = {row["measure"]: row for row in rows}
    middle, same, sd = map(row_of.get, (MEDIAN, SAME, WAYS_SD))
    if middle is None or same is None or sd is None or middle["n_ways"] < 2:
        return {}
    said = {"same": f"{same['value']:.0f}", "n": str(same["n_ways"]), "median": point_number(middle["value"])}
    said["range"] = points_range(middle["least"], middle["most"])
    templates = row_of.get(TEMPLATES_SD, {}).get("value")
    said["sd"] = "–" if sd["value"] is None else points(sd["value"])
    return said | {"templates": "–" if templates is None else point_number(templates)}


def without_one(block: ProbeBlock, model: str) -> Iterator[str]:
    """Say how far a model's gap moves where a job or a template is left out."""
    if rows := defined(among(rows_of(block, model), "measure", WITHOUT), "least"):
        ends = min(column(rows, "least")), max(column(rows, "most"))
        yield _SAYS["without"].format(points_range(*ends))
