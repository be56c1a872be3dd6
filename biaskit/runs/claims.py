"""Whose tables a run's tables are: what it asked is held against what the paper's study asks.

Titles, captions and file names carry a paper's number where a run asked the paper's question, "part of" it
where it asked less, and nothing where anything is the user's own. What counts is what was asked, word by
word, wherever the lists lie: a copy of a paper's list is the paper's, a changed one is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from biaskit.corpora.sources import SHIPPED
from biaskit.runs.asked import Slice, asked_by, asked_in
from biaskit.study.config import load_study, study_names

OWN_LISTS = "-own-lists"
"""Ends the name of a shipped study of which a list was replaced."""


class Claim(IntEnum):
    """How much of a paper's question a run asked; the least of several holds for all."""

    NONE = 0
    PART = 1
    WHOLE = 2

    def place(self, place: str) -> str:
        """What ends a title: `place`, such as "OccuGender, Table 3", in brackets; empty where it is not."""
        return ("", f" (part of {place})", f" ({place})")[self]

    def file_name(self, papers: str, own: str) -> str:
        """A file's name: the paper's for its table, or one that claims nothing."""
        return (own, f"part-of-{papers}", papers)[self]


GASP = "gasp"
OCCUGENDER = {"explicit": "occugender-table-3", "implicit": "occugender-table-4"}
DEBIASING = "occugender-tables-9-18"
MATTERN = {"explicit": "mattern-table-3", "implicit": "mattern-table-4"}
_SLICES = {
    OCCUGENDER["explicit"]: Slice("occugender", ("explicit",), ("plain",), instructions=False),
    OCCUGENDER["implicit"]: Slice("occugender", ("implicit",), ("plain",), instructions=False),
    DEBIASING: Slice("occugender-debias", settings=("plain",)),
    MATTERN["explicit"]: Slice("mattern", ("explicit",)),
    MATTERN["implicit"]: Slice("mattern", ("implicit",)),
    GASP: Slice("gasp"),
}
"""By the name of a paper's table (Mattern's Tables 7 and 8 hold the same cells as 3 and 4)."""

_DAMAGED = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def claims_of(resolved: Mapping[str, Any]) -> dict[str, Claim]:
    """Name of a paper's table → whether a run's table of that kind is it; `resolved` is its manifest's."""
    return {name: _claim(resolved, part) for name, part in _SLICES.items()}


def together(claims: Sequence[Mapping[str, Claim]]) -> dict[str, Claim]:
    """What the tables of several runs in one may be called."""
    return {name: min(one.get(name, Claim.NONE) for one in claims) for name in _SLICES}


def _claim(resolved: Mapping[str, Any], part: Slice) -> Claim:
    """What of a slice a run asked; where it asked anything else, it claims nothing."""
    try:
        ours = asked_in(resolved, part)
    except _DAMAGED:  # a manifest that cannot be read proves nothing
        return Claim.NONE
    if ours is None:
        return Claim.NONE
    theirs = asked_by(part, ours.wording)
    if ours.fixed != theirs.fixed or not all(
        own and own <= theirs.lists[name] for name, own in ours.lists.items()
    ):
        return Claim.NONE
    whole = all(own == theirs.lists[name] for name, own in ours.lists.items())
    whole &= all(own >= theirs.amounts[name] for name, own in ours.amounts.items())
    return Claim.WHOLE if whole else Claim.PART


def summary_of(resolved: Mapping[str, Any]) -> str:
    """The line that describes a run's study: a shipped study's own holds for the whole of it alone."""
    study = resolved["study"]
    stated, name = str(study.get("summary", "")), str(study.get("name"))
    if name not in study_names() or stated != load_study(name).summary:
        return stated
    return ("", f"Part of: {stated}", stated)[_claim(resolved, Slice(name))]


_METHODS = {"probe": "occugender", "personas": "gasp"}


def papers_of(resolved: Mapping[str, Any]) -> tuple[str, ...]:
    """Corpora whose papers are cited: those of the method always, those of lists only where they were used.

    A study file of one's own may state others; those that a shipped study states are cited as they are used.
    """
    study = resolved["study"]
    stated, name = tuple(study.get("papers", ())), str(study.get("name"))
    if study.get("engine") not in _METHODS:
        return stated  # a comparison's: those of all its runs
    methods = (*(["mattern"] if study.get("task") == "continuation" else []), _METHODS[study["engine"]])
    used = [_corpus(source) for source in resolved.get("sources") or () if source.startswith(SHIPPED)]
    used = [corpus for corpus in used if corpus != "expressions"]  # words of both papers of the probe
    if name.removesuffix(OWN_LISTS) in study_names():
        stated = tuple(paper for paper in stated if paper in (*methods, *used))
    return tuple(dict.fromkeys((*stated, *methods, *used)))


def _corpus(source: str) -> str:
    return source.removeprefix(SHIPPED).partition("/")[0]
