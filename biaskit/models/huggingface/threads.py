"""How many threads a local model takes: as many as there are processors that nobody else keeps busy.

Threads of one sum wait for each other: two of them beside one busy process, on two processors, took many
times as long as one alone.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

import psutil
import torch

from biaskit.wording import count

LEAST_S = 0.3
"""A shorter look says little: processors count in hundredths of a second."""
LONGEST_S = 60
"""A model may wait an hour for its turn: what was busy in that hour says nothing of now."""


@dataclass(frozen=True, slots=True)
class Look:
    """Seconds that the processors this process may use have worked so far, and its own part in them."""

    at: float = field(default_factory=lambda: time.perf_counter())
    worked: tuple[float, ...] = field(default_factory=lambda: _worked())
    own: float = field(default_factory=lambda: time.process_time())

    def busy_since(self) -> float:
        """How many processors others have kept busy since, on average; waits until that can be told."""
        time.sleep(max(0.0, self.at + LEAST_S - time.perf_counter()))
        now = Look()
        seconds = now.at - self.at
        if len(now.worked) != len(self.worked):  # this process may use other processors than before
            return 0.0
        worked = sum(b - a for a, b in zip(self.worked, now.worked, strict=True))
        return max(0.0, (worked - (now.own - self.own)) / seconds)


def _worked() -> tuple[float, ...]:
    """Of each processor: the seconds in which it did not wait; none where the system does not say."""
    try:
        times = psutil.cpu_times(percpu=True)
        process = psutil.Process()
        mine = process.cpu_affinity() if hasattr(process, "cpu_affinity") else range(len(times))
    except (OSError, psutil.Error):
        return ()
    waiting = ("idle", "iowait", "guest", "guest_nice", "steal")  # a guest's time is in user's too
    return tuple(
        sum(value for name, value in times[i]._asdict().items() if name not in waiting)
        for i in mine
        if i < len(times)
    )


_usual: int | None = None
_set: int | None = None


def follow_load(look: Look) -> str:
    """Take fewer threads where others keep processors busy; what that changed as a sentence, else nothing.

    `look`: from before the model was opened; one of long ago is taken again. The next model looks again too.
    More threads than the caller set, or OMP_NUM_THREADS says, are never taken.
    """
    global _usual, _set
    if os.environ.get("OMP_NUM_THREADS"):
        return ""
    if _usual is None or torch.get_num_threads() != _set:
        _usual = torch.get_num_threads()
    recent = time.perf_counter() - look.at < LONGEST_S
    busy = (look if recent else Look()).busy_since() if _usual > 1 else 0.0
    _set = max(1, _usual - round(busy))
    torch.set_num_threads(_set)
    if _set == _usual:
        return ""
    used = f"{count(_set, 'thread')} of {_usual} {'is' if _set == 1 else 'are'} used"
    return (
        f"other processes keep {busy:.1f} of this machine's processors busy: {used} (OMP_NUM_THREADS says"
        " otherwise)."
    )
