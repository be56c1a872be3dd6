"""Whose tables a run's tables are: a paper's where its shipped study was asked as it is, else the user's own.

Titles, captions and file names carry a paper's number only there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from biaskit.corpora.sources import SHIPPED, source_digest
from biaskit.errors import CorpusError
from biaskit.study.config import load_study, study_names
from biaskit.study.keys import ANALYSIS_KEYS

OWN_LISTS = "-own-lists"
"""Ends the name of a shipped study of which a list was replaced."""


class Claim(IntEnum):
    """Whether a table is a paper's; the least of several holds for all."""

    NONE = 0
    WHOLE = 1

    def place(self, place: str) -> str:
        """What ends a title: `place`, such as "OccuGender, Table 3", in brackets; empty where it is not."""
        return f" ({place})" if self else ""

    def file_name(self, papers: str, own: str) -> str:
        """A file's name: the paper's for its table, or one that claims nothing."""
        return papers if self else own


GASP = "gasp"
OCCUGENDER = {"explicit": "occugender-table-3", "implicit": "occugender-table-4"}
DEBIASING = "occugender-tables-9-18"
MATTERN = {"explicit": "mattern-table-3", "implicit": "mattern-table-4"}
_TABLES_OF = {
    "occugender": tuple(OCCUGENDER.values()),
    "occugender-debias": (DEBIASING,),
    "mattern": tuple(MATTERN.values()),
    "gasp": (GASP,),
}
"""Shipped study → the paper's tables that it gives (Mattern's Tables 7 and 8 hold the cells of 3 and 4)."""
_METHODS = {"probe": "occugender", "personas": "gasp"}
_SAME_QUESTION = frozenset({"models", "summary", "papers", "wording"})
"""Keys beside those of the analysis that change nothing of a paper's question; GAS(P) has two wordings."""


def claims_of(resolved: Mapping[str, Any]) -> dict[str, Claim]:
    """Name of a paper's table → whether a run's table of that kind is it; `resolved` is its manifest's."""
    claimed = _TABLES_OF.get(resolved["study"]["name"], ()) if _asks_shipped_study(resolved) else ()
    return {table: Claim(int(table in claimed)) for tables in _TABLES_OF.values() for table in tables}


def together(claims: Sequence[Mapping[str, Claim]]) -> dict[str, Claim]:
    """What the tables of several runs in one may be called."""
    return {name: min(one[name] for one in claims) for name in claims[0]}


def summary_of(resolved: Mapping[str, Any]) -> str:
    """The line that describes a run's study: a shipped study's own holds for the whole of it alone."""
    study = resolved["study"]
    return (
        str(study["summary"]) if study["name"] not in study_names() or _asks_shipped_study(resolved) else ""
    )


def _asks_shipped_study(resolved: Mapping[str, Any]) -> bool:
    """Whether a run's study is the shipped one of its name, and its lists are those that are shipped."""
    study = resolved["study"]
    if resolved.get("imported") or study["name"] not in study_names():
        return False
    shipped = load_study(study["name"]).model_dump(mode="json")
    left_out = ANALYSIS_KEYS[study["engine"]] | _SAME_QUESTION
    try:
        return {k: v for k, v in study.items() if k not in left_out} == {
            k: v for k, v in shipped.items() if k not in left_out
        } and all(source_digest(source) == stated for source, stated in resolved["sources"].items())
    except CorpusError:
        return False


def papers_of(resolved: Mapping[str, Any]) -> tuple[str, ...]:
    """Corpora whose papers are cited: those of the method always, those of lists only where they were used.

    A study file of one's own may state others; those that a shipped study states are cited as they are used.
    """
    study = resolved["study"]
    stated, name = tuple(study.get("papers", ())), str(study.get("name"))
    if study.get("engine") not in _METHODS:
        return stated  # a comparison's: those of all its runs
    methods = (*(["mattern"] if study.get("task") == "continuation" else []), _METHODS[study["engine"]])
    used = [s.removeprefix(SHIPPED).partition("/")[0] for s in resolved["sources"] if s.startswith(SHIPPED)]
    used = [corpus for corpus in used if corpus != "expressions"]  # words of both papers of the probe
    if name.removesuffix(OWN_LISTS) in study_names():
        stated = tuple(paper for paper in stated if paper in (*methods, *used))
    return tuple(dict.fromkeys((*stated, *methods, *used)))
