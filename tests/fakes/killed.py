"""A command in a process of its own, to be killed and given again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biaskit.common.files import SUM
from fakes.run_files import environment

LONGEST_S = 400
ROWS = {"probe": "probe.jsonl", "personas": "personas.jsonl"}


@dataclass(frozen=True)
class Command:
    """`biaskit probe` or `biaskit personas` of a model."""

    measurement: str
    arguments: tuple[str, ...]
    folder: Path

    def start(self, out: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "biaskit", self.measurement, *self.arguments, "--no-reuse", "--out", out],
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def finish(self, out: str) -> str:
        process = self.start(out)
        _, err = process.communicate(timeout=LONGEST_S)
        assert 0 == process.returncode, err.decode()
        return err.decode()

    def rows_file(self, out: str) -> Path:
        return self.folder / out / ROWS[self.measurement]

    def kept(self, out: str) -> list[bytes]:
        """The lines that a killed writer finished."""
        path = self.rows_file(out)
        return path.read_bytes().split(b"\n")[:-1] if path.exists() else []

    def rows(self, out: str) -> dict[str, dict[str, Any]]:
        """Key → row without when it was answered, in their order; no key stands twice."""
        rows = [json.loads(line) for line in self.kept(out)]
        found = {
            row["key"]: {k: v for k, v in row.items() if k not in ("answered_at", "sum")} for row in rows
        }
        assert len(rows) == len(found), "a row was written twice"
        return found

    def kill_at(self, out: str, n_rows: int, pause_s: float) -> tuple[bool, str]:
        """Kill a start a moment after there are so many rows; whether it still ran, and its stderr."""
        process, limit = self.start(out), time.monotonic() + LONGEST_S
        while process.poll() is None and len(self.kept(out)) < n_rows:
            assert time.monotonic() < limit
            time.sleep(0.002)
        time.sleep(pause_s)
        running = process.poll() is None
        if running:
            os.killpg(process.pid, signal.SIGKILL)
        return running, process.communicate()[1].decode()


def tables(folder: Path) -> dict[str, bytes]:
    """The tables of a run as they lie there, but for the days on which it was answered."""
    return {path.name: undated(path.read_bytes()) for path in sorted((folder / "tables").iterdir())}


def undated(content: bytes) -> bytes:
    """A file's content without its days, and the checksum over them: midnight may pass between two runs."""
    without_sum = re.sub(rb'(?m)^ "%b": "[^"]*"' % SUM.encode(), b"", content)
    return re.sub(rb"\b20\d\d-\d\d-\d\d\b", b"day", without_sum)
