"""Prints what the prober measured: models side by side, a run's tables, the papers' tables."""

from __future__ import annotations

from collections.abc import Iterator

from biaskit.common.wording import people, percent, short
from biaskit.measures.probe.findings.blocks import ProbeBlock, blocks_of
from biaskit.measures.probe.printing.document import share_of
from biaskit.measures.probe.printing.papers import papers
from biaskit.report.findings.finding import reason_of
from biaskit.report.findings.groups import SPLIT, jobs_of
from biaskit.report.render.cells import LABEL, UNDEFINED
from biaskit.report.render.document import TitledTable, listed_table
from biaskit.runs.collection import Part
from biaskit.tables.coverage import WEAK
from biaskit.tables.quantities import SHARES
from biaskit.tables.query import distinct, grouped

__all__ = ["headline", "papers"]


def headline(part: Part) -> Iterator[TitledTable]:
    """Make a table for each prompt format: no table mixes two."""
    blocks_by_format: dict[str, list[ProbeBlock]] = {}
    for block in blocks_of(part):
        blocks_by_format.setdefault(block.prompt_format, []).append(block)
    for prompt_format, blocks in blocks_by_format.items():
        notes: dict[str, None] = {}
        groups, gender = blocks[0].groups[:2], people(blocks[0].gender)
        rows = []
        for model in dict.fromkeys(model for block in blocks for model in block.models):
            for block in sorted(blocks, key=lambda block: block.is_weak(model)):
                if model in block.models:
                    shares = [_share(block, model, group, notes) for group in groups]
                    rows.append((short(model, LABEL), block.bias_type, *shares))
        measured = [row for block in blocks for row in block.rows if row["estimator"]]
        rows_by_estimator = grouped(measured, "estimator")
        estimators = {name: distinct(own, "model") for (name,), own in rows_by_estimator.items()}
        if len(estimators) > 1:
            listed = "; ".join(f"{name}: {', '.join(models)}" for name, models in estimators.items())
            notes[f"Estimators: {listed}."] = None
        alone = f", {next(iter(estimators))}" if len(estimators) == 1 else ""
        of = " and ".join(map(people, blocks[0].two)) or "the target words' probability"
        what = f"{gender} in % of {of} [95 %]{alone}"
        title = f"{part.study}, {prompt_format} prompts: {what}"
        heads = ["", "bias type", *(jobs_of(part, group) if group in SPLIT else group for group in groups)]
        yield listed_table(title, heads, rows, 2, note=" ".join(notes))


def _share(block: ProbeBlock, model: str, group: str, notes: dict[str, None]) -> str:
    """Write share and interval, with a star where it is weak evidence."""
    row = block.row(model, group)
    of_two = bool(block.two)
    if row is None or row[SHARES[of_two][0]] is None:
        notes[f"{UNDEFINED} not measured: {reason_of(row or {})}."] = None
        return UNDEFINED
    shown = share_of(row, of_two=of_two)
    if block.is_weak(model):
        shown += " *"
        held = f"less than {percent(WEAK)} % of the probability (coverage)"
        notes[f"* weak evidence: the target words have {held}."] = None
    return shown
