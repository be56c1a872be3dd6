"""Say whether answers mirror, flatten or exaggerate the workforce (methods/representation#labour-words)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from biaskit.common.wording import percent, percent_range
from biaskit.measures.probe.findings.blocks import ProbeBlock, blocks_in, measured
from biaskit.report.content import Content
from biaskit.report.findings.labour import Slope, apart, claim_of, slopes_with_words
from biaskit.report.findings.sentence import Sentence, filled, sentence_of, why
from biaskit.tables.query import defined, first, undefined

NEITHER = 0.005
"""A smaller part of neither gender is not said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSlope(Slope):
    """A slope of the answers of a block."""

    block: ProbeBlock


def slopes(content: Content) -> Iterator[AnswerSlope]:
    """Yield the slope of each model and way to ask."""
    for block in blocks_in(content):
        levels, distances = block.against_labour("level"), block.against_labour("distance")
        for row in defined(block.against_labour("slope"), "estimate"):
            model = row["model_a"]
            if model in block.models:
                yield AnswerSlope(
                    *(block.part, model, row, first(levels, model_a=model), first(distances, model_a=model)),
                    gap=block.between_groups(model),
                    block=block,
                )


def labour(content: Content) -> Iterator[Sentence]:
    """Make a sentence for each model and bias type; then say why others have no slope."""
    for slope in slopes_with_words(content):
        if isinstance(slope, AnswerSlope):
            yield _sentence(slope)
    if content.reference not in ("labour", "both"):
        return
    missing = "{opening}, women compared with labour statistics: not measured ({why})."
    for block in blocks_in(content):
        for row in undefined(block.against_labour("slope"), "estimate"):
            model = row["model_a"]
            if model in block.models:
                text = filled(missing, opening=block.opening(), why=why(row))
                using = measured(block, model, [row])
                yield sentence_of(text, block.topic, "say", "not-measured", using, about=block.about)


def _sentence(slope: AnswerSlope) -> Sentence:
    model, block, level = slope.model, slope.block, slope.level
    notes = []  # what a slope does not say: the height of the line, the distance of jobs from it
    if level is not None and level["ci_low"] is not None:
        share, low, high = (level[name] + 0.5 for name in ("estimate", "ci_low", "ci_high"))
        ends = percent_range(max(low, 0.0), min(high, 1.0))
        notes.append(f"where half are women, the fitted line gives {percent(share)} % [{ends}]")
    notes += [*apart(slope.distance), *_neither(block, model)]
    rows = (slope.row, level, slope.distance)
    arguments = block.claim(model, slope.row)
    arguments["measured"] = measured(block, model, rows, "over jobs and templates", *notes)
    return claim_of(slope, "say", **arguments)


def _neither(block: ProbeBlock, model: str) -> list[str]:
    """Note how much is said of neither gender of the contrast: the line holds one against both."""
    shares = [f"{gender}_share" for gender in block.part.contrast]
    rows = [row for row in block.jobs.get((model,), ()) if row.keys() >= {*shares}]
    sums = [row[shares[0]] + row[shares[1]] for row in defined(rows, *shares)]
    neither = 1 - sum(sums) / len(sums) if sums else 0.0
    of_two = "women among women and men" if block.gender == "female" else "one of the two groups"
    return [f"{of_two}; {percent(neither)} % names neither"] if neither >= NEITHER else []
