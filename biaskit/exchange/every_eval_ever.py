"""Results as JSON by the schema of Every Eval Ever, 0.3.0.

The schema asks for `lower_is_better`, which makes no sense of a share: `direction` beside it says so.
Undefined numbers are left out, since the schema takes none.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from biaskit.common.provenance import digest
from biaskit.exchange.results import NO_DIRECTION, Result, results_of
from biaskit.exchange.source import ExportFiles, Source
from biaskit.runs.collection import Model, StoredRun

NEITHER = f"{NO_DIRECTION}; lower_is_better is false because the schema requires a value"
UNSTATED = "unknown"
MORE = "additional_details"  # what the schema has no field for


def as_every_eval_ever(source: Source) -> ExportFiles:
    """Write each model's results as `UUID.json`; option `organization`: of whom. Raises `UsageError`."""
    source.takes_only("organization")
    organization = str(source.options.get("organization") or UNSTATED)
    found, notes = results_of(source)
    files: dict[str, bytes] = {}
    for run, model, results in found:
        # The same for the same run and model, in the form of version 4 that the schema asks for.
        identity = digest([run.manifest.signature, run.analysis["rows_digest"], model.label])
        name = uuid.UUID(bytes=bytes.fromhex(identity)[:16], version=4)
        text = json.dumps(_document(run, model, results, organization), indent=1, allow_nan=False)
        files[f"{name}.json"] = f"{text}\n".encode("ascii")
    if organization == UNSTATED:
        notes.append("Who evaluated is not stated: --organization NAME")
    return ExportFiles(files, next(iter(files)), tuple(notes))


def _document(run: StoredRun, model: Model, results: Sequence[Result], organization: str) -> dict[str, Any]:
    kind, _, name = model.spec.partition(":")
    now, study = str(int(time.time())), run.study
    ident = name.partition("@")[0] if kind == "hf" and name.count("/") == 1 else model.label
    source = {"source_name": f"biaskit, study {study}", "source_type": "evaluation_run"}
    source |= {"source_organization_name": organization, "evaluator_relationship": "other"}
    library = {"name": "biaskit", "version": str(run.manifest.versions.get("biaskit", UNSTATED))}
    details = {
        "deployment_type": "self_deployed" if model.where == "local" else UNSTATED,
        "model_availability": "open_weights" if kind == "hf" else UNSTATED,
        **_texts({"fingerprint": model.fingerprint, "tuning": model.tuning}),
    }
    document: dict[str, Any] = {
        "schema_version": "0.3.0",
        "evaluation_id": f"biaskit-{study}/{ident}/{now}",
        "retrieved_timestamp": now,
    }
    document["source_metadata"] = {**source, MORE: {"command": run.manifest.command}}
    document["eval_library"] = {**library, MORE: {"signature": run.manifest.signature}}
    document["model_info"] = {"name": model.label, "id": ident, MORE: details}
    document["evaluation_results"] = [_result(run, model, result) for result in results]
    if model.last_answered:
        document["evaluation_timestamp"] = model.last_answered
    return document


def _result(run: StoredRun, model: Model, result: Result) -> dict[str, Any]:
    gender, name, n, method = result.named
    uncertainty: dict[str, Any] = {} if n is None else {"num_samples": n}
    if result.interval is not None:
        low, high = result.interval
        interval = {"lower": low, "upper": high, "confidence_level": 0.95, "method": method}
        uncertainty["confidence_interval"] = interval
    metric = {
        "evaluation_description": f"share of {gender}; {NO_DIRECTION}",
        # Of the probability of words, or of texts.
        "metric_id": "biaskit.share" if model.estimator else "biaskit.represented_share",
        "metric_name": f"share of {gender}",
        "metric_kind": "share",
        "metric_unit": "proportion",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0.0,
        "max_score": 1.0,
    }
    study = f"biaskit {run.study}"
    about = _texts({"estimator": model.estimator or "texts", "prompt_format": model.prompt_format})
    details = {"score": result.share, "details": _texts(result.beside), "uncertainty": uncertainty}
    return {
        "evaluation_result_id": name,
        "evaluation_name": f"{study}: {name}",
        "source_data": {"dataset_name": study, "source_type": "other"},
        "metric_config": {**metric, MORE: {"direction": NEITHER}},
        "score_details": details,
        "generation_config": {MORE: about},
    }


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Turn values into texts, as the schema wants them; what has no value is left out."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
        if value not in (None, "")
    }
