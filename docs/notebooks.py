"""Make a Jupyter notebook of each tutorial: `python docs/notebooks.py FOLDER`.

Blocks of Python and of `biaskit` commands become cells. What they print is left out, since running them prints
it again; tests find it in a cell's metadata and compare.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

TUTORIALS = Path(__file__).resolve().parent / "tutorials"
SITE = "https://github.com/biaskit/biaskit/blob/main/docs/"
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
_BLOCK = re.compile(r"^(<!-- output: [^\n]* -->\n)?```(\w*)\n(.*?)^```$", re.S | re.M)
_LINK = re.compile(r"\]\(\.\./")


def notebook(tutorial: str) -> nbformat.NotebookNode:
    """Make a notebook of a page in Markdown."""
    cells: list[nbformat.NotebookNode] = []
    start = 0

    def add(cell: nbformat.NotebookNode) -> None:
        cell["id"] = f"cell-{len(cells)}"  # else a random one: the same page makes the same file
        cells.append(cell)

    def add_prose(end: int) -> None:
        if prose := tutorial[start:end].strip():
            add(new_markdown_cell(_LINK.sub(f"]({SITE}", prose)))

    for block in _BLOCK.finditer(tutorial):
        printed, language, code = block.groups()
        is_shell = not language and code.startswith("biaskit ")
        if not printed and not is_shell and language != "python":
            continue
        add_prose(block.start())
        start = block.end()
        if printed:
            cell = next(cell for cell in reversed(cells) if cell.cell_type == "code")
            cell.metadata.setdefault("prints", []).append(code)
        else:
            add(new_code_cell(f"%%bash\n{code}".strip() if is_shell else code.strip()))
    add_prose(len(tutorial))
    return new_notebook(cells=cells, metadata=KERNEL)


def main() -> None:
    """Write a notebook for each tutorial into the folder named on the command line."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(TUTORIALS.glob("*.md")):
        nbformat.write(notebook(path.read_text(encoding="utf-8")), folder / f"{path.stem}.ipynb")


if __name__ == "__main__":
    main()
