"""The numbers of a run that other formats publish: one share each, with what must stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from biaskit.common.wording import count
from biaskit.errors import UsageError
from biaskit.exchange.source import Source
from biaskit.runs.collection import Model, StoredRun
from biaskit.tables.query import Row, defined, undefined, where

NO_DIRECTION = "a share is neither better nor worse"
_BESIDE = (
    *("coverage", "pooled_share", "share_low", "share_high", "se_sampling", "n_jobs", "n_templates"),
    *("n_texts", "n_female", "n_male", "n_nonbinary", "n_unassociated", "labour_female_share"),
    *("expected_rate", "expected_low", "expected_high", "gap", "gap_low", "gap_high"),
    *("estimator", "instruction_id", "setting", "prompt_form", "reason"),
)
"""Columns that stand beside a share, where they have a value."""
_METHODS = {
    "crossed": "two-way random effects of jobs and templates, t interval on the logit scale",
    "bootstrap": "percentile bootstrap over jobs and templates",
}


@dataclass(frozen=True, slots=True)
class Result:
    """A share of probe_groups.csv, or a share of women of representation.csv or pair_groups.csv."""

    name: str  # unique among the results of its model; parts in the order of the table's keys
    gender: str
    share: float
    interval: tuple[float, float] | None
    n: int | None  # cells (prober) or texts (generation engine) that the interval rests on
    method: str  # of the interval, in words
    beside: Mapping[str, Any]  # what else is known, column → value


def results_of(source: Source) -> tuple[list[tuple[StoredRun, Model, list[Result]]], list[str]]:
    """List each model's shares, and notes on undefined ones. Raises `UsageError` where none is defined."""
    found, notes = [], []
    for part in source.collection.parts:
        run_at = {str(run.path): run for run in source.collection.runs_of(part)}
        probe = part.engine == "probe"
        table, share = ("probe_groups", "share") if probe else ("representation", "female_share")
        if "pair_groups" in part.tables:
            table, share = "pair_groups", "female_share"
        for model in part.models:
            run = run_at[model.run]
            rows = where(run.tables.get(table, ()), model=model.label)
            if missing := undefined(rows, share):
                why = "; ".join(dict.fromkeys(str(row["reason"]) for row in missing))
                notes.append(f"{model.label}: {count(len(missing), 'share')} undefined and left out ({why})")
            if results := [_result(run, row, row[share]) for row in defined(rows, share)]:
                found.append((run, model, results))
    if not found:
        why = "; ".join(notes) or "their tables are empty"
        raise UsageError(f"No share is defined in these runs: {why}.")
    return found, notes


def _result(run: StoredRun, row: Row, share: float) -> Result:
    low, high = row["ci_low"], row["ci_high"]
    if "n_pairs" in row:
        gender, name = "female", f"pairs/{row['language']}/{row['stereotype']}/female"
        n, method = (
            row["n_pairs"],
            "clusters of pairs (stereotypes or items, languages), t interval on the logit scale",
        )
    elif run.engine == "probe":
        asked = f"{row['bias_type']}/{row['job_group']}/instruction {row['instruction_id']}/{row['setting']}"
        gender, name = row["gender"], f"{asked}/{row['prompt_form']}/{row['gender']}"
        n = row["n_jobs"] * row["n_templates"] if row["n_jobs"] and row["n_templates"] else None
        method = _METHODS[run.analysis["choices"].get("interval", "crossed")]
    else:
        arm = "".join(f"/{name} {row[name]}" for name in ("instruction_id", "setting") if row.get(name))
        gender, name = "female", f"texts/{row['occupation']}/{row['template_id']}{arm}/female"
        n = row["n_female"] + row["n_male"] + row["n_nonbinary"]
        method = "mean of the prompts' shares" if row["template_id"] == "all" else "Wilson"
    interval = None if low is None or high is None else (low, high)
    beside = {name: row[name] for name in _BESIDE if row.get(name) not in (None, "")}
    return Result(name, gender, share, interval, n, method, beside)
