"""Render documents and papers' tables in LaTeX (booktabs), ready for a manuscript."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path

from biaskit.common.foreign import visible
from biaskit.report.render.document import Document, PaperTable, TitledTable, placed

LONGEST = 45  # lines of a table that fit on a page; a longer table goes over several
WIDEST = 78
"""Letters on a line of \\footnotesize; a table with more columns is scaled down to the line."""
_ALL_TABLES = Path(__file__).with_name("all-tables.tex")
_LIST_LINE = 60  # letters of a list on one line, to guess how long a table is


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Pair letters with their names, which follow each other in the text."""
    return zip(text.split()[::2], text.split()[1::2], strict=True)


_MATHS = r"− - ± \pm × \times ÷ \div · \cdot ≤ \leq ≥ \geq ≈ \approx → \rightarrow α \alpha"
_NAMES = (
    r"\ backslash ^ asciicircum ~ asciitilde < less > greater | bar "
    '" quotedbl ` asciigrave ‘ quoteleft ’ quoteright “ quotedblleft ” quotedblright '
    "– endash — emdash € euro"
)
_SPECIAL: Mapping[str, str] = {
    **{letter: f"\\{letter}" for letter in "{}$&#%_"},
    **{letter: f"${name}$" for letter, name in _pairs(_MATHS)},
    **{letter: f"\\text{name}{{}}" for letter, name in _pairs(_NAMES)},
    "…": r"\ldots{}",
    "\xa0": "~",
}
# Latin letters that no common font of LaTeX's own encoding has.
_NOT_IN_T1 = frozenset("\u0126\u0127\u0138\u013f\u0140\u0149\u0166\u0167\u017f\xad")
_ON_THE_LINE = "¡£§«»¿"
_MINUS = re.compile(r"(?<![0-9A-Za-z])-(?=[0-9.])")


def render_latex(document: Document) -> str:
    """Render one environment per table that has columns; notes and signature are comments."""
    tables = [*filter(attrgetter("header"), document.tables)]
    parts = [_needs(tables)]
    parts += [_environment(table, str(number)) for number, table in enumerate(tables, 1)]
    parts += [f"% Note: {_comment(note)}" for note in document.notes]
    if document.signature:
        parts.append(f"% {_comment(document.signature)}")
    return "\n\n".join(parts) + "\n"


def latex_files(tables: Sequence[PaperTable], signature: str = "") -> dict[str, bytes]:
    """Map names to content: a file per table, numbered where alike, and a whole document, all-tables.tex."""
    files: dict[str, str] = {}
    for paper in tables:
        name, n = paper.name, 1
        while f"{name}.tex" in files:
            n += 1
            name = f"{paper.name}-{n}"
        lines = [_needs([paper.table])]
        if signature:
            lines.append(f"% {_comment(signature)}")
        files[f"{name}.tex"] = "\n".join([*lines, _environment(paper.table, name), ""])
    if files:
        inputs = "\n".join(f"\\input{{{name}}}\n\\clearpage" for name in files)
        files["all-tables.tex"] = _ALL_TABLES.read_text("ascii").replace("INPUTS", inputs)
    return {name: text.encode("utf-8") for name, text in files.items()}


def _needs(tables: Sequence[TitledTable]) -> str:
    packages = ["booktabs"]
    if any(table.wide for table in tables):
        packages.append("array")
    if any(map(_is_long, tables)):
        packages.append("longtable")
    if any(_is_broad(table) and not _is_long(table) for table in tables):
        packages.append("graphicx")
    return rf"% needs \usepackage[T1]{{fontenc}} and \usepackage{{{','.join(packages)}}}"


def escape(text: str) -> str:
    """Escape foreign text so that every LaTeX prints it unchanged: nothing in it is a command.

    What pdfLaTeX has no letter for (other scripts, symbols, control characters, bidirectional overrides,
    lone surrogates) is shown by its code, such as U+202E, so that a hostile or a Chinese label compiles.
    """
    # A hyphen or quote beside another would become a dash or another quote.
    return re.sub(r"(?<=([-',!?]))(?=\1)", "{}", "".join(map(_letter, text)))


def _letter(letter: str) -> str:
    if letter in _SPECIAL:
        return _SPECIAL[letter]
    latin = "À" <= letter <= "ž" and letter not in _NOT_IN_T1
    return letter if " " <= letter <= "~" or letter in _ON_THE_LINE or latin else f"U+{ord(letter):04X}"


def _comment(text: str) -> str:
    """Make text safe as a comment: nothing in it ends the line, and all of it is UTF-8."""
    return visible(re.sub(r"\s+", " ", text))


def _environment(table: TitledTable, name: str) -> str:
    label = re.sub(r"[^a-z0-9.-]+", "-", name.lower())
    caption = f"\\caption{{{escape(table.title)}}}\\label{{tab:biaskit-{label}}}"
    headings = [r"\toprule", *_headings(table), r"\midrule"]
    rows = []
    for row in table.rows:
        # A hyphen before a number is a minus sign where numbers stand, else a part of a word or date.
        cells = [cell if i < table.n_text else _MINUS.sub("−", cell) for i, cell in enumerate(row)]
        rows.append(_guarded(" & ".join(map(escape, cells))) + r" \\")
    return "\n".join((_long if _is_long(table) else _floating)(table, caption, headings, rows))


def _floating(
    table: TitledTable, caption: str, headings: Sequence[str], rows: Sequence[str]
) -> Iterator[str]:
    broad = _is_broad(table)
    yield from (r"\begin{table}", r"\centering", r"\footnotesize", caption)
    if broad:
        yield r"\resizebox{\linewidth}{!}{%"
    yield f"\\begin{{tabular}}{{{_columns(table)}}}"
    yield from (*headings, *rows, r"\bottomrule", r"\end{tabular}" + "}" * broad)
    if table.note:
        yield from ("", r"\smallskip", f"\\parbox{{\\linewidth}}{{\\footnotesize {escape(table.note)}}}")
    yield r"\end{table}"


def _long(table: TitledTable, caption: str, headings: Sequence[str], rows: Sequence[str]) -> Iterator[str]:
    """Lay out a table over pages, with headings on each; it cannot be scaled, so a broad one is set small."""
    small = r"\tiny" if _breadth(table) > WIDEST + 20 else r"\scriptsize"
    size = small + r"\setlength{\tabcolsep}{2pt}" if _is_broad(table) else r"\footnotesize"
    yield from (rf"\begingroup{size}", f"\\begin{{longtable}}{{{_columns(table)}}}", caption + r"\\")
    yield from (*headings, r"\endfirsthead", *headings, r"\endhead", r"\bottomrule", r"\endfoot", *rows)
    yield r"\end{longtable}"
    if table.note:
        yield from ("", rf"\noindent\footnotesize {escape(table.note)}", "")
    yield r"\par\endgroup"


def _columns(table: TitledTable) -> str:
    """Set text at the left, numbers at the right, lists in paragraphs as wide as the others leave."""
    others = sum(width + 2 for i, width in enumerate(_widths(table)) if i not in table.wide)
    part = max(0.9 - others / (WIDEST + 12), 0.3) / max(len(table.wide), 1)
    paragraph = rf">{{\raggedright\arraybackslash}}p{{{part:.2f}\linewidth}}"
    columns = ["l"] * table.n_text + ["r"] * (table.n_columns - table.n_text)
    for i in table.wide:
        columns[i] = paragraph
    return "".join(columns)


def _widths(table: TitledTable) -> list[int]:
    names = [heading.text for heading in table.header[-1]]
    widths = list(map(len, names)) if len(names) == table.n_columns else [0] * table.n_columns
    for row in table.rows:
        widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=True)]
    return widths


def _breadth(table: TitledTable) -> int:
    """Letters in a line of a table; a list counts as thirty, the least that it needs."""
    widths = [width + 2 for i, width in enumerate(_widths(table)) if i not in table.wide]
    return sum(widths) + 30 * len(table.wide)


def _is_broad(table: TitledTable) -> bool:
    return _breadth(table) > WIDEST


def _is_long(table: TitledTable) -> bool:
    n_lines = 0
    for row in table.rows:
        longest = max((len(row[i]) for i in table.wide), default=0)
        n_lines += 1 + longest // _LIST_LINE
    return n_lines > LONGEST


def _headings(table: TitledTable) -> Iterator[str]:
    """Write header lines, and under all but the last a rule for each heading over several columns."""
    for number, line in enumerate(table.header, 1):
        cells, rules = [], ""
        for heading, columns in placed(line):
            text, many = escape(heading.text), heading.span > 1
            cells.append(f"\\multicolumn{{{heading.span}}}{{c}}{{{text}}}" if many else text)
            if many and text:
                rules += f"\\cmidrule(lr){{{columns.start + 1}-{columns.stop}}}"
        yield _guarded(" & ".join(cells)) + r" \\"
        if rules and number < len(table.header):
            yield rules


def _guarded(line: str) -> str:
    """Guard a line that begins like an option or star, which the command before it would take."""
    return "{}" + line if line.lstrip()[:1] in ("[", "*", "(") else line
