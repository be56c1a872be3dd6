"""A document's tables in LaTeX (booktabs), ready for a manuscript."""

from __future__ import annotations

import re
from collections.abc import Sequence

from biaskit.report.document import Document, Heading, TitledTable

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "±": r"$\pm$",
    "–": "--",
    "×": r"$\times$",
    "→": r"$\rightarrow$",
}


def render_latex(document: Document) -> str:
    """One `table` environment per table; notes and signature as comments."""
    parts = ["% needs \\usepackage{booktabs}"]
    parts += [_table(table) for table in document.tables]
    parts += [f"% Note: {_one_line(note)}" for note in document.notes]
    if document.signature:
        parts.append(f"% {_one_line(document.signature)}")
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Foreign text that LaTeX prints as it stands; control characters are shown as a question mark."""
    return "".join(_SPECIAL.get(c, c if c.isprintable() else "?") for c in text)


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", "".join(c if c.isprintable() else "?" for c in text))


def _table(table: TitledTable) -> str:
    n = sum(heading.span for heading in table.header[-1])
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{escape(table.title)}}}",
        f"\\begin{{tabular}}{{{'l' * table.n_text}{'r' * (n - table.n_text)}}}",
        r"\toprule",
    ]
    for i, line in enumerate(table.header):
        lines.append(_header(line))
        if i + 1 < len(table.header):
            lines += _rules(line)
    lines.append(r"\midrule")
    lines += [" & ".join(escape(cell) for cell in row) + r" \\" for row in table.rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.note:
        lines.append(f"\\\\ \\footnotesize {escape(table.note)}")
    return "\n".join([*lines, r"\end{table}"])


def _header(line: Sequence[Heading]) -> str:
    cells = [
        escape(h.text) if h.span == 1 else f"\\multicolumn{{{h.span}}}{{c}}{{{escape(h.text)}}}" for h in line
    ]
    return " & ".join(cells) + r" \\"


def _rules(line: Sequence[Heading]) -> list[str]:
    found, start = [], 1
    for heading in line:
        if heading.span > 1 and heading.text:
            found.append(f"\\cmidrule(lr){{{start}-{start + heading.span - 1}}}")
        start += heading.span
    return ["".join(found)] if found else []
