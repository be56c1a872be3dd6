"""Shares of a probe in other formats (`exchange/`): their names, a model card's table, cells and rows."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter, itemgetter
from typing import Any

from biaskit.common.wording import people, percent, share_with_interval
from biaskit.exchange.card import CardTable
from biaskit.exchange.results import Named
from biaskit.measurement import words
from biaskit.measures.probe.design import read
from biaskit.measures.probe.prompts import CELL
from biaskit.measures.probe.requests import CellsOfRun
from biaskit.records import PromptCell
from biaskit.report.findings.sentence import OPENINGS
from biaskit.runs.collection import Part, StoredRun
from biaskit.tables.quantities import SHARES
from biaskit.tables.query import Row, where


def publish(run: StoredRun, row: Row) -> Named:
    """Name a share of probe_groups.csv; its interval rests on cells."""
    asked = f"{row['bias_type']}/{row['job_group']}/debiasing prompt {row['debiasing_id']}/{row['context']}"
    n = row["n_jobs"] * row["n_templates"] if row["n_jobs"] and row["n_templates"] else None
    method = words("probe")["intervals"][run.analysis["choices"].get("interval", "crossed")]
    return Named(row["gender"], f"{asked}/{row['prompt_format']}/{row['gender']}", n, method)


def card(part: Part) -> CardTable:
    """Make the table of a model card: shares of every group without a debiasing prompt."""
    every = part.tables.get("probe_groups", ())
    blocks: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in where(every, debiasing_id=0, context="plain") or every:
        blocks.setdefault((row["model"], row["bias_type"], row["job_group"]), {})[row["gender"]] = row
    rows = []
    for (model, bias_type, jobs), row_of in blocks.items():
        first = row_of[part.groups[0]]
        coverage = "–" if first["coverage"] is None else f"{percent(first['coverage'])} %"
        shown = [model, OPENINGS.get(bias_type, bias_type), f"{jobs} ({first['n_jobs']})"]
        of_two = row_of[part.contrast[0]]
        shown.append(share_with_interval(*map(of_two.__getitem__, SHARES[True])))
        for gender in part.groups:
            row = row_of[gender]
            shown.append(share_with_interval(row["share"], row["ci_low"], row["ci_high"]))
        rows.append([*shown, coverage])
    says = words("probe")["card"]
    a, b = map(people, part.contrast)
    heads = ("Model", "Prompts", "Jobs", f"{a} among {a} and {b}", *map(people, part.groups), "Coverage")
    return CardTable(says["title"], says["about"], heads, rows)


def samples(run: StoredRun) -> Iterator[tuple[str, str, list[Row], Row]]:
    """Yield every answered cell: its model, bias type, stored rows, and row of probe_prompts.csv."""
    place, place_of_row = attrgetter("model", *CELL), itemgetter("model", *CELL)
    rows: dict[tuple[Any, ...], list[Row]] = {}
    for cell, row in answered_cells(run):
        rows.setdefault(place(cell), []).append(row)
    for of_cell in run.tables.get("probe_prompts", ()):
        if stored := rows.get(place_of_row(of_cell)):
            yield of_cell["model"], of_cell["bias_type"], stored, of_cell


def answered_cells(run: StoredRun) -> Iterator[tuple[PromptCell, dict[str, Any]]]:
    """Yield (cell, row) for every stored row of a run's own question, in the order of the rows.

    Models have their names of the collection. A row that two labels of one model share comes twice, a drawn
    cell once for each batch; rows of other questions are passed over, as in the analysis.
    """
    asked = CellsOfRun(run.manifest.models, read(run.manifest.resolved))
    for row in run.rows():
        for place in asked.places_of(row):
            yield asked.cells[place], row
