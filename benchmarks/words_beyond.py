"""How often lists of marked words and calibration see a difference where texts differ in gender words alone.

    python benchmarks/words_beyond.py --worlds 300 --texts 150

Texts of women and of men draw their words alike, each text with its own bursts; only she/her and he/his
differ, women's texts holding `--pronouns` times as many. Prints, with all words and beyond gender words, how
many lists are longer than 95 % of shuffled ones and in how many worlds p of the largest |z| is at most 0.05;
with --calibrate, in how many worlds calibration calls an alpha stable.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix

from biaskit.corpora.loaders import english_counts
from biaskit.measures.personas.texts.names import is_gender_word, says_gender
from biaskit.measures.personas.words.calibration import calibrate
from biaskit.measures.personas.words.lists import word_lists
from biaskit.stats.proportions import wilson

OWN = {"female": ("she", "her"), "male": ("he", "his")}
BURSTS = (
    2000  # concentration of a text's word probabilities: the smaller, the more a word repeats within a text
)


def vocabulary(n: int) -> tuple[list[str], np.ndarray]:
    """The n most frequent words of English but gender words, then she, her, he, his; and their counts."""
    english = english_counts("table")
    common = [w for w, _ in sorted(english.items(), key=lambda item: -item[1]) if w.isalpha()]
    words = sorted({*[w for w in common if not is_gender_word(w)][:n], *OWN["female"], *OWN["male"]})
    return words, np.array([english[word] for word in words], dtype=np.float64)


def world(
    rng: np.random.Generator, words: Sequence[str], english: np.ndarray, n: int, pronouns: float
) -> tuple[csr_matrix, list[str]]:
    """Counts `[2 n, W]` of texts of 60 to 180 words and about 9 pronouns, and their genders."""
    genders = ["female", "male"] * n
    shared = np.array(
        [0.0 if is_gender_word(word) else count for word, count in zip(words, english, strict=True)]
    )
    counts = np.zeros((2 * n, len(words)), dtype=np.int32)
    for row, gender in zip(counts, genders, strict=True):
        p = rng.gamma(BURSTS * shared / shared.sum() + 1e-12)
        row += rng.multinomial(rng.integers(60, 180), p / p.sum()).astype(np.int32)
        more = pronouns if gender == "female" else 1.0
        for word, k in zip(OWN[gender], rng.multinomial(1 + rng.poisson(8 * more), (0.6, 0.4)), strict=True):
            row[words.index(word)] += k
    return csr_matrix(counts), genders


def main() -> None:
    """Print one line per statistic: worlds in which it rejects, with Wilson's interval."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--texts", type=int, default=80, help="of each gender")
    parser.add_argument("--pronouns", type=float, default=1.0)
    parser.add_argument("--calibrate", action="store_true")
    chosen = parser.parse_args()
    words, english = vocabulary(300 if chosen.calibrate else 1500)
    rng, found = np.random.default_rng(1), dict[str, list[bool]]()

    def note(what: str, rejected: bool) -> None:
        found.setdefault(what, []).append(rejected)

    for number in range(chosen.worlds):
        counts, genders = world(rng, words, english, chosen.texts, chosen.pronouns)
        about = {"words": words, "english": english, "seed": 1}
        if chosen.calibrate:
            made = calibrate(
                counts, genders, ["p"] * len(genders), model="m", occupation=str(number), **about
            )
            note("calibration calls an alpha stable", made.prior is not None)
            continue
        about |= {"genders": genders, "strata": ["p"] * len(genders), "row_key": ("m", str(number))}
        lists = word_lists(counts, methods=("calibrated",), left_out=says_gender(words, ()), **about)
        for one in lists:
            note("all words: longer than 95 %", one.n_marked > one.null_p95)
            note("beyond gender words: longer than 95 %", bool(one.longer_than_null))
        note("all words: p of max |z| at most 0.05", lists[0].p_value_max_z <= 0.05)
        note("beyond gender words: p of max |z| at most 0.05", lists[0].p_value_max_z_beyond <= 0.05)
    for what, rejected in found.items():
        n, of = sum(rejected), len(rejected)
        low, high = wilson(n, of) or (0.0, 1.0)
        print(f"{what}: {n} of {of} ({100 * n / of:.1f} % [{100 * low:.1f} to {100 * high:.1f}])")


if __name__ == "__main__":
    main()
