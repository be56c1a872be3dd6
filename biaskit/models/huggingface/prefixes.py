"""Beginnings that prompts share, and prompts that go through the model together.

Prefixes in one cache have equal length, since padding would take slots of an attention window: rows
padded in front of more text are silently wrong by up to 0.1 in log-probability. The rest of a prompt is
the end of its row: there lengths may differ (`NodeStates._tree`), or go one after another.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from biaskit.common.sequences import cut
from biaskit.models.token_trie import TokenIds

COST_OF_A_FORWARD = {"cpu": 20, "gpu": 1_000}
"""Tokens that cost as much as one more forward: a CPU reads all weights again (demo model on one thread:
39 ms, where a token takes 2.1 ms), a GPU waits for Python; only the speed depends on it."""

COST_OF_A_PREFIX = 8
"""Tokens that cost as much as one more prefix beside its own tokens (a small forward is bound by reading
the weights); only the speed depends on it."""


@dataclass(frozen=True, slots=True)
class PromptRow:
    """One prompt in a batch: its request's index, its prefix's index in the block, and its other tokens."""

    index: int
    prefix: int
    rest: TokenIds


@dataclass(frozen=True, slots=True)
class PrefixBlock:
    """Prefixes of equal length, computed in one forward, and the batches that extend them."""

    prefixes: tuple[TokenIds, ...]  # empty: nothing is shared, and a row's rest is its whole prompt
    batches: tuple[tuple[PromptRow, ...], ...]  # each of one kind (a trie, or sentences), by length


def shared_prefix_lengths(
    prompts: Sequence[TokenIds], *, cost_of_a_prefix: int = COST_OF_A_PREFIX
) -> list[int]:
    """Return how many leading tokens of each prompt to compute once with others (0: none), for least work.

    Each branch of the prompts' radix tree either shares all that its prompts have in common, or leaves it
    to its children, whichever computes fewer tokens. At least one token of every prompt is not shared.
    """
    order = sorted(range(len(prompts)), key=lambda i: prompts[i])
    lengths = [0] * len(prompts)
    # Children follow their parents: in reverse order every child's cost is known when it is needed.
    for branch in reversed(_branches(prompts, order)):
        branch.least = sum(child.least for child in branch.children) if branch.children else branch.tokens
        saved = branch.cut * (branch.high - branch.low)
        together = branch.cut + cost_of_a_prefix + branch.tokens - saved
        if branch.cut > 0 and together < branch.least:
            branch.least = together
            for i in order[branch.low : branch.high]:  # in place of what its children share
                lengths[i] = branch.cut
    return lengths


@dataclass(slots=True)
class _Branch:
    """A range of the sorted prompts that agree in their first `depth` tokens."""

    low: int
    high: int
    depth: int = 0
    cut: int = 0  # tokens that could be shared
    tokens: int = 0  # of all its prompts
    children: list[_Branch] = field(default_factory=list)
    least: int = 0  # tokens to compute, where it or its children share


def _branches(prompts: Sequence[TokenIds], order: Sequence[int]) -> list[_Branch]:
    """Build the prompts' radix tree, parents first; in a loop, since prompts may nest to any depth."""
    branches = [_Branch(0, len(order))] if order else []
    for branch in branches:  # grows while it is walked
        inside = [prompts[order[k]] for k in range(branch.low, branch.high)]
        branch.tokens = sum(map(len, inside))
        first, last = inside[0], inside[-1]
        # The prompts are sorted: tokens that the first and the last share are shared by all.
        while branch.depth < min(len(first), len(last)) and first[branch.depth] == last[branch.depth]:
            branch.depth += 1
        if len(inside) == 1 or branch.depth == len(first) == len(last):
            branch.cut = min(branch.depth, len(first) - 1) if len(inside) > 1 else 0
            continue
        branch.cut = min(branch.depth, min(map(len, inside)) - 1)
        low = branch.low
        # A prompt that ends here has no next token, and is a range of its own.
        for _, alike in groupby(inside, key=itemgetter(slice(branch.depth, branch.depth + 1))):
            high = low + sum(1 for _ in alike)
            branch.children.append(_Branch(low, high, branch.depth))
            low = high
        branches += branch.children
    return branches


def cut_blocks(
    prompts: Sequence[TokenIds],
    kinds: Sequence[Hashable],
    *,
    batch_size: int,
    inner: Sequence[int] = (),  # tokens of its trie after each prompt, where prompts of one kind differ
    share: bool = True,
    block_tokens: int = 4096,
) -> list[PrefixBlock]:
    """Cut prompts into blocks and batches of one kind, whose order depends on the prompts' tokens alone."""
    lengths = shared_prefix_lengths(prompts) if share else [0] * len(prompts)
    by_length: dict[int, list[int]] = {}
    for i in sorted(range(len(prompts)), key=lambda i: (lengths[i], prompts[i], i)):
        by_length.setdefault(lengths[i], []).append(i)
    blocks = []
    for length, members in by_length.items():
        prefixes = sorted({prompts[i][:length] for i in members})
        per_block = max(1, min(batch_size, block_tokens // max(1, length)))
        for chosen in cut(prefixes, per_block):
            number = {prefix: k for k, prefix in enumerate(chosen)}
            rows = []
            for i in members:
                prefix, rest = prompts[i][:length], prompts[i][length:]
                if prefix in number:
                    rows.append(PromptRow(i, number[prefix], rest))
            batches = tuple(_batches(rows, kinds, inner or [0] * len(prompts), batch_size))
            blocks.append(PrefixBlock(chosen if length else (), batches))
    return blocks


def _batches(
    rows: Sequence[PromptRow], kinds: Sequence[Hashable], inner: Sequence[int], batch_size: int
) -> Iterator[tuple[PromptRow, ...]]:
    """Cut the rows of some prefixes into batches of one kind, the widest rows first."""
    alike: dict[Hashable, list[PromptRow]] = {}
    for row in rows:
        alike.setdefault(kinds[row.index], []).append(row)
    for group in alike.values():
        group.sort(key=lambda row: len(row.rest) + inner[row.index], reverse=True)
        yield from cut(group, batch_size)


def cut_forwards(widths: Sequence[int], cost: int) -> list[slice]:
    """Cut rows, the widest first, into the forwards that cost least, each `cost` and its padded tokens."""
    best: list[tuple[int, list[slice]]] = [(0, [])]  # for the first 0, 1, 2 … rows
    for end in range(1, len(widths) + 1):
        least, start = min((best[k][0] + cost + (end - k) * widths[k], k) for k in range(end))
        best.append((least, [*best[start][1], slice(start, end)]))
    return best[-1][1]
