"""The terminal: the one function that prints foreign text, and the progress of a run."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from biaskit.errors import Interrupted, UsageError
from biaskit.foreign import visible
from biaskit.progress import ModelPlan
from biaskit.report.render.text import WIDTH, render_notes

LONG_RUN_S = 3600
DEAR_RUN_USD = 5.0
QUIET_S = 300


def printable(text: str) -> str:
    """Foreign text as it may reach a terminal: no name can move the cursor or reorder a line."""
    return visible(text, keep="\n")


def emit(text: str, *, err: bool = False) -> None:
    """Print foreign text; no markup is read."""
    shown = printable(text)
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    click.echo(shown.encode(encoding, "backslashreplace").decode(encoding), nl=False, err=err)


def width() -> int:
    """Columns of the terminal that stdout is; 80 where it is none."""
    return max(shutil.get_terminal_size().columns, 40) if sys.stdout.isatty() else WIDTH


def emit_notes(notes: Sequence[str], *, err: bool = False) -> None:
    """Print notes, each from a line of its own."""
    if notes:
        emit(render_notes(notes, width()) + "\n", err=err)


def takes_blocks() -> bool:
    """Whether stdout can show the block characters that bars are made of."""
    try:
        "▏█".encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class TerminalWatcher:
    """Plan, question and progress on stderr; lines instead of a bar where stderr is no terminal."""

    def __init__(self, *, assume_yes: bool, quiet: bool = False, verbose: bool = False) -> None:
        self._assume_yes = assume_yes
        self._verbose = verbose
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._label = ""
        self._run: Path | None = None
        self._last = 0.0
        self._started = 0.0
        self._alarm: threading.Timer | None = None

    def planned(self, plan: ModelPlan, *, dry_run: bool) -> None:
        """Show a model's plan; ask before more than an hour of work."""
        self._close()
        if plan.run != self._run:
            self._run = plan.run
            emit(f"Run folder: {plan.run}\n", err=True)
        emit(_plan_line(plan) + "\n", err=True)
        longest = plan.seconds if plan.seconds_most is None else plan.seconds_most
        if not dry_run and longest is not None and longest > LONG_RUN_S:
            sure = plan.seconds is not None and plan.seconds > LONG_RUN_S
            self.confirm("This takes over an hour." if sure else "This may take over an hour.")
        most = plan.cost if plan.cost_most is None else plan.cost_most
        if not dry_run and most is not None and most > DEAR_RUN_USD:
            self.confirm(f"This may cost up to {most:.2f} USD.")

    def confirm(self, text: str) -> None:
        """Ask for a typed yes; --yes is one, and without a terminal there is nobody to ask."""
        self._close()
        if self._assume_yes:
            return
        if not sys.stdin.isatty():
            raise UsageError(f"{text} Give --yes to start without a question.")
        emit(f"{text}\n", err=True)
        if click.prompt("Type yes to start", err=True).strip().lower() != "yes":
            raise Interrupted("Not started.")

    def progress(self, label: str, done: int, total: int) -> None:
        """Cells stored of those missing, with rate and time left."""
        if self._quiet:
            return
        if done == 0 or label != self._label:
            self._close()
            self._label, self._started, self._last = label, time.monotonic(), time.monotonic()
        if sys.stderr.isatty():
            self._draw(label, done, total)
        elif done == total or time.monotonic() - self._last >= 10:
            self._last = time.monotonic()
            emit(f"  {label}: {done:,} of {total:,}, {self._rate(done, total)}\n", err=True)
        if done == total:
            self._close()
        else:
            self._expect_within(QUIET_S, f"{label}: still at {done:,} of {total:,}, waiting for the model")

    def _expect_within(self, seconds: float, said: str) -> None:
        """Say what is waited for when nothing has come for a while, and again after as long."""
        self._disarm()

        def complain() -> None:
            emit(f"{said} (nothing for {duration(seconds)})\n", err=True)
            self._expect_within(seconds, said)

        self._alarm = threading.Timer(seconds, complain)
        self._alarm.daemon = True
        self._alarm.start()

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def note(self, text: str) -> None:
        """A line of its own above the progress."""
        self._close()
        emit(f"biaskit: {text}\n", err=True)

    def detail(self, text: str) -> None:
        """A request that was asked again and the like, where --verbose wants it; called from any thread."""
        if self._verbose:
            emit(f"biaskit: {text}\n", err=True)

    def _rate(self, done: int, total: int) -> str:
        taken = max(1e-6, time.monotonic() - self._started)
        rate = done / taken
        if done == total:
            return f"in {duration(taken)}"
        if not done:
            return "starting"
        pace = f"{rate:.1f} a second" if rate >= 1 else f"{duration(1 / rate)} each"
        return f"{pace}, {duration((total - done) / rate)} left"

    def _draw(self, label: str, done: int, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}", markup=False),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(printable(label), total=total, rate="")
        self._bar.update(self._task, completed=done, rate=self._rate(done, total).split(",")[0])

    def _close(self) -> None:
        self._disarm()
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def close(self) -> None:
        """Give the line back."""
        self._close()


def _plan_line(plan: ModelPlan) -> str:
    return _plan_of_draws(plan) if plan.unit == "draws" else _plan_of_cells(plan)


def _plan_of_draws(plan: ModelPlan) -> str:
    """Draws as a range: how many a prompt needs is known when its genders are full."""
    missing, most = plan.n_cells - plan.n_stored, (plan.n_cells_most or plan.n_cells) - plan.n_stored
    span = f"{missing:,}" if most <= missing else f"{missing:,} to {most:,}"
    calls = f" in at least {plan.calls:,} calls" if missing and plan.calls is not None else ""
    line = f"{plan.label}: {span} draws to ask{calls}, {plan.n_stored:,} stored"
    if missing:
        per_draw = plan.new_tokens // missing
        tokens = f"{plan.new_tokens:,}" + (f" to {most * per_draw:,}" if most > missing else "")
        line += f"; at most {tokens} new tokens, {_cost(plan)}"
        if plan.seconds is None:
            line += ", time unknown"
        elif plan.seconds_most is None or plan.seconds_most <= plan.seconds:
            line += f", about {duration(plan.seconds)}"
        else:
            line += f", about {duration(plan.seconds)} to {duration(plan.seconds_most)}"
    return f"{line}; prompt form {plan.form}."


def _plan_of_cells(plan: ModelPlan) -> str:
    missing = plan.n_cells - plan.n_stored
    line = f"{plan.label}: {plan.n_cells:,} cells (prompts), {plan.n_stored:,} stored, {missing:,} to ask"
    if missing:
        about, sent = "", f"{plan.n_batches:,} batches"
        if plan.calls is not None:
            about, sent = "about ", f"{plan.calls:,} calls"
        line += f"; {about}{plan.prompt_tokens:,} tokens in {sent}, {_cost(plan)}"
        line += f", about {duration(plan.seconds)}" if plan.seconds is not None else ", time unknown"
    how = "" if plan.estimator == "exact" else f", estimator {plan.estimator}"
    return f"{line}; prompt form {plan.form}{how}."


def _cost(plan: ModelPlan) -> str:
    """At most so much; what is unknown is never 0."""
    if plan.cost is None:
        return "cost unknown (--price IN,OUT)"
    if not plan.cost:
        return "cost 0" if plan.calls is None else "cost 0 (a server on this machine, else --price IN,OUT)"
    low = f"{plan.cost:.4f}" if plan.cost < 0.1 else f"{plan.cost:.2f}"
    if plan.cost_most is None or plan.cost_most <= plan.cost:
        return f"at most {low} USD"
    return f"at most {low} to {plan.cost_most:.2f} USD"


def duration(seconds: float) -> str:
    """A time as a person says it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
