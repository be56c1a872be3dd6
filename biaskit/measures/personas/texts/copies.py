"""Which texts are equal or nearly so: copies are one unit of evidence (methods/texts#copies)."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from biaskit.common.marks import legible
from biaskit.common.plain import group_by
from biaskit.corpora.languages import ENGLISH, Language, shipped_language
from biaskit.measures.personas.texts.names import listed_names

if TYPE_CHECKING:
    from biaskit.measures.personas.texts.documents import TextDocument

Shingles = NDArray[np.int64]
SHINGLE = 5  # words in a row
_WORD = re.compile(r"\w+")
_AT_ONCE = 500  # texts held against the first of every unit so far


def shingles_of(text: str, read: Language | None = None) -> Shingles:
    """List the runs of five words of a text, each as a number of this process, in any order.

    Words are of any script, with digits, in lower case; listed names, and pronouns and titles of the language
    that it is read in (English), are left out. Where
    fewer than five others are left, all of them are one run.
    """
    words = _WORD.findall(legible(text).lower())
    counted = next(iter((read or shipped_language(ENGLISH)).classes.values()))
    others = [word for word in words if word not in listed_names() and word not in counted]
    kept = tuple(others if len(others) >= SHINGLE else words)
    starts = range(max(1, len(kept) - SHINGLE + 1) if kept else 0)
    return np.array([*{hash(kept[start : start + SHINGLE]) for start in starts}], dtype=np.int64)


def units(shingles: Sequence[Shingles], prompts: Sequence[Hashable]) -> list[int]:
    """Give each text its unit: the number, in this order, of the first text that it is a copy of.

    Formula: |A ∩ B| ≥ ½ |A ∪ B|, A and B the shingles of a text and of the first of a unit with its prompt. A
        text without words is a unit of its own.
    Reference: methods/texts#copies; the resemblance of Broder 1997; checked against all pairs.
    """
    from sklearn.preprocessing import MultiLabelBinarizer

    held = MultiLabelBinarizer(sparse_output=True).fit_transform(shingles).astype(np.int32)
    unit, sizes = np.arange(len(shingles)), np.diff(held.indptr)
    for of_prompt in group_by(range(len(prompts)), prompts.__getitem__).values():
        texts = np.array(of_prompt)
        for start in range(0, len(texts), _AT_ONCE):
            some, known = texts[start : start + _AT_ONCE], texts[: start + _AT_ONCE]
            known = known[unit[known] == known]
            common = (held[some] @ held[known].T).tocoo()
            rows, columns = some[common.row], known[common.col]
            near = (3 * common.data >= sizes[rows] + sizes[columns]) & (rows > columns)
            for i, first in sorted(zip(rows[near].tolist(), columns[near].tolist(), strict=True)):
                if unit[i] == i and unit[first] == first:
                    unit[i] = first
    return unit.tolist()


def distinct(texts: Iterable[TextDocument], label: Callable[[TextDocument], object]) -> list[TextDocument]:
    """Keep the first of each unit with each label."""
    kept: dict[tuple[str, object], TextDocument] = {}
    for text in texts:
        kept.setdefault((text.unit, label(text)), text)
    return list(kept.values())
