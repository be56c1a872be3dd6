"""Whether shares mirror, flatten or exaggerate the workforce (methods/representation#workforce-words).

tests.csv tests a slope against 0, no relation. Here it is tested against 1, the workforce itself: claims
of their own, adjusted among themselves over the whole page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from biaskit.common.wording import point_number, points, points_range
from biaskit.measurement import folders
from biaskit.report.content import Content
from biaskit.report.findings.claims import claim, templates_of
from biaskit.report.findings.finding import outcome_of
from biaskit.report.findings.groups import are_fields
from biaskit.report.findings.sentence import RESTATED, Piece, Sentence
from biaskit.report.questions import QuestionId
from biaskit.runs.collection import Part
from biaskit.stats.contrast import LEVEL, Contrast, Verdict
from biaskit.stats.multiplicity import holm

MIRRORED = 1.0
SLOPE_MARGIN = 0.2
"""How far a slope may lie from 1, at the ends of its 90 % interval, and still mirror the workforce."""
SHARE_MARGIN = 0.1
"""The same for the height of the line where half are women, and for the mean distance of jobs from it."""

Word = Literal["mirrors", "flattens", "reverses", "exaggerates", "unclear"]
VERDICTS: dict[Word, Verdict] = {
    "mirrors": "equivalent",
    "flattens": "lower",
    "reverses": "lower",
    "exaggerates": "higher",
    "unclear": "no-clear-difference",
}
"""Word → verdict of the slope against 1."""
_TEMPLATE = templates_of()["workforce"]


@dataclass(frozen=True, slots=True)
class Slope:
    """A slope on the shares of the workforce, the rows that could contradict it, and its word."""

    part: Part
    model: str
    row: Contrast
    level: Contrast | None  # the height of the line where half are women, or the mean difference of shares
    distance: Contrast | None
    gap: Contrast | None = None  # the difference between groups of jobs
    word: Word = "unclear"

    @property
    def verdict(self) -> Verdict:
        """The verdict of the slope against 1."""
        return VERDICTS[self.word]


def slopes_with_words(content: Content) -> list[Slope]:
    """List the slopes of the page with their words; none where the page shows no labour statistics.

    Formula: p = that of the t interval of the slope, or of the nearer of its bounds, held against 1; Holm
        over all slopes. Mirrors where the slope's 90 % interval lies within 1 ± `SLOPE_MARGIN`, the level's
        within ± `SHARE_MARGIN`, and the distance's lies below it. Else under 0.05:
        exaggerates above 1, flattens below 1, reverses where the slope's interval lies below 0 and the page
        names the difference between the groups of jobs lower.
    Reference: methods/representation#workforce-words.
    """
    if content.reference not in ("workforce", "both"):
        return []
    slopes: list[Slope] = []
    for folder in folders():
        slopes += folder.slopes(content)
    adjusted = holm([""] * len(slopes), [p_against_one(slope.row) for slope in slopes])
    return [replace(slope, word=_word(slope, p)) for slope, p in zip(slopes, adjusted, strict=True)]


def p_against_one(row: Contrast) -> float | None:
    """Compute the p-value of "the slope is 1"; None where it has no interval or rests on too few cells."""
    return row.p_against(MIRRORED) if row.has_interval and row.p_value is not None else None


def _word(slope: Slope, p: float | None) -> Word:
    """Choose the word; "mirrors" also needs the height of the line and the distance of jobs to fit."""
    if p is None:
        return "unclear"
    near = _inside(slope.distance, SHARE_MARGIN)  # surely: a line may fit jobs that lie far from it
    if near and _inside(slope.row, SLOPE_MARGIN, MIRRORED) and _inside(slope.level, SHARE_MARGIN):
        return "mirrors"
    if p >= LEVEL:
        return "unclear"
    if slope.row.estimate > MIRRORED:
        return "exaggerates"
    return "reverses" if slope.row.direction == outcome_of(slope.gap) == "lower" else "flattens"


def _inside(row: Contrast | None, margin: float, middle: float = 0.0) -> bool:
    if row is None or row.ci90_low is None or row.ci90_high is None:
        return False
    return bool(middle - margin <= row.ci90_low and row.ci90_high <= middle + margin)


def claim_of(
    slope: Slope, question: QuestionId, *, pieces: Mapping[str, Piece] | None = None, **arguments: Any
) -> Sentence:
    """Make the sentence of a slope, after what groups of jobs show; `arguments`: more of `claim`."""
    fields = are_fields(slope.part)
    pieces_of_slope: dict[str, Piece] = {
        "force": "the share of U.S. doctorates" if fields else "the U.S. workforce",
        "items": "fields" if fields else "jobs",
        "verb": slope.word,
        "step": _step(slope.row, slope.word),
    }
    arguments |= {"model": slope.model, "verdict": slope.verdict, "least": RESTATED}
    arguments["pieces"] = {**pieces_of_slope, **(pieces or {})}
    return claim(replace(_TEMPLATE, question=question), slope.row, **arguments)


def _step(row: Contrast, word: str) -> str:
    """Say what goes with ten points more; "no clear rise" where the slope's interval holds 0."""
    if row.ci_low is None:
        return ""
    rise, low, high = row.estimate / 10, row.ci_low / 10, row.ci_high / 10
    if row.direction == "lower":
        return f"{point_number(-rise, 1)} points fewer [{points_range(-high, -low, 1)}]"
    if word == "flattens" and row.direction is None:
        return f"no clear rise [{points_range(low, high, 1)} points]"
    return f"{point_number(rise, 1)} points more [{points_range(low, high, 1)}]"


def apart(row: Contrast | None) -> list[str]:
    """Note the mean distance: jobs may lie far off in both directions and agree on average."""
    if row is None or row.estimate is None:
        return []
    ends = f" [{points_range(row.ci_low, row.ci_high)}]" if row.has_interval else ""
    return [f"mean absolute difference {points(row.estimate)}{ends}, noise included"]
