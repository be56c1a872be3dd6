"""From texts to words: two tokenizers, and the words of many texts as numbers (methods/words#tokens)."""

from __future__ import annotations

import itertools
import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from biaskit.common.marks import legible
from biaskit.common.plain import Memo
from biaskit.errors import UsageError, nearest

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_NO_LETTER_NOR_SPACE = bytes({*range(128)} - {*b"abcdefghijklmnopqrstuvwxyz \t\n\v\f\r\x1c\x1d\x1e\x1f"})
_WORD = re.compile(r"[^\s'-]+(?:['-][^\s'-]+)*")
_HYPHENS = "-\u2010\u2011"
_APOSTROPHES = "'\u2019"
_LONGEST_COMPOSED = 100  # composing a run of n combining marks takes n² steps


def tokenise(text: str, tokenizer: str = "papers") -> list[str]:
    """Split a text into its words, in order.

    `papers`: lower case, split at white space, delete everything but a-z in each token, drop what is then
    empty ("they/them" → theythem, "self-care" → selfcare, "née" → ne). `words`: letters with their marks,
    and digits after them, of any script in lower case; hyphens and apostrophes inside a word stay
    ("they/them" → they, them; "self-care", "he's"), invisible characters go, and what does not begin with a
    letter is no word. Scripts written without spaces are not segmented. Both read a text as `legible` does:
    "<br>" and "&nbsp;" part words. Unknown tokenizer: `UsageError`.
    """
    return tokeniser(tokenizer)(text)


def tokeniser(tokenizer: str) -> Callable[[str], list[str]]:
    """Return the function behind a name: looked up once for many texts."""
    known: dict[str, Callable[[str], list[str]]] = {"papers": _papers_of, "words": _words}
    if tokenizer not in known:
        raise UsageError(
            f"Unknown tokenizer {tokenizer!r}.{nearest(tokenizer, known)} Known: {', '.join(known)}."
        )
    return known[tokenizer]


def runs_of(pattern: re.Pattern[str], text: str) -> list[str]:
    """Find the runs of characters that a pattern of one kind matches; in ASCII without searching."""
    if not text.isascii():
        return pattern.findall(text)
    return text.encode("ascii").translate(_spaced(pattern)).decode("ascii").split()


@cache
def _spaced(pattern: re.Pattern[str]) -> bytes:
    return bytes(code if pattern.match(chr(code)) else ord(" ") for code in range(256))


def letters(token: str) -> str:
    """Reduce one token as `papers` does: to its letters a-z in lower case, perhaps none."""
    return "".join(_papers(token))


def mask(words: Sequence[str], holds: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Say of which words something holds, `[W]`."""
    return np.fromiter(map(holds, words), dtype=np.bool_, count=len(words))


def _papers(text: str) -> list[str]:
    # One pass over the text, not one per token; of bytes it takes a fraction of a regular expression's time.
    lowered = legible(text).lower()
    if not lowered.isascii():
        lowered = " ".join(lowered.split())  # no-break and em spaces part tokens too
    return lowered.encode("ascii", "ignore").translate(None, _NO_LETTER_NOR_SPACE).decode("ascii").split()


_papers_of = lru_cache(maxsize=1)(_papers)  # a text's gender is told from its words, which are then counted


def _words(text: str) -> list[str]:
    text = legible(text)
    runs = _WORD.findall(text.lower().translate(_CHARACTERS))
    words = [word for word in runs if word[0].isalpha()]
    if text.isascii():
        return words
    # One spelling for é written as one character or as two.
    return [unicodedata.normalize("NFC", word) if len(word) <= _LONGEST_COMPOSED else word for word in words]


def _read_as(code: int) -> str | None:
    """Say what the tokenizer `words` reads a character as."""
    character = chr(code)
    category = unicodedata.category(character)
    if category[0] in "LM" or category == "Nd":
        return character
    if character in _HYPHENS:
        return "-"
    if character in _APOSTROPHES:
        return "'"
    return None if category == "Cf" else " "  # Cf: soft hyphen, joiners, marks of direction


_CHARACTERS = Memo(_read_as)


@dataclass(frozen=True, eq=False)
class TokenisedTexts:
    """The words of n texts as numbers; the texts themselves are not kept.

    The words of text i are `words[ids[starts[i]:starts[i + 1]]]`, four bytes each.
    """

    words: tuple[str, ...]  # each word that occurs, in alphabetical order
    ids: NDArray[np.int32]  # [tokens]: places in `words`, all texts one after the other
    starts: NDArray[np.int64]  # [n + 1]

    @classmethod
    def build(cls, texts: Iterable[str], tokenizer: str = "papers") -> TokenisedTexts:
        """Tokenise texts one at a time; `texts` may be a generator."""
        return cls.from_words(map(tokeniser(tokenizer), texts))

    @classmethod
    def from_words(cls, texts: Iterable[Sequence[str]]) -> TokenisedTexts:
        """Number the words of texts that are tokenised already."""
        number_of: defaultdict[str, int] = defaultdict(itertools.count().__next__)  # in order of appearance
        numbers, starts = array("i"), array("q", [0])
        for text in texts:
            numbers.extend(map(number_of.__getitem__, text))
            starts.append(len(numbers))
        words = sorted(number_of)
        place_of = np.empty(len(words), dtype=np.int32)
        place_of[[number_of[word] for word in words]] = np.arange(len(words), dtype=np.int32)
        ids = place_of[np.frombuffer(numbers, dtype=np.int32)] if numbers else np.empty(0, dtype=np.int32)
        return cls(tuple(words), ids, np.array(starts, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def counts(self) -> csr_matrix:
        """Count each word in each text, `[n, words]` int32, columns in the order of `words`."""
        from scipy.sparse import csr_matrix

        ones = np.ones(len(self.ids), dtype=np.int32)
        shape = (len(self), len(self.words))
        # A copy of the ids: sum_duplicates sorts and merges in place.
        counts = csr_matrix((ones, self.ids.copy(), self.starts.copy()), shape=shape)
        counts.sum_duplicates()
        return counts
