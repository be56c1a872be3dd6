"""What a run tells of itself while it goes: its plan, its progress, what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from biaskit.records import PromptForm


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """What one model is still to be asked, shown before it is asked."""

    run: Path
    label: str
    form: PromptForm
    n_cells: int
    n_stored: int
    n_batches: int
    prompt_tokens: int
    seconds: float | None
    notes: tuple[str, ...] = ()
    unit: str = "cells"
    n_cells_most: int | None = None  # where the run itself decides how many: at most so many
    new_tokens: int = 0
    seconds_most: float | None = None
    estimator: str = "exact"
    calls: int | None = None  # requests over the network; None: nothing is sent
    cost: float | None = 0.0  # USD at most; None: the price is unknown
    cost_most: float | None = None  # where the run itself decides how many


class Watcher(Protocol):
    """Sees a run as it goes; the terminal's is in `cli`."""

    def planned(self, plan: ModelPlan, *, dry_run: bool) -> None:
        """A model's plan; raises to stop before it starts (a question answered with no)."""
        ...

    def progress(self, label: str, done: int, total: int) -> None:
        """So many of a model's missing cells are stored."""
        ...

    def confirm(self, text: str) -> None:
        """Something that needs a yes before it happens; raises where it is refused."""
        ...

    def note(self, text: str) -> None:
        """Something to know now, such as a model that failed its checks."""
        ...

    def detail(self, text: str) -> None:
        """Something that only --verbose shows, such as a request that is asked again."""
        ...


class Silent:
    """A watcher that says nothing."""

    def planned(self, plan: ModelPlan, *, dry_run: bool) -> None:
        """Nothing."""

    def progress(self, label: str, done: int, total: int) -> None:
        """Nothing."""

    def confirm(self, text: str) -> None:
        """Nothing: a caller in Python has said yes by calling."""

    def note(self, text: str) -> None:
        """Nothing."""

    def detail(self, text: str) -> None:
        """Nothing."""
