"""A command in a process of its own, to be killed and given again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import biaskit
from biaskit.common.files import SUM

LONGEST_S = 400
ROWS = {"probe": "probe.jsonl", "personas": "personas.jsonl"}


def environment(**more: str) -> dict[str, str]:
    """One thread, and the package of this checkout."""
    root = str(Path(biaskit.__file__).parents[1])
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": root, **more}


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


def tables(folder: Path) -> dict[str, bytes]:
    """The tables of a run as they lie there, but for the days on which it was answered."""
    return {path.name: undated(path.read_bytes()) for path in sorted((folder / "tables").iterdir())}


def undated(content: bytes) -> bytes:
    """A file's content without its days, and the checksum over them: midnight may pass between two runs."""
    without_sum = re.sub(rb'(?m)^ "%b": "[^"]*"' % SUM.encode(), b"", content)
    return re.sub(rb"\b20\d\d-\d\d-\d\d\b", b"day", without_sum)
