"""Print the first screen as plain text: the first findings, then a table for each study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count
from biaskit.measurement import folders
from biaskit.report.content import Content, parts_of
from biaskit.report.findings import BETWEEN, findings, first_about
from biaskit.report.findings.finding import Finding
from biaskit.report.render.document import Document, TitledTable
from biaskit.report.render.text import READABLE, WIDTH, fold, render_text

N_FINDINGS = 6


def headline(content: Content, *, width: int = WIDTH, said: Sequence[Finding] | None = None) -> str:
    """Print sentences and tables in at most `width` columns; `said`: the findings, if made already."""
    tables = side_by_side(content)
    printed = [*_sentences(findings(content) if said is None else said, width, N_FINDINGS)]
    if tables:
        printed += ["", render_text(Document(tables), width)]
    return "\n".join(printed)


def side_by_side(content: Content) -> tuple[TitledTable, ...]:
    """Make tables with models in rows: one for each study and prompt format, in the order of kinds."""
    tables: list[TitledTable] = []
    for folder in folders():
        for part in parts_of(content.parts, folder.name):
            tables += folder.headline(part)
    return tuple(tables)


def first_findings(content: Content, *, width: int = WIDTH, most: int = N_FINDINGS) -> str:
    """Print the first findings alone, as `headline` does, those about models side by side before others."""
    return "\n".join(_sentences(first_about(BETWEEN, content), width, most))


def _sentences(said: Sequence[Finding], width: int, most: int) -> Iterator[str]:
    """Yield the headline, the next findings as a list, and in one line how many more there are."""
    if not said:
        yield "Nothing was measured."
        return
    width = min(width, READABLE)
    yield from fold(said[0].text, width)
    for finding in said[1:most]:
        yield from fold(finding.text, width, first="- ", then="  ")
    more = f"{count(len(said) - most, 'more finding')} in the report. " if len(said) > most else ""
    yield from fold(f"{more}Brackets: intervals of at least 95 %.", width)
