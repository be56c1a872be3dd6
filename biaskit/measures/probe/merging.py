"""Runs of the prober as one run: what either asked, every row once, and what shards still lack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biaskit.errors import RunError
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.requests import PlannedCells
from biaskit.measures.probe.rounds import OpenCells, Rounds
from biaskit.measures.probe.scoring import matched_draws
from biaskit.measures.probe.stored_design import design_signature, read_design
from biaskit.runs.manifest import draws_of
from biaskit.runs.merge import Engine, united
from biaskit.runs.shards import shard_of
from biaskit.runs.store import StoredRows, rows_file


def merging() -> Engine[ProbeDesign]:
    """Describe this engine to `merge_runs`."""
    return Engine("probe", unite=_unite, read=read_design, sign=design_signature, beside=("continuations",))


def n_open(run: Path, manifest: Mapping[str, Any], design: ProbeDesign, *, skip_bad: bool = False) -> int:
    """Count the cells of a stored run, over all its models, that lack a row or a round of draws."""
    stored = StoredRows(matched_draws, 0).read(rows_file(run, "probe"), skip_bad=skip_bad)
    n_left = 0
    for label, entry in manifest["models"].items():
        form, model, how = (entry[name] for name in ("prompt_form", "fingerprint", "estimator"))
        cells = PlannedCells(design, label, form, model, how, shard_of(manifest))
        rounds = Rounds.up_to(draws_of(entry), design.study.max_samples_per_prompt)
        n_left += OpenCells(cells.requests, rounds, stored.values).n_left
    return n_left


def _unite(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Make one design of two of the same study: what either asked, in the first's order."""
    group_of = {item["name"]: item["group"] for item in first["items"]}
    for item in second["items"]:
        if group_of.get(item["name"], item["group"]) != item["group"]:
            raise RunError(
                f"The runs put the job {item['name']!r} into two groups, {group_of[item['name']]!r} and"
                f" {item['group']!r}: they cannot be merged."
            )
    merged = united(first, second, "items", "templates", "instructions", "settings", "expression_sets")
    merged["templates"].sort(key=lambda t: (t["bias_type"], t["id"]))
    merged["instructions"].sort(key=lambda i: i["id"] if i else 0)
    merged["dialogue"] = first["dialogue"] or second["dialogue"]
    sets = merged["expression_sets"]
    set_of_template = {
        name: sets.index(second["expression_sets"][k])
        for name, k in second["expressions_of_template"].items()
    }
    merged["expressions_of_template"] = {**set_of_template, **first["expressions_of_template"]}
    merged["sources"] = {**second["sources"], **first["sources"]}
    return merged
