"""The questions that a report answers, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping

from biaskit.tables.schema import SHARED

QuestionId = str
QUESTIONS: Mapping[QuestionId, str] = SHARED["questions"]
"""Id → the question as a reader asks it."""
OF_TEXTS: Mapping[QuestionId, str] = {**QUESTIONS, **SHARED["questions_of_texts"]}
"""The same of texts that somebody already had."""
ORDER = tuple(QUESTIONS)
