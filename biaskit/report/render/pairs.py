"""Lay out the tables of sentence pairs: a line for each language, then one for each stereotype."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from biaskit.common.wording import percent, percent_range, point_number, points_range
from biaskit.report.render.document import Document, Heading, TitledTable
from biaskit.runs.store import slug
from biaskit.tables.query import Row, Tables, grouped, where

ALL = "all"
NOTE = (
    "Brackets: 95 % intervals. women: share of the feminine sentence. where women, men expected: the same"
    " where the stereotype expects women, and men; difference: in points. expected side: part of the pairs in"
    " which the sentence that the stereotype expects is more probable; it also includes any general"
    " preference for one gender."
)
MOST_STEREOTYPES = 40  # more are in pair_groups.csv alone
COLUMNS = ("women", "where women expected", "where men expected", "difference", "expected side", "pairs")


def pair_document(tables: Tables, notes: Sequence[str], signature: str) -> Document:
    """Make the tables of each model from pair_groups.csv; what their columns mean stands under the last."""
    shown = [table for _, table in pair_tables(tables)]
    shown[:-1] = [replace(table, note="") for table in shown[:-1]]
    return Document(tuple(shown), tuple(notes), signature)


def pair_tables(tables: Tables, *, stereotypes: bool = True) -> Iterator[tuple[str, TitledTable]]:
    """Yield for each model a table of its languages and one of its stereotypes, with their names."""
    for (model,), rows in grouped(tables.get("pair_groups", ()), "model").items():
        by_stereotype = [row for row in where(rows, language=ALL) if row["stereotype"] != ALL]
        name = f"{model} ({rows[0]['estimator']})" if rows[0]["estimator"] not in ("exact", None) else model
        title = f"{name}: % of the probability of both sentences"
        yield f"pairs-{slug(model)}", _table(title, "language", where(rows, stereotype=ALL))
        if by_stereotype and stereotypes:
            more = len(by_stereotype) - MOST_STEREOTYPES
            title = f"{name}, by stereotype" + (f" ({more} more in pair_groups.csv)" if more > 0 else "")
            table = _table(title, "stereotype", by_stereotype[:MOST_STEREOTYPES])
            yield f"pairs-stereotypes-{slug(model)}", table


def _table(title: str, name: str, rows: Sequence[Row]) -> TitledTable:
    lines = []
    for row in [*(row for row in rows if row[name] != ALL), *where(rows, **{name: ALL})]:
        both = row["gap"] is not None
        line = (
            str(row[name]) or "(none)",
            _with_ends(row, "female_share", "ci"),
            percent(row["share_where_female"]) if both else "–",
            percent(row["share_where_male"]) if both else "–",
            _with_ends(row, "gap", "gap", point_number, points_range),
            _with_ends(row, "expected_rate", "expected"),
            str(row["n_pairs"]),
        )
        lines.append(line)
    names, *columns = zip((name, *COLUMNS), *lines, strict=True)
    heads, *cells = zip(names, *(column for column in columns if {*column[1:]} != {"–"}), strict=True)
    return TitledTable(title=title, header=(tuple(map(Heading, heads)),), rows=tuple(cells), note=NOTE)


def _with_ends(
    row: Row,
    name: str,
    ends: str,
    number: Callable[[float], str] = percent,
    interval: Callable[[float, float], str] = percent_range,
) -> str:
    if row[name] is None:
        return "–"
    low, high = row[f"{ends}_low"], row[f"{ends}_high"]
    return number(row[name]) + (f" [{interval(low, high)}]" if low is not None else "")
