"""What debiasing instructions change, and whether a dialogue matters (docs/methods.md#contrasts)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, blocks_of, jobs_of, measured
from biaskit.report.findings.finding import (
    MANY_MODELS,
    Finding,
    Outcome,
    Rank,
    Ranked,
    difference,
    margin_of,
    noted,
    outcome_of,
    parts_of,
    reasons_of,
    shared,
    tally,
    tests,
)
from biaskit.runs.collection import Part
from biaskit.stats.verdict import direction_of
from biaskit.tables.query import Row, defined, distinct, grouped, where
from biaskit.wording import count, listed, people, short


def debiasing(content: Content) -> Iterator[Ranked]:
    """Findings of every part of the prober that asked under instructions."""
    for part in parts_of(content, "probe"):
        for block in blocks_of(part):
            rows = effects(block, "instructions")
            own = {model: where(rows, model_a=model) for model in block.models}
            models = [model for model in block.models if own[model]]
            if len(models) > MANY_MODELS:
                yield Rank.LEAD, _of_many(block, models, rows)
                continue
            for model in models:
                yield Rank.LEAD, _of_one(block, model, own[model])
                yield from _gaps(block, model)
                yield from _levels(block, model)
                yield from _dialogue(block, model)


def effects(block: ProbeBlock, contrast: str, setting: str = "", quantity: str = "share") -> list[Row]:
    """Crossed rows of the share of women, between instructions, levels or settings."""
    rows = where(
        block.part.tables.get("tests", ()),
        bias_type=block.bias_type,
        setting=setting or block.setting,
        prompt_form=block.form,
        gender=block.gender,
    )
    return tests(rows, quantity, "crossed", contrast)


def _size(row: Row) -> float:
    return abs(float(row["estimate"]))


def _name(part: Part, number: object) -> str:
    texts = {str(row.get("id")): row.get("text") for row in part.instructions}
    text = texts.get(str(number))
    return f"instruction {number}" + (f" (“{short(text, 60)}”)" if text else "")


def _of_one(block: ProbeBlock, model: str, rows: Sequence[Row]) -> Finding:
    using = measured(block, [model])
    known = defined(rows, "estimate")
    if not known:
        text = f"Debiasing instructions ({block.bias_type} prompts, {short(model)}): not measured "
        text += f"({reasons_of(rows)})."
        return Finding(text, "debiasing", "not-measured", using)
    by_group = list(grouped(known, "group_a").values())
    sentences = [_extremes(block, rows) for rows in by_group]
    text = f"Debiasing ({block.bias_type} prompts, {short(model)}), against the same prompts without an "
    text += "instruction. "
    largest = [max(rows, key=_size) for rows in by_group]
    verdict = shared([outcome_of(row) for row in largest])
    text += " ".join(sentences) + noted(known)
    return Finding(text, "debiasing", verdict, using)


def _extremes(block: ProbeBlock, rows: Sequence[Row]) -> str:
    who, jobs = people(block.gender), jobs_of(block.part, rows[0]["group_a"])
    most, least = max(rows, key=_size), min(rows, key=_size)
    text = f"For {jobs}, {_name(block.part, most['instruction_a'])} "
    if len(rows) == 1:
        return f"{text}gives {who} {difference(most)}."
    shown = sum(direction_of(row) is not None for row in rows)
    if abs(most["estimate"]) == abs(least["estimate"]):
        text = f"For {jobs}, each of {len(rows)} instructions changes the share of {who} as much: "
        return f"{text}{difference(most)}; {shown} of {len(rows)} changes are clear."
    text += f"changes the share of {who} most (the largest of {len(rows)}), {difference(most)}, and "
    text += f"{_name(block.part, least['instruction_a'])} "
    return f"{text}least, {difference(least)}; {shown} of {len(rows)} changes are clear."


def _of_many(block: ProbeBlock, models: Sequence[str], rows: Sequence[Row]) -> Finding:
    who, known = people(block.gender), defined(rows, "estimate")
    sentences = []
    for (group,), own in grouped(known, "group_a").items():
        counted = tally(
            [outcome_of(r) for r in own],
            more=f"give {who} more",
            less=f"give {who} less",
            margin=margin_of(own),
        )
        largest = max(own, key=_size)
        sentences.append(
            f"For {jobs_of(block.part, group)}: {counted}; the largest change is {difference(largest)} "
            f"({short(largest['model_a'])}, {_name(block.part, largest['instruction_a'])})."
        )
    text = f"Debiasing ({block.bias_type} prompts), {count(len(models), 'model')} under "
    text += (
        f"{count(len(distinct(rows, 'instruction_a')), 'instruction')}, against none: {' '.join(sentences)}"
    )
    verdict: Outcome = "shown" if known else "not-measured"
    return Finding(text, "debiasing", verdict, measured(block, models))


def _gaps(block: ProbeBlock, model: str) -> Iterator[Ranked]:
    """How far the two groups of jobs lie apart under each instruction."""
    rows = defined(where(effects(block, "groups"), model_a=model), "estimate")
    none, under = where(rows, instruction_a="0"), [row for row in rows if row["instruction_a"] != "0"]
    if not none or len({row["estimate"] for row in under}) < 2:
        return
    least, most = min(under, key=_size), max(under, key=_size)
    text = f"Between {jobs_of(block.part, none[0]['group_a'])} and "
    text += f"{jobs_of(block.part, none[0]['group_b'])} ({block.bias_type} prompts, {short(model)}), the "
    text += f"share of {people(block.gender)} differs without an instruction by: {difference(none[0])}. It "
    text += f"differs least under instruction {least['instruction_a']}, {difference(least)}, and most under "
    text += f"instruction {most['instruction_a']}, {difference(most)}."
    text += noted([none[0], least, most])
    yield Rank.DETAIL, Finding(text, "debiasing", "shown", measured(block, [model]))


def _levels(block: ProbeBlock, model: str) -> Iterator[Ranked]:
    rows = defined(where(effects(block, "levels"), model_a=model), "estimate")
    if not rows:
        return
    sentences = [
        f"{jobs_of(block.part, group)}: "
        + ", ".join(f"{short(row['instruction_a'])} {difference(row)}" for row in own)
        for (group,), own in grouped(rows, "group_a").items()
    ]
    text = f"By level of abstraction, for {people(block.gender)} against no instruction ({block.bias_type} "
    text += f"prompts, {short(model)}): {'; '.join(sentences)}.{noted(rows)}"
    yield Rank.DETAIL, Finding(text, "debiasing", "shown", measured(block, [model]))


def _dialogue(block: ProbeBlock, model: str) -> Iterator[Ranked]:
    rows = where(effects(block, "settings", "dialogue-plain"), model_a=model)
    known = defined(where(rows, instruction_a="0"), "estimate")
    if not known:
        return
    who = people(block.gender)
    clauses = [f"{difference(row)} for {jobs_of(block.part, row['group_a'])}" for row in known]
    text = f"In a dialogue, without an instruction, {short(model)} gives {who} {listed(clauses)}, against "
    text += f"plain prompts ({block.bias_type})."
    changes = effects(block, "settings", "dialogue-plain", "instruction_effect")
    own = defined(where(changes, model_a=model), "estimate")
    if own:
        shown = sum(direction_of(row) is not None for row in own)
        text += f" What an instruction changes clearly differs between dialogue and plain in {shown} of "
        text += f"{count(len(own), 'comparison')}."
    verdicts = [outcome_of(row) for row in known]
    text += noted(known)
    yield Rank.DETAIL, Finding(text, "debiasing", shared(verdicts), measured(block, [model]))
