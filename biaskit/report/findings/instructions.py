"""Whether instructions help, and whether a dialogue matters (docs/methods.md#contrasts)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, below_floor, blocks_of, measured, one_group
from biaskit.report.findings.contrasts import Claim, Kind, contrast, directed
from biaskit.report.findings.finding import (
    DIRECTED,
    Outcome,
    Topic,
    agreeing,
    outcome_of,
    parts_of,
    shared,
    tests,
)
from biaskit.report.findings.sentence import (
    RESTATED,
    WEAKER,
    Foreign,
    Said,
    opening,
    said,
    sentence,
    strength_of,
    who,
    why,
    within,
)
from biaskit.tables.query import Row, defined, distinct, where
from biaskit.wording import count, short

CHANGE = Kind(
    question="help",
    lead="{opening}, ",
    what="what {cause} changes",
    one=directed(
        "{cause} makes {model} say {who} {amount} {more} often for {jobs}{ends}.",
        "{cause} makes {model} say {who} {amount} {more} often for {jobs}.",
    ),
)
"""What one instruction, level, or dialogue clearly changes for a group of jobs."""
CAUSES = {
    "instructions": ("instruction {name}", "instruction", "instructions"),
    "levels": ("the instruction level “{name}”", "level of instructions", "levels of instructions"),
    "settings": ("a dialogue before it", "dialogue", "dialogues"),
}
"""Contrast → what makes the change, and what is counted."""


def instructions(content: Content) -> Iterator[Said]:
    """Debiasing instructions, their levels, and a dialogue."""
    for block in (block for part in parts_of(content, "probe") for block in blocks_of(part)):
        for name in CAUSES:
            setting = "dialogue-plain" if name == "settings" else block.setting
            rows = _effects(block, name, setting)
            yield from _changes(
                block, name, [row for row in rows if name != "settings" or row["instruction_a"] == "0"]
            )
        yield from _in_dialogue(block)


def _effects(block: ProbeBlock, name: str, setting: str, quantity: str = "share") -> list[Row]:
    """Crossed rows of the share that sentences speak of, in a contrast."""
    scope = {"bias_type": block.bias_type, "setting": setting, "prompt_form": block.form}
    rows = where(block.part.tables.get("tests", ()), **scope, gender=block.gender)
    return [row for row in tests(rows, quantity, "crossed", name) if row["model_a"] in block.models]


def _of_one(block: ProbeBlock, row: Row, cause: str, topic: Topic) -> Said:
    """The sentence of a clear change."""
    before, name, after = cause.partition("{name}")
    return contrast(
        CHANGE,
        [Claim(row["model_a"], row, below_floor(block, row["model_a"]))],
        topic,
        measured(block, [row["model_a"]], [row], *_instruction(block, row)),
        asked=block.bias_type,
        about=_about(block),
        pieces={
            "cause": Foreign(row["instruction_a"], before, after) if name else cause,
            "who": who(block.gender),
            "jobs": one_group(block.part, row["group_a"]),
        },
    )


def _instruction(block: ProbeBlock, row: Row) -> list[str]:
    """The words of an instruction."""
    texts = {str(row.get("id")): row.get("text") for row in block.part.instructions}
    text = texts.get(str(row["instruction_a"]))
    return [f"instruction {row['instruction_a']}: “{short(text)}”"] if text else []


def _changes(block: ProbeBlock, name: str, rows: Sequence[Row]) -> Iterator[Said]:
    """The largest clear change, and how many are clear."""
    if not rows:
        return
    known, models = defined(rows, "estimate"), distinct(rows, "model_a")
    clear = [row for row in known if outcome_of(row) in DIRECTED]
    if clear:
        yield _of_one(block, max(clear, key=lambda row: abs(row["estimate"])), CAUSES[name][0], "debiasing")
    verdicts = [outcome_of(row) for row in known] or ["not-measured"]
    weak, n = any(below_floor(block, model) for model in models), len(distinct(rows, "instruction_a"))
    templates = ["{opening}, no clear change of {whose} answers by {any}{what}."]
    if not known:
        missing = "{opening}, what {what} changes in {whose} answers is not measured"
        templates = [missing + " ({why}).", missing + "."]
    elif clear:
        templates = [f"{{opening}}, {len(clear)} of {{n}} by {{what}} to {{whose}} answers {{are}} clear."]
    elif set(verdicts) == {"equivalent"}:
        templates = ["{opening}, {whose} answers stay about the same under {what}{within}."]
    text = sentence(
        *templates,
        opening=opening(block.bias_type, weak=weak),
        whose=Foreign(models[0], after="’s") if len(models) == 1 else f"{len(models)} models’",
        what=count(n, *CAUSES[name][1:]) if n > 1 else f"one {CAUSES[name][1]}",
        any="any of " if n > 1 else "",
        n=count(len(known), "change"),
        are="is" if len(clear) == 1 else "are",
        within=within(known),
        why=why(rows[0]),
    )
    verdict: Outcome = "shown" if clear else shared(verdicts)
    using, strength = measured(block, models, rows), max(WEAKER * weak, strength_of(verdicts))
    yield said(text, "debiasing", "help", verdict, using, about=_about(block), strength=strength)


def _about(block: ProbeBlock) -> str:
    return f"help-{block.bias_type}"


def _in_dialogue(block: ProbeBlock) -> Iterator[Said]:
    """In how many comparisons an instruction does something else in a dialogue than without one."""
    rows = defined(_effects(block, "settings", "dialogue-plain", "instruction_effect"), "estimate")
    clear = sum(outcome_of(row) in DIRECTED for row in rows)
    if rows:
        text = "{opening}, {k} of {n} by instructions {are} clearly different in a dialogue."
        if not clear:
            text = "{opening}, no clear difference between a dialogue and none in any of {n} by instructions."
        n, are = count(len(rows), "change"), agreeing(clear, "are")
        text = sentence(text, opening=block.opening(), k=str(clear), n=n, are=are)
        using = measured(block, distinct(rows, "model_a"), rows)
        yield said(text, "debiasing", "help", measured=using, about=_about(block), strength=RESTATED)
