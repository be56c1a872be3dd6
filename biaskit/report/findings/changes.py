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
    STRENGTH,
    Foreign,
    Piece,
    Sentence,
    filled,
    opening,
    pronoun,
    sentence_of,
)
from biaskit.stats.verdict import MAIN_CONTEXTS
from biaskit.tables.coverage import WEAK
from biaskit.tables.query import Row, among, where

MOST_SAID = 3
"""Of more pairs of models the table alone speaks."""
FLOOR = 0.0001
"""No share moved by more where the same weights were asked again in batches of another size."""


def said_rows(content: Content) -> list[Row]:
    """Pick the rows of changes.csv that sentences and figures speak of: all jobs, no debiasing prompt."""
    rows = where(content.between.get("changes", ()), job_group=ALL)
    rows = [row for row in rows if row["n_prompts"] and not row["debiasing_id"]]
    rows = among(rows, "context", MAIN_CONTEXTS) or rows
    return rows if len({(row["before"], row["after"]) for row in rows}) <= MOST_SAID else []


def changes(content: Content) -> Iterator[Sentence]:
    """Say how many answers changed, and beside it what the same weights do; of samples the typical change."""
    floors = set[str]()
    for row in said_rows(content):
        sentence = _of_row(row)
        if sentence is None:
            continue
        yield sentence
        floor = _floor(content, row)
        if floor not in {"", *floors}:
            floors.add(floor)
            beside = sentence_of(floor, "models", "models", measured=sentence.finding.measured_with)
            yield replace(beside, beside=sentence.finding)


def _of_row(row: Row) -> Sentence | None:
    words, coverage = shared_words()["changes"], (row["coverage"], row["coverage"])
    pieces: dict[str, Piece] = {"opening": opening(row["bias_type"], coverage, whose="their")}
    pieces |= {"before": Foreign(row["before"]), "after": Foreign(row["after"])}
    pieces |= {"prompts": count(row["n_prompts"], "prompt"), "jobs": count(row["n_jobs"], "job")}
    near, n_near, high = "none_near" if not row["n_flips"] else "near", row["n_near_tie"], row["flips_high"]
    pieces["near"] = words[near].format(n=n_near) if n_near else ""
    strength = STRENGTH["shown"]
    if row["n_flips"]:
        templates, strength = words["flips"], CLEAR
        pieces["n"] = str(row["n_flips"])
        pieces["rate"] = share_with_interval(row["flips"], row["flips_low"], high)
        pieces["to"] = ", ".join(f"{n} {pronoun(group)}" for group, n in _flipped_to(row).items())
        equivalent = words["equivalent"].format(margin=points(row["margin"])) if row["equivalent"] else ""
        pieces["mean"] = equivalent
    elif row["n_flips"] == 0:
        templates = words["none"] if high is not None else [words["none_alone"]]
        pieces["rate"] = f"{percent(high)} %" if high is not None else ""
    elif row["separable"]:
        templates, strength = [words["separable"]], CLEAR
        pieces["typical"] = points(row["typical_change"])
    elif row["separable"] is not None:
        templates = [words["inseparable"]]
    else:
        return None
    size = count(row["n_jobs"], "job")
    using = measured_by(row["estimator"], f"{row['prompt_format']} prompts", size, notes=noted([row]))
    about, weak = f"changes-{row['bias_type']}", row["coverage"] < WEAK
    text = filled(*templates, **pieces)
    return sentence_of(text, "models", "models", "shown", using, about=about, strength=strength, weak=weak)


def _flipped_to(row: Row) -> dict[str, int]:
    """Map each group to its flips, the most first; groups without any are left out."""
    to = {name.removeprefix("to_"): n for name, n in row.items() if name.startswith("to_") and n}
    return dict(sorted(to.items(), key=lambda item: -item[1]))


def _floor(content: Content, row: Row) -> str:
    """Say what the same weights do when they are asked again: as measured here, or of exact float32."""
    if row["n_flips"] is None:
        return ""
    words, models = shared_words()["changes"], {model.label: model for model in content.models}
    before, after = models[row["before"]], models[row["after"]]
    again = []
    for changed in content.between.get("changed_prompts", ()):
        one, other = models[changed["before"]], models[changed["after"]]
        if one.fingerprint == other.fingerprint == before.fingerprint:
            again.append(abs(changed["change"]))
    if again:
        return str(words["measured"].format(points=f"{100 * max(again):.1g}"))
    if {before.details.get("dtype"), after.details.get("dtype")} == {"float32"} and row[
        "estimator"
    ] == "exact":
        return str(words["float32"].format(points=f"{100 * FLOOR:g}"))
    return ""
