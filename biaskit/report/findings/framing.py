"""What the framing of a question changes, and what its wording does (docs/methods.md#factors, #wording)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, blocks_of, jobs_of, measured
from biaskit.report.findings.finding import (
    MANY_MODELS,
    Finding,
    Outcome,
    Rank,
    Ranked,
    difference,
    noted,
    outcome_of,
    parts_of,
    reasons_of,
    tests,
)
from biaskit.report.render.framing import EVERY_FRAME, line_of_wording, same_sign
from biaskit.tables.quantities import OF_FACTORS
from biaskit.tables.query import Row, defined, grouped, where
from biaskit.wording import people, points, points_range, short


def framing(content: Content) -> Iterator[Ranked]:
    """Findings of every part of the prober whose templates have frames."""
    for part in parts_of(content, "probe"):
        for block in blocks_of(part):
            for model in block.models:
                yield from _factors(block, model)
                yield from _wording(block, model)


def _factors(block: ProbeBlock, model: str) -> Iterator[Ranked]:
    """A sentence for each factor and each interaction; its verdict is that of the groups' difference."""
    for contrast in OF_FACTORS:
        own = factor_rows(block, model, contrast)
        for (a, b), effect in grouped(own, "instruction_a", "instruction_b").items():
            what = f"{a} against {b}"
            if contrast == "interactions":
                what = f"the effect of {a} against that of {b}"
            yield _rank(block), _effect(block, model, what, effect)


def factor_rows(block: ProbeBlock, model: str, contrast: str) -> list[Row]:
    """Rows of the factors or of their interactions, without an instruction."""
    scope = {name: value for name, value in block.scope.items() if name != "instruction_id"}
    rows = where(block.part.tables.get("tests", ()), **scope, gender=block.gender, model_a=model)
    return [row for row in tests(rows, "share", "crossed", contrast) if ": " not in row["instruction_a"]]


def over_paraphrases(block: ProbeBlock, model: str) -> list[Row]:
    """Rows of two groups of jobs over every frame's paraphrases."""
    table = block.part.tables.get("probe_wording", ())
    rows = where(table, **block.scope, model=model, gender=block.gender, frame=EVERY_FRAME)
    return [row for row in rows if row["group_b"]]


def _rank(block: ProbeBlock) -> Rank:
    """Of many models the sentences stand among the details."""
    return Rank.DETAIL if len(block.models) > MANY_MODELS else Rank.LEAD


def _effect(block: ProbeBlock, model: str, what: str, rows: Sequence[Row]) -> Finding:
    using = measured(block, [model])
    text = f"Framing ({block.bias_type} prompts, {short(model)}), {what}, share of {people(block.gender)}: "
    if not defined(rows, "estimate"):
        text += f"not measured ({reasons_of(rows)})."
        return Finding(text, block.topic, "not-measured", using)
    groups = [row for row in rows if row["group_a"] == row["group_b"]]
    between = [row for row in rows if row["group_a"] != row["group_b"]]
    clauses = [f"{jobs_of(block.part, row['group_a'])} {difference(row)}" for row in groups]
    for row in between:
        pair = f"{jobs_of(block.part, row['group_a'])} minus {jobs_of(block.part, row['group_b'])}"
        clauses.append(f"{pair} {difference(row)}")
    verdict: Outcome = outcome_of((between or groups)[0])
    return Finding(f"{text}{'; '.join(clauses)}.{noted(rows)}", block.topic, verdict, using)


def _wording(block: ProbeBlock, model: str) -> Iterator[Ranked]:
    """One sentence for each pair of job groups: how far wordings differ, and how often they agree."""
    for row in over_paraphrases(block, model):
        pair = f"{jobs_of(block.part, row['group_a'])} and {jobs_of(block.part, row['group_b'])}"
        text = f"Wording ({block.bias_type} prompts, {short(model)}): the difference in the share of "
        text += f"{people(block.gender)} between {pair} "
        if row["mean"] is None:
            text += f"is not measured ({row['reason']})."
            yield _rank(block), Finding(text, block.topic, "not-measured", measured(block, [model]))
            continue
        text += f"is {points(row['mean'])} over all paraphrases and goes from "
        text += f"{points_range(row['least'], row['greatest'])} from one to another; it has the same sign in "
        text += f"{same_sign(row)}. {line_of_wording(row)}{noted([row], 'mean')}"
        yield _rank(block), Finding(text, block.topic, "shown", measured(block, [model]))
