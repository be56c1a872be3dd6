"""From the rows of ways.jsonl to ways.csv (methods/reliability#ways)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from biaskit.measures.probe.contrasts import StudyCells
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.effects import tables
from biaskit.measures.probe.prompts import CELL, model_key
from biaskit.measures.probe.ways.ask import ROWS
from biaskit.measures.probe.ways.design import is_main
from biaskit.models.entry import Way
from biaskit.records import PromptCell
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import Manifest
from biaskit.runs.sample_batches import SampleBatches, add_up
from biaskit.runs.score_rows import fault_of
from biaskit.runs.shares.cells import cell_shares
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.stats.arms import FEMALE_DOMINATED, MALE_DOMINATED, CrossedCells, complete_in_all
from biaskit.stats.arrays import FloatArray
from biaskit.tables.coverage import WEAK, coverage_of
from biaskit.tables.query import Row, column, defined, distinct, first, where

GAP = {"kind": "crossed", "contrast": "groups", "quantity": "binary_share"}
"""Columns of the tests.csv row that has a gap of *she* of *she* and *he* between groups of jobs."""
ONE_GROUP = "one group of jobs: no gap"
_NUMBERS = (
    *("estimator", "coverage", "binary_coverage", "gap", "ci_low", "ci_high", "neither_share"),
    *("n_jobs", "n_templates"),
)
_Drawn = dict[PromptCell, dict[int, Row]]


@dataclass(frozen=True, slots=True)
class AskedWay:
    """One way of one model and bias type: its row of ways.csv, and what that rests on."""

    row: dict[str, Any]
    values: Sequence[FloatArray] = ()  # share of two `[I, J]` of both groups of jobs; none without a gap


def read_ways(
    run: Path, manifest: Manifest, design: ProbeDesign, reading: Reading, answerers: Answerers
) -> list[AskedWay]:
    """Read ways.jsonl and make each way's numbers, in the order of models, bias types and ways."""
    path, skip_bad = rows_file(run, ROWS), design.study.skip_bad_lines
    words_of = {str(bias_type): words for (bias_type, _), words in design.target_words.items()}
    cells: dict[tuple[str, str], _Drawn] = {}  # model key, way → cell → batch → row
    for row in read_rows(path, skip_bad=skip_bad, reading=reading) if path.exists() else ():
        words = words_of.get(row.get("bias_type", ""))
        fault = fault_of(row, words) if words else "its bias type is not of this study"
        if fault is not None:
            reading.refuse(path, fault, skip_bad=skip_bad)
            continue
        answerers.add_answers(row)
        named = {name: row[name] for name in (*CELL, "model", "job_group")}
        drawn = cells.setdefault((row["model_key"], row["way"]), {})
        drawn.setdefault(PromptCell(**named, workforce_share=None), {})[row.get("batch", 0)] = row
    asked = []
    for label, entry in manifest.models.items():
        for bias_type in dict.fromkeys(template.bias_type for template in design.templates):
            for way in entry.ways or ():
                estimator = way.estimator.in_key() if way.estimator else None
                of_way = cells.get((model_key(entry.fingerprint, design.study, estimator), way.name), {})
                of_type = {cell: rows for cell, rows in of_way.items() if cell.bias_type == bias_type}
                main = is_main(way, entry, design.study)
                scope = {"model": label, "bias_type": bias_type, **way.scope, "main": main}
                asked.append(_of_way(design, scope, way, of_type))
    return asked


def _of_way(design: ProbeDesign, scope: Row, way: Way, drawn: _Drawn) -> AskedWay:
    """Make the numbers of one way, by the engine of a run's own tables."""
    study = design.study
    row = {**scope, **dict.fromkeys(_NUMBERS), "counted": False, "reason": way.reason or "not asked"}
    samples = way.estimator.samples if way.estimator else None
    batches = SampleBatches.up_to(samples, study.max_samples_per_prompt)
    cells = []
    for cell, rows in drawn.items():
        of_all: Row | None = add_up(rows, batches)[0] if "counts" in rows[min(rows)] else rows.get(0)
        cell = replace(cell, model=row["model"])
        contrast, boundary = design.contrast, study.word_boundary
        cells.append(cell_shares(cell, of_all, design.groups, word_boundary=boundary, contrast=contrast))
    if not cells:
        return AskedWay(row)
    choices = StudyCells(
        groups=design.groups,
        contrast=design.contrast,
        levels={},
        margins={},
        seed=study.seed,
        min_coverage=study.min_coverage,
        interval=study.interval,
    )
    made = tables(cells, choices)
    groups, [block] = made["probe_groups"], choices.blocks.values()
    row |= {name: groups[0][name] for name in ("estimator", "n_templates", "reason")}
    row["n_jobs"] = len(block.jobs)
    known = coverage_of(groups)
    row["binary_coverage"] = known and known[0]
    for name, of_name in (
        ("coverage", column(defined(groups, "coverage"), "coverage")),
        ("neither_share", _neither(groups, design.contrast)),
    ):
        row[name] = fmean(of_name) if of_name else None
    pair = pair_of(distinct(groups, "job_group"))
    if pair is None:
        return AskedWay({**row, "reason": ONE_GROUP})
    gap = first(made["tests"], **GAP, group_a=pair[0], group_b=pair[1])
    if gap is None or gap.estimate is None:
        return AskedWay({**row, "reason": gap and gap.reason})
    row |= {"gap": gap.estimate, "ci_low": gap.ci_low, "ci_high": gap.ci_high, "reason": gap.reason}
    row["counted"] = known is not None and known[0] >= WEAK
    return AskedWay(row, values_of(block, choices.group_of, pair))


def _neither(groups: Sequence[Row], contrast: Sequence[str]) -> list[float]:
    """List for each group of jobs the share of what belongs to neither gender of the contrast."""
    shares = []
    for job_group in distinct(groups, "job_group"):
        of_group = [row for row in where(groups, job_group=job_group) if row["gender"] not in contrast]
        if of_group and len(defined(of_group, "share")) == len(of_group):
            shares.append(sum(column(of_group, "share")))
    return shares


def pair_of(job_groups: Sequence[str]) -> tuple[str, str] | None:
    """Choose the two groups of jobs between which a gap is shown; None of one group."""
    split = [group for group in (FEMALE_DOMINATED, MALE_DOMINATED) if group in job_groups]
    pair = split if len(split) == 2 else [*job_groups[:2]]
    return (pair[0], pair[1]) if len(pair) == 2 else None


def values_of(
    block: CrossedCells, group_of: Mapping[str, str], pair: tuple[str, str]
) -> tuple[FloatArray, FloatArray]:
    """Give the shares of two of a block `[I, J]`, of both groups of jobs, in complete templates."""
    values = block.numbers_at(complete_in_all([block])[0])[-1].point
    first_rows, second_rows = ([i for i, job in enumerate(block.jobs) if group_of[job] == g] for g in pair)
    return values[first_rows], values[second_rows]
