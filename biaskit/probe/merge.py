"""Rows of several runs of one study, made on one machine or on many, as one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from biaskit.errors import RunError
from biaskit.probe.stored_design import design_digest, design_signature, read_design
from biaskit.runs.manifest import MANIFEST, merge_compatible, read_manifest, write_manifest
from biaskit.runs.store import RowWriter, read_rows, rows_file


def merge(runs: Sequence[Path], out: Path, *, lock: str = "os", skip_bad: bool = False) -> Path:
    """Rows of several runs of one study in a folder of their own; each cell counts once."""
    manifests = [read_manifest(run) for run in runs]
    merged = manifests[0]
    for run, manifest in zip(runs[1:], manifests[1:], strict=True):
        merged["question"] = merge_compatible(run, merged["question"], manifest["question"])
        merged["resolved"] = _union(merged["resolved"], manifest["resolved"])
        for label, entry in manifest["models"].items():
            known = merged["models"].setdefault(label, entry)
            if known["fingerprint"] != entry["fingerprint"]:
                raise RunError(
                    f"{run} calls another model {label!r} than {runs[0]} does. Give them two labels."
                )
    merged["signature"] = design_signature(read_design(merged["resolved"]), merged["models"])
    with RowWriter(out, "probe", lock=lock, skip_bad=skip_bad) as writer:
        if (out / MANIFEST).exists():
            merge_compatible(out, read_manifest(out)["question"], merged["question"])
        write_manifest(out, merged)
        for run in runs:
            writer.append(list(read_rows(rows_file(run, "probe"), skip_bad=skip_bad)))
    return out


def _union(first: dict[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Two questions of one study as one: what either asked, in the first's order."""
    merged = dict(first)
    group_of = {item["name"]: item["group"] for item in first["items"]}
    for item in second["items"]:
        if group_of.get(item["name"], item["group"]) != item["group"]:
            raise RunError(
                f"The runs put the job {item['name']!r} into two groups, {group_of[item['name']]!r} and"
                f" {item['group']!r}: they cannot be merged."
            )
    for name in ("items", "templates", "instructions", "settings"):
        merged[name] = first[name] + [entry for entry in second[name] if entry not in first[name]]
    merged["templates"].sort(key=lambda t: (t["bias_type"], t["id"]))
    merged["instructions"].sort(key=lambda i: i["id"] if i else 0)
    merged["dialogue"] = first["dialogue"] or second["dialogue"]
    sets = first["expression_sets"] + [
        s for s in second["expression_sets"] if s not in first["expression_sets"]
    ]
    which = {
        name: sets.index(second["expression_sets"][k])
        for name, k in second["expressions_of_template"].items()
    }
    merged["expression_sets"] = sets
    merged["expressions_of_template"] = {**which, **first["expressions_of_template"]}
    merged["sources"] = {**second["sources"], **first["sources"]}
    merged["digest"] = design_digest(merged)
    return merged
