"""Counts whose z is certainly below 1.96 are not scored: lists are the same (methods/words#reach)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from biaskit.measures.personas.words import contrasts
from biaskit.measures.personas.words import shuffled_scores as module
from biaskit.measures.personas.words.contrasts import WordList
from biaskit.measures.personas.words.labelled_texts import LabelledTexts
from biaskit.measures.personas.words.lists import word_lists
from biaskit.measures.personas.words.log_odds import METHODS, LogOdds, Prior, is_fixed
from biaskit.records import WOMEN_AND_MEN

N_WORDS = 40
WORDS = sorted(("the", "of", "and", *(f"x{i:02}" for i in range(N_WORDS - 3))))


def lists(seed: int, sizes: tuple[int, int], shape: str, prior: Prior, often: float) -> list[WordList]:
    """Lists of texts drawn with this seed: `shape` says how strata are cut, `often` how long texts are."""
    rng = np.random.default_rng(seed)
    genders = np.repeat(WOMEN_AND_MEN, sizes)
    rates = often * rng.gamma(0.3, size=N_WORDS) * np.where(rng.random(N_WORDS) < 0.2, 30, 1)
    own = rng.choice([0.2, 1, 5], size=(2, N_WORDS), p=[0.1, 0.8, 0.1])
    counts = rng.poisson(rates * own[(genders == "male").astype(int)])
    strata = {"one": ["p"] * len(genders), "each": [str(i) for i in range(len(genders))]}
    strata["two"] = rng.choice(["p", "q"], len(genders)).tolist()
    strata["occupations"] = strata["two"]
    english = np.where(rng.random(N_WORDS) < 0.5, 0, rng.geometric(0.001, N_WORDS))
    elsewhere = {gender: rng.poisson(3, N_WORDS) for gender in WOMEN_AND_MEN} if rng.random() < 0.3 else None
    return word_lists(
        csr_matrix(counts),
        words=WORDS,
        genders=genders.tolist(),
        strata=strata[shape],
        english=english,
        seed=seed,
        row_key=["m", "o", "r"],
        prior=prior,
        n_shuffles=30,
        elsewhere=None if shape == "occupations" else elsewhere,
        left_out=rng.random(N_WORDS) < 0.1,
        occupations=strata[shape] if shape == "occupations" else None,
    )


def every_word(
    texts: LabelledTexts, methods: Sequence[LogOdds], _: object, rng: np.random.Generator, n: int
) -> Iterator[module.Scores]:
    return module.shuffled_scores(texts, methods, None, rng, n)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.tuples(st.integers(1, 20), st.integers(1, 20)),
    st.sampled_from(("one", "each", "two", "occupations")),
    st.builds(Prior, st.sampled_from((0.0, 0.15, 1.0)), st.sampled_from((None, 0.001, 2.0))),
    st.sampled_from((0.05, 1.0, 20.0)),
)
@example(5, (3, 5), "occupations", Prior(0.0), 20.0)  # two words of one weighted count: which is frequent?
def test_lists_are_those_of_shuffles_that_score_every_word(
    seed: int, sizes: tuple[int, int], shape: str, prior: Prior, often: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        pruned = lists(seed, sizes, shape, prior, often)
        patch.setattr(contrasts, "shuffled_scores", every_word)
        assert pruned == lists(seed, sizes, shape, prior, often)


def test_most_words_of_ordinary_texts_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    scored = module.Scores.z

    def counted(self: module.Scores, target: Sequence[int], against: Sequence[int]) -> np.ndarray:
        z = scored(self, tuple(target), tuple(against))
        kept.append(z.shape[1])
        return z

    monkeypatch.setattr(module.Scores, "z", counted)
    lists(5, (20, 20), "one", Prior(), 0.3)
    assert min(kept) < max(kept) / 2  # of the shuffles, of the lists as they are


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.sampled_from(METHODS),
    st.sampled_from((0.0, 0.15, 1.0)),
    st.sampled_from((0.01, 0.4, 5.0)),
    st.sampled_from((0.3, 3.0, 300.0)),
    st.sampled_from((0.0, 0.3, 1.96, 6.0)),
)
def test_no_z_of_a_random_table_is_as_large_from_the_floors_on(
    seed: int, method: str, alpha: float, c: float, often: float, least: float
) -> None:
    rng = np.random.default_rng(seed)
    both = rng.poisson(often * rng.gamma(0.5, size=N_WORDS))
    if np.count_nonzero(both) < 2:
        return
    parts = rng.beta(*rng.uniform(0.05, 2, 2), size=(50, N_WORDS))
    first = rng.binomial(both, parts).astype(np.float64)
    english = np.where(rng.random(N_WORDS) < 0.5, 0, rng.geometric(0.01, N_WORDS)).astype(np.float64)
    odds = LogOdds(is_fixed(WORDS), english, method, Prior(alpha, c))
    terms = odds.regularise(first, both - first, both[None].astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        floors = terms.with_floors(both.astype(np.float64), least).floors
    assert floors is not None
    z = np.abs(terms.z(first, both - first))
    near = (first >= floors[0]) & (both - first >= floors[1])
    undefined = np.isnan(z).any()
    assert not (near & (np.isnan(z) if undefined else (z >= least) & (z > 0))).any()


@pytest.mark.parametrize("n", [9, 30, 300, 900])
def test_floors_lie_near_the_counts_from_which_on_z_is_small(n: int) -> None:
    """Were they much too high, nearly every count would be scored."""
    first = np.arange(n + 1.0)
    rest = np.full(n + 1, 500_000.0)  # the other words: both groups are as long
    ours, theirs = np.stack([first, rest], axis=1), np.stack([n - first, rest], axis=1)
    odds = LogOdds(np.array([False, True]), np.array([2.0, 900.0]), "calibrated", Prior())
    terms = odds.regularise(ours, theirs, np.array([[n, 1e6]]))
    z = np.abs(terms.z(ours, theirs))[:, 0]
    most = np.array([n, 1e6])
    for least in (z.max() / 4, z.max() / 2):
        lowest, floors = first[z < least].min(), terms.with_floors(most, least).floors
        assert floors is not None
        assert lowest - 1 < floors[0, 0] <= lowest + 1 + n / 100
    floors = terms.with_floors(most, z.max() * 1.02).floors  # no shuffle is as far
    assert floors is not None
    assert (floors[:, 0] <= 0).all()
