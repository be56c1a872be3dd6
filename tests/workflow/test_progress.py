"""Lines on stderr while a run goes."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from biaskit import progress
from biaskit.progress import LineWatcher, sign_of_life


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(progress, "tell", lines.append)
    return lines


def test_there_is_a_line_now_and_then_and_one_at_the_end(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "BETWEEN_LINES_S", 100)
    watcher = LineWatcher()
    for done in range(1, 21):
        watcher.progress("m", done, 20)
    assert ["  m: 20 of 20" in line for line in told] == [True]


def test_what_was_done_before_does_not_count_for_the_rate(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "BETWEEN_LINES_S", 0)
    now = [5.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))
    watcher = LineWatcher()
    watcher.progress("m", 100, 110)
    now[0] += 2
    watcher.progress("m", 104, 110)
    assert ["  m: 100 of 110, starting\n", "  m: 104 of 110, 2.0 a second, 3 s left\n"] == told


def test_a_sign_of_life_comes_where_nothing_else_was_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "FIRST_SIGN_S", 0.02)
    with sign_of_life("starting\n"):
        time.sleep(0.2)
    with sign_of_life("starting again\n"):
        progress.tell("something\n")
        time.sleep(0.2)
    assert capsys.readouterr().err == "starting\nsomething\n"
