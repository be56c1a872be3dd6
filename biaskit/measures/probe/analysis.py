"""From stored rows to the public tables of a run; needs no model."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biaskit.common.provenance import SCORING_VERSION, canonical_json
from biaskit.common.wording import listed, percent
from biaskit.errors import RunError
from biaskit.measures.probe.answers import AnswersOfRun, counted, outcome_rows
from biaskit.measures.probe.continuations import read_continuations
from biaskit.measures.probe.design import ProbeDesign, read
from biaskit.measures.probe.effects import tables as effect_tables
from biaskit.measures.probe.next_tokens import SaidNext
from biaskit.measures.probe.pairs import notes_of_pairs, pair_tables
from biaskit.measures.probe.requests import places_of
from biaskit.measures.probe.rounds import ENOUGH, Rounds, add_up
from biaskit.measures.probe.rows import fault_of
from biaskit.measures.probe.shares.cells import MAY_HIDE, cell_shares, extensions_of
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.options import IN_MEMORY
from biaskit.progress import Watcher
from biaskit.records import CellShares
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import draws_of, read_manifest
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.stats.contrasts import adjust
from biaskit.stats.verdict import Rule
from biaskit.tables.coverage import WEAK, better_form, coverage_of, is_under
from biaskit.tables.query import Row, grouped, in_main_setting, where
from biaskit.tables.sets import TableSet

METHODS_VERSION = {"shares": 2, "effects": 4, "outcomes": 3}
"""Raised when the same rows would give other tables."""
CHOICES = ("interval", "min_coverage", "on_prefix", "margin", "conclusion", "seed", "skip_bad_lines")
"""Keys that analysis.json states beside the contrast, so that the same tables can be made again."""


def tables(
    run: Path,
    overrides: Mapping[str, Any] | None = None,
    watcher: Watcher | None = None,  # noqa: ARG001
) -> TableSet:
    """Make every table of a run from its rows, rows between models included; `write` puts them in place."""
    from biaskit.compare.model_tests import between_models, between_models_on_pairs, merge_tests
    from biaskit.compare.same_prompts import PromptTexts
    from biaskit.stats.verdict import Rule

    made = _tables_of_rows(run, overrides)
    manifest = read_manifest(run)
    models = list(manifest["models"])
    if len(models) > 1:
        design = read(manifest["resolved"], overrides)
        margins = design.study.margin
        if design.pairs:
            scores = made.rows("pair_scores")
            rows = between_models_on_pairs(scores, manifest["resolved"]["pairs"], margins)
        else:
            rows, notes = between_models(
                made.rows("probe_cells"),
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
    design = read(manifest["resolved"], overrides)
    reading = Reading()
    answerers = Answerers()
    stored = _read_cells(run, manifest, design, reading, answerers)
    cells, study = stored.cells, design.study
    in_order = [x.cell for x in cells]
    if design.pairs:
        estimators = {x.cell.model: x.estimator for x in cells if x.estimator}
        rows_by_table = pair_tables(in_order, stored.sentences, estimators, design.pairs, study.margin)
        rows_by_table["tests"] = adjust(rows_by_table["tests"], Rule(strict=study.strict))
    else:
        rows_by_table = effect_tables(
            cells,
            groups=design.groups,
            contrast=design.contrast,
            strict=study.strict,
            levels=design.levels,
            floor=study.min_coverage,
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
        rows_of_cells = zip(rows_by_table["probe_cells"], in_order, strict=True)
        rows_by_table["probe_cells"] = [{**row, **counted(answers, cell)} for row, cell in rows_of_cells]
    if outcome_tests:
        rows_by_table["tests"] = adjust(
            [*rows_by_table["tests"], *outcome_tests], Rule(design.contrast[:1], study.strict)
        )
    for name, rows in rows_by_table.items():
        if rows:  # a table that was not made is absent
            with_answers = bool(answers.cells)  # a table without them has no columns for them
            tables.add(name, rows, groups=design.groups, contrast=design.contrast, scoped=with_answers)
    notes = [*reading.notes, *answerers.notes(manifest["models"], study)]
    if design.pairs:
        notes += [*design.notes, *notes_of_pairs(rows_by_table)]
    else:
        notes += _notes(stored, rows_by_table["probe_groups"], study, manifest["models"])
    if n_unused:
        notes.append(f"{n_unused} stored rows are not part of this study and were not used")
    choices = {name: value for name, value in study.model_dump().items() if name in CHOICES}
    tables.notes += notes
    tables.analysis |= {
        "choices": {**choices, "contrast": list(design.contrast)},
        "methods": METHODS_VERSION,
        "scoring": SCORING_VERSION,
        "signature": design.sign(manifest["models"]),
        "rows_digest": stored.digest,
        "n_cells": len(cells),
        "answered": answerers.record(),
        "notes": notes,
        "versions": manifest["versions"],
    }
    return tables


@dataclass(frozen=True, slots=True)
class _StoredCells:
    """The cells that a run's design needs, as its rows answer them."""

    cells: list[CellShares]  # in study order
    digest: str  # of the rows used
    n_unused: int  # rows that were not needed
    n_open: int  # cells that were begun and need another round of draws
    answers: AnswersOfRun  # that sampling drew
    said_next: SaidNext  # the tokens after the prompts, where rows keep them
    sentences: list[Sequence[Mapping[str, Any]] | None]  # of pairs: the expressions of each cell
    expressions: Mapping[tuple[str, str, int], Sequence[Mapping[str, Any]]]
    """(model, bias type, template) → the expressions of one of its rows, with their tokens."""


def _read_cells(
    run: Path, manifest: Mapping[str, Any], design: ProbeDesign, reading: Reading, answerers: Answerers
) -> _StoredCells:
    """Read every row once, and say what is wrong with one that does not fit (or leave it out)."""
    path, study = rows_file(run, "probe"), design.study
    if not path.is_file():
        raise RunError(f"{run} has no {path.name}: nothing was stored there. Rerun the probe command.")
    cells, places = places_of(manifest, design)
    shares_of: list[CellShares | None] = [None] * len(cells)
    digests: list[bytes] = [b""] * len(cells)
    drawn: dict[int, dict[int, Mapping[str, Any]]] = {}  # place of a cell → round → its row
    expressions: dict[tuple[str, str, int], Sequence[Mapping[str, Any]]] = {}
    said_next, answers = SaidNext(), AnswersOfRun(design)
    n_unused = n_open = 0
    sentences: list[Sequence[Mapping[str, Any]] | None] = [None] * (len(cells) if design.pairs else 0)

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
        fault = fault_of(row, design.expressions[first.bias_type, first.template_id])
        if shares_of[answered[0]] is not None or row.get("round", 0) in drawn.get(answered[0], ()):
            fault = "another row answers the same prompt"
        if fault is not None:
            reading.refuse(path, fault, skip_bad=study.skip_bad_lines)
            continue
        answerers.add_answers(row)
        for i in answered:
            wording = cells[i].model, cells[i].bias_type, cells[i].template_id
            if design.pairs:
                sentences[i], digests[i] = row["expressions"], _digest(row)
                shares_of[i] = CellShares(cells[i], row["estimator"], None, None, None)
                continue
            expressions.setdefault(wording, row["expressions"])
            said_next.add(cells[i], row, study.word_boundary)
            if "counts" in row:
                # Its other rounds may lie anywhere in the file.
                drawn.setdefault(i, {})[row.get("round", 0)] = {name: row[name] for name in _OF_DRAWS}
                if not row.get("round", 0):  # whether there are later rounds depends on what was said
                    answers.add(cells[i], answers.read(cells[i], row))
            else:
                shares_of[i], digests[i] = shares(i, row), _digest(row)
    rounds_of = {
        label: Rounds.up_to(draws_of(entry), study.max_samples_per_prompt)
        for label, entry in manifest["models"].items()
    }
    for i, rows_of_cell in drawn.items():
        all_rounds, used, goes_on = add_up(rows_of_cell, rounds_of[cells[i].model])
        shares_of[i] = shares(i, all_rounds)
        digests[i] = b"".join(_digest(rows_of_cell[number]) for number in used)
        n_open += goes_on and all_rounds is not None
        n_unused += len(rows_of_cell) - len(used)
    all_cells = [x or shares(i, None) for i, x in enumerate(shares_of)]
    digest = hashlib.sha256(b"".join(digests)).hexdigest()
    return _StoredCells(all_cells, digest, n_unused, n_open, answers, said_next, sentences, expressions)


_ANSWERED = ("k", "listed", "may_hide", "listed_next", "draws", "counts")
"""What a row's numbers are computed from beside its expressions: lists of tokens, counts of draws."""
_OF_DRAWS = ("key", "estimator", "expressions", "draws", "counts")


def _digest(row: Mapping[str, Any]) -> bytes:
    numbers = [row["key"], row["expressions"], *(row[name] for name in _ANSWERED if name in row)]
    return hashlib.sha256(canonical_json(numbers).encode("ascii")).digest()


# --- what a careful reader must know ----------------------------------------------------------------


def _notes(
    stored: _StoredCells, groups: Sequence[Row], study: ProbeStudy, models: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Yield the warnings that belong beside the tables, the gravest first; `groups`: of probe_groups.csv."""
    cells = stored.cells
    if missing := sum(c.shares is None for c in cells):
        yield f"{missing} of {len(cells)} prompts have no share; probe_cells.csv gives the reasons"
    if stored.n_open:
        yield (
            f"{stored.n_open} of {len(cells)} prompts have fewer than {ENOUGH} samples with a target word and"
            f" fewer than {study.max_samples_per_prompt} samples: rerun the command to sample more"
        )
    yield from _low_coverage(groups, models)
    if len({row["prompt_form"] for row in groups}) > 1:
        yield "prompt formats differ between the models: no test between them"
    labels: dict[str, list[str]] = {}
    for estimator, model in dict.fromkeys((c.estimator, c.cell.model) for c in cells if c.estimator):
        labels.setdefault(estimator, []).append(model)
    if len(labels) > 1:
        stated = "; ".join(f"{name}: {', '.join(models)}" for name, models in labels.items())
        yield f"estimators differ between the models ({stated}): they may explain part of a difference"
        if "sampling" in labels:
            yield "sampling counts target words as whole words, like word_boundary = word"
    floor = study.min_coverage
    if below := sum(c.coverage is not None and c.coverage < floor for c in cells):
        yield (
            f"in {below} of {len(cells)} prompts the target words have less than {floor:g} of the probability"
            " (coverage): weak evidence; groups whose median coverage is lower are in brackets"
        )
    if edge := sum(row["share"] is not None and not 0.05 <= row["share"] <= 0.95 for row in groups):
        yield f"intervals of group means below 0.05 or above 0.95 ({edge} here) may be too short"
    if hiding := sum(c.reason == MAY_HIDE for c in cells):
        yield (
            f"in {hiding} of {len(cells)} prompts the token list is shorter than requested and may merge two"
            " tokens with the same text: their bounds allow for both"
        )
    begun: dict[str, dict[str, None]] = {}  # model → notes on expressions that begin another group's
    wordings = ((x.cell.model, x.cell.bias_type, x.cell.template_id) for x in cells)
    for wording in dict.fromkeys(wordings):
        expressions = stored.expressions.get(wording, ())
        for short, extensions in zip(
            expressions, extensions_of(expressions, study.word_boundary), strict=True
        ):
            for long in (expressions[j] for j in extensions):
                if short["group"] != long["group"]:
                    pair = f"{short['text']!r} ({short['group']}) begins {long['text']!r} ({long['group']})"
                    begun.setdefault(wording[0], {})[f"{pair}: {short['text']!r} counts without it"] = None
    for model, pairs in begun.items():
        yield f"{model}: {next(iter(pairs))} ({len(pairs)} such pairs)"


def _low_coverage(groups: Sequence[Row], models: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Say which models' shares are weak evidence, and what other prompt formats would give."""
    low: dict[str, dict[str, float]] = {label: {} for label in models}
    main = in_main_setting(where(groups, instruction_id=0))
    for (label, bias_type), rows in grouped(main, "model", "bias_type").items():
        if (ends := coverage_of(rows)) and is_under(ends, WEAK):
            low[label][bias_type] = ends[0]
    for label, entry in models.items():
        yield from form_notes(label, entry, low[label], alone=len(models) == 1)


def form_notes(
    label: str, entry: Mapping[str, Any], low: Mapping[str, float], *, alone: bool = True
) -> Iterator[str]:
    """Say how low a model's coverage is, and which format has more; `low`: bias type → weak coverage."""
    spec, form, reach = entry["spec"], entry["prompt_form"], entry.get("reach", {})
    if low and not spec.startswith("scripted:"):
        held = listed([f"{percent(least)} % ({bias_type} prompts)" for bias_type, least in low.items()])
        hint = f"; `biaskit doctor {shlex.quote(spec)} --prompt-formats` tries others"
        if all(0 < max(reach.get(bias_type, {}).values(), default=0) < WEAK for bias_type in low):
            hint = f"; no prompt format reaches {percent(WEAK)} %: try --continue N"
        elif spec.startswith(IN_MEMORY):
            hint = ""
        yield f"{label}: weak evidence, coverage is only {held}{hint}"
    for bias_type, tried in reach.items():
        if better := better_form(tried, form):
            given = f"{percent(tried[better])} % with {better}, {percent(tried[form])} % with {form}"
            yield (
                f"{label}: coverage on a few {bias_type} prompts is {given}: --bias-type {bias_type},"
                f" --prompt-format {better}{'' if alone else ', in a run of this model alone'}"
            )
    both = [
        f"{percent(tried[form])} % (raw {percent(tried['raw'])} %) on {bias_type} prompts"
        for bias_type, tried in reach.items()
        if form == "chat-prefill" and "raw" in tried
    ]
    if both:
        yield (
            f"{label} is a chat model and was queried as one ({form}): coverage of a few prompts is"
            f" {listed(both)}; the papers use --prompt-format raw"
        )
