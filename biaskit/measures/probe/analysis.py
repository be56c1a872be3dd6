"""From stored rows to the public tables of a run; needs no model."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from biaskit.common.provenance import canonical_json
from biaskit.common.wording import listed, percent
from biaskit.compare.changes import ZONE
from biaskit.compare.comparison import merge_tests
from biaskit.compare.validity import validity_rows
from biaskit.errors import RunError
from biaskit.measurement import words
from biaskit.measures.probe.answers import AnswersOfRun, counted, differences_said, outcome_rows
from biaskit.measures.probe.compare import between_models
from biaskit.measures.probe.continuations import read_continuations
from biaskit.measures.probe.contrasts import StudyCells
from biaskit.measures.probe.design import ProbeDesign, read
from biaskit.measures.probe.effects import tables as effect_tables
from biaskit.measures.probe.next_tokens import SaidNext
from biaskit.measures.probe.reliability import reliability_rows
from biaskit.measures.probe.requests import CellsOfRun
from biaskit.measures.probe.study import ProbeStudy
from biaskit.measures.probe.validity import of_jobs
from biaskit.measures.probe.ways.tables import notes as notes_on_ways
from biaskit.measures.probe.ways.tables import read_ways, ways_rows
from biaskit.models.entry import ModelEntry
from biaskit.models.options import IN_MEMORY
from biaskit.progress import Watcher
from biaskit.records import CellShares
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import Manifest, read_manifest
from biaskit.runs.sample_batches import ENOUGH, SampleBatches, add_up
from biaskit.runs.score_rows import describe_analysis
from biaskit.runs.shares.cells import MAY_HIDE, cell_shares, extensions_of
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.stats.arms import Arm
from biaskit.stats.contrasts import adjust
from biaskit.stats.verdict import Rule
from biaskit.tables.coverage import WEAK, better_format, coverage_of, is_under
from biaskit.tables.query import Row, defined, distinct, grouped, in_main_context, where
from biaskit.tables.reasons import do_differ
from biaskit.tables.sets import TableSet

METHODS_VERSION = {"shares": 3, "effects": 5, "outcomes": 4, "reliability": 2, "validity": 1}
"""Raised when the same rows would give other tables."""
CHOICES = ("interval", "min_coverage", "on_prefix", "margin", ZONE, "conclusion", "seed", "skip_bad_lines")
"""Keys that analysis.json states beside the contrast, so that the same tables can be made again."""
NOTES: Mapping[str, str] = words("probe")["notes"]


def tables(run: Path, overrides: Mapping[str, Any] | None = None, watcher: Watcher | None = None) -> TableSet:
    """Make every table of a run from its rows, rows between models included; `write` puts them in place."""
    manifest, made = read_manifest(run), TableSet(run)
    design = read(manifest.resolved, overrides)
    study = design.study
    rule = Rule(design.contrast[:1], study.strict, study.binary)
    reading, answerers = Reading(), Answerers()
    stored = _read_cells(run, manifest, design, reading, answerers)
    cells, answers = stored.cells, stored.answers
    in_order = [x.cell for x in cells]
    choices = StudyCells(
        groups=design.groups,
        contrast=design.contrast,
        rule=rule,
        levels=design.levels,
        min_coverage=study.min_coverage,
        interval=study.interval,
        margins=study.margin,
        seed=study.seed,
        frames=design.frames,
    )
    rows_by_table = effect_tables(cells, choices)
    rows_by_table["probe_next"] = stored.said_next.rows(in_order)
    n_unused = stored.n_unused + read_continuations(run, manifest, answers, reading, answerers)
    rows_by_table["probe_outcomes"], outcome_tests = outcome_rows(answers, in_order)
    said = differences_said(answers, in_order, choices.blocks)
    if answers.cells:
        for row, cell in zip(rows_by_table["probe_prompts"], in_order, strict=True):
            row |= counted(answers, cell)
        for row in rows_by_table["probe_jobs"]:
            of_job = said.get(Arm(*map(row.get, Arm._fields)), {}).get(row["job"])
            row["sampled_difference"] = fmean(of_job) if of_job else None
    asked = read_ways(run, manifest, design, reading, answerers)
    rows_by_table["ways"] = list(ways_rows(asked))
    rows_by_table["reliability"] = list(reliability_rows(choices, asked, said))
    rows_by_table["validity"] = []
    for model in manifest.models:
        rows_by_table["validity"] += validity_rows(model, list(of_jobs(rows_by_table, model)))
    if outcome_tests:
        rows_by_table["tests"] = adjust([*rows_by_table["tests"], *outcome_tests], rule)
    made.notes += reading.notes
    for name, rows in rows_by_table.items():
        if rows:  # a table that was not made is absent
            with_answers = bool(answers.cells)  # a table without them has no columns for them
            made.add(name, rows, groups=design.groups, contrast=design.contrast, scoped=with_answers)
    notes = [*_notes(stored, rows_by_table["probe_groups"], study, manifest.models), *notes_on_ways(asked)]
    how: dict[str, Any] = {"methods": METHODS_VERSION, "rows_digest": stored.digest, "n_prompts": len(cells)}
    describe_analysis(made, design, manifest, answerers, notes, keys=CHOICES, n_unused=n_unused, **how)
    if len(manifest.models) > 1:
        cells_of_run = made.rows("probe_prompts")
        rows, notes = between_models(cells_of_run, design, manifest.models, f"{run} probe_prompts.csv")
        made.notes += notes
        made.add("tests", merge_tests(made.rows("tests"), rows, rule))
    return made


@dataclass(slots=True)
class _StoredCells:
    """The cells that a run's design needs, as its rows answer them."""

    answers: AnswersOfRun  # that sampling drew
    cells: list[CellShares] = field(default_factory=list)  # in study order
    digest: str = ""  # of the rows used
    n_unused: int = 0  # rows that were not needed
    n_open: int = 0  # cells that were begun and need another batch of samples
    said_next: SaidNext = field(default_factory=SaidNext)  # tokens after the prompts, where rows keep them
    target_words: dict[tuple[str, str, int], Sequence[Row]] = field(default_factory=dict)
    """(model, bias type, template) → the target words of one of its rows, with their tokens."""


def _read_cells(
    run: Path, manifest: Manifest, design: ProbeDesign, reading: Reading, answerers: Answerers
) -> _StoredCells:
    """Read every row once, and say what is wrong with one that does not fit (or leave it out)."""
    path, study = rows_file(run, "probe"), design.study
    if not path.is_file():
        raise RunError(f"{run} has no {path.name}: nothing was stored there. Rerun the probe command.")
    asked, stored = CellsOfRun(manifest.models, design), _StoredCells(AnswersOfRun(design))
    cells = asked.cells
    shares_of: list[CellShares | None] = [None] * len(cells)
    digests: list[bytes] = [b""] * len(cells)
    drawn: dict[int, dict[int, Row]] = {}  # place of a cell → batch → its row

    def shares(i: int, row: Row | None) -> CellShares:
        return cell_shares(
            cells[i], row, design.groups, word_boundary=study.word_boundary, contrast=design.contrast
        )

    def is_known(i: int, batch: int) -> bool:
        return shares_of[i] is not None or batch in drawn.get(i, ())

    rows = answerers.counting(read_rows(path, skip_bad=study.skip_bad_lines, reading=reading))
    for row, answered in asked.answered(rows, path, reading, answerers, is_known):
        stored.n_unused += not answered
        for i in answered:
            wording = cells[i].model, cells[i].bias_type, cells[i].template_id
            stored.target_words.setdefault(wording, row["target_words"])
            stored.said_next.add(cells[i], row, study.word_boundary)
            if "counts" in row:
                # Its other batches may lie anywhere in the file.
                drawn.setdefault(i, {})[row.get("batch", 0)] = {name: row[name] for name in _OF_SAMPLES}
                if not row.get("batch", 0):  # whether there are later batches depends on what was said
                    stored.answers.add(cells[i], row)
            else:
                shares_of[i], digests[i] = shares(i, row), _digest(row)
    batches_of = {
        label: SampleBatches.up_to(entry.samples, study.max_samples_per_prompt)
        for label, entry in manifest.models.items()
    }
    for i, rows_of_cell in drawn.items():
        all_batches, used, goes_on = add_up(rows_of_cell, batches_of[cells[i].model])
        shares_of[i] = shares(i, all_batches)
        digests[i] = b"".join(_digest(rows_of_cell[number]) for number in used)
        stored.n_open += goes_on and all_batches is not None
        stored.n_unused += len(rows_of_cell) - len(used)
    stored.cells = [x or shares(i, None) for i, x in enumerate(shares_of)]
    stored.digest = hashlib.sha256(b"".join(digests)).hexdigest()
    return stored


_ANSWERED = ("k", "listed", "may_hide", "listed_next", "samples", "counts")
"""What a row's numbers are computed from beside its target words: lists of tokens, counts of samples."""
_OF_SAMPLES = ("key", "estimator", "target_words", "samples", "counts")


def _digest(row: Row) -> bytes:
    numbers = [row["key"], row["target_words"], *(row[name] for name in _ANSWERED if name in row)]
    return hashlib.sha256(canonical_json(numbers).encode("ascii")).digest()


# --- what a careful reader must know ----------------------------------------------------------------


def _notes(
    stored: _StoredCells, groups: Sequence[Row], study: ProbeStudy, models: Mapping[str, ModelEntry]
) -> Iterator[str]:
    """Yield the warnings that belong beside the tables, the gravest first; `groups`: of probe_groups.csv."""
    missing = below = hiding = 0
    labels: dict[str, dict[str, None]] = {}  # estimator → models
    wordings: dict[tuple[str, str, int], None] = {}
    for c in stored.cells:
        missing += c.shares is None
        below += c.coverage is not None and c.coverage < study.min_coverage
        hiding += c.reason == MAY_HIDE
        wordings[c.cell.model, c.cell.bias_type, c.cell.template_id] = None
        if c.estimator:
            labels.setdefault(c.estimator, {})[c.cell.model] = None
    n = len(stored.cells)
    if missing:
        yield NOTES["no_share"].format(missing, n)
    if stored.n_open:
        yield NOTES["few_samples"].format(stored.n_open, n, enough=ENOUGH, most=study.max_samples_per_prompt)
    yield from _low_coverage(groups, models, binary=study.binary)
    if len(distinct(groups, "prompt_format")) > 1:
        yield NOTES["formats_differ"]
    if do_differ(labels):
        yield NOTES["estimators_differ"].format("; ".join(f"{e}: {', '.join(m)}" for e, m in labels.items()))
        if "sampling" in labels:
            yield NOTES["whole_words"]
    if below:
        yield NOTES["low_coverage"].format(below, n, min_coverage=study.min_coverage)
    if edge := sum(not 0.05 <= row["share"] <= 0.95 for row in defined(groups, "share")):
        yield NOTES["near_the_edge"].format(edge)
    if hiding:
        yield NOTES["may_hide"].format(hiding, n)
    begun: dict[str, dict[str, None]] = {}  # model → notes on target words that begin another group's
    for wording in wordings:
        target_words = stored.target_words.get(wording, ())
        for short, places in zip(target_words, extensions_of(target_words, study.word_boundary), strict=True):
            for long in map(target_words.__getitem__, places):
                if short["group"] != long["group"]:
                    begun.setdefault(wording[0], {})[NOTES["begins"].format(short=short, long=long)] = None
    for model, pairs in begun.items():
        yield f"{model}: {next(iter(pairs))} ({len(pairs)} such pairs)"


def _low_coverage(groups: Sequence[Row], models: Mapping[str, ModelEntry], *, binary: bool) -> Iterator[str]:
    """Say which models' shares are weak evidence, and what other prompt formats would give."""
    low: dict[str, dict[str, float]] = {label: {} for label in models}
    main = in_main_context(where(groups, debiasing_id=0))
    for (label, bias_type), rows in grouped(main, "model", "bias_type").items():
        ends = coverage_of(rows, of_two=binary)
        if ends and is_under(ends, WEAK):
            low[label][bias_type] = ends[0]
    for label, entry in models.items():
        yield from format_notes(label, entry, low[label], alone=len(models) == 1)


def format_notes(label: str, entry: ModelEntry, low: Mapping[str, float], *, alone: bool) -> Iterator[str]:
    """Say how low a model's coverage is, and which format has more; `low`: bias type → weak coverage."""
    spec, prompt_format, reach = entry.spec, entry.prompt_format, entry.reach
    if low and not spec.startswith("scripted:"):
        held = listed([f"{percent(least)} % ({bias_type} prompts)" for bias_type, least in low.items()])
        hint = NOTES["try_formats"].format(shlex.quote(spec))
        if all(0 < max(reach.get(bias_type, {}).values(), default=0) < WEAK for bias_type in low):
            hint = NOTES["no_format"].format(percent(WEAK))
        elif spec.startswith(IN_MEMORY):
            hint = ""
        yield f"{label}: weak evidence, the words of the two groups have only {held}{hint}"
    both = []
    for bias_type, tried in reach.items():
        if better := better_format(tried, prompt_format):
            ends = {"most": percent(tried[better]), "own": percent(tried[prompt_format])}
            note = NOTES["better_format"].format(
                label, bias_type=bias_type, better=better, prompt_format=prompt_format, **ends
            )
            yield note if alone else f"{note}, in a run of this model alone"
        if prompt_format == "chat-prefill" and "raw" in tried:
            both.append(
                f"{percent(tried[prompt_format])} % (raw {percent(tried['raw'])} %) on {bias_type} prompts"
            )
    if both:
        yield NOTES["chat_model"].format(label, prompt_format, listed(both))
