"""The numbers of a run that other formats publish: one share each, with what must stand beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biaskit.common.wording import count
from biaskit.errors import UsageError
from biaskit.exchange.source import Source
from biaskit.runs.collection import Model, StoredRun
from biaskit.tables.query import Row, where

NO_DIRECTION = "a share is neither better nor worse"
_BESIDE = (
    *("coverage", "pooled_share", "share_low", "share_high", "se_sampling", "n_jobs", "n_templates"),
    *("n_texts", "n_female", "n_male", "n_nonbinary", "n_unassociated", "labour_female_share"),
    *("estimator", "instruction_id", "setting", "prompt_form", "reason"),
)
"""Columns that stand beside a share, where they have a value."""
_METHODS = {
    "crossed": "jobs and templates as crossed random factors, t interval on the logit scale",
    "bootstrap": "percentile bootstrap over jobs and templates",
}


@dataclass(frozen=True, slots=True)
class Result:
    """A share of probe_groups.csv or a share of women of representation.csv.

    Attributes:
        name: what it is of, unique among the results of its model; parts in the order of the table's keys.
        gender: whose share.
        n: cells (prober) or texts (generation engine) that the interval rests on.
        method: of the interval, in words.
        beside: what else is known, column → value.
    """

    name: str
    gender: str
    share: float
    interval: tuple[float, float] | None
    n: int | None
    method: str
    beside: Mapping[str, Any]


def models(source: Source) -> Iterator[tuple[StoredRun, Model]]:
    """Yield every model of every run, in their order."""
    for part in source.collection.parts:
        run_at = {str(run.path): run for run in source.collection.runs_of(part)}
        yield from ((run_at[model.run], model) for model in part.models)


def results_of(run: StoredRun, model: Model, notes: list[str]) -> list[Result]:
    """List a model's shares in the order of their table; an undefined one is left out, with a note."""
    table, share = ("probe_groups", "share") if run.engine == "probe" else ("representation", "female_share")
    rows = where(run.tables.get(table, ()), model=model.label)
    if undefined := [row for row in rows if row[share] is None]:
        why = "; ".join(dict.fromkeys(str(row["reason"]) for row in undefined))
        notes.append(f"{model.label}: {count(len(undefined), 'share')} undefined and left out ({why})")
    return [_result(run, row, row[share]) for row in rows if row[share] is not None]


def _result(run: StoredRun, row: Row, share: float) -> Result:
    low, high = row["ci_low"], row["ci_high"]
    if run.engine == "probe":
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


def nothing_defined(notes: Sequence[str]) -> UsageError:
    """Make the error of an export of shares where there is none."""
    why = "; ".join(notes) or "their tables are empty"
    return UsageError(f"No share is defined in these runs: {why}.")
