"""Print the first screen as plain text: a table for each study, then the first findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count, people, percent, plain_number, point_number, points_range, short
from biaskit.report.content import Content
from biaskit.report.findings import BETWEEN, READING, findings, first_about
from biaskit.report.findings.blocks import SPLIT, ProbeBlock, blocks_of, jobs_of
from biaskit.report.findings.finding import Finding, parts_of, reason_of, reasons_of, women_against_men
from biaskit.report.findings.texts import against_labour, models_of, occupations_of
from biaskit.report.render.document import Document, Heading, TitledTable
from biaskit.report.render.pairs import pair_tables
from biaskit.report.render.probe import share_of
from biaskit.report.render.text import READABLE, WIDTH, fold, render_text
from biaskit.runs.collection import Part
from biaskit.tables.coverage import WEAK
from biaskit.tables.query import by_labels, defined, distinct, grouped, where

N_FINDINGS = 6
LABEL = 40
UNDEFINED = "–"


def headline(content: Content, *, width: int = WIDTH, said: Sequence[Finding] | None = None) -> str:
    """Print tables and sentences in at most `width` columns; `said`: the findings, if made already."""
    tables = side_by_side(content)
    sentences = _sentences(findings(content) if said is None else said, width, N_FINDINGS)
    return "\n".join([*([render_text(Document(tables), width)] if tables else []), *sentences])


def side_by_side(content: Content) -> tuple[TitledTable, ...]:
    """Make tables with models in rows: one for each study and prompt form, answers before texts."""
    probed = [table for part in parts_of(content, "probe") for table in _probe(part)]
    return (*probed, *map(_personas, parts_of(content, "personas")))


def first_findings(content: Content, *, width: int = WIDTH, most: int = N_FINDINGS) -> str:
    """Print the first findings alone, as `headline` does, those about models side by side before others."""
    return "\n".join(_sentences(first_about(BETWEEN, content), width, most))


def _sentences(said: Sequence[Finding], width: int, most: int) -> Iterator[str]:
    width = min(width, READABLE)
    lines = [finding.text for finding in said[:most]]
    if len(said) > most:
        lines.append(f"{count(len(said) - most, 'more finding')} in the report.")
    for line in lines:
        yield from fold(line, width, first="- ", then="  ")
    yield from ["", *fold(READING, width)] if lines else ["Nothing was measured."]


def _probe(part: Part) -> Iterator[TitledTable]:
    """Make a table for each prompt form: no table mixes two; of pairs of sentences those by language."""
    yield from (table for _, table in pair_tables(part.tables, stereotypes=False))
    blocks_by_form: dict[str, list[ProbeBlock]] = {}
    for block in blocks_of(part):
        blocks_by_form.setdefault(block.form, []).append(block)
    for form, blocks in blocks_by_form.items():
        notes: dict[str, None] = {}
        groups, gender = blocks[0].groups[:2], people(blocks[0].gender)
        rows = [
            (short(model, LABEL), block.bias_type, *(_share(block, model, group, notes) for group in groups))
            for model in dict.fromkeys(model for block in blocks for model in block.models)
            for block in sorted(blocks, key=lambda block: block.is_weak(model))
            if model in block.models
        ]
        measured = [row for block in blocks for row in block.rows if row["estimator"]]
        rows_by_estimator = grouped(measured, "estimator")
        estimators = {name: distinct(own, "model") for (name,), own in rows_by_estimator.items()}
        if len(estimators) > 1:
            listed = "; ".join(f"{name}: {', '.join(models)}" for name, models in estimators.items())
            notes[f"Estimators: {listed}."] = None
        alone = f", {next(iter(estimators))}" if len(estimators) == 1 else ""
        title = f"{part.study}, {form} prompts: {gender} in % of the target words' probability [95 %]{alone}"
        heads = [jobs_of(part, group) if group in SPLIT else group for group in groups]
        header = (tuple(map(Heading, ("", "bias type", *heads))),)
        yield TitledTable(title, header, tuple(rows), " ".join(notes), n_text=2)


def _share(block: ProbeBlock, model: str, group: str, notes: dict[str, None]) -> str:
    """Write share and interval, with a star where it is weak evidence."""
    row = block.row(model, group)
    if row is None or row["share"] is None:
        notes[f"{UNDEFINED} not measured: {reason_of(row or {})}."] = None
        return UNDEFINED
    shown = share_of(row)
    if block.is_weak(model):
        shown += " *"
        held = f"less than {percent(WEAK)} % of the probability (coverage)"
        notes[f"* weak evidence: the target words have {held}."] = None
    return shown


def _personas(part: Part) -> TitledTable:
    every, notes = occupations_of(part), dict[str, None]()
    rows = []
    for model in dict.fromkeys([*models_of(part), *distinct(every, "model")]):
        rows_of_model, shown = where(every, model=model), UNDEFINED
        if shares := [row["female_share"] for row in defined(rows_of_model, "female_share")]:
            shown = f"{percent(min(shares))} to {percent(max(shares))}"
            notes |= {f"{model}: {note}.": None for note in [by_labels(rows_of_model)] if note}
        else:
            why = reasons_of(rows_of_model) if rows_of_model else "no texts without a gender in the prompt"
            notes[f"{UNDEFINED} women's share not measured: {why}."] = None
        rows.append((short(model, LABEL), shown, *_tests(part, model, notes)))
    n = count(len(distinct(every, "occupation")), "occupation")
    title = f"{part.study}: women in texts without a gender in the prompt, {n} [95 %]"
    heads = ("", "% by occupation", "minus workforce", "SRB without gendered words, women minus men")
    return TitledTable(title, (tuple(map(Heading, heads)),), tuple(rows), " ".join(notes))


def _tests(part: Part, model: str, notes: dict[str, None]) -> tuple[str, str]:
    """Write the mean difference from labour statistics, and that of women's and men's SRB."""
    labour, srb = against_labour(part, model), women_against_men(part, model, "srb_content")
    minus_labour = nearer = UNDEFINED
    if labour is not None and labour["estimate"] is not None:
        ends = " (no interval)"
        if labour["ci_low"] is not None:
            ends = f" [{points_range(max(labour['ci_low'], -1.0), min(labour['ci_high'], 1.0))}]"
        minus_labour = point_number(labour["estimate"]) + ends
    else:
        why = reason_of(labour) if labour is not None else "no occupation has both shares"
        notes[f"{UNDEFINED} minus workforce not measured: {why}."] = None
    if srb is not None and srb["estimate"] is not None:
        ends = " to ".join(plain_number(end) for end in (srb["ci_low"], srb["ci_high"]) if end is not None)
        nearer = plain_number(srb["estimate"]) + (f" [{ends}]" if ends else "")
    else:
        scores = [row for row in where(part.tables.get("srb", ()), model=model) if row["srb"] is None]
        why = reasons_of(scores) if scores else reason_of(srb or {"reason": "no score was made"})
        notes[f"{UNDEFINED} SRB not measured: {why}."] = None
    return minus_labour, nearer
