"""Say which answers changed from one model to another (methods/comparisons#change)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from biaskit.common.wording import count, percent, points, share_with_interval
from biaskit.records import ALL
from biaskit.report.content import Content
from biaskit.report.findings.claims import shared_words
from biaskit.report.findings.finding import measured_by, noted
from biaskit.report.findings.sentence import (
    CLEAR,
    Foreign,
    Piece,
    Sentence,
    filled,
    opening,
    pronoun,
    sentence_of,
)
from biaskit.tables.coverage import WEAK
from biaskit.tables.query import Row, in_main_context, where

MOST_SAID = 3
"""Of more pairs of models the table alone speaks."""


def said_rows(content: Content) -> list[Row]:
    """Pick the rows of changes.csv that sentences and figures speak of: all jobs, no debiasing prompt."""
    rows = where(content.between.get("changes", ()), job_group=ALL)
    rows = in_main_context([row for row in rows if row["n_prompts"] and not row["debiasing_id"]])
    return rows if len({(row["before"], row["after"]) for row in rows}) <= MOST_SAID else []


def changes(content: Content) -> Iterator[Sentence]:
    """Say how many answers changed, beside what the same weights do; of samples the typical change."""
    floor = shared_words()["changes"]["float32"]
    dtype_of = {model.label: model.details.get("dtype") for model in content.models}
    for row in said_rows(content):
        if row["n_flips"] is None and row["separable"] is None:
            continue
        sentence = _sentence(row)
        yield sentence
        dtypes = {dtype_of.get(row["before"]), dtype_of.get(row["after"])}
        if floor and row["estimator"] == "exact" and dtypes == {"float32"}:
            beside = sentence_of(floor, "models", "models", measured=sentence.finding.measured_with)
            yield replace(beside, beside=sentence.finding)
            floor = ""


def _sentence(row: Row) -> Sentence:
    said, n, jobs = shared_words()["changes"], row["n_flips"], count(row["n_jobs"], "job")
    pieces: dict[str, Piece] = {"opening": opening(row["bias_type"], (row["coverage"],) * 2, whose="their")}
    pieces |= {"before": Foreign(row["before"]), "after": Foreign(row["after"]), "jobs": jobs, "mean": ""}
    pieces |= {"prompts": count(row["n_prompts"], "prompt"), "n": str(n), "near": ""}
    templates = said["none"] if row["flips_high"] is not None else said["none"][1:]
    if n is None:
        templates = said["separable" if row["separable"] else "inseparable"]
        pieces["typical"] = points(row["typical_change"])
    elif n:
        templates = said["flips"]
        to = {name.removeprefix("to_"): n for name, n in row.items() if name.startswith("to_") and n}
        counts = sorted(to.items(), key=lambda item: -item[1])
        pieces["to"] = ", ".join(f"{n} {pronoun(group)}" for group, n in counts)
    if row["n_near_tie"]:
        pieces["near"] = said["near" if n else "none_near"].format(n=row["n_near_tie"])
    if row["equivalent"]:
        pieces["mean"] = said["equivalent"].format(margin=points(row["margin"]))
    pieces["rate"] = share_with_interval(row["flips"], row["flips_low"], row["flips_high"])
    pieces["most"] = percent(row["flips_high"] or 0)
    using = measured_by(row["estimator"], f"{row['prompt_format']} prompts", jobs, notes=noted([row]))
    text, weak = filled(*templates, **pieces), row["coverage"] < WEAK
    strength = CLEAR if n or row["separable"] else None
    about = f"changes-{row['bias_type']}"
    return sentence_of(text, "models", "models", "shown", using, about=about, strength=strength, weak=weak)
