"""Which beginning prompts share, and which prompts go through the model together.

Rows that extend one cache have equal length: no padding, no mask, exact for any attention window.
Padded rows longer than a sliding window are wrong by up to 0.1 in log-probability, silently.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

TokenIds = tuple[int, ...]

COST_OF_A_PREFIX = 16
"""Tokens' worth of time that one more prefix costs beside its own tokens (a small forward is bound by
reading the weights); only the speed depends on it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt in a batch: its request's number, its prefix's number in the block, and its rest."""

    index: int
    prefix: int
    rest: TokenIds


@dataclass(frozen=True, slots=True)
class Block:
    """Prefixes of equal length, computed in one forward, and the batches that extend them.

    `prefixes` is empty where nothing is shared; then `rest` is the whole prompt. All rows of one
    batch have `rest` of equal length and one trie.
    """

    prefixes: tuple[TokenIds, ...]
    batches: tuple[tuple[Row, ...], ...]


def shared_prefix_lengths(
    prompts: Sequence[TokenIds], *, cost_of_a_prefix: int = COST_OF_A_PREFIX
) -> list[int]:
    """How many leading tokens of each prompt to compute once with others (0: none), least work overall.

    Over the radix tree of the prompts each branch is either cut where its prompts part, or left to its
    children, whichever computes fewer tokens. At least one token of every prompt stays its own.
    """
    order = sorted(range(len(prompts)), key=lambda i: prompts[i])
    lengths = [0] * len(prompts)

    def least(low: int, high: int, depth: int) -> tuple[int, list[tuple[int, int, int]]]:
        """(cost, cuts) of order[low:high], whose prompts agree in their first `depth` tokens."""
        total = sum(len(prompts[i]) for i in order[low:high])
        if high - low == 1:
            return total, []
        first, last = prompts[order[low]], prompts[order[high - 1]]
        while depth < len(first) and depth < len(last) and first[depth] == last[depth]:
            depth += 1
        # Sorted: the shortest prompt of an agreeing range comes first, so its length bounds the cut.
        cut = min(depth, min(len(prompts[i]) for i in order[low:high]) - 1)
        shared = cut + cost_of_a_prefix + total - cut * (high - low)
        apart, cuts = 0, []
        if depth == len(first) == len(last):  # equal prompts: nothing to part
            apart = total
        else:
            for child_low, child_high in _children(prompts, order, low, high, depth):
                cost, found = least(child_low, child_high, depth)
                apart += cost
                cuts += found
        return (shared, [(low, high, cut)]) if cut > 0 and shared < apart else (apart, cuts)

    if prompts:
        for low, high, cut in least(0, len(order), 0)[1]:
            for i in order[low:high]:
                lengths[i] = cut
    return lengths


def _children(
    prompts: Sequence[TokenIds], order: Sequence[int], low: int, high: int, depth: int
) -> Iterator[tuple[int, int]]:
    """The ranges of order[low:high] that agree in token `depth` too (a prompt that ends there is one)."""
    start = low
    for i in range(low + 1, high + 1):
        if i == high or prompts[order[i]][depth : depth + 1] != prompts[order[start]][depth : depth + 1]:
            yield start, i
            start = i


def cut_blocks(
    prompts: Sequence[TokenIds],
    kinds: Sequence[Hashable],
    *,
    batch_size: int,
    share: bool = True,
    block_tokens: int = 4096,
) -> list[Block]:
    """Blocks and batches for `prompts`; `kinds[i]` (their tries) never mix within a batch.

    The order depends on the prompts' tokens alone, so the same requests give the same batches.
    """
    lengths = shared_prefix_lengths(prompts) if share else [0] * len(prompts)
    by_length: dict[int, list[int]] = {}
    for i in sorted(range(len(prompts)), key=lambda i: (lengths[i], prompts[i], i)):
        by_length.setdefault(lengths[i], []).append(i)
    blocks = []
    for length, members in by_length.items():
        if length == 0:
            blocks.append(_block((), [Row(i, 0, prompts[i]) for i in members], kinds, batch_size))
            continue
        prefixes = sorted({prompts[i][:length] for i in members})
        per_block = max(1, min(batch_size, block_tokens // length))
        for start in range(0, len(prefixes), per_block):
            chosen = prefixes[start : start + per_block]
            number = {prefix: k for k, prefix in enumerate(chosen)}
            rows = [
                Row(i, number[prompts[i][:length]], prompts[i][length:])
                for i in members
                if prompts[i][:length] in number
            ]
            blocks.append(_block(tuple(chosen), rows, kinds, batch_size))
    return blocks


def _block(
    prefixes: tuple[TokenIds, ...], rows: Sequence[Row], kinds: Sequence[Hashable], batch_size: int
) -> Block:
    alike: dict[tuple[Hashable, int], list[Row]] = {}
    for row in rows:
        alike.setdefault((kinds[row.index], len(row.rest)), []).append(row)
    batches = [
        tuple(group[start : start + batch_size])
        for group in alike.values()
        for start in range(0, len(group), batch_size)
    ]
    return Block(prefixes, tuple(batches))
