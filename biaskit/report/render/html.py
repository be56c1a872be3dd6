"""Show in a notebook what a command prints, and a figure: every text is escaped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64encode
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

    def _figure(self) -> bytes:
        return b""

    def _repr_html_(self) -> str:
        import pandas as pd

        try:
            document, lines, figure = self.document(), self._lines(), self._figure()
        except RunError:  # no tables yet
            document, lines, figure = Document((), self.warnings), (repr(self),), b""
        parts = [f"<p>{escape(line)}</p>" for line in lines]
        for table in document.tables:
            rows = pd.DataFrame(table.rows, columns=table.columns()) if table.header else None
            shown = "" if rows is None else rows.to_html(index=False, max_rows=MOST_ROWS)
            parts.append(f"<h4>{escape(table.title)}</h4>{shown}<p>{escape(table.note)}</p>")
        if figure:
            encoded = b64encode(figure).decode()
            parts.append(f'<img alt="{escape(lines[0])}" src="data:image/svg+xml;base64,{encoded}">')
        parts += [f"<p>{escape(note)}</p>" for note in (*document.notes, document.signature)]
        return visible("".join(parts), keep="\n")
