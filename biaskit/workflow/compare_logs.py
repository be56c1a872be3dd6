"""What `biaskit compare` and `bk.compare` do with other tools' logs: paired tests of every score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biaskit.arguments import PATH
from biaskit.compare.gate import Outcome, require_equivalent
from biaskit.errors import RunError, StudyError, UsageError, nearest
from biaskit.exchange.logs.comparing import SCORE, LogTables, as_contrasts, compare_logs
from biaskit.exchange.logs.files import is_log, read_logs
from biaskit.exchange.logs.samples import TaskLog
from biaskit.inputs import digest_of_file, expanded, one_line
from biaskit.provenance import digest, signature, versions
from biaskit.report.findings import Finding
from biaskit.report.render.document import Document
from biaskit.report.render.log_comparison import log_document, sentence, unpaired_notes
from biaskit.runs.folder import check_run_folder
from biaskit.runs.manifest import (
    COMPARISON,
    LOG_COMPARISON,
    MANIFEST,
    RUN_FORMAT,
    read_manifest,
    write_manifest,
)
from biaskit.runs.store import DEFAULT_PARENT
from biaskit.tables.sets import TableSet, read_set
from biaskit.workflow.calls import command_line
from biaskit.workflow.compare import MARGIN, ComparisonResult
from biaskit.workflow.result import RunResult, table_property

TABLES = ("log_tests", "log_unpaired")


@dataclass(frozen=True, repr=False)
class LogComparison(ComparisonResult):
    """Logs of other tools held against each other: `log_tests` and `log_unpaired`; it has no other table."""

    headline = "log_tests"

    log_tests = table_property(
        "log_tests", "Every task, score and pair of models: difference, interval, p, verdict."
    )
    log_unpaired = table_property("log_unpaired", "Every sample that is not paired, with the reason.")

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Both tables, by name, as typed rows."""
        return read_set(self.path, TABLES).rows()

    def requirement(self, contrast: str = "models") -> Outcome:
        """Whether every row that has a margin is equivalent within it, and which are not.

        Raises `UsageError` where no margin is set, and for another contrast than `models`.
        """
        if contrast != "models":
            raise UsageError(f"Logs have the contrast models alone, not {contrast!r}.")
        rows = self.tables().get("log_tests", [])
        if all(row["margin"] is None for row in rows):
            raise UsageError(
                f"Equivalence needs a margin: --set {MARGIN}{SCORE}=0.05, in the unit of the scores."
            )
        return require_equivalent(list(as_contrasts(rows)), contrast, self.pairs)

    def document(self) -> Document:
        """A table for each task; `findings` say what differs."""
        rows = self.tables().get("log_tests", [])
        return log_document(rows, self.warnings, str(self.analysis()["signature"]))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """A sentence for each test."""
        return tuple(
            Finding(sentence(row), "models", "models", row["verdict"], row["reason"])
            for row in self.tables().get("log_tests", [])
        )


def logs_of(named: Sequence[Any]) -> list[Path]:
    """The logs among what is named to compare; empty where all are runs.

    Raises `UsageError` for a mixture.
    """
    paths = [expanded(one) if isinstance(one, str | Path) and PATH(one) else None for one in named]
    logs = [path for path in paths if path is not None and is_log(path)]
    others = [
        one.path if isinstance(one, RunResult) else one
        for one, path in zip(named, paths, strict=True)
        if path not in logs
    ]
    if logs and others:
        raise UsageError(
            f"{one_line(str(logs[0]))} is a log and {one_line(str(others[0]))} is not: compare logs with logs"
            " and runs with runs."
        )
    return logs


def compare_log_files(
    paths: Sequence[Path],
    *,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> LogComparison:
    """Hold logs against each other, task by task and score by score.

    Args:
        paths: .eval and .json logs of Inspect, samples_*.jsonl of lm-eval, or folders of either.
        out: the comparison's folder; by default biaskit-runs/compare-<8 hex> of what is compared.
        settings: margins, `margin.score` of all scores, `margin.NAME` of one.

    Raises `BiaskitError` with one line to act on.
    """
    logs, notes = read_logs(paths)
    margins = _margins(settings or {}, logs)
    made = compare_logs(logs, margins)
    made.notes = [*notes, *made.notes, *unpaired_notes(made.log_tests)]
    question = {
        "logs": [
            {
                "tool": log.tool,
                "task": log.task,
                "model": log.model,
                "file": log.path.name,
                "sha256": digest_of_file(log.path),
            }
            for log in logs
        ],
        "margins": dict(sorted(margins.items())),
    }
    path = expanded(out) if out is not None else DEFAULT_PARENT / f"{COMPARISON}-{digest(question)[:8]}"
    _write(path, question, made)
    return LogComparison(path, tuple(made.notes), pairs=tuple(made.pairs))


def _margins(settings: Mapping[str, Any], logs: Sequence[TaskLog]) -> dict[str, float]:
    known = [SCORE, *dict.fromkeys(metric for log in logs for metric in log.metrics())]
    found: dict[str, float] = {}
    for key, value in settings.items():
        name = key.removeprefix(MARGIN)
        if not key.startswith(MARGIN) or name not in known:
            raise StudyError(
                f"compare takes margins of the logs' scores alone, not {key!r}."
                f"{nearest(key, [f'{MARGIN}{one}' for one in known])}"
            )
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise StudyError(f"{key} = {value!r}: give a number such as 0.05.")
        found[name] = float(value)
    return found


def _write(path: Path, question: Mapping[str, Any], made: LogTables) -> None:
    check_run_folder(path)
    if (path / MANIFEST).exists() and (engine := read_manifest(path)["engine"]) != LOG_COMPARISON:
        raise RunError(f"{path} holds a run of the engine {engine}: choose another --out.")
    tables = TableSet(path)
    tables.add("log_tests", made.log_tests)
    if made.log_unpaired:
        tables.add("log_unpaired", made.log_unpaired)
    signed = _sign(question)
    tables.analysis |= {
        "signature": signed,
        "notes": made.notes,
        "choices": {"margin": question["margins"]},
        "versions": versions(),
    }
    tasks = ", ".join(dict.fromkeys(log["task"] for log in question["logs"]))
    write_manifest(path, _manifest(question, tasks, signed))
    made.notes = [*made.notes, *tables.write()]


def _manifest(question: Mapping[str, Any], tasks: str, signed: str) -> dict[str, Any]:
    models = dict.fromkeys(log["model"] for log in question["logs"])
    return {
        "format": RUN_FORMAT,
        "engine": LOG_COMPARISON,
        "study": tasks,
        "question": question,
        "resolved": {"logs": question["logs"], "margins": question["margins"]},
        "models": {model: {} for model in models},
        "versions": versions(),
        "signature": signed,
        "command": command_line(),
    }


def _sign(question: Mapping[str, Any]) -> str:
    logs = question["logs"]
    return signature(
        {
            "biaskit": versions().get("biaskit", ""),
            "compare": ",".join(dict.fromkeys(f"{log['tool']}/{log['task']}" for log in logs)),
            "logs": ",".join(log["sha256"][:12] for log in logs),
            "models": ",".join(dict.fromkeys(log["model"] for log in logs)),
            "margins": ",".join(f"{name}:{value:g}" for name, value in question["margins"].items()),
        }
    )
