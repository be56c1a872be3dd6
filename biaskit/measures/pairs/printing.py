"""Prints pairs of sentences: a line for each language, then one for each stereotype."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from biaskit.measurement import words
from biaskit.records import ALL
from biaskit.report.render.document import Document, PaperTable, TitledTable
from biaskit.report.render.generic import printed_table
from biaskit.runs.collection import Part
from biaskit.runs.store import slug
from biaskit.tables.query import Row, Tables, apart_from, grouped, where
from biaskit.tables.schema import SCHEMAS

MOST_STEREOTYPES = 40  # more are in pair_groups.csv alone


def pair_document(tables: Tables, notes: Sequence[str], signature: str) -> Document:
    """Make the tables of each model from pair_groups.csv; what their columns mean stands under the last."""
    shown = [paper.table for paper in _tables(tables)]
    shown[:-1] = (replace(table, note="") for table in shown[:-1])
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
        for table in _table(title, "language", where(rows, stereotype=ALL)):
            yield PaperTable(f"pairs-{slug(model)}", table)
        by_stereotype = apart_from(where(rows, language=ALL), stereotype=ALL)
        if by_stereotype and stereotypes:
            more = len(by_stereotype) - MOST_STEREOTYPES
            title = f"{name}, by stereotype" + (f" ({more} more in pair_groups.csv)" if more > 0 else "")
            for table in _table(title, "stereotype", by_stereotype[:MOST_STEREOTYPES]):
                yield PaperTable(f"pairs-stereotypes-{slug(model)}", table)


def _table(title: str, name: str, rows: Sequence[Row]) -> Iterator[TitledTable]:
    """Make a table with a line for each row, that of all last, without columns that have no number."""
    lines = []
    for row in sorted(rows, key=lambda row: row[name] == ALL):
        line = {**row, name: row[name] or "(none)"}
        if row["gap"] is None:
            line |= dict.fromkeys(("share_where_female", "share_where_male"))
        lines.append(line)
    printed = SCHEMAS["pair_groups"].printed.replace("language", name)
    yield from printed_table(title, printed, lines, note=words("pairs")["printed"]["note"], known=True)
