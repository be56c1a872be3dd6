"""Expressions as a trie of tokens: score the prompt once, then only the few inner nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TokenIds = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TokenTrie:
    """The inner nodes of a set of token sequences; node 0 is the prompt itself.

    An inner node is a proper prefix of a sequence: the model's next-token distribution is needed
    there and nowhere else. With `ends`, complete sequences are nodes too (for `word_boundary`).
    """

    sequences: tuple[TokenIds, ...]
    nodes: tuple[TokenIds, ...]  # each node's tokens after the prompt, () first, then by length
    parents: tuple[int, ...]  # of each node; -1 for the root
    levels: tuple[tuple[int, ...], ...]  # node numbers by depth, root excluded
    asked: tuple[int, ...]  # every token asked for at any node, ascending
    steps: tuple[tuple[tuple[int, int], ...], ...]  # per sequence: (node, column of `asked`) of each token
    ends: tuple[int, ...] | None  # per sequence: the node where it is complete

    @property
    def depth(self) -> int:
        """Tokens that the deepest node adds to the prompt."""
        return len(self.levels)


def build_trie(sequences: Sequence[TokenIds], *, ends: bool = False) -> TokenTrie:
    """The trie of `sequences` (distinct, none empty), in an order that depends on their ids alone."""
    cuts = {s[:k] for s in sequences for k in range(len(s) + (1 if ends else 0))} | {()}
    nodes = sorted(cuts, key=lambda node: (len(node), node))
    number = {node: i for i, node in enumerate(nodes)}
    deepest = len(nodes[-1])
    asked = sorted({token for s in sequences for token in s})
    column = {token: i for i, token in enumerate(asked)}
    return TokenTrie(
        sequences=tuple(sequences),
        nodes=tuple(nodes),
        parents=tuple(number[node[:-1]] if node else -1 for node in nodes),
        levels=tuple(
            tuple(number[node] for node in nodes if len(node) == depth) for depth in range(1, deepest + 1)
        ),
        asked=tuple(asked),
        # Teacher forcing: every token is read at the node of the expression's own earlier tokens.
        steps=tuple(tuple((number[s[:k]], column[s[k]]) for k in range(len(s))) for s in sequences),
        ends=tuple(number[s] for s in sequences) if ends else None,
    )


def shortest_extensions(sequences: Sequence[TokenIds]) -> list[list[int]]:
    """For each sequence the listed sequences that extend it with no listed one between them.

    The probability of a sequence without its shortest listed extensions is the exact probability
    that it, and no longer listed one, is what was said (docs/methods.md#prefixes, `on_prefix`).
    """
    known = {s: i for i, s in enumerate(sequences)}
    extensions: list[list[int]] = [[] for _ in sequences]
    for i, s in enumerate(sequences):
        beginnings = (known[s[:k]] for k in range(len(s) - 1, 0, -1) if s[:k] in known)
        if (nearest := next(beginnings, None)) is not None:
            extensions[nearest].append(i)
    return extensions
