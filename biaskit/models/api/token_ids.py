"""Token ids of texts as a server reads them: by a tokenizer of this machine that agrees, else by its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from biaskit.errors import ModelError
from biaskit.models.api.controller import Controller
from biaskit.models.api.many import TROUBLE, Trouble, gather_all
from biaskit.models.api.trouble import BadAnswer
from biaskit.models.api.wire import Call, Reply
from biaskit.models.token_trie import TokenIds

Encode = Callable[[Sequence[str]], Sequence[TokenIds]]
"""Ids of each text, special tokens at its beginning included, as `/tokenize` gives them."""

HELD, HELD_TEXTS = 20, 10
"""Prompts of a run, at least, on which both tokenizers must agree, and calls that this takes."""
HELD_CHARACTERS = 1200  # of such a call: of several prompts, where they are short
CANDIDATES = 2000  # prompts of a run that are looked at for those that tell most
KEPT = 200_000  # texts whose ids are kept; a study of millions must not fill the memory


@dataclass(frozen=True, slots=True)
class LocalTokenizer:
    """A tokenizer of this machine that may be the server's."""

    source: str  # as it may be shown
    encode: Encode  # loads it at its first use; raises `ModelError` where that fails
    required: bool = False  # named by the user, who is told where it cannot be loaded


class TokenIdsOf:
    """Asks each text once, and this machine where its tokenizer was held against the server's."""

    def __init__(self, model: str, local: LocalTokenizer | None = None, seconds: float | None = None) -> None:
        """`seconds`: for each request, where the usual time is too long."""
        self._model = model
        self._local = local
        self._seconds = seconds
        self._held = False
        self._known: dict[str, TokenIds] = {}
        self.note = ""  # how the ids are found, once that is settled
        self.asked = 0  # texts that went to /tokenize

    @property
    def is_local(self) -> bool:
        """Whether this machine's tokenizer agreed with the server's."""
        return self._held and self._local is not None

    async def hold(self, controller: Controller, texts: Sequence[str]) -> None:
        """Hold the local tokenizer against the server's on texts of the run, once.

        At the first difference it is dropped. The texts are those that hold most of the pairs of neighbouring
        tokens of all: tokenizers that differ in one merge differ where that pair stands.
        """
        if self._held or self._local is None:
            return
        self._held = True
        encode, source = self._local.encode, self._local.source
        try:
            n_held, packed = pack(most_telling(texts, encode))
        except ModelError:
            if self._local.required:
                raise
            self._local = None
            return
        theirs = await gather_all(self._from_server(controller, text) for text in packed)
        refused = [one for one in theirs if isinstance(one, TROUBLE)]
        other = [text for text, ids, own in zip(packed, theirs, encode(packed), strict=True) if ids != own]
        if refused or other:
            why = f"/tokenize: {refused[0]}" if refused else f"it reads {other[0][:60]!r} otherwise"
            self._local = None
            self.note = f"the tokenizer {source} is not the server's ({why}): its /tokenize is asked"
        else:
            self.note = f"token ids are those of {source}, equal to the server's on {n_held} prompts"

    async def of(self, controller: Controller, texts: Sequence[str]) -> list[TokenIds | Trouble]:
        """Ids of each text, or why the server does not tell them."""
        if len(self._known) > KEPT:
            self._known.clear()
        distinct = [text for text in dict.fromkeys(texts) if text not in self._known]
        if self.is_local and self._local is not None:
            found: list[TokenIds | Trouble] = list(self._local.encode(distinct))
        else:
            found = await gather_all(self._from_server(controller, text) for text in distinct)
            self._known |= {t: ids for t, ids in zip(distinct, found, strict=True) if isinstance(ids, tuple)}
        told = dict(zip(distinct, found, strict=True))
        return [told[text] if text in told else self._known[text] for text in texts]

    async def _from_server(self, controller: Controller, text: str) -> TokenIds | Trouble:
        """Ids of a text by the server's own tokenizer, BOS included."""
        self.asked += 1
        body = {"model": self._model, "prompt": text, "add_special_tokens": True}
        try:
            return await controller.ask(Call("/tokenize", body), _read, seconds=self._seconds)
        except TROUBLE as trouble:
            return trouble


def _read(reply: Reply) -> TokenIds:
    listed = reply.data.get("tokens")
    if not isinstance(listed, list) or not listed or not all(type(i) is int for i in listed):
        raise BadAnswer("the server tells no token ids")
    return tuple(listed)


def most_telling(texts: Sequence[str], encode: Encode) -> Iterator[str]:
    """Texts in the order of how many pairs of neighbouring tokens each adds to those before it."""
    step = max(1, len(texts) // CANDIDATES)
    some = list(dict.fromkeys(texts[::step]))
    pairs = {text: set(itertools.pairwise(ids)) for text, ids in zip(some, encode(some), strict=True)}
    while pairs:
        best = max(pairs, key=lambda text: len(pairs[text]))
        told = pairs.pop(best)
        yield best
        for left in pairs.values():
            left -= told


def pack(texts: Iterator[str]) -> tuple[int, list[str]]:
    """How many texts fit, the first at least, and these, several in one where they are short."""
    packed: list[str] = []
    n = 0
    for text in texts:
        if packed and len(packed[-1]) + len(text) < HELD_CHARACTERS:
            packed[-1] = f"{packed[-1]}\n\n{text}"
        elif len(packed) >= HELD_TEXTS and n >= HELD:
            break
        else:
            packed.append(text)
        n += 1
    return n, packed
