"""What each kind of claim says, and the only function that makes a sentence of a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biaskit.common.files import toml_beside
from biaskit.report.findings.finding import Topic, outcome_of
from biaskit.report.findings.sentence import (
    DETAIL,
    STRENGTH,
    Foreign,
    Piece,
    Said,
    amount,
    ends,
    number,
    opening,
    said,
    sentence,
    span,
    why,
    within,
)
from biaskit.report.questions import QuestionId
from biaskit.stats.verdict import Verdict
from biaskit.tables.coverage import WEAK, Coverage, is_under
from biaskit.tables.query import Row

_ANY: Mapping[Verdict, Sequence[str]] = {
    "not-identified": ("{what} is not identified.",),
    "not-measured": ("{what} is not measured ({why}).", "{what} is not measured."),
}
_NO_VERDICT = ("no conclusion on {what} ({why}).", "no conclusion on {what}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The words of one kind of claim."""

    question: QuestionId
    lead: str = ""  # opens every sentence
    what: str  # names the subject where there is no conclusion
    says: Mapping[Verdict, Sequence[str]]  # templates, the best first, shorter ones for long names

    def templates(self, verdict: Verdict) -> list[str]:
        """Templates for a row with this verdict, the best first."""
        words = self.says.get(verdict) or _ANY.get(verdict, _NO_VERDICT)
        return [self.lead + text.replace("{what}", self.what) for text in words]


def directed(*templates: str) -> dict[Verdict, Sequence[str]]:
    """Use the same templates for higher and lower; `{more}` says which."""
    return {"higher": templates, "lower": templates}


def claim(
    kind: Kind,
    row: Row | None,
    topic: Topic,
    measured: str,
    *,
    model: str = "",
    verdict: Verdict | None = None,  # in place of the row's own
    asked: str = "",  # the bias type of the prompts
    coverage: Coverage = None,  # what its shares rest on
    about: str = "",
    least: int = 0,  # the lowest strength it may have, however clear
    pieces: Mapping[str, Piece] | None = None,  # in place of those of the row
) -> Said:
    """Make the sentence of one row."""
    verdict = verdict or outcome_of(row)
    estimated = row if row is not None and row["estimate"] is not None else None
    pieces_of_row: dict[str, Piece] = {
        "opening": opening(asked, coverage),
        "model": Foreign(model),
        "amount": amount(estimated) if estimated else "",
        "more": "more" if verdict == "higher" else "less",
        "ends": ends(estimated) if estimated else "",
        "span": span(estimated) if estimated else "",
        "within": within(row) if row is not None else "",
        "why": why(row),
    }
    text = sentence(*kind.templates(verdict), **{**pieces_of_row, **(pieces or {})})
    shown = number(estimated, verdict) if estimated else ""
    return said(
        *(text, topic, kind.question, verdict, measured),
        about=about,
        number=shown if "[" in shown and shown[shown.index("[") :] in text else "",
        strength=max(least, STRENGTH[verdict], DETAIL * (verdict == "shown")),
        weak=is_under(coverage, WEAK),
    )


_STATED = toml_beside(__file__)


def _kind(name: str) -> Kind:
    stated = dict(_STATED["kinds"][name])
    says = dict(stated.pop("says"))
    return Kind(says=directed(*says.pop("directed", ())) | says, **stated)


GROUPS, ASYMMETRY, LABOUR = map(_kind, ("groups", "asymmetry", "labour"))
PAIRS, IN_LANGUAGE = map(_kind, ("pairs", "in_language"))
GAP_CHANGE, CHANGE = map(_kind, ("gap_change", "change"))
AGAINST_LABOUR, SEPARATED, NEARER, REFUSED = map(_kind, ("against_labour", "separated", "nearer", "refused"))

# --- models ----------------------------------------------------------------------------------------------

IN_NUMBERS = ("srb_content", "srb_spread")
SUBJECTS: Mapping[str, str] = _STATED["subjects"]
"""Quantity → subject and verb of a sentence that compares models."""


def of_models(quantity: str) -> Kind:
    """Make the words for one model against another in a quantity of `SUBJECTS`."""
    subject, interval = SUBJECTS[quantity], "" if quantity in IN_NUMBERS else "{span}"
    if quantity in IN_NUMBERS:
        clear = directed(f"without gendered words, {subject} clearly {{higher}} for {{a}} than for {{b}}.")
    else:
        clear = directed(
            f"{subject} {{amount}} {{more}} for {{a}} than for {{b}}{{ends}}.",
            f"{subject} {{amount}} {{more}} for {{a}} than {{b}}{{ends}}.",
            f"{subject.replace(' between {groups}', '')} {{amount}} {{more}} for {{a}} than {{b}}{{ends}}.",
        )
    unclear = f"{subject} not clearly different for {{a}} and {{b}}"
    return Kind(
        question="models",
        lead="{opening}, ",
        what="{a} against {b}",
        says={
            **clear,
            "equivalent": (f"{subject} about the same for {{a}} and {{b}}{{within}}.",),
            "no-clear-difference": (f"{unclear}{interval}.", f"{unclear}."),
        },
    )


def of_link(y: str, x: str) -> Kind:
    """Make the words for whether two gaps go together over occupations."""
    (wide, x_name), (higher, lower, y_name) = _STATED["wide"][x], _STATED["goes_with"][y]
    subject = "{model}" if x == "labour_gap" else "it"
    unclear = (f"no clear link between {x_name} and {y_name} in {{model}}.",)
    return Kind(
        question="agree",
        lead="{opening}",
        what=f"the link between {x_name} and {y_name}",
        says={
            "higher": (f"where {wide}, {subject} {higher}.",),
            "lower": (f"where {wide}, {subject} {lower}.",),
            "equivalent": unclear,
            "no-clear-difference": unclear,
        },
    )
