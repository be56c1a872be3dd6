"""A plan counts cells: what is put together, and what is held, while a large study is requests."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import biaskit as bk
from biaskit.common.sequences import Computed, cut
from biaskit.measures.probe import requests
from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.prompts import build_prompt, cell_key, cells
from biaskit.measures.probe.requests import PlannedCells
from biaskit.measures.probe.study import ProbeStudy
from biaskit.progress import ModelPlan
from biaskit.records import as_record
from biaskit.study.config import load_as

STUDIES = {
    "occugender": {},
    "occugender-debias": {"context": "both"},
    "mattern": {"jobs.select": "1-3"},
    "framing": {"jobs.select": "nurse,plumber"},
}


@pytest.mark.parametrize("name", STUDIES)
def test_planned_cells_are_those_of_the_product_with_their_keys(name: str) -> None:
    design = resolve(load_as(ProbeStudy, name, STUDIES[name]))
    found = PlannedCells(design, "m", "chat-prefill", "f" * 64)
    expected = [
        (c, p, cell_key(c, p, e, "f" * 64, design.study)) for c, p, e in cells(design, "m", "chat-prefill")
    ]
    requests = found.requests
    assert design.n_prompts == len(expected) == len(requests)
    assert expected == [(c, r.prompt, r.key) for c, r in zip(found.cells, requests, strict=True)]
    assert [p for _, p, _ in expected] == list(found.prompts)
    assert list(range(design.n_prompts)) == [found.place_of(as_record(cell)) for cell, *_ in expected]


@pytest.mark.parametrize(
    "change",
    [
        {"job": "nobody"},
        {"template_id": 99},
        {"context": "dialogue"},
        {"prompt_format": "raw"},
        {"debiasing_id": 1},
    ],
)
def test_a_row_of_another_question_has_no_place(change: dict[str, Any]) -> None:
    found = PlannedCells(resolve(load_as(ProbeStudy, "occugender")), "m", "chat-prefill", "f" * 64)
    row = as_record(found.cells[7])
    assert 7 == found.place_of(row)
    with pytest.raises(LookupError):
        found.place_of({**row, **change})


# --- large studies --------------------------------------------------------------------------------------


class Plans(bk.Silent):
    """Keeps the plans that are shown."""

    def __init__(self) -> None:
        self.seen: list[ModelPlan] = []

    def planned(self, plan: ModelPlan, *, dry_run: bool) -> None:
        self.seen.append(plan)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.jsonl").write_text(
        json.dumps({"contains": "", "log_probs": {" He": -1.0}}) + "\n", "ascii"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lists(home: Path, n_jobs: int, n_templates: int) -> dict[str, str]:
    """Lists of one's own as options."""
    (home / "jobs.txt").write_text("".join(f"job {i}\n" for i in range(n_jobs)), "ascii")
    texts = (f"Who is the [JOB] of house number {i}?\n" for i in range(n_templates))
    (home / "templates.txt").write_text("".join(texts), "ascii")
    return {"jobs": "./jobs.txt", "templates": "./templates.txt"}


def plan(home: Path, n_jobs: int, n_templates: int, **more: Any) -> ModelPlan:
    watcher = Plans()
    asked = lists(home, n_jobs, n_templates)
    bk.probe("m=scripted:m.jsonl", **asked, dry_run=True, watcher=watcher, **more)
    [found] = watcher.seen
    return found


def test_a_plan_puts_no_cell_together_where_nothing_is_stored(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def counted(*given: Any) -> Any:
        made.append(given[1])
        return build_prompt(*given)

    monkeypatch.setattr(requests, "build_prompt", counted)
    found = plan(home, 2000, 1000)
    assert (2_000_000, 0, 125_000, []) == (found.n_units, found.n_stored, found.n_batches, made)
    bk.probe("m=scripted:m.jsonl", **lists(home, 4, 2), out="run", watcher=bk.Silent())
    made.clear()
    found = plan(home, 5, 40, out="run")
    assert (200, 8, 192 // 16) == (found.n_units, found.n_stored, found.n_batches)
    assert 0 < len(made) <= 2 * 200 + 8  # its prompt held against its row, its batch looked for


def peak_of_plan(home: Path, n_jobs: int, n_templates: int) -> int:
    tracemalloc.start()
    try:
        plan(home, n_jobs, n_templates)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("n_jobs", "n_templates", "times", "most"),
    [(1, 500, (1, 4), 1000), (500, 1, (4, 1), 500), (100, 100, (4, 4), 10)],
)
def test_a_plan_holds_the_lists_and_not_their_product(
    home: Path, n_jobs: int, n_templates: int, times: tuple[int, int], most: int
) -> None:
    plan(home, n_jobs, n_templates)  # what is read once, and kept for whatever comes
    small = peak_of_plan(home, n_jobs, n_templates)
    large = peak_of_plan(home, n_jobs * times[0], n_templates * times[1])
    more_cells = n_jobs * n_templates * (times[0] * times[1] - 1)
    assert large - small < most * more_cells


# --- what that rests on ---------------------------------------------------------------------------------


def test_computed_entries_are_made_when_they_are_looked_at() -> None:
    made: list[int] = []
    entries: Computed[int] = Computed(10, lambda i: made.append(i) or i * i)
    assert (10, []) == (len(entries), made)
    assert (81, 0, [4, 9]) == (entries[-1], entries[0], entries[2:4])
    assert [9, 0, 2, 3] == made
    assert [i * i for i in range(10)] == list(entries)
    with pytest.raises(IndexError):
        entries[10]


@given(st.lists(st.integers()), st.integers(1, 7))
def test_what_is_cut_holds_every_entry_once_in_order(entries: list[int], size: int) -> None:
    batches = cut(entries, size)
    assert entries == [one for batch in batches for one in batch]
    assert all(size == len(batch) for batch in batches[:-1])
