"""From logs to the rows of log_tests.csv and log_unpaired.csv (docs/methods.md#logs)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from biaskit.errors import UsageError
from biaskit.exchange.logs.pairing import (
    NOTHING_PAIRED,
    OTHER_INPUT,
    Pairing,
    notes_of_pair,
    pair,
    test_of,
)
from biaskit.exchange.logs.samples import TaskLog
from biaskit.stats.arrays import FloatArray
from biaskit.stats.matched import Matched
from biaskit.stats.multiplicity import holm
from biaskit.stats.proportions import wilson
from biaskit.stats.verdict import judge
from biaskit.stats.welch import paired

Row = dict[str, Any]
SCORE = "score"
"""The margin of every metric that has none of its own."""


@dataclass(slots=True)
class LogTables:
    """What a comparison of logs makes."""

    log_tests: list[Row] = field(default_factory=list)
    log_unpaired: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pairs: list[tuple[str, str, str]] = field(default_factory=list)  # (tool/task, later, earlier)


def compare_logs(logs: Sequence[TaskLog], margins: Mapping[str, float]) -> LogTables:
    """Every two logs of each task, later named minus earlier named, every metric; one Holm family in all.

    `margins`: metric, or `score` for all others → how close counts as equivalent.
    Raises `UsageError` where no task has two logs.
    """
    made = LogTables()
    of_task: dict[tuple[str, str], list[TaskLog]] = {}
    for log in logs:
        of_task.setdefault((log.tool, log.task), []).append(log)
        made.notes += [f"{log.task}, {log.model}: {note}" for note in log.notes]
    for own in of_task.values():
        for earlier, later in combinations(own, 2):
            _compare_two(made, later, earlier, margins)
        if len(own) == 1:
            made.notes.append(f"{own[0].task}: only {own[0].model} has it, so nothing is compared")
    if not made.pairs:
        found = "; ".join(f"{log.task} of {log.model} ({log.tool})" for log in logs[:5])
        raise UsageError(f"Two logs of one task are needed to compare. Named: {found}.")
    _judge(made.log_tests)
    return made


def _compare_two(made: LogTables, later: TaskLog, earlier: TaskLog, margins: Mapping[str, float]) -> None:
    made.pairs.append((f"{later.tool}/{later.task}", later.model, earlier.model))
    made.notes += notes_of_pair(later, earlier)
    for metric in dict.fromkeys((*earlier.metrics(), *later.metrics())):
        margin = margins.get(metric, margins.get(SCORE))
        made.log_tests.append(_row(made, later, earlier, metric, margin))
    if not (earlier.metrics() or later.metrics()):
        made.log_tests.append(_row(made, later, earlier, "", None))


def _row(made: LogTables, a: TaskLog, b: TaskLog, metric: str, margin: float | None) -> Row:
    keys = {"tool": a.tool, "task": a.task, "metric": metric, "model_a": a.model, "model_b": b.model}
    if (why := _not_comparable(a, b, metric)) is not None:
        return _filled(keys, Matched("paired", None, reason=why), Pairing(_NONE, _NONE, {}), (a, b), margin)
    pairing = pair(a, b, metric)
    made.log_unpaired += [
        {**keys, "sample": sample, "reason": why} for sample, why in pairing.left_out.items()
    ]
    return _filled(keys, test_of(a, b, metric, pairing), pairing, (a, b), margin)


_NONE = np.array([], dtype=np.float64)


def _not_comparable(a: TaskLog, b: TaskLog, metric: str) -> str | None:
    for own in (a, b):
        if metric in own.refused:
            return f"in the log of {own.model} {own.refused[metric]}"
        if metric not in own.numbers and (own.metrics() or not metric):  # one without any scores has failed
            return f"the log of {own.model} has no such score" if metric else "the logs have no scores"
    return None


def _filled(
    keys: Row, test: Matched, pairing: Pairing, logs: tuple[TaskLog, TaskLog], margin: float | None
) -> Row:
    ci95, ci90 = test.ci95 or (None, None), test.ci90 or (None, None)
    inside = None
    if margin is not None and test.ci90 is not None:
        inside = -margin <= test.ci90[0] and test.ci90[1] <= margin
    welch = NOTHING_PAIRED if test.kind == "welch" else None
    reasons = [part for part in (welch, test.reason, pairing.text() or None) if part]
    return {
        **keys,
        "kind": test.kind,
        "n_paired": pairing.a.size,
        **_means(keys["metric"], pairing, logs, test),
        "estimate": test.estimate,
        "effect_size": test.effect_size,
        "statistic": test.statistic,
        "dof": test.dof,
        "p_value": test.p_value,
        "p_mid": test.p_mid,
        "p_adjusted": None,
        "ci_low": ci95[0],
        "ci_high": ci95[1],
        "ci90_low": ci90[0],
        "ci90_high": ci90[1],
        "margin": margin,
        "equivalent": inside,
        "n_higher_a": test.n_higher[0],
        "n_higher_b": test.n_higher[1],
        **_left_out(pairing, logs),
        "verdict": "",
        "reason": "; ".join(reasons),
    }


def _means(metric: str, pairing: Pairing, logs: tuple[TaskLog, TaskLog], test: Matched) -> Row:
    """Means of what is tested, with 95 % intervals, and how many samples they rest on."""
    found: Row = {}
    for side, log, values in zip("ab", logs, (pairing.a, pairing.b), strict=True):
        if test.kind == "welch":
            values = np.array(list(log.numbers.get(metric, {}).values()))
        low, high = _interval(values) or (None, None)
        found |= {
            f"n_{side}": values.size,
            f"mean_{side}": float(values.mean()) if values.size else None,
            f"mean_{side}_low": low,
            f"mean_{side}_high": high,
        }
    return found


def _interval(values: FloatArray) -> tuple[float, float] | None:
    """Wilson's of a share of right answers, else Student's; none of scores that do not vary."""
    if not values.size:
        return None
    if np.isin(values, (0.0, 1.0)).all():
        return wilson(int(values.sum()), values.size)
    return paired(values, np.zeros_like(values)).ci95


def _left_out(pairing: Pairing, logs: tuple[TaskLog, TaskLog]) -> Row:
    counts = pairing.counts()
    not_in = [counts.pop(f"not in the log of {log.model}", 0) for log in logs]
    other = counts.pop(OTHER_INPUT, 0)
    return {
        "n_only_a": not_in[1],
        "n_only_b": not_in[0],
        "n_other_input": other,
        "n_without_score": sum(counts.values()),
    }


def _judge(rows: list[Row]) -> None:
    """Holm's adjustment over all claims, and the verdict of each (stats/verdict.py)."""
    measured = [row["p_value"] if row["ci_low"] is not None else None for row in rows]
    for row, p in zip(rows, holm([""] * len(rows), measured), strict=True):
        row["p_adjusted"] = p
        row["verdict"] = judge(row, p)


def as_contrasts(rows: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """The rows in the columns by which a gate reads tests.csv (`compare/gate.py`)."""
    empty = ("gender", "bias_type", "setting", "prompt_form", "instruction_a", "instruction_b", "group_b")
    for row in rows:
        yield {
            **dict.fromkeys(empty, ""),
            **row,
            "engine": f"{row['tool']}/{row['task']}",
            "family": "models",
            "quantity": row["task"],
            "group_a": row["metric"],
            "kind": row["kind"],
        }
