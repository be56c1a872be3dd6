"""From stored texts to the table of mentions and its tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from biaskit.measures.mentions.compare import between_models
from biaskit.measures.mentions.design import read

from biaskit.common.provenance import digest
from biaskit.progress import Watcher
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import read_manifest
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.stats.contrast import Scope
from biaskit.stats.contrasts import adjust, one_row
from biaskit.stats.proportions import wilson
from biaskit.stats.welch import paired
from biaskit.tables.sets import TableSet


def tables(run: Path, overrides: Mapping[str, Any] | None = None, watcher: Watcher | None = None) -> TableSet:
    """Make the tables of a run from its rows, rows between its models included."""
    manifest, made = read_manifest(run), TableSet(run)
    design, models = read(manifest.resolved, overrides), manifest.models
    reading, answerers = Reading(), Answerers()
    said: dict[tuple[str, str], list[bool]] = {}
    keys = []
    for row in answerers.counting(read_rows(rows_file(run, "mentions"), reading=reading)):
        said.setdefault((row["model"], row["job"]), []).append(design.study.word in row["text"])
        keys.append(row["key"])
    rows, tests = [], []
    for model in models:
        shares = []
        for job in design.jobs:
            found = said.get((model, job), [])
            if not found:
                rows.append({"model": model, "job": job, "n_texts": 0, "reason": "no text"})
                continue
            low, high = wilson(sum(found), len(found))
            shares.append(fmean(found))
            numbers = {"share": shares[-1], "ci_low": low, "ci_high": high}
            rows.append({"model": model, "job": job, **numbers, "n_texts": len(found)})
        against = paired(np.array(shares), np.full(len(shares), 0.5))
        scope = Scope("mentions", "half", model, model, quantity="mentions", group_a="all", group_b="half")
        tests.append(
            one_row("paired", against, scope=scope, n=len(shares), margins=design.study.margin, note=None)
        )
    columns = ("model", "job", "share", "ci_low", "ci_high", "n_texts", "reason")
    made.add("mentions", [{name: row.get(name) for name in columns} for row in rows])
    made.add("tests", adjust([*tests, *between_models(rows, list(models), design.study.margin)]))
    notes = [*reading.notes, *answerers.notes(models, design.study)]
    made.notes += notes
    made.analysis |= {
        "choices": {"word": design.study.word, "margin": design.study.margin},
        "methods": {"mentions": 1},
        "signature": design.sign(models),
        "rows_digest": digest(keys),
        "n_texts": len(keys),
        "answered": answerers.record(),
        "notes": notes,
        "versions": manifest.versions,
    }
    return made
