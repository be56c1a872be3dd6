"""Target words as a trie of tokens: score the prompt once, then only the few inner nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

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
    cuts: set[TokenIds] = {()}
    for ids in sequences:
        cuts.update(ids[:k] for k in range(len(ids) + ends))
    nodes = sorted(cuts, key=lambda node: (len(node), node))
    number = {node: i for i, node in enumerate(nodes)}
    levels: list[list[int]] = [[] for _ in range(len(nodes[-1]))]
    for node in nodes[1:]:
        levels[len(node) - 1].append(number[node])
    token_ids = sorted(set(chain.from_iterable(sequences)))
    column = {token: i for i, token in enumerate(token_ids)}
    steps = []
    for ids in sequences:
        # Teacher forcing: every token is read at the node of the target word's own earlier tokens.
        steps.append(tuple((number[ids[:k]], column[token]) for k, token in enumerate(ids)))
    parents = [-1, *(number[node[:-1]] for node in nodes[1:])]
    own = tuple(number[ids] for ids in sequences) if ends else None
    return TokenTrie(
        sequences=tuple(sequences),
        nodes=tuple(nodes),
        parents=tuple(parents),
        levels=tuple(map(tuple, levels)),
        token_ids=tuple(token_ids),
        steps=tuple(steps),
        ends=own,
    )


def shared_length(sequences: Sequence[Sequence[object]]) -> int:
    """Return how many first tokens all sequences share, of each at least its last one left over."""
    most = max(0, min(map(len, sequences)) - 1)
    for k in range(most):
        if len({ids[k] for ids in sequences}) > 1:
            return k
    return most


def shortest_extensions(sequences: Sequence[TokenIds]) -> list[list[int]]:
    """Return, for each sequence, the indices of the others that extend it without another in between.

    The probability of a sequence minus that of its shortest extensions is the exact probability that the
    model says this sequence and no longer one of the list (methods/probabilities#prefixes, `on_prefix`).
    """
    index_of = {s: i for i, s in enumerate(sequences)}
    extensions: list[list[int]] = [[] for _ in sequences]
    for i, ids in enumerate(sequences):
        for k in range(len(ids) - 1, 0, -1):
            if ids[:k] in index_of:
                extensions[index_of[ids[:k]]].append(i)
                break
    return extensions
