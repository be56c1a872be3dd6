"""Results as JSON by the schema of Every Eval Ever, 0.3.0, with a file of samples beside it.

The schema asks for things that a share has not, and both are said where they stand: `lower_is_better` and
`is_correct` must be true or false. Numbers that are undefined are left out, since it takes none.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from biaskit.exchange.results import NO_DIRECTION, Result, models, nothing_defined, results_of
from biaskit.exchange.samples import samples_of
from biaskit.exchange.source import ExportFiles, Source
from biaskit.provenance import canonical_json
from biaskit.runs.collection import Model, StoredRun
from biaskit.runs.store import slug

SCHEMA = "0.3.0"
NEITHER = f"{NO_DIRECTION}; lower_is_better is false because the schema takes no other word for it"
UNSTATED = "unknown"
Json = dict[str, Any]


def as_every_eval_ever(source: Source) -> ExportFiles:
    """For each model its results (`UUID.json`) and, of the prober, its cells (`UUID_samples.jsonl`).

    Option: `organization`, who evaluated. Raises `UsageError` where no share is defined.
    """
    source.takes_only("organization")
    notes: list[str] = []
    files: dict[str, bytes] = {}
    now = str(int(time.time()))
    for run, model in models(source):
        results = results_of(run, model, notes)
        if not results:
            continue
        name = _uuid(run, model)
        whole = _whole(source, run, model, results, now)
        if run.engine == "probe":
            lines, left_out = samples_of(source, run, model, results, whole)
            content = "".join(f"{canonical_json(line)}\n" for line in lines).encode("ascii")
            whole["detailed_evaluation_results"] = _detailed(run, whole, name, content, len(lines))
            files[f"{name}_samples.jsonl"] = content
            notes += left_out
        else:
            notes.append(f"{model.label}: texts stay in {run.path.name}; no samples file is made of them")
        files[f"{name}.json"] = _json(whole)
        notes.append(f"{model.label}: {name}.json belongs into {_folder(run, whole)} of the collection")
    if not files:
        raise nothing_defined(notes)
    if not source.options.get("organization"):
        notes.append("Who evaluated is not stated: --organization NAME")
    return ExportFiles(files, next(name for name in files if name.endswith(".json")), tuple(notes))


def _json(value: Json) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")


def _uuid(run: StoredRun, model: Model) -> uuid.UUID:
    """The same for the same run and model, in the form of version 4 that the schema asks for."""
    said = canonical_json([run.manifest["signature"], run.analysis.get("rows_digest"), model.label])
    return uuid.UUID(bytes=hashlib.sha256(said.encode("ascii")).digest()[:16], version=4)


# --- the parts of a file ---------------------------------------------------------------------------


def _whole(source: Source, run: StoredRun, model: Model, results: list[Result], now: str) -> Json:
    info = _model_info(run, model)
    versions = run.manifest["versions"]
    whole = {
        "schema_version": SCHEMA,
        "evaluation_id": f"biaskit-{run.manifest['study']}/{info['id']}/{now}",
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_name": f"biaskit, study {run.manifest['study']}",
            "source_type": "evaluation_run",
            "source_organization_name": str(source.options.get("organization") or UNSTATED),
            "evaluator_relationship": "other",
            "additional_details": {"command": str(run.manifest["command"])},
        },
        "eval_library": {
            "name": "biaskit",
            "version": str(versions.get("biaskit", UNSTATED)),
            "additional_details": {"signature": str(run.manifest["signature"])},
        },
        "model_info": info,
        "evaluation_results": [_result(run, model, one) for one in results],
    }
    return whole | ({"evaluation_timestamp": model.last_answered} if model.last_answered else {})


def _model_info(run: StoredRun, model: Model) -> Json:
    kind, _, name = model.spec.partition(":")
    deployed = {"local": "self_deployed"}.get(model.where, UNSTATED)
    details = run.manifest["models"][model.label].get("details") or {}
    hub = kind == "hf" and not name.startswith((".", "/", "~")) and name.count("/") == 1
    info = {
        "name": model.label,
        "id": {"openai": f"openai/{name}"}.get(kind, name.partition("@")[0] if hub else model.label),
        "additional_details": {
            **_texts(details),
            "deployment_type": "externally_managed" if kind == "openai" else deployed,
            "model_availability": "open_weights" if hub or model.spec == "demo" else UNSTATED,
            **_texts({"fingerprint": model.fingerprint, "tuning": model.tuning}),
        },
    }
    if model.where == "local" and (version := run.manifest["versions"].get("transformers")):
        info["inference_engine"] = {"name": "transformers", "version": str(version)}
    return info


def _result(run: StoredRun, model: Model, result: Result) -> Json:
    return {
        "evaluation_result_id": result.name,
        "evaluation_name": f"biaskit {run.manifest['study']}: {result.name}",
        "source_data": {
            "dataset_name": f"biaskit {run.manifest['study']}",
            "source_type": "other",
            "additional_details": _texts(run.manifest["resolved"].get("sources") or {}),
        },
        "metric_config": {
            "evaluation_description": f"share of {result.gender}; {NO_DIRECTION}",
            "metric_id": "biaskit.share" if run.engine == "probe" else "biaskit.represented_share",
            "metric_name": f"share of {result.gender}",
            "metric_kind": "share",
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
            "additional_details": {"direction": NEITHER},
        },
        "score_details": _score(result),
        "generation_config": _generation(run, model),
    }


def _score(result: Result) -> Json:
    uncertainty: Json = {}
    if result.interval is not None:
        low, high = result.interval
        ends = {"lower": low, "upper": high, "confidence_level": 0.95, "method": result.method}
        uncertainty["confidence_interval"] = ends
    if (spread := result.row.get("se_templates")) is not None:
        uncertainty["standard_error"] = {
            "value": spread,
            "method": "SD of the template means / sqrt(templates)",
        }
    if result.n is not None:
        uncertainty["num_samples"] = result.n
    return {"score": result.share, "details": _texts(result.beside), "uncertainty": uncertainty}


def _generation(run: StoredRun, model: Model) -> Json:
    """How answers were obtained; nothing is generated where probabilities are read."""
    how = run.manifest["models"][model.label].get("estimator", "exact") if run.engine == "probe" else "texts"
    known = how if isinstance(how, Mapping) else {"name": how}
    details = {"estimator": known["name"], "prompt_form": model.prompt_form, "k": known.get("k")}
    details |= {"draws_per_round": known.get("draws")}
    found: Json = {"additional_details": _texts(details)}
    sampling = run.manifest["resolved"]["study"].get("sampling") if run.engine == "personas" else None
    if known["name"] == "sampling":
        found["generation_args"] = {"temperature": 1.0, "top_p": 1.0} | _longest(known.get("max_new_tokens"))
    elif isinstance(sampling, Mapping):
        kept = {name: sampling[name] for name in ("temperature", "top_p") if name in sampling}
        found["generation_args"] = kept | _longest(sampling.get("max_new_tokens"))
    return found


def _longest(tokens: Any) -> Json:
    return {} if tokens is None else {"max_tokens": tokens}


def _detailed(run: StoredRun, whole: Json, name: uuid.UUID, content: bytes, n: int) -> Json:
    return {
        "format": "jsonl",
        "file_path": f"{_folder(run, whole)}/{name}_samples.jsonl",
        "hash_algorithm": "sha256",
        "checksum": hashlib.sha256(content).hexdigest(),
        "total_rows": n,
    }


def _folder(run: StoredRun, whole: Json) -> str:
    """Where the collection keeps a file: data/benchmark/developer/model, names without a slash."""
    developer, slash, name = whole["model_info"]["id"].partition("/")
    owned = (developer, name) if slash else (UNSTATED, developer)
    parts = (f"biaskit-{run.manifest['study']}", *owned)
    return "/".join(("data", *(slug(part) for part in parts)))


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """What the schema wants as texts; nothing of what has no value."""
    return dict(_shown(values))


def _shown(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if value not in (None, ""):
            yield str(name), value if isinstance(value, str) else json.dumps(value)
