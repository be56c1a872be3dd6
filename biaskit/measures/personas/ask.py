"""How texts are asked for: opening a model, what has no row yet, from a row back to its request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from biaskit.measures.personas.design import PersonasDesign
from biaskit.measures.personas.sampling.filling import Filling
from biaskit.measures.personas.sampling.open_samples import OpenSamples, request_under, scope_of
from biaskit.measures.personas.sampling.samples import gender_of
from biaskit.measures.personas.sampling.samples import sample_texts as ask
from biaskit.measures.personas.sampling.series import SampleSeries
from biaskit.measures.personas.texts.documents import why_not
from biaskit.models.base import TextGenerator
from biaskit.models.entry import ModelEntry
from biaskit.models.spec import open_generator
from biaskit.records import SampleRequest
from biaskit.runs.manifest import Manifest
from biaskit.runs.start import Open
from biaskit.runs.store import StoredRows, count_rows, rows_file

__all__ = ["ask", "fault", "finder", "named", "open_model", "progress", "what_is_open"]


def open_model(
    design: PersonasDesign, spec: str, *, asked_as: ModelEntry | None = None, **how: Any
) -> TextGenerator:
    """Open a generator, which is the same for every design."""
    return open_generator(spec, **how)


def finder(
    manifest: Manifest, design: PersonasDesign
) -> Callable[[Mapping[str, Any]], tuple[str, SampleRequest] | None] | None:
    """From a stored row to the model and the sample that it is; None where the run has no such sample."""
    if manifest.imported:
        return None  # texts that were at hand answer no request
    of_model: dict[str, OpenSamples] = {}
    series_of: dict[tuple[object, ...], SampleSeries] = {}  # by model and scope
    for label, entry in manifest.models.items():
        of_model[label] = OpenSamples(design, entry.prompt_format, entry.fingerprint, {})
        for series in of_model[label].series:
            series_of[label, scope_of(series.scope())] = series

    def find(row: Mapping[str, Any]) -> tuple[str, SampleRequest] | None:
        try:
            label, sample = row["model"], row["sample"]
            series = series_of[label, scope_of(row)]
            key = of_model[label].keys_of(series)(sample)
        except (LookupError, TypeError):
            return None
        return (label, request_under(key, series, sample, design)) if key == row["key"] else None

    return find


def fault(row: Mapping[str, Any], request: SampleRequest | None) -> str | None:
    """Say what is wrong with a row; None where nothing is."""
    return why_not(row)


def named(row: Mapping[str, Any]) -> str:
    """Name what a row answers, for a message."""
    return f"{row['template_id']}, {row['occupation']}, sample {row['sample']}"


def what_is_open(run: Path, manifest: Manifest, design: PersonasDesign, *, skip_bad: bool = False) -> Open:
    """Count a stored run's samples still certain to be asked, those that may follow, and their batches.

    Samples are those of all models together; the batches are those of the series that may take most.
    """
    sharded = design.part(manifest.shard)
    stored = StoredRows(gender_of(design), None).read(rows_file(run, "personas"), skip_bad=skip_bad)
    left = later = sample_batches = 0
    for entry in manifest.models.values():
        samples = OpenSamples(sharded, entry.prompt_format, entry.fingerprint, stored.values)
        due, may_follow = samples.outlook()
        left, later = left + len(due), later + may_follow
        sample_batches = max(sample_batches, samples.batches_after(due) if may_follow else 0)
    return Open(left, later, sample_batches)


def progress(run: Path, manifest: Manifest, design: PersonasDesign) -> tuple[int, int]:
    """Count the texts of a run, and those that it plans at least: the first batch and those of a gender.

    How many more Algorithm 5 requests is known only as it goes, so what is stored may be the larger.
    """
    n_stored = count_rows(rows_file(run, "personas"))
    if manifest.imported:
        return n_stored, n_stored
    n_open, n_requested = design.part(manifest.shard).n_series
    each = n_open * Filling.from_study(design.study).batch + n_requested * design.study.per_gender
    return n_stored, max(n_stored, each * len(manifest.models))
