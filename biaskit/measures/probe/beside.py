"""Ask the models of a run for more than its probabilities, into a file of rows beside them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext

from biaskit.errors import AskingStopped, ModelError
from biaskit.measures.probe.design import ProbeDesign
from biaskit.models.base import ContinuationScorer
from biaskit.records import PromptFormat
from biaskit.runs.session import Session
from biaskit.runs.store import RowWriter, StoredRows, rows_file

Ask = Callable[[str, PromptFormat, RowWriter | None, ExitStack], None]
"""(label, prompt format of the run, where rows go: None to plan alone, what is closed after) → None."""


def ask_beside(
    design: ProbeDesign,
    session: Session[ContinuationScorer],
    name: str,
    stored: StoredRows[int],
    ask: Ask,
    said: tuple[str, str],
) -> None:
    """Ask the models whose probabilities a session planned; `said`: notes on one that failed, or stopped."""
    outcome = session.outcome
    planned = [plan for plan in outcome.plans if plan.label not in outcome.failed_models]
    if session.dry_run:
        stored.read(rows_file(session.run, name), skip_bad=True)
    with nullcontext() if session.dry_run else session.writing(name, design.study, stored) as writer:
        for plan in planned:
            with ExitStack() as opened:
                try:
                    ask(plan.label, plan.prompt_format, writer, opened)
                except ModelError as error:
                    outcome.notes.append(f"{plan.label} {said[0]}: {error}")
                except AskingStopped as stopped:
                    outcome.notes.append(f"{plan.label}: {said[1]}: {stopped}")
                    outcome.stopped.add(plan.label)
