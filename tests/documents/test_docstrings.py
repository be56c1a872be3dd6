"""Every public docstring has an example, and each example prints what it says."""

from __future__ import annotations

import doctest
import inspect
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import biaskit as bk
from biaskit.workflow.compare import ComparisonResult

RESULTS = (bk.ProbeResult, bk.PairsResult, bk.DecisionsResult, bk.PersonasResult, ComparisonResult)
MAKERS = ("probe", "pairs", "decisions", "analyze_texts", "compare")
"""Their examples make `probed`, `paired`, `hired`, `written` and `compared`, with which the others go on."""
DEMO, SLOW = pytest.mark.real_model, pytest.mark.slow
FOR_THE_NIGHT = {"doctor": DEMO, "prompt_formats": DEMO, "model": SLOW, "report": SLOW}
VERBS = (
    *(
        "Add",
        "Analyse",
        "Compare",
        "Check",
        "Compute",
        "Draw",
        "Find",
        "Give",
        "Holds",
        "Infer",
        "Judge",
        "Lay",
        "List",
    ),
    *(
        "Make",
        "Measure",
        "Name",
        "Read",
        "Return",
        "Sample",
        "Say",
        "Says",
        "Score",
        "Search",
        "Send",
        "Shows",
    ),
    *("Tell", "Write"),
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public() -> Iterator[tuple[str, Any]]:
    """Every public name, then every public method and property of a result, each once."""
    yield "biaskit", bk
    yield from ((name, getattr(bk, name)) for name in bk.__all__)
    seen: set[int] = set()
    for result in RESULTS:
        for name, value in inspect.getmembers(result):
            described = isinstance(value, property) or inspect.isfunction(value)
            if described and not name.startswith("_") and id(value) not in seen:
                seen.add(id(value))
                yield f"{result.__name__}.{name}", value


PUBLIC = dict(public())


def example_of(name: str, globs: dict[str, Any]) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(inspect.getdoc(PUBLIC[name]) or "", globs, name, None, None)


def run(example: doctest.DocTest) -> str:
    """Run an example; returns what it printed otherwise."""
    said: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(example, out=said.append, clear_globs=False)
    return "".join(said)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with the runs of the first examples, and their names."""
    folder, before, globs = tmp_path_factory.mktemp("examples"), Path.cwd(), {"bk": bk}
    os.chdir(folder)
    try:
        for name in MAKERS:
            example = example_of(name, globs)
            assert "" == run(example)
            globs = example.globs
    finally:
        os.chdir(before)
    return folder, globs


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_says_what_it_does_and_has_an_example(name: str) -> None:
    assert (inspect.getdoc(PUBLIC[name]) or "").split()[0] in VERBS
    assert any(example.want for example in example_of(name, {}).examples), f"{name} has no example"


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=FOR_THE_NIGHT.get(name, ())) for name in PUBLIC],
)
def test_an_example_prints_what_it_says(
    name: str, made: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, globs = made
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    if name not in MAKERS:  # these were run
        assert "" == run(example_of(name, dict(globs)))
