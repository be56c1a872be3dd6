"""A finished figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from biaskit.report.questions import QuestionId

if TYPE_CHECKING:
    from biaskit.report.figures.sheet import Sheet


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawn figure; `name` is a slug that no other figure of a report has.

    `svg` is one `<svg>` element, fit to stand in a page: text as text, a transparent background, #222222 for
    text and axes, #dddddd for grids, ids that begin with `name`, no style sheet, no date.
    """

    name: str
    title: str
    caption: str  # n, interval, unit and the tables that hold the numbers
    alt: str  # for a screen reader: what the figure shows, with numbers
    svg: bytes
    sheet: Sheet = field(repr=False, compare=False)
    column: Figure | None = None  # the same for a column of a paper and for a phone
    question: QuestionId = "say"  # that it answers

    def png(self, dpi: int = 150) -> bytes:
        """The figure on white."""
        return self.sheet.png(dpi)

    def pdf(self) -> bytes:
        """The figure on white with TrueType fonts, as publishers ask for."""
        return self.sheet.pdf()
