"""The tables of OccuGender (3-4, 9-18) and of Mattern et al. (3-4, 7-8) from a part's stored tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from biaskit.common.wording import count
from biaskit.probe.design import ProbeDesign
from biaskit.probe.stored_design import describe_design
from biaskit.records import NO_INSTRUCTION
from biaskit.report.reasons import because
from biaskit.report.render.document import PaperTable, TitledTable
from biaskit.report.render.probe import (
    SETTINGS,
    Blocks,
    Frame,
    by_instruction,
    by_instruction_and_model,
    by_model,
    by_settings,
    by_types,
)
from biaskit.runs.claims import DEBIASING, MATTERN, OCCUGENDER, Claim, claims_of, summary_of
from biaskit.runs.collection import Part
from biaskit.runs.store import slug
from biaskit.tables.query import Row, defined, distinct, grouped, where

TASKS = {"explicit": "Explicit bias", "implicit": "Implicit bias"}
PROMPTS = {"explicit": "Task prompt one", "implicit": "Task prompts two to four"}
UNIT = "% of the probability on the listed words"
_OCCUGENDER = {"explicit": "OccuGender, Table 3", "implicit": "OccuGender, Table 4"}
_DEBIASING = "OccuGender, Tables 9-18"
_MATTERN = {"explicit": "Mattern et al., Table 3", "implicit": "Mattern et al., Table 4"}


def paper_tables(part: Part) -> list[PaperTable]:
    """The papers' tables that a part of the probe gives, in the papers' order.

    A study after Mattern has that paper's tables, every other one OccuGender's layout. Models asked in
    several prompt forms have tables of their own for each form. A table that cannot be made is absent. What
    is not the paper's question has neither its title nor its file names.
    """
    groups = part.tables.get("probe_groups", ())
    if part.engine != "probe":
        return []
    tables_of = _mattern if any(map(part.claim, MATTERN.values())) else _occugender
    level_of = {int(one["id"]): str(one.get("level") or "") for one in part.instructions}
    genders = part.groups or tuple(distinct(groups, "gender"))
    made: list[PaperTable] = []
    for (form,), own in (forms := grouped(groups, "prompt_form")).items():
        averages = where(part.tables.get("probe_levels", ()), prompt_form=form)
        end, said = (f"-{slug(form)}", f", prompt form {form}") if len(forms) > 1 else ("", "")
        asked = sorted({row["instruction_id"] for row in own} - {NO_INSTRUCTION})
        frame = Frame(genders, part.floor, {number: level_of.get(number, "") for number in asked})
        made += tables_of(frame, own, averages, part, end, said)
    return made


def frame_of(design: ProbeDesign) -> Frame:
    """What a resolved study says about its tables; a title says of which paper's table the numbers are."""
    resolved = describe_design(design)
    claims, titles = claims_of(resolved), {}
    levels = {i.id: i.level or "" for i in design.instructions if i is not None}
    for bias_type in TASKS:
        places = [(MATTERN, _MATTERN)] + ([] if levels else [(OCCUGENDER, _OCCUGENDER)])
        said = [claims[tables[bias_type]].place(places[bias_type]) for tables, places in places]
        titles[bias_type] = getattr(design.study.table, bias_type) + next(filter(None, said), "")
    return Frame(design.groups, design.study.coverage_floor, levels, titles, summary_of(resolved))


def _occugender(
    frame: Frame, rows: Sequence[Row], levels: Sequence[Row], part: Part, end: str, said: str
) -> Iterator[PaperTable]:
    plain = where(rows, setting="plain")
    for bias_type, title in TASKS.items():
        claim = part.claim(OCCUGENDER[bias_type]) if plain else Claim.NONE
        if own := where(plain or rows, bias_type=bias_type, instruction_id=NO_INSTRUCTION):
            place = claim.place(_OCCUGENDER[bias_type])
            table = by_model(frame, own, f"{title}{place}{said}: {UNIT}")
            name = claim.file_name(OCCUGENDER[bias_type], f"{bias_type}-bias")
            yield PaperTable(f"{name}{end}", _explained(table, own, part, _INTERVALS if claim else ""))
    if not frame.levels:
        return
    types = [one for one in TASKS if where(plain or rows, bias_type=one)]
    for model in distinct(rows, "model"):
        for setting in distinct(rows, "setting"):
            own, averages = (where(listed, model=model, setting=setting) for listed in (rows, levels))
            claim = part.claim(DEBIASING) if setting == "plain" else Claim.NONE
            place = "" if setting == "plain" else f", {SETTINGS[setting].lower()}"
            ending = "" if setting == "plain" else f"-{setting}"
            title = f"Debiasing instructions, {model}{claim.place(_DEBIASING)}{place}{said}: {UNIT}"
            table = by_instruction(frame, own, averages, title, by_types(types))
            name = claim.file_name(DEBIASING, "debiasing-instructions")
            yield PaperTable(
                f"{name}{end}-{slug(model)}{ending}", _explained(table, own, part, _NO_INTERVALS)
            )


def _mattern(
    frame: Frame, rows: Sequence[Row], levels: Sequence[Row], part: Part, end: str, said: str
) -> Iterator[PaperTable]:
    settings = [one for one in SETTINGS if where(rows, setting=one)]
    for i, (bias_type, title) in enumerate(PROMPTS.items()):
        if not (own := where(rows, bias_type=bias_type)):
            continue
        claim = part.claim(MATTERN[bias_type])
        names = [claim.file_name(f"mattern-table-{n + i}", f"task-prompts-{bias_type}") + end for n in (3, 7)]
        blocks: Blocks = by_settings(bias_type, settings)
        for model in distinct(own, "model"):
            ours, averages = (where(listed, model=model) for listed in (own, levels))
            whole = f"{title}, {model}{claim.place(_MATTERN[bias_type])}{said}: {UNIT}"
            table = by_instruction(frame, ours, averages, whole, blocks, apart=True)
            yield PaperTable(f"{names[0]}-{slug(model)}", _explained(table, ours, part, _LEVELS))
        whole = f"{title}, every model{claim.place(f'Mattern et al., Table {7 + i}')}{said}: {UNIT}"
        table = by_instruction_and_model(frame, own, whole, blocks)
        yield PaperTable(names[1], _explained(table, own, part, _NO_INTERVALS))


_INTERVALS = "OccuGender prints the share and ± alone, and does not say what ± is over."
_NO_INTERVALS = "probe_groups.csv has the intervals, and tests.csv each instruction against none."
_LEVELS = f"average: plain mean over the level's instructions. {_NO_INTERVALS}"


def _explained(table: TitledTable, rows: Sequence[Row], part: Part, more: str) -> TitledTable:
    """The layout's note with the study, the numbers of jobs and templates, and why – stands where it does."""
    # by_model's own note counts jobs and templates already.
    counted = "" if "templates;" in table.note else f" Unit: mean over jobs and templates; {_counts(rows)}."
    study = f"Study {part.study}{f': {part.summary}' if part.summary else ''}."
    said = " ".join(filter(None, (f"{table.note}{counted}", more, study)))
    return replace(table, note=f"{said}{because(rows, 'share')}")


def _counts(rows: Sequence[Row]) -> str:
    templates = {
        bias_type: max(row["n_templates"] or 0 for row in own)
        for (bias_type,), own in grouped(rows, "bias_type").items()
    }
    jobs = {row["job_group"]: row["n_jobs"] for row in defined(rows, "n_jobs")}
    asked = " and ".join(count(n, f"{bias_type} template") for bias_type, n in templates.items())
    return f"{asked}, {' and '.join(f'{n} {group}' for group, n in jobs.items())} jobs"
