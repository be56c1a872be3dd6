"""The questions that a report answers, in the order of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

QuestionId = Literal["say", "write", "how", "else", "models", "agree", "help", "sure"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question as a reader asks it."""

    id: QuestionId
    heading: str


QUESTIONS: tuple[Question, ...] = (
    Question("say", "Who does it say?"),
    Question("write", "Who does it write about?"),
    Question("how", "How does it write?"),
    Question("else", "What else does it say?"),
    Question("models", "Do models differ?"),
    Question("agree", "Do its answers and its texts agree?"),
    Question("help", "Do instructions help?"),
    Question("sure", "How sure are we, and what can’t this show?"),
)
ORDER: tuple[QuestionId, ...] = get_args(QuestionId)
