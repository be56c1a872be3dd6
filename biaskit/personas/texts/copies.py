"""Which texts are copies of one another: equal, or nearly (docs/methods.md#copies).

Copies are one unit of evidence: 25 of them show what one shows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from biaskit.personas.texts.association import COUNTED_WORDS
from biaskit.personas.texts.names import listed_names
from biaskit.personas.texts.tokens import TokenisedTexts, letters

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from biaskit.personas.texts.documents import TextDocument

SHINGLE = 5  # words in a row
_AT_ONCE = 500  # texts held against the first of every unit so far


def units(tokens: TokenisedTexts, places: Sequence[int], prompts: Sequence[Hashable]) -> list[int]:
    """Give each text its unit: the number, in this order, of the first text that it is a copy of.

    Formula: |A ∩ B| ≥ ½ |A ∪ B|, A and B the shingles of five words of a text and of the first of a unit,
        without listed names, pronouns and titles; where fewer than five others are left, of all its words.
    Arguments: tokens; for each text its place there, and the prompt within which copies are looked for.
    Returns: a text without words is a unit of its own.
    Reference: docs/methods.md#copies; the resemblance of Broder 1997; checked against all pairs.
    """
    shingles, unit = _shingles(tokens, places), np.arange(len(places))
    sizes = np.diff(shingles.indptr)
    of_prompts: dict[Hashable, list[int]] = {}
    for i, prompt in enumerate(prompts):
        of_prompts.setdefault(prompt, []).append(i)
    for texts in map(np.array, of_prompts.values()):
        for start in range(0, len(texts), _AT_ONCE):
            some, known = texts[start : start + _AT_ONCE], texts[: start + _AT_ONCE]
            known = known[unit[known] == known]
            common = (shingles[some] @ shingles[known].T).tocoo()
            pairs = np.stack([some[common.row], known[common.col]])
            copies = pairs[:, (3 * common.data >= sizes[pairs].sum(axis=0)) & (pairs[0] > pairs[1])]
            for i, first in sorted(copies.T.tolist()):
                if unit[i] == i and unit[first] == first:
                    unit[i] = first
    return unit.tolist()


def _shingles(tokens: TokenisedTexts, places: Sequence[int]) -> csr_matrix:
    """Say which shingles each text holds, `[texts, shingles]` of ones; a short text is one by itself."""
    from sklearn.preprocessing import MultiLabelBinarizer

    left_out = listed_names() | COUNTED_WORDS["paper"].keys()
    compared = np.array([letters(word) not in left_out for word in tokens.words], dtype=np.bool_)
    held = list[set[int]]()
    for place in places:
        every = tokens.ids[tokens.starts[place] : tokens.starts[place + 1]]
        own = every[compared[every]]
        words = tuple((own if len(own) >= SHINGLE else every).tolist())
        starts = range(max(1, len(words) - SHINGLE + 1) if words else 0)
        held.append({hash(words[start : start + SHINGLE]) for start in starts})
    matrix: csr_matrix = MultiLabelBinarizer(sparse_output=True).fit_transform(held).astype(np.int64)
    return matrix


def distinct(texts: Iterable[TextDocument], label: Callable[[TextDocument], object]) -> list[TextDocument]:
    """Keep the first of each unit with each label."""
    kept: dict[tuple[str, object], TextDocument] = {}
    for text in texts:
        kept.setdefault((text.unit, label(text)), text)
    return list(kept.values())
