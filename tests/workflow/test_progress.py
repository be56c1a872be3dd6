"""Lines on stderr while a run goes, and the alarm that says what is waited for."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from biaskit import progress
from biaskit.progress import LineWatcher, _Alarm, sign_of_life


def _until(what: list[str], n: int) -> None:
    end = time.monotonic() + 10
    while len(what) < n and time.monotonic() < end:
        time.sleep(0.005)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(progress, "tell", lines.append)
    monkeypatch.setattr(_Alarm, "TICK_S", 0.01)
    return lines


def test_what_is_waited_for_is_said_again_and_again(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET_S", 0.03)
    watcher = LineWatcher()
    watcher.progress("m", 1, 4)
    _until(told, 2)
    watcher.close()
    said = len(told)
    assert said >= 2
    assert "m: still at 1 of 4, waiting for the model (nothing for" in told[0]
    time.sleep(0.1)
    assert len(told) <= said + 1, "called off: at most the one that was just being said"


def test_progress_puts_the_alarm_off(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET_S", 5)
    monkeypatch.setattr(progress, "BETWEEN_LINES_S", 100)
    watcher = LineWatcher()
    for done in range(1, 20):
        watcher.progress("m", done, 20)
        time.sleep(0.005)
    assert not told
    watcher.progress("m", 20, 20)
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
    watcher.close()
    assert ["  m: 100 of 110, starting\n", "  m: 104 of 110, 2.0 a second, 3 s left\n"] == told


def test_an_alarm_whose_thread_dies_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that runs out of memory inside the lock of a Timer left cancel() waiting forever."""
    monkeypatch.setattr(_Alarm, "TICK_S", 0.01)
    rung: list[str] = []

    def no_memory() -> None:
        rung.append("x")
        raise MemoryError

    alarm = _Alarm()
    alarm.set(0.01, no_memory)
    _until(rung, 1)
    alarm.off()
    alarm.set(0.01, lambda: rung.append("again"))
    _until(rung, 2)
    assert rung == ["x", "again"]


def test_an_alarm_that_cannot_start_a_thread_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(progress._thread, "start_new_thread", refused)
    with sign_of_life("starting"):
        pass


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
