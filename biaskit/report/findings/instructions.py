"""Say whether instructions help, and whether a dialogue matters (docs/methods.md#contrasts)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count, short
from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, below_floor, blocks_of, measured, one_group
from biaskit.report.findings.finding import DIRECTED, Outcome, outcome_of, parts_of, shared, tests
from biaskit.report.findings.kinds import CHANGE, claim
from biaskit.report.findings.sentence import (
    STRENGTH,
    WEAKER,
    Foreign,
    Piece,
    Said,
    said,
    sentence,
    who,
    why,
    within,
)
from biaskit.tables.query import Row, defined, distinct, grouped, where

CAUSES = {
    "instructions": ("instruction {name}", "instruction"),
    "levels": ("the instruction level “{name}”", "level of instructions"),
    "settings": ("a dialogue before it", "dialogue"),
}
"""Contrast → the cause of a change, and the noun that is counted."""


def instructions(content: Content) -> Iterator[Said]:
    """Say what debiasing instructions, their levels and a dialogue change."""
    for block in (block for part in parts_of(content, "probe") for block in blocks_of(part)):
        for name in CAUSES:
            scope = {
                "bias_type": block.bias_type,
                "setting": "dialogue-plain" if name == "settings" else block.setting,
                "prompt_form": block.form,
                "gender": block.gender,
            }
            rows = tests(where(block.part.tables.get("tests", ()), **scope), "share", "crossed", name)
            rows = where(rows, instruction_a="0") if name == "settings" else rows
            rows_by_model = grouped(rows, "model_a")
            for model in block.models:
                yield from _changes(block, model, name, rows_by_model.get((model,), ()))


def _changes(block: ProbeBlock, model: str, name: str, rows: Sequence[Row]) -> Iterator[Said]:
    """Say the largest clear change, and how many are clear."""
    if not rows:
        return
    about, changes = f"help-{block.bias_type}", defined(rows, "estimate")
    clear = [row for row in changes if outcome_of(row) in DIRECTED]
    cause, counted = CAUSES[name]
    if clear:
        row = max(clear, key=lambda row: abs(row["estimate"]))
        before, placed, after = cause.partition("{name}")
        pieces: dict[str, Piece] = {
            "cause": Foreign(row["instruction_a"], before, after) if placed else cause,
            "who": who(block.gender),
            "jobs": one_group(block.part, row["group_a"]),
        }
        texts = {str(asked.get("id")): asked.get("text") for asked in block.part.instructions}
        words = short(texts.get(str(row["instruction_a"])) or "")
        notes = [f"instruction {row['instruction_a']}: “{words}”"] if words else []
        arguments = block.claim(model, row, *notes, **pieces)
        yield claim(CHANGE, row, **{**arguments, "topic": "debiasing", "about": about})
    n, verdicts = len(distinct(rows, "instruction_a")), [outcome_of(row) for row in changes]
    templates = ["{opening}, no clear change of {model}’s answers by {any}{what}."]
    if not changes:
        missing = "{opening}, what {what} changes in {model}’s answers is not measured"
        templates = [missing + " ({why}).", missing + "."]
    elif clear:
        templates = [f"{{opening}}, {len(clear)} of {{n}} by {{what}} to {{model}}’s answers {{are}} clear."]
    elif set(verdicts) == {"equivalent"}:
        templates = ["{opening}, {model}’s answers stay about the same under {what}{within}."]
    text = sentence(
        *templates,
        opening=block.opening(model),
        model=Foreign(model),
        what=count(n, counted, counted.replace("level of", "levels of") if " of " in counted else "")
        if n > 1
        else f"one {counted}",
        any="any of " if n > 1 else "",
        n=count(len(changes), "change"),
        are="is" if len(clear) == 1 else "are",
        within=within(*changes),
        why=why(rows[0]),
    )
    verdict: Outcome = "shown" if clear else shared(verdicts or ["not-measured"])
    strength = max(WEAKER * below_floor(block, model), min(STRENGTH[v] for v in verdicts or ["not-measured"]))
    using = measured(block, model, rows)
    yield said(text, "debiasing", "help", verdict, using, about=about, strength=strength)
