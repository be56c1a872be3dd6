"""Which texts are equal or nearly so: copies are one unit of evidence (methods/texts#copies)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from biaskit.common.marks import legible
from biaskit.corpora.languages import ENGLISH, Language, shipped_language
from biaskit.measures.personas.texts.names import listed_names
from biaskit.measures.personas.texts.tokens import runs_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from biaskit.measures.personas.texts.documents import TextDocument

Shingles = NDArray[np.int64]
SHINGLE = 5  # words in a row
_WORD = re.compile(r"\w+")
_NONE = np.empty(0, dtype=np.int64)  # an empty list would make the numbers doubles
_AT_ONCE = 2_000  # texts held against the first of every unit so far
_PAIRS_AT_ONCE = 50_000  # after some, most of a cluster have their unit, and are compared no more


def shingles_of(text: str, read: Language | None = None) -> Shingles:
    """List the runs of five words of a text, each as a number of this process, in any order.

    Words are of any script, with digits, in lower case; listed names, and pronouns and titles of the language
    that it is read in (English), are left out. Where fewer than five others are left, all are one run.
    """
    words = runs_of(_WORD, legible(text).lower())
    counted = next(iter((read or shipped_language(ENGLISH)).classes.values()))
    unnamed = itertools.filterfalse(listed_names().__contains__, words)
    others = [*itertools.filterfalse(counted.__contains__, unnamed)]
    kept = others if len(others) >= SHINGLE else words
    runs = zip(*(kept[place:] for place in range(min(SHINGLE, len(kept)))), strict=False)
    return np.fromiter(set(map(hash, runs)), dtype=np.int64)


def units(shingles: Sequence[Shingles], prompts: Sequence[Hashable]) -> list[int]:
    """Give each text its unit: the number, in this order, of the first text that it is a copy of.

    Formula: |A ∩ B| ≥ ½ |A ∪ B|, A and B the shingles of a text and of the first of a unit with its prompt. A
        text without words is a unit of its own.
    Only pairs that share enough of their rarest runs are compared.
    Reference: methods/texts#copies; the resemblance of Broder 1997; checked against all pairs.
    """
    sizes = np.array([*map(len, shingles)], dtype=np.int32)
    unit = np.arange(len(sizes), dtype=np.int32)
    held, n_alone = _blocks(shingles, prompts, sizes)
    # Copies of n and m runs share (n + m)/3: m ≥ n/2, and a run is among the (2n - m)/3 + 1 rarest of n. What
    # they share is at most what they share there, and what is left of the text whose rarest runs end first.
    ordered = np.sort(sizes)
    n_rare = (2 * sizes - ordered[np.searchsorted(ordered, sizes / 2)]) // 3
    total, n_held = np.concatenate([[0], held.data.cumsum()]), np.diff(held.indptr)
    before = total[:-1] - np.repeat(total[held.indptr[:-1]] - n_alone, n_held)
    rare, has = held.copy(), held.sign()
    rare.data *= before <= np.repeat(n_rare, n_held)
    rare.eliminate_zeros()
    is_rare, left = rare.sign(), sizes - n_alone - rare.sum(axis=1).A1.astype(np.int32)
    for start in range(0, len(unit), _AT_ONCE):
        some, known = unit[start : start + _AT_ONCE].copy(), unit[: start + _AT_ONCE]
        known = np.flatnonzero(known == np.arange(len(known))).astype(np.int32)
        shared = rare[some] @ is_rare[known].T
        # A loose bound of all pairs: the exact one, which looks more up, of those that pass.
        needed = np.repeat(sizes[some], np.diff(shared.indptr)) + sizes[known][shared.indices]
        pairs = np.flatnonzero(3 * (shared.data + left.max()) >= needed)
        rows = some[np.searchsorted(shared.indptr, pairs, side="right") - 1]
        columns = known[shared.indices[pairs]]
        most = shared.data[pairs] + np.maximum(left[rows], left[columns])
        maybe = (3 * most >= sizes[rows] + sizes[columns]) & (rows > columns)
        rows, columns = rows[maybe], columns[maybe]
        order = np.lexsort((columns, rows))
        for pairs in np.array_split(order, 1 + len(order) // _PAIRS_AT_ONCE):
            pairs = pairs[(unit[rows[pairs]] == rows[pairs]) & (unit[columns[pairs]] == columns[pairs])]
            i, first = rows[pairs], columns[pairs]
            common = held[i].multiply(has[first]).sum(axis=1).A1
            near = 3 * common >= sizes[i] + sizes[first]
            for text, copied in zip(i[near].tolist(), first[near].tolist(), strict=True):
                if unit[text] == text and unit[copied] == copied:
                    unit[text] = copied
    return unit.tolist()


def _blocks(
    shingles: Sequence[Shingles], prompts: Sequence[Hashable], sizes: NDArray[np.int32]
) -> tuple[csr_matrix, NDArray[np.int32]]:
    """Join runs that stand in the same texts, `[texts, blocks]`: how many a text has, the rarest first.

    Rare: in few texts for each of its runs, so that few pairs share one among their first runs. Also count a
    text's runs that no other text with its prompt has; they are left out.
    """
    from scipy.sparse import csc_matrix

    prompt_of = dict(zip(dict.fromkeys(prompts), itertools.count(), strict=False))
    rng = np.random.default_rng(1)
    of_prompt = rng.integers(1 << 62, size=len(prompt_of))[list(map(prompt_of.__getitem__, prompts))]
    runs = np.concatenate([_NONE, *shingles]) ^ np.repeat(of_prompt, sizes)
    # Equal runs side by side: by their last byte, which is quick, and then in parts that fit the cache.
    order = runs.astype(np.uint8).argsort(kind="stable")
    runs, texts = runs[order], np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[order]
    for start, end in itertools.pairwise([0, *np.bincount(runs.astype(np.uint8)).cumsum()]):
        of_part = start + runs[start:end].argsort()
        runs[start:end], texts[start:end] = runs[of_part], texts[of_part]
    bounds = np.append(np.flatnonzero(np.diff(runs, prepend=runs[:1] - 1)), len(runs))  # of equal runs
    ones = np.ones(len(runs), dtype=np.int32)
    have = csc_matrix((ones, texts, bounds), shape=(len(sizes), len(bounds) - 1))[:, np.diff(bounds) > 1]
    # Equal sums of random numbers of the texts: the same texts. One run then stands for all of its block.
    sums = np.asarray(have.T @ rng.integers(1 << 62, size=len(sizes)))
    _, first, n_runs = np.unique(sums, return_index=True, return_counts=True)
    rarest = np.argsort(np.diff(have.indptr)[first] / n_runs)
    held = have[:, first[rarest]].tocsr()
    held.data = n_runs[rarest].astype(np.int32)[held.indices]
    return held, sizes - held.sum(axis=1).A1.astype(np.int32)


def distinct(texts: Iterable[TextDocument], label: Callable[[TextDocument], object]) -> list[TextDocument]:
    """Keep the first of each unit with each label."""
    kept: dict[tuple[str, object], TextDocument] = {}
    for text in texts:
        kept.setdefault((text.unit, label(text)), text)
    return list(kept.values())
