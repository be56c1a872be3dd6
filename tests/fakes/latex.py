"""A checker of our LaTeX, for machines that have no LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator

COMMANDS = frozenset(
    {
        *("begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule", "cmidrule"),
        *(
            "multicolumn",
            "resizebox",
            "linewidth",
            "parbox",
            "smallskip",
            "footnotesize",
            "scriptsize",
            "tiny",
        ),
        *("setlength", "tabcolsep", "endfirsthead", "endhead", "endfoot", "begingroup", "endgroup", "par"),
        *("raggedright", "arraybackslash", "noindent", "textbackslash", "textasciicircum", "textasciitilde"),
        *(
            "textless",
            "textgreater",
            "textbar",
            "textquotedbl",
            "textasciigrave",
            "pm",
            "times",
            "div",
            "cdot",
        ),
        *(
            "leq",
            "geq",
            "approx",
            "rightarrow",
            "textendash",
            "textemdash",
            "ldots",
            "textquoteleft",
            "alpha",
        ),
        *("textquoteright", "textquotedblleft", "textquotedblright", "texteuro"),
        *("documentclass", "usepackage", "input", "clearpage", "addtocounter"),
    }
)
ENVIRONMENTS = frozenset({"table", "table*", "tabular", "longtable", "document"})


def check_latex(text: str) -> int:
    """Assert what a LaTeX run would complain about; returns the number of tables.

    Braces and environments balance, every command is one of ours, mathematics closes on its line, rows have
    as many cells as their table has columns, no row begins with what the command before it would swallow,
    and every character is one that T1 fonts have.
    """
    text.encode("utf-8")
    body = "\n".join(line for line in text.split("\n") if not line.startswith("%"))
    bare = re.sub(r"\\[\\{}$&#%_]", "", body)  # escaped characters and ends of rows
    assert {*re.findall(r"\\([A-Za-z]+)", bare)} <= COMMANDS
    assert not re.findall(r"\\[^A-Za-z]", bare)
    depth = 0
    for c in bare:
        depth += (c == "{") - (c == "}")
        assert depth >= 0
    assert depth == 0
    assert not set("#^_~") & set(bare.replace(r"\&", "")) - {"~"}
    assert all(line.count("$") % 2 == 0 for line in bare.split("\n"))
    assert not re.search(r"(?<!\{)%(?!$)", bare, re.M)  # a comment begins nowhere but where a line is joined
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z]+\*?)\}", bare):
        assert name in ENVIRONMENTS
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    assert all(c == "\n" or " " <= c <= "~" or "\u00a1" <= c <= "\u017e" for c in body)
    return sum(_check_rows(body))


def _check_rows(body: str) -> Iterator[int]:
    for environment in ("tabular", "longtable"):
        pattern = rf"\\begin\{{{environment}\}}\{{(.*)\}}\n((?:.|\n)*?)\\end\{{{environment}\}}"
        for columns, inside in re.findall(pattern, body):
            spec = re.sub(r">\{[^}]*\}p\{[^}]*\}", "p", columns)
            assert re.fullmatch("[lrp]+", spec)
            lines = [line for line in inside.split("\n") if line.endswith(r"\\") and "caption" not in line]
            assert lines
            for line in lines:
                assert line[0] not in "[*("
                cells = re.split(r"(?<!\\)&", line)
                spans = [int(n) for n in re.findall(r"\\multicolumn\{(\d+)\}", line)]
                assert len(spec) == len(cells) + sum(spans) - len(spans)
            yield 1
