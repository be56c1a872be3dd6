"""The tables of OccuGender (3-4, 9-18) and of Mattern et al. (3-4, 7-8) from a part's stored tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from biaskit.common.wording import count
from biaskit.measurement import words
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.printing.document import (
    CONTEXTS,
    Frame,
    by_contexts,
    by_debiasing,
    by_debiasing_and_model,
    by_model,
    by_types,
    jobs_in,
)
from biaskit.records import NO_DEBIASING
from biaskit.report.reasons import because
from biaskit.report.render.document import PaperTable, TitledTable
from biaskit.runs.claims import DEBIASING, MATTERN, OCCUGENDER, Claim, claims_of, summary_of
from biaskit.runs.collection import Part
from biaskit.runs.store import slug
from biaskit.tables.query import Row, Tables, distinct, grouped, named, where

_PAPERS: Mapping[str, Any] = words("probe")["papers"]
UNIT = "% of the probability on the target words"


def papers(part: Part, _between: Tables) -> list[PaperTable]:
    """Make the papers' tables that a part of the probe gives, in the papers' order.

    A study after Mattern has that paper's tables, every other one OccuGender's layout. Models asked in
    several prompt formats have tables of their own for each format. A table that cannot be made is absent. A
    table of another question than the paper's has neither the paper's title nor its file name.
    """
    groups = part.tables.get("probe_groups", ())
    tables_of = _mattern if any(map(part.claim, MATTERN.values())) else _occugender
    level_of = {int(i["id"]): str(i.get("level") or "") for i in part.debiasing_prompts}
    genders = part.groups or tuple(distinct(groups, "gender"))
    tables: list[PaperTable] = []
    for (prompt_format,), rows in (formats := grouped(groups, "prompt_format")).items():
        averages = where(part.tables.get("probe_levels", ()), prompt_format=prompt_format)
        ending = format_said = ""
        if len(formats) > 1:
            ending, format_said = f"-{slug(prompt_format)}", f", prompt format {prompt_format}"
        levels = {number: level_of.get(number, "") for number in sorted(named(rows, "debiasing_id"))}
        frame = Frame(genders, part.min_coverage, levels)
        tables += tables_of(frame, rows, averages, part, ending, format_said)
    return tables


def frame_of(design: ProbeDesign) -> Frame:
    """Lay out a resolved study's tables; a title names the paper's table where the numbers are its."""
    resolved = design.describe()
    claims, titles = claims_of(resolved), {}
    levels = {i.id: i.level or "" for i in design.debiasing_prompts if i is not None}
    for bias_type in _PAPERS["tasks"]:
        places = [(MATTERN, _PAPERS["mattern"])] + ([] if levels else [(OCCUGENDER, _PAPERS["occugender"])])
        claimed = [claims[tables[bias_type]].place(place[bias_type]) for tables, place in places]
        titles[bias_type] = getattr(design.study.table, bias_type) + next(filter(None, claimed), "")
    two = design.contrast if design.study.binary else ()
    return Frame(design.groups, design.study.min_coverage, levels, titles, summary_of(resolved), two)


def _occugender(
    frame: Frame, rows: Sequence[Row], levels: Sequence[Row], part: Part, ending: str, format_said: str
) -> Iterator[PaperTable]:
    plain = where(rows, context="plain")
    for bias_type, title in _PAPERS["tasks"].items():
        claim = part.claim(OCCUGENDER[bias_type]) if plain else Claim.NONE
        if of_type := where(plain or rows, bias_type=bias_type, debiasing_id=NO_DEBIASING):
            place = claim.place(_PAPERS["occugender"][bias_type])
            table = by_model(frame, of_type, f"{title}{place}{format_said}: {UNIT}")
            name = claim.file_name(OCCUGENDER[bias_type], f"{bias_type}-bias")
            table = _explained(table, of_type, part, _PAPERS["intervals"] if claim else "")
            yield PaperTable(f"{name}{ending}", table)
    if not frame.levels:
        return
    types = [bias_type for bias_type in _PAPERS["tasks"] if where(plain or rows, bias_type=bias_type)]
    for model in distinct(rows, "model"):
        for context in distinct(rows, "context"):
            of_context, averages = (where(t, model=model, context=context) for t in (rows, levels))
            claim = part.claim(DEBIASING) if context == "plain" else Claim.NONE
            place = "" if context == "plain" else f", {CONTEXTS[context].lower()}"
            title = f"Debiasing prompts, {model}{claim.place(_PAPERS['debiasing'])}{place}{format_said}"
            table = by_debiasing(frame, of_context, averages, f"{title}: {UNIT}", by_types(types))
            name = claim.file_name(DEBIASING, "debiasing-prompts")
            name = f"{name}{ending}-{slug(model)}" + ("" if context == "plain" else f"-{context}")
            yield PaperTable(name, _explained(table, of_context, part, _PAPERS["no_intervals"]))


def _mattern(
    frame: Frame, rows: Sequence[Row], levels: Sequence[Row], part: Part, ending: str, format_said: str
) -> Iterator[PaperTable]:
    contexts = [context for context in CONTEXTS if where(rows, context=context)]
    for i, (bias_type, title) in enumerate(_PAPERS["prompts"].items()):
        if not (of_type := where(rows, bias_type=bias_type)):
            continue
        claim = part.claim(MATTERN[bias_type])
        own = f"task-prompts-{bias_type}"
        one_model = claim.file_name(f"mattern-table-{3 + i}", own) + ending
        every_model = claim.file_name(f"mattern-table-{7 + i}", own) + ending
        blocks = by_contexts(bias_type, contexts)
        for model in distinct(of_type, "model"):
            of_model, averages = (where(t, model=model) for t in (of_type, levels))
            full_title = f"{title}, {model}{claim.place(_PAPERS['mattern'][bias_type])}{format_said}: {UNIT}"
            table = by_debiasing(frame, of_model, averages, full_title, blocks, apart=True)
            table = _explained(table, of_model, part, _PAPERS["levels"])
            yield PaperTable(f"{one_model}-{slug(model)}", table)
        place = claim.place(f"Mattern et al., Table {7 + i}")
        full_title = f"{title}, every model{place}{format_said}: {UNIT}"
        table = by_debiasing_and_model(frame, of_type, full_title, blocks)
        yield PaperTable(every_model, _explained(table, of_type, part, _PAPERS["no_intervals"]))


def _explained(table: TitledTable, rows: Sequence[Row], part: Part, more: str) -> TitledTable:
    """Add to the layout's note the study, the numbers of jobs and templates, and the reasons of each –."""
    # by_model's own note counts jobs and templates already.
    counted, templates = "", []
    if "templates;" not in table.note:
        for (bias_type,), of_type in grouped(rows, "bias_type").items():
            n = max(named(of_type, "n_templates"), default=0)
            templates.append(count(n, f"{bias_type} template"))
        counted = f" Unit: mean over jobs and templates; {' and '.join(templates)}, {jobs_in(rows)}."
    study = f"Study {part.study}{f': {part.summary}' if part.summary else ''}."
    note = " ".join(filter(None, (f"{table.note}{counted}", more, study)))
    return replace(table, note=f"{note}{because(rows, 'share')}")
