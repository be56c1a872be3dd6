"""Who a model says: between groups of jobs, against parity, and against the workforce."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from biaskit.common.wording import count, percent, percent_range, share_with_interval
from biaskit.measurement import words
from biaskit.measures.probe.contrasts import columns_of
from biaskit.measures.probe.findings.blocks import ProbeBlock, blocks_in, measured
from biaskit.measures.probe.findings.reliability import rows_of, without_one
from biaskit.measures.probe.ways.design import CONTROLS
from biaskit.report.content import Content
from biaskit.report.findings.claims import claim, templates_of
from biaskit.report.findings.finding import BY_CHANCE, DIRECTED, MEASURED, is_answered, outcome_of
from biaskit.report.findings.groups import are_fields, one_group, two_groups
from biaskit.report.findings.sentence import (
    DETAIL,
    Foreign,
    Piece,
    Sentence,
    filled,
    pronoun,
    sentence_of,
    who,
    why,
)
from biaskit.report.findings.workforce import Slope, apart, claim_of, slopes_with_words
from biaskit.stats.contrast import LEVEL, Contrast
from biaskit.stats.multiplicity import benjamini_hochberg
from biaskit.tables.coverage import LITTLE, is_under
from biaskit.tables.quantities import NAMED, SHARES
from biaskit.tables.query import defined, first, undefined

_TEMPLATES = templates_of("probe")
_SAYS = words("probe")["answers"]


def answers(content: Content) -> Iterator[Sentence]:
    """Say what the prober found between groups of jobs, then against parity."""
    blocks = list(blocks_in(content))
    for block in blocks:
        for model in block.models:
            yield from _of_groups(block, model)
    # Lists of jobs are said under a question that has an answer alone (methods/tests#verdicts).
    answered = is_answered(content, "say")
    for block in blocks:
        for model in block.models:
            for row in block.tests_of(model, "asymmetry"):
                if outcome_of(row) in MEASURED:
                    yield claim(_TEMPLATES["asymmetry"], row, **block.claim(model, row), least=DETAIL)
            if answered and content.reference in ("parity", "both"):
                yield from _parity(block, model)


def _of_groups(block: ProbeBlock, model: str) -> Iterator[Sentence]:
    """Claim each difference of two groups of jobs; where no two are compared, say the share of each."""
    tested, several = block.tests_of(model), len(block.groups) > 1
    compared = [row for row in tested if outcome_of(row) in (*MEASURED, "not-identified")]
    if not several or not compared:
        yield from _shares(block, model, next(iter(tested), None))
    for row in defined(tested, "estimate") if several else ():
        they = block.neither(model, row.group_a, row.group_b) if row.is_binary else ""
        arguments = block.claim(model, row, *without_one(block, model), **block.pair(row), they=they)
        claimed = claim(_TEMPLATES["groups"], row, **arguments)
        yield claimed
        yield from _sampled(block, model, (row.group_a or "", row.group_b or ""), claimed, row)


def _shares(block: ProbeBlock, model: str, test: Contrast | None) -> Iterator[Sentence]:
    """Say the share of each group of jobs, or why there is none."""
    weak, of_two = block.is_weak(model), bool(block.two)
    pieces: dict[str, Piece] = {"opening": block.opening(model, of_two=of_two), "model": Foreign(model)}
    pieces |= {"who": pronoun(block.gender), "of": ""}
    name, low, high = SHARES[of_two]
    rows = [*filter(None, (block.row(model, group) for group in block.groups))]
    if not of_two and not is_under(block.coverage(model), LITTLE):  # where it is, the opening says so
        pieces["of"] = " of the probability on the target words"
    for row in defined(rows, name):
        share = share_with_interval(row[name], row[low], row[high])
        pieces["value"], bracket, interval = share.partition(" [")
        pieces |= {"group": one_group(block.part, row["job_group"]), "interval": bracket + interval}
        if bracket and row["n_jobs"] == 1:
            pieces["interval"] = f"{bracket}{interval}, conditional on one job"
        pieces["they"] = block.neither(model, row["job_group"])
        share_said = sentence_of(
            *(filled(_SAYS["share"], **pieces), block.topic, "say"),
            measured=measured(block, model, [row]),
            about=block.about,
            number=share if bracket else "",
            strength=DETAIL if weak else None,
            weak=weak,
        )
        yield share_said
        yield from _sampled(block, model, (row["job_group"],), share_said)
    if not defined(rows, name):
        text = filled(_SAYS["no_share"], **pieces, why=why(rows[0] if rows else test))
        using = measured(block, model, rows)
        yield sentence_of(text, block.topic, "say", "not-measured", using, about=block.about, weak=weak)


def _sampled(
    block: ProbeBlock, model: str, groups: Sequence[str], claimed: Sentence, test: Contrast | None = None
) -> Iterator[Sentence]:
    """Say with a claim on little of the probability whom sampled answers name, where there are some."""
    every = {(row["job_group"], row["outcome"]): row for row in block.outcomes.get((model,), ())}
    parts: list[float] = []  # of those named
    below: list[float] = []  # how far their intervals reach
    above: list[float] = []
    for group in groups:
        named, of_gender = every.get((group, NAMED)), every.get((group, f"{NAMED}:{block.gender}"))
        if named is None or of_gender is None or not named["share"]:
            return
        parts.append(of_gender["share"] / named["share"])
        for reach, end in ((below, "ci_low"), (above, "ci_high")):
            known = of_gender["share"] if of_gender[end] is None else of_gender[end]
            reach.append(abs(known - of_gender["share"]) / named["share"])
    if not is_under(block.coverage(model), LITTLE):
        return
    turned = ""
    if test is not None and outcome_of(test) in DIRECTED and (parts[0] - parts[-1]) * test.estimate < 0:
        # The interval of the difference, by square and add (Newcombe 1998).
        near = (above[0], below[-1]) if test.estimate > 0 else (below[0], above[-1])
        beyond = abs(parts[0] - parts[-1]) > math.hypot(*near)
        turned = ", the opposite direction" if beyond else ", too few to tell a direction"
    jobs = (two_groups if len(groups) > 1 else one_group)(block.part, *groups)
    said: dict[str, Piece] = {"opening": block.opening(), "model": Foreign(model), "who": who(block.gender)}
    said |= {"parts": " and ".join(map(percent, parts)), "groups": jobs, "turned": turned}
    text = filled(_SAYS["sampled"], **said)
    using = measured(block, model, (), "sampled answers")
    finding = replace(claimed.finding, text=text, verdict="shown", measured_with=using, weak=False)
    yield replace(claimed, finding=finding, number="", beside=claimed.finding)


def _parity(block: ProbeBlock, model: str) -> Iterator[Sentence]:
    """Count the jobs on either side of parity, by Benjamini and Hochberg at 5 %."""
    a, b = block.part.contrast if all(block.part.contrast) else ("female", "male")
    jobs = block.jobs.get((model,), ())
    rows = [row for row in jobs if row.get(f"{a}_minus_{b}") is not None and row["ci_low"] is not None]
    if not rows:
        return
    tests = []
    for row in rows:
        numbers = {"estimate": row[f"{a}_minus_{b}"], "dof": row["n_templates"] - 1}
        numbers |= {"ci_low": row["ci_low"], "ci_high": row["ci_high"]}
        numbers |= {"bound_low": row["difference_low"], "bound_high": row["difference_high"]}
        tests.append(Contrast("probe", "parity", model, model, kind="crossed", **numbers))
    q_values = benjamini_hochberg([test.p_against(0.0) for test in tests])
    sides = [test.direction for test, q in zip(tests, q_values, strict=True) if q <= LEVEL]
    pieces: dict[str, Piece] = {"opening": block.opening(model, of_two=True), "model": Foreign(model)}
    pieces |= {"who": pronoun(a), "other": pronoun(b)}
    pieces |= {"more": str(sides.count("higher")), "k": str(sides.count("lower"))}
    pieces["n"] = count(len(rows), "field" if are_fields(block.part) else "job")
    own = first(rows_of(block, model), measure=CONTROLS)
    share = "" if own is None or own["value"] is None else percent(own["value"])
    pieces["controls"] = _SAYS["controls"].format(who=pronoun(a), share=share) if share else ""
    text = filled(_SAYS["parity"], **pieces)
    using = measured(block, model, (), f"over templates; {BY_CHANCE}")
    weak = block.is_weak(model)
    yield sentence_of(text, block.topic, "say", measured=using, about=block.about, strength=DETAIL, weak=weak)


# --- mirrors, flattens or exaggerates (methods/representation#workforce-words) ------------------------------


NEITHER = 0.005
"""A smaller part of neither gender is not said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSlope(Slope):
    """A slope of the answers of a block."""

    block: ProbeBlock


def slopes(content: Content) -> Iterator[AnswerSlope]:
    """Yield the slope of each model and way to ask."""
    for block in blocks_in(content):
        levels, distances = block.against_workforce("level"), block.against_workforce("distance")
        for row in defined(block.against_workforce("slope"), "estimate"):
            model = row.model_a
            if model in block.models:
                yield AnswerSlope(
                    *(block.part, model, row, first(levels, model_a=model), first(distances, model_a=model)),
                    gap=block.between_groups(model),
                    block=block,
                )


def workforce(content: Content) -> Iterator[Sentence]:
    """Make a sentence for each model and bias type; then say why others have no slope."""
    for slope in slopes_with_words(content):
        if isinstance(slope, AnswerSlope):
            yield _sentence(slope)
    if content.reference not in ("workforce", "both"):
        return
    missing = "{opening}, women compared with labour statistics: not measured ({why})."
    for block in blocks_in(content):
        for row in undefined(block.against_workforce("slope"), "estimate"):
            model = row.model_a
            if model in block.models:
                text = filled(missing, opening=block.opening(), why=why(row))
                using = measured(block, model, [row])
                yield sentence_of(text, block.topic, "say", "not-measured", using, about=block.about)


def _sentence(slope: AnswerSlope) -> Sentence:
    model, block, level = slope.model, slope.block, slope.level
    notes = []  # what a slope does not say: the height of the line, the distance of jobs from it
    if level is not None and level.ci_low is not None:
        share, low, high = level.estimate + 0.5, level.ci_low + 0.5, level.ci_high + 0.5
        ends = percent_range(max(low, 0.0), min(high, 1.0))
        notes.append(f"where half are women, the fitted line gives {percent(share)} % [{ends}]")
    notes += [*apart(slope.distance), *_neither(block, model)]
    rows = (slope.row, level, slope.distance)
    arguments = block.claim(model, slope.row, opening=block.opening(model, of_two=True))
    arguments["measured"] = measured(block, model, rows, "over jobs and templates", *notes)
    return claim_of(slope, "say", **arguments)


def _neither(block: ProbeBlock, model: str) -> list[str]:
    """Note how much is said of neither gender of the contrast: the line holds one against both."""
    shares = columns_of(block.part.contrast, "share")
    rows = [row for row in block.jobs.get((model,), ()) if row.keys() >= {*shares}]
    known = defined(rows, *shares)
    either = sum(row[name] for row in known for name in shares)
    neither = 1 - either / len(known) if known else 0.0
    of_two = "women among women and men" if block.gender == "female" else "one of the two groups"
    return [f"{of_two}; {percent(neither)} % names neither"] if neither >= NEITHER else []
