"""Results for a model's page on the Hugging Face hub: YAML files for its folder `.eval_results`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from biaskit.errors import UsageError
from biaskit.exchange.results import NO_DIRECTION, Result, models, nothing_defined, results_of
from biaskit.exchange.source import ExportFiles, Source, package
from biaskit.runs.collection import Model, StoredRun
from biaskit.runs.store import slug

_WHY = "--to hf"


def as_hub(source: Source) -> ExportFiles:
    """A file for each model, through huggingface_hub's own classes.

    Options: `dataset`, the hub's data set that the results are listed under (ORG/NAME or ORG/NAME@REVISION),
    which the format requires; `url`, of a page that shows them. Raises `UsageError`.
    """
    source.takes_only("dataset", "url")
    hub = package("huggingface_hub", "local", _WHY)
    yaml = package("yaml", "local", _WHY)
    dataset, revision = _dataset(source.options)
    url = _url(source.options)
    notes: list[str] = []
    files: dict[str, bytes] = {}
    for run, model in models(source):
        entries = [
            hub.EvalResultEntry(
                dataset_id=dataset,
                dataset_revision=revision,
                task_id=_task(result),
                value=round(result.share, 6),
                date=model.last_answered,
                source_url=url,
                source_name="biaskit" if url else None,
                notes=_said(run, model, result),
            )
            for result in results_of(run, model, notes)
        ]
        if entries:
            shown = yaml.safe_dump(
                hub.eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=10_000
            )
            files[f"{slug(run.engine)}-{slug(model.label)}.yaml"] = shown.encode("utf-8")
    if not files:
        raise nothing_defined(notes)
    if url is None:
        notes.append("No entry has a source: --url names the page that shows these numbers")
    notes.append("Each file goes into the folder .eval_results of its model's repository")
    return ExportFiles(files, next(iter(files)), tuple(notes))


def _dataset(options: Mapping[str, Any]) -> tuple[str, str | None]:
    given = str(options.get("dataset") or "")
    found = re.fullmatch(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", given, re.ASCII)
    if found is None:
        said = f"{given!r} is none" if given else "none is given"
        raise UsageError(
            f"A model page lists results under a data set of the hub, and {said}: --dataset ORG/NAME or"
            " --dataset ORG/NAME@REVISION."
        )
    return found[1], found[2]


def _url(options: Mapping[str, Any]) -> str | None:
    given = options.get("url")
    if given is None or re.fullmatch(r"https?://[!-~]+", str(given)):
        return given
    raise UsageError(f"--url {given!r} is no address: give https://…")


def _task(result: Result) -> str:
    """The place of a result in its data set: letters, digits, dots, hyphens and underscores."""
    return ".".join(slug(part.replace("instruction ", "instruction-")) for part in result.name.split("/"))


def _said(run: StoredRun, model: Model, result: Result) -> str:
    ends = result.interval
    where = "over jobs and templates" if run.engine == "probe" else "over texts"
    parts: Sequence[str] = (
        f"share of {result.gender}, a fraction",
        f"95 % interval {ends[0]:.4f} to {ends[1]:.4f} {where}" if ends else "no interval",
        *(f"{name} {_short(value)}" for name, value in result.beside.items()),
        f"model {model.fingerprint[:12]}",
        f"biaskit {run.manifest['versions'].get('biaskit', '')}",
        NO_DIRECTION,
    )
    return "; ".join(parts)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
