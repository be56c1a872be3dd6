"""A run as logs of Inspect: one for each model and bias type, of texts one for each model."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from biaskit.common.provenance import key_of
from biaskit.exchange.source import ExportFiles, Source, package
from biaskit.measurement import measurement
from biaskit.runs.collection import StoredRun
from biaskit.runs.store import slug
from biaskit.tables.query import Row, where
from biaskit.tables.schema import SCHEMAS

SCORER = "biaskit"
_WHY = "A log of Inspect"
_NEVER = "1970-01-01T00:00:00+00:00"  # when texts were written that do not say when
_STOPS = {"stop": "stop", "length": "max_tokens", "refusal": "content_filter", "filter": "content_filter"}
"""What ended a text, as Inspect calls it."""
_WHICH = (
    *("job_group", "occupation", "template_id", "debiasing_id", "context", "prompt_format"),
    *("language", "stereotype"),
)
"""The columns that tell a row of results from others of its log."""
Sample = tuple[Sequence[Row], Row]  # the stored rows of a cell or text, and what the tables say of it


def as_inspect(source: Source) -> ExportFiles:
    """Write every run of a source as logs, with Inspect's own writer."""
    source.takes_only()
    files: dict[str, bytes] = {}
    for run in source.collection.runs:
        logs: dict[tuple[str, str], list[Sample]] = {}
        for label, kind, rows, table_row in measurement(run.measurement).samples(run):
            logs.setdefault((label, kind), []).append((rows, table_row))
        for (label, kind), samples in logs.items():
            name = f"{slug(run.study)}-{slug(label)}-{kind}.eval"
            files[name] = _log(run, label, kind, samples)
    return ExportFiles(files, next(iter(files), ""), ("inspect view --log-dir FOLDER shows them",))


def _log(run: StoredRun, label: str, kind: str, samples: Sequence[Sample]) -> bytes:
    """Write a log of one model and kind of sample; Inspect itself checks every part of it."""
    logs = package("inspect_ai.log", "inspect", _WHY)
    entry, study = run.manifest.models[label], run.study
    spec, signature = entry.spec, str(run.analysis["signature"])
    ident = key_of([signature, run.analysis["rows_digest"], label, kind])[:22]
    stamps = [row.get("answered_at") for rows, _ in samples for row in rows]
    times = sorted(map(str, filter(None, stamps))) or [_NEVER]
    about = {"label": label, "signature": signature, "notes": run.analysis["notes"]}
    about |= {name: getattr(entry, name) for name in ("fingerprint", "tuning", "prompt_format")}
    about["estimator"] = entry.estimator_key
    evaluated: dict[str, Any] = dict.fromkeys(("eval_id", "run_id", "task_id"), ident)
    evaluated |= {"created": times[0], "task": f"{study}-{kind}", "model": spec}
    results: dict[str, Any] = dict.fromkeys(("total_samples", "completed_samples"), len(samples))
    results["scores"] = list(_scores(run, label, kind, len(samples)))
    evaluated |= {"dataset": {"name": study, "samples": len(samples)}, "config": {}, "metadata": about}
    evaluated["packages"] = run.manifest.versions
    # What models wrote is shown as it is: no markup, no links, no pictures.
    evaluated["viewer"] = {"trust_content": False}
    log: dict[str, Any] = {
        "status": "success",
        "eval": evaluated,
        "plan": {"name": SCORER},
        "results": results,
        "stats": {"started_at": times[0], "completed_at": times[-1]},
    }
    log["samples"] = [_sample(i, *sample, spec) for i, sample in enumerate(samples)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.eval"
        logs.write_eval_log(logs.EvalLog.model_validate(log), str(path), format="eval")
        return path.read_bytes()


def _sample(number: int, rows: Sequence[Row], table_row: Row, model: str) -> dict[str, Any]:
    message = package("inspect_ai.model", "inspect", _WHY).ChatMessageAssistant  # has an identifier
    choices = []
    for row in rows:
        for text, end in _answers(row):
            answer = message(content=text, source="generate")
            choices.append({"message": answer, "stop_reason": _STOPS.get(str(end), "unknown")})
    value: Any = table_row.get("gender") or "none"
    if shares := {name.replace("_", " "): x for name, x in table_row.items() if name.endswith("_share")}:
        value = shares
        if "coverage" in table_row:
            value["coverage"] = table_row["coverage"]
    prompt = str(rows[0].get("prompt") or "")
    messages: list[Any] = [{"role": "user", "content": prompt, "source": "input"}]
    messages += [choice["message"] for choice in choices[:1]]
    sample = {"id": f"{number:06d}-{rows[0]['key']}", "epoch": 1, "input": prompt, "target": ""}
    return {
        **sample,
        "messages": messages,
        "output": {"model": model, "choices": choices},
        "scores": {SCORER: {"value": value}},
        "metadata": dict(table_row),
    }


def _answers(row: Row) -> Iterator[tuple[str, str | None]]:
    """Yield what a row holds of texts, each with what ended it."""
    if "text" in row:
        yield str(row["text"]), row.get("finish_reason")
    elif row["estimator"] == "sampling":
        yield from row.get("answers", ())
    else:  # nothing was written: a line for each target word with what is known of it
        lines = []
        for target_word in row["target_words"]:
            log = target_word["log_prob"]
            if log is None:
                written = "–"
            elif row["prompt_format"] == "sentence":  # so improbable that its logarithm alone says something
                written = f"log {log:.3f}  {target_word['text']!r} ({target_word['group']})"
            else:
                written = f"{math.exp(log):.6f}  {target_word['text']!r} ({target_word['group']})"
            lines.append(written)
        yield "\n".join(lines), None


def _scores(run: StoredRun, label: str, kind: str, n_samples: int) -> Iterator[dict[str, Any]]:
    """Yield a score for each group: the published means, with their intervals."""
    table, share = measurement(run.measurement).published
    rows_of: dict[str, list[Row]] = {} if "gender" in SCHEMAS[table].keys else {"women": []}
    for row in where(run.tables.get(table, ()), model=label):
        if row.get("bias_type", kind) == kind:
            rows_of.setdefault(str(row.get("gender", "women")), []).append(row)
    for group, rows in rows_of.items():
        varying = []
        for column in _WHICH:
            if column == "job_group" or len({row.get(column) for row in rows}) > 1:
                varying.append(column)
        metrics, missing = {}, []
        for row in rows:
            place = ", ".join(str(row[column]) for column in varying if row.get(column) is not None)
            if row[share] is None:  # a metric has to be a number
                missing.append(f"{place}: {row['reason']}")
                continue
            title = f"{group} share in {place}" if place else f"{group} share"
            known = {key: value for key, value in row.items() if value is not None}
            metrics[title] = {"name": title, "value": row[share], "metadata": known}
        yield {
            "name": f"{group} share",
            "scorer": SCORER,
            "scored_samples": n_samples,
            "metrics": metrics,
            "metadata": {"not measured": json.dumps(missing)} if missing else None,
        }
