"""What code, tests and data cite is in docs/: every page, every anchor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from places import CITATION, ROOT, anchors, module_of

DOCS = ROOT / "docs"
CITING = (
    "biaskit",
    "tests",
    "benchmarks",
    "configs",
    "examples",
    "corpora",
    "docs",
    "README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
)
SUFFIXES = {".py", ".toml", ".md", ".html", ".js", ".css", ".txt", ".csv"}
FORMER = re.compile(r"\b(?:METHODS|DESIGN|STYLE)(?:\.md)?,? ?§")
"""Documents of the time of writing, which are not in the repository."""


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """Each file that may cite, by its path below the root, and its text."""
    for place in CITING:
        files = [root / place] if (root / place).is_file() else sorted((root / place).rglob("*"))
        for path in files:
            if path.suffix in SUFFIXES and path != Path(__file__):
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="replace")


def unknown(root: Path) -> dict[str, set[str]]:
    """Cited places of docs/ that do not exist, and who cites them."""
    known: Mapping[str, set[str]] = {
        path.relative_to(root / "docs").as_posix(): anchors(path.read_text(encoding="utf-8"))
        for path in (root / "docs").rglob("*.md")
    }
    missing: dict[str, set[str]] = {}
    for path, text in texts(root):
        for name, anchor in CITATION.findall(text):
            page = f"{name}.md"
            if page not in known or (anchor and anchor not in known[page]):
                missing.setdefault(f"docs/{page}{'#' * bool(anchor)}{anchor}", set()).add(path)
    return missing


def test_every_citation_leads_to_a_place_that_exists() -> None:
    module_of(DOCS / "generated.py").write(DOCS / "reference")
    missing = unknown(ROOT)
    assert not missing, "\n".join(
        f"{place}: {', '.join(sorted(by))}" for place, by in sorted(missing.items())
    )


def test_nothing_cites_a_document_that_is_not_in_the_repository() -> None:
    assert [] == [path for path, text in texts(ROOT) if FORMER.search(text)]


@pytest.mark.parametrize(
    ("place", "text", "missing"),
    [
        ("biaskit/a.py", '"""Formula: docs/methods/a.md#two-words."""', None),
        ("biaskit/a.py", "# docs/methods/a.md#by-hand", None),
        ("biaskit/a.py", "# docs/methods/a.md#again-1", None),
        ("biaskit/a.py", "# docs/methods/a.md#two-word", "docs/methods/a.md#two-word"),
        ("biaskit/a.py", "# docs/methods/a.md#again-2", "docs/methods/a.md#again-2"),
        ("biaskit/a.py", "# docs/methods/a.md#no-heading", "docs/methods/a.md#no-heading"),
        ("configs/a.toml", "# docs/methods/b.md", "docs/methods/b.md"),
        ("configs/a.toml", "# docs/b.md", "docs/b.md"),
        ("biaskit/a.py", "# methods/a#again, methods/b#again", "docs/methods/b.md#again"),
        ("benchmarks/A.md", "[a](../docs/methods/a.md#again-3)", "docs/methods/a.md#again-3"),
    ],
)
def test_a_citation_of_a_missing_place_is_found(
    place: str, text: str, missing: str | None, tmp_path: Path
) -> None:
    methods = '# Two `words`!\n\n## Again\n\n## Again\n\n<a id="by-hand"></a>\n\n```\n# No heading\n```\n'
    for path, content in (("docs/methods/a.md", methods), (place, text)):
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    assert ({missing: {place}} if missing else {}) == unknown(tmp_path)


@pytest.mark.parametrize("text", ["METHODS §4.2", "DESIGN.md, §3", "see DESIGN §5."])
def test_a_former_name_is_found(text: str) -> None:
    assert FORMER.search(text)
