"""From stored rows to the public tables of a run; needs no model."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biaskit.common.provenance import canonical_json
from biaskit.common.wording import listed, percent
from biaskit.compare.comparison import merge_tests
from biaskit.compare.same_prompts import PromptTexts
from biaskit.errors import RunError
from biaskit.measurement import words
from biaskit.measures.probe.answers import AnswersOfRun, counted, outcome_rows
from biaskit.measures.probe.compare import between_models
from biaskit.measures.probe.continuations import read_continuations
from biaskit.measures.probe.design import ProbeDesign, read
from biaskit.measures.probe.effects import tables as effect_tables
from biaskit.measures.probe.next_tokens import SaidNext
from biaskit.measures.probe.requests import places_of
from biaskit.measures.probe.sample_batches import ENOUGH, SampleBatches, add_up
from biaskit.measures.probe.shares.cells import MAY_HIDE, cell_shares, extensions_of
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.entry import ModelEntry
from biaskit.models.options import IN_MEMORY
from biaskit.progress import Watcher
from biaskit.records import CellShares
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import Manifest, read_manifest
from biaskit.runs.score_rows import describe_analysis, fault_of
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.stats.contrasts import adjust
from biaskit.stats.verdict import Rule
from biaskit.tables.coverage import WEAK, better_format, coverage_of, is_under
from biaskit.tables.query import Row, distinct, grouped, in_main_context, where
from biaskit.tables.sets import TableSet

METHODS_VERSION = {"shares": 2, "effects": 4, "outcomes": 3}
"""Raised when the same rows would give other tables."""
CHOICES = ("interval", "min_coverage", "on_prefix", "margin", "conclusion", "seed", "skip_bad_lines")
"""Keys that analysis.json states beside the contrast, so that the same tables can be made again."""
NOTES: Mapping[str, str] = words("probe")["notes"]


def tables(
    run: Path,
    overrides: Mapping[str, Any] | None = None,
    watcher: Watcher | None = None,  # noqa: ARG001
) -> TableSet:
    """Make every table of a run from its rows, rows between models included; `write` puts them in place."""
    made = _tables_of_rows(run, overrides)
    manifest = read_manifest(run)
    models = list(manifest.models)
    if len(models) > 1:
        design = read(manifest.resolved, overrides)
        margins = design.study.margin
        rows, notes = between_models(
            made.rows("probe_prompts"),
            groups=design.groups,
            models=models,
            margins=margins,
            run=str(run),
            asked=PromptTexts(design.question()),  # templates of one frame are one unit
        )
        made.notes += notes
        made.add(
            "tests", merge_tests(made.rows("tests"), rows, Rule(design.contrast[:1], design.study.strict))
        )
    return made


def _tables_of_rows(run: Path, overrides: Mapping[str, Any] | None) -> TableSet:
    """Make every table of a run from its rows but those between its models."""
    manifest, tables = read_manifest(run), TableSet(run)
    design = read(manifest.resolved, overrides)
    reading = Reading()
    answerers = Answerers()
    stored = _read_cells(run, manifest, design, reading, answerers)
    cells, study = stored.cells, design.study
    in_order = [x.cell for x in cells]
    rows_by_table = effect_tables(
        cells,
        groups=design.groups,
        contrast=design.contrast,
        strict=study.strict,
        levels=design.levels,
        min_coverage=study.min_coverage,
        interval=study.interval,
        margins=study.margin,
        seed=study.seed,
        frames=design.frames,
    )
    rows_by_table["probe_next"] = stored.said_next.rows(in_order)
    answers = stored.answers
    n_unused = stored.n_unused + read_continuations(run, manifest, answers, reading, answerers)
    rows_by_table["probe_outcomes"], outcome_tests = outcome_rows(answers, in_order)
    if answers.cells:
        rows_of_cells = zip(rows_by_table["probe_prompts"], in_order, strict=True)
        rows_by_table["probe_prompts"] = [{**row, **counted(answers, cell)} for row, cell in rows_of_cells]
    if outcome_tests:
        rows_by_table["tests"] = adjust(
            [*rows_by_table["tests"], *outcome_tests], Rule(design.contrast[:1], study.strict)
        )
    tables.notes += reading.notes
    for name, rows in rows_by_table.items():
        if rows:  # a table that was not made is absent
            with_answers = bool(answers.cells)  # a table without them has no columns for them
            tables.add(name, rows, groups=design.groups, contrast=design.contrast, scoped=with_answers)
    describe_analysis(
        tables,
        design,
        manifest,
        answerers,
        [*_notes(stored, rows_by_table["probe_groups"], study, manifest.models)],
        keys=CHOICES,
        methods=METHODS_VERSION,
        rows_digest=stored.digest,
        n_prompts=len(cells),
        n_unused=n_unused,
    )
    return tables


@dataclass(frozen=True, slots=True)
class _StoredCells:
    """The cells that a run's design needs, as its rows answer them."""

    cells: list[CellShares]  # in study order
    digest: str  # of the rows used
    n_unused: int  # rows that were not needed
    n_open: int  # cells that were begun and need another batch of samples
    answers: AnswersOfRun  # that sampling drew
    said_next: SaidNext  # the tokens after the prompts, where rows keep them
    target_words: Mapping[tuple[str, str, int], Sequence[Mapping[str, Any]]]
    """(model, bias type, template) → the target words of one of its rows, with their tokens."""


def _read_cells(
    run: Path, manifest: Manifest, design: ProbeDesign, reading: Reading, answerers: Answerers
) -> _StoredCells:
    """Read every row once, and say what is wrong with one that does not fit (or leave it out)."""
    path, study = rows_file(run, "probe"), design.study
    if not path.is_file():
        raise RunError(f"{run} has no {path.name}: nothing was stored there. Rerun the probe command.")
    cells, places = places_of(manifest.models, design)
    shares_of: list[CellShares | None] = [None] * len(cells)
    digests: list[bytes] = [b""] * len(cells)
    drawn: dict[int, dict[int, Mapping[str, Any]]] = {}  # place of a cell → batch → its row
    target_words: dict[tuple[str, str, int], Sequence[Mapping[str, Any]]] = {}
    said_next, answers = SaidNext(), AnswersOfRun(design)
    n_unused = n_open = 0

    def shares(i: int, row: Mapping[str, Any] | None) -> CellShares:
        return cell_shares(
            cells[i], row, design.groups, word_boundary=study.word_boundary, contrast=design.contrast
        )

    for row in answerers.counting(read_rows(path, skip_bad=study.skip_bad_lines, reading=reading)):
        answered = places(row)
        n_unused += not answered
        if not answered:
            continue
        first = cells[answered[0]]
        fault = fault_of(row, design.target_words[first.bias_type, first.template_id])
        if shares_of[answered[0]] is not None or row.get("batch", 0) in drawn.get(answered[0], ()):
            fault = "another row answers the same prompt"
        if fault is not None:
            reading.refuse(path, fault, skip_bad=study.skip_bad_lines)
            continue
        answerers.add_answers(row)
        for i in answered:
            wording = cells[i].model, cells[i].bias_type, cells[i].template_id
            target_words.setdefault(wording, row["target_words"])
            said_next.add(cells[i], row, study.word_boundary)
            if "counts" in row:
                # Its other batches may lie anywhere in the file.
                drawn.setdefault(i, {})[row.get("batch", 0)] = {name: row[name] for name in _OF_SAMPLES}
                if not row.get("batch", 0):  # whether there are later batches depends on what was said
                    answers.add(cells[i], answers.read(cells[i], row))
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
        n_open += goes_on and all_batches is not None
        n_unused += len(rows_of_cell) - len(used)
    all_cells = [x or shares(i, None) for i, x in enumerate(shares_of)]
    digest = hashlib.sha256(b"".join(digests)).hexdigest()
    return _StoredCells(all_cells, digest, n_unused, n_open, answers, said_next, target_words)


_ANSWERED = ("k", "listed", "may_hide", "listed_next", "samples", "counts")
"""What a row's numbers are computed from beside its target words: lists of tokens, counts of samples."""
_OF_SAMPLES = ("key", "estimator", "target_words", "samples", "counts")


def _digest(row: Mapping[str, Any]) -> bytes:
    numbers = [row["key"], row["target_words"], *(row[name] for name in _ANSWERED if name in row)]
    return hashlib.sha256(canonical_json(numbers).encode("ascii")).digest()


# --- what a careful reader must know ----------------------------------------------------------------


def _notes(
    stored: _StoredCells, groups: Sequence[Row], study: ProbeStudy, models: Mapping[str, ModelEntry]
) -> Iterator[str]:
    """Yield the warnings that belong beside the tables, the gravest first; `groups`: of probe_groups.csv."""
    cells, n = stored.cells, len(stored.cells)
    if missing := sum(c.shares is None for c in cells):
        yield NOTES["no_share"].format(missing, n)
    if stored.n_open:
        yield NOTES["few_samples"].format(stored.n_open, n, enough=ENOUGH, most=study.max_samples_per_prompt)
    yield from _low_coverage(groups, models)
    if len(distinct(groups, "prompt_format")) > 1:
        yield NOTES["formats_differ"]
    labels: dict[str, list[str]] = {}
    for estimator, model in dict.fromkeys((c.estimator, c.cell.model) for c in cells if c.estimator):
        labels.setdefault(estimator, []).append(model)
    if len(labels) > 1:
        yield NOTES["estimators_differ"].format("; ".join(f"{e}: {', '.join(m)}" for e, m in labels.items()))
        if "sampling" in labels:
            yield NOTES["whole_words"]
    if below := sum(c.coverage is not None and c.coverage < study.min_coverage for c in cells):
        yield NOTES["low_coverage"].format(below, n, min_coverage=study.min_coverage)
    if edge := sum(row["share"] is not None and not 0.05 <= row["share"] <= 0.95 for row in groups):
        yield NOTES["near_the_edge"].format(edge)
    if hiding := sum(c.reason == MAY_HIDE for c in cells):
        yield NOTES["may_hide"].format(hiding, n)
    begun: dict[str, dict[str, None]] = {}  # model → notes on target words that begin another group's
    for wording in dict.fromkeys((c.cell.model, c.cell.bias_type, c.cell.template_id) for c in cells):
        target_words = stored.target_words.get(wording, ())
        for short, places in zip(target_words, extensions_of(target_words, study.word_boundary), strict=True):
            for long in (target_words[j] for j in places):
                if short["group"] != long["group"]:
                    begun.setdefault(wording[0], {})[NOTES["begins"].format(short=short, long=long)] = None
    for model, pairs in begun.items():
        yield f"{model}: {next(iter(pairs))} ({len(pairs)} such pairs)"


def _low_coverage(groups: Sequence[Row], models: Mapping[str, ModelEntry]) -> Iterator[str]:
    """Say which models' shares are weak evidence, and what other prompt formats would give."""
    low: dict[str, dict[str, float]] = {label: {} for label in models}
    main = in_main_context(where(groups, debiasing_id=0))
    for (label, bias_type), rows in grouped(main, "model", "bias_type").items():
        if (ends := coverage_of(rows)) and is_under(ends, WEAK):
            low[label][bias_type] = ends[0]
    for label, entry in models.items():
        yield from format_notes(label, entry, low[label], alone=len(models) == 1)


def format_notes(
    label: str, entry: ModelEntry, low: Mapping[str, float], *, alone: bool = True
) -> Iterator[str]:
    """Say how low a model's coverage is, and which format has more; `low`: bias type → weak coverage."""
    spec, prompt_format, reach = entry.spec, entry.prompt_format, entry.reach
    if low and not spec.startswith("scripted:"):
        held = listed([f"{percent(least)} % ({bias_type} prompts)" for bias_type, least in low.items()])
        hint = NOTES["try_formats"].format(shlex.quote(spec))
        if all(0 < max(reach.get(bias_type, {}).values(), default=0) < WEAK for bias_type in low):
            hint = NOTES["no_format"].format(percent(WEAK))
        elif spec.startswith(IN_MEMORY):
            hint = ""
        yield f"{label}: weak evidence, coverage is only {held}{hint}"
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
