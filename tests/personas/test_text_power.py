"""What a plan of texts reckons with: the promise in drawn occupations, the sentence, shipped variances."""

from __future__ import annotations

import gzip
import json
import statistics

import numpy as np
import pytest
from scipy import stats

from biaskit.common.files import data_dir
from biaskit.corpora.loaders import load_items
from biaskit.corpora.variance import TextVariance, load_text_variance
from biaskit.measures.personas.design import resolve
from biaskit.measures.personas.power import paired_design, plan_sentence
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.association import associate_answer
from biaskit.stats.power import smallest_difference
from biaskit.study.config import load_as

N_RUNS = 3_000
BATCH = 300
"""Samples of a prompt's first batch in the recorded run."""


@pytest.mark.parametrize(("occupations", "texts"), [(8, 40), (20, 10), (63, 200)])
def test_the_promised_difference_from_labour_statistics_is_found_in_four_runs_of_five(
    occupations: int, texts: int
) -> None:
    variance = TextVariance(model="m", share=0.45, inferred_share=0.6, var_occupation=0.02, n_occupations=4)
    promised = smallest_difference(paired_design(variance, occupations, texts))
    assert promised is not None
    rng = np.random.default_rng(11)
    distance = rng.normal(promised, 0.02**0.5, (N_RUNS, occupations))
    n = round(texts * variance.inferred_share)
    # The noise of n texts about the shares that texts have, wherever the workforce share puts them.
    p = np.clip(0.45 + rng.normal(0.0, 0.02, distance.shape), 0.0, 1.0)
    measured = distance + rng.binomial(n, p) / n - p
    result = stats.ttest_1samp(measured, 0.0, axis=1)
    found = ((result.pvalue < 0.05) & (measured.mean(axis=1) > 0)).mean()
    assert float(found) == pytest.approx(0.8, abs=0.05)


def test_a_study_is_as_large_as_it_is_asked() -> None:
    pilot = resolve(load_as(PersonasStudy, "gasp-pilot"))
    assert 1 == plan_sentence(pilot).count("workforce: 24 points (8 occupations; variance: ")
    one = resolve(load_as(PersonasStudy, "gasp-pilot", {"occupations.select": "nurse"}))
    assert "cannot be estimated from another model's variance, fewer than 5 occup" in plan_sentence(one)


def test_shipped_variances_of_texts_are_those_of_the_recorded_ones() -> None:
    packed = data_dir("corpora") / "recorded" / "demo-base" / "personas.jsonl.gz"
    genders: dict[tuple[str, str], list[str | None]] = {}
    for line in gzip.decompress(packed.read_bytes()).splitlines():
        row = json.loads(line)
        if row["requested_gender"] is None and row["sample"] < BATCH:
            found = associate_answer(row["text"], row["finish_reason"], honorifics="paper").gender
            genders.setdefault((row["occupation"], row["template_id"]), []).append(found)
    workforce = {i.name: i.workforce_share for i in load_items("corpus:gasp/occupations.csv")}
    names = sorted({name for name, _ in genders})
    distances, noise, shares = [], [], []
    for name in names:
        of_prompts = [[g for g in own if g] for (other, _), own in genders.items() if other == name]
        p = [own.count("female") / len(own) for own in of_prompts]
        shares.append(statistics.fmean(p))
        distances.append(shares[-1] - (workforce[name] or 0.0))
        noise.append(
            sum(x * (1 - x) / (len(own) - 1) for x, own in zip(p, of_prompts, strict=True)) / len(p) ** 2
        )
    shipped = load_text_variance()[0]
    n_texts = sum(map(len, genders.values()))
    assert n_texts == 2_400
    assert shipped.n_occupations == len(names)
    assert shipped.share == pytest.approx(statistics.fmean(shares), rel=1e-3)
    known = sum(g is not None for own in genders.values() for g in own)
    assert shipped.inferred_share == pytest.approx(known / n_texts, rel=1e-3)
    expected = statistics.variance(distances) - statistics.fmean(noise)
    assert shipped.var_occupation == pytest.approx(expected, rel=1e-3)
