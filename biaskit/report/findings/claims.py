"""What a kind of claim says for each verdict, and the only function that makes a sentence of a verdict."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from biaskit.measurement import words
from biaskit.report.findings.finding import outcome_of
from biaskit.report.findings.sentence import (
    DETAIL,
    STRENGTH,
    Foreign,
    Piece,
    Sentence,
    amount,
    ends,
    filled,
    measured_at,
    number,
    opening,
    sentence_of,
    span,
    why,
    within,
)
from biaskit.report.questions import QuestionId
from biaskit.stats.contrast import Contrast, Verdict
from biaskit.tables.coverage import WEAK, Coverage, is_under
from biaskit.tables.query import CORRECTED

_ANY: Mapping[Verdict, Sequence[str]] = {
    "not-identified": ("{what} is not identified.",),
    "not-measured": ("{what} is not measured ({why}).", "{what} is not measured."),
}
BY_LABELS = "corrected by labels: "
_NO_VERDICT = ("no conclusion on {what} ({why}).", "no conclusion on {what}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """The words of one kind of claim."""

    question: QuestionId
    lead: str = ""  # opens every sentence
    what: str  # names the subject where there is no conclusion
    says: Mapping[Verdict, Sequence[str]]  # templates, the best first, shorter ones for long names

    def of(self, verdict: Verdict) -> list[str]:
        """List the templates for a row with this verdict, the best first."""
        chosen = self.says.get(verdict) or _ANY.get(verdict, _NO_VERDICT)
        return [self.lead + text.replace("{what}", self.what) for text in chosen]


@cache
def shared_words() -> Mapping[str, Any]:
    """Read the words that all kinds share: words.toml beside this file, in the form of a folder's."""
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def templates_of(folder: str = "") -> dict[str, Templates]:
    """Read the templates of a folder, or those that all share.

    A kind of claim has its question, `lead`, which opens every sentence, `what`, its subject where there is
    no conclusion, and under `says` templates by verdict, the best first, shorter ones for long names. Those
    under `directed` are for higher and lower; {more} says which.
    """
    stated = words(folder) if folder else shared_words()
    templates = {}
    for name, kind in stated["sentences"].items():
        says = dict(kind["says"])
        directed = says.pop("directed", ())
        by_verdict: dict[Verdict, Sequence[str]] = {"higher": directed, "lower": directed, **says}
        rest = {field: value for field, value in kind.items() if field != "says"}
        templates[name] = Templates(says=by_verdict, **rest)
    return templates


def claim(
    templates: Templates,
    row: Contrast | None,
    topic: str,
    measured: str,
    *,
    model: str = "",
    verdict: Verdict | None = None,  # in place of the row's own
    asked: str = "",  # the bias type of the prompts
    coverage: Coverage = None,  # what its shares rest on
    about: str = "",
    least: int = 0,  # the lowest strength it may have, however clear
    pieces: Mapping[str, Piece] | None = None,  # in place of those of the row
) -> Sentence:
    """Make the sentence of one row."""
    verdict = verdict or outcome_of(row)
    estimated = row if row is not None and row.estimate is not None else None
    every: dict[str, Piece] = {
        "opening": opening(asked, coverage),
        "model": Foreign(model),
        "more": "more" if verdict == "higher" else "less",
        "within": within(row) if row is not None else "",
        "why": why(row),
    }
    shown = ""
    if estimated is not None:
        every |= {"amount": amount(estimated), "ends": ends(estimated), "span": span(estimated)}
        every["measured"] = measured_at(estimated)
        every["estimate"] = measured_at(estimated).partition(", ")[0]
        shown = number(estimated, verdict)
    if estimated is not None and CORRECTED in str(estimated.reason):
        templates = replace(templates, lead=BY_LABELS + templates.lead)
        every["within"] = f"{every['within']}{every['span']}"
    text = filled(*templates.of(verdict), **(every | dict(pieces or {})))
    _, bracket, interval = shown.partition("[")
    if not bracket or bracket + interval not in text:
        shown = ""
    return sentence_of(
        *(text, topic, templates.question, verdict, measured),
        about=about,
        number=shown,
        strength=max(least, STRENGTH[verdict], DETAIL * (verdict == "shown")),
        weak=is_under(coverage, WEAK),
    )
