"""Where a prompt's last words begin whose tokens do not depend on what stands before them.

Byte-pair merges join neighbours only to tokens of the vocabulary, and the known patterns that cut a text
into words never match a space behind a letter. So where no token holds a letter with a space behind it,
the tokens of both sides of that space are each side's own, and an expression has the same ones after every
prompt that ends alike. Only what is known to work so is believed: any other tokenizer has no such place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_SPACES = ("▁", "Ġ")
"""How vocabularies write a space; a plain one stands in added tokens."""
_HOLDS_A_SPACE = re.compile(f"[!-~](?=[ {''.join(_SPACES)}])")

# Each alternative takes a space as its first character or within white space, and looks ahead of white space
# only. The released patterns of GPT-2 (also `ByteLevel`'s own), Llama 3 and Qwen 2 to 3.
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_PATTERNS = frozenset(
    (
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        *(
            _CONTRACTIONS
            + r"|[^\r\n\p{L}\p{N}]?\p{L}+|"
            + numbers
            + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            for numbers in (r"\p{N}{1,3}", r"\p{N}")
        ),
    )
)


def endings_of(backend: Any) -> Callable[[str], str] | None:
    """What finds a prompt's ending, "" where it has none; None where this tokenizer is not known to have any.

    Arguments: backend, a `tokenizers.Tokenizer`.
    Returns: of a prompt, its text from the last such space on: the tokens of (prompt + expression) behind
        that place are those of any other prompt with the same ending and the same expression.
    Reference: docs/methods.md#word-boundary; held against the whole texts by the caller.
    """
    if not _is_known(backend):
        return None
    unsafe = set(_HOLDS_A_SPACE.findall("\n".join(backend.get_vocab(with_added_tokens=True))))
    # Behind an added token a text begins anew, perhaps with a space of its own.
    unsafe.update(token.content[-1:] for token in backend.get_added_tokens_decoder().values())
    safe = frozenset(map(chr, range(33, 127))) - unsafe

    def ending(text: str) -> str:
        place = text.rfind(" ", 0, -1)
        while place > 0 and text[place - 1] not in safe:
            place = text.rfind(" ", 0, place)
        return text[place:] if place > 0 else ""

    return ending


def _is_known(backend: Any) -> bool:
    """Whether the whole way from text to tokens is one of those that the module speaks of."""
    model, added = backend.model, backend.get_added_tokens_decoder().values()
    if type(model).__name__ != "BPE" or any(t.single_word or t.lstrip or t.rstrip for t in added):
        return False
    if any((model.dropout, model.continuing_subword_prefix, model.end_of_word_suffix)):
        return False
    changes, cuts = _steps(backend.normalizer, "normalizers"), _steps(backend.pre_tokenizer, "pretokenizers")
    if changes is None or cuts is None:
        return False
    writes = _space_of([_name(step) for step in changes], [_name(step) for step in cuts])
    # An unknown letter may join with another one beside it: the space between them must be a token.
    return writes is not None and model.token_to_id(writes) is not None


def _steps(part: Any, name: str) -> list[dict[str, Any]] | None:
    """A normalizer's or pre-tokenizer's parts as its file has them; None where it does not say."""
    if part is None:
        return []
    try:
        found: dict[str, Any] = json.loads(part.__getstate__())
    except (AttributeError, TypeError, ValueError):
        return None
    return list(found[name]) if found["type"] == "Sequence" else [found]


def _name(step: Mapping[str, Any]) -> str:
    """What a step does, by a name of our own where it matters; its type otherwise."""
    pattern = step.get("pattern", {})
    if step["type"] == "Replace" and pattern == {"String": " "} and step["content"] == "▁":
        return "spaces written"
    if step["type"] == "Split" and pattern == {"String": " "}:
        return "cut at plain spaces"
    if step["type"] == "Split" and pattern.get("Regex") in _PATTERNS and step["behavior"] == "Isolated":
        return "cut into words"
    if step["type"] == "Metaspace" and step["replacement"] != "▁":
        return "another sign"
    return str(step["type"])


def _space_of(changes: Sequence[str], cuts: Sequence[str]) -> str | None:
    """How the vocabulary writes a space; None where a step is not known."""
    if not {"NFC", "Prepend", "spaces written"}.issuperset(changes):
        return None
    if "ByteLevel" in cuts:
        plain = {"cut into words", "Digits", "ByteLevel"}.issuperset(cuts) and {"NFC"}.issuperset(changes)
        return "Ġ" if plain else None
    if "spaces written" in changes:
        return "▁" if {"cut at plain spaces", "Metaspace"}.issuperset(cuts) else None
    return "▁" if list(cuts) == ["Metaspace"] else None
