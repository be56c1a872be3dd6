"""The numbers of a run that other formats publish: one share each, with what must stand beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biaskit.errors import UsageError
from biaskit.exchange.source import Source
from biaskit.runs.collection import Model, StoredRun
from biaskit.tables.query import Row
from biaskit.wording import count

NO_DIRECTION = "a share is neither better nor worse"
CONDITIONS = ("instruction_id", "setting", "prompt_form")
_NUMBERS = {
    "probe": ("coverage", "pooled_share", "share_low", "share_high", "se_sampling", "n_jobs", "n_templates"),
    "personas": ("n_texts", "n_female", "n_male", "n_nonbinary", "n_unassociated", "labour_female_share"),
}
"""Columns that stand beside a share, where they have a value."""


@dataclass(frozen=True, slots=True)
class Result:
    """A share of probe_groups.csv or a share of women of representation.csv.

    Attributes:
        name: what it is of, unique among the results of its model; parts in the order of the table's keys.
        gender: whose share.
        row: the whole row.
        n: cells (prober) or texts (generation engine) that the interval rests on.
        method: of the interval, in words.
        beside: what else is known, column → value.
    """

    name: str
    gender: str
    row: Row
    share: float
    interval: tuple[float, float] | None
    n: int | None
    method: str
    beside: Mapping[str, Any]


def models(source: Source) -> Iterator[tuple[StoredRun, Model]]:
    """Every model of every run, in their order."""
    for part in source.collection.parts:
        own = {str(run.path): run for run in source.collection.runs_of(part)}
        yield from ((own[model.run], model) for model in part.models)


def results_of(run: StoredRun, model: Model, notes: list[str]) -> list[Result]:
    """A model's shares in the order of their table; an undefined one is left out, with a note."""
    rows = [row for row in run.tables.get(_TABLE[run.engine], ()) if row["model"] == model.label]
    share = "share" if run.engine == "probe" else "female_share"
    found = [row for row in rows if row[share] is not None]
    if undefined := len(rows) - len(found):
        why = "; ".join(dict.fromkeys(str(row["reason"]) for row in rows if row[share] is None))
        notes.append(f"{model.label}: {count(undefined, 'share')} undefined and left out ({why})")
    make = _of_cells if run.engine == "probe" else _of_texts
    return [make(run, row) for row in found]


def nothing_defined(notes: Sequence[str]) -> UsageError:
    """What an export of shares says where there is none."""
    why = "; ".join(notes) or "their tables are empty"
    return UsageError(f"No share is defined in these runs: {why}.")


_TABLE = {"probe": "probe_groups", "personas": "representation"}


_METHODS = {
    "crossed": "jobs and templates as crossed random factors, t interval on the logit scale",
    "bootstrap": "percentile bootstrap over jobs and templates",
}


def _of_cells(run: StoredRun, row: Row) -> Result:
    how = (run.analysis.get("choices") or {}).get("interval")
    asked = f"{row['bias_type']}/{row['job_group']}/instruction {row['instruction_id']}/{row['setting']}"
    return Result(
        name=f"{asked}/{row['prompt_form']}/{row['gender']}",
        gender=str(row["gender"]),
        row=row,
        share=row["share"],
        interval=_ends(row),
        n=row["n_jobs"] * row["n_templates"] if row["n_jobs"] and row["n_templates"] else None,
        method=_METHODS["bootstrap" if how == "bootstrap" else "crossed"],
        beside=_beside(run, row),
    )


def _of_texts(run: StoredRun, row: Row) -> Result:
    arm = "".join(f"/{name} {row[name]}" for name in CONDITIONS[:2] if row.get(name) is not None)
    named = row["n_female"] + row["n_male"] + row["n_nonbinary"]
    return Result(
        name=f"texts/{row['occupation']}/{row['template_id']}{arm}/female",
        gender="female",
        row=row,
        share=row["female_share"],
        interval=_ends(row),
        n=named,
        method="mean of the prompts' shares" if row["template_id"] == "all" else "Wilson",
        beside=_beside(run, row),
    )


def _ends(row: Row) -> tuple[float, float] | None:
    low, high = row["ci_low"], row["ci_high"]
    return None if low is None or high is None else (low, high)


def _beside(run: StoredRun, row: Row) -> dict[str, Any]:
    names = (*_NUMBERS[run.engine], "estimator", *CONDITIONS, "reason")
    return {name: row[name] for name in names if row.get(name) not in (None, "")}
