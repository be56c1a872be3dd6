"""Draws what texts show: its kinds of figures under the questions that they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biaskit.measures.personas.figures.scatter import scatter
from biaskit.measures.personas.figures.srb import scores
from biaskit.measures.personas.figures.transfer import areas
from biaskit.measures.personas.figures.words import words
from biaskit.report.figures import FigureKind
from biaskit.report.questions import QuestionId


def figures() -> Mapping[QuestionId, Sequence[FigureKind]]:
    """Name the kinds of figures in the order of the page."""
    return {"write": (scatter,), "how": (words, areas, scores)}
