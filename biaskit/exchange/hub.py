"""Results for a model's page on the Hugging Face hub: YAML files for its folder `.eval_results`."""

from __future__ import annotations

import re

from biaskit.errors import UsageError
from biaskit.exchange.results import NO_DIRECTION, Result, results_of
from biaskit.exchange.source import ExportFiles, Source, package
from biaskit.measurement import measurement
from biaskit.runs.collection import Model, StoredRun
from biaskit.runs.store import slug


def as_hub(source: Source) -> ExportFiles:
    """Write a file for each model, through huggingface_hub's own classes.

    Options: `dataset`, the hub's data set that the results are listed under (ORG/NAME or ORG/NAME@REVISION),
    which the format requires; `url`, of a page that shows them. Raises `UsageError`.
    """
    source.takes_only("dataset", "url")
    hub, yaml = (package(name, "local", "--to hf") for name in ("huggingface_hub", "yaml"))
    given, url = str(source.options.get("dataset") or ""), source.options.get("url")
    dataset = re.fullmatch(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", given, re.ASCII)
    if dataset is None:
        problem = f"{given!r} is none" if given else "none is given"
        raise UsageError(
            f"A model page lists results under a data set of the hub, and {problem}: --dataset ORG/NAME or"
            " --dataset ORG/NAME@REVISION."
        )
    if url is not None and not re.fullmatch(r"https?://[!-~]+", str(url)):
        raise UsageError(f"--url {url!r} is not an address: give https://…")
    found, notes = results_of(source)
    files: dict[str, bytes] = {}
    for run, model, results in found:
        entries = []
        for result in results:
            parts = [slug(part.replace(" ", "-")) for part in result.named.name.split("/")]
            entry = hub.EvalResultEntry(
                dataset_id=dataset[1],
                dataset_revision=dataset[2],
                task_id=".".join(parts),  # letters, digits, dots, hyphens and underscores alone
                value=round(result.share, 6),
                date=model.last_answered,
                source_url=url,
                source_name="biaskit" if url else None,
                notes=_notes(run, model, result),
            )
            entries.append(entry)
        content = hub.eval_result_entries_to_yaml(entries)
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=10_000)
        files[f"{slug(run.measurement)}-{slug(model.label)}.yaml"] = text.encode("utf-8")
    if url is None:
        notes.append("No entry has a source: --url names the page that shows these numbers")
    notes.append("Each file goes into the folder .eval_results of its model's repository")
    return ExportFiles(files, next(iter(files)), tuple(notes))


def _notes(run: StoredRun, model: Model, result: Result) -> str:
    ends = "no interval"
    if result.interval:
        low, high = result.interval
        ends = f"95 % interval {low:.4f} to {high:.4f} over {measurement(run.measurement).over}"
    parts = [f"share of {result.named.gender}, a fraction", ends]
    for name, value in result.beside.items():
        parts.append(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}")
    version = run.manifest.versions.get("biaskit", "")
    return "; ".join([*parts, f"model {model.fingerprint[:12]}", f"biaskit {version}", NO_DIRECTION])
