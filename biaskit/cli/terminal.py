"""The terminal: the one function that prints foreign text, and the progress of a run."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from biaskit.common.foreign import visible
from biaskit.errors import Interrupted, UsageError
from biaskit.progress import LineWatcher, ModelPlan, tell
from biaskit.report.render.text import WIDTH, render_notes

LONG_RUN_S = 3600
DEAR_RUN_USD = 5.0


def emit(text: str, *, err: bool = False) -> None:
    """Print foreign text; no markup is read."""
    shown = visible(text, keep="\n")  # no name can move the cursor or reorder a line
    if err:
        tell(shown)
        return
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(shown.encode(encoding, "backslashreplace").decode(encoding), nl=False)


def emit_json(content: object) -> None:
    """Print a result for a program."""
    emit(json.dumps(content, indent=1, allow_nan=False) + "\n")


def width() -> int:
    """Count the columns of the terminal that stdout is; 80 where it is none."""
    return max(shutil.get_terminal_size().columns, 40) if sys.stdout.isatty() else WIDTH


def emit_notes(notes: Sequence[str], *, err: bool = False) -> None:
    """Print notes, each from a line of its own."""
    if notes:
        emit(render_notes(notes, width()) + "\n", err=err)


class TerminalWatcher(LineWatcher):
    """Plan, question and progress on stderr; a bar where stderr is a terminal, lines elsewhere."""

    def __init__(self, *, assume_yes: bool, verbose: bool = False) -> None:
        super().__init__()
        self._assume_yes = assume_yes
        self._verbose = verbose
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def planned(self, plan: ModelPlan, *, dry_run: bool) -> None:
        """Show a model's plan; ask before more than an hour of work."""
        super().planned(plan, dry_run=dry_run)
        longest = plan.seconds if plan.seconds_most is None else plan.seconds_most
        if not dry_run and longest is not None and longest > LONG_RUN_S:
            sure = plan.seconds is not None and plan.seconds > LONG_RUN_S
            self.confirm("This takes over an hour." if sure else "This may take over an hour.")
        most = plan.cost if plan.cost_most is None else plan.cost_most
        if not dry_run and most is not None and most > DEAR_RUN_USD:
            self.confirm(f"This may cost up to {most:.2f} USD.")

    def confirm(self, text: str) -> None:
        """Ask for a typed yes; --yes is one, and without a terminal there is nobody to ask."""
        if self._assume_yes:
            return
        if not sys.stdin.isatty():
            raise UsageError(f"{text} Give --yes to start without confirmation.")
        self._say(text)
        click.echo("Type yes to start: ", nl=False, err=True)
        if sys.stdin.readline().strip().lower() != "yes":
            raise Interrupted("Not started.")

    def detail(self, text: str) -> None:
        """Show a request that was repeated and the like, with --verbose; called from any thread."""
        if self._verbose:
            self._say(f"biaskit: {text}")

    def progress(self, label: str, done: int, total: int) -> None:
        """Show a bar where stderr is a terminal, else a line."""
        if not sys.stderr.isatty():
            super().progress(label, done, total)
            return
        if done == 0 or label != self._label:
            self.close()
            self._begin(label, done)
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
            self._task = self._bar.add_task(visible(label, keep="\n"), total=total, rate="")
        self._bar.update(self._task, completed=done, rate=self._rate(done, total).split(",")[0])
        if done == total:
            self.close()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _say(self, line: str) -> None:
        self.close()
        emit(line + "\n", err=True)
