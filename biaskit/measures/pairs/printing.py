"""Prints pairs of sentences: a line for each language, then one for each stereotype."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from biaskit.common.wording import percent, percent_range, point_number, points_range
from biaskit.report.render.cells import UNDEFINED
from biaskit.report.render.document import Document, PaperTable, TitledTable, listed_table
from biaskit.runs.collection import Part
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
HEADS = ("women", "where women expected", "where men expected", "difference", "expected side", "pairs")


def pair_document(tables: Tables, notes: Sequence[str], signature: str) -> Document:
    """Make the tables of each model from pair_groups.csv; what their columns mean stands under the last."""
    shown = [paper.table for paper in _tables(tables)]
    shown[:-1] = [replace(table, note="") for table in shown[:-1]]
    return Document(tuple(shown), tuple(notes), signature)


def headline(part: Part) -> Iterator[TitledTable]:
    """Make a table of languages for each model."""
    for paper in _tables(part.tables, stereotypes=False):
        yield paper.table


def papers(part: Part, _between: Tables) -> list[PaperTable]:
    """Make a table of languages and one of stereotypes for each model."""
    return list(_tables(part.tables))


def _tables(tables: Tables, *, stereotypes: bool = True) -> Iterator[PaperTable]:
    for (model,), rows in grouped(tables.get("pair_groups", ()), "model").items():
        estimator = rows[0]["estimator"]
        name = model if estimator in ("exact", None, "") else f"{model} ({estimator})"
        title = f"{name}: % of the probability of both sentences"
        yield PaperTable(f"pairs-{slug(model)}", _table(title, "language", where(rows, stereotype=ALL)))
        by_stereotype = [row for row in where(rows, language=ALL) if row["stereotype"] != ALL]
        if by_stereotype and stereotypes:
            more = len(by_stereotype) - MOST_STEREOTYPES
            title = f"{name}, by stereotype" + (f" ({more} more in pair_groups.csv)" if more > 0 else "")
            table = _table(title, "stereotype", by_stereotype[:MOST_STEREOTYPES])
            yield PaperTable(f"pairs-stereotypes-{slug(model)}", table)


def _table(title: str, name: str, rows: Sequence[Row]) -> TitledTable:
    """Make a table with a line for each row, that of all last, without columns that have no number."""
    lines = []
    for row in sorted(rows, key=lambda row: row[name] == ALL):
        both = row["gap"] is not None
        line = (
            str(row[name]) or "(none)",
            _with_ends(row, "female_share", "ci"),
            percent(row["share_where_female"]) if both else UNDEFINED,
            percent(row["share_where_male"]) if both else UNDEFINED,
            _with_ends(row, "gap", "gap", point_number, points_range),
            _with_ends(row, "expected_rate", "expected"),
            str(row["n_pairs"]),
        )
        lines.append(line)
    heads = (name, *HEADS)
    shown = [i for i in range(len(heads)) if any(line[i] != UNDEFINED for line in lines)]
    cells = [tuple(line[i] for i in shown) for line in lines]
    return listed_table(title, [heads[i] for i in shown], cells, note=NOTE)


def _with_ends(
    row: Row,
    name: str,
    ends: str,
    number: Callable[[float], str] = percent,
    interval: Callable[[float, float], str] = percent_range,
) -> str:
    """Write a number with its interval, `<ends>_low` to `<ends>_high`."""
    if row[name] is None:
        return UNDEFINED
    low, high = row[f"{ends}_low"], row[f"{ends}_high"]
    return number(row[name]) + (f" [{interval(low, high)}]" if low is not None else "")
