"""Whether what was measured of the same jobs in several ways goes together (methods/reliability#validity)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from biaskit.compare.aliases import key_of
from biaskit.measurement import measurement
from biaskit.runs.collection import Collection, StoredRun
from biaskit.stats.reliability import EXACT, Estimate, corrected_correlation
from biaskit.tables.query import Row


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of each job of a model."""

    name: str
    values: Mapping[str, float]  # by job
    reliability: Estimate = Estimate(EXACT[0])  # noqa: RUF009
    n_templates: int = EXACT[1]


def validity_rows(model: str, measures: Sequence[Measure]) -> Iterator[Row]:
    """Yield the rows of validity.csv: a model's measures two by two, over the jobs that both have."""
    for a, b in combinations(measures, 2):
        jobs = [job for job in a.values if job in b.values]
        x, y = (np.array(list(map(each.values.__getitem__, jobs)), np.float64) for each in (a, b))
        noise, reason = [], None
        for each in (a, b):
            value = each.reliability.value
            if value is None or value <= 0:
                reason = reason or f"not corrected: {each.name}: {each.reliability.reason or 'not above 0'}"
            noise.append((value or 0.0, each.n_templates))
        plain = corrected_correlation(x, y)
        found = plain if reason else corrected_correlation(x, y, *noise)
        row = {"model": model, "measure_a": a.name, "measure_b": b.name, "correlation": found.value}
        row |= {"ci_low": found.low, "ci_high": found.high, "uncorrected": plain.value}
        row |= dict.fromkeys(("reliability_a", "reliability_b", "n_jobs"))
        if plain.value is not None:
            row |= {"reliability_a": a.reliability.value, "reliability_b": b.reliability.value}
            row["n_jobs"] = len(jobs)
        yield {**row, "reason": found.reason or reason}


def runs_by_label(runs: Iterable[StoredRun]) -> dict[str, dict[str, list[tuple[str, StoredRun]]]]:
    """Map a model's label in its runs, then each kind, to its labels in the collection, with the runs."""
    runs_of: dict[str, dict[str, list[tuple[str, StoredRun]]]] = {}
    for run in runs:
        for label, here in run.names.items():
            runs_of.setdefault(label, {}).setdefault(run.measurement, []).append((here, run))
    return runs_of


def validity_of_kinds(collection: Collection, aliases: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows of models that several kinds measured, each in one run, under one label."""
    for label, by_kind in runs_by_label(collection.runs).items():
        measures: dict[str, Measure] = {}
        single = {kind: runs[0] for kind, runs in by_kind.items() if len(runs) == 1}
        for kind, (here, run) in single.items() if len(single) > 1 else ():
            for each in measurement(kind).of_jobs(run.tables, here):
                values = {key_of(job, aliases): value for job, value in each.values.items()}
                measures[each.name] = replace(each, values=values)
        yield from validity_rows(label, list(measures.values()))
