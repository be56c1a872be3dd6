"""From the rows of ways.jsonl to ways.csv (methods/reliability#ways)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.measurement import words
from biaskit.measures.probe.contrasts import StudyCells, scope_of
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.effects import blocks_of_cells, or_none
from biaskit.measures.probe.prompts import CELL, model_key
from biaskit.measures.probe.ways.ask import ROWS
from biaskit.measures.probe.ways.design import CONTROLS, first_words, is_main, reduced
from biaskit.models.entry import Way
from biaskit.records import PromptCell
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import Manifest
from biaskit.runs.sample_batches import SampleBatches, add_up
from biaskit.runs.score_rows import fault_of
from biaskit.runs.shares.cells import cell_shares
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.stats.arms import FEMALE_DOMINATED, MALE_DOMINATED, complete_in_all, rows_of_groups
from biaskit.stats.contrasts import NO_TEMPLATE, between_groups
from biaskit.tables.coverage import WEAK
from biaskit.tables.query import Row, apart_from, distinct, grouped

ONE_GROUP = "one group of jobs: no gap"
_NUMBERS = (
    *("estimator", "coverage", "binary_coverage", "gap", "ci_low", "ci_high", "neither_share"),
    *("n_jobs", "n_templates"),
)
_COLUMNS = {*CELL, "model_key", "way"}
_Drawn = dict[PromptCell, dict[int, Row]]


def read_ways(
    run: Path, manifest: Manifest, design: ProbeDesign, reading: Reading, answerers: Answerers
) -> list[dict[str, Any]]:
    """Read ways.jsonl and make the rows of ways.csv, control items among them, with one column more.

    `values`: the shares of two `[I, J]` of both groups of jobs, or of control items; none without a gap.
    """
    path, skip_bad = rows_file(run, ROWS), design.study.skip_bad_lines
    words_of: dict[Any, Any] = dict(design.target_words)
    words_of |= first_words(design)
    cells: dict[tuple[str, str, str], _Drawn] = {}  # model key, way, bias type → cell → batch → row
    for row in read_rows(path, skip_bad=skip_bad, reading=reading) if path.exists() else ():
        fault: str | None = "it is of no way to ask in this study"
        if _COLUMNS <= row.keys() and row["bias_type"] in words_of:
            own = row["bias_type"], row["template_id"]
            fault = fault_of(row, words_of.get(own, words_of[row["bias_type"]]))
        if fault is not None:
            reading.refuse(path, fault, skip_bad=skip_bad)
            continue
        answerers.add_answers(row)
        # A row that was taken over from another run names the group of that run's list.
        named = {name: row[name] for name in CELL} | {"job_group": ""}
        drawn = cells.setdefault((row["model_key"], row["way"], row["bias_type"]), {})
        drawn.setdefault(PromptCell(**named, model="", workforce_share=None), {})[row.get("batch", 0)] = row
    asked = []
    for label, entry in manifest.models.items():
        for bias_type in dict.fromkeys(map(attrgetter("bias_type"), design.templates)):
            for way in entry.ways or ():
                estimator = way.estimator.in_key() if way.estimator else None
                key = model_key(entry.fingerprint, design.study, estimator), way.name, bias_type
                main = is_main(way, entry, design.study)
                scope = {"model": label, "bias_type": bias_type, **way.scope, "main": main}
                asked.append(_of_way(design, scope, way, cells.get(key, {})))
    return asked


def ways_rows(asked: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of ways.csv as they are written."""
    for row in apart_from(asked, wording=CONTROLS):
        yield {name: value for name, value in row.items() if name != "values"}


def notes(asked: Sequence[Row]) -> Iterator[str]:
    """Say which models take one prompt format alone, so that only the wording can differ."""
    for (model,), ways in grouped(asked, "model").items():
        formats = distinct(ways, "prompt_format")
        if len(formats) == 1:
            yield words("probe")["notes"]["one_format"].format(model, *formats)


def _of_way(design: ProbeDesign, scope: Row, way: Way, drawn: _Drawn) -> dict[str, Any]:
    """Make the numbers of one way, by the engine of a run's own tables."""
    study = design.study
    row = {**scope, **dict.fromkeys(_NUMBERS), "counted": False, "values": ()}
    row["reason"] = way.reason or "not asked"
    samples = way.estimator.samples if way.estimator else None
    batches = SampleBatches.up_to(samples, study.max_samples_per_prompt)
    if not drawn:
        return row
    arm, one = reduced(design, way), next(iter(drawn))
    group_of, cells = {}, []
    # The file may hold other jobs and templates, of an earlier command; one that failed is not there.
    for template, item in product(arm.templates, arm.items):
        if template.bias_type != row["bias_type"]:
            continue
        group_of[item.name] = item.group
        cell = replace(one, template_id=template.id, job=item.name)
        rows = drawn.get(cell, {})
        of_all = rows.get(0)
        if of_all is not None and "counts" in of_all:
            of_all, _, _ = add_up(rows, batches)
        cell = replace(cell, model=row["model"], job_group=item.group)
        contrast, boundary = design.contrast, study.word_boundary
        cells.append(cell_shares(cell, of_all, design.groups, word_boundary=boundary, contrast=contrast))
    choices = StudyCells(
        groups=design.groups,
        contrast=design.contrast,
        levels={},
        margins={},
        seed=study.seed,
        min_coverage=study.min_coverage,
        interval=study.interval,
    )
    [block] = blocks_of_cells(cells, choices).values()
    templates, note = complete_in_all([block])
    row |= {"estimator": block.estimator, "n_jobs": len(block.jobs), "n_templates": len(templates)}
    row |= {"reason": note or ("" if templates else NO_TEMPLATE)}
    rows_of, two = rows_of_groups(block.jobs, group_of), list(choices.binary)
    pair = pair_of(list(rows_of))
    values = block.numbers_at(templates)[-1]
    if way.wording == CONTROLS and templates:
        return {**row, "values": (values.point,)}
    if pair is None or not templates:
        return {**row, "reason": row["reason"] or ONE_GROUP}
    of_two = block.at(block.masses, templates)[two].sum(axis=0)
    covered = min(float(of_two[rows].mean()) for rows in rows_of.values())
    row |= {"coverage": or_none(block.at(block.coverage, templates).mean())}
    row["binary_coverage"] = or_none(covered)
    neither = np.delete(block.at(block.shares, templates), two, axis=0).sum(axis=0)
    row["neither_share"] = or_none(neither.mean()) if len(design.groups) > len(two) else None
    a, b = values[rows_of[pair[0]]], values[rows_of[pair[1]]]
    asked = replace(scope_of(block.arm, "groups"), quantity="binary_share", group_a=pair[0], group_b=pair[1])
    gap = between_groups(a, b, scope=asked, margins={}, note=note)[-1]
    row |= {"gap": gap.estimate, "ci_low": gap.ci_low, "ci_high": gap.ci_high, "reason": gap.reason}
    row["counted"] = gap.estimate is not None and covered >= WEAK
    return {**row, "values": (a.point, b.point)}


def pair_of(job_groups: Sequence[str]) -> tuple[str, str] | None:
    """Choose the two groups of jobs between which a gap is shown; None of one group."""
    split = [group for group in (FEMALE_DOMINATED, MALE_DOMINATED) if group in job_groups]
    pair = split if len(split) == 2 else [*job_groups[:2]]
    return (pair[0], pair[1]) if len(pair) == 2 else None
