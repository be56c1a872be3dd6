"""What each kind of claim says: templates by kind and verdict, and the one function that fills them.

Verdicts that a kind has no words for (no verdict, not identified, not measured) are said alike by every kind.
`claim` is the only place where a verdict becomes a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    """The words of one kind of claim.

    `lead` opens every sentence; `what` names the subject where there is no conclusion; `says`: templates by
    verdict, the best first, shorter ones for long names.
    """

    question: QuestionId
    lead: str = ""
    what: str
    says: Mapping[Verdict, Sequence[str]]

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
    verdict: Verdict | None = None,
    asked: str = "",
    coverage: Coverage = None,
    about: str = "",
    least: int = 0,
    pieces: Mapping[str, Piece] | None = None,
) -> Said:
    """Make the sentence of one row.

    `verdict`: in place of the row's own; `asked`: the bias type of the prompts, and `coverage` what its
    shares rest on; `least`: the lowest strength it may have, however clear; `pieces`: replace those of the
    row.
    """
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


# --- answers ---------------------------------------------------------------------------------------------

GROUPS = Kind(
    question="say",
    lead="{opening}, ",
    what="the difference between {a} and {b} in {model}’s answers",
    says={
        **directed(
            "{model} says {who} {amount} {more} often for {a} than for {b}{ends}.",
            "{model} says {who} {amount} {more} often for {a}{ends}.",
        ),
        "equivalent": (
            "{model} says {who} about as often for {a} as for {b}{within}.",
            "{model} says {who} about as often for {a} as for {b}.",
        ),
        "no-clear-difference": (
            "no clear difference in how often {model} says {who} for {a} and for {b}{span}.",
            "no clear difference in how often {model} says {who} for {a} and {b}.",
        ),
    },
)
ASYMMETRY = Kind(
    question="say",
    lead="{opening}, ",
    what="whether {model} is more stereotyped for men’s or for women’s jobs",
    says={
        **directed("{model} says men for men’s jobs {amount} {more} often than women for women’s{ends}."),
        "equivalent": ("{model} says men for men’s jobs about as often as women for women’s{within}.",),
        "no-clear-difference": (
            "{model} is not clearly more stereotyped for men’s jobs or for women’s{span}.",
        ),
    },
)
LABOUR = Kind(
    question="say",
    lead="{opening}, ",
    what="{force}",
    says={
        **dict.fromkeys(
            ("higher", "lower", "equivalent"),
            (
                "{model} {verb} {force}: where {items} have 10 points more women, it shows {step}.",
                "{model} {verb} {force}.",
            ),
        ),
        "no-clear-difference": ("no clear conclusion on whether {model} mirrors {force}.",),
    },
)
GAP_CHANGE = Kind(
    question="help",
    lead="{opening}, ",
    what="how {cause} changes the gap between {groups}",
    says={
        **directed(
            "{cause} {moves} {model}’s gap between {groups} in saying {who} by {amount}{ends}.",
            "{cause} {moves} {model}’s gap in saying {who} by {amount}{ends}.",
        )
    },
)
"""A clear change by one debiasing prompt of the gap between groups of jobs."""
CHANGE = Kind(
    question="help",
    lead="{opening}, ",
    what="what {cause} changes",
    says=directed(
        "{cause} makes {model} say {who} {amount} {more} often for {jobs}{ends}.",
        "{cause} makes {model} say {who} {amount} {more} often for {jobs}.",
    ),
)
"""A clear change by one debiasing prompt, level or dialogue for a group of jobs."""

# --- texts -----------------------------------------------------------------------------------------------

AGAINST_LABOUR = Kind(
    question="write",
    what="women against U.S. labour statistics in {whose}",
    says={
        **directed(
            "On average, {whose} are about women {amount} {more} often than U.S. labour statistics "
            "suggest{ends}."
        ),
        "equivalent": ("{whose} are about women about as often as U.S. labour statistics suggest{within}.",),
        "not-identified": (
            "Too many texts name no gender to say whether {whose} are about women as often as U.S. labour "
            "statistics suggest.",
        ),
        "no-clear-difference": (
            "{whose} show no clear difference from U.S. labour statistics in the share of women{span}.",
        ),
    },
)
SEPARATED = Kind(
    question="how",
    what="whether a classifier can separate {whose} on women and men without gendered words",
    says={
        "higher": (
            "Without gendered words, a classifier separates {whose} on women and men in {pairs} of 100 "
            "pairs{span}; chance is 50.",
            "Without gendered words, {whose} on women and men are separated in {pairs} of 100 pairs{span}.",
        ),
        "lower": ("Words that mark women where the prompt names a gender mark men in the rest of {whose}.",),
        "equivalent": (
            "Without gendered words, a classifier separates {whose} on women and men no better than chance.",
        ),
        "no-clear-difference": (
            "Without gendered words, no clear sign that a classifier can separate {whose} on women and "
            "men{span}.",
            "Without gendered words, no clear sign that {whose} on women and men differ.",
        ),
    },
)
NEARER = Kind(
    question="how",
    what="how differently women and men are described in {whose}",
    says={
        "lower": ("In {whose}, words for women are closer than men’s to texts requested about a woman.",),
        "higher": ("In {whose}, words for women are farther than men’s from texts requested about a woman.",),
        "equivalent": (
            "In {whose}, words for women and men are about equally close to texts requested about a woman.",
        ),
        "no-clear-difference": (
            "In {whose}, no clear sign that words for women resemble texts requested about women more than "
            "men’s do.",
        ),
    },
)
REFUSED = Kind(
    question="else",
    what="texts about women and men declined",
    says=directed("{model} {verb} texts about women {amount} {more} often than texts about men{ends}."),
)

# --- models ----------------------------------------------------------------------------------------------

IN_NUMBERS = ("srb_content", "srb_spread")
SUBJECTS = {
    "share": "the share of {who} for {jobs} is",
    "group_gap": "the gap between {groups} in saying {who} is",
    "represented_share": "the share of women is",
    "srb_content": "the SRB of words for {who} is",
    "srb_spread": "the SRB gap between words for women and men is",
}
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


_WIDE = {
    "probe_gap": ("{model} says women more", "saying women"),
    "represented_gap": ("{model} writes about women more", "writing about women"),
    "labour_gap": ("more women work", "women in the workforce"),
}
"""Gap → a clause on where it is wide, and its name."""
_GOES_WITH = {
    "probe_gap": (("says women more", "says women less"), "saying women"),
    "represented_gap": (("writes about women more", "writes about women less"), "writing about women"),
    "srb_spread": (
        ("has words for women and men farther apart", "has words for women and men closer together"),
        "the distance between words for women and men",
    ),
}


def of_link(y: str, x: str) -> Kind:
    """Make the words for whether two gaps go together over occupations."""
    (wide, x_name), ((higher, lower), y_name) = _WIDE[x], _GOES_WITH[y]
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
