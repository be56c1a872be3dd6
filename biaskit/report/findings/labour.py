"""Say whether shares mirror, flatten or exaggerate the workforce (methods/representation#labour-words).

tests.csv tests a slope against 0, no relation. Here it is tested against 1, the labour force itself: claims
of their own, adjusted among themselves over the whole page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from biaskit.common.wording import percent, percent_range, point_number, points, points_range, short
from biaskit.records import GENDERS
from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, are_fields, blocks_in, measured
from biaskit.report.findings.finding import measured_by, noted, outcome_of, parts_of, tests
from biaskit.report.findings.kinds import LABOUR, claim
from biaskit.report.findings.sentence import RESTATED, Piece, Said, said, sentence, why
from biaskit.runs.collection import Part
from biaskit.stats.multiplicity import holm
from biaskit.stats.verdict import LEVEL, Verdict, interval_side, p_against
from biaskit.tables.query import Row, defined, first, mean_over_prompts, undefined, where

MIRRORED = 1.0
SLOPE_MARGIN = 0.2
"""How far a slope may lie from 1, at the ends of its 90 % interval, and still mirror the labour force."""
SHARE_MARGIN = 0.1
"""The same for the height of the line where half are women, and for the mean distance of jobs from it."""

NEITHER = 0.005
"""A smaller part of neither gender is not said."""

Word = Literal["mirrors", "flattens", "reverses", "exaggerates", "unclear"]
VERDICTS: dict[Word, Verdict] = {
    "mirrors": "equivalent",
    "flattens": "lower",
    "reverses": "lower",
    "exaggerates": "higher",
    "unclear": "no-clear-difference",
}
"""Word → verdict of the slope against 1."""


@dataclass(frozen=True, slots=True)
class AgainstLabour:
    """A slope on the shares of the labour force, the rows that could contradict it, and its word."""

    part: Part
    model: str
    block: ProbeBlock | None  # None: of texts
    slope: Row
    level: Row | None
    distance: Row | None
    word: Word = "unclear"

    @property
    def verdict(self) -> Verdict:
        """The verdict of the slope against 1."""
        return VERDICTS[self.word]


def against_labour_force(content: Content) -> list[AgainstLabour]:
    """List the slopes of the page with their words; none where the page shows no labour statistics.

    Formula: p = that of the t interval of the slope, or of the nearer of its bounds, held against 1; Holm
        over all slopes. Mirrors where the slope's 90 % interval lies within 1 ± `SLOPE_MARGIN`, the level's
        within ± `SHARE_MARGIN`, and the distance's lies below it. Else under 0.05:
        exaggerates above 1, flattens below 1, reverses where the slope's interval lies below 0 and the page
        names the difference between the groups of jobs lower.
    Reference: methods/representation#labour-words.
    """
    if content.reference not in ("labour", "both"):
        return []
    slopes = [*_of_answers(content), *_of_texts(content)]
    adjusted = holm([""] * len(slopes), [p_against_one(against.slope) for against in slopes])
    return [replace(against, word=_word(against, p)) for against, p in zip(slopes, adjusted, strict=True)]


def p_against_one(slope: Row) -> float | None:
    """Compute the p-value of "the slope is 1"; None where it has no interval or rests on too few cells."""
    tested = slope["ci_low"] is not None and slope["p_value"] is not None
    return p_against(slope, MIRRORED) if tested else None


def _word(against: AgainstLabour, p: float | None) -> Word:
    """Choose the word; "mirrors" also needs the height of the line and the distance of jobs to fit."""
    if p is None:
        return "unclear"
    slope, distance = against.slope, against.distance
    near = _inside(distance, SHARE_MARGIN)  # surely: a line may fit jobs that lie far from it
    if near and _inside(slope, SLOPE_MARGIN, MIRRORED) and _inside(against.level, SHARE_MARGIN):
        return "mirrors"
    if p >= LEVEL:
        return "unclear"
    if slope["estimate"] > MIRRORED:
        return "exaggerates"
    gap = None if against.block is None else against.block.between_groups(against.model)
    return "reverses" if interval_side(slope) == outcome_of(gap) == "lower" else "flattens"


def _inside(row: Row | None, margin: float, middle: float = 0.0) -> bool:
    if row is None or row["ci90_low"] is None or row["ci90_high"] is None:
        return False
    return bool(middle - margin <= row["ci90_low"] and row["ci90_high"] <= middle + margin)


# --- where slopes stand ------------------------------------------------------------------------------


def _of_answers(content: Content) -> Iterator[AgainstLabour]:
    for block in blocks_in(content):
        of_kind = {kind: block.against_labour(kind) for kind in ("slope", "level", "distance")}
        for row in defined(of_kind["slope"], "estimate"):
            if (model := row["model_a"]) in block.models:
                level, distance = (first(of_kind[k], model_a=model) for k in ("level", "distance"))
                yield AgainstLabour(block.part, model, block, row, level, distance)


def _of_texts(content: Content) -> Iterator[AgainstLabour]:
    """The mean difference from the labour shares takes the place of the level."""
    for part in parts_of(content, "personas"):
        of_kind = {
            kind: tests(part.tables.get("tests", ()), "represented_share", kind, "labour")
            for kind in ("slope", "paired", "distance")
        }
        for row in defined(of_kind["slope"], "estimate"):
            level, distance = (first(of_kind[k], model_a=row["model_a"]) for k in ("paired", "distance"))
            yield AgainstLabour(part, row["model_a"], None, row, level, distance)


# --- as sentences --------------------------------------------------------------------------------------


def labour(content: Content) -> Iterator[Said]:
    """Make a sentence for each model and bias type, and for texts; then say why others have no slope."""
    # Of texts the mean difference says what an unclear word would.
    said_of = (one for one in against_labour_force(content) if one.block or one.word != "unclear")
    yield from map(_sentence, said_of)
    if content.reference in ("labour", "both"):
        missing = "{opening}, women compared with labour statistics: not measured ({why})."
        for block in blocks_in(content):
            for row in undefined(block.against_labour("slope"), "estimate"):
                if (model := row["model_a"]) in block.models:
                    text = sentence(missing, opening=block.opening(), why=why(row))
                    using = measured(block, model, [row])
                    yield said(text, block.topic, "say", "not-measured", using, about=block.about)


def _sentence(against: AgainstLabour) -> Said:
    model, block, slope, level = against.model, against.block, against.slope, against.level
    fields, rows = are_fields(against.part), (slope, level, against.distance)
    pieces: dict[str, Piece] = {
        "force": "the share of U.S. doctorates" if fields else "the U.S. workforce",
        "items": "fields" if fields else "jobs",
        "verb": against.word,
        "step": _step(slope, against.word),
    }
    least = RESTATED  # after what the groups of jobs show
    if block is None:
        notes = [*noted(rows), *apart(against.distance), *_not_of_two(against.part, model)]
        kind, using = replace(LABOUR, question="write"), measured_by(short(model), notes=notes)
        pieces["opening"] = "in its texts"
        return claim(
            *(kind, slope, "representation", using),
            model=model,
            verdict=against.verdict,
            about="write",
            least=least,
            pieces=pieces,
        )
    notes = []  # what a slope does not say: the height of the line, the distance of jobs from it
    if level is not None and level["ci_low"] is not None:
        share, low, high = (level[name] + 0.5 for name in ("estimate", "ci_low", "ci_high"))
        ends = percent_range(max(low, 0.0), min(high, 1.0))
        notes.append(f"where half are women, the fitted line gives {percent(share)} % [{ends}]")
    notes += [*apart(against.distance), *_neither(block, model)]
    arguments = block.claim(model, slope, **pieces)
    arguments["measured"] = measured(block, model, rows, "over jobs and templates", *notes)
    return claim(LABOUR, slope, **arguments, verdict=against.verdict, least=least)


def _neither(block: ProbeBlock, model: str) -> list[str]:
    """Note how much is said of neither gender of the contrast: the line holds one against both."""
    shares = [f"{gender}_share" for gender in block.part.contrast]
    rows = [row for row in block.jobs.get((model,), ()) if {*shares} <= row.keys()]
    sums = [sum(row[name] for name in shares) for row in defined(rows, *shares)]
    neither = 1 - sum(sums) / len(sums) if sums else 0.0
    of_two = "women among women and men" if block.gender == "female" else "one of the two groups"
    return [f"{of_two}; {percent(neither)} % names neither"] if neither >= NEITHER else []


def _not_of_two(part: Part, model: str) -> list[str]:
    """Note how many of the texts with a gender are about neither a woman nor a man."""
    rows = mean_over_prompts(where(part.tables.get("representation", ()), model=model))
    n_of = {gender: sum(row[f"n_{gender}"] or 0 for row in rows) for gender in GENDERS}
    if not n_of["nonbinary"]:
        return []
    neither = percent(n_of["nonbinary"] / sum(n_of.values()))
    return [f"women among women and men; {neither} % of texts with a gender are about neither"]


def _step(slope: Row, word: str) -> str:
    """Say what goes with ten points more; "no clear rise" where the slope's interval holds 0."""
    if slope["ci_low"] is None:
        return ""
    rise, low, high = (slope[name] / 10 for name in ("estimate", "ci_low", "ci_high"))
    if interval_side(slope) == "lower":
        return f"{point_number(-rise, 1)} points fewer [{points_range(-high, -low, 1)}]"
    if word == "flattens" and interval_side(slope) is None:
        return f"no clear rise [{points_range(low, high, 1)} points]"
    return f"{point_number(rise, 1)} points more [{points_range(low, high, 1)}]"


def apart(row: Row | None) -> list[str]:
    """Note the mean distance: jobs may lie far off in both directions and agree on average."""
    if row is None or row["estimate"] is None:
        return []
    ends = f" [{points_range(row['ci_low'], row['ci_high'])}]" if row["ci_low"] is not None else ""
    return [f"mean absolute difference {points(row['estimate'])}{ends}, noise included"]
