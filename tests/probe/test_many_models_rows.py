"""A run of many models reads the rows that there are once, not once for each model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biaskit.runs import store
from biaskit.workflow.probe import probe

STUDY: dict[str, Any] = {"jobs": "nurse,mechanic", "templates": "1-2", "study": "gasp-occupations"}


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were read, in the first place of the list."""
    monkeypatch.chdir(tmp_path)
    for i in range(6):
        line = {"log_probs": {" She": -1.0 - i / 10, " He": -0.5}, "texts": ["She is.", "He is."]}
        Path(f"{i}.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    read, of_line = [0], store.read_row

    def counted(line: bytes) -> Any:
        read[0] += 1
        return of_line(line)

    monkeypatch.setattr(store, "read_row", counted)
    return read


def rows_read(read: list[int], n_models: int, **more: Any) -> int:
    read[0] = 0
    models = [f"m{i}=scripted:{i}.jsonl" for i in range(n_models)]
    probe(*models, **{"out": "all/run", "reuse": False, **STUDY, **more})
    return read[0]


def test_rows_that_are_read_grow_with_the_rows_there_are(read: list[int]) -> None:
    each = rows_read(read, 2) / 2
    assert rows_read(read, 2) / 2 == 2 * each  # as it opens, and its analysis
    rows_read(read, 6)
    assert rows_read(read, 6) == 6 * 2 * each
    assert rows_read(read, 6, dry_run=True) == 6 * each


@pytest.mark.reuse
def test_rows_beside_the_run_are_read_once(read: list[int]) -> None:
    each = rows_read(read, 6) / 6
    assert rows_read(read, 6, out="all/other", jobs="cook", reuse=True) == 6 * each + 6 * each / 2
