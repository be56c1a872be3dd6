"""Draw a row for each of many models."""

from __future__ import annotations

from collections.abc import Iterator

from biaskit.report.figures.differences import are_many
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.model_rows import MOST_MODELS, Answers, side_by_side
from biaskit.report.figures.view import View, all_marks


def every_model(view: View) -> Iterator[Figure]:
    """Draw all models where they are too many for a forest, if the first figure left some out."""
    if are_many(view) and len(all_marks(view.content)) > MOST_MODELS:
        name = f"{view.prefix}models"
        yield from side_by_side(view.content, name, Answers.of(view), {}, most=len(view.models))
