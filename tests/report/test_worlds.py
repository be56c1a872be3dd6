"""What pages say of worlds whose truth is known, reduced: `benchmarks/worlds.py` is in full.

The worlds' models are shown to answer as a scripted model and a server would.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.finding_rules import hold as findings_hold
from fakes.worlds import (
    DIVERSE,
    ProbeKind,
    ProbeWorld,
    Spread,
    WorldSpeaker,
    opened,
)
from places import BENCHMARKS, module_of

import biaskit as bk
from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.requests import PlannedCells
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.counting import SampledScorer
from biaskit.records import ScoreRequest
from biaskit.report.findings import Finding
from biaskit.runs.store import read_rows
from biaskit.study.config import load_as
from biaskit.tables.io import read_table_rows
from biaskit.tables.quantities import OUTCOME_SHARE
from biaskit.workflow.analyze import rebuild_tables

EXACT = 1e-12


worlds = module_of(BENCHMARKS / "worlds.py")
TINY = ProbeKind(jobs=2, templates=2)


def requests_of(world: ProbeWorld, folder: Path) -> tuple[ScoreRequest, ...]:
    study = load_as(ProbeStudy, str(world.write(folder)), {})
    return PlannedCells(resolve(study), "model0", "raw", "f").requests


# --- the worlds' models stand for real ones --------------------------------------------------------------


def test_an_exact_world_gives_the_rows_of_a_scripted_model(tmp_path: Path) -> None:
    world = ProbeWorld.sample(TINY, 1)
    lists, script = tmp_path / "lists", tmp_path / "script.jsonl"
    lists.mkdir()
    lines = [
        {
            "contains": request.prompt.text,
            "log_probs": {
                f" {prompt_format}": math.log(mass)
                for prompt_format, mass in world.masses(world.place(0, request.prompt.text)).items()
            },
        }
        for request in requests_of(world, lists)
    ]
    script.write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    study = str(lists / "study.toml")
    scripted = bk.probe(f"model0=scripted:{script}", study=study, out=tmp_path / "a", watcher=bk.Silent())
    with opened(world):
        ours = bk.probe("model0=scripted:x", study=study, out=tmp_path / "b", watcher=bk.Silent())
    rows = [list(read_rows(run.path / "probe.jsonl")) for run in (scripted, ours)]
    same = ("template_id", "job", "estimator", "prompt", "target_words")
    assert [[row[name] for name in same] for row in rows[0]] == [
        [row[name] for name in same] for row in rows[1]
    ]
    tables = [(run.path / "tables" / "tests.csv").read_bytes() for run in (scripted, ours)]
    assert tables[0] == tables[1]
    groups = ours.groups[ours.groups.gender == "female"].set_index("job_group")
    drawn = world.shares[0, 0].reshape(2, -1).mean(axis=1)
    found = groups["binary_share"], groups["share"]
    of_two, of_all = ([column[worlds.FEMALE], column[worlds.MALE]] for column in found)
    assert of_two == pytest.approx(drawn.tolist(), abs=EXACT)
    assert of_all == pytest.approx(((1 - DIVERSE) * drawn).tolist(), abs=EXACT)


def test_samples_of_a_world_follow_its_probabilities(tmp_path: Path) -> None:
    world = ProbeWorld.sample(ProbeKind(jobs=2, templates=2, estimator="sampling", coverage=0.5), 3)
    requests = requests_of(world, tmp_path)
    scorer = SampledScorer(WorldSpeaker(world, 0, "model0"), samples=400, longest=4)
    for answer in (a for group in scorer.score(scorer.plan_scores(requests).batches) for a in group):
        said = Counter({prompt_format: n / answer.samples for prompt_format, n in answer.counts.items()})
        masses = world.masses(world.place(0, answer.prompt))
        error = 4 * math.sqrt(0.25 / answer.samples)
        assert all(abs(said[form] - mass) < error for form, mass in masses.items())


def test_true_means_are_those_of_many_worlds() -> None:
    kind = ProbeKind(jobs=20, templates=25, women=0.3, difference=0.1)
    drawn = [ProbeWorld.sample(kind, 4, i).shares[0, 0].mean(axis=-1) for i in range(300)]
    found = np.array(drawn).reshape(300, 2, 20).mean(axis=(0, 2))
    true = [kind.true_share(group) for group in (worlds.FEMALE, worlds.MALE)]
    assert true[0] - true[1] == pytest.approx(0.1, abs=EXACT)
    assert found == pytest.approx(true, abs=0.015)


# --- what counts as a false direction --------------------------------------------------------------------


def finding(
    text: str, verdict: str = "shown", question: str = "say", topic: str = "probe-implicit"
) -> Finding:
    return Finding(text, topic, question, verdict)  # type: ignore[arg-type]


NULL = worlds.Kind(ProbeKind())
ASYMMETRY = (
    "Asked directly, of she and he, a says he for men’s jobs 12 points more often than she for women’s "
    "[1 to 23]."
)


@pytest.mark.parametrize(
    ("made", "about"),
    [
        (
            finding(
                "Asked directly, of she and he, a says she 12 points more often for x than for y [1 to 23].",
                "higher",
            ),
            ["groups of jobs"],
        ),
        (
            finding(
                "Asked directly, of she and he, no clear difference in how often a says she for x and y "
                "[−1 to 9 points].",
                "no-clear-difference",
            ),
            [],
        ),
        (finding(ASYMMETRY, "higher"), ["asymmetry"]),
        (finding("Asked directly, a flattens the U.S. workforce.", "lower"), []),  # slopes are 0 there
        (finding("Asked directly, a reverses the U.S. workforce.", "lower"), ["groups of jobs"]),
        (finding("Answers and texts rise together.", "shown", "agree", "relations"), ["agree: relations"]),
        (finding("31 words mark women in a’s texts, 6 by chance.", "shown", "how", "words"), ["how: words"]),
        (
            finding(
                "Asked directly, of she and he, a says she more than he for 3 of 40 jobs, and less for 2."
            ),
            [],
        ),
    ],
)
def test_false_directions_are_read_off_verdict_and_words(made: Finding, about: list[str]) -> None:
    assert [what for what, _ in worlds.false_claims(made, NULL)] == about


def test_where_men_truly_have_more_an_asymmetry_is_no_false_direction() -> None:
    made = finding(ASYMMETRY, "higher")
    assert worlds.false_claims(made, NULL)
    assert not worlds.false_claims(made, worlds.Kind(ProbeKind(women=0.2)))


# --- pages -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_findings_of_a_world_are_those_of_its_report(tmp_path: Path) -> None:
    world = ProbeWorld.sample(ProbeKind(jobs=3, templates=3, models=2), 5)
    content = worlds.content_of(tmp_path, world, None)
    made = bk.report(tmp_path / "probe", out=tmp_path / "report.html", watcher=bk.Silent())
    assert worlds.findings(content) == made.findings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("exact 10+10 jobs, 10 templates", 2),  # groups of jobs and the slope, each alone at 5 %
        ("exact, explicit and implicit", 9),
        ("exact 20+20 jobs, 3 templates", 20),
        ("top-k, 5 listed, coverage follows", 0),  # points between bounds were tested
        ("sampling, coverage 0.3", 12),
        ("sampling, coverage 0.3 follows", 16),  # templates with an empty cell were left out
        ("texts, with woman, Mr, mother", 0),  # women's texts are nearest to the word woman
    ],
)
def test_a_page_of_a_null_names_no_direction(kind: str, number: int) -> None:
    """Each of these pages did, and the remark says why."""
    line = worlds.page(kind, "null", number)
    assert "error" not in line
    assert line["false"] == []


def random_kind(rng: np.random.Generator) -> ProbeKind:
    """A small world of any estimator, with any of the differences there are."""
    models, asked = int(rng.integers(1, 4)), [("implicit",), ("explicit", "implicit")]
    return ProbeKind(
        jobs=int(rng.integers(2, 12)),
        templates=int(rng.integers(2, 8)),
        models=models,
        bias_types=asked[int(rng.integers(2))],
        estimator=("exact", "exact", "top-k", "sampling")[int(rng.integers(4))],
        difference=float(rng.choice([0.0, 0.1, 0.3])),
        apart=float(rng.choice([0.0, 0.2])) if models == 2 else 0.0,
        coverage=float(rng.choice([0.05, 0.3, 0.9])),
        instructed=float(rng.choice([-0.3, 0.0])) if rng.random() < 0.4 else None,
    )


def rows_agree(folder: Path, number: int) -> int:
    """Make a random page; page, tests.csv, check and Python give each comparison one verdict. Count named."""
    folder.mkdir()
    world = ProbeWorld.sample(random_kind(np.random.default_rng([30, number])), 30, number)
    (run,) = worlds.make_runs(folder, world, None)
    page = worlds._content([run], True, (), None, {}, None, bk.Silent())[0]
    findings_hold(page)
    key = ("family", "kind", "gender", "model_a", "model_b", "bias_type", "context", "debiasing_a",
           "debiasing_b", "group_a", "group_b")  # fmt: skip
    verdict_of_row: dict[tuple[str, ...], set[str]] = {}

    def add(row: Mapping[str, Any], verdict: str) -> None:
        verdict_of_row.setdefault(tuple(str(row[name] or "") for name in key), set()).add(verdict)

    on_page = [row for tables in (page.parts[0].tables, page.between) for row in tables.get("tests", ())]
    for row in on_page:
        add(row, row["verdict"])
        named, low, high = row["verdict"] in ("higher", "lower"), row["shown_low"], row["shown_high"]
        assert not named or low > 0 or high < 0, "the interval beside a direction excludes 0"
        assert row["verdict"] != "no-clear-difference" or low <= 1e-9 >= -high, "and beside none it holds 0"
    for row in read_table_rows(run / "tables" / "tests.csv"):
        add(row, row["verdict"])
    of_python = bk.load(run).tests
    for row in of_python.astype(object).where(of_python.notna(), None).to_dict("records"):
        add(row, row["verdict"] or "")
    gated = [row for row in page.every_test if row.is_judged and row.quantity != OUTCOME_SHARE]
    kinds = sorted({(row.contrast, row.quantity) for row in gated})
    thresholds = {"require": [{"contrast": c, "quantity": q, "margin": 1e-12} for c, q in kinds]}
    in_words = {
        "no-clear-difference": "no clear difference",
        "shown": "not shown to be",
        "no-verdict": "no conclusion",
    }
    for failing in (
        failing for outcome in bk.check(run, thresholds=thresholds).outcomes for failing in outcome.failing
    ):
        add(failing.row, failing.row["verdict"])
        said = failing.row["verdict"]
        assert in_words.get(said, said.replace("-", " ")) in failing.text
    assert {len(verdicts) for verdicts in verdict_of_row.values()} == {1}
    return sum(row["verdict"] in ("higher", "lower") for row in on_page)


def test_page_table_check_and_python_agree(tmp_path: Path) -> None:
    n_named = [rows_agree(tmp_path / str(number), number) for number in range(6)]
    assert sum(n_named) > 2


@pytest.mark.parametrize(
    ("they", "question", "quantities"),
    [
        ("groups", "say", ("binary_share", "share")),
        ("models", "models", ("binary_share", "share")),
        ("help", "help", ("binary_group_gap", "group_gap")),
    ],
)
def test_they_alone_moving_is_no_direction_unless_shares_of_all_words_are_asked_for(
    they: str, question: str, quantities: tuple[str, str], tmp_path: Path
) -> None:
    """A run whose women and men are the same where they has 10 % as where it has 40 %, from cells to page."""
    kind = ProbeKind(
        jobs=6,
        templates=6,
        models=2 if they == "models" else 1,
        they=they,  # type: ignore[arg-type]
        difference=0.4 if they == "help" else 0.0,
        instructed=0.0 if they == "help" else None,
        spread=Spread(0.2, 0.2, 0.1, 0.02),
    )
    (run,) = worlds.make_runs(tmp_path, ProbeWorld.sample(kind, 48), None)
    for rule, quantity in zip(("of-two", "of-all"), quantities, strict=True):
        rebuild_tables(run, {"conclusion.share": rule})
        page = worlds._content([run], True, (), None, {}, None, bk.Silent())[0]
        said = [one for one in findings_hold(page) if one.question == question]
        leads = [row for row in page.every_test if row.question == question and row.lead]
        assert quantity in {row.quantity for row in leads}
        assert {row.is_binary for row in leads} == {rule == "of-two"}
        named = {row.direction for row in leads if row.verdict in ("higher", "lower")}
        assert named == (set() if rule == "of-two" else {"lower"})
        assert all(("of she and he" in one.text.lower()) is (rule == "of-two") for one in said)
        assert bool(said)


@pytest.mark.nightly
def test_page_table_check_and_python_agree_on_many_pages(tmp_path: Path) -> None:
    assert sum(rows_agree(tmp_path / str(number), number) for number in range(6, 106)) > 70


@pytest.mark.slow
def test_shares_that_bounds_leave_open_are_not_equivalent() -> None:
    line = worlds.page("top-k, women unlisted", "margin", 0)
    assert line["verdicts"][0] in ("not-identified", "no-clear-difference")
    assert all(low <= truth <= high for _, _, low, high, truth in line["intervals"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "number"), [("top-k, women unlisted", 0), ("sampling, coverage 0.05 follows", 3)]
)
def test_equal_shares_and_jobs_without_any_share_make_a_page(kind: str, number: int) -> None:
    assert "error" not in worlds.page(kind, "null", number)
