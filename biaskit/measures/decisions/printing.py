"""Prints decisions: a line for each group, below it the gaps and the smallest ratio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from biaskit.common.wording import count, percent, plain_number, points, points_range
from biaskit.measures.decisions.findings import ratio, smallest
from biaskit.records import ALL
from biaskit.report.render.document import TitledTable
from biaskit.report.render.generic import printed_table
from biaskit.runs.collection import Part
from biaskit.tables.query import Row, Tables, column, defined, first, grouped, named, where

PRINTED = """group || people = {n_people} | yes % = {expected:%1} | selected % = {chosen:%1} |
mean rate = {above:%1} | ratio = {ratio:.2[ratio]} | of four fifths = {verdict}"""


def headline(part: Part) -> Iterator[TitledTable]:
    """Make a table of groups for each model and question."""
    yield from tables_of(part.tables)


def tables_of(tables: Tables) -> Iterator[TitledTable]:
    """Lay out what the command prints."""
    for (model, question), groups in grouped(tables.get("decision_groups", ()), "model", "question").items():
        own = {"model": model, "question": question}
        rows, lines = where(tables["decisions"], **own), []
        for (_, category), of_group in grouped(where(groups, job=ALL), "by", "category").items():
            rate_of = {row["rate_kind"]: row["rate"] for row in of_group}
            line: dict[str, Any] = {**(first(of_group, rate_kind="expected") or of_group[0])}
            line |= {"group": who(category), "expected": rate_of.get("expected")}
            line["n_people"] = line["n_people"] or None
            lines.append({**line, "chosen": rate_of.get("selected"), "above": rate_of.get("above-median")})
        note = ". ".join([*_gaps(tables, own, scored=is_scored(groups)), *_ratio(tables, own)])
        yield from printed_table(_title(model, question, rows), PRINTED, lines, note=note, known=True)


def who(category: str) -> str:
    """Name a category as tables and figures show it."""
    return {"female": "women", "male": "men"}.get(category, category)


def is_scored(groups: Sequence[Row]) -> bool:
    """Tell whether a question is answered by scores; `groups`: its rows of decision_groups.csv."""
    return any(row["rate_kind"] == "above-median" for row in groups)


def _title(model: str, question: str, rows: Sequence[Row]) -> str:
    sizes = []
    for name, several in (("case", "cases"), ("person", "people"), ("wording", "wordings")):
        if n := len(named(rows, name)):
            sizes.append(count(n, name, several))
    estimators, covered = named(rows, "estimator"), column(defined(rows, "coverage"), "coverage")
    held = f", coverage {percent(sum(covered) / len(covered))} %" if covered else ""
    asked = f"{question}? " if estimators else ""
    return f"{model}: {asked}{' × '.join(sizes)}, {', '.join(estimators) or 'log'}{held}"


def _gaps(tables: Tables, own: dict[str, Any], *, scored: bool) -> Iterator[str]:
    for row in where(tables.get("decision_gaps", ()), **own, job=ALL):
        if row["contrast"] in ("sex", "race") and row["gap"] is not None:
            a, b = who(row["group_a"]), who(row["group_b"])
            gap, low, high = row["gap"], row["ci_low"], row["ci_high"]
            text = f"{a} − {b}: {plain_number(gap) if scored else points(gap)}"
            if low is not None:
                ends = f"{plain_number(low)} to {plain_number(high)}"
                text += f" [{ends if scored else points_range(low, high, 1)}]"
            yield text + (f", {row['verdict'].replace('-', ' ')}" if row["verdict"] else "")


def _ratio(tables: Tables, own: dict[str, Any]) -> Iterator[str]:
    if found := smallest(tables, **own):
        low, _, equal = found
        same = {"by": low["by"], "job": ALL, "rate_kind": low["rate_kind"]}
        n = len(where(tables["decision_groups"], **own, **same))
        text = f"Smallest of {n} groups: {ratio(low)} ({low['category']}), {low['verdict'].replace('-', ' ')}"
        median = f"; equal groups: {equal['equal_median']:.2f} in half of audits" if equal else ""
        yield text + median
