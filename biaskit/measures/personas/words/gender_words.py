"""Words that name a gender by themselves, left out of numbers "beyond" them (methods/words#gender-words)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from biaskit.corpora.loaders import gender_words
from biaskit.measures.personas.texts.tokens import letters
from biaskit.stats.arrays import BoolArray


def is_gender_word(word: str) -> bool:
    """Say whether a token of either tokenizer, in any case, is on the list: "she's" is read as "shes"."""
    return letters(word) in gender_words()


def says_gender(words: Sequence[str], names: Collection[str]) -> BoolArray:
    """Say which words numbers "beyond" leave out, `[W]`: gender words, and the `names` of a model's texts."""
    return np.array([word in names or is_gender_word(word) for word in words], dtype=np.bool_)
