"""Every place of a manifest with every kind of odd value: one line, never a traceback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli

from fuzz.base_runs import personas_run, probe_run
from fuzz.oracle import check_said
from fuzz.run_folders import put

pytestmark = [pytest.mark.usefixtures("no_waiting"), pytest.mark.slow]
GONE = object()
ODD = (GONE, 0.5, -1, True, None, "x", [], {}, ["x"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("manifests")
    return {"probe": probe_run(home), "personas": personas_run(home), "compare": home / "compare"}


@pytest.fixture
def compared(runs: dict[str, Path], console: Cli) -> None:
    """A comparison of the two."""
    if not runs["compare"].exists():
        assert not console("compare", *map(str, list(runs.values())[:2]), "--out", str(runs["compare"])).code


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place; of a list its last entry stands for the others."""
    yield path
    if isinstance(value, dict):
        inside = list(value.items())
    else:
        inside = list(enumerate(value))[-1:] if isinstance(value, list) else []
    for key, one in inside:
        yield from _places(one, (*path, key))


def _without(manifest: Any, place: tuple[Any, ...]) -> Any:
    copy = json.loads(json.dumps(manifest))
    inside = copy
    for key in place[:-1]:
        inside = inside[key]
    del inside[place[-1]]
    return copy


@pytest.mark.parametrize("engine", ["probe", "personas", "compare"])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: "gone" if odd is GONE else repr(odd))
@pytest.mark.usefixtures("compared")
def test_an_odd_value(engine: str, odd: Any, runs: dict[str, Path], console: Cli, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs[engine], run)
    manifest = json.loads((run / "manifest.json").read_bytes())
    for place in _places(manifest):
        if odd is GONE and not (place and isinstance(place[-1], str)):
            continue
        changed = _without(manifest, place) if odd is GONE else put(manifest, place, odd)
        (run / "manifest.json").write_text(json.dumps(changed))
        command = ("report", str(run), "--out", "page.html") if engine == "compare" else ("analyze", str(run))
        check_said(console(*command), (place, odd))
