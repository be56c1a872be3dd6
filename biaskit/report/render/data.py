"""A document's tables for programs: JSON with everything, CSV of one table."""

from __future__ import annotations

import csv
import io
import json

from biaskit.common.foreign import is_formula
from biaskit.report.render.document import Document, TitledTable


def render_json(document: Document) -> str:
    """Tables with named columns, notes and signature; cells are the finished text that a reader sees."""
    tables = [
        {
            "title": table.title,
            "columns": list(table.columns()),
            "rows": [list(row) for row in table.rows],
            "note": table.note,
        }
        for table in document.tables
    ]
    whole = {"tables": tables, "notes": list(document.notes), "signature": document.signature}
    return json.dumps(whole, indent=1) + "\n"


def render_csv(table: TitledTable) -> str:
    """One table with one header line; no cell of words is a formula to a spreadsheet."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_plain(name) for name in table.columns())
    for row in table.rows:
        writer.writerow(_plain(cell) if i < table.n_text else cell for i, cell in enumerate(row))
    return out.getvalue()


def _plain(cell: str) -> str:
    """A cell of words that no spreadsheet runs; an apostrophe tells it that text follows."""
    return f"'{cell}" if is_formula(cell) else cell
