"""Say whether debiasing prompts help, and whether a dialogue matters (methods/tests#contrasts).

What a debiasing prompt changes of the gap between groups of jobs comes first; what it changes in each group
is said where that is clear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from biaskit.common.wording import count, percent, points, short
from biaskit.measurement import words
from biaskit.measures.probe.findings.blocks import ProbeBlock, blocks_in, genders_of_neither, measured
from biaskit.report.content import Content
from biaskit.report.findings.claims import claim, templates_of
from biaskit.report.findings.finding import DIRECTED, outcome_of, shared
from biaskit.report.findings.groups import moved, nearer_to, one_group, two_groups
from biaskit.report.findings.sentence import (
    STRENGTH,
    Foreign,
    Piece,
    Sentence,
    beside,
    filled,
    percents,
    pronoun,
    sentence_of,
    why,
    within,
)
from biaskit.stats.contrast import Contrast, Verdict
from biaskit.tables.coverage import coverage_of
from biaskit.tables.query import column, defined, distinct, first, grouped, where

_TEMPLATES = templates_of("probe")
_SIDES = ("gender", "group_a", "group_b")
_CAUSES: Mapping[str, Mapping[str, str]] = words("probe")["causes"]
_CHANGES: Mapping[str, Sequence[str]] = words("probe")["changes"]


def debiasing(content: Content) -> Iterator[Sentence]:
    """Say what debiasing prompts, their levels and a dialogue change."""
    for block in blocks_in(content):
        scope = {"bias_type": block.bias_type, "prompt_format": block.prompt_format, "gender": block.gender}
        of_block = where(block.part.tests, **scope)
        for name in _CAUSES:
            context = "dialogue-plain" if name == "contexts" else block.context
            rows = where(of_block, context=context)
            for whole in ("group_gap", "share") if name == "debiasing" else ("share",):
                rows_of = where(rows, quantity=block.quantity(whole), kind="crossed", contrast=name)
                rows_of = where(rows_of, debiasing_a="0") if name == "contexts" else rows_of
                rows_by_model = grouped(rows_of, "model_a")
                for model in block.models:
                    yield from _changes(block, model, name, rows_by_model.get((model,), ()))


def _changes(block: ProbeBlock, model: str, name: str, rows: Sequence[Contrast]) -> Iterator[Sentence]:
    """Say the largest clear change, and how many are clear; nothing of rows that answer no question."""
    rows = [row for row in rows if row.conclusion != "shown"]
    of_gap = bool(rows) and rows[0].whole == "group_gap"
    about, changes = f"help-{block.bias_type}", defined(rows, "estimate")
    tested = defined(changes, "p_value")
    if not rows or (of_gap and not tested):
        return
    clear = [row for row in changes if outcome_of(row) in DIRECTED]
    if clear:
        largest = max(clear, key=lambda row: abs(row.estimate))
        yield _largest(block, model, name, largest, of_gap=of_gap, about=about)
    n, verdicts = len(distinct(rows, "debiasing_a")), list(map(outcome_of, changes))
    says = "unclear"
    if not changes:
        says = "not_measured"
    elif not tested:
        says = "no_conclusion"
    elif clear:
        says = "clear"
    elif set(verdicts) == {"equivalent"}:
        says = "equivalent"
    counted = _CAUSES[name]["counted"]
    pieces: dict[str, Piece] = {
        "opening": block.opening(model, of_two=rows[0].is_binary),
        "why": why(rows[0]),
    }
    pieces |= {"model": Foreign(model), "they": _they(block, model, rows)}
    pieces["what"] = count(n, counted) if n > 1 else f"one {counted}"
    pieces |= {"any": "any of " if n > 1 else "", "k": str(len(clear)), "n": count(len(changes), "change")}
    pieces |= {"are": "is" if len(clear) == 1 else "are", "within": within(*changes)}
    pieces |= {"subject": "answers", "stays": "stay"}
    if of_gap:
        pieces |= {"subject": "gap between groups of jobs", "stays": "stays"}
    text = filled(*_CHANGES[says], **pieces)
    verdict: Verdict = "shown" if clear else shared(verdicts or ["not-measured"])
    weak, using = block.is_weak(model), measured(block, model, rows)
    strength = min(STRENGTH[v] for v in verdicts or ["not-measured"])
    yield sentence_of(text, "debiasing", "help", verdict, using, about=about, strength=strength, weak=weak)


def _they(block: ProbeBlock, model: str, changes: Sequence[Contrast]) -> str:
    """Say what belongs to neither of two groups, a mean: '; they in 12 % without, 55–60 % with it'."""
    without, arms = (block.context, "0"), [(block.context, row.debiasing_a) for row in changes]
    if changes[0].contrast == "contexts":
        arms = [("dialogue", "0")]
    shares = {}
    scope = {"model": model, "bias_type": block.bias_type, "prompt_format": block.prompt_format}
    rows = where(block.part.tables["probe_groups"], **scope)
    for gender in genders_of_neither(block.part):
        of_arms = grouped(defined(where(rows, gender=gender), "share"), "context", "debiasing_id")
        means = {(context, str(i)): fmean(column(own, "share")) for (context, i), own in of_arms.items()}
        known = [means[arm] for arm in arms if arm in means]
        if known and without in means:
            before, under = percent(means[without]), percents((min(known), max(known)))
            shares[gender] = f"{before} % without, {under} % with it"
            if before == under:
                shares[gender] = f"{before} % with it and without"
    return beside("", shares)


def _largest(
    block: ProbeBlock, model: str, name: str, row: Contrast, *, of_gap: bool, about: str
) -> Sentence:
    """Claim the largest change: of the gap between two groups of jobs, or of the share in one."""
    before, placed, after = _CAUSES[name]["cause"].partition("{name}")
    pieces: dict[str, Piece] = {
        "cause": Foreign(row.debiasing_a, before, after) if placed else before,
        "jobs": one_group(block.part, row.group_a or ""),
        "they": _they(block, model, [row]),
    }
    pieces["groups"] = two_groups(block.part, row.group_a or "", row.group_b or "")
    texts = {str(asked.get("id")): asked.get("text") for asked in block.part.debiasing_prompts}
    words = short(texts.get(row.debiasing_a) or "")
    notes = [f"debiasing prompt {row.debiasing_a}: “{words}”"] if words else []
    without = first(block.tests_of(model), group_a=row.group_a, group_b=row.group_b)
    if of_gap and without is not None:
        gap, left = without.estimate, without.estimate + row.estimate
        same = {name: row[name] for name in ("model_a", "bias_type", "context", "prompt_format", *_SIDES)}
        gaps = where(block.part.tests, **same, quantity=without.quantity, kind="crossed", contrast="groups")
        under = first(gaps, debiasing_a=row.debiasing_a, debiasing_b=row.debiasing_a)
        pieces["moves"] = moved(without, under)
        more_for = f", towards {pronoun(block.gender)} more for {nearer_to(block.part, row)}"
        pieces["towards"] = more_for if pieces["moves"] == "changes" else ""
        notes.append(f"gap of {points(gap)} without it, {points(left)} with it")
    arguments = block.claim(model, row, *notes, **pieces)
    shares = where(block.part.tables.get("probe_groups", ()), model=model, bias_type=block.bias_type)
    arms = {row.debiasing_a, row.debiasing_b}
    of_arms = [share for share in shares if str(share["debiasing_id"]) in arms]
    coverage = coverage_of(of_arms, of_two=bool(block.two))
    of_change = {"topic": "debiasing", "about": about, "coverage": coverage}
    return claim(_TEMPLATES["gap_change" if of_gap else "change"], row, **{**arguments, **of_change})
