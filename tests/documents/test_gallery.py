"""The gallery shows every kind of figure once, in files that are read on white."""

from __future__ import annotations

import re

from places import ROOT, module_of

from biaskit.measurement import folders

DOCS = ROOT / "docs"
MOST_BYTES_OF_ALL = 1_200_000
UNLIKE = {"probe.figures.every_model", "report.figures.changes.unflipped"}
"""Look as the first figure does, with more models, and as that of a change does."""

gallery = module_of(DOCS / "gallery.py")
TEXT = (DOCS / "reference" / "figures.md").read_text(encoding="utf-8")
FILES = sorted((DOCS / "gallery").iterdir())


def test_every_kind_of_figure_is_shown() -> None:
    drawn = set()
    for folder in folders():
        for kinds in folder.figures().values():
            drawn |= {f"{kind.__module__}.{kind.__name__}" for kind in kinds}
    drawn = {name.removeprefix("biaskit.").removeprefix("measures.") for name in drawn}
    assert drawn - UNLIKE == {shown.kind for shown in gallery.SHOWN}


def test_every_file_is_made_by_the_script_stands_on_the_page_once() -> None:
    assert FILES == sorted(shown.path for shown in gallery.SHOWN)
    assert [path.name for path in FILES] == sorted(re.findall(r"\]\(\.\./gallery/([^)]+)\)", TEXT))
    assert MOST_BYTES_OF_ALL > sum(path.stat().st_size for path in FILES)


def test_every_figure_stands_under_its_name_and_the_commands_make_its_runs() -> None:
    headings = {name for line in re.findall(r"^## (.*)$", TEXT, re.M) for name in line.split(", ")}
    named = set(re.findall(r"`([\w-]+)`", TEXT))
    assert set() == {shown.figure or shown.file for shown in gallery.SHOWN} - headings - named
    made = re.findall(r"(?:--out|many_models\.py) runs/(\w+)", gallery.__doc__ or "")
    assert {run.partition("/")[0] for shown in gallery.SHOWN for run in shown.runs} == set(made)
