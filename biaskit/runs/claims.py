"""Whether a run's tables are a paper's and may carry its numbers: its shipped study, asked unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from biaskit.corpora.sources import SHIPPED, source_digest
from biaskit.errors import CorpusError
from biaskit.measurement import KINDS, measurement
from biaskit.study.config import load_study, study_names

OWN_LISTS = "-own-lists"  # the end of a study's name: a shipped study with a list of the user's own


class Claim(IntEnum):
    """Whether a table is a paper's; of several runs in one table, the least claim holds."""

    NONE = 0
    WHOLE = 1

    def place(self, place: str) -> str:
        """End a title by `place`, such as "OccuGender, Table 3", in brackets; empty for no paper's table."""
        return f" ({place})" if self else ""

    def file_name(self, papers: str, own: str) -> str:
        """Choose a file's name: the paper's for its table, or one that claims nothing."""
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
_SAME_QUESTION = frozenset({"models", "summary", "papers", "wording"})
"""Keys, beside those of the analysis, that leave a paper's question as it is; GAS(P) has two wordings."""


def claims_of(resolved: Mapping[str, Any]) -> dict[str, Claim]:
    """Map each paper's table to whether a run's table of that kind is it; `resolved` is its manifest's."""
    claimed = _TABLES_OF.get(resolved["study"]["name"], ()) if _asks_shipped_study(resolved) else ()
    return {table: Claim(int(table in claimed)) for tables in _TABLES_OF.values() for table in tables}


def together(claims: Sequence[Mapping[str, Claim]]) -> dict[str, Claim]:
    """Combine the claims of several runs whose tables stand in one."""
    least = dict(claims[0])
    for of_run in claims[1:]:
        least = {table: min(claim, of_run[table]) for table, claim in least.items()}
    return least


def summary_of(resolved: Mapping[str, Any]) -> str:
    """Give the line that describes a run's study; a shipped study's line is empty where it was changed."""
    study = resolved["study"]
    changed = study["name"] in study_names() and not _asks_shipped_study(resolved)
    return "" if changed else str(study["summary"])


def _asks_shipped_study(resolved: Mapping[str, Any]) -> bool:
    """Tell whether a run's study is the shipped one of its name, with the lists that are shipped."""
    study = resolved["study"]
    if resolved.get("imported") or study["name"] not in study_names():
        return False
    shipped = load_study(study["name"]).model_dump(mode="json")
    left_out = measurement(study["measurement"]).study.analysis_keys | _SAME_QUESTION
    if any(study.get(key, ...) != shipped.get(key, ...) for key in {*study, *shipped} - left_out):
        return False
    try:
        return all(source_digest(source) == stated for source, stated in resolved["sources"].items())
    except CorpusError:
        return False


def papers_of(resolved: Mapping[str, Any]) -> tuple[str, ...]:
    """List the corpora whose papers are cited: of the method always, of lists only where they were used.

    A user's own study may state others; those that a shipped study states are cited only where they are used.
    """
    study = resolved["study"]
    stated, name = tuple(study.get("papers", ())), str(study.get("name"))
    if study.get("measurement") not in KINDS:
        return stated  # a comparison's: those of all its runs
    methods = measurement(study["measurement"]).study.method_papers(study)
    used = [s.removeprefix(SHIPPED).partition("/")[0] for s in resolved["sources"] if s.startswith(SHIPPED)]
    used = [corpus for corpus in used if corpus != "target-words"]  # words of both papers of the probe
    if name.removesuffix(OWN_LISTS) in study_names():
        stated = tuple(paper for paper in stated if paper in (*methods, *used))
    return tuple(dict.fromkeys((*stated, *methods, *used)))
