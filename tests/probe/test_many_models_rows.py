"""A run of many models holds each against its own stored rows: all rows for each model are models squared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from biaskit.runs import store
from biaskit.runs.store import ModelSpans, Reading, RowWriter, read_rows
from biaskit.workflow.probe import probe

STUDY: dict[str, Any] = {"jobs": "nurse,mechanic", "templates": "1-2", "study": "gasp-occupations"}


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were read, in the first place of the list."""
    monkeypatch.chdir(tmp_path)
    for i in range(8):
        line = {"log_probs": {" She": -1.0 - i / 10, " He": -0.5}, "texts": ["She is.", "He is."]}
        Path(f"{i}.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    read, of_line = [0], store.read_row

    def counted(line: bytes) -> Any:
        read[0] += 1
        return of_line(line)

    monkeypatch.setattr(store, "read_row", counted)
    return read


def models(n: int, first: int = 0) -> list[str]:
    return [f"m{i}=scripted:{i}.jsonl" for i in range(first, n)]


def rows_read(read: list[int], *named: str, **more: Any) -> int:
    read[0] = 0
    probe(*named, **{"out": "run", "reuse": False, **STUDY, **more})
    return read[0]


def test_rows_that_are_read_grow_with_the_rows_there_are(read: list[int]) -> None:
    each = rows_read(read, *models(2)) / 2
    assert rows_read(read, *models(2)) / 2 == 3 * each  # as it opens, the model's own, its analysis
    assert rows_read(read, *models(8)) == 2 * 3 * each + 6 * each
    assert rows_read(read, *models(8)) == 8 * 3 * each
    assert rows_read(read, *models(8), dry_run=True) == 8 * 2 * each


def test_a_run_that_grew_has_a_models_rows_in_several_places(read: list[int]) -> None:
    rows_read(read, *models(8), jobs="nurse")
    n = Path("run/probe.jsonl").read_bytes().count(b"\n")
    rows_read(read, *models(8))
    assert rows_read(read, *models(8)) == 3 * 2 * n  # as it opens, each model's own, the analysis


def test_texts_beside_the_cells_are_read_so_too(read: list[int]) -> None:
    def texts() -> int:
        return Path("run/continuations.jsonl").read_bytes().count(b"\n")

    rows_read(read, *models(2), continuations=4)
    n_cells, n_texts = 2 * 8, texts()
    assert rows_read(read, *models(2), continuations=4) == 3 * n_cells + 3 * n_texts
    rows_read(read, *models(8), continuations=4)
    assert rows_read(read, *models(8), continuations=4) == 4 * 3 * n_cells + 4 * 3 * n_texts


@pytest.mark.reuse
def test_rows_beside_the_run_are_read_for_the_model_that_they_are_of(read: list[int]) -> None:
    rows_read(read, *models(8), out="first")
    each = len(Path("first/probe.jsonl").read_bytes().splitlines()) / 8
    other = {"out": "second", "jobs": "cook", "reuse": True}
    n_own = rows_read(read, *models(8), **{**other, "reuse": False, "out": "elsewhere/second"})
    assert rows_read(read, *models(8), **other) == n_own + 8 * each  # nothing fits
    again = {"out": "third", "reuse": True, "jobs": "nurse"}
    made = probe(*models(8), **{**STUDY, **again})
    assert [plan.taken_from for plan in made.plans] == [("first",)] * 8
    # A row of before rows held a `model_key` is found by its key.
    rows = [json.loads(line) for line in Path("first/probe.jsonl").read_text("ascii").splitlines()]
    kept = [{k: v for k, v in row.items() if k not in ("sum", "model_key")} for row in rows]
    Path("first/probe.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept), "ascii")
    plans = probe(*models(8), **{**STUDY, **again, "out": "fourth", "dry_run": True}).plans
    assert all("first" in plan.taken_from or "third" in plan.taken_from for plan in plans)
    shutil.rmtree("third")
    plans = probe(*models(8), **{**STUDY, **again, "out": "fourth", "dry_run": True}).plans
    assert [plan.taken_from for plan in plans] == [("first",)] * 8


def test_spans_hold_each_models_rows_whatever_lies_between(tmp_path: Path) -> None:
    keys = ["a", "b", "b", "a", "c", "b", None]
    rows = [{"key": str(i), "model_key": key, "text": "x" * i} for i, key in enumerate(keys)]
    with RowWriter(tmp_path, "probe") as writer:
        writer.append(rows[:3])
        writer.append([rows[1], rows[3]])
        writer.append(rows[4:])
        path, appended = writer.path, writer.spans
    path.write_bytes(path.read_bytes().rstrip(b"\n"))  # a last row that lacks its line feed
    with RowWriter(tmp_path, "probe") as writer:
        writer.append([{"key": "7", "model_key": "c", "text": ""}])
        opened = writer.spans
    found, reading = ModelSpans(), Reading()
    for row in read_rows(path, reading=reading):
        found.add(row, reading.start, reading.good_end)
    for spans, last in ((appended, []), (opened, ["7"]), (found, ["7"])):
        of = {key: [row["key"] for row in spans.rows(path, key, skip_bad=False)] for key in ("a", "b", "c")}
        assert of == {"a": ["0", "3"], "b": ["1", "2", "5"], "c": ["4", *last]}
        assert list(spans.rows(path, "d", skip_bad=False)) == []
