"""Render a document for programs: JSON with everything, CSV of one table."""

from __future__ import annotations

import csv
import io
import json

from biaskit.common.foreign import is_formula
from biaskit.report.render.document import Document, TitledTable


def render_json(document: Document) -> str:
    """Render tables with named columns, notes and signature; cells are the text that a reader sees."""
    tables = [
        {
            "title": table.title,
            "columns": list(table.columns()),
            "rows": [list(row) for row in table.rows],
            "note": table.note,
        }
        for table in document.tables
    ]
    content = {"tables": tables, "notes": list(document.notes), "signature": document.signature}
    return json.dumps(content, indent=1) + "\n"


def render_csv(table: TitledTable) -> str:
    """Render one table with one header line; no cell of words is a formula to a spreadsheet."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_plain(name) for name in table.columns())
    for row in table.rows:
        writer.writerow(_plain(cell) if i < table.n_text else cell for i, cell in enumerate(row))
    return out.getvalue()


def _plain(cell: str) -> str:
    """Begin a cell that a spreadsheet would run with an apostrophe, which marks it as text."""
    return f"'{cell}" if is_formula(cell) else cell
