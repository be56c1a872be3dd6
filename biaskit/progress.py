"""What a run says while it goes: its plan, its progress, what was left out."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from biaskit.common.foreign import visible
from biaskit.common.wording import first_words
from biaskit.records import PromptFormat

BETWEEN_LINES_S = 10
FIRST_SIGN_S = 1.0
DAY_S = 24 * 3600
_TOLD = threading.Event()  # whether anything was told yet


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """What one model is still to be asked, shown before it is asked."""

    run: Path
    label: str
    prompt_format: PromptFormat
    n_units: int
    n_stored: int
    n_batches: int
    prompt_tokens: int
    seconds: float | None
    notes: tuple[str, ...] = ()
    unit: str = "prompts"
    n_units_most: int | None = None  # where the run itself decides how many: at most so many
    new_tokens: int = 0
    seconds_most: float | None = None
    estimator: str = "exact"
    calls: int | None = None  # requests over the network; None: nothing is sent
    cost: float | None = 0.0  # USD at most; None: the price is unknown
    cost_most: float | None = None  # where the run itself decides how many
    samples: tuple[int, int] | None = None  # sampling: texts of all prompts to send, at least and at most
    prompt_tokens_most: int | None = None
    calls_most: int | None = None
    n_taken: int = 0  # of n_units: answered in other runs of the folder, and reused
    taken_from: tuple[str, ...] = ()  # those runs
    shows: str = ""  # which differences such a run would show

    @property
    def n_missing(self) -> int:
        """What is to be asked, at least."""
        return self.n_units - self.n_stored - self.n_taken


class Silent:
    """Shows nothing; by default a call shows its progress on stderr. Subclass it to see what you want.

    >>> class Percent(bk.Silent):
    ...     def progress(self, label, done, total):
    ...         print(label, f"{done / total:.0%}")
    >>> _ = bk.probe(mine, jobs="nurse", templates="1", reuse=False, out="percent", watcher=Percent())
    mine 0%
    mine 50%
    mine 100%
    """

    def planned(self, plan: ModelPlan, *, dry_run: bool) -> None:
        """Take a model's plan; an error raised here stops it before it starts."""

    def progress(self, label: str, done: int, total: int) -> None:
        """Take how many of a model's missing prompts or texts are stored."""

    def confirm(self, text: str) -> None:
        """Ask for a yes before something happens; raise where it is refused."""

    def note(self, text: str) -> None:
        """Take a note to show now, such as on a model that failed its checks."""

    def detail(self, text: str) -> None:
        """Take a detail that only --verbose shows, such as a repeated request."""


Watcher = Silent  # `Silent`, `LineWatcher`, the command's own, or yours


class LineWatcher(Silent):
    """Plan, notes and progress in lines on stderr; a call from Python needs no confirmation.

    There is a line of progress every ten seconds and one at the end; details are for `biaskit ... --verbose`.
    """

    def __init__(self) -> None:
        self._run: Path | None = None
        self._shows = ""
        self._label = ""
        self._started = self._last = 0.0
        self._before = 0

    def planned(self, plan: ModelPlan, *, dry_run: bool) -> None:  # noqa: ARG002 (part of the protocol)
        """Show the run's folder once, a model's plan, and which differences it can show unless just said."""
        if plan.run != self._run:
            self._run = plan.run
            self._say(f"Run folder: {plan.run}")
        self._say(plan_line(plan))
        if plan.shows != self._shows:
            self._shows = plan.shows
            self._say(plan.shows)

    def confirm(self, text: str) -> None:
        """Show what a command would ask."""
        self.note(text)

    def note(self, text: str) -> None:
        """Show it in a line."""
        self._say(f"biaskit: {text}")

    def progress(self, label: str, done: int, total: int) -> None:
        """Show how many of those missing are stored, with rate and time left."""
        if done == 0 or label != self._label:
            self._begin(label, done)
        now = time.monotonic()
        if done == total or now - self._last >= BETWEEN_LINES_S:
            self._last = now
            self._say(f"  {label}: {done:,} of {total:,}, {self._rate(done, total)}")

    def _begin(self, label: str, done: int) -> None:
        self._label = label
        self._started = self._last = time.monotonic()
        self._before = done  # these took no time that is counted here

    def _say(self, line: str) -> None:
        tell(visible(line) + "\n")

    def _rate(self, done: int, total: int) -> str:
        seconds = max(1e-6, time.monotonic() - self._started)
        rate = (done - self._before) / seconds
        if done == total:
            return f"in {duration(seconds)}"
        if not rate:
            return "starting"
        pace = f"{rate:.1f} a second" if rate >= 1 else f"{duration(1 / rate)} each"
        return f"{pace}, {duration((total - done) / rate)} left"


def tell(text: str) -> None:
    """Write to stderr; a closed or full stream never stops the work."""
    _TOLD.set()
    if sys.stderr is None:  # a program without a console
        return
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    with contextlib.suppress(OSError, ValueError):  # ValueError: closed
        sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stderr.flush()


@contextmanager
def sign_of_life(text: str) -> Iterator[None]:
    """Write a line if nothing else was written for a second: loading libraries alone can take ten."""
    _TOLD.clear()

    def sign() -> None:
        if not _TOLD.is_set():
            tell(text)

    timer = threading.Timer(FIRST_SIGN_S, sign)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def plan_line(plan: ModelPlan) -> str:
    """Write a plan in one line: stored, to send, the most it costs; ranges where the run decides how many."""
    missing = plan.n_missing
    most = missing + (plan.n_units_most or plan.n_units) - plan.n_units
    line = f"{plan.label}: {plan.n_units:,} {plan.unit}, {plan.n_stored:,} stored"
    if plan.n_taken:
        line += f", {plan.n_taken:,} reused from {first_words(plan.taken_from, 2, ', ')}"
    line += f", {_span(missing, most)} to run"
    if missing:
        samples = "" if plan.samples is None else f"{_span(*plan.samples)} samples, "
        sent = "" if plan.samples is not None or not plan.n_batches else f" in {plan.n_batches:,} batches"
        if plan.calls is not None:
            sent = f" in {_span(plan.calls, plan.calls_most)} calls"
        about = "" if plan.calls is None else "about "
        tokens = f"{about}{_span(plan.prompt_tokens, plan.prompt_tokens_most)} tokens{sent}"
        new = f", at most {plan.new_tokens:,} new ones" if plan.unit == "texts" else ""
        line += f"; {samples}{tokens}{new}, {_cost(plan)}, {_time(plan)}"
    how = "" if plan.estimator == "exact" else f", estimator {plan.estimator}"
    return f"{line}; prompt format {plan.prompt_format}{how}."


def _span(least: int, most: int | None) -> str:
    return f"{least:,}" if most is None or most <= least else f"{least:,} to {most:,}"


def _time(plan: ModelPlan) -> str:
    if plan.seconds is None:
        return "time unknown"
    if plan.seconds_most is None or plan.seconds_most <= plan.seconds:
        return f"about {duration(plan.seconds)}"
    return f"about {duration(plan.seconds)} to {duration(plan.seconds_most)}"


def _cost(plan: ModelPlan) -> str:
    """Write the most that it may cost; an unknown cost is never 0."""
    if plan.cost is None:
        return "cost unknown" if plan.calls is None else "cost unknown (--price IN,OUT)"
    if not plan.cost:
        return "cost 0" if plan.calls is None else "cost 0 (a server on this machine, else --price IN,OUT)"
    low = f"{plan.cost:.4f}" if plan.cost < 0.1 else f"{plan.cost:.2f}"
    if plan.cost_most is None or plan.cost_most <= plan.cost:
        return f"at most {low} USD"
    return f"at most {low} to {plan.cost_most:.2f} USD"


def duration(seconds: float) -> str:
    """Write a time as a person says it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 2 * DAY_S else f"{seconds / DAY_S:.1f} days"
