"""Logs of Inspect: .eval (a zip of JSON) and .json."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from biaskit.errors import UsageError
from biaskit.exchange.logs.archive import Archive, open_archive
from biaskit.exchange.logs.samples import (
    LOG_FILES,
    Reading,
    TaskLog,
    allowed_nan,
    digest_of,
    texts_of,
    with_readings,
)
from biaskit.inputs import one_line, parse_json
from biaskit.wording import count

TOOL = "inspect"
CUT = "(content truncated)"
"""How a summary ends a text that it has shortened."""
_JOURNAL = re.compile(r"_journal/summaries/(\d+)\.json")
_SPEC = ("task_version", "task_args", "solver", "solver_args", "model_generate_config")


def read_eval(path: Path) -> TaskLog:
    """An .eval log. Raises `UsageError` of one line.

    Only the header and the summaries of the samples are read; a sample itself only where its summary has
    shortened the input.
    """
    with open_archive(path) as archive:
        header = _header(archive)
        summaries = list(_summaries(archive))
        return _log(path, header, summaries, archive)


def read_json(path: Path) -> TaskLog:
    """A log in Inspect's JSON format. Raises `UsageError` of one line."""
    where = one_line(str(path))
    text = LOG_FILES.text(path, where)
    try:
        held = parse_json(text, parse_constant=allowed_nan)
    except ValueError as error:
        raise UsageError(f"{where} is not valid JSON: {error}. {LOG_FILES.remedy}") from None
    if not isinstance(held, dict) or not isinstance(held.get("eval"), dict):
        raise UsageError(f"{where} is no log of Inspect: it has no table eval.")
    samples = held.get("samples") or []
    if not isinstance(samples, list):
        raise UsageError(f"{where} is no log of Inspect: its samples are no list.")
    return _log(path, held, samples, None)


def _header(archive: Archive) -> Mapping[str, Any]:
    for name in ("header.json", "_journal/start.json"):
        if name in archive.names:
            held = archive.json(name)
            if isinstance(held, dict) and isinstance(held.get("eval"), dict):
                return held
            raise UsageError(f"{archive.where}: {name} is no header of Inspect: it has no table eval.")
    raise UsageError(f"{archive.where} is no log of Inspect: it has no header.json.")


def _summaries(archive: Archive) -> Iterator[Any]:
    """The samples' summaries; of a log that was not finished, the journal's."""
    if "summaries.json" in archive.names:
        names = ["summaries.json"]
    else:
        found = [match for name in archive.names if (match := _JOURNAL.fullmatch(name))]
        names = [match.group() for match in sorted(found, key=lambda match: int(match.group(1)))]
    if not names:
        raise UsageError(f"{archive.where} holds no samples: it was stopped early, or is damaged.")
    for name in names:
        held = archive.json(name)
        if not isinstance(held, list):
            raise UsageError(f"{archive.where}: {name} is no list of samples.")
        yield from held


def _log(path: Path, header: Mapping[str, Any], samples: Sequence[Any], archive: Archive | None) -> TaskLog:
    spec = header["eval"]
    where = one_line(str(path))
    task, model = spec.get("task"), spec.get("model")
    if not isinstance(task, str) or not isinstance(model, str):
        raise UsageError(f"{where} is no log of Inspect: it names no task and model.")
    config = spec.get("config") if isinstance(spec.get("config"), dict) else {}
    about = {name: spec.get(name) for name in _SPEC} | {"epochs": config.get("epochs")}
    last = _last_runs(samples, where)
    again = len(samples) - len(last)
    log = TaskLog(
        TOOL,
        task,
        model,
        path,
        created=str(spec.get("created") or ""),
        about=dict(texts_of(about)),
        notes=tuple(_notes(header, spec, config, len(last), again)),
    )
    return with_readings(log, (_reading(one, where, archive) for one in last))


def _notes(
    header: Mapping[str, Any], spec: Mapping[str, Any], config: Mapping[str, Any], n_samples: int, again: int
) -> Iterator[str]:
    status = header.get("status", "started")
    if status != "success":
        planned = spec["dataset"].get("samples") if isinstance(spec.get("dataset"), dict) else None
        epochs = config.get("epochs") or 1
        whole = isinstance(planned, int) and isinstance(epochs, int)
        of = f" of {planned * epochs:,}" if whole else ""  # type: ignore[operator]
        yield f"not finished (status {status}): {n_samples:,}{of} samples are in the log"
    if again:
        yield f"{count(again, 'sample was', 'samples were')} run again; the last run counts"
    if header.get("invalidated"):
        yield "marked as invalidated by whoever edited it"


def _last_runs(samples: Sequence[Any], where: str) -> list[Any]:
    """Of summaries of one sample and epoch the last, as Inspect has it: the sample was run again."""
    last: dict[tuple[str, str], Any] = {}
    for one in samples:
        if not isinstance(one, dict):
            raise UsageError(f"{where} holds a sample that is no table: it is damaged. {LOG_FILES.remedy}")
        last[repr(one.get("id")), repr(one.get("epoch"))] = one
    return list(last.values())


def _reading(held: Mapping[str, Any], where: str, archive: Archive | None) -> Reading:
    if not isinstance(held.get("id"), str | int):
        raise UsageError(f"{where} holds a sample that has no id: it is damaged. {LOG_FILES.remedy}")
    scores: dict[str, Any] = {}
    for name, score in (held.get("scores") or {}).items() if isinstance(held.get("scores"), dict) else ():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            scores |= {f"{name}/{key}": part for key, part in value.items()}
        else:
            scores[str(name)] = value
    epoch = held.get("epoch", 1)
    return Reading(
        str(held["id"]),
        _digest(held, archive),
        scores,
        epoch if isinstance(epoch, int) else 1,
        failed=bool(held.get("error")),
    )


def _digest(held: Mapping[str, Any], archive: Archive | None) -> str:
    """What was asked and what is right; ids of messages are made anew in every run and do not count."""
    asked: list[Any] = [held.get(name) for name in ("input", "choices", "target")]
    name = f"samples/{held['id']}_epoch_{held.get('epoch', 1)}.json"
    if archive is not None and CUT in str(asked[0]) + str(asked[2]) and name in archive.names:
        whole = archive.json(name)
        if isinstance(whole, dict):
            asked = [whole.get(part) for part in ("input", "choices", "target")]
    if isinstance(asked[0], list):
        asked[0] = [_said(message) for message in asked[0]]
    return digest_of(asked)


def _said(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    content = message.get("content")
    if isinstance(content, list):
        content = [part.get("text", part.get("type")) if isinstance(part, dict) else part for part in content]
    return [message.get("role"), content]
