"""Where the repository's folders and pages are, for tests at any depth."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
GOLDEN = TESTS / "golden"
BENCHMARKS = ROOT / "benchmarks"
SHARED = ROOT.parent / "shared"
"""Papers and texts that lie beside a checkout and are not shipped; a test that needs them skips without."""
GENERATED = {"cli", "python", "keys", "tables", "servers", "probe", "pairs", "personas", "decisions"}
"""Pages of docs/reference that docs/generated.py makes."""
CITATION = re.compile(
    r"(?<![/\w])(?:\.\./)*(?:docs/)?"
    r"((?:concepts|howto|methods|reference|tutorials)/[\w-]+|(?<=docs/)[\w-]+(?=\.md))(?:\.md)?"
    r"(?:#([\w-]+))?(?![\w/.]*/)"
)
"""A page by its path, or as docstrings write it: `methods/tests#tree`."""


def is_written(path: Path) -> bool:
    """Whether a document was written by hand, not made from the package."""
    return path.stem not in GENERATED or "reference" != path.parent.name


def anchors(markdown: str) -> set[str]:
    """What a link can lead to: GitHub's anchors of headings, and `<a id="...">`.

    A heading's anchor is its text in lower case without punctuation, with hyphens for spaces; a text that
    comes again has -1, -2, … behind it.
    """
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', markdown))
    seen: dict[str, int] = {}
    prose = re.sub(r"^```.*?^```", "", markdown, flags=re.S | re.M)
    for heading in re.findall(r"^#{1,6} +(.+?)(?: +#+)?$", prose, re.M):
        shown = re.sub(r"<[^>]+>", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading))
        anchor = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if anchor in seen else anchor)
        seen[anchor] = seen.get(anchor, 0) + 1
    return found


def module_of(path: Path) -> ModuleType:
    """A script that is no part of a package, as a module under the name of its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module
