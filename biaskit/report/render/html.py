"""Show in a notebook what a command prints: every text is escaped, ± and intervals are named."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape

from biaskit.common.foreign import visible
from biaskit.errors import RunError
from biaskit.report.render.document import Document

MOST_ROWS = 60


class Printed(ABC):
    """A result that a command prints; a notebook shows the same tables."""

    warnings: tuple[str, ...] = ()

    @abstractmethod
    def document(self) -> Document:
        """Lay out what the command prints: tables, notes and the signature."""

    def _lines(self) -> tuple[str, ...]:
        return ()

    def _repr_html_(self) -> str:
        import pandas as pd

        try:
            document = self.document()
        except RunError:  # no tables yet
            document = Document((), self.warnings)
        parts = [f"<p>{escape(line)}</p>" for line in self._lines()]
        for table in document.tables:
            rows = pd.DataFrame(table.rows, columns=table.columns()) if table.header else None
            shown = "" if rows is None else rows.to_html(index=False, max_rows=MOST_ROWS)
            parts.append(f"<h4>{escape(table.title)}</h4>{shown}<p>{escape(table.note)}</p>")
        parts += [f"<p>{escape(note)}</p>" for note in (*document.notes, document.signature)]
        return visible("".join(parts), keep="\n")
