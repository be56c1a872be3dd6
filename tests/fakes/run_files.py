"""What a run left on disk, as tests read it, and the scripts and commands that made it."""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import biaskit
from fakes.command import Said

Row = dict[str, Any]


def environment(**more: str) -> dict[str, str]:
    """For a process of its own: one thread, and the package of this checkout."""
    root = str(Path(biaskit.__file__).parents[1])
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": root, **more}


def eventually(holds: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait until something is so; it is an error if that takes too long."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def one_line(said: Said) -> str:
    """The one line of an error; no traceback."""
    assert "Traceback" not in said.err
    lines = [line for line in said.err.splitlines() if line.startswith("biaskit: ")]
    assert 1 == len(lines), said.err
    return lines[0]


def script(path: str | Path, *lines: Mapping[str, Any]) -> str:
    """Write a scripted model and give its spec."""
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")
    return f"scripted:{path}"


def rows(run: str | Path, name: str = "probe.jsonl") -> list[Row]:
    """The rows in their order."""
    return [json.loads(line) for line in Path(run, name).read_text("ascii").splitlines()]


def rows_by_key(run: str | Path, name: str = "probe.jsonl") -> dict[str, Row]:
    """Key → row without when it was answered, in their order; no key stands twice."""
    found = rows(run, name)
    by_key = {row["key"]: {k: v for k, v in row.items() if k not in ("answered_at", "sum")} for row in found}
    assert len(found) == len(by_key), "a row was written twice"
    return by_key


def log_probs(run: Path) -> dict[tuple[str, ...], float]:
    """(prompt, group, target word) → log-probability."""
    return {(r["prompt"], e["group"], e["text"]): e["log_prob"] for r in rows(run) for e in r["target_words"]}


def tables(run: str | Path) -> dict[str, bytes]:
    """The tables and their record as they lie there."""
    return {path.name: path.read_bytes() for path in sorted(Path(run, "tables").iterdir())}


def csv_tables(run: str | Path) -> dict[str, bytes]:
    """The tables alone: their record says when."""
    return {name: content for name, content in tables(run).items() if name.endswith(".csv")}


def table(run: str | Path, name: str) -> list[dict[str, str]]:
    """The rows of one table."""
    with Path(run, "tables", f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
