"""`biaskit plan` and `bk.plan`: designs, prices, runs, errors; no model is opened."""

from __future__ import annotations

import gzip
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli
from fakes.many_models import make_probe_run

import biaskit as bk
from biaskit.corpora.loaders import load_items
from biaskit.corpora.variance import load_cell_variance, load_text_variance
from biaskit.errors import BiaskitError
from biaskit.files import data_dir
from biaskit.models.api.prices import find_price
from biaskit.personas.texts.association import associate_answer
from biaskit.tables.io import read_table_rows

BATCH = 300
"""Draws of a prompt's first round in the recorded run."""
OCCUPATIONS = ("nurse", "teacher", "accountant", "mechanic", "cook", "lawyer")
PRICED = "openai:gpt-4o-mini-2024-07-18"


def test_a_plan_opens_no_model_and_loads_no_heavy_library() -> None:
    code = (
        "import sys, biaskit as bk; bk.plan('hf:nobody/nothing', difference=0.05);"
        f"bk.plan('{PRICED}', difference=0.1);"
        "assert not {'torch', 'transformers', 'openai', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_needed_shows_the_difference_and_nothing_smaller_does(tmp_path: Path) -> None:
    of = {"bias_type": "explicit"}
    found = {row["larger"]: row for row in bk.plan(difference=0.05, **of).needed}
    jobs = found["jobs"]["jobs"][0]

    def shown(n_jobs: int) -> float:
        listed = tmp_path / f"jobs-{n_jobs}.csv"
        sides = ("female-dominated", "male-dominated")
        listed.write_text("item,group\n" + "".join(f"{s} {i},{s}\n" for s in sides for i in range(n_jobs)))
        return float(bk.plan(jobs=str(listed), **of).shown[0]["difference"])

    assert shown(jobs) <= 0.05 < shown(jobs - 1)
    assert jobs > 20
    assert found["templates"]["templates"] is None
    assert found["templates"]["reason"] == "the largest tried shows 6.6"
    both = found["jobs and templates"]
    assert both["jobs"][0] < jobs
    assert both["cells"] == 2 * both["jobs"][0] * both["templates"]


def test_a_wanted_difference_has_its_price() -> None:
    rows = {r["larger"]: r for r in bk.plan(PRICED, difference=0.1, bias_type="explicit").needed}
    fewer, more = rows["draws"], rows["jobs"]
    price = find_price("api.openai.com", PRICED.partition(":")[2])
    assert price is not None
    assert more["calls"] == 10 * more["cells"]
    # Some ten to forty tokens of a prompt and some more of the answer.
    assert price.cost(10, 4) < fewer["cost"] / fewer["calls"] < price.cost(40, 30)
    assert more["cost"] / more["calls"] == pytest.approx(fewer["cost"] / fewer["calls"], rel=0.02)
    assert bk.plan("hf:a/b", difference=0.1).needed[1]["cost"] == 0
    unknown = bk.plan("openai:nobody-knows", difference=0.1)
    assert {row["cost"] for row in unknown.needed} == {None}
    assert any("price of openai:nobody-knows is unknown" in note for note in unknown.notes)
    given = bk.plan("openai:nobody-knows", difference=0.1, price="100,100").needed
    assert given[1]["cost"] > 1


def test_a_design_of_texts_needs_occupations() -> None:
    result = bk.plan(study="gasp-pilot", difference=0.1)
    texts, occupations = result.needed
    assert result.shown[0]["difference"] > 0.1
    assert texts["texts"] is None
    assert occupations["calls"] == occupations["occupations"] * 2 * 20
    larger = bk.plan(study="gasp", per_gender=20).shown[0]
    assert larger["occupations"] == 63
    assert larger["difference"] < 0.1


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_probe_run(tmp_path_factory.mktemp("runs") / "two", 2, OCCUPATIONS)


def test_a_run_brings_its_own_variances(run: Path) -> None:
    labels = sorted({row["model"] for row in read_table_rows(run / "tables" / "probe_groups.csv")})
    own, shipped = bk.plan(labels[0], like=run), bk.plan()
    assert own.shown[0]["difference"] != shipped.shown[0]["difference"]
    rows = read_table_rows(run / "tables" / "probe_variance.csv")
    residuals = {
        row["var_residual"] for row in rows if (row["model"], row["gender"]) == (labels[0], "female")
    }
    assert {v["var_residual"] for v in own.variance} <= residuals
    assert any(str(run) in note for note in own.notes)
    with pytest.raises(BiaskitError, match="name the one whose variance is taken"):
        bk.plan(like=run)
    with pytest.raises(BiaskitError, match="a run of probe, but gasp-pilot a study of personas"):
        bk.plan(labels[0], like=run, study="gasp-pilot")


def test_shipped_variances_of_texts_are_those_of_the_recorded_ones() -> None:
    packed = data_dir("corpora") / "recorded" / "demo" / "generations.jsonl.gz"
    genders: dict[tuple[str, str], list[str | None]] = {}
    for line in gzip.decompress(packed.read_bytes()).splitlines():
        row = json.loads(line)
        if row["specified_gender"] is None and row["draw"] < BATCH:
            found = associate_answer(row["text"], row["finish_reason"], honorifics="paper").gender
            genders.setdefault((row["occupation"], row["template_id"]), []).append(found)
    labour = {i.name: i.labour_female_share for i in load_items("corpus:gasp/occupations.csv")}
    names = sorted({name for name, _ in genders})
    distances, noise, shares = [], [], []
    for name in names:
        of_prompts = [[g for g in own if g] for (other, _), own in genders.items() if other == name]
        p = [own.count("female") / len(own) for own in of_prompts]
        shares.append(statistics.fmean(p))
        distances.append(shares[-1] - (labour[name] or 0.0))
        noise.append(
            sum(x * (1 - x) / (len(own) - 1) for x, own in zip(p, of_prompts, strict=True)) / len(p) ** 2
        )
    shipped = load_text_variance()[0]
    n_texts = sum(map(len, genders.values()))
    assert n_texts == 2_400
    assert shipped.n_occupations == len(names)
    assert shipped.share == pytest.approx(statistics.fmean(shares), rel=1e-3)
    known = sum(g is not None for own in genders.values() for g in own)
    assert shipped.associated_share == pytest.approx(known / n_texts, rel=1e-3)
    expected = statistics.variance(distances) - statistics.fmean(noise)
    assert shipped.var_occupation == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"study": "ocugender"}, "Did you mean 'occugender'"),
        ({"study": "gasp-pilot", "jobs": "nurse"}, "gasp-pilot is a study of personas, which has no --jobs"),
        ({"per_gender": 3}, "occugender is a study of probe, which has no --per-gender"),
        ({"difference": 5}, "--difference 5: give a difference of shares such as 0.05"),
        ({"difference": 0.0}, "--difference 0: give"),
        ({"like": "none"}, "none is not a run"),
        ({"model": "nothing"}, "'nothing' is not a model"),
        ({"model": PRICED, "price": "a"}, "write the USD per million tokens"),
        ({"difference": "x"}, "difference is 'x': give a number"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BiaskitError, match=r"^[^\n]*$") as error:
        bk.plan(**given)
    assert said in str(error.value)


def test_the_command_prints_what_the_call_returns(console: Cli) -> None:
    said = console("plan", "--difference", "0.05", "--format", "json")
    assert said.code == 0
    assert json.loads(said.out) == json.loads(json.dumps(bk.plan(difference=0.05).as_json()))
    text = console("plan", "--jobs", "nurse,plumber").out
    assert "conditional on one job: no verdict" in text
    assert "explicit,20 + 20,25,7.3" in console("plan", "--format", "csv").out
    assert "% draws" in console("plan", PRICED, "--draws", "10", "--format", "csv").out
    assert {v.bias_type for v in load_cell_variance()} == {"explicit", "implicit"}
