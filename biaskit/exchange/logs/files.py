"""Which of the named files and folders are logs, and whose."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from biaskit.errors import UsageError
from biaskit.exchange.logs.inspect_samples import read_eval, read_json
from biaskit.exchange.logs.lm_eval_samples import FILE, read_samples
from biaskit.exchange.logs.samples import TaskLog, cell
from biaskit.inputs import one_line
from biaskit.runs.manifest import MANIFEST

MOST_FILES = 10_000
"""In a folder that is searched."""
_LINES = (".jsonl", ".jsonl.gz")
_NAMES = re.compile(rf".+\.eval|\d{{4}}-\d\d-\d\dT.+\.json|{FILE.pattern}")
"""What the tools call the logs that they put into a folder."""


def is_log(path: Path) -> bool:
    """Whether a path is meant as a log, or a folder of logs, and not as a run."""
    if path.is_dir():
        return not (path / MANIFEST).is_file() and bool(_inside(path))
    return path.name.endswith((".eval", ".json", *_LINES)) or path.is_file()


def read_logs(paths: Sequence[Path]) -> tuple[list[TaskLog], list[str]]:
    """The logs that are named, models told apart, and what a careful reader must know.

    Of several logs of one task and model in one folder the newest is taken, which is said. Where two of the
    named files or folders have one task and model, their names go into the model's.
    Raises `UsageError` of one line.
    """
    sources: list[list[TaskLog]] = []
    notes: list[str] = []
    for path in paths:
        found = [_read(file) for file in _inside(path)] if path.is_dir() else [_read(path)]
        kept, said = _newest(found)
        sources.append(kept)
        notes += said
    return _told_apart(paths, sources), notes


def _read(path: Path) -> TaskLog:
    if path.name.endswith(".eval"):
        log = read_eval(path)
    elif path.name.endswith(_LINES):
        log = read_samples(path)
    elif path.name.endswith(".json"):
        log = read_json(path)
    else:
        raise UsageError(
            f"{one_line(str(path))} is no log: name .eval or .json logs of Inspect, or lm-eval's"
            " samples_*.jsonl."
        )
    return replace(log, task=cell(log.task), model=cell(log.model))


def _inside(folder: Path) -> list[Path]:
    """Logs in a folder and below it, in order of their paths; links are not followed."""
    found: list[Path] = []
    for n, (path, _, names) in enumerate(os.walk(folder)):
        if max(n, len(found)) > MOST_FILES:
            raise UsageError(
                f"{one_line(str(folder))} holds more than {MOST_FILES:,} logs or folders: name the logs."
            )
        found += [Path(path, name) for name in names if _NAMES.fullmatch(name)]
    return sorted(found)


def _newest(logs: Sequence[TaskLog]) -> tuple[list[TaskLog], list[str]]:
    kept: dict[tuple[str, str, str], TaskLog] = {}
    dropped: dict[tuple[str, str, str], list[TaskLog]] = {}
    for log in sorted(logs, key=lambda log: log.created):
        key = log.tool, log.task, log.model
        if key in kept:
            dropped.setdefault(key, []).append(kept[key])
        kept[key] = log
    for key, others in dropped.items():
        args = kept[key].about.get("task_args")
        if apart := [one.path for one in others if one.about.get("task_args") != args]:
            raise UsageError(
                f"{one_line(str(apart[0]))} and {one_line(str(kept[key].path))} are of one task and model"
                " with other arguments: name the files to compare."
            )
    return list(kept.values()), [
        f"{key[1]}, {key[2]}: of {len(others) + 1} logs the newest is taken, {one_line(str(kept[key].path))}"
        for key, others in dropped.items()
    ]


def _told_apart(paths: Sequence[Path], sources: Sequence[Sequence[TaskLog]]) -> list[TaskLog]:
    """Models by their names; one that two sources have of one task, with the source."""
    seen = Counter((log.tool, log.task, log.model) for found in sources for log in found)
    twice = {model for (_, _, model), n in seen.items() if n > 1}
    return [
        replace(log, model=f"{log.model} ({cell(end)})") if log.model in twice else log
        for found, end in zip(sources, _ends(paths), strict=True)
        for log in found
    ]


def _ends(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell all of them apart."""
    parts = [path.resolve().parts for path in paths]
    for n in range(1, max(map(len, parts)) + 1):
        ends = ["/".join(own[-n:]) for own in parts]
        if len(set(ends)) == len(ends):
            return ends
    raise UsageError(f"{one_line(str(paths[0]))} is named twice: a log is compared with another one.")
