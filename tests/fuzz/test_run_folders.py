"""A bounded number of changed run folders; thousands by `python tests/fuzz/long.py --minutes 30`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.command import Cli

from fuzz.base_runs import personas_run, probe_run
from fuzz.run_folders import CHANGES, PLACES, Case, cases, check

pytestmark = pytest.mark.usefixtures("no_waiting")
N = 40


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("fuzz")
    return {"probe": probe_run(home), "personas": personas_run(home)}


@pytest.mark.parametrize("engine", ["probe", "personas"])
@pytest.mark.parametrize("part", range(4))
def test_changed_folders(engine: str, part: int, runs: dict[str, Path], console: Cli, tmp_path: Path) -> None:
    for case in cases(runs[engine], N // 4, seed=part):
        check(case, runs[engine], tmp_path / "home", console)


@pytest.mark.parametrize("change", [*CHANGES, *PLACES])
def test_every_change_of_a_row_file(change: str, runs: dict[str, Path], console: Cli, tmp_path: Path) -> None:
    check(Case("probe.jsonl", change, "analyze", 5), runs["probe"], tmp_path / "home", console)


def test_the_oracle_sees_a_row_file_that_is_cut(
    runs: dict[str, Path], console: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that shortens a row file, as earlier versions did, is caught."""
    call: Callable[..., object] = console

    def cutting(*arguments: str) -> object:
        for path in Path("biaskit-runs").glob("changed/probe.jsonl"):
            path.write_bytes(path.read_bytes()[:10])
        return call(*arguments)

    with pytest.raises(AssertionError):
        check(Case("probe.jsonl", "commas", "cite", 5), runs["probe"], tmp_path / "home", cutting)  # type: ignore[arg-type]
