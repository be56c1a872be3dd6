"""The questions that a report answers, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping

from biaskit.tables.schema import SHARED

QuestionId = str
QUESTIONS: Mapping[QuestionId, str] = SHARED["questions"]
"""Id → the question as a reader asks it."""
ORDER = tuple(QUESTIONS)
