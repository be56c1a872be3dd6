"""What a probe measures of each job, to be held against other measures (methods/reliability#validity)."""

from __future__ import annotations

from collections.abc import Iterator

from biaskit.compare.validity import Measure
from biaskit.measures.probe.reliability import HALVES, SAMPLED
from biaskit.records import ALL
from biaskit.stats.reliability import Estimate
from biaskit.tables.query import Tables, defined, first, grouped, in_main_context, lookup, where

_MEASURES = (("", "binary_share", HALVES), (", sampled", "sampled_difference", SAMPLED))
"""What a name ends in, its column of probe_jobs.csv, and its reliability."""


def of_jobs(tables: Tables, model: str) -> Iterator[Measure]:
    """Yield a model's answers by bias type, what it says where answers were sampled, and the workforce."""
    jobs = in_main_context(where(tables.get("probe_jobs", ()), model=model, debiasing_id=0))
    names = ("model", "bias_type", "context", "prompt_format")
    for key, rows in grouped(jobs, *names).items():
        scope = dict(zip(names, key, strict=True))
        halves = where(tables.get("reliability", ()), job_group=ALL, **scope)
        for said, name, measure in _MEASURES:
            known, found = [row for row in rows if row.get(name) is not None], first(halves, measure=measure)
            if known and found:
                reliability = Estimate(found["value"], reason=found["reason"])
                values = lookup(known, "job", name)
                yield Measure(f"{scope['bias_type']}{said}", values, reliability, found["n_templates"])
    if shares := lookup(defined(jobs, "workforce_share"), "job", "workforce_share"):
        yield Measure("workforce", shares)
