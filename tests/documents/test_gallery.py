"""The gallery shows every kind of figure once, in small files that are read on white."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from places import ROOT, module_of

from biaskit.report.figures import kinds

DOCS = ROOT / "docs"
MOST_BYTES, MOST_BYTES_OF_ALL = 40_000, 400_000
BOTH_ENGINES = {"figures.answer", "both_engines.figures"}
"""Drawn from a whole content, so that no engine's list holds them."""


gallery = module_of(DOCS / "gallery.py")
TEXT = (DOCS / "gallery.md").read_text(encoding="utf-8")
FILES = sorted((DOCS / "gallery").iterdir())


def test_every_kind_of_figure_is_shown() -> None:
    drawn = {
        f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"
        for questions in kinds().values()
        for own in questions.values()
        for kind in own
    }
    assert drawn | BOTH_ENGINES == {shown.kind for shown in gallery.SHOWN}


def test_every_file_is_made_by_the_script_and_stands_on_the_page_once() -> None:
    assert FILES == sorted(shown.path for shown in gallery.SHOWN)
    assert [path.name for path in FILES] == sorted(re.findall(r"\]\(gallery/([^)]+)\)", TEXT))


def test_every_figure_stands_under_its_name() -> None:
    headings = {name for line in re.findall(r"^### (.*)$", TEXT, re.M) for name in line.split(", ")}
    told = set(re.findall(r"`([\w-]+)`", TEXT))
    named = {shown.figure or shown.file for shown in gallery.SHOWN}
    assert set() == named - headings - told


def test_the_commands_make_every_run_that_is_shown() -> None:
    made = re.findall(r"(?:--out|many_models\.py) runs/(\w+)", TEXT)
    assert {run.partition("/")[0] for shown in gallery.SHOWN for run in shown.runs} == set(made)


def test_the_files_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in FILES}
    assert {} == {name: size for name, size in sizes.items() if size > MOST_BYTES}
    assert MOST_BYTES_OF_ALL > sum(sizes.values())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_drawing_has_a_white_ground_and_a_description(path: Path) -> None:
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    assert root.attrib["aria-label"]
    ground = root[0].attrib
    assert ("100%", "100%", "#ffffff") == (ground["width"], ground["height"], ground["fill"])


def test_the_readme_says_what_its_picture_shows() -> None:
    """The least and the greatest share in the picture's own description."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (alt, target), *more = re.findall(r"!\[([^\]]*)\]\(([^)]+\.svg)\)", readme)
    assert [] == more
    label = ElementTree.fromstring((ROOT / target).read_text(encoding="utf-8")).attrib["aria-label"]
    ends = re.findall(r"\d+ % \([a-z ]+\)", label)
    assert 4 == len(ends)
    assert [] == [end for end in ends if end not in " ".join(alt.split())]
