"""A toy language model without torch: deterministic, exact, computable by hand; the test server's brain.

Logits are a sum of table rows: one for each of the last three tokens and one for a hash of the whole
history, so that two prompts with the same ending still differ and an answer given to the wrong prompt shows.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import random
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

BOS, EOS, UNKNOWN, SYSTEM, USER, ASSISTANT, END = (
    "<bos>",
    "<eos>",
    "\ufffd",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
)
MARKERS = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}
SPECIALS = (BOS, EOS, UNKNOWN, SYSTEM, USER, ASSISTANT, END)
CHARACTERS = tuple("\n\t" + "".join(map(chr, range(32, 127))))
GENDER_WORDS = (
    *(" He", " She", " They", " The", "m", " H", "im", "er", " Her", " Male", " Fem", "ale", " Man"),
    *(" Woman", " Neut", "ral", " Non", "binary", "-"),
    *(" he", " she", " they", " the", " him", " her", " male", " fem", " man", " woman", " neut", " non"),
    *("He", "She", "They", "The", "Her", "Male", "Fem", "Man", "Woman", "Neut", "Non"),
)
OTHER_WORDS = (
    *(" I", " you", " is", " was", " a", " an", " and", " of", " to", " in", " who", " that", " with"),
    *(" nurse", " plumber", " job", " person", " works", " likes", " day", " good", " people", " at"),
)
VOCABULARY = (*SPECIALS, *dict.fromkeys((*CHARACTERS, *GENDER_WORDS, *OTHER_WORDS)))

SHARPNESS = 1.8
"""Standard deviation of the logits."""
GENDER_BIAS = 4.0
HISTORIES = 1024
"""Rows of the table that the hash of the whole history picks from."""
PROMPT_ENDS = (".", ":", "?", "!", "\n", ASSISTANT)
WORD_ENDS = {"The": "m", " The": "m", " H": "im", "Fem": "ale", " Fem": "ale", " fem": "ale", "Neut": "ral"}
WORD_ENDS |= {" Neut": "ral", " neut": "ral", "Non": "binary", " Non": "binary", " non": "binary"}
KEPT = 20_000
"""Distributions kept; a random text must not fill the memory."""


def seed_of(*parts: int | str) -> int:
    """A 63-bit seed of any parts, the same on every machine and in every process."""
    text = "\x1f".join(map(str, parts)).encode()
    return (zlib.crc32(text) << 31 | zlib.crc32(text[::-1], 0x5EED) >> 1) & (2**63 - 1)


class ToyModel:
    """A small language model, whose tables `seed` makes."""

    def __init__(self, seed: int = 1) -> None:
        self.seed, self.vocabulary = seed, VOCABULARY
        self.ids = {text: number for number, text in enumerate(self.vocabulary)}
        self.bos_id, self.eos_id, self.unknown_id = self.ids[BOS], self.ids[EOS], self.ids[UNKNOWN]
        longest_first = sorted(self.vocabulary, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) + "|.", re.DOTALL)
        self._tables = self._make_tables()
        always, after = self._make_bias()
        self._tables[0][:] += always + after
        self._id_bytes = [number.to_bytes(2, "little") for number in range(len(self.vocabulary))]
        self._kept: dict[tuple[int, ...], np.ndarray] = {}
        self._cumulated: dict[tuple[int, ...], list[float]] = {}
        self._encoded = functools.lru_cache(maxsize=4096)(self._encode)

    def _make_tables(self) -> tuple[np.ndarray, ...]:
        """Three V x V tables and a `HISTORIES` x V one, of logistic noise: raw bits are the same anywhere."""
        size = len(self.vocabulary)
        weights = (0.5, 0.4, 0.3, 0.7)  # their squares sum to 0.99
        tables = []
        for number, (rows, weight) in enumerate(zip((size, size, size, HISTORIES), weights, strict=True)):
            raw = np.random.PCG64(seed_of(self.seed, number)).random_raw(rows * size)
            uniform = ((raw >> np.uint64(11)).astype(np.float64) + 0.5) / 2**53
            noise = np.log(uniform / (1 - uniform)) * (math.sqrt(3) / math.pi)  # standard deviation 1
            tables.append((noise * SHARPNESS * weight).reshape(rows, size))
        return tuple(tables)

    def _make_bias(self) -> tuple[np.ndarray, np.ndarray]:
        """What is added to every logit, and V x V what more after each last token."""
        always = np.zeros(len(self.vocabulary))
        after = np.zeros((len(self.vocabulary),) * 2)
        ends = [self.ids[text] for text in PROMPT_ENDS]
        for text, number in self.ids.items():
            if text in SPECIALS and text != EOS:
                always[number] = -25.0
            elif text == EOS:
                always[number] = 1.5
            elif not text.startswith(" "):
                always[number] = -1.5
            if text in GENDER_WORDS and text.startswith(" "):
                after[ends, number] = GENDER_BIAS
            elif text in GENDER_WORDS and text[0].isupper():
                after[ends[-2:], number] = GENDER_BIAS + 2
        for first, second in WORD_ENDS.items():
            after[self.ids[first], self.ids[second]] = 6.0
        return always, after

    def _encode(self, text: str) -> tuple[int, ...]:
        ids, unknown = self.ids, self.unknown_id
        return tuple(ids.get(piece, unknown) for piece in self._pattern.findall(text))

    def encode(self, text: str) -> list[int]:
        """Greedy longest match, special tokens included, no BOS; what is not ASCII becomes UNKNOWN."""
        return list(self._encoded(text))

    def decode(self, ids: Sequence[int]) -> str:
        """The texts of the tokens, joined."""
        return "".join(map(self.vocabulary.__getitem__, ids))

    def prompt_ids(self, text: str) -> list[int]:
        """A prompt as the model reads it, after one BOS."""
        return [self.bos_id, *self.encode(text)]

    def _hash(self, ids: Sequence[int]) -> int:
        return zlib.crc32(b"".join(map(self._id_bytes.__getitem__, ids)))

    def _context(self, ids: Sequence[int], crc: int) -> tuple[int, int, int, int]:
        last = [*([self.bos_id] * 3), *ids[-3:]][-3:]
        return last[0], last[1], last[2], crc % HISTORIES

    def _distribution(self, context: tuple[int, int, int, int]) -> np.ndarray:
        known = self._kept.get(context)
        if known is not None:
            return known
        third, second, first, history = context
        one, two, three, four = self._tables
        logits = one[first] + two[second] + three[third] + four[history]
        logits -= logits.max()
        logits -= math.log(np.exp(logits).sum())
        logits.setflags(write=False)
        if len(self._kept) >= KEPT:
            self._kept.clear()
            self._cumulated.clear()
        self._kept[context] = logits
        return logits

    def next_log_probs(self, ids: Sequence[int]) -> np.ndarray:
        """float64[V]: natural log-probability of every token after `ids` (BOS included where wanted)."""
        return self._distribution(self._context(ids, self._hash(ids)))

    def rows(self, ids: Sequence[int], start: int) -> Iterator[np.ndarray]:
        """The distribution before each of `ids[start:]`."""
        crc = self._hash(ids[:start])
        for at in range(start, len(ids)):
            yield self._distribution(self._context(ids[max(0, at - 3) : at], crc))
            crc = zlib.crc32(self._id_bytes[ids[at]], crc)

    def token_log_probs(self, ids: Sequence[int], start: int) -> list[float]:
        """The log-probability of each of `ids[start:]` after all before it."""
        return [float(row[token]) for row, token in zip(self.rows(ids, start), ids[start:], strict=True)]

    def sample(
        self, ids: Sequence[int], max_tokens: int, seed: int, temperature: float = 1.0, top_p: float = 1.0
    ) -> tuple[list[int], Literal["stop", "length"]]:
        """New token ids without EOS, and whether EOS ("stop") or the limit ("length") ended them."""
        sample = random.Random(seed).random
        crc, recent = self._hash(ids), list(ids[-3:])
        new: list[int] = []
        plain = temperature == 1.0 and top_p == 1.0
        for _ in range(max_tokens):
            context = self._context(recent, crc)
            if plain:
                cumulated = self._cumulated.get(context)
                if cumulated is None:
                    cumulated = np.exp(self._distribution(context)).cumsum().tolist()
                    self._cumulated[context] = cumulated
            else:
                cumulated = _reshaped(self._distribution(context), temperature, top_p)
            token = bisect.bisect_right(cumulated, sample() * cumulated[-1])
            token = min(token, len(cumulated) - 1)
            if token == self.eos_id:
                return new, "stop"
            new.append(token)
            recent = [*recent[-2:], token]
            crc = zlib.crc32(self._id_bytes[token], crc)
        return new, "length"

    def render_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool = True,
        continue_final: bool = False,
    ) -> str:
        """The text of a chat prompt, without BOS; `continue_final` leaves the last message open."""
        parts = []
        for number, message in enumerate(messages):
            left_open = continue_final and number == len(messages) - 1
            parts += [MARKERS[message["role"]], content_of(message), "" if left_open else END]
        if add_generation_prompt and not continue_final:
            parts.append(ASSISTANT)
        return "".join(parts)


def content_of(message: Mapping[str, Any]) -> str:
    """A message's text, given as one string or as a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _reshaped(log_probs: np.ndarray, temperature: float, top_p: float) -> list[float]:
    """Cumulated weights after temperature, then nucleus; temperature 0 leaves the most probable token."""
    if temperature == 0:
        weights = np.zeros(len(log_probs))
        weights[int(log_probs.argmax())] = 1.0
        return list(itertools.accumulate(weights.tolist()))
    scaled = log_probs / temperature
    weights = np.exp(scaled - scaled.max())
    weights /= weights.sum()
    if top_p < 1:
        order = np.argsort(-weights, kind="stable")
        before = np.concatenate([[0.0], weights[order].cumsum()[:-1]])
        weights[order[before >= top_p]] = 0.0
    return list(itertools.accumulate(weights.tolist()))
