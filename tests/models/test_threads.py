"""How many threads a model takes beside others: what is busy, whose work it is, and what is said."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from biaskit.models.huggingface import threads
from biaskit.models.huggingface.threads import Look, follow_load


class Machine:
    """Four processors whose clocks are set by hand."""

    def __init__(self) -> None:
        self.now = self.own = 0.0
        self.worked = [0.0] * 4

    def passes(self, seconds: float, *, others: float = 0.0, own: float = 0.0) -> None:
        """Time goes by, with so many processors kept busy by other processes and by this one."""
        self.now += seconds
        self.own += own * seconds
        self.worked = [each + (others + own) * seconds / 4 for each in self.worked]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "_worked", lambda: tuple(made.worked))
    clock = SimpleNamespace(
        perf_counter=lambda: made.now,
        process_time=lambda: made.own,
        sleep=lambda seconds: made.passes(seconds),
    )
    monkeypatch.setattr(threads, "time", clock)
    monkeypatch.setattr(threads, "_usual", None)
    monkeypatch.setattr(threads, "_set", None)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield made
    torch.set_num_threads(before)


@pytest.mark.parametrize(("others", "left"), [(0.0, 4), (0.4, 4), (0.9, 3), (2.0, 2), (3.9, 1), (9.0, 1)])
def test_as_many_threads_as_others_leave(machine: Machine, others: float, left: int) -> None:
    look = Look()
    machine.passes(2.0, others=others, own=1.0)
    said = follow_load(look)
    assert left == torch.get_num_threads()
    assert bool(said) == (left < 4)
    if said:
        thread = "1 thread of 4 is used" if left == 1 else f"{left} threads of 4 are used"
        assert f"keep {others:.1f} of this machine's processors busy: {thread}" in said


def test_its_own_work_is_nobody_elses(machine: Machine) -> None:
    look = Look()
    machine.passes(2.0, own=3.5)
    assert not follow_load(look)
    assert 4 == torch.get_num_threads()


def test_a_next_model_looks_again_and_takes_all_when_they_are_free(machine: Machine) -> None:
    for others, left in ((3.0, 1), (0.0, 4), (1.0, 3)):
        look = Look()
        machine.passes(2.0, others=others)
        follow_load(look)
        assert left == torch.get_num_threads()


def test_what_the_caller_or_the_environment_set_stays(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(2)
    look = Look()
    machine.passes(2.0)
    follow_load(look)
    assert 2 == torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    machine.passes(2.0, others=4.0)
    assert not follow_load(look)
    assert 2 == torch.get_num_threads()


def test_a_look_of_long_ago_is_taken_again(machine: Machine) -> None:
    """A model that waited for its turn an hour must not follow what was busy in that hour."""
    look = Look()
    machine.passes(3600.0, others=4.0)
    assert not follow_load(look)
    assert 4 == torch.get_num_threads()


def test_a_system_that_tells_nothing_changes_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**_: object) -> None:
        raise PermissionError("/proc/stat")

    monkeypatch.undo()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads.psutil, "cpu_times", refused)
    assert () == threads._worked()
    torch.set_num_threads(3)
    assert not follow_load(Look())
    assert 3 == torch.get_num_threads()


def test_other_processors_than_before_say_nothing(machine: Machine) -> None:
    look = Look()
    machine.worked = [5.0] * 2
    machine.now += 2
    assert not follow_load(look)


def test_the_real_machine_has_processors_that_work() -> None:
    before = Look()
    assert before.worked
    assert all(value >= 0 for value in before.worked)
    assert 0 <= before.busy_since() <= len(before.worked) + 1
