"""Correlations between measures of the same jobs: right where the truth is known, and said why where not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

import biaskit as bk
from biaskit.compare.validity import Measure, validity_rows
from biaskit.measurement import measurement
from biaskit.report.findings import findings
from biaskit.report.stored import stored_content
from biaskit.stats.arrays import FloatArray
from biaskit.stats.reliability import Estimate, corrected_correlation, split_half

JOBS = [f"job {letter}" for letter in "abcdefghijkl"]


def noisy(truth: FloatArray, reliability: float, n_templates: int, seed: int) -> FloatArray:
    """Cells `[I, J]` whose means over templates have this reliability."""
    size = (len(truth), n_templates)
    noise = default_rng(seed).normal(0, math.sqrt((1 - reliability) / reliability * n_templates), size)
    return truth[:, None] + noise


@pytest.mark.parametrize("seed", range(4))
def test_without_noise_the_interval_is_fishers(seed: int) -> None:
    x, y = default_rng(seed).normal(size=(2, 15))
    y += (seed - 1) * x
    r = float(np.corrcoef(x, y)[0, 1])
    reach = 1.96 / math.sqrt(12)
    expected = [math.tanh(math.atanh(r) + side * reach) for side in (-1, 1)]
    found = corrected_correlation(x, y)
    assert found.value == pytest.approx(r, abs=1e-12)
    assert expected == pytest.approx([found.low, found.high], abs=1e-3)


def away(rho: float, r: float, n: int, noise: list[tuple[float, int]]) -> float:
    """How many standard errors a correlation is away: the delta method of u / √(v w), term by term."""
    (a, _), (b, _) = noise
    root = math.sqrt(a * b)
    at = rho * root
    relative = (1 / at**2 + 1) + at**2 / (a * b) - 2 / a - 2 / b  # of the covariance, and with both variances
    for reliability, n_templates in noise:
        relative += (1 + (1 - reliability) ** 2 / (n_templates - 1)) / (2 * reliability**2)
    error = abs(at) * math.sqrt(relative / (n - 3)) / (1 - at**2)
    return abs(math.atanh(r) - math.atanh(at)) / error


@pytest.mark.parametrize("noise", [[(0.8, 5), (0.6, 3)], [(0.6, 2), (0.5, 2)]])
def test_with_noise_the_ends_are_where_the_delta_method_says(noise: list[tuple[float, int]]) -> None:
    x, y = default_rng(3).normal(size=(2, 25))
    y += 0.6 * x
    found = corrected_correlation(x, y, *noise)
    r = float(np.corrcoef(x, y)[0, 1])
    assert found.value == pytest.approx(min(r / math.sqrt(noise[0][0] * noise[1][0]), 1), abs=1e-12)
    assert found.low is not None
    assert away(found.low + 0.002, r, 25, noise) < 1.96 < away(found.low - 0.002, r, 25, noise)


@pytest.mark.parametrize(("rho", "n", "reliability"), [(-0.3, 10, 0.7), (0.6, 20, 0.9), (0.9, 30, 0.8)])
def test_the_interval_holds_the_truth_with_estimated_reliabilities(
    rho: float, n: int, reliability: float
) -> None:
    rng, held = default_rng(7), []
    for world in range(250):
        a, other = rng.normal(size=(2, n))
        b = rho * a + math.sqrt(1 - rho**2) * other
        cells = noisy(a, reliability, 5, 2 * world), noisy(b, reliability, 5, 2 * world + 1)
        noise = [(split_half(each, rng).value or 0.0, 5) for each in cells]
        if min(noise) > (0, 0):
            found = corrected_correlation(cells[0].mean(axis=1), cells[1].mean(axis=1), *noise)
            assert found.low is not None
            assert found.high is not None
            held.append(found.low <= rho <= found.high)
    assert len(held) > 200
    assert 0.92 < np.mean(held) < 0.985


def test_perfect_and_opposite_measures_end_at_one() -> None:
    x = np.arange(12.0)
    assert corrected_correlation(x, x, (0.5, 3), (0.5, 3)) == Estimate(1.0, 1.0, 1.0)
    assert corrected_correlation(x, -x) == Estimate(-1.0, -1.0, -1.0)


def measure(name: str, values: FloatArray, reliability: Estimate, n: int = 4) -> Measure:
    return Measure(name, dict(zip(JOBS, values.tolist(), strict=False)), reliability, n)


def test_what_is_missing_or_too_low_is_not_corrected_and_says_so() -> None:
    x, y = default_rng(1).normal(size=(2, 12))
    good, missing = measure("a", x, Estimate(0.8)), measure("b", y, Estimate(reason="one template"))
    low, few = measure("c", y, Estimate(-0.1)), measure("d", y[:9], Estimate(0.9))
    constant = measure("e", np.ones(12), Estimate(0.9))
    rows = {row["measure_b"]: row for row in [*validity_rows("m", [good, missing, low, few, constant])][:4]}
    assert "not corrected: b: one template" == rows["b"]["reason"]
    assert "not corrected: c: not above 0" == rows["c"]["reason"]
    assert rows["b"]["correlation"] == rows["b"]["uncorrected"]
    assert "9 jobs with both, at least 10 are needed" == rows["d"]["reason"]
    assert "jobs do not differ: no correlation" == rows["e"]["reason"]
    assert rows["d"]["correlation"] is rows["e"]["ci_low"] is None


def test_texts_are_measured_by_their_prompts() -> None:
    rows = []
    for i, job in enumerate(JOBS):
        shares = {"one": i / 12, "two": i / 12 + 0.01 * (i % 3)}
        for template, share in {**shares, "all": sum(shares.values()) / 2}.items():
            row = {"model": "m", "occupation": job, "template_id": template, "female_share": share}
            rows.append(row | {"workforce_share": 0.5 + i / 30 if i else None})
    texts, workforce = measurement("personas").of_jobs({"representation": rows}, "m")
    assert ("texts", 12, 2) == (texts.name, len(texts.values), texts.n_templates)
    expected = split_half(
        np.array([[rows[3 * i + j]["female_share"] for j in (0, 1)] for i in range(12)]), default_rng(1)
    )
    assert texts.reliability.value == pytest.approx(expected.value)
    assert JOBS[1:] == [*workforce.values]


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    """A model that says she the more often, the later a job stands; its texts say so; pairs the opposite."""
    lines: list[dict[str, Any]] = []
    pairs: dict[str, float] = {}
    for i, job in enumerate(JOBS):
        she = 0.1 + 0.06 * i
        texts = ["She did."] * (i + 1) + ["He did."] * (12 - i)
        pairs |= {f"The {job} said she left.": -40.0 - i, f"The {job} said he left.": -46.0 - i % 2}
        said = {" She": math.log(she), " He": math.log(0.9 - she)}
        lines.append({"contains": f"{job} ", "log_probs": said, "texts": texts, "else": -40.0})
    lines.append({"contains": "", "log_probs": pairs})
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    rows = [f"{job},{'female' if i > 5 else 'male'}-dominated" for i, job in enumerate(JOBS)]
    (tmp_path / "jobs.csv").write_text("\n".join(["item,group", *rows]) + "\n", "ascii")
    templates = "".join(
        f'[[template]]\nbias_type = "implicit"\nquestion = "Say more of [JOB] ."\nopening = "[JOB] {verb}."\n'
        for verb in ("came", "went")
    )
    (tmp_path / "templates.toml").write_text(f'slot = "[JOB]"\n{templates}', "ascii")
    words = 'forms = "as-listed"\n[groups]\nfemale = ["She"]\nmale = ["He"]\n'
    (tmp_path / "words.toml").write_text(words, "ascii")
    lists = {"jobs": "jobs.csv", "templates": "templates.toml", "target_words": "words.toml"}
    arguments: dict[str, Any] = {name: str(tmp_path / file) for name, file in lists.items()}
    return {**arguments, "bias_type": "implicit", "watcher": bk.Silent()}


def test_a_run_and_a_comparison_have_the_matrix_of_what_they_measured(
    asked: dict[str, Any], tmp_path: Path
) -> None:
    spec = f"m=scripted:{tmp_path / 'm.jsonl'}"
    probed = bk.probe(spec, **asked, continuations=13, out=tmp_path / "probe")
    [row] = probed.validity.to_dict("records")
    assert ("implicit", "implicit, sampled") == (row["measure_a"], row["measure_b"])
    assert row["correlation"] > 0.99
    texts = [finding.text for finding in findings(stored_content(probed.path))]
    assert "Over jobs, m’s implicit and sampled answers correlate by 1.00 [1.00 to 1.00]." in texts
    assert probed.jobs["sampled_difference"].tolist() == pytest.approx([(2 * i - 11) / 13 for i in range(12)])
    pairs = []
    for job in JOBS:
        pairs.append({"item": job, "stereotype": job.upper(), "female": f"The {job} said she left."})
        pairs[-1] |= {"male": f"The {job} said he left.", "direction": ""}
    paired = bk.pairs(spec, pairs=pairs, out=tmp_path / "pairs", watcher=bk.Silent())
    between = bk.compare(probed, paired, out=tmp_path / "both").validity
    found = {(row["measure_a"], row["measure_b"]): row for row in between.to_dict("records")}
    assert 3 == len(found)
    assert found["implicit", "pairs"]["correlation"] < -0.5
    assert (
        "not corrected: pairs: not as many pairs of every stereotype, two at least"
        == found["implicit", "pairs"]["reason"]
    )
    assert found["implicit", "implicit, sampled"]["ci_low"] == pytest.approx(row["ci_low"])
