"""What `biaskit export` and `bk.export` do: stored runs in the formats of other tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from biaskit.arguments import checked
from biaskit.common.inputs import expanded
from biaskit.errors import UsageError, nearest
from biaskit.exchange.source import ExportFiles, Source
from biaskit.progress import LineWatcher, Watcher
from biaskit.report.result import RunResult
from biaskit.workflow.analyze import gathered
from biaskit.workflow.compare import compared_tables
from biaskit.workflow.report import content_of, put_together

FORMATS: Mapping[str, tuple[str, str]] = {
    "card": ("biaskit.exchange.card:as_card", "a section for a model card, in Markdown"),
    "evidence": ("biaskit.workflow.evidence:as_evidence", "an audit folder, as one zip with digests"),
    "inspect": ("biaskit.exchange.inspect_log:as_inspect", "Inspect logs, one per model and bias type"),
    "lm-eval": ("biaskit.exchange.lm_eval_task:as_lm_eval", "tasks for lm_eval --include_path"),
    "every-eval-ever": (
        "biaskit.exchange.every_eval_ever:as_every_eval_ever",
        "results in Every Eval Ever's schema 0.3.0",
    ),
    "hf": ("biaskit.exchange.hub:as_hub", "results for a model's page on the hub (--dataset)"),
}
"""Format → (module:function that makes its files, what it is in a few words)."""


@dataclass(frozen=True)
class Exported:
    """What an export wrote."""

    path: Path  # the file to open first
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()  # what the format could not hold, and how the files are used; a sentence each


@checked()
def export(
    *runs: str | Path | RunResult,
    to: str,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
    **options: Any,
) -> Exported:
    """Write stored runs in the format of another tool.

    >>> bk.export(probed, to="card", watcher=bk.Silent()).path.name
    'card.md'

    Args:
        runs: folders or results of probes or of texts, one or several.
        to: card, evidence, inspect, lm-eval, every-eval-ever or hf.
        out: the folder of the files; by default exports/FORMAT in the run's folder; needed for several runs.
        watcher: sees the progress.
        options: of the format, named as those of `biaskit export`, such as `dataset` for hf.

    Returns `path`, the file to open first, all `files`, and `notes` on what the format cannot hold. Raises
    `BiaskitError` for an unknown format, a missing package or a folder that cannot be written.
    """
    seen = watcher or LineWatcher()
    if to not in FORMATS:
        raise UsageError(f"{to!r} is not a format.{nearest(to, FORMATS)} Known: {', '.join(FORMATS)}.")
    if out is None and len(runs) > 1:
        raise UsageError("Several runs need a folder for their files: --out FOLDER.")
    if str(out) == "-":
        raise UsageError("An export is a folder of files: give --out a name.")
    collection = gathered(runs, "export RUN --to FORMAT", seen)
    folder = collection.runs[0].path / "exports" / to if out is None else expanded(out)
    content = content_of(collection, {"tests": compared_tables(collection).tests})
    module, function = FORMATS[to][0].split(":")
    make = getattr(import_module(module), function)
    exported: ExportFiles = make(Source(collection, content, options))
    files = put_together(folder, exported.files, seen, hint=" Choose another --out.")
    return Exported(folder / exported.first, files, exported.notes)
