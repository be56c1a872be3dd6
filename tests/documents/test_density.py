"""Statements of the package read at first sight: rules of density, and who still breaks them.

`python tests/documents/test_density.py [PATH ...]` prints comprehensions per 1,000 lines of every room, and
offenders whose path contains a PATH; with `--shrink` it takes those out of dense.toml that offend no longer.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("dense.toml")
NODES = 60
"""Syntax nodes of the longest simple statement, `ast.Load` and its kind included."""
COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _sources() -> Iterator[tuple[str, str]]:
    """Path below the root and text of every file of the package."""
    for path in sorted((ROOT / "biaskit").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def _holds(node: ast.AST, kinds: type[ast.AST] | tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(inner, kinds) for inner in ast.walk(node))


def _broken(node: ast.AST, in_function: bool) -> Iterator[str]:
    """Yield the rules that a node breaks; a long statement outside a function is a table of literals."""
    if isinstance(node, COMPREHENSION):
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        conditions = [condition for loop in node.generators for condition in loop.ifs]
        if any(_holds(part, COMPREHENSION) for part in results + conditions):
            yield "a comprehension inside another's element or condition"
        if len(node.generators) > 2:
            yield "more than two `for` in a comprehension"
        if _holds(node, ast.NamedExpr):
            yield "a walrus in a comprehension"
    if isinstance(node, ast.IfExp) and ast.IfExp in map(type, (node.test, node.body, node.orelse)):
        yield "a chained conditional expression"
    if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.IfExp):
        yield "a conditional expression in an augmented assignment"
    if isinstance(node, ast.Assign) and _holds(node.value, ast.Starred):
        starred = any(_holds(target, ast.Starred) for target in node.targets)
        if starred and isinstance(node.value, ast.Call) and "zip" == getattr(node.value.func, "id", ""):
            yield "zip(*...) into a starred target"
    simple = isinstance(node, ast.stmt) and not hasattr(node, "body") and not isinstance(node, ast.Match)
    if simple and in_function and not isinstance(getattr(node, "value", None), ast.Constant):
        nodes = sum(1 for _ in ast.walk(node))
        if nodes > NODES:
            yield f"a statement of {nodes} nodes"


def _offences(path: str, text: str) -> Iterator[tuple[str, int, str]]:
    """Yield function as `file:Class.function`, line and rule of everything that a file breaks."""
    pending: list[tuple[ast.AST, str, bool]] = [(ast.parse(text), "", False)]
    while pending:
        node, name, in_function = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{name}.{node.name}".lstrip(".")
            in_function = not isinstance(node, ast.ClassDef)
        for rule in _broken(node, in_function):
            yield f"{path}:{name or '<module>'}", getattr(node, "lineno", 0), rule
        pending += [(inner, name, in_function) for inner in ast.iter_child_nodes(node)]


def _comprehensions(text: str) -> int:
    return sum(isinstance(node, COMPREHENSION) for node in ast.walk(ast.parse(text)))


def _listed() -> dict[str, Any]:
    """Read the list: offenders in order, and the most comprehensions per 1,000 lines."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


def test_only_listed_functions_are_dense_and_the_list_only_shrinks() -> None:
    offences = [offence for file in _sources() for offence in _offences(*file)]
    listed = set(_listed()["offenders"])
    assert [] == [offence for offence in offences if offence[0] not in listed], "unfold these"
    assert set() == listed - {name for name, _, _ in offences}, "these offend no longer: run with --shrink"


def test_the_package_has_few_comprehensions() -> None:
    texts = [text for _, text in _sources()]
    measured = 1000 * sum(map(_comprehensions, texts)) / sum(map(len, map(str.splitlines, texts)))
    assert _listed()["comprehensions_per_1000_lines"] >= measured


@pytest.mark.parametrize(
    "code",
    [
        "[[y for y in x] for x in z]",
        "{x: 1 for x in z if any(y for y in x)}",
        "[x for a in b for c in a for x in c]",
        "[y for x in z if (y := x)]",
        "a if b else c if d else e",
        "x += [1] if y else []",
        "first, *others = zip(*x)",
        f"def f():\n    return [{'x, ' * 30}]",
    ],
)
def test_each_rule_finds_its_breach(code: str) -> None:
    assert 1 == len(list(_offences("", code)))


@pytest.mark.parametrize(
    "code",
    [
        "[y for x in [z for z in w] for y in x]",
        "a if b else f(c if d else e)",
        "x += f(1 if y else 0)",
        "names, cells = zip(*x)",
        f"TABLE = [{'x, ' * 90}]",
        f"def f():\n    '{'word ' * 90}'",
    ],
)
def test_plain_statements_are_let_pass(code: str) -> None:
    assert [] == list(_offences("", code))


def _report(wanted: list[str]) -> None:
    """Print a line for each room, then the offences of the files wanted, or of all."""
    lines: Counter[str] = Counter()
    comprehensions: Counter[str] = Counter()
    offences: Counter[str] = Counter()
    said: dict[str, list[str]] = defaultdict(list)
    for path, text in _sources():
        folders = path.split("/")[1:-1]
        room = "/".join(folders[:2] if folders[:1] == ["measures"] else folders[:1]) or "(top)"
        for name in (room, "all"):
            lines[name] += len(text.splitlines())
            comprehensions[name] += _comprehensions(text)
        for function, line, rule in sorted(_offences(path, text), key=lambda offence: offence[1]):
            said[function].append(f"  {line}: {rule}")
            offences.update((room, "all"))
    print(f"{'room':<20} {'lines':>7} {'comprehensions':>15} {'per 1,000':>10} {'offences':>9}")
    for room, n in sorted(lines.items(), key=lambda item: comprehensions[item[0]] / item[1]):
        share = 1000 * comprehensions[room] / n
        print(f"{room:<20} {n:>7,} {comprehensions[room]:>15,} {share:>10.1f} {offences[room]:>9}")
    for function, its in said.items():
        if not wanted or any(part in function for part in wanted):
            print("", function, *its, sep="\n")
    print(f"\n{len(said)} functions offend, {len(_listed()['offenders'])} are listed.")


def _shrink() -> None:
    """Take out of the list what offends no longer; nothing is ever added."""
    offending = {name for file in _sources() for name, _, _ in _offences(*file)}
    kept = [
        line
        for line in LIST.read_text(encoding="utf-8").splitlines()
        if not line.startswith("    ") or line.strip(' ",') in offending
    ]
    LIST.write_text("\n".join(kept) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if "--shrink" in sys.argv[1:]:
        _shrink()
    else:
        _report(sys.argv[1:])
