"""Logs as Inspect and lm-eval lay them out, small enough to read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Sample = Mapping[str, Any]


def sample(
    name: object, scores: Mapping[str, Any], *, epoch: int = 1, asked: str = "", **more: Any
) -> Sample:
    """A summary of a sample; its input is its id unless `asked` says otherwise."""
    held = {key: {"value": value} for key, value in scores.items()}
    return {"id": name, "epoch": epoch, "input": asked or f"Q {name}", "target": "t", "scores": held, **more}


def header(
    task: str = "sums", model: str = "org/one", status: str = "success", **spec: Any
) -> dict[str, Any]:
    """The header of a log."""
    about = {"task": task, "model": model, "created": "2026-01-01T00:00:00+00:00", "dataset": {"samples": 4}}
    return {"version": 2, "status": status, "eval": {**about, "config": {"epochs": 1}, **spec}}


def eval_log(path: Path, samples: Sequence[Any], **about: Any) -> Path:
    """An .eval log, deflated."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", json.dumps(header(**about)))
        packed.writestr("summaries.json", json.dumps(samples))
    return path


def marks(path: Path, values: Iterable[Any], **about: Any) -> Path:
    """An .eval log of one scorer, `match`, whose samples are numbered from 1."""
    return eval_log(path, [sample(i, {"match": value}) for i, value in enumerate(values, 1)], **about)


def lm_eval_log(
    folder: Path,
    rows: Iterable[Mapping[str, Any]],
    *,
    task: str = "sums",
    model: str = "org/one",
    date: str = "2026-01-01T00-00-00.000001",
    results: Mapping[str, float] | None = None,
) -> Path:
    """A sample file and the results beside it; a row holds its metrics, and what else it states."""
    folder.mkdir(parents=True, exist_ok=True)
    stated = {"results": {task: dict(results or {})}, "model_name": model, "versions": {task: 1}}
    (folder / f"results_{date}.json").write_text(json.dumps(stated))
    path = folder / f"samples_{task}_{date}.jsonl"
    lines = []
    for i, row in enumerate(rows):
        own = {"doc_id": i, "filter": "none", "doc_hash": f"d{row.get('doc_id', i)}"}
        own |= {"target_hash": "t", "prompt_hash": f"p{i}"}
        metrics = [name for name in row if name not in own]
        lines.append(json.dumps({**own, "metrics": metrics, **row}))
    path.write_text("\n".join(lines) + "\n")
    return path
