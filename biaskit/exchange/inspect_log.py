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
from biaskit.measures.probe.prompts import CELL
from biaskit.runs.collection import StoredRun
from biaskit.runs.store import slug
from biaskit.tables.query import Row, grouped, where

SCORER = "biaskit"
TEXTS = "personas"
_WHY = "A log of Inspect"
_NEVER = "1970-01-01T00:00:00+00:00"  # when texts were written that do not say when
_STOPS = {"stop": "stop", "length": "max_tokens", "refusal": "content_filter", "filter": "content_filter"}
"""What ended a text, as Inspect calls it."""
_WHICH = (
    *("job_group", "occupation", "template_id", "instruction_id", "setting", "prompt_form"),
    *("language", "stereotype"),
)
"""The columns that tell a row of results from others of its log."""
Sample = tuple[Sequence[Row], Row]  # the stored rows of a cell or text, and what the tables say of it


def as_inspect(source: Source) -> ExportFiles:
    """Write every run of a source as logs, with Inspect's own writer."""
    source.takes_only()
    files: dict[str, bytes] = {}
    for run in source.collection.runs:
        for (label, kind), samples in _samples(source, run).items():
            name = f"{slug(str(run.manifest['study']))}-{slug(label)}-{kind}.eval"
            files[name] = _log(run, label, kind, samples)
    return ExportFiles(files, next(iter(files), ""), ("inspect view --log-dir FOLDER shows them",))


def _samples(source: Source, run: StoredRun) -> dict[tuple[str, str], list[Sample]]:
    """Collect the answered cells of each model and bias type, or the texts of each model."""
    samples: dict[tuple[str, str], list[Sample]] = {}
    if run.engine == "probe":
        rows: dict[tuple[Any, ...], list[Row]] = {}
        for cell, row in source.cells(run):
            rows.setdefault((cell.model, *(getattr(cell, name) for name in CELL)), []).append(row)
        pairs = run.manifest["resolved"].get("pairs", ())
        scores = {(r["model"], r["language"], r["item"]): r for r in run.tables.get("pair_scores", ())}
        for (label, kind, template, *_), of_pair in rows.items() if pairs else ():
            score = scores[label, pairs[template - 1]["language"], pairs[template - 1]["item"]]
            samples.setdefault((label, kind), []).append((of_pair, score))
        for of_cell in run.tables.get("probe_cells", ()):
            if stored := rows.get((of_cell["model"], *(of_cell[name] for name in CELL))):
                samples.setdefault((of_cell["model"], of_cell["bias_type"]), []).append((stored, of_cell))
        return samples
    associated = {row["key"]: row for row in run.tables.get("associations", ())}
    for row in run.rows():
        if (of_text := associated.get(row["key"])) is not None:
            samples.setdefault((of_text["model"], TEXTS), []).append(([row], of_text))
    return samples


def _log(run: StoredRun, label: str, kind: str, samples: Sequence[Sample]) -> bytes:
    """Write a log of one model and kind of sample; Inspect itself checks every part of it."""
    logs = package("inspect_ai.log", "inspect", _WHY)
    entry = run.manifest["models"][label]
    signature = str(run.analysis["signature"])
    ident = key_of([signature, run.analysis["rows_digest"], label, kind])[:22]
    stamps = (row.get("answered_at") for rows, _ in samples for row in rows)
    times = sorted(str(stamp) for stamp in stamps if stamp) or [_NEVER]
    about = {name: entry.get(name) for name in ("fingerprint", "tuning", "prompt_form", "estimator")}
    log = {
        "status": "success",
        "eval": {
            **dict.fromkeys(("eval_id", "run_id", "task_id"), ident),
            "created": times[0],
            "task": f"{run.manifest['study']}-{kind}",
            "dataset": {"name": str(run.manifest["study"]), "samples": len(samples)},
            "model": str(entry["spec"]),
            "config": {},
            # What models wrote is shown as it is: no markup, no links, no pictures.
            "viewer": {"trust_content": False},
            "packages": {str(name): str(number) for name, number in run.manifest["versions"].items()},
            "metadata": {"label": label, "signature": signature, "notes": run.analysis["notes"], **about},
        },
        "plan": {"name": SCORER},
        "results": {
            **dict.fromkeys(("total_samples", "completed_samples"), len(samples)),
            "scores": list(_scores(run, label, kind, len(samples))),
        },
        "stats": {"started_at": times[0], "completed_at": times[-1]},
        "samples": [_sample(i, *sample, str(entry["spec"])) for i, sample in enumerate(samples)],
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.eval"
        logs.write_eval_log(logs.EvalLog.model_validate(log), str(path), format="eval")
        return path.read_bytes()


def _sample(number: int, rows: Sequence[Row], table_row: Row, model: str) -> dict[str, Any]:
    message = package("inspect_ai.model", "inspect", _WHY).ChatMessageAssistant  # has an identifier
    answers: list[tuple[str, str | None]] = []
    for row in rows:
        if "text" in row:
            answers.append((str(row["text"]), row.get("finish_reason")))
        elif row["estimator"] == "sampling":
            answers += row.get("answers", ())
        else:  # nothing was written: a line for each expression with what is known of it
            ends = ((e["text"], e["group"], e["log_prob"]) for e in row["expressions"])
            # A whole sentence is so improbable that its logarithm alone says something.
            written = (
                "log {:.3f}".format
                if row["prompt_form"] == "sentence"
                else lambda log: f"{math.exp(log):.6f}"
            )
            lines = ("–" if log is None else f"{written(log)}  {text!r} ({g})" for text, g, log in ends)
            answers.append(("\n".join(lines), None))
    choices = [
        {"message": message(content=text, source="generate"), "stop_reason": _STOPS.get(str(end), "unknown")}
        for text, end in answers
    ]
    value: Any = table_row.get("gender") or "none"
    if shares := {name.replace("_", " "): x for name, x in table_row.items() if name.endswith("_share")}:
        value = shares | ({"coverage": table_row["coverage"]} if "coverage" in table_row else {})
    prompt = str(rows[0].get("prompt") or "")
    question = {"role": "user", "content": prompt, "source": "input"}
    return {
        "id": f"{number:06d}-{rows[0]['key']}",
        "epoch": 1,
        "input": prompt,
        "target": "",
        "messages": [question, *(choice["message"] for choice in choices[:1])],
        "output": {"model": model, "choices": choices},
        "scores": {SCORER: {"value": value}},
        "metadata": dict(table_row),
    }


def _scores(run: StoredRun, label: str, kind: str, n_samples: int) -> Iterator[dict[str, Any]]:
    """Yield a score for each group: means over jobs and templates, or of texts, with their intervals."""
    if kind == TEXTS:
        column, rows_of = "female_share", {"women": where(run.tables.get("representation", ()), model=label)}
    elif kind == "pairs":
        rows = where(run.tables.get("pair_groups", ()), model=label)
        column, rows_of = "female_share", {"women": rows}
    else:
        shares = where(run.tables.get("probe_groups", ()), model=label, bias_type=kind)
        column, rows_of = "share", {str(group): rows for (group,), rows in grouped(shares, "gender").items()}
    for group, rows in rows_of.items():
        varying = [c for c in _WHICH if c == "job_group" or len({row.get(c) for row in rows}) > 1]
        metrics, missing = {}, []
        for row in rows:
            place = ", ".join(f"{row[c]}" for c in varying if row.get(c) is not None)
            if row[column] is None:  # a metric has to be a number
                missing.append(f"{place}: {row['reason']}")
                continue
            title = f"{group} share in {place}" if place else f"{group} share"
            known = {key: value for key, value in row.items() if value is not None}
            metrics[title] = {"name": title, "value": row[column], "metadata": known}
        yield {
            "name": f"{group} share",
            "scorer": SCORER,
            "scored_samples": n_samples,
            "metrics": metrics,
            "metadata": {"not measured": json.dumps(missing)} if missing else None,
        }
