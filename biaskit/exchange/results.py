"""The numbers of a run that other formats publish: one share each, with what must stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from biaskit.common.wording import count
from biaskit.errors import UsageError
from biaskit.exchange.source import Source
from biaskit.measurement import measurement
from biaskit.runs.collection import Model, StoredRun
from biaskit.tables.query import defined, undefined, where

NO_DIRECTION = "a share is neither better nor worse"
_BESIDE = (
    *("coverage", "pooled_share", "share_low", "share_high", "se_sampling", "n_jobs", "n_templates"),
    *("n_texts", "n_female", "n_male", "n_nonbinary", "n_not_inferred", "workforce_share"),
    *("expected_rate", "expected_low", "expected_high", "gap", "gap_low", "gap_high"),
    *("estimator", "debiasing_id", "context", "prompt_format", "reason"),
)
"""Columns that stand beside a share, where they have a value."""


class Named(NamedTuple):
    """What a kind calls a share of its table, and what its interval rests on."""

    gender: str
    name: str  # unique among the results of its model; parts in the order of the table's keys
    n: int | None  # prompts, texts or pairs
    method: str  # of the interval, in words


@dataclass(frozen=True, slots=True)
class Result:
    """A share of the table that a kind publishes."""

    named: Named
    share: float
    interval: tuple[float, float] | None
    beside: Mapping[str, Any]  # what else is known, column → value


Published = list[tuple[StoredRun, Model, list[Result]]]


def results_of(source: Source) -> tuple[Published, list[str]]:
    """List each model's shares, and notes on undefined ones. Raises `UsageError` where none is defined."""
    found: Published = []
    notes = []
    for part in source.collection.parts:
        run_at = {str(run.path): run for run in source.collection.runs_of(part)}
        kind = measurement(part.measurement)
        table, share = kind.published
        for model in part.models:
            run = run_at[model.run]
            rows = where(run.tables.get(table, ()), model=model.label)
            if missing := undefined(rows, share):
                why = "; ".join(dict.fromkeys(str(row["reason"]) for row in missing))
                notes.append(f"{model.label}: {count(len(missing), 'share')} undefined and left out ({why})")
            results = []
            for row in defined(rows, share):
                low, high = row["ci_low"], row["ci_high"]
                interval = None if low is None or high is None else (low, high)
                beside = {name: row[name] for name in _BESIDE if row.get(name) not in (None, "")}
                results.append(Result(kind.publish(run, row), row[share], interval, beside))
            if results:
                found.append((run, model, results))
    if not found:
        why = "; ".join(notes) or "their tables are empty"
        raise UsageError(f"No share is defined in these runs: {why}.")
    return found, notes
