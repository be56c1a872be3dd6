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
from biaskit.tables.coverage import WEAK, is_under
from biaskit.tables.query import Row, grouped, in_main_context, where

MOST_SAID = 3
"""Of more pairs of models the table alone speaks, along an axis of all but the last."""


def said_rows(content: Content) -> list[Row]:
    """Pick the rows that sentences and figures speak of: of two runs, all jobs, no debiasing prompt."""
    run_of = {model.label: model.run for model in content.models if model.estimator}
    rows = where(content.between.get("changes", ()), job_group=ALL, debiasing_id=0)
    rows = [row for row in rows if row["n_prompts"] and run_of[row["before"]] != run_of[row["after"]]]
    rows = in_main_context(rows)
    if len(grouped(rows, "before", "after")) <= MOST_SAID:
        return rows
    return where(rows, after=rows[-1]["after"]) if content.between.get("curve") else []


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
        if floor and row["estimator"] == "exact" and dtypes == {"float32"} and not sentence.finding.weak:
            beside = sentence_of(floor, "models", "models", measured=sentence.finding.measured_with)
            yield replace(beside, beside=sentence.finding)
            floor = ""


def _sentence(row: Row) -> Sentence:
    said, n, jobs = shared_words()["changes"], row["n_flips"], count(row["n_jobs"] or 0, "job")
    coverage = None if row["coverage"] is None else (row["coverage"], row["coverage"])
    pieces: dict[str, Piece] = {"opening": opening(row["bias_type"], coverage, whose="their")}
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
    asked = f"{row['prompt_format']} prompts, {jobs}" if row["n_jobs"] else count(row["n_prompts"], "pair")
    using = measured_by(row["estimator"], asked, notes=noted([row]))
    text, weak = filled(*templates, **pieces), is_under(coverage, WEAK)
    strength = CLEAR if n or row["separable"] else None
    about = f"changes-{row['bias_type']}"
    return sentence_of(text, "models", "models", "shown", using, about=about, strength=strength, weak=weak)
