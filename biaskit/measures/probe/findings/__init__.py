"""What the prober says: sentences in the order of saying, slopes, and what its numbers cannot show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from biaskit.common.wording import count, listed, percent, short
from biaskit.measurement import words
from biaskit.measures.probe.findings.answers import answers, slopes, workforce
from biaskit.measures.probe.findings.blocks import blocks_of, widest_bounds
from biaskit.measures.probe.findings.coverage import coverage
from biaskit.measures.probe.findings.debiasing import debiasing
from biaskit.measures.probe.findings.reliability import stability
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.limits import FEW_ITEMS, LIMITS, used_formats
from biaskit.report.findings.sentence import Sentence
from biaskit.runs.collection import Part
from biaskit.stats.crossed import CONDITIONAL_ON_TEMPLATES
from biaskit.tables.coverage import LITTLE, is_under
from biaskit.tables.query import Row, defined, distinct, named
from biaskit.tables.reasons import do_differ

__all__ = ["findings", "limits", "not_measured", "slopes"]

FEW_TEMPLATES = 5
WIDE_BOUNDS = 0.1
EXTREME = 0.05
_TWO_CLUSTERS = {"occugender", "occugender-debias", "mattern"}
"""Studies whose jobs are the two ends of the workforce."""


def findings(content: Content) -> Iterator[Sentence]:
    """Say whom models name, against the workforce too, what else they say, and what debiasing changes."""
    yield from answers(content)
    yield from workforce(content)
    yield from coverage(content)
    yield from debiasing(content)
    yield from stability(content)


def limits(parts: Sequence[Part]) -> Iterator[str]:
    """Say where its shares have little evidence, and what they are of."""
    said, own = words("probe")["limits"], parts_of(parts, "probe")
    groups, jobs = _rows(own, "probe_groups"), _rows(own, "probe_jobs")
    if "diverse" in distinct(groups, "gender"):
        yield said["diverse"]
    if defined(jobs, "workforce_share"):
        yield LIMITS["workforce"]
    for part in own:
        for limit in _of_part(part.tables.get("probe_groups", ())):
            yield f"{short(part.study)}: {limit}"
    if any(not EXTREME <= row["share"] <= 1 - EXTREME for row in defined(groups, "share")):
        yield said["extreme"]
    if any(part.study.split(" (")[0] in _TWO_CLUSTERS for part in own):
        yield said["two_clusters"]
    yield from used_formats(own, "probe")


def _rows(parts: Iterable[Part], table: str) -> list[Row]:
    return list(chain.from_iterable(part.tables.get(table, ()) for part in parts))


def _of_part(rows: Sequence[Row]) -> Iterator[str]:
    """Say where a study has little evidence: templates, jobs, estimators; `rows`: of probe_groups.csv."""
    said = words("probe")["limits"]["of_study"]
    templates, jobs = (min(named(rows, name), default=0) for name in ("n_templates", "n_jobs"))
    if templates in CONDITIONAL_ON_TEMPLATES:
        yield said["conditional"].format(CONDITIONAL_ON_TEMPLATES[templates])
    elif 0 < templates <= FEW_TEMPLATES:
        yield said["few_templates"].format(count(templates, "template"))
    if jobs == 1:
        yield said["one_job"]
    elif 0 < jobs < FEW_ITEMS:
        yield said["few_jobs"].format(count(jobs, "job"))
    estimators = named(rows, "estimator")
    if do_differ(estimators):
        yield said["estimators"].format(listed(estimators))
    width = widest_bounds(rows)
    if width is not None and width > WIDE_BOUNDS:
        yield said["bounds"].format(percent(width))
    if "sampling" in estimators:
        yield said["sampling"]


def not_measured(parts: Sequence[Part]) -> Iterator[str]:
    """Name sampled answers, where little of the probability was measured, and debiasing prompts."""
    own, validated = parts_of(parts, "probe"), True
    for block in chain.from_iterable(map(blocks_of, own)):
        for model in block.models:
            validated &= (model,) in block.outcomes or not is_under(block.coverage(model), LITTLE)
    if not validated:
        yield words("probe")["limits"]["not_validated"].format(percent(LITTLE))
    if own and not named(_rows(own, "probe_groups"), "debiasing_id"):
        yield words("probe")["limits"]["no_debiasing"]
