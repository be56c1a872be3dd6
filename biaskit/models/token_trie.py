"""Expressions as a trie of tokens: score the prompt once, then only the few inner nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TokenIds = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TokenTrie:
    """The inner nodes of token sequences, where the model's next-token distributions are needed."""

    sequences: tuple[TokenIds, ...]
    nodes: tuple[TokenIds, ...]  # proper prefixes of a sequence, by length: () is the prompt itself
    parents: tuple[int, ...]  # of each node; -1 for the root
    levels: tuple[tuple[int, ...], ...]  # node numbers by depth, root excluded
    token_ids: tuple[int, ...]  # distinct tokens of all sequences, ascending
    steps: tuple[tuple[tuple[int, int], ...], ...]  # per sequence: (node, place in `token_ids`) of each token
    ends: tuple[int, ...] | None  # per sequence: its own node, where whole ones are nodes (`word_boundary`)


def build_trie(sequences: Sequence[TokenIds], *, ends: bool = False) -> TokenTrie:
    """Build the trie of `sequences` (distinct, none empty), in an order that depends on their ids alone."""
    cuts = {s[:k] for s in sequences for k in range(len(s) + (1 if ends else 0))} | {()}
    nodes = sorted(cuts, key=lambda node: (len(node), node))
    number = {node: i for i, node in enumerate(nodes)}
    deepest = len(nodes[-1])
    token_ids = sorted({token for s in sequences for token in s})
    column = {token: i for i, token in enumerate(token_ids)}
    return TokenTrie(
        sequences=tuple(sequences),
        nodes=tuple(nodes),
        parents=tuple(number[node[:-1]] if node else -1 for node in nodes),
        levels=tuple(
            tuple(number[node] for node in nodes if len(node) == depth) for depth in range(1, deepest + 1)
        ),
        token_ids=tuple(token_ids),
        # Teacher forcing: every token is read at the node of the expression's own earlier tokens.
        steps=tuple(tuple((number[s[:k]], column[s[k]]) for k in range(len(s))) for s in sequences),
        ends=tuple(number[s] for s in sequences) if ends else None,
    )


def shared_length(sequences: Sequence[Sequence[object]]) -> int:
    """Return how many first tokens all sequences share, of each at least its last one left over."""
    shortest = min(map(len, sequences))
    alike = (k for k in range(shortest - 1) if len({s[k] for s in sequences}) > 1)
    return next(alike, max(0, shortest - 1))


def shortest_extensions(sequences: Sequence[TokenIds]) -> list[list[int]]:
    """Return, for each sequence, the indices of the others that extend it without another in between.

    The probability of a sequence minus that of its shortest extensions is the exact probability that the
    model says this sequence and no longer one of the list (methods/probabilities#prefixes, `on_prefix`).
    """
    index_of = {s: i for i, s in enumerate(sequences)}
    extensions: list[list[int]] = [[] for _ in sequences]
    for i, s in enumerate(sequences):
        beginnings = (index_of[s[:k]] for k in range(len(s) - 1, 0, -1) if s[:k] in index_of)
        if (longest := next(beginnings, None)) is not None:
            extensions[longest].append(i)
    return extensions
