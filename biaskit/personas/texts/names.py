"""Which words are people's names (docs/methods.md#names, "Names").

A list alone cannot say: art, hope and stanford are all in it. The default rule asks how the word is
written where a capital means something, inside a sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import compress
from typing import Literal

from biaskit.corpora.loaders import load_word_list
from biaskit.personas.texts.tokens import letters

NameRule = Literal["capitalised-list", "released", "keep"]

FEWEST_OCCURRENCES = 3  # inside a sentence
CAPITAL_PERCENT = 90

_STOPS = ".!?:"
_QUOTES = (
    "\"'`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
)


@cache
def listed_names() -> frozenset[str]:
    """The names of the corpus by Kantrowitz and Ross, reduced to a-z ("Anne-Marie" → annemarie)."""
    return _reduced("corpus:names/female.txt", "corpus:names/male.txt")


@cache
def institutions_and_places() -> frozenset[str]:
    """Listed names that stand more often for an institution or a place; a list of ours."""
    return _reduced("corpus:names/not-names.txt")


def _reduced(*sources: str) -> frozenset[str]:
    return frozenset(letters(name) for source in sources for name in load_word_list(source))


def names_among(words: Iterable[str], rule: NameRule, evidence: NameEvidence | None = None) -> frozenset[str]:
    """Those of `words` that are names.

    `capitalised-list` (default of the study): by the evidence of all texts of one model, which must be
    given. `released`: the word, or the word without its last letter, is in the list. `keep`: none.
    """
    if rule == "keep":
        return frozenset()
    if rule == "released":
        listed = listed_names()
        return frozenset(w for w in words if letters(w) in listed or letters(w)[:-1] in listed)
    assert evidence is not None, "the rule capitalised-list needs the texts"
    found = evidence.names()
    return frozenset(w for w in words if letters(w) in found)


class NameEvidence:
    """How listed names are written inside sentences, over texts that are added one at a time.

    Inside a sentence: not the first token with a letter of the text or of a line; not after . ! ? : (closing
    quotes skipped) or an opening quote; not in a line in title case, where every token with a letter has a
    capital. Tokens are parted by white space, and a quotation mark that stands alone may open.
    """

    __slots__ = ("_n", "_n_capital", "_tokens")

    def __init__(self) -> None:
        self._tokens = _Tokens(listed_names() - institutions_and_places())
        self._n: Counter[str] = Counter()  # occurrences inside a sentence
        self._n_capital: Counter[str] = Counter()  # those with a capital

    def add(self, text: str) -> None:
        """Count the listed names of one text."""
        for line in text.splitlines():
            tokens = line.split()
            found = list(map(self._tokens.__getitem__, tokens))
            if any(found) and not _is_title_case(tokens):
                self._count(tokens, found)

    def names(self) -> frozenset[str]:
        """Names by what was added so far, in letters a-z.

        At least 3 occurrences inside a sentence, at least 90 % of them with a capital.
        """
        often = {name: n for name, n in self._n.items() if n >= FEWEST_OCCURRENCES}
        return frozenset(k for k, n in often.items() if 100 * self._n_capital[k] >= CAPITAL_PERCENT * n)

    def _count(self, tokens: list[str], found: list[_Listed | None]) -> None:
        first = next(i for i, token in enumerate(tokens) if _has_letter(token))
        for i in compress(range(len(tokens)), found):
            listed = found[i]
            if listed is None or listed[2] or i == first or _may_end_sentence(tokens[i - 1]):
                continue
            self._n[listed[0]] += 1
            self._n_capital[listed[0]] += listed[1]


_Listed = tuple[str, bool, bool]
"""The name in a-z, its first letter is a capital, a stop or quote precedes it."""


class _Tokens(dict[str, _Listed | None]):
    """What a token says by itself, None where it is no listed name; filled as tokens are met.

    Texts repeat their tokens: looking one up takes a tenth of the time of reading it.
    """

    MOST = 500_000
    LONGEST = 100

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self.names = names

    def __missing__(self, token: str) -> _Listed | None:
        name, listed = letters(token), None
        if name in self.names:
            first = next(i for i, character in enumerate(token) if character.isalpha())
            opens = any(character in _STOPS or character in _QUOTES for character in token[:first])
            listed = (name, token[first].isupper(), opens)
        if len(token) <= self.LONGEST and len(self) < self.MOST:
            self[token] = listed
        return listed


def _has_letter(token: str) -> bool:
    return any(map(str.isalpha, token))


def _is_title_case(tokens: list[str]) -> bool:
    """Every token with a letter has a capital."""
    return not any(token == token.lower() and _has_letter(token) for token in tokens)


def _may_end_sentence(token: str) -> bool:
    """A stop, closing quotes after it or not, or quotes beside no word, which may open."""
    bare = token.rstrip(_QUOTES)
    if bare != token and not any(map(str.isalnum, bare)):
        return True
    return bare.endswith(tuple(_STOPS))
