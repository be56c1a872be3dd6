"""The k most probable next tokens and their texts, as APIs list them (methods/estimators#top-k-bounds)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from biaskit.models.huggingface.head import ListedTokens
from biaskit.models.huggingface.rendering import Continuation
from biaskit.records import LogProb


class TokenTexts(dict[int, str]):
    """Token id → the text that it adds to a text before it; special tokens show their own."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        # SentencePiece drops the space before a first token: decoding after a letter keeps it.
        self._anchor = list(tokenizer("a", add_special_tokens=False)["input_ids"])
        self._shown = self._decode([])

    def __missing__(self, token: int) -> str:
        if token >= len(self._tokenizer):
            self[token] = f"(id {token})"  # a padding row of the embedding: no text
        else:
            decoded = self._decode([token])
            text = decoded[len(self._shown) :] if decoded.startswith(self._shown) else ""
            self[token] = text or str(self._tokenizer.convert_ids_to_tokens(token))
        return self[token]

    def _decode(self, tokens: Sequence[int]) -> str:
        ids = [*self._anchor, *tokens]
        return str(self._tokenizer.decode(ids, clean_up_tokenization_spaces=False))


def as_listed(
    continuations: Sequence[Continuation], tokens: ListedTokens, texts: TokenTexts
) -> tuple[tuple[LogProb, ...], tuple[tuple[str, float], ...]]:
    """Bound each continuation, and name the listed tokens (methods/estimators#top-k-bounds)."""
    names = named_tokens([token for token, _ in tokens], continuations, texts)
    value_of = dict(tokens)
    # An unlisted token is no more probable than the last listed one, nor than all unlisted ones together.
    mass_unlisted = max(0.0, 1.0 - math.fsum(math.exp(value) for value in value_of.values()))
    most = min(mass_unlisted, math.exp(min(value_of.values(), default=0.0)))
    unlisted = math.log(most) if most else -math.inf
    log_probs = []
    for c in continuations:
        first = value_of.get(c.ids[0])
        low = first if len(c.ids) == 1 else None
        high = unlisted if first is None else first
        spelt = (names[c.ids[0]], *(texts[token] for token in c.ids[1:]))
        log_probs.append(LogProb(c.group, c.text, low, high, c.ids, spelt))
    return tuple(log_probs), tuple((names[token], value) for token, value in tokens)


def named_tokens(
    listed: Sequence[int], continuations: Sequence[Continuation], texts: TokenTexts
) -> dict[int, str]:
    """Return token id → its text in a row, different for each id.

    Only the token that is a whole continuation shows that continuation's text: other tokens of equal text
    (half a character, another spelling of the same word) show their id too.
    """
    names = {c.ids[0]: c.text for c in continuations if len(c.ids) == 1}
    texts_in_use = {c.text for c in continuations}
    for token in [*(c.ids[0] for c in continuations), *listed]:
        if token not in names:
            text = texts[token]
            names[token] = f"{text} (id {token})" if text in texts_in_use else text
            texts_in_use.add(text)
    return names
