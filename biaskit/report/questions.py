"""The questions that a report answers, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

QuestionId = Literal["say", "write", "how", "else", "models", "agree", "help", "sure"]
QUESTIONS: Mapping[QuestionId, str] = {
    "say": "Who does it say?",
    "write": "Who does it write about?",
    "how": "How does it write?",
    "else": "What else does it say?",
    "models": "Do models differ?",
    "agree": "Do its answers and its texts agree?",
    "help": "Do debiasing prompts help?",
    "sure": "How certain is this, and what can’t it show?",
}
"""Id → the question as a reader asks it."""
ORDER = tuple(QUESTIONS)
