"""Batches of samples: until three name a target word, or its cap (methods/estimators#batches)."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import worlds
from fakes.run_files import csv_tables as tables
from fakes.worlds import ProbeKind, ProbeWorld, WorldSpeaker, opened

import biaskit as bk
from biaskit import records
from biaskit.progress import ModelPlan, plan_line
from biaskit.records import Prompt, Sample, SampleRequest, Scored, ScoreRequest, TargetWord
from biaskit.runs.sample_batches import ENOUGH, OpenCells, SampleBatches, add_up, coverage_of
from biaskit.runs.store import read_rows
from biaskit.stats.proportions import wilson
from biaskit.workflow.analyze import describe_run, rebuild_tables

# --- one cell, every course it can take ------------------------------------------------------------------

WOMEN, MEN, NEITHER = Fraction(1, 10), Fraction(3, 10), Fraction(6, 10)
TRUE = WOMEN / (WOMEN + MEN)
TINY = SampleBatches(2, 4)


def courses(sample_batches: SampleBatches) -> Iterator[tuple[Fraction, Mapping[str, Any]]]:
    """Every sequence of answers to as many samples as there could be, as rows; and how probable it is."""
    chances = {"She": WOMEN, "He": MEN, None: NEITHER}
    for said in itertools.product(chances, repeat=sample_batches.size * sample_batches.most):
        p, rows = Fraction(1), {}
        for answer in said:
            p *= chances[answer]
        for number in range(sample_batches.most):
            own = Counter(said[number * sample_batches.size : (number + 1) * sample_batches.size])
            rows[number] = {"samples": sample_batches.size, "counts": {"She": own["She"], "He": own["He"]}}
        whole, _, goes_on = add_up(rows, sample_batches)
        assert whole is not None
        assert not goes_on
        yield p, whole


def test_shares_are_unbiased_where_stopping_depends_on_matched_samples_alone() -> None:
    """Exactly, over all 6,561 courses, and among the cells of every single length."""
    known, total = Fraction(0), Fraction(0)
    by_samples: dict[int, list[Fraction]] = {}
    for p, row in courses(TINY):
        women, matched = row["counts"]["She"], sum(row["counts"].values())
        if matched:
            known += p
            total += p * Fraction(women, matched)
            of_length = by_samples.setdefault(row["samples"], [Fraction(0), Fraction(0)])
            of_length[0] += p
            of_length[1] += p * Fraction(women, matched)
    assert TRUE == total / known
    assert {4, 6, 8} == by_samples.keys(), "three of two samples cannot match"
    assert {TRUE} == {share / p for p, share in by_samples.values()}


def test_ends_are_the_probabilities_of_all_courses() -> None:
    found: Counter[tuple[int, int]] = Counter()
    for p, row in courses(TINY):
        found[row["samples"], sum(row["counts"].values())] += p  # type: ignore[assignment]
    ends = TINY.ends(float(WOMEN + MEN))
    assert {end: float(p) for end, p in found.items()} == pytest.approx(dict(ends), abs=1e-15)


def test_coverage_and_masses_are_unbiased_though_a_cell_stops_when_it_was_lucky() -> None:
    """Exactly, over all 6,561 courses."""
    coverage = women = 0.0
    for p, row in courses(TINY):
        coverage += float(p) * row["coverage"]
        if said := sum(row["counts"].values()):
            women += float(p) * row["coverage"] * row["counts"]["She"] / said
    assert (coverage, women) == pytest.approx((float(WOMEN + MEN), float(WOMEN)), abs=1e-12)


@pytest.mark.parametrize(
    ("p", "all_samples", "held"),
    [(0.3, 0.331, 0.92), (0.1, 0.126, 0.91), (0.08, 0.103, 0.93), (0.05, 0.066, 0.97)],
)
def test_a_coverages_mean_and_interval_are_what_the_methods_say(
    p: float, all_samples: float, held: float
) -> None:
    ends = SampleBatches(10, 10).ends(p)  # methods/estimators#batches
    found = {(n, k): coverage_of(k, n // 10, 10) for n, k in ends}
    intervals = {(n, k): wilson(coverage * n, n) for (n, k), coverage in found.items()}
    assert all_samples == round(sum(k / n * chance for (n, k), chance in ends.items()), 3)
    assert p == pytest.approx(sum(found[end] * chance for end, chance in ends.items()))
    holds = {key for key, interval in intervals.items() if interval and interval[0] <= p <= interval[1]}
    assert held == round(sum(chance for key, chance in ends.items() if key in holds), 2)


def test_batches_are_whole_and_there_is_one_at_least() -> None:
    assert [
        SampleBatches(10, 10),
        SampleBatches(30, 3),
        SampleBatches(100, 1),
        SampleBatches(200, 1),
        SampleBatches(1, 1),
    ] == [SampleBatches.up_to(samples, 100) for samples in (10, 30, 100, 200, None)]


def test_a_cell_goes_on_until_three_samples_matched_or_its_cap() -> None:
    sample_batches = SampleBatches(10, 4)
    cell = ScoreRequest("c", Prompt("Q"), (TargetWord("female", "She"),))
    keys = [sample_batches.request(cell, number).key for number in range(4)]
    assert "c" == keys[0], "the first batch has the key that cells had before there were batches"
    assert 4 == len(set(keys))
    assert [0, 10, 20, 30] == [sample_batches.request(cell, number).first_sample for number in range(4)]
    for matched, following in [
        ((), 0), ((0,), 1), ((2,), 1), ((3,), None), ((1, 1), 2), ((1, 2), None),
        ((0, 0, 2), 3), ((0, 0, 0, 0), None), ((0, 0, 0, 9), None),
    ]:  # fmt: skip
        due = sample_batches.next_of(cell, dict(zip(keys, matched, strict=False)))
        assert following == (None if due is None else sample_batches.number_of(due))
    assert 1 == sample_batches.number_of(sample_batches.next_of(cell, {keys[0]: 0, keys[2]: 5}) or cell), (
        "a hole is filled"
    )
    assert 3 == ENOUGH


def test_rows_beyond_the_cap_or_after_a_hole_are_not_used() -> None:
    rows = {n: {"key": f"r{n}", "samples": 10, "counts": {"He": n, "She": 0}} for n in range(4)}
    whole, used, goes_on = add_up(rows, SampleBatches(10, 2))
    counted = {"samples": 20, "counts": {"He": 1, "She": 0}, "coverage": 1 / 20}
    assert ({"key": "r0", **counted}, [0, 1], False) == (
        whole,
        used,
        goes_on,
    )
    assert ([0, 1, 2], False) == add_up(rows, SampleBatches(10, 9))[1:], "three matched with the third"
    assert ([0], True) == add_up({n: rows[n] for n in (0, 2)}, SampleBatches(10, 9))[1:]
    assert (None, [], True) == add_up({1: rows[1]}, SampleBatches(10, 9))


# --- the order in which batches are asked ----------------------------------------------------------------


class Asked:
    """A scorer in a test's hands that holds some requests in flight and answers them in any order."""

    def __init__(self, matched: Callable[[ScoreRequest], int], held: int, seed: int = 0) -> None:
        self.matched, self.held, self.random = matched, held, random.Random(seed)
        self.log: list[tuple[str, int]] = []

    def plan_scores(self, requests: Sequence[ScoreRequest]) -> Any:
        return records.Plan(tuple((r,) for r in requests), len(requests), 0, 0, 0.0)

    def score(self, batches: Iterable[Sequence[ScoreRequest]]) -> Iterator[Sequence[Scored]]:
        incoming, flying = iter(batches), list[ScoreRequest]()
        while True:
            taken = [r for batch in itertools.islice(incoming, self.held - len(flying)) for r in batch]
            self.log += [(r.prompt.text, r.first_sample) for r in taken]
            flying += taken
            if not flying:
                return
            request = flying.pop(self.random.randrange(len(flying)))
            answered = records.Answered("m", "2026")
            counts = {"She": self.matched(request)}
            yield [Scored(request.key, "", "sampling", (), answered, samples=10, counts=counts)]


def cells(n: int) -> list[ScoreRequest]:
    return [ScoreRequest(f"cell {i}", Prompt(f"Q{i}"), ()) for i in range(n)]


@pytest.mark.parametrize("held", [1, 7, 100])
def test_every_cell_gets_its_own_batches_whatever_is_in_flight(held: int) -> None:
    scorer = Asked(lambda r: int(r.prompt.text[1:]) % 3, held)
    open_cells = OpenCells(cells(30), SampleBatches(10, 5), {})
    answers = [
        a for group in open_cells.score(scorer, scorer.plan_scores(open_cells.due).batches) for a in group
    ]  # type: ignore[arg-type]
    found = Counter(open_cells.place(a.key)[0] for a in answers)
    assert {f"cell {i}": (5, 3, 2)[i % 3] for i in range(30)} == found
    assert 0 == open_cells.n_left


def test_a_cell_does_not_wait_for_the_batches_of_others() -> None:
    scorer = Asked(lambda _: 1, held=4)
    open_cells = OpenCells(cells(40), SampleBatches(10, 5), {})
    for _ in open_cells.score(scorer, scorer.plan_scores(open_cells.due).batches):  # type: ignore[arg-type]
        pass
    last_first = max(i for i, (_, first) in enumerate(scorer.log) if not first)
    assert 60 < sum(first > 0 for _, first in scorer.log[:last_first]), (
        "later batches go out between others' first"
    )


# --- runs ------------------------------------------------------------------------------------------------

KIND = ProbeKind(jobs=3, templates=3, estimator="sampling", coverage=0.15)
WORLD = ProbeWorld.sample(KIND, 12)


class Watched(bk.Silent):
    """Keeps what a run says of itself."""

    def __init__(self) -> None:
        self.plans: list[ModelPlan] = []
        self.steps: list[tuple[int, int]] = []

    def planned(self, plan: ModelPlan, *, dry_run: bool) -> None:
        self.plans.append(plan)

    def progress(self, label: str, done: int, total: int) -> None:
        self.steps.append((done, total))


class Run:
    """A study of the world in a folder, and how often each sample was asked."""

    def __init__(self, folder: Path) -> None:
        self.lists, self.folder = folder / "lists", folder
        self.lists.mkdir(exist_ok=True)
        self.study = str(WORLD.write(self.lists))
        self.asked: Counter[str] = Counter()
        self.watcher = Watched()

    @contextmanager
    def counting(self) -> Iterator[None]:
        sample = WorldSpeaker._sample

        def counted(speaker: WorldSpeaker, request: SampleRequest) -> Sample:
            self.asked[request.key] += 1
            return sample(speaker, request)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worlds.WorldSpeaker, "_sample", counted)
            yield

    def start(self, out: str, **more: Any) -> Path:
        self.watcher = Watched()
        with opened(WORLD), self.counting():
            made = bk.probe(
                "model0=scripted:x", study=self.study, out=self.folder / out, watcher=self.watcher, **more
            )
        return made.path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return list(read_rows(path / "probe.jsonl"))


def cell_of(row: Mapping[str, Any]) -> tuple[int, str]:
    return row["template_id"], row["job"]


def by_cell(path: Path) -> dict[tuple[int, str], list[dict[str, Any]]]:
    found: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in sorted(rows_of(path), key=lambda row: row["batch"]):
        found.setdefault(cell_of(row), []).append(row)
    return found


def matched(row: Mapping[str, Any]) -> int:
    return sum(row["counts"].values())


def kept(path: Path) -> dict[str, Any]:
    return json.loads((path / "tables" / "analysis.json").read_text())


def test_each_cell_is_drawn_until_three_matched_or_the_cap(run: Run) -> None:
    path = run.start("a")
    found = by_cell(path)
    assert 18 == len(found)
    lengths = Counter(map(len, found.values()))
    assert min(lengths) < 3 < max(lengths)
    for rows in found.values():
        assert list(range(len(rows))) == [row["batch"] for row in rows]
        assert {10} == {row["samples"] for row in rows}
        assert sum(map(matched, rows[:-1])) < ENOUGH
        assert sum(map(matched, rows)) >= ENOUGH or len(rows) == 10
    assert {1} == set(run.asked.values())
    assert len({row["key"] for row in rows_of(path)}) == len(rows_of(path))
    for cell in bk.load(path).prompts.itertuples():
        rows = found[cell.template_id, cell.job]
        k = sum(map(matched, rows))
        women = sum(row["counts"]["She"] + row["counts"]["she"] for row in rows)
        assert (coverage_of(k, len(rows), 10), women / k) == pytest.approx((cell.coverage, cell.female_share))
    assert "max_samples_per_prompt=100" in kept(path)["signature"]
    assert [18, 18] == [describe_run(path)[name] for name in ("rows", "planned")], "cells, not batches"
    steps = run.watcher.steps
    assert (0, 18) == steps[0]
    assert (18, 18) == steps[-1]
    assert sorted(steps) == steps
    assert len(rows_of(path)) + 1 == len(steps), "between batches too somebody sees that it goes on"


def test_outcomes_are_of_the_first_batch_since_a_cell_stops_when_it_was_lucky(tmp_path: Path) -> None:
    """Nine of ten answers name nobody: over all batches 0.874 would be printed."""
    drawn = ProbeWorld.sample(ProbeKind(jobs=20, templates=10, estimator="sampling"), 5)
    world = replace(drawn, coverage=np.full_like(drawn.coverage, 0.1))
    with opened(world):
        study = str(world.write(tmp_path))
        made = bk.probe("model0=scripted:x", study=study, out=tmp_path / "run", watcher=bk.Silent())
    rows = {cell: of_cell[0] for cell, of_cell in by_cell(made.path).items()}
    assert len(rows) * 2 < len(rows_of(made.path)), "there are later batches"
    cells = made.prompts.set_index(["template_id", "job"])
    assert {cell: (10, matched(row)) for cell, row in rows.items()} == {
        cell: (cells.n_answers[cell], cells.n_listed[cell]) for cell in rows
    }
    outcomes = made.outcomes[made.outcomes.job_group == "all"].set_index("outcome")
    assert {10 * len(rows)} == set(outcomes.n_answers)
    noise = (0.1 * 0.9 / (10 * len(rows))) ** 0.5
    assert abs(outcomes.share["other"] - 0.9) < 4.5 * noise < (0.9 - 0.874)


def test_a_run_cut_at_any_row_goes_on_to_the_same_rows_and_asks_none_again(run: Run) -> None:
    path = run.start("a")
    file, made = path / "probe.jsonl", tables(path)
    lines = file.read_bytes().splitlines(keepends=True)
    for n in {0, 1, len(lines) - 1, *range(2, len(lines), 5)}:
        file.write_bytes(b"".join(lines[:n]) + (lines[n][:40] if n < len(lines) - 1 else b""))
        run.asked.clear()
        run.start("a")
        assert lines == file.read_bytes().splitlines(keepends=True)
        assert made == tables(path)
        assert 10 * (len(lines) - n) == sum(run.asked.values())


def test_rows_in_any_order_give_the_same_tables(run: Run) -> None:
    path = run.start("a")
    made, digest = tables(path), kept(path)["rows_digest"]
    lines = (path / "probe.jsonl").read_bytes().splitlines(keepends=True)
    random.Random(3).shuffle(lines)
    (path / "probe.jsonl").write_bytes(b"".join(lines))
    rebuild_tables(path)
    assert (made, digest) == (tables(path), kept(path)["rows_digest"])


def test_a_higher_cap_goes_on_and_a_lower_one_uses_fewer_rows(run: Run) -> None:
    grown = run.start("a", max_samples_per_prompt=10)
    assert {0} == {row["batch"] for row in rows_of(grown)}
    one_batch, notes = tables(grown), kept(grown)["notes"]
    assert not [note for note in notes if "to sample more" in note], "it was drawn as far as it was asked for"
    run.asked.clear()
    assert grown == run.start("a", settings={"max_samples_per_prompt": 40})
    assert {1} == set(run.asked.values())
    unbroken = run.start("b", max_samples_per_prompt=40)
    assert by_cell(unbroken) == by_cell(grown)
    assert tables(unbroken) == tables(grown)
    assert max(row["batch"] for row in rows_of(grown)) == 3
    run.asked.clear()
    run.start("a", max_samples_per_prompt=19)  # whole batches
    assert not run.asked
    assert one_batch == tables(grown)
    n_more = len(rows_of(grown)) - 18
    assert f"{n_more} stored rows are not part of this study and were not used" in kept(grown)["notes"]


def test_the_plan_is_a_range(run: Run) -> None:
    path = run.folder / "a"
    run.start("a", dry_run=True)
    (plan,) = run.watcher.plans
    assert ((180, 1800), 18, 0) == (plan.samples, plan.n_units, plan.n_stored)
    assert "180 to 1,800 samples" in plan_line(plan)
    assert not path.exists()
    run.start("a", max_samples_per_prompt=10)
    assert " to 1,800" not in plan_line(run.watcher.plans[0])
    n_open, n_before = sum(matched(row) < ENOUGH for row in rows_of(path)), len(rows_of(path))
    run.start("a", dry_run=True)
    (plan,) = run.watcher.plans
    assert ((10 * n_open, 90 * n_open), 18, 18 - n_open) == (plan.samples, plan.n_units, plan.n_stored)
    run.start("a")
    assert plan.samples[0] <= 10 * (len(rows_of(path)) - n_before) <= plan.samples[1]


def test_a_batch_that_fails_is_asked_again_by_the_next_start(run: Run) -> None:
    unbroken = by_cell(run.start("a"))
    broken = {cell for cell, rows in unbroken.items() if len(rows) > 2}
    sample = WorldSpeaker._sample

    def fails_later(speaker: WorldSpeaker, request: SampleRequest) -> Any:
        return records.Failed(request.key, "busy") if request.number == 13 else sample(speaker, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worlds.WorldSpeaker, "_sample", fails_later)
        with opened(WORLD):
            half = bk.probe("model0=scripted:x", study=run.study, out=run.folder / "b", watcher=bk.Silent())
    assert half.failed["model0"]["busy"] >= len(broken)
    assert {0} == {row["batch"] for row in rows_of(half.path) if cell_of(row) in broken}
    assert any("to sample more" in note for note in kept(half.path)["notes"])
    path = run.start("b")
    assert unbroken == by_cell(path)
    assert tables(run.folder / "a") == tables(path)
