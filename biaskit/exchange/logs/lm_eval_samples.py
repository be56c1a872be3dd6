"""Sample files of lm-eval (`--log_samples`): samples_TASK_DATE.jsonl beside results_DATE.json."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from biaskit.errors import UsageError
from biaskit.exchange.logs.samples import (
    LOG_FILES,
    Reading,
    TaskLog,
    allowed_nan,
    digest_of,
    texts_of,
    with_readings,
)
from biaskit.inputs import one_line, parse_json, unpacked

TOOL = "lm-eval"
FILE = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl(\.gz)?")
_NOT_METRICS = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    )
)
SAME = 1e-6
"""Relative difference up to which the file's mean is the one that its results state."""


def read_samples(path: Path) -> TaskLog:
    """A sample file with what its results file says of it. Raises `UsageError` of one line."""
    named = FILE.fullmatch(path.name)
    task, date = (named["task"], named["date"]) if named else (path.name.partition(".")[0], "")
    results = _results(path, date)
    log = TaskLog(
        TOOL,
        task,
        str(results.get("model_name") or path.resolve().parent.name),
        path,
        created=date,
        about=dict(texts_of(_about(results, task))),
        stated=_stated(results, task),
        notes=() if results else ("it has no results file beside it: the model is called by its folder",),
    )
    return _with_other_means(with_readings(log, _readings(path)))


def _results(path: Path, date: str) -> Mapping[str, Any]:
    """What lm-eval wrote in the same moment about the whole run; empty where it is gone."""
    beside = path.with_name(f"results_{date}.json")
    if not date or not beside.is_file():
        return {}
    where = one_line(str(beside))
    try:
        held = parse_json(LOG_FILES.text(beside, where), parse_constant=allowed_nan)
    except ValueError as error:
        raise UsageError(f"{where} is not valid JSON: {error}. Move it away to do without it.") from None
    if not isinstance(held, dict):
        raise UsageError(f"{where} is no table of results. Move it away to do without it.")
    return held


def _about(results: Mapping[str, Any], task: str) -> dict[str, Any]:
    def of_task(name: str) -> Any:
        held = results.get(name)
        return held.get(task) if isinstance(held, dict) else None

    return {
        "version": of_task("versions"),
        "n-shot": of_task("n-shot"),
        "chat_template": results.get("chat_template_sha"),
        "system_instruction": results.get("system_instruction_sha"),
    }


def _stated(results: Mapping[str, Any], task: str) -> dict[str, float]:
    """Metric → the number that lm-eval aggregated."""
    held = results.get("results")
    own = held.get(task) if isinstance(held, dict) else None
    if not isinstance(own, dict):
        return {}
    return {
        name: float(value)
        for name, value in own.items()
        if "," in name and "_stderr," not in name and _is_number(value)
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _with_other_means(log: TaskLog) -> TaskLog:
    """Name the metrics that lm-eval does not make by a mean over samples: their differences are others."""
    notes = list(log.notes)
    for metric, own in log.numbers.items():
        stated = log.stated.get(metric)
        mean = fmean(own.values()) if own else math.nan
        if stated is not None and not math.isclose(mean, stated, rel_tol=SAME, abs_tol=SAME):
            notes.append(
                f"{metric} is {stated:.6g} in lm-eval's results and {mean:.6g} as a mean over the samples"
                " here: lm-eval aggregates it otherwise, or samples are missing"
            )
    return replace(log, notes=tuple(notes))


def _readings(path: Path) -> Iterator[Reading]:
    """Line by line; each is a sample under one filter."""
    where = one_line(str(path))
    with LOG_FILES.saying(where), unpacked(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                held = parse_json(line, parse_constant=allowed_nan)
            except ValueError as error:
                cut = "" if line.endswith(b"\n") else " (it ends without a line feed: the file is cut off)"
                raise UsageError(f"{where}, line {number} is not valid JSON: {error}{cut}.") from None
            if not isinstance(held, dict) or "doc_id" not in held:
                raise UsageError(f"{where}, line {number} is no sample of lm-eval: it has no doc_id.")
            yield _reading(held)


def _reading(held: Mapping[str, Any]) -> Reading:
    by = held.get("filter", "none")
    named = held.get("metrics")
    metrics = named if isinstance(named, list) else [name for name in held if name not in _NOT_METRICS]
    hashes = [held.get(name) for name in ("doc_hash", "target_hash")]
    asked = hashes if any(hashes) else [held.get("doc"), held.get("target")]
    return Reading(
        str(held["doc_id"]),
        digest_of(asked),
        {f"{name},{by}": held.get(str(name)) for name in metrics},
        prompt=str(held.get("prompt_hash") or ""),
    )
