"""Build the site: `bash docs/build`. The pages are plain Markdown, whose anchors GitHub reads too."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
project = "biaskit"
author = "biaskit contributors"
project_copyright = f"2026, {author}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
html_theme = "furo"
html_title = "biaskit"
exclude_patterns = ["_site"]
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

_ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.M)
_LINK = re.compile(r"\]\((?:([\w-]+)\.md)?#([\w-]+)\)")
_OUTSIDE = re.compile(r"\]\(\.\./([^)\s]+)\)")
REPOSITORY = "https://github.com/biaskit/biaskit/blob/main/"


def as_myst(_: Sphinx, name: str, source: list[str]) -> None:
    """Make the anchors of a page targets of its own: GitHub reads `page.md#anchor`, MyST `#page-anchor`."""
    text = _ANCHOR.sub(lambda found: f"({name}-{found[1]})=", source[0])
    text = _LINK.sub(lambda found: f"](#{found[1] or name}-{found[2]})", text)
    source[0] = _OUTSIDE.sub(lambda found: f"]({REPOSITORY}{found[1]})", text)


def setup(app: Sphinx) -> None:
    """Read each page as MyST has it."""
    app.connect("source-read", as_myst)
