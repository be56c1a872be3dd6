"""Which words mark each gender in one set of compared texts, and which words two lists share.

A comparison is the texts of one model, occupation and origin, each with its gender. Women are compared
with men, and where there are texts of non-binary people each gender with both others (`all`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from biaskit.measures.personas.words.contrasts import WordList, contrast_lists
from biaskit.measures.personas.words.labelled_texts import Contrast, labelled_texts
from biaskit.measures.personas.words.log_odds import DEFAULT_PRIOR, METHODS, Prior
from biaskit.measures.personas.words.shuffles import N_SHUFFLES
from biaskit.records import ALL, GENDERS, WOMEN_AND_MEN
from biaskit.stats.resampling import generator

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


Place = Literal["both", "other-gender", "inferred-only", "requested-only"]


def word_lists(
    counts: csr_matrix,
    words: Sequence[str],
    genders: Sequence[str],
    strata: Sequence[str],
    english: ArrayLike,
    *,
    seed: int,
    row_key: Sequence[str],
    prior: Prior = DEFAULT_PRIOR,
    methods: Sequence[str] = METHODS,
    n_shuffles: int = N_SHUFFLES,
    elsewhere: Mapping[str, ArrayLike] | None = None,
    left_out: ArrayLike | None = None,
    occupations: Sequence[str] | None = None,
) -> list[WordList]:
    """Make the lists of one comparison: female against male, male against female, each against `all`.

    Against `all` a word is marked when it passes against each of the other genders, each pair with topic
    counts, calibration words and q-values of its own; its z is the sum, of both methods; a pair in which
    the word does not occur adds 0. The null shuffles the genders of the documents within their strata,
    one set of shuffles for all genders and methods of a contrast.
    Arguments: counts `[documents, W]` in an order that does not depend on how texts are stored, words in
        alphabetical order; row_key (model, occupation, origin), with the seed, of the shuffles; elsewhere:
        counts `[W]` per gender of texts that enter the topic prior and are not compared; left_out `[W]`, the
        words that numbers "beyond" leave out: gender words and names, by default none; occupations
        `[documents]`: genders are compared within them, and no stratum has texts of two.
    Returns: one list per gender, `against` and method, in this order.
    Missing or empty input: a gender without texts, a group without calibration words or fewer than two
        words: `n_marked` None with the reason; shuffles that are undefined are left out and counted, and if
        more than half are, there is no null.
    Reference: methods/words#marked-words, methods/words#word-list-null and methods/words#words-all.
    """
    left_out = np.zeros(len(words), dtype=np.bool_) if left_out is None else np.asarray(left_out)
    lists: list[WordList] = []
    for groups in (WOMEN_AND_MEN, GENDERS) if GENDERS[2] in set(genders) else (WOMEN_AND_MEN,):
        of_texts = counts, words, genders, strata, english, groups, left_out
        texts = labelled_texts(*of_texts, elsewhere=elsewhere, occupations=occupations)
        rng = generator(seed, "word_lists", [*row_key, ALL if len(groups) > 2 else "/".join(groups)])
        contrasts = []
        for g, gender in enumerate(groups):
            others = tuple((h,) for h in range(len(groups)) if h != g)
            opponents = groups[:g] + groups[g + 1 :]
            said = opponents[0] if len(opponents) == 1 else ALL
            contrasts.append(Contrast((g,), others, gender, opponents, said))
        lists += contrast_lists(texts, contrasts, prior, methods, rng, n_shuffles)
    return lists


def overlap(
    inferred: Mapping[str, Sequence[str]], requested: Mapping[str, Sequence[str]]
) -> list[tuple[str, str, Place]]:
    """Find the place of each word of a gender's two lists (GAS(P) Table 15): (gender, word, place).

    A word is in both lists, inferred for the gender and requested for another, only requested, or only
    inferred; names and pronouns included (methods/words#list-comparisons). Per gender the inferred words
    come in their order, then those only requested in theirs; a gender that lacks a list has no rows.
    """
    places: list[tuple[str, str, Place]] = []
    for gender in WOMEN_AND_MEN:
        if gender not in inferred or gender not in requested:
            continue
        others = chain.from_iterable(words for other, words in requested.items() if other != gender)
        place_of: dict[str, Place] = dict.fromkeys(inferred[gender], "inferred-only")
        place_of |= dict.fromkeys(place_of.keys() & set(others), "other-gender")
        for word in requested[gender]:
            place_of[word] = "both" if word in place_of else "requested-only"
        for word, place in place_of.items():
            places.append((gender, word, place))
    return places
