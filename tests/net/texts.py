"""What a reader meets of a run, as lines of text: printed tables and notes, findings, LaTeX and page.

Reached through the public face, the printer of the commands and the files of the report alone. What changes
from machine to machine (folders, ports, digests, signatures, versions, dates) is masked.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure as MatplotlibFigure

import biaskit as bk
from biaskit.cli.output import print_result

MASKS = (
    (r"biaskit=\S+ \|[^\n]*((?<=\|)\n[^\n]+|\n\| [^\n]+)*", "[signature]"),
    (r"(?m)^biaskit \d\S* · .*$", "[versions]"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:[port]"),
    (r"\d{4}-\d\d-\d\d(T[\d:.+Z-]+| \d\d:\d\d(:\d\d)?( UTC)?)?", "[date]"),
    (r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,64}\b", "[digest]"),
)
SHOWN_VALUES = 12
"""So many different cells of a column of names; a column of numbers shows its first."""
FIGURE = "data:image/svg+xml;base64,"


def without_png(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no PNG: the text of a figure is read from its SVG, and half of the time is saved."""
    saved = MatplotlibFigure.savefig

    def save(figure: MatplotlibFigure, out: Any, **how: Any) -> None:
        if how.get("format") != "png":
            saved(figure, out, **how)

    monkeypatch.setattr(MatplotlibFigure, "savefig", save)


def text_of(result: Any, home: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Write all that is said of a run, in sections; `home` is the folder that its runs are in."""
    report = bk.report(result, watcher=bk.Silent())
    sections = {
        "printed": printed(result, "text", capsys),
        "requirement": requirement(result),
        "findings": "\n".join(
            f"{found.topic} | {found.question} | {found.verdict} | {found.text}" for found in report.findings
        ),
        "page": "\n".join(page_lines(report.page.read_text("utf-8"))),
        "card": card(result),
        "printed as LaTeX": printed(result, "latex", capsys),
        "files of LaTeX": "\n".join(
            f"--- {path.name}\n{path.read_text('utf-8')}" for path in sorted(report.latex)
        ),
        "figures": "\n".join(sorted(path.name for path in report.figures)),
    }
    text = "\n".join(f"===== {name}\n{said.strip()}\n" for name, said in sections.items() if said.strip())
    return masked(text, home)


def printed(result: Any, output_format: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Print a result as its command does, with all its notes."""
    capsys.readouterr()
    print_result(result, output_format, verbose=True)
    return capsys.readouterr().out


def requirement(result: Any) -> str:
    """Say whether models that were compared are equivalent, and which rows are not."""
    if not hasattr(result, "requirement"):
        return ""
    required = result.requirement()
    return "\n".join((required.text, *required.lines))


def card(result: Any) -> str:
    """Read the section for a model card that a run is exported as; a comparison has none."""
    if hasattr(result, "requirement"):
        return ""
    return bk.export(result, to="card", watcher=bk.Silent()).path.read_text("utf-8")


def masked(text: str, home: Path) -> str:
    """Leave out what changes from machine to machine, and blanks at the ends of lines."""
    for folder in (str(home.resolve()), str(home)):
        text = text.replace(folder, "HOME")
    for pattern, instead in MASKS:
        text = re.sub(pattern, instead, text)
    return "\n".join(line.rstrip() for line in text.split("\n"))


# --- the page -----------------------------------------------------------------------------------------


def page_lines(html: str) -> list[str]:
    """Read a page as lines: an element of text each; tables and figures in short."""
    page = Page()
    page.feed(html)
    page.close()
    return page.lines


class Page(HTMLParser):
    """Keeps the text of a page: blocks as lines, the words of figures, the columns of tables."""

    INLINE = frozenset(("a", "bdi", "code", "mark", "span", "strong", "sup"))
    SILENT = frozenset(("style", "script", "nav", "thead", "tbody", "sup"))

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._line = ""
        self._silent = 0
        self._table: list[list[tuple[str, bool]]] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in self.INLINE - self.SILENT:
            return
        if tag == "tr":
            self._table.append([])
        elif tag in ("th", "td"):
            self._line = ""
            self._table[-1].append(("", given.get("class") == "number"))
        else:
            self._end_line()
        if tag == "img":
            self.lines.append(f"[figure] {given['alt']}")
            self.lines += [f"  [in the figure] {text}" for text in figure_texts(given["src"])]
        self._silent += tag in self.SILENT and tag not in ("thead", "tbody")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td"):
            self._table[-1][-1] = (" ".join(self._line.split()), self._table[-1][-1][1])
            self._line = ""
        elif tag == "table":
            self.lines += table_lines(self._table)
            self._table = []
        elif tag not in self.INLINE:
            self._end_line(heading=tag)
        self._silent -= tag in self.SILENT and tag not in ("thead", "tbody")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._line += data

    def _end_line(self, heading: str = "") -> None:
        said = " ".join(self._line.split())
        self._line = ""
        if said:
            marks = {"h1": "# ", "h2": "\n## ", "h3": "### ", "li": "- ", "summary": "* "}
            self.lines += f"{marks.get(heading, '')}{said}".split("\n")


def table_lines(rows: Sequence[Sequence[tuple[str, bool]]]) -> Iterator[str]:
    """Yield for each column its label and its different cells, of numbers the first."""
    header, *body = rows
    yield f"  {len(body)} rows"
    for i, (label, is_number) in enumerate(header):
        cells = list(dict.fromkeys(row[i][0] for row in body))
        shown = cells[:1] if is_number else cells[:SHOWN_VALUES]
        more = f" · … {len(cells)} different" if not is_number and len(cells) > SHOWN_VALUES else ""
        yield f"  {label}: {' · '.join(shown)}{more}"


def figure_texts(source: str) -> list[str]:
    """List the different words that a figure shows: titles, labels and legend, no numbers of an axis."""
    assert source.startswith(FIGURE), source[:40]
    svg = base64.b64decode(source.removeprefix(FIGURE)).decode("utf-8")
    texts = Drawing()
    texts.feed(svg)
    texts.close()
    return sorted(set(filter(re.compile("[^\\W\\d_]").search, texts.found)))


class Drawing(HTMLParser):
    """Keeps what the text elements of a drawing say."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag == "text":
            self._inside = True
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "text"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found[-1] += data
