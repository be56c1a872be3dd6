"""Words over all occupations: genders are compared, and shuffled, within occupation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fakes.personas_runs import only, table
from hypothesis import given, settings
from hypothesis import strategies as st
from personas.words.test_transfer import Rows, area, made, texts
from scipy.sparse import csr_matrix

import biaskit as bk
from biaskit.errors import UsageError
from biaskit.measures.personas.words.contrasts import WordList
from biaskit.measures.personas.words.labelled_texts import overlap_weights
from biaskit.measures.personas.words.lists import word_lists
from biaskit.measures.personas.words.shuffles import Shuffles
from biaskit.records import GENDERS, WOMEN_AND_MEN

COMMON = ("a", "and", "in", "of", "the", "to")
N_RARE = 30
WORDS = sorted((*COMMON, "machine", "ward", "warm", *(f"x{i:02}" for i in range(N_RARE))))


def corpus(
    sizes: Sequence[tuple[int, int]], *, warm: float = 0.5, seed: int = 1
) -> tuple[csr_matrix, list[str], list[str]]:
    """Texts of women and men, so many of each occupation; `ward` is a word of the first, third, …"""
    rng = np.random.default_rng(seed)
    counts, genders, occupations = [], [], []
    for number, of_two in enumerate(sizes):
        for gender, n, often in zip(WOMEN_AND_MEN, of_two, (warm, 1 - warm), strict=True):
            for _ in range(n):
                said = [*rng.choice(COMMON, 20), *rng.choice(WORDS[-N_RARE:], 4)]
                said += ["ward", "ward"] if number % 2 == 0 else ["machine", "machine"]
                said += ["warm"] * int(rng.random() < often)
                counts.append([said.count(word) for word in WORDS])
                genders.append(gender)
                occupations.append(f"job {number}")
    return csr_matrix(np.array(counts)), genders, occupations


def lists(
    counts: csr_matrix,
    genders: Sequence[str],
    strata: Sequence[str],
    occupations: Sequence[str] | None = None,
    n_shuffles: int = 39,
) -> list[WordList]:
    of_texts = {"words": WORDS, "genders": genders, "strata": strata, "english": np.ones(len(WORDS))}
    how = {"seed": 1, "row_key": ("m",), "n_shuffles": n_shuffles, "occupations": occupations}
    return word_lists(counts, **of_texts, **how)  # type: ignore[arg-type]


def test_in_one_occupation_and_with_equal_shares_every_text_weighs_one() -> None:
    counts, genders, occupations = corpus([(30, 12)], warm=0.8)
    assert lists(counts, genders, occupations, occupations) == lists(counts, genders, occupations)
    counts, genders, occupations = corpus([(20, 10), (40, 20)], warm=0.8)
    assert lists(counts, genders, occupations, occupations) == lists(counts, genders, occupations)


def test_a_word_of_an_occupation_is_no_word_of_its_gender_and_a_gender_s_is_found() -> None:
    counts, genders, occupations = corpus([(64, 16), (16, 64)] * 2, warm=0.85)
    pooled = {one.gender: one.listed for one in lists(counts, genders, [""] * len(genders))[::2]}
    assert {"ward", "warm"} <= {*pooled["female"]}
    assert "machine" in pooled["male"]
    within = lists(counts, genders, occupations, occupations)[::2]
    assert [["warm"], []] == [one.listed for one in within]
    assert within[0].p_value_beyond == pytest.approx(within[0].p_value)
    assert (160, 160) == (within[0].n_target, within[0].n_unmarked)
    assert (
        within[0].words[0].documents_target
        == counts[np.array(genders) == "female"][:, WORDS.index("warm")].nnz
    )


SIZES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(2, 3))
def test_weighted_occupations_are_the_same_for_every_label(sizes: list[tuple[int, ...]], k: int) -> None:
    groups, labels, occupations = GENDERS[:k], list[str](), list[str]()
    for number, of_labels in enumerate(sizes):
        for label, n in zip(groups, of_labels[:k], strict=True):
            labels += [label] * n
            occupations += [str(number)] * n
    weights = overlap_weights(labels, occupations, groups)
    of_label = [np.array(labels) == group for group in groups]
    shares = []
    for own, is_of in zip(weights, of_label, strict=True):
        of_occupations = [own[is_of & (np.array(occupations) == str(i))].sum() for i in range(len(sizes))]
        shares.append(np.array(of_occupations) / own[is_of].sum())
    assert shares[0] == pytest.approx(shares[-1])
    if k == 2:  # the ratio of Mantel and Haenszel, of a count that is the text's number
        counts, first = np.arange(1.0, len(labels) + 1), of_label[0]
        over = under = 0.0
        for i in range(len(sizes)):
            here = np.array(occupations) == str(i)
            over += counts[here & first].sum() * (here & ~first).sum() / here.sum()
            under += counts[here & ~first].sum() * (here & first).sum() / here.sum()
        weighted = [(counts * own)[is_of].sum() for own, is_of in zip(weights, of_label, strict=True)]
        times = len(labels) / (~first).sum(), len(labels) / first.sum()
        assert weighted == pytest.approx([over * times[0], under * times[1]])


def test_shuffled_texts_keep_the_weights_of_their_occupation() -> None:
    genders, occupations = corpus([(4, 2), (1, 5)])[1:]
    weights = overlap_weights(genders, occupations, WOMEN_AND_MEN)
    own = csr_matrix(np.eye(len(genders)))  # a word of its own for each text
    shuffles = Shuffles.of(genders, occupations, np.random.default_rng(1), 30, weights=weights)
    ((_, (female, male)),) = shuffles.counted(own)
    is_female = female > 0
    assert (is_female == (male == 0)).all()
    assert (female == is_female * weights[0]).all()
    assert (male == ~is_female * weights[1]).all()
    assert (is_female.sum(axis=1) == 5).all()


def test_an_occupation_without_one_gender_is_left_out() -> None:
    counts, genders, occupations = corpus([(30, 10), (20, 0)])
    found = lists(counts, genders, occupations, occupations)
    assert (30, 10) == (found[0].n_target, found[0].n_unmarked)
    counts, genders, occupations = corpus([(30, 0), (0, 30)])
    (none, *_) = lists(counts, genders, occupations, occupations)
    assert (None, "no occupation has texts of each") == (none.n_marked, none.reason)


def test_longer_letters_of_one_occupation_are_no_longer_texts_of_a_gender() -> None:
    counts, genders, occupations = corpus([(64, 16), (16, 64)])
    longer = csr_matrix(counts.toarray() * np.where(np.array(occupations) == "job 0", 3, 1)[:, None])
    assert "times as long" in str(lists(longer, genders, [""] * len(genders))[0].reason)
    assert lists(longer, genders, occupations, occupations)[0].reason is None


# --- of whole files ------------------------------------------------------------------------------------


def test_a_file_of_several_occupations_has_the_row_all_and_one_of_one_has_not(tmp_path: Path) -> None:
    several = made(texts(), tmp_path, "several")
    of_all = only(table(several, "word_lists"), occupation="all", method="calibrated")
    assert ["36"] * 4 == [row["n_target"] for row in of_all]
    assert {"tender", "warm", "kind"} & {
        row["word"] for row in only(table(several, "marked_words"), occupation="all")
    }
    assert not only(table(several, "word_overlap"), occupation="all")
    alone = made(texts(jobs=("nurse",)), tmp_path, "alone")
    assert not only(table(alone, "word_lists"), occupation="all")


def test_the_area_of_a_file_has_its_interval_over_texts(tmp_path: Path) -> None:
    rows: Rows = texts(20, unprompted=1, on_request=1)
    run = made(rows, tmp_path)
    transfer = table(run, "text_transfer")
    mean = area(transfer, "inferred", "inferred")
    of_jobs = [row for row in only(transfer, trained_on="inferred", tested_on="inferred") if row is not mean]
    of_jobs = [row for row in of_jobs if row["occupation"] != "all"]
    assert float(mean["se"]) == pytest.approx(np.sqrt(sum(float(row["se"]) ** 2 for row in of_jobs)) / 3)
    (tested,) = only(table(run, "tests"), quantity="auc_inferred")
    assert ("text", "60", "60") == (tested["unit"], tested["n_a"], tested["n_b"])
    assert float(tested["ci_low"]) == pytest.approx(float(mean["ci_low"]) - 0.5)
    significant, outside = float(tested["p_value"]) < 0.05, float(mean["ci_low"]) > 0.5
    assert significant == outside


def test_an_occupation_beside_others_is_not_called_as_the_total_is(tmp_path: Path) -> None:
    texts = pd.DataFrame({"text": ["She is kind.", "He is kind."], "job": ["all", "cook"]})
    with pytest.raises(UsageError, match="An occupation is called all"):
        bk.analyze_texts(texts, occupation="job", out=tmp_path / "run", watcher=bk.Silent())
