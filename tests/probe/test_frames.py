"""Templates of one frame are averaged first and count as one, in every table and between models."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from biaskit.compare.pairs import Side
from biaskit.compare.same_prompts import PromptTexts
from biaskit.corpora.loaders import load_templates
from biaskit.measures.probe.answers import AnswersOfRun, outcome_rows
from biaskit.measures.probe.compare_cells import answers_of, pair_rows
from biaskit.measures.probe.contrasts import StudyCells
from biaskit.measures.probe.design import read, resolve
from biaskit.measures.probe.effects import tables
from biaskit.measures.probe.prompts import product
from biaskit.measures.probe.study import ProbeStudy
from biaskit.records import CellShares, PromptCell
from biaskit.stats.proportions import se_of_mean
from biaskit.study.config import load_as

GROUPS = ("male", "female", "diverse")
JOBS = {f"w{i}": "female-dominated" for i in range(4)} | {f"m{i}": "male-dominated" for i in range(3)}
FRAMES = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 6: "c", 7: "c"}
FIRST = {frame: min(t for t in FRAMES if FRAMES[t] == frame) for frame in FRAMES.values()}
Row = dict[str, Any]


def cells_of(estimator: str, model: str = "m") -> list[CellShares]:
    """A cell for each template and job, with shares, coverage and what the estimator adds."""
    rng = np.random.default_rng(len(estimator) + len(model))
    made = []
    for template, (job, group) in itertools.product(FRAMES, JOBS.items()):
        cell = PromptCell(model, "implicit", template, job, group, None, 0, "plain", "raw")
        female = (0.6 if group == "female-dominated" else 0.3) + float(rng.normal(0.0, 0.05))
        shares, coverage = (0.9 - female, female, 0.1), float(rng.uniform(0.5, 0.9))
        of_cell = CellShares(cell, estimator, tuple(coverage * x for x in shares), coverage, shares)
        if estimator == "top-k":
            ends = tuple((x - 0.02, x + 0.03) for x in shares)
            of_cell = replace(of_cell, share_ends=ends, difference_ends=(-0.2, 0.4))
        if estimator == "sampling":
            of_cell = replace(of_cell, matched=int(rng.integers(3, 9)))
        made.append(of_cell)
    return made


def averaged(cells: Sequence[CellShares]) -> list[CellShares]:
    """One cell for each frame and job, called by the frame's first template: plain means of its cells."""
    made = []
    for frame, job in itertools.product(FIRST, JOBS):
        members = [x for x in cells if (FRAMES[x.cell.template_id], x.cell.job) == (frame, job)]

        def mean(values: Sequence[Any]) -> Any:
            return tuple(np.mean(values, axis=0).tolist())

        first = members[0]
        ends = first.share_ends and tuple(
            mean([x.share_ends[k] for x in members if x.share_ends]) for k in range(len(GROUPS))
        )
        made.append(
            replace(
                first,
                masses=mean([x.masses for x in members]),
                shares=mean([x.shares for x in members]),
                coverage=float(np.mean([x.coverage for x in members])),
                share_ends=ends,
                matched=None if first.matched is None else 2,
            )
        )
    return made


def analysed(cells: Sequence[CellShares], frames: dict[int, str]) -> dict[str, list[Row]]:
    made: Any = tables(
        cells,
        StudyCells(
            groups=GROUPS,
            contrast=("female", "male"),
            levels={},
            min_coverage=0.01,
            interval="crossed",
            margins={"share": 0.05},
            seed=1,
            frames={"implicit": frames},
        ),
    )
    return made  # type: ignore[no-any-return]


def assert_equal(found: Sequence[Row], expected: Sequence[Row], ignored: Sequence[str] = ()) -> None:
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        for name in one.keys() - set(ignored):
            want = pytest.approx(other[name], rel=1e-12) if isinstance(other[name], float) else other[name]
            assert one[name] == want, (name, one, other)


@pytest.mark.parametrize("estimator", ["exact", "top-k", "sampling"])
def test_tables_are_those_of_the_frames_means(estimator: str) -> None:
    cells = cells_of(estimator)
    found, expected = analysed(cells, FRAMES), analysed(averaged(cells), {})
    for name in ("probe_jobs", "probe_groups", "probe_variance", "tests"):
        assert_equal(found[name], expected[name], ["se_sampling"])
    assert {row["n_templates"] for row in found["probe_groups"]} == {3}
    assert found["probe_prompts"] == analysed(cells, {})["probe_prompts"]
    assert found["probe_templates"] == analysed(cells, {})["probe_templates"]


def test_samples_weigh_as_much_as_their_template_in_its_frame() -> None:
    cells = cells_of("sampling")
    (row,) = [
        row
        for row in analysed(cells, FRAMES)["probe_groups"]
        if (row["job_group"], row["gender"]) == ("male-dominated", "female")
    ]
    size, total = Counter(FRAMES.values()), 0.0
    for x in cells:
        if x.cell.job_group == "male-dominated" and x.shares and x.matched:
            p = x.shares[1]
            total += p * (1 - p) / (x.matched - 1) / size[FRAMES[x.cell.template_id]] ** 2
    assert row["se_sampling"] == pytest.approx(math.sqrt(total) / (3 * 3), rel=1e-12)
    values, matched = np.array([0.5, 0.25]), np.array([3.0, 5.0])
    assert se_of_mean(values, matched) == se_of_mean(values, matched, np.ones(2))


def test_a_frame_with_a_gap_is_left_out() -> None:
    cells = cells_of("exact")
    cells[0] = CellShares(cells[0].cell, None, None, None, None, "no answer stored")
    rows = analysed(cells, FRAMES)["probe_groups"]
    assert {row["n_templates"] for row in rows} == {2}
    assert all("template 1 of 3 left out: 1 prompt failed" in row["reason"] for row in rows)


def test_models_are_compared_frame_by_frame() -> None:
    frames = {"frame of": {f"implicit template {t}": frame for t, frame in FRAMES.items()}}
    sides = Side("n", ("n",)), Side("m", ("m",))

    def rows(cells: Sequence[CellShares], asked: dict[str, Any]) -> list[Row]:
        answers = answers_of(analysed(cells, {})["probe_prompts"], GROUPS, "run", PromptTexts(asked))
        return pair_rows(sides, answers, {"share": 0.05})[0]

    cells = [cells_of("exact", model) for model in ("m", "n")]
    means = [averaged(own) for own in cells]
    assert_equal(rows([*cells[0], *cells[1]], frames), rows([*means[0], *means[1]], {}))


def test_answers_of_a_frame_add_up_and_its_shares_are_a_mean() -> None:
    keys = {"jobs.select": "1-2", "templates.select": "1-3,11", "bias_type": "explicit"}
    design = resolve(load_as(ProbeStudy, "wording", keys))
    answers, cells = AnswersOfRun(design), [cell for cell, *_ in product(design, "m", "raw")]
    for cell in cells:
        n = {1: 1, 2: 2, 3: 4, 11: 1}[cell.template_id]
        answers.cells[cell] = Counter({("declines", ""): 1, ("other", ""): n - 1})
    rows, _ = outcome_rows(answers, cells)
    (row,) = [row for row in rows if (row["outcome"], row["job_group"]) == ("declines", "all")]
    assert (8, 16, 2) == (row["n"], row["n_answers"], row["n_templates"])
    assert row["share"] == pytest.approx(((1 + 1 / 2 + 1 / 4) / 3 + 1) / 2)


# --- lists and stored designs ------------------------------------------------------------------------


def test_the_shipped_framings_differ_in_the_question_alone() -> None:
    templates = load_templates("corpus:framing/templates.toml").templates
    assert Counter(t.frame for t in templates) == dict.fromkeys({t.frame for t in templates}, 4)
    for frame, number in itertools.product({t.frame for t in templates}, range(4)):
        members = [t for t in templates if t.frame == frame]
        assert len({t.opening for t in members}) == 1
        assert len({t.question for t in members}) == 4
        assert ("fairness" in members[number].question) == (number in (1, 3))
        assert ("gender" in members[number].question.split(". ")[-1]) == (number in (2, 3))
    assert len({len(t.question.split(". ")[0].split()) for t in templates}) == 1


@pytest.mark.parametrize("bias_type", ["explicit", "implicit"])
def test_each_shipped_frame_has_ten_wordings(bias_type: str) -> None:
    listed = load_templates("corpus:wording/templates.toml").templates
    templates = [t for t in listed if t.bias_type == bias_type]
    assert sorted(Counter(t.frame for t in templates).values()) == [10] * 4
    assert len({t.question for t in templates}) == 40
    ends = [t.question if bias_type == "explicit" else t.opening for t in templates]
    assert all(text.endswith(" Answer with one word." if bias_type == "explicit" else ".") for text in ends)


@pytest.mark.parametrize("study", ["framing", "wording", "mattern"])
def test_a_stored_design_is_read_back_as_it_was(study: str) -> None:
    design = resolve(load_as(ProbeStudy, study))
    stored = json.loads(json.dumps(design.describe()))
    assert read(stored).frames == design.frames
    assert [asdict(t) for t in read(stored).templates] == [asdict(t) for t in design.templates]
    assert read(stored).describe()["digest"] == stored["digest"]
    assert ("frame" in stored["templates"][0]) == (study != "mattern")
