"""Outside `measures/` nothing compares, indexes, looks up or passes the name of a kind of measurement."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from places import ROOT

from biaskit.measurement import KINDS

PACKAGE = ROOT / "biaskit"
ALLOWED: Mapping[str, str] = {
    "corpora/pairs.py": "a list of pairs is called so in messages",
    "corpora/pair_formats.py": "the same",
}
"""File → why it names a kind; the list may only shrink."""


def names_of_kinds(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the constants that are a kind's name where they are compared, keys, indices or arguments."""
    for node in ast.walk(tree):
        inside: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            inside = [node.left, *node.comparators]
        elif isinstance(node, ast.Subscript):
            inside = [node.slice]
        elif isinstance(node, ast.Call):
            inside = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Dict):
            inside = [*node.keys, *node.values]
        elif isinstance(node, ast.MatchValue):
            inside = [node.value]
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.Return | ast.IfExp):
            inside = [
                getattr(node, "value", None),
                getattr(node, "body", None),
                getattr(node, "orelse", None),
            ]
        for part in inside:
            parts = part.elts if isinstance(part, ast.Tuple | ast.List | ast.Set) else [part]
            for constant in parts:
                if isinstance(constant, ast.Constant) and constant.value in KINDS:
                    yield constant


def places() -> dict[str, list[str]]:
    """Map each file outside the folders of kinds to its lines that name one."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("measures/") or name == "measurement.py":
            continue
        for constant in names_of_kinds(ast.parse(path.read_text("utf-8"))):
            found.setdefault(name, []).append(f"{name}:{constant.lineno} {constant.value!r}")
    return found


def test_no_file_of_the_frame_names_a_kind() -> None:
    assert [] == [line for name, lines in places().items() if name not in ALLOWED for line in lines]


def test_what_is_allowed_is_needed() -> None:
    assert ALLOWED.keys() <= places().keys()


@pytest.mark.parametrize(
    "code",
    ['x == "probe"', 'x in ("pairs", "y")', 'd["personas"]', 'f("probe")', '{"probe": 1}', 'y = "pairs"'],
)
def test_each_way_to_name_one_is_found(code: str) -> None:
    assert 1 == len(list(names_of_kinds(ast.parse(code))))


def main(package: Path = PACKAGE) -> None:
    """Print every place."""
    for lines in places().values():
        print("\n".join(lines))
    print(sum(map(len, places().values())), "places in", len(places()), "files of", package.name)


if __name__ == "__main__":
    main()
