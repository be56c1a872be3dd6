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
from biaskit.stats.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from biaskit.personas.texts.documents import TextDocument

SHINGLE = 5
"""Words in a row that are compared; two texts are copies if at least half of all that either has are in both."""


def units(tokens: TokenisedTexts, places: Sequence[int], prompts: Sequence[Hashable]) -> list[int]:
    """Give each text its unit: the number, in this order, of the first text that it is a copy of.

    Formula: |A ∩ B| ≥ ½ |A ∪ B|, A and B the shingles of five words of a text and of the first of a unit,
        without listed names, pronouns and titles; where fewer than five others are left, of all its words.
    Arguments: tokens; for each text its place there, and the prompt within which copies are looked for.
    Returns: a text without words is a unit of its own.
    Reference: docs/methods.md#copies; the resemblance of Broder 1997; checked against all pairs.
    """
    left_out = listed_names() | COUNTED_WORDS["paper"].keys()
    compared = np.array([letters(word) not in left_out for word in tokens.words], dtype=np.bool_)
    of_prompts: dict[Hashable, list[int]] = {}
    for i, prompt in enumerate(prompts):
        of_prompts.setdefault(prompt, []).append(i)
    unit = list(range(len(places)))
    for texts in of_prompts.values():
        for i, first in enumerate(_firsts(_shingles(tokens, [places[i] for i in texts], compared))):
            unit[texts[i]] = texts[first]
    return unit


def _firsts(of_text: Sequence[IntArray]) -> list[int]:
    """Find for each text the first of its unit by their shingles."""
    n_with = np.bincount(np.concatenate(of_text))
    unit = list(range(len(of_text)))
    known: dict[int, dict[int, list[int]]] = {}  # shingle → size of a text → the first texts of units
    for i, own in enumerate(of_text):
        size, half = len(own), -(-len(own) // 2)
        if not half or np.count_nonzero(n_with[own] > 1) < half:
            continue  # most of it is in no other text
        # A copy has half of it, so one of its rarest, and few that are rarer than the first they share.
        rarest = own[np.lexsort((own, n_with[own]))][: size - half + 1].tolist()
        maybe = set[int]()
        for at, shingle in enumerate(rarest):
            for of_first, firsts in known.get(shingle, {}).items():
                if 3 * (size - at) >= size + of_first:
                    maybe.update(firsts)
        for first in sorted(maybe):
            common = len(np.intersect1d(own, of_text[first], assume_unique=True))
            if 3 * common >= size + len(of_text[first]):
                unit[i] = first
                break
        else:
            for shingle in rarest:
                known.setdefault(shingle, {}).setdefault(size, []).append(i)
    return unit


def _shingles(tokens: TokenisedTexts, places: Sequence[int], compared: BoolArray) -> list[IntArray]:
    """Number the shingles of each text, each once and in order."""
    nothing, rows = len(tokens.words), list[IntArray]()
    for place in places:
        every = tokens.ids[tokens.starts[place] : tokens.starts[place + 1]].astype(np.int64)
        own = every[compared[every]]
        own = own if len(own) >= SHINGLE else every
        lacking = max(0, SHINGLE - len(own)) if len(own) else 0
        rows.append(np.pad(own, (0, lacking), constant_values=nothing))
    numbers = words = np.concatenate(rows)
    for step in range(1, SHINGLE):
        numbers = np.unique(numbers[:-1] * (nothing + 1) + words[step:], return_inverse=True)[1]
    starts = np.cumsum([0, *map(len, rows)]).tolist()
    lengths = [max(0, len(row) - SHINGLE + 1) for row in rows]
    return [np.unique(numbers[at : at + n]) for at, n in zip(starts, lengths, strict=False)]


def distinct(texts: Iterable[TextDocument], label: Callable[[TextDocument], object]) -> list[TextDocument]:
    """Keep the first of each unit with each label."""
    kept: dict[tuple[str, object], TextDocument] = {}
    for text in texts:
        kept.setdefault((text.unit, label(text)), text)
    return list(kept.values())
