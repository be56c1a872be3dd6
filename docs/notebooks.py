"""Make a Jupyter notebook of each tutorial: `python docs/notebooks.py FOLDER`.

Blocks of Python, and of commands that begin with biaskit or python, become cells. What they print is left
out, since running a cell prints it again; a cell's metadata keeps it for the tests to compare.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

TUTORIALS = Path(__file__).resolve().parent / "tutorials"
DOCS = "https://github.com/biaskit/biaskit/blob/main/docs/"
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
_BLOCK = re.compile(r"^(<!-- output: [^\n]* -->\n)?```(\w*)\n(.*?)^```$", re.S | re.M)


def _as_prose(text: str) -> str:
    """Make links work where the pages and pictures of `docs/` are not at hand."""
    return re.sub(r"\]\(\.\./([^)]+\.svg)\)", rf"]({DOCS}\1?raw=true)", text).replace("](../", f"]({DOCS}")


def notebook(tutorial: str) -> nbformat.NotebookNode:
    """Make a notebook of a page in Markdown."""
    cells: list[nbformat.NotebookNode] = []
    start = 0
    for block in [*_BLOCK.finditer(tutorial), None]:
        printed, language, code = block.groups() if block else (None, "", "")
        is_shell = language == "sh" and code.startswith(("biaskit ", "python "))
        if block and not printed and not is_shell and language != "python":
            continue  # stays in the prose
        if prose := tutorial[start : block.start() if block else None].strip():
            cells.append(new_markdown_cell(_as_prose(prose)))
        if block:
            start = block.end()
        if printed:
            last = next(cell for cell in reversed(cells) if cell.cell_type == "code")
            last.metadata.setdefault("prints", []).append(code)
        elif block:
            cells.append(new_code_cell(f"%%bash\n{code}".strip() if is_shell else code.strip()))
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"  # else random: the same page makes the same file
    return new_notebook(cells=cells, metadata=KERNEL)


def write(folder: Path) -> None:
    """Write a notebook of each tutorial into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(TUTORIALS.glob("*.md")):
        nbformat.write(notebook(path.read_text(encoding="utf-8")), folder / f"{path.stem}.ipynb")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
