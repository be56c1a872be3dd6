"""Bounds of mass and share that always hold, by the most probable tokens (methods/estimators#top-k-bounds).

The number bounded is the exact scorer's: each target word as the tokens the model's tokenizer gives it, a
text counted under its longest listed target word (`on_prefix = exclusive`). Where the tokens are not known,
it is open which listed token a target word begins with, and whether " He" is the beginning of " Her": the
bounds hold every possibility.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

UNLISTED = -9990.0
"""Servers write -9999 for a token outside their list: it is less probable than every number listed."""
UNFINISHED = "\ufffd"
"""How part of a character reaches us: such a token cannot be told from others by its text."""

Listing = Sequence[tuple[str, float | None]]
Path = tuple[str, ...]  # texts of the tokens after the prompt
Owners = frozenset[str | None]  # the groups under which a text may count; None: under none


@dataclass(frozen=True, slots=True)
class Sought:
    """A target word with its word boundary, and what is known of its tokens: texts, ids, or nothing."""

    group: str
    text: str
    tokens: tuple[str, ...] | None = None
    ids: tuple[int, ...] | None = None

    def passes(self, path: Path) -> bool:
        """Tell whether its tokens may begin with those of `path`, and go on."""
        if self.tokens is not None:
            return len(path) < len(self.tokens) and self.tokens[: len(path)] == path
        begun = "".join(path)
        long_enough = self.ids is None or len(path) < len(self.ids)
        return long_enough and self.text != begun and self.text.startswith(begun)

    def ends(self, path: Path, token: str) -> bool:
        """Tell whether `token` may complete it after `path`."""
        if self.tokens is not None:
            return self.tokens == (*path, token)
        fits = self.ids is None or len(self.ids) == len(path) + 1
        return fits and self.text == "".join(path) + token

    def goes_on(self, path: Path, token: str) -> bool:
        """Tell whether `token` may be its next one after `path`, with more to follow."""
        if self.tokens is not None:
            return len(path) + 1 < len(self.tokens) and self.tokens[len(path)] == token
        long_enough = self.ids is None or len(path) + 1 < len(self.ids)
        text = self.text[len("".join(path)) :]
        head, unfinished, _ = token.partition(UNFINISHED)
        begins = text.startswith(head) and len(head) < len(text)
        # An empty text is an end, as llama.cpp lists it, or part of a character.
        in_part = unfinished or not token
        return long_enough and begins and not (in_part and text[len(head)].isascii())

    def next_token(self, path: Path) -> object:
        """Give a value for its next token after `path`; equal values are surely the same token."""
        if self.ids is not None:
            return self.ids[: len(path) + 1]
        return self.tokens[: len(path) + 1] if self.tokens is not None else self.text


@dataclass(frozen=True, slots=True)
class Rest:
    """What one list leaves out: `mass` in all, at most `most` for each token."""

    mass: float
    most: float
    owners: Owners  # under whom a text counts unless one of the tokens below leads elsewhere
    tokens: tuple[frozenset[str], ...]  # the unlisted tokens of target words, by the groups they may lead to

    def low(self, groups: Collection[str]) -> float:
        """Find the least mass that counts under `groups`."""
        if not self.owners.issubset(groups):
            return 0.0
        return self.mass - self._led_to(sum(not token.issubset(groups) for token in self.tokens))

    def high(self, groups: Collection[str]) -> float:
        """Find the greatest mass that counts under `groups`."""
        if not self.owners.isdisjoint(groups):
            return self.mass
        return self._led_to(sum(not token.isdisjoint(groups) for token in self.tokens))

    def _led_to(self, n_tokens: int) -> float:
        return min(self.mass, n_tokens * self.most)


@dataclass(frozen=True, slots=True)
class MassBounds:
    """What the lists of one cell say of every set of groups.

    S and a of methods/estimators#top-k-bounds are `low` and `high - low` of a group; T + b_g is its own low
    beside the high of all others. A listed target word that may begin one of another group is in the low of
    both groups together and of neither alone.
    """

    groups: tuple[str, ...]
    point: tuple[float, ...]  # listed mass of each group's complete target words
    listed: Mapping[Owners, float]  # listed mass, by the groups under which it may count
    rests: tuple[Rest, ...]

    def low(self, groups: Collection[str]) -> float:
        """Find the least mass of the union of `groups`."""
        parts = [rest.low(groups) for rest in self.rests]
        for owners, mass in self.listed.items():
            if owners.issubset(groups):
                parts.append(mass)
        return math.fsum(parts)

    def high(self, groups: Collection[str]) -> float:
        """Find the greatest mass of the union of `groups`."""
        parts = [rest.high(groups) for rest in self.rests]
        for owners, mass in self.listed.items():
            if not owners.isdisjoint(groups):
                parts.append(mass)
        return math.fsum(parts)

    def coverage_ends(self) -> tuple[float, float]:
        """Find the least and greatest mass of all groups together."""
        return min(1.0, self.low(self.groups)), min(1.0, self.high(self.groups))

    def share_ends(self, group: str) -> tuple[float | None, float | None]:
        """Find the least and greatest share of a group; an end that is 0/0 with nothing listed is None."""
        others = self._without(group)
        low, high = self.low([group]), self.high([group])
        most_of_others, least_of_others = self.high(others), self.low(others)
        return (
            self._ratio(low, low + most_of_others, limit=1.0),
            self._ratio(high, high + least_of_others, limit=0.0),
        )

    def difference_ends(self, first: str, second: str) -> tuple[float | None, float | None]:
        """Find the least and greatest share of `first` minus that of `second`; None as in `share_ends`."""
        most, least = self._most_difference(first, second), self._most_difference(second, first)
        return None if least is None else 0.0 - least, most

    def _most_difference(self, first: str, second: str) -> float | None:
        """Maximise (x − y) / (x + y + z): x large and y small as can be; z small, but large where x < y."""
        third = self._without(first, second)
        x, y = self.high([first]), self.low([second])
        if x < y:
            # Mass that the other groups get makes a negative difference a smaller part of the whole.
            return (x - y) / (y + self.high([first, *third]))
        z = max(self.low(third), self.low([second, *third]) - y)
        return self._ratio(x - y, x + y + z, limit=0.0)

    def _without(self, *groups: str) -> list[str]:
        return [group for group in self.groups if group not in groups]

    def _ratio(self, part: float, whole: float, *, limit: float) -> float | None:
        # With something listed both are 0 only where one group alone can have mass: its share is then 1.
        if whole > 0:
            return part / whole
        return limit if math.fsum(self.point) > 0 else None


def bound_masses(
    listed: Mapping[str, Listing],  # by the text that follows the prompt ("": the prompt itself)
    k: int,  # tokens that a list was asked for; one entry more is the sampled token's
    target_words: Sequence[Sought],
    groups: Sequence[str],
    *,
    may_hide: bool = False,  # a token may stand for another of its text, as probable as all that is left
) -> MassBounds:
    """Bound the mass of each group by what was listed after the prompt and after some beginnings.

    A longer text was reached by tokens listed before it, and is not used where they reach it in two ways.
    Ids have no texts: a target word with ids and no `tokens` has known tokens only where it is one token.
    """
    by_token: dict[str, dict[str, list[float]]] = {}  # text → token after it → its probabilities, ascending
    for text, listing in listed.items():
        of_token = by_token.setdefault(text, {})
        for token, probability in sorted(_probabilities(listing), key=lambda pair: pair[1]):
            of_token.setdefault(token, []).append(probability)
    walk = _Walk(by_token, dict(listed), k, may_hide)
    first = dict(listed.get("", ()))
    sought = tuple(_with_known_tokens(e, first) for e in target_words)
    walk.go(sought, (), 1.0, frozenset([None]), None)
    point = tuple(math.fsum(walk.point[group]) for group in groups)
    masses = {owners: math.fsum(parts) for owners, parts in walk.listed.items()}
    return MassBounds(tuple(groups), point, masses, tuple(walk.rests))


def _with_known_tokens(target_word: Sought, first: Collection[str]) -> Sought:
    """Fill in the tokens that are certain: a target word that is listed, or has one id, is one token."""
    tokens, ids = target_word.tokens, target_word.ids
    if tokens is not None and UNFINISHED in "".join(tokens):
        tokens = None
    one = target_word.text in first if ids is None else len(ids) == 1
    if tokens is None and one:
        tokens = (target_word.text,)
    return replace(target_word, tokens=tokens)


def _probabilities(listing: Listing) -> list[tuple[str, float]]:
    return [(token, math.exp(p)) for token, p in listing if p is not None and p > UNLISTED]


def most_unlisted(listing: Listing, k: int) -> float:
    """Find the greatest probability that a token outside the list can have: p_k, the k-th largest listed.

    One entry more than `k` is the sampled token's and may be far less probable. With fewer than `k`
    entries any of them may be the sampled one: the smallest then bounds nothing, and the last but one does.
    Entries at -9999 count towards `k`. No entry: 1.
    """
    ranked = sorted((probability for _, probability in _probabilities(listing)), reverse=True)
    if len(ranked) >= k:
        return ranked[k - 1]
    last = len(ranked) - (1 if len(listing) >= k else 2)
    return ranked[last] if last >= 0 else 1.0


@dataclass(slots=True)
class _Walk:
    """A walk through the lists from the prompt along the tokens they hold, which collects what each says."""

    by_token: dict[str, dict[str, list[float]]]
    entries: dict[str, Listing]
    k: int
    may_hide: bool
    point: defaultdict[str | None, list[float]] = field(default_factory=lambda: defaultdict(list))
    listed: defaultdict[Owners, list[float]] = field(default_factory=lambda: defaultdict(list))
    rests: list[Rest] = field(default_factory=list)
    ways: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        """Count in how many ways listed tokens lead to a text: its list is that of one way alone."""
        self.ways = Counter([""])
        for text in sorted(self.by_token, key=len):
            for token, values in self.by_token[text].items():
                if token:
                    self.ways[text + token] += self.ways[text] * len(values)

    def go(
        self, sought: tuple[Sought, ...], path: Path, weight: float, owners: Owners, guess: str | None
    ) -> None:
        """Take in the list after `path`, which has probability `weight`.

        A text that goes no further counts under one of `owners`; `guess` is the owner by the texts of the
        listed tokens.
        """
        text = "".join(path)
        here = [e for e in sought if e.passes(path)]
        for token, values in self.by_token.get(text, {}).items():
            completed = next((e for e in here if e.ends(path, token)), None)
            longer = tuple(e for e in here if e.goes_on(path, token))
            onwards = frozenset(e.group for e in longer)
            for i, p in enumerate(values):
                owners_after, guess_after = owners, guess
                if completed is not None:
                    # Of tokens with equal texts one is the target word's: it has at least the least of them.
                    sure = completed.tokens is not None and i == 0 and not self.may_hide
                    owners_after = frozenset([completed.group]) | (frozenset() if sure else owners)
                    guess_after = completed.group if i == 0 else guess
                if longer and token and text + token in self.by_token and self.ways[text + token] == 1:
                    self.go(longer, (*path, token), weight * p, owners_after, guess_after)
                else:
                    self.listed[owners_after | onwards].append(weight * p)
                    self.point[guess_after].append(weight * p)
        self._leave(here, path, weight, owners, guess)

    def _leave(
        self, here: Sequence[Sought], path: Path, weight: float, owners: Owners, guess: str | None
    ) -> None:
        """Take in what the list after `path` leaves out."""
        text = "".join(path)
        listed = self.by_token.get(text, {})
        mass = max(0.0, 1.0 - math.fsum(chain.from_iterable(listed.values())))
        unlisted: defaultdict[object, set[str]] = defaultdict(set)
        for e in here:
            # Unless its tokens are known it may begin with an unlisted one, whatever is listed.
            if self.may_hide or e.tokens is None or e.tokens[len(path)] not in listed:
                unlisted[e.next_token(path)].add(e.group)
        most = mass if self.may_hide else most_unlisted(self.entries.get(text, ()), self.k)
        tokens = tuple(map(frozenset, unlisted.values()))
        self.rests.append(Rest(weight * mass, weight * most, owners, tokens))
        self.point[guess].append(weight * mass)
