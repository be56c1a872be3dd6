"""Whether shares of women mirror, flatten or exaggerate the labour force (docs/methods.md#labour-words).

The rows of tests.csv hold a slope against 0, no relation. Here it is held against 1, the labour force as it
is: claims of their own, adjusted among themselves over everything on a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from biaskit.common.wording import (
    fine_points,
    fine_points_range,
    percent,
    percent_range,
    points,
    points_range,
    short,
)
from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, are_fields, blocks_of, measured
from biaskit.report.findings.finding import Outcome, measured_by, noted, outcome_of, parts_of, tests
from biaskit.report.findings.kinds import LABOUR, claim
from biaskit.report.findings.sentence import RESTATED, Piece, Said, said, sentence, why
from biaskit.runs.collection import Part
from biaskit.stats.crossed import p_of_interval
from biaskit.stats.multiplicity import holm
from biaskit.stats.verdict import LEVEL, MANY, interval_side
from biaskit.tables.quantities import relation
from biaskit.tables.query import Row, defined, first, undefined, where

MIRRORED = 1.0
SLOPE_MARGIN = 0.2
"""How far a slope may lie from 1, at the ends of its 90 % interval, and still mirror the labour force."""
SHARE_MARGIN = 0.1
"""The same for the height of the line where half are women; jobs surely farther off than this contradict."""

Word = Literal["mirrors", "flattens", "reverses", "exaggerates", "unclear"]
VERDICTS: dict[Word, Outcome] = {
    "mirrors": "equivalent",
    "flattens": "lower",
    "reverses": "lower",
    "exaggerates": "higher",
    "unclear": "no-clear-difference",
}
"""Of the slope against 1."""


@dataclass(frozen=True, slots=True)
class AgainstLabour:
    """A slope on the labour force's shares, with the rows that could contradict it, and what it comes to."""

    part: Part
    model: str
    block: ProbeBlock | None  # None: of texts
    slope: Row
    level: Row | None
    distance: Row | None
    word: Word = "unclear"

    @property
    def verdict(self) -> Outcome:
        """The verdict of the slope against 1."""
        return VERDICTS[self.word]


def against_labour_force(content: Content) -> list[AgainstLabour]:
    """Every slope of the page with its word; empty where the page shows no labour statistics.

    Formula: p = that of the t interval of the slope, or of the nearer of its bounds, held against 1; Holm
        over all slopes. Mirrors where the slope's 90 % interval lies within 1 ± `SLOPE_MARGIN`, the level's
        within ± `SHARE_MARGIN`, and the distance's interval does not lie above it. Else under 0.05:
        exaggerates above 1, flattens below 1, reverses where tests.csv has the slope lower than 0.
    Reference: docs/methods.md#labour-words.
    """
    if content.reference not in ("labour", "both"):
        return []
    slopes = [*_of_answers(content), *_of_texts(content)]
    adjusted = holm([""] * len(slopes), [p_against_one(one.slope) for one in slopes])
    return [replace(one, word=_word(one, p)) for one, p in zip(slopes, adjusted, strict=True)]


def p_against_one(slope: Row) -> float | None:
    """The two-sided p-value of "the slope is 1" from its interval; None where the row may not speak.

    A row without a p-value against 0 rests on too few cells, or has no interval.
    """
    if slope["ci_low"] is None or slope["p_value"] is None:
        return None
    low, high = (
        slope["estimate"] if slope.get(name) is None else slope[name] for name in ("bound_low", "bound_high")
    )
    if low <= MIRRORED <= high:
        return 1.0
    off = low - MIRRORED if low > MIRRORED else MIRRORED - high
    half = low - slope["ci_low"] if low > MIRRORED else slope["ci_high"] - high
    return p_of_interval(off, off - half, off + half, slope["dof"] or MANY)


def _word(one: AgainstLabour, p: float | None) -> Word:
    """Mirrors only where the line is not tilted about another height and no jobs surely lie far off it."""
    if p is None:
        return "unclear"
    far = one.distance is not None and (one.distance["ci_low"] or 0.0) > SHARE_MARGIN
    if _inside(one.slope, SLOPE_MARGIN, MIRRORED) and _inside(one.level, SHARE_MARGIN) and not far:
        return "mirrors"
    if p >= LEVEL:
        return "unclear"
    if one.slope["estimate"] > MIRRORED:
        return "exaggerates"
    return "reverses" if outcome_of(one.slope) == "lower" else "flattens"


def _inside(row: Row | None, margin: float, middle: float = 0.0) -> bool:
    if row is None or row["ci90_low"] is None or row["ci90_high"] is None:
        return False
    return bool(middle - margin <= row["ci90_low"] and row["ci90_high"] <= middle + margin)


# --- where slopes stand ------------------------------------------------------------------------------


def _of_answers(content: Content) -> Iterator[AgainstLabour]:
    for part in parts_of(content, "probe"):
        for block in blocks_of(part):
            whole = {
                kind: where(
                    tests(block.tests, "female_share~labour_female_share", kind, "labour"),
                    group_a="",
                    group_b="",
                )
                for kind in ("slope", "level", "distance")
            }
            for row in defined(whole["slope"], "estimate"):
                if (model := row["model_a"]) in block.models:
                    level, distance = (first(whole[k], model_a=model) for k in ("level", "distance"))
                    yield AgainstLabour(part, model, block, row, level, distance)


def _of_texts(content: Content) -> Iterator[AgainstLabour]:
    """The gap in texts on the labour gap, which has the same slope; made where both engines are compared.

    The mean difference from the labour shares stands for the level.
    """
    rows = tests(
        content.between.get("tests", ()), relation("represented_gap", "labour_gap"), "slope", "labour"
    )
    for part in parts_of(content, "personas"):
        own = {
            kind: tests(part.tables.get("tests", ()), "represented_share", kind, "labour")
            for kind in ("paired", "distance")
        }
        for model in dict.fromkeys(model.label for model in part.models):
            row = first(defined(rows, "estimate"), model_a=model, model_b=model)
            if row is not None:
                level, distance = (first(own[k], model_a=model) for k in ("paired", "distance"))
                yield AgainstLabour(part, model, None, row, level, distance)


# --- as sentences --------------------------------------------------------------------------------------


def labour(content: Content) -> Iterator[Said]:
    """One sentence for each model and way of asking, and for texts; then what has no slope, and why."""
    yield from map(_sentence, against_labour_force(content))
    if content.reference in ("labour", "both"):
        for part in parts_of(content, "probe"):
            for block in blocks_of(part):
                slopes = tests(block.tests, "female_share~labour_female_share", "slope", "labour")
                for row in undefined(where(slopes, group_a="", group_b=""), "estimate"):
                    if (model := row["model_a"]) in block.models:
                        text = sentence(
                            "{opening}, women against labour statistics: not measured ({why}).",
                            opening=block.opening(model),
                            why=why(row),
                        )
                        using = measured(block, model, [row])
                        yield said(text, block.topic, "say", "not-measured", using, about=block.about)


def _sentence(one: AgainstLabour) -> Said:
    fields, block, rows = are_fields(one.part), one.block, (one.slope, one.level, one.distance)
    pieces: dict[str, Piece] = {
        "force": "the share of U.S. doctorates" if fields else "the U.S. labour force",
        "items": "fields" if fields else "jobs",
        "verb": one.word,
        "step": _step(one.slope, one.word),
    }
    least = RESTATED  # after what the groups of jobs show
    if block is None:
        kind, using = replace(LABOUR, question="write"), measured_by(short(one.model), notes=noted(rows))
        pieces["opening"] = "in its texts"
        return claim(
            *(kind, one.slope, "representation", using),
            model=one.model,
            verdict=one.verdict,
            about="write",
            least=least,
            pieces=pieces,
        )
    notes = []  # what a slope does not say: how high the line lies, how far jobs lie from their labour share
    if one.level is not None and one.level["ci_low"] is not None:
        share, low, high = (one.level[name] + 0.5 for name in ("estimate", "ci_low", "ci_high"))
        ends = percent_range(max(low, 0.0), min(high, 1.0))
        notes.append(f"where half are women, the line gives them {percent(share)} % [{ends}]")
    given = block.claim(one.model, one.slope, **pieces)
    given["measured"] = measured(block, one.model, rows, "bootstrap over jobs", *notes, *apart(one.distance))
    return claim(LABOUR, one.slope, **given, verdict=one.verdict, least=least)


def _step(slope: Row, word: str) -> str:
    """What goes with ten points more; "no clear rise" where the slope's own verdict has no direction."""
    if slope["ci_low"] is None:
        return ""
    rise, low, high = (slope[name] / 10 for name in ("estimate", "ci_low", "ci_high"))
    if word == "reverses":
        return f"{fine_points(-rise)} fewer [{fine_points_range(-high, -low)}]"
    if word == "flattens" and outcome_of(slope) != "higher":
        return "no clear rise" + ("" if interval_side(slope) else f" [{fine_points_range(low, high)} points]")
    return f"{fine_points(rise)} more [{fine_points_range(low, high)}]"


def apart(row: Row | None) -> list[str]:
    """A mean distance: jobs may lie far off in both directions and agree on average."""
    if row is None or row["estimate"] is None:
        return []
    ends = f" [{points_range(row['ci_low'], row['ci_high'])}]" if row["ci_low"] is not None else ""
    return [f"whichever way, {points(row['estimate'])}{ends} off on average, noise included"]
