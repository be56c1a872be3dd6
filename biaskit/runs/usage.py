"""What a run has used so far, kept while it runs: usage.json, and what a killed process may have spent."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, FiniteFloat, TypeAdapter

from biaskit.common.inputs import Inputs
from biaskit.errors import RunError
from biaskit.runs.manifest import write_json

USAGE = "usage.json"

PROMISED = ("promised", "promised_since")
"""USD that a model may have cost by now, and the process that said so: removed when it ends by itself."""

_THIS_PROCESS = time.time()

_WRITING = threading.Lock()  # the model's own thread writes too


class Usage:
    """One model's line of usage.json, written while it answers, so that a killed run counts too."""

    EVERY_S = 5.0

    def __init__(self, run: Path, label: str, *, starts: int = 1) -> None:
        """`starts`: 0 where this start was counted already."""
        self._run, self._starts = run, starts
        self._label = label
        self._before = _promised_counts_as_spent(read_usage(run).get(label, {}))
        self._started, self._written = time.perf_counter(), -math.inf

    def note(self, used: Mapping[str, float | None], *, last: bool = False) -> None:
        """Add what this start has used: before its first question, then every `EVERY_S`."""
        now = time.perf_counter()
        if (not last and now - self._written < self.EVERY_S) or not self._run.is_dir():
            return
        self._written = now
        counted = {**used, "seconds": now - self._started, "starts": self._starts}
        line = {  # what is unknown (a price) stays so
            name: None if value is None else round((self._before.get(name) or 0) + value, 9)
            for name, value in counted.items()
        }
        line.setdefault("cost", 0.0)
        with _WRITING:
            usage = read_usage(self._run)
            promised = {} if last else {name: usage.get(self._label, {}).get(name) for name in PROMISED}
            line |= {name: value for name, value in promised.items() if value is not None}
            write_json(self._run / USAGE, {**usage, self._label: {**self._before, **line}})


_REMEDY = "It records what the run has cost: restore it, or remove it to start counting from 0."
_USAGE = Inputs(RunError, most=64 * 2**20, remedy=_REMEDY)
_LINES = TypeAdapter(dict[str, dict[str, Annotated[FiniteFloat, Field(ge=0)] | None]])


def read_usage(run: Path) -> dict[str, dict[str, float | None]]:
    """Read label → what its starts have used, empty without a file. Raises `RunError` for a damaged one."""
    path = run / USAGE
    if not os.path.lexists(path):
        return {}
    try:
        return _LINES.validate_python(json.loads(_USAGE.content(path)), strict=True)  # labels may be any text
    except ValueError:
        raise RunError(f"{path} is not as biaskit wrote it. {_REMEDY}") from None


def spent(run: Path, label: str | None = None) -> float:
    """Add up the USD that earlier starts of a run may have spent, on one model or on all of them."""
    usage = read_usage(run)
    lines = list(usage.values()) if label is None else [usage.get(label, {})]
    counted = map(_promised_counts_as_spent, lines)
    return sum(line.get(name) or 0.0 for line in counted for name in ("cost", "cost_unsure"))


def any_spent(run: Path) -> bool:
    """Tell whether usage.json names any cost, also one that is only promised or unknown."""
    lines = read_usage(run).values()
    return any(line.get(name, 0.0) != 0 for line in lines for name in ("cost", "cost_unsure", "promised"))


def promise(run: Path, label: str, before: float, most: float) -> None:
    """Write down that a model may spend up to `most` USD more than `before`, ahead of its spending it."""
    if not run.is_dir():  # the first checks of a new run: their cost is counted when it begins
        return
    with _WRITING:
        usage = read_usage(run)
        line = _promised_counts_as_spent(usage.get(label, {}))
        line |= dict(zip(PROMISED, (round(before + most, 9), _THIS_PROCESS), strict=True))
        write_json(run / USAGE, {**usage, label: line})


def _promised_counts_as_spent(line: Mapping[str, float | None]) -> dict[str, float | None]:
    """Count the promise of a killed process in a line as spent: all of it may have been."""
    most, process = (line.get(name) for name in PROMISED)
    if most is None or process == _THIS_PROCESS:
        return dict(line)
    used = {name: value for name, value in line.items() if name not in PROMISED}
    lost = round(most - (line.get("cost") or 0.0), 9)
    return {**used, "cost_unsure": max(line.get("cost_unsure") or 0.0, lost)}
