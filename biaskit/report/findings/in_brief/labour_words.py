"""Mirrors, flattens or exaggerates the labour force: the words of `findings/labour.py` as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import are_fields, below_floor
from biaskit.report.findings.finding import FINE, Outcome, outcome_of, shared
from biaskit.report.findings.in_brief.sentence import (
    STRENGTH,
    Foreign,
    Piece,
    Said,
    opening,
    said,
    sentence,
    strength_of,
)
from biaskit.report.findings.in_brief.several import counted
from biaskit.report.findings.labour import AgainstLabour, against_labour_force
from biaskit.report.questions import QuestionId
from biaskit.stats.verdict import interval_side
from biaskit.tables.query import Row


def labour_words(content: Content) -> Iterator[Said]:
    """One sentence for each way of asking, and for texts."""
    ways: dict[tuple[str, str], list[AgainstLabour]] = {}
    for one in against_labour_force(content):
        way = ("", "") if one.block is None else (one.block.bias_type, one.block.form)
        ways.setdefault(way, []).append(one)
    yield from map(_of_way, ways.values())


def _weak(one: AgainstLabour) -> bool:
    return one.block is not None and below_floor(one.block, one.model)


def _of_way(own: Sequence[AgainstLabour]) -> Said:
    strong = [one for one in own if not _weak(one)]
    judged = strong or own
    block, verdicts = own[0].block, [one.verdict for one in judged]
    pieces: dict[str, Piece] = {
        "opening": "in its texts" if block is None else opening(block.bias_type, weak=not strong),
        "force": "the share of U.S. doctorates" if are_fields(own[0].part) else "the U.S. labour force",
        "items": "fields" if are_fields(own[0].part) else "jobs",
    }
    if len(own) == 1:
        text = _of_one(own[0], pieces)
    else:
        n_weak = len(own) - len(judged)
        text = counted(
            verdicts, _clauses(judged), before="{opening}, ", after=_AFTER, n_weak=n_weak, pieces=pieces
        )
    strength = max(STRENGTH["shown"], strength_of(verdicts))  # after what the groups of jobs show
    question: QuestionId = "write" if block is None else "say"
    about = "write" if block is None else f"say-{block.bias_type}"
    return said(text, question, shared(verdicts), about=about, strength=strength)


def _of_one(one: AgainstLabour, pieces: dict[str, Piece]) -> str:
    pieces = {**pieces, "model": Foreign(one.model), "verb": one.word, "step": _step(one.slope, one.word)}
    if one.word == "unclear":
        return sentence("{opening}, no clear verdict on whether {model} mirrors {force}.", **pieces)
    return sentence(
        "{opening}, {model} {verb} {force}: where {items} hold 10 points more women, it shows {step}.",
        "{opening}, {model} {verb} {force}.",
        **pieces,
    )


def _step(slope: Row, word: str) -> str:
    """What goes with ten points more; "no clear rise" where the slope's own verdict has no direction."""
    rise, low, high = (slope[name] / 10 for name in ("estimate", "ci_low", "ci_high"))
    if word == "reverses":
        return f"{FINE.amount(-rise)} fewer [{FINE.ends(-high, -low)}]"
    if word == "flattens" and outcome_of(slope) != "higher":
        return "no clear rise" + ("" if interval_side(slope) else f" [{FINE.ends(low, high)} points]")
    return f"{FINE.amount(rise)} more [{FINE.ends(low, high)}]"


def _clauses(judged: Sequence[AgainstLabour]) -> dict[Outcome, str]:
    below = sorted({one.word.removesuffix("s") for one in judged if one.verdict == "lower"})
    return {
        "higher": "exaggerate {force}",
        "lower": f"{' or '.join(below)} {{force}}",
        "equivalent": "mirror {force}",
        "no-clear-difference": "have no clear verdict on whether they mirror {force}",
    }


_AFTER: dict[Outcome, str] = {"higher": "exaggerating", "lower": "flattening", "equivalent": "mirroring"}
