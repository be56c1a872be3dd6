"""A contrast as a sentence: a table of words by verdict, for one model and for several at once.

A kind of contrast is a `Kind`; who claims what is a list of `Claim`. Whatever a kind has no words for (no
verdict, not identified, not measured) is said in the same words of every kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from biaskit.report.findings.finding import Outcome, Topic, agreeing, outcome_of, shared
from biaskit.report.findings.sentence import (
    DETAIL,
    WEAKER,
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
    strength_of,
    why,
    within,
)
from biaskit.report.questions import QuestionId
from biaskit.tables.query import Row

AFTER: Mapping[Outcome, str] = MappingProxyType(
    {
        "higher": "more often",
        "lower": "less often",
        "equivalent": "about equal",
        "no-clear-difference": "unclear",
        "not-identified": "not identified",
        "no-verdict": "without verdict",
        "shown": "without verdict",
        "not-measured": "not measured",
    }
)
"""What models come to after a clause about others."""
APART: Mapping[Outcome, str] = MappingProxyType({"higher": "apart", "lower": "reversed"})
ORDER: tuple[Outcome, ...] = tuple(AFTER)
SAYING: tuple[Outcome, ...] = ("higher", "lower", "equivalent")
NONE: Mapping[str, Piece] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The words of one kind of contrast.

    `lead` opens every sentence, `what` is what a verdict is missing on, `of` whose it is where one model is
    spoken of. `one`: templates of one row, the best first; `many`: what several models do, from the verb on;
    `shorter` where that is too long; `after`: the same in two words, after a clause about others.
    """

    question: QuestionId
    lead: str = ""
    what: str
    of: str = ""
    one: Mapping[Outcome, Sequence[str]]
    many: Mapping[Outcome, str] = field(default_factory=dict)
    shorter: Mapping[Outcome, str] = field(default_factory=dict)
    after: Mapping[Outcome, str] = field(default_factory=lambda: AFTER)

    def of_one(self, verdict: Outcome) -> list[str]:
        """Templates of one row with this verdict."""
        no_verdict = ("no verdict on {what} ({why}).", "no verdict on {what}.")
        other: Mapping[Outcome, Sequence[str]] = {
            "not-identified": ("{what} is not identified.",),
            "not-measured": ("{what} is not measured ({why}).", "{what} is not measured."),
        }
        words = self.one.get(verdict) or other.get(verdict, no_verdict)
        return [self.lead + text.replace("{what}", self.what + self.of) for text in words]

    def of_many(self) -> list[Mapping[Outcome, str]]:
        """What several models do, by verdict; then in fewer words."""
        rest: Mapping[Outcome, str] = {
            **dict.fromkeys(("shown", "no-verdict"), f"have no verdict on {self.what}"),
            "not-identified": f"leave {self.what} not identified",
            "not-measured": f"have no measure of {self.what}",
        }
        return [{**rest, **self.many, **own} for own in (NONE, self.shorter)]  # type: ignore[dict-item]


@dataclass(frozen=True, slots=True)
class Claim:
    """A model's row of a contrast; `weak`: little stands behind it; `verdict`: where it is not the row's."""

    model: str
    row: Row | None
    weak: bool = False
    verdict: Outcome | None = None

    @property
    def outcome(self) -> Outcome:
        """What it comes to."""
        return self.verdict or outcome_of(self.row)


def directed(*templates: str) -> dict[Outcome, Sequence[str]]:
    """The same templates for more and for less; `{more}` says which."""
    return {"higher": templates, "lower": templates}


def contrast(
    kind: Kind,
    claims: Sequence[Claim],
    topic: Topic,
    measured: str = "",
    *,
    asked: str = "",
    about: str = "",
    least: int = 0,
    things: str = "models",
    pieces: Mapping[str, Piece] = NONE,
) -> Said:
    """One sentence about all claims of a kind: one row's own, or how many models come to what.

    `asked`: the bias type of the prompts; `least`: a strength that it does not go under, however clear.
    """
    strong = [one for one in claims if not one.weak]
    judged, weak = strong or claims, not strong
    pieces = {"opening": opening(asked, weak=weak), **pieces}
    verdicts = [one.outcome for one in judged]
    if len(claims) == 1:
        text = of_row(kind, claims[0], pieces)
    else:
        n_weak = len(claims) - len(judged)
        clauses = kind.of_many()
        text = counted(
            verdicts,
            *clauses,
            before=kind.lead,
            after=kind.after,
            n_weak=n_weak,
            things=things,
            pieces=pieces,
        )
    row = claims[0].row
    first = "" if len(claims) > 1 or row is None else number(row, verdicts[0])
    no_verdict = DETAIL * (set(verdicts) == {"shown"})
    strength = max(least, strength_of(verdicts), WEAKER * weak, no_verdict)
    return said(
        *(text, topic, kind.question, shared(verdicts), measured),
        about=about,
        number=first if "[" in first and first[first.index("[") :] in text else "",
        strength=strength,
    )


def of_row(kind: Kind, claim: Claim, pieces: Mapping[str, Piece]) -> str:
    """The sentence of one row; `pieces` of the caller stand before those of the row."""
    row, verdict = claim.row, claim.outcome
    known = row is not None and row["estimate"] is not None
    own: dict[str, Piece] = {
        "model": Foreign(claim.model),
        "amount": amount(row) if row is not None and known else "",
        "more": "more" if verdict == "higher" else "less",
        "ends": ends(row) if row is not None and known else "",
        "span": span(row) if row is not None and known else "",
        "within": within([row]) if row is not None else "",
        "why": why(row),
    }
    return sentence(*kind.of_one(verdict), **{**own, **pieces})


def counted(
    verdicts: Sequence[Outcome],
    *clauses: Mapping[Outcome, str],
    before: str = "",
    after: Mapping[Outcome, str] = AFTER,
    n_weak: int = 0,
    things: str = "models",
    pieces: Mapping[str, Piece] = NONE,
) -> str:
    """'All 4 models say …', '3 of 4 models say …; 1 unclear'.

    `verdicts`: without those of the `n_weak` models whose evidence is weak, which are counted by themselves.
    `clauses`: what each verdict says of several models; a shorter set for sentences that are too long. One
    with a direction leads, else the most frequent. Where there is no room, whatever says nothing is counted
    as unclear.
    """
    counts = Counter(verdicts)
    sides: list[Outcome] = [verdict for verdict in ("higher", "lower") if counts[verdict]]
    lead = max(sides or ORDER, key=lambda verdict: counts[verdict])
    rest = {verdict: counts[verdict] for verdict in ORDER if counts[verdict] and verdict != lead}
    each = {verdict: f"{n} {after.get(verdict, AFTER[verdict])}" for verdict, n in rest.items()}
    weak = [f"{n_weak} with weak evidence"] * bool(n_weak)
    tails = [[*each.values(), *weak]]
    for kept, other in ((SAYING, "unclear"), (SAYING[:2], "neither")):
        n_other = n_weak + sum(n for verdict, n in rest.items() if verdict not in kept)
        kept_texts = [text for verdict, text in each.items() if verdict in kept]
        tails.append([*kept_texts, *[f"{n_other} {other}"] * bool(n_other)])
    n, n_all = counts[lead], len(verdicts) + n_weak
    closings = [f"; {', '.join(tail)}." if tail else "." for tail in tails]
    templates = [before + _head(n, n_all, things, own[lead]) + end for own in clauses for end in closings]
    return sentence(*templates, **pieces)


def _head(n: int, n_all: int, things: str, clause: str) -> str:
    if n < n_all or n == 1:
        return f"{n} of {n_all} {things} {agreeing(n, clause)}"
    return f"{'both' if n == 2 else f'all {n}'} {things} {clause}"
