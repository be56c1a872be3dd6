"""How the prober asks: the model that a study needs, what has no row yet, from a row back to its request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from biaskit.common.wording import short
from biaskit.measurement import words
from biaskit.measures.probe.analysis import format_notes
from biaskit.measures.probe.continuations import continue_cells
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.prompt_formats import HANDFUL, reach_by_format
from biaskit.measures.probe.requests import PlannedCells
from biaskit.measures.probe.scoring import CellWork, choose_formats
from biaskit.measures.probe.ways.ask import ask_ways
from biaskit.models.base import ContinuationScorer
from biaskit.models.entry import ModelEntry
from biaskit.models.options import ScoringOptions
from biaskit.models.spec import open_scorer
from biaskit.records import PromptFormat, ScoreRequest
from biaskit.runs.claims import OWN_LISTS
from biaskit.runs.manifest import Manifest
from biaskit.runs.sample_batches import OpenCells, SampleBatches
from biaskit.runs.score_rows import fault as fault
from biaskit.runs.score_work import as_asked, matched_samples, prompts_begun, score_models
from biaskit.runs.session import Outcome, Session
from biaskit.runs.start import Open
from biaskit.runs.store import StoredRows, rows_file

Json = dict[str, Any]


def open_model(
    design: ProbeDesign, spec: str, *, asked_as: ModelEntry | None = None, **how: Any
) -> ContinuationScorer:
    """Open a scorer; `asked_as`: a model's entry in a manifest, whose estimator is to be used again."""
    study = design.study
    scoring = how.pop("scoring", None) or ScoringOptions(
        *(study.estimator, study.k, study.samples),
        longest=design.longest,
        word_boundary=study.word_boundary,
        on_prefix=study.on_prefix,
        next_tokens=study.record_next,
    )
    if asked_as is not None:
        scoring = replace(scoring, next_tokens=0, **as_asked(asked_as))
    return open_scorer(spec, scoring=scoring, **how)


def ask(design: ProbeDesign, session: Session[ContinuationScorer]) -> Outcome:
    """Score every cell that has no row yet, then ask for the texts that the study wants beside them."""
    stored: StoredRows[int] = StoredRows(matched_samples, 0)

    def work_of(scorer: ContinuationScorer, prompt_format: PromptFormat) -> CellWork:
        _look_at_formats(design, session, scorer, prompt_format)
        return CellWork(design, scorer, prompt_format, stored, session.shard)

    # Sentences of the user's own that are asked as questions.
    stated = [t for t in design.templates if t.bias_type == "explicit" and "?" not in t.question]
    if stated and OWN_LISTS in design.study.name:
        says, first = str(words("probe")["notes"]["no_question"]), stated[0]
        session.outcome.notes.append(says.format(first.id, short(first.question, 50)))
    formats_of = partial(choose_formats, design, session)
    outcome = score_models(design, session, stored, formats_of, work_of)
    if design.study.continuations:
        continue_cells(design, session)
    if design.study.ways and outcome.offline is not None:
        outcome.notes.append("Other ways to ask are not in files of requests: rerun without them.")
    elif design.study.ways:
        ask_ways(design, session)
    return outcome


def _look_at_formats(
    design: ProbeDesign,
    session: Session[ContinuationScorer],
    scorer: ContinuationScorer,
    prompt_format: PromptFormat,
) -> None:
    """Try prompts in every format where `auto` chose one; not of an API, which costs, or in a resumed run."""
    label = scorer.identity.label
    entry = session.manifest.models.get(label)
    several, lent = len(scorer.identity.formats) > 1, getattr(scorer, "lent", None)
    chosen = design.study.prompt_format != "auto" or design.study.system_prompt or design.completes
    looked = entry is not None and entry.notes is not None
    if lent is None or not several or chosen or looked:
        return
    with lent(HANDFUL) as tried:
        reach = reach_by_format(design, tried)
    if entry is None or session.dry_run:
        entry = ModelEntry.of(scorer.identity, prompt_format, reach=reach)
        session.outcome.notes += format_notes(label, entry, {}, alone=len(session.models) == 1)
    else:
        entry.reach = reach
        session.manifest.write(session.run)


def finder(
    manifest: Manifest, design: ProbeDesign
) -> Callable[[Mapping[str, Any]], tuple[str, ScoreRequest] | None]:
    """From a stored row to the model and the request that it answers; None where the run has no such cell."""
    of_model: dict[str, tuple[str, PlannedCells, SampleBatches]] = {}
    for label, entry in manifest.models.items():
        cells = PlannedCells(design, label, entry.prompt_format, entry.fingerprint, entry.estimator_key)
        sample_batches = SampleBatches.up_to(entry.samples, design.study.max_samples_per_prompt)
        of_model.setdefault(cells.model_key, (label, cells, sample_batches))

    def find(row: Mapping[str, Any]) -> tuple[str, ScoreRequest] | None:
        try:
            label, cells, sample_batches = of_model[row["model_key"]]
            return label, sample_batches.request(
                cells.requests[cells.place_of(row)], int(row.get("batch", 0))
            )
        except (LookupError, TypeError, ValueError):
            return None

    return find


def named(row: Mapping[str, Any]) -> str:
    """Name what a row answers, for a message."""
    return f"{row['bias_type']} template {row['template_id']}, {row['job']}"


def what_is_open(run: Path, manifest: Manifest, design: ProbeDesign, *, skip_bad: bool = False) -> Open:
    """Count the cells of a stored run, over all its models, that lack a row or a batch of samples."""
    stored = StoredRows(matched_samples, 0).read(rows_file(run, "probe"), skip_bad=skip_bad)
    n_left = 0
    for label, entry in manifest.models.items():
        asked = entry.prompt_format, entry.fingerprint, entry.estimator_key
        cells = PlannedCells(design, label, *asked, manifest.shard)
        sample_batches = SampleBatches.up_to(entry.samples, design.study.max_samples_per_prompt)
        n_left += OpenCells(cells.requests, sample_batches, stored.values).n_left
    return Open(n_left)


def progress(run: Path, manifest: Manifest, design: ProbeDesign) -> tuple[int, int]:
    """Count the prompts of a run that were begun, and those that it plans."""
    planned = len(manifest.shard.places(design.n_prompts)) * len(manifest.models)
    return prompts_begun(rows_file(run, "probe")), planned
