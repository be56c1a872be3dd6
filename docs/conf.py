"""Build the site (`bash docs/build`): plain Markdown, as GitHub reads it, and pages made from the code."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import generated  # noqa: E402
import notebooks  # noqa: E402

project = "biaskit"
author = "biaskit contributors"
project_copyright = f"2026, {author}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
html_theme = "furo"
html_title = "biaskit"
html_extra_path = ["llms.txt"]
highlight_language = "text"
exclude_patterns = ["_site", "_notebooks"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_member_order = "groupwise"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"  # else once more below each group of options
napoleon_custom_sections = [
    *[(f"{kind} models", "params_style") for kind in ("Local", "API")],
    *[(title, "params_style") for title in ("The run", "What is measured", "What is sampled")],
    *[(title, "params_style") for title in ("Other columns and groups", "Reading and analysis")],
]
smartquotes = False  # else an option loses a hyphen
REPOSITORY = "https://github.com/biaskit/biaskit/blob/main/"
# Files of this checkout, whose existence tests/documents checks, and an address in a help text.
linkcheck_ignore = [re.escape(REPOSITORY), "https://example.org"]

_ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.M)
_LINK = re.compile(r"\]\(([^)\s#:]*)(?:#([\w-]+))?\)")
_CITED = re.compile(r"\b((?:methods|howto|concepts|reference)/[\w-]+)(?:#([\w-]+))?")


def _label(page: str, anchor: str) -> str:
    """Name an anchor in the whole site: the same one may be on two pages."""
    return f"{page.replace('/', '-')}-{anchor}"


def as_myst(_: Sphinx, name: str, source: list[str]) -> None:
    """Make anchors targets, and links to them or to files outside the site what Sphinx can resolve."""

    def link(found: re.Match[str]) -> str:
        path, anchor = found.groups()
        target = f"docs/{name}.md"
        if path:
            target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(name), path))
        if not target.startswith("docs/"):
            return f"]({REPOSITORY}{target})"
        page = HERE.parent / target
        if anchor and page.is_file() and anchor in _ANCHOR.findall(page.read_text(encoding="utf-8")):
            return f"](#{_label(target.removeprefix('docs/').removesuffix('.md'), anchor)})"
        return found[0]

    text = _LINK.sub(link, source[0])
    source[0] = _ANCHOR.sub(lambda found: f"({_label(name, found[1])})=", text)
    if name.startswith("tutorials/"):
        source[0] += (
            f"\n{{download}}`This page as a notebook </_notebooks/{name.rpartition('/')[2]}.ipynb>`\n"
        )


def cite(_: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Make the pages that a docstring cites links."""

    def link(found: re.Match[str]) -> str:
        page, anchor = found.groups()
        if anchor:
            return f":ref:`{page}, {anchor} <{_label(page, anchor)}>`"
        return f":doc:`{page} </{page}>`"

    lines[:] = [_CITED.sub(link, line) for line in lines]


def setup(app: Sphinx) -> None:
    """Write what is generated, then read each page as MyST has it."""
    generated.write(HERE / "reference")
    notebooks.write(HERE / "_notebooks")
    app.connect("source-read", as_myst)
    app.connect("autodoc-process-docstring", cite)
