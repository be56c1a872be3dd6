"""Which words are people's names, or name a gender by themselves (methods/words#names, #gender-words).

A list of names alone does not decide: art, hope and stanford are all in it. The default rule looks at how the
word is written inside a sentence, where a capital means something.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Literal, NamedTuple

from biaskit.common.plain import Memo
from biaskit.corpora.loaders import gender_words, load_word_list
from biaskit.measures.personas.texts.tokens import letters, mask
from biaskit.stats.arrays import BoolArray

NameRule = Literal["capitalised-list", "released", "keep"]

FEWEST_OCCURRENCES = 3  # inside a sentence
CAPITAL_PERCENT = 90

_STOPS = ".!?:"
_QUOTES = (
    "\"'`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
)


@cache
def listed_names() -> frozenset[str]:
    """Load the names of the corpus by Kantrowitz and Ross, reduced to a-z ("Anne-Marie" → annemarie)."""
    listed = (*load_word_list("corpus:names/female.txt"), *load_word_list("corpus:names/male.txt"))
    return frozenset(map(letters, listed))


@cache
def institutions_and_places() -> frozenset[str]:
    """Load our list of names that stand more often for an institution or a place."""
    return frozenset(map(letters, load_word_list("corpus:names/not-names.txt")))


def is_gender_word(word: str) -> bool:
    """Say whether a token of either tokenizer, in any case, is on the list: "she's" is read as "shes"."""
    return letters(word) in gender_words()


def says_gender(words: Sequence[str], names: Collection[str]) -> BoolArray:
    """Say which words numbers "beyond" leave out, `[W]`: gender words, and the `names` of a model's texts."""
    return mask(words, lambda word: word in names or is_gender_word(word))


def names_among(words: Iterable[str], rule: NameRule, evidence: NameEvidence | None = None) -> frozenset[str]:
    """Choose those of `words` that are names.

    `capitalised-list` (default of the study): by the evidence of all texts of one model, which must be
    given. `released`: the word, or the word without its last letter, is in the list. `keep`: none.
    """
    if rule == "keep":
        return frozenset()
    if rule == "released":
        listed = listed_names()
        return frozenset(w for w in words if letters(w) in listed or letters(w)[:-1] in listed)
    assert evidence is not None, "the rule capitalised-list needs the texts"
    names = evidence.names()
    return frozenset(w for w in words if letters(w) in names)


class NameEvidence:
    """How listed names are written inside sentences, over texts that are added one at a time.

    Inside a sentence: not the first token with a letter of the text or of a line; not after . ! ? : (closing
    quotes skipped) or an opening quote; not in a line in title case, where every token with a letter has a
    capital. Tokens are parted by white space, and a quotation mark that stands alone may open.
    """

    def __init__(self) -> None:
        self._n: Counter[str] = Counter()  # occurrences inside a sentence
        self._n_capital: Counter[str] = Counter()  # those with a capital

    def add(self, text: str) -> None:
        """Count the listed names of one text."""
        for line in text.splitlines():
            tokens = line.split()
            in_list = list(map(_LISTED.__getitem__, tokens))
            if not any(in_list):
                continue
            with_letter = (i for i, token in enumerate(tokens) if any(map(str.isalpha, token)))
            first = next(with_letter)  # a name has letters
            if not any(tokens[i] == tokens[i].lower() for i in itertools.chain([first], with_letter)):
                continue  # a line in title case
            for i, listed in enumerate(in_list):
                if listed is None or listed.opens or i == first or _may_end_sentence(tokens[i - 1]):
                    continue
                self._n[listed.name] += 1
                self._n_capital[listed.name] += listed.is_capital

    def names(self) -> frozenset[str]:
        """Return the names by what was added so far, in letters a-z: often and mostly with a capital."""
        often = {name: n for name, n in self._n.items() if n >= FEWEST_OCCURRENCES}
        return frozenset(
            name for name, n in often.items() if 100 * self._n_capital[name] >= CAPITAL_PERCENT * n
        )


class _Listed(NamedTuple):
    """A token that is a listed name."""

    name: str  # in a-z
    is_capital: bool  # its first letter
    opens: bool  # a stop or quote precedes it


def _listed(token: str) -> _Listed | None:
    name = letters(token)
    if name not in listed_names() or name in institutions_and_places():
        return None
    first = next(i for i, character in enumerate(token) if character.isalpha())
    opens = any(character in _STOPS or character in _QUOTES for character in token[:first])
    return _Listed(name, token[first].isupper(), opens)


_LISTED = Memo(_listed)


def _may_end_sentence(token: str) -> bool:
    """Say whether a token ends in a stop (closing quotes aside) or is quotes alone, which may open."""
    bare = token.rstrip(_QUOTES)
    if bare != token and not any(map(str.isalnum, bare)):
        return True
    return bare.endswith(tuple(_STOPS))
