"""The top-k interval: tiny random models whose exact masses are known, lists of many kinds.

See methods/estimators#top-k-bounds.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biaskit.measures.probe.contrasts import StudyCells
from biaskit.measures.probe.effects import tables
from biaskit.records import CellShares, PromptCell
from biaskit.runs.shares.cells import cell_shares
from biaskit.runs.shares.top_k import MassBounds, Rest, Sought, bound_masses, most_unlisted
from biaskit.stats.arms import CrossedCells

CELL = PromptCell("tiny", "explicit", 1, "nurse", "female-dominated", None, 0, "plain", "raw")
GROUPS = ("male", "female", "diverse")
ROUNDING = 1e-9
CLOSE = 1e-12
Ids = tuple[int, ...]
Listed = dict[str, list[tuple[str, float | None]]]

# --- a tiny model: every probability is known, and its tokenizer may cut a target word anywhere -------


@dataclass
class Tiny:
    """A next-token distribution for every sequence of tokens, and target words with their true tokens."""

    random: Random
    vocabulary: list[str]  # token texts by id; a text may stand twice
    target_words: dict[str, tuple[str, Ids]]  # text → group and ids
    rows: dict[Ids, list[float]] = field(default_factory=dict)

    def after(self, path: Ids) -> list[float]:
        if path not in self.rows:
            shape = self.random.choice([0.1, 0.5, 2.0])
            weights = [self.random.gammavariate(shape, 1) for _ in self.vocabulary]
            if self.random.random() < 0.3:
                weights = [w if self.random.random() < 0.5 else 0.0 for w in weights]
            if self.random.random() < 0.3:
                weights = [max(w, 1e-3) if text.strip("ab") == "" else w / 50
                           for w, text in zip(weights, self.vocabulary, strict=True)]  # fmt: skip
            weights = weights if sum(weights) > 0 else [1.0] * len(weights)
            self.rows[path] = [w / math.fsum(weights) for w in weights]
        return self.rows[path]

    def probability(self, ids: Ids) -> float:
        return math.prod(self.after(ids[:i])[token] for i, token in enumerate(ids))

    def exact(self) -> Any:
        """What the exact scorer's row gives: the masses before us were tested without any list."""
        target_words = [
            {"group": group, "text": text, "log_prob": math.log(p) if (p := self.probability(ids)) else None,
             "token_ids": ids}
            for text, (group, ids) in self.target_words.items()
        ]  # fmt: skip
        return cell_shares(CELL, {"key": "k", "estimator": "exact", "target_words": target_words}, GROUPS)

    def sought(self, knowledge: str) -> list[Sought]:
        made = []
        for text, (group, ids) in self.target_words.items():
            known = (
                self.random.choice(["none", "tokens", "ids", "both"]) if knowledge == "mixed" else knowledge
            )
            tokens = tuple(self.vocabulary[i] for i in ids)
            made.append(
                Sought(
                    group,
                    text,
                    tokens if known in ("tokens", "both") else None,
                    ids if known in ("ids", "both") else None,
                )
            )
        return made


def tiny(random: Random, *, twins: bool = False) -> Tiny:
    """Target words over two letters, so that nearly all begin one another, in groups drawn at random."""
    pieces = {
        "".join(random.choices("ab", k=random.choice([2, 2, 3, 4]))) for _ in range(random.randint(0, 6))
    }
    vocabulary = ["a", "b", *sorted(pieces), *["x", "y", "", "zz"][: random.randint(0, 4)]]
    if twins:
        vocabulary += random.sample(vocabulary, k=random.randint(1, 2))
    texts = {"".join(random.choices("ab", k=random.randint(1, 4))) for _ in range(random.randint(1, 7))}
    id_of = {text: random.choice([i for i, t in enumerate(vocabulary) if t == text]) for text in vocabulary}
    groups = random.sample(GROUPS, k=random.randint(1, 3))
    return Tiny(
        random,
        vocabulary,
        {text: (random.choice(groups), cut(text, id_of, random)) for text in sorted(texts)},
    )


def cut(text: str, id_of: Mapping[str, int], random: Random) -> Ids:
    """Any tokens that spell the text, but the one token that is the text where there is one."""
    if not text or text in id_of:
        return (id_of[text],) if text else ()
    length = random.choice([n for n in range(1, len(text)) if text[:n] in id_of])
    rest: Ids = ()
    at = length
    while at < len(text):
        n = random.choice([n for n in range(1, len(text) - at + 1) if text[at : at + n] in id_of])
        rest, at = (*rest, id_of[text[at : at + n]]), at + n
    return (id_of[text[:length]], *rest)


# --- what a server says of it -------------------------------------------------------------------------


class SplitTwins(Exception):
    """Only one of two tokens with equal texts is listed, and no reader can know of the other."""


def listing(model: Tiny, path: Ids, k: int) -> list[tuple[str, float | None]]:
    """The k most probable tokens as servers list them: one more, some at -9999, fewer, in any order."""
    random, row = model.random, model.after(path)
    order = sorted(range(len(row)), key=lambda i: (-row[i], i))
    top, outside = order[:k], order[k:]
    if k > 2 and random.random() < 0.1:
        top = top[: k // 2]  # a cap of the server's own; with the sampled token it is still less than k
        outside = order[len(top) :]
    blank = set(top[len(top) - random.randint(0, len(top)) :]) if random.random() < 0.15 else set()
    entries = list(top)
    if outside and random.random() < 0.5:
        extra = random.choice(outside)
        entries.append(extra)
        # A token outside the list is less probable than every one at -9999 inside it.
        blank |= {extra} if blank or random.random() < 0.3 else set()
    blank |= {i for i in entries if row[i] == 0.0}
    shown = {i for i in entries if i not in blank}
    for i, j in itertools.combinations(range(len(row)), 2):
        if model.vocabulary[i] == model.vocabulary[j] and (i in shown) != (j in shown):
            raise SplitTwins
    random.shuffle(entries)
    return [
        (model.vocabulary[i], math.log(row[i]) if i in shown else random.choice([-9999.0, None]))
        for i in entries
    ]


def lists(model: Tiny, k: int) -> Listed:
    """After the prompt, and after some of the listed tokens; where two ways spell a text, after one."""
    found: Listed = {"": listing(model, (), k)}
    waiting: list[tuple[str, Ids]] = [("", ())]
    continued = model.random.choice([0.0, 0.5, 1.0])
    while waiting:
        text, path = waiting.pop(0)
        shown = Counter(token for token, p in found[text] if p is not None and p > -9000 and token)
        for token in shown:
            ids = [i for i, t in enumerate(model.vocabulary) if t == token]
            longer = text + token
            if len(longer) <= 4 and longer not in found and model.random.random() < continued:
                onwards = (*path, model.random.choice(ids))
                found[longer] = listing(model, onwards, k)
                waiting.append((longer, onwards))
    return found


# --- does an interval hold the truth -------------------------------------------------------------------


def misses(found: MassBounds, exact: Any) -> Iterator[str]:
    """Every interval that does not hold the exact number."""

    def outside(name: str, value: float, ends: tuple[float | None, float | None]) -> Iterator[str]:
        low, high = ends
        below = low is not None and value < low - ROUNDING
        if below or (high is not None and value > high + ROUNDING):
            yield f"{name}: {value} is not in {ends}"

    mass = dict(zip(GROUPS, exact.masses, strict=True))
    for n in range(1, len(GROUPS) + 1):
        for union in itertools.combinations(GROUPS, n):
            total = math.fsum(mass[group] for group in union)
            yield from outside(f"mass of {union}", total, (found.low(union), found.high(union)))
    yield from outside("coverage", exact.coverage, found.coverage_ends())
    if exact.shares is None or exact.coverage < 1e-6:
        return  # what is left of 1 after subtracting a sum of doubles says nothing of so small a part
    share = dict(zip(GROUPS, exact.shares, strict=True))
    for group in GROUPS:
        yield from outside(f"share of {group}", share[group], found.share_ends(group))
    for first, second in itertools.permutations(GROUPS, 2):
        difference = share[first] - share[second]
        yield from outside(f"{first} - {second}", difference, found.difference_ends(first, second))


def point_outside(found: MassBounds) -> Iterator[str]:
    for group, value in zip(GROUPS, found.point, strict=True):
        if not found.low([group]) - ROUNDING <= value <= found.high([group]) + ROUNDING:
            yield f"point of {group}: {value} is not in {found.low([group])}, {found.high([group])}"
        total = math.fsum(found.point)
        low, high = found.share_ends(group)
        if total > 0:
            assert low is not None
            assert high is not None
            if not low - ROUNDING <= value / total <= high + ROUNDING:
                yield f"share of {group}: {value / total} is not in {low}, {high}"


def case(random: Random, knowledge: str, *, twins: bool = False) -> tuple[Tiny, Listed, int] | None:
    model = tiny(random, twins=twins)
    k = random.randint(1, len(model.vocabulary))
    try:
        return model, lists(model, k), k
    except SplitTwins:
        return None


@pytest.mark.parametrize("twins", [False, True], ids=["", "equal texts"])
@pytest.mark.parametrize("knowledge", ["none", "ids", "tokens", "both", "mixed"])
def test_no_interval_ever_misses_the_exact_number(knowledge: str, twins: bool) -> None:
    made = 0
    for seed in itertools.count():
        random = Random(f"{seed} {knowledge} {twins}")
        drawn = case(random, knowledge, twins=twins)
        if drawn is None:
            continue
        model, listed, k = drawn
        found = bound_masses(listed, k, model.sought(knowledge), GROUPS)
        assert [] == list(misses(found, model.exact())), f"seed {seed}"
        assert [] == list(point_outside(found)), f"seed {seed}"
        made += 1
        if made == 500:
            break


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["none", "ids", "tokens", "mixed"]), st.booleans())
def test_nor_does_one_that_is_looked_for(seed: int, knowledge: str, twins: bool) -> None:
    drawn = case(Random(seed), knowledge, twins=twins)
    if drawn is not None:
        model, listed, k = drawn
        found = bound_masses(listed, k, model.sought(knowledge), GROUPS)
        assert [] == list(misses(found, model.exact()))
        assert [] == list(point_outside(found))


@pytest.mark.parametrize("knowledge", ["none", "ids", "tokens"])
def test_with_every_token_listed_and_target_words_of_one_token_the_interval_is_a_point(
    knowledge: str,
) -> None:
    for seed in range(200):
        random = Random(seed)
        model = tiny(random)
        words = random.sample(range(len(model.vocabulary)), k=min(4, len(model.vocabulary)))
        model.target_words = {model.vocabulary[i]: (random.choice(GROUPS), (i,)) for i in words}
        row = model.after(())
        listed = [(t, math.log(p) if p else None) for t, p in zip(model.vocabulary, row, strict=True)]
        found = bound_masses({"": listed}, len(listed), model.sought(knowledge), GROUPS)
        exact = model.exact()
        assert pytest.approx(exact.masses, abs=CLOSE) == found.point
        for group, mass in zip(GROUPS, exact.masses, strict=True):
            assert (found.low([group]), found.high([group])) == pytest.approx((mass, mass), abs=CLOSE)
        if exact.coverage > 1e-6:
            for group, share in zip(GROUPS, exact.shares, strict=True):
                assert found.share_ends(group) == pytest.approx((share, share), abs=ROUNDING)
            difference = exact.shares[1] - exact.shares[0]
            assert found.difference_ends("female", "male") == pytest.approx([difference] * 2, abs=ROUNDING)


# --- methods/estimators#top-k-bounds to the letter, and what becomes of it when a part is left out
# --------------------------


@dataclass
class Letter:
    """The formulas as they are printed: one list, known first tokens, no target word begins another."""

    listed: Mapping[str, float]
    target_words: Mapping[str, tuple[str, tuple[str, ...]]]  # text → group and token texts
    p_k: float
    with_shared: bool = True
    with_open: bool = True

    def parts(self, groups: Sequence[str]) -> tuple[float, float]:
        """S and a of a union of groups."""
        own = [tokens for group, tokens in self.target_words.values() if group in groups]
        others = {tokens[0] for group, tokens in self.target_words.values() if group not in groups}
        complete = math.fsum(self.listed.get(tokens[0], 0.0) for tokens in own if len(tokens) == 1)
        first = {tokens[0] for tokens in own if len(tokens) > 1 and tokens[0] in self.listed}
        unlisted = {tokens[0] for tokens in own} - set(self.listed)
        if not self.with_shared:
            unlisted -= others
        rest = max(0.0, 1.0 - math.fsum(self.listed.values()))
        opened = math.fsum(self.listed[token] for token in first) if self.with_open else 0.0
        return complete, opened + min(rest, len(unlisted) * self.p_k)

    def mass_ends(self, group: str) -> tuple[float, float]:
        s, a = self.parts([group])
        return s, s + a

    def share_ends(self, group: str) -> tuple[float | None, float | None]:
        total = math.fsum(self.parts([g])[0] for g in GROUPS)
        s, a = self.parts([group])
        b = self.parts([g for g in GROUPS if g != group])[1]
        return s / (total + b) if total + b else None, (s + a) / (total + a) if total + a else None


def plain_case(random: Random) -> tuple[Tiny, dict[str, float], int, list[tuple[str, float | None]]] | None:
    """A model with known first tokens where no target word begins another, and a list of k + 1."""
    model = tiny(random)
    texts = list(model.target_words)
    ids = [model.target_words[text][1] for text in texts]
    if any(a != b and b[: len(a)] == a for a, b in itertools.permutations(ids, 2)):
        return None
    k = random.randint(1, len(model.vocabulary))
    row = model.after(())
    order = sorted(range(len(row)), key=lambda i: (-row[i], i))
    chosen = [*order[:k], *([random.choice(order[k:])] if order[k:] else [])]
    if any(row[i] == 0.0 for i in chosen):
        return None
    listed = {model.vocabulary[i]: row[i] for i in chosen}
    return model, listed, k, [(token, math.log(p)) for token, p in listed.items()]


def plain_cases(n: int) -> Iterator[tuple[Tiny, dict[str, float], int, list[tuple[str, float | None]]]]:
    for seed in range(n):
        made = plain_case(Random(seed))
        if made is not None:
            yield made


def letter(model: Tiny, listed: Mapping[str, float], p_k: float, **left_out: bool) -> Letter:
    spelled = {
        text: (group, tuple(model.vocabulary[i] for i in ids))
        for text, (group, ids) in model.target_words.items()
    }
    return Letter(listed, spelled, p_k, **left_out)


def kth(listed: Mapping[str, float], k: int) -> float:
    return sorted(listed.values(), reverse=True)[k - 1]


def test_the_bounds_are_those_of_the_printed_formulas() -> None:
    n = 0
    for model, listed, k, entries in plain_cases(1500):
        found = bound_masses({"": entries}, k, model.sought("tokens"), GROUPS)
        printed = letter(model, listed, kth(listed, k))
        for group in GROUPS:
            ends = found.low([group]), found.high([group])
            assert printed.mass_ends(group) == pytest.approx(ends, abs=CLOSE)
            expected = printed.share_ends(group)
            got = found.share_ends(group)
            assert [e is None for e in expected] == [e is None for e in got]
            assert [e or 0.0 for e in expected] == pytest.approx([e or 0.0 for e in got], abs=ROUNDING)
        n += 1
    assert n > 400


def outside_the_letter(printed: Letter, model: Tiny) -> bool:
    exact = model.exact()
    for group, mass in zip(GROUPS, exact.masses, strict=True):
        low, high = printed.mass_ends(group)
        if not low - ROUNDING <= mass <= high + ROUNDING:
            return True
    return False


@pytest.mark.parametrize(
    ("wrong", "left_out"),
    [
        ("p_k is the sampled token's", {}),
        ("first tokens that groups share are in no u", {"with_shared": False}),
        ("first tokens that are listed are in no O", {"with_open": False}),
    ],
)
def test_a_wrong_reading_of_the_formulas_misses(wrong: str, left_out: dict[str, bool]) -> None:
    missed = 0
    for model, listed, k, _ in plain_cases(2000):
        p_k = min(listed.values()) if not left_out else kth(listed, k)
        assert not outside_the_letter(letter(model, listed, kth(listed, k)), model)
        missed += outside_the_letter(letter(model, listed, p_k, **left_out), model)
    assert missed > 5, wrong


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["the sampled token's entry", "u", "O", "equal texts", "two ways"])
def test_breaking_a_part_of_the_bounds_is_seen(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from biaskit.runs.shares import top_k

    if broken == "the sampled token's entry":
        monkeypatch.setattr(
            top_k,
            "most_unlisted",
            lambda listing, k: min((math.exp(p) for _, p in listing if p and p > -9000), default=1.0),
        )
    if broken == "u":
        monkeypatch.setattr(Sought, "next_token", lambda self, path: "the same for all")
    if broken == "O":
        monkeypatch.setattr(Sought, "goes_on", lambda self, path, token: False)
    count_ways = top_k._Walk.__post_init__
    if broken == "equal texts":

        def as_one_token(walk: top_k._Walk) -> None:
            for of_token in walk.by_token.values():
                of_token |= {token: [math.fsum(p)] for token, p in of_token.items()}
            count_ways(walk)

        monkeypatch.setattr(top_k._Walk, "__post_init__", as_one_token)
    if broken == "two ways":

        def only_one_way(walk: top_k._Walk) -> None:
            count_ways(walk)
            walk.ways = Counter(dict.fromkeys(walk.ways, 1))

        monkeypatch.setattr(top_k._Walk, "__post_init__", only_one_way)
    knowledge = "tokens" if broken == "two ways" else "none"
    missed = 0
    for seed in range(800):
        drawn = case(Random(seed), knowledge, twins=broken == "equal texts")
        if drawn is not None:
            model, listed, k = drawn
            found = bound_masses(listed, k, model.sought(knowledge), GROUPS)
            missed += any(misses(found, model.exact()))
    assert missed > 2


# --- the ends of a difference, against every way to give the uncertain mass away --------------------------


def allocations(found: MassBounds) -> Iterator[dict[str, float]]:
    """Every corner of what the lists leave open: whole listed tokens, and unlisted ones up to p_k and R."""
    listed = list(found.listed.items())
    (rest,) = found.rests
    for owners in itertools.product(*(sorted(o, key=str) for o, _ in listed)):
        base = dict.fromkeys(GROUPS, 0.0)
        for owner, (_, mass) in zip(owners, listed, strict=True):
            if owner is not None:
                base[owner] += mass
        for order in itertools.permutations(range(len(rest.tokens))):
            for led in itertools.product(*(sorted(token) for token in rest.tokens)):
                for n in range(len(order) + 1):
                    masses, left = dict(base), rest.mass
                    for i in order[:n]:
                        masses[led[i]] += min(rest.most, left)
                        left -= min(rest.most, left)
                    yield masses


def sampled_bounds(random: Random) -> MassBounds:
    """Bounds of one list with open mass of every kind, no target word in doubt that is complete."""
    sets = [frozenset(c) for n in (1, 2, 3) for c in itertools.combinations(GROUPS, n)]
    listed: dict[frozenset[str | None], float] = {}
    for group in random.sample(GROUPS, k=random.randint(0, 3)):
        listed[frozenset([group])] = random.random()
    for some in random.sample(sets, k=random.randint(0, 2)):
        listed[frozenset([*some, None])] = random.random()
    rest = Rest(
        random.choice([0.0, random.random(), 3 * random.random()]),
        random.random(),
        frozenset([None]),
        tuple(random.choice(sets) for _ in range(random.randint(0, 3))),
    )
    total = math.fsum(listed.values()) + rest.mass + random.random()
    point = tuple(listed.get(frozenset([group]), 0.0) / total for group in GROUPS)
    scaled = replace(rest, mass=rest.mass / total, most=rest.most / total)
    return MassBounds(GROUPS, point, {o: p / total for o, p in listed.items()}, (scaled,))


def test_the_ends_of_shares_and_differences_are_reached_and_never_passed() -> None:
    compared = negative = 0
    for seed in range(400):
        found = sampled_bounds(Random(seed))
        if not any(found.point):
            continue
        shares = [
            [masses[group] / total for group in GROUPS]
            for masses in allocations(found)
            if (total := math.fsum(masses.values())) > 0
        ]
        for i, group in enumerate(GROUPS):
            ends = min(s[i] for s in shares), max(s[i] for s in shares)
            assert ends == pytest.approx(found.share_ends(group), abs=CLOSE), seed
        for i, j in itertools.permutations(range(len(GROUPS)), 2):
            differences = [s[i] - s[j] for s in shares]
            ends = found.difference_ends(GROUPS[i], GROUPS[j])
            assert (min(differences), max(differences)) == pytest.approx(ends, abs=CLOSE), seed
            negative += max(differences) < 0
            compared += 1
    assert compared > 1000
    assert negative > 50


# --- by hand ----------------------------------------------------------------------------------------------


def logs(**probabilities: float) -> list[tuple[str, float | None]]:
    return [(token.replace("_", " "), math.log(p)) for token, p in probabilities.items()]


WORDS = [Sought("male", " He"), Sought("female", " She"), Sought("diverse", " They")]


def test_the_numbers_of_one_list() -> None:
    # S = 0.4, 0.3, 0; R = 0.2; p_3 = 0.1, one unlisted target word: a = 0, 0, 0.1.
    found = bound_masses({"": logs(_He=0.4, _She=0.3, _It=0.1)}, 3, WORDS, GROUPS)
    assert (0.4, 0.3, 0.0) == pytest.approx(found.point)
    assert (0.4 / 0.8, 0.4 / 0.7) == pytest.approx(found.share_ends("male"))
    assert (0.0, 0.1 / 0.8) == pytest.approx(found.share_ends("diverse"))
    assert (0.7, 0.8) == pytest.approx(found.coverage_ends())
    # Largest with nothing for the third group; smallest likewise, since it is negative then: -0.1/0.7.
    # The upper end is negative too, and there the third group is as large as it can be.
    assert (-0.1 / 0.7, -0.1 / 0.8) == pytest.approx(found.difference_ends("female", "male"))


def test_an_extra_entry_counts_and_is_not_p_k() -> None:
    listed = [*logs(_He=0.5, _It=0.2), (" She", math.log(0.01))]
    found = bound_masses({"": listed}, 2, WORDS, GROUPS)
    assert (0.5, 0.01, 0.0) == pytest.approx(found.point)
    assert 0.2 == pytest.approx(found.high(["diverse"]))


@pytest.mark.parametrize(
    ("probabilities", "k", "expected"),
    [
        ([0.5, 0.3, 0.1], 3, 0.1),
        ([0.1, 0.5, 0.001, 0.3], 3, 0.1),  # one more: the sampled token's
        ([0.5, 0.3, 0.1], 20, 0.3),  # too few: the last may be the sampled token's
        ([0.5, 0.3, None], 3, 0.3),  # filled up at -9999
        ([0.5, None, 0.3, 0.1], 3, 0.1),
        ([0.5], 20, 1.0),
        ([None], 1, 1.0),
        ([], 5, 1.0),
    ],
)
def test_how_probable_an_unlisted_token_can_be(
    probabilities: list[float | None], k: int, expected: float
) -> None:
    listing = [(f"t{i}", -9999.0 if p is None else math.log(p)) for i, p in enumerate(probabilities)]
    assert expected == pytest.approx(most_unlisted(listing, k))


def test_an_empty_list_bounds_nothing_and_says_no_share() -> None:
    found = bound_masses({"": []}, 5, WORDS, GROUPS)
    assert ((0.0, 0.0, 0.0), (0.0, 1.0)) == (found.point, found.coverage_ends())
    assert (0.0, 1.0) == found.share_ends("female")


def test_where_everything_listed_is_something_else_the_ends_are_none() -> None:
    found = bound_masses({"": [(" It", 0.0)]}, 5, WORDS, GROUPS)
    assert (None, None) == found.share_ends("female")
    assert (None, None) == found.difference_ends("female", "male")
    assert (0.0, 0.0) == found.coverage_ends()


def test_a_listed_beginning_is_open_to_all_that_it_begins() -> None:
    found = bound_masses({"": logs(_The=0.5, _He=0.4, _x=0.1)}, 3, WORDS, GROUPS)
    assert (0.0, 0.5) == pytest.approx((found.low(["diverse"]), found.high(["diverse"])))
    assert (0.4 / 0.9, 1.0) == pytest.approx(found.share_ends("male"))


def test_a_continued_beginning_gives_its_part_of_the_mass() -> None:
    known = [replace(WORDS[2], tokens=(" The", "y")), *WORDS[:2]]
    listed = {"": logs(_The=0.5, _He=0.4, _x=0.1), " The": logs(y=0.3, n=0.6)}
    found = bound_masses(listed, 2, known, GROUPS)
    assert pytest.approx(0.15) == found.point[2]
    assert (0.15, 0.15) == pytest.approx((found.low(["diverse"]), found.high(["diverse"])))
    # With unknown tokens " They" may be cut another way: nothing is sure, and 0.1 after " The" is unlisted.
    unknown = bound_masses(listed, 2, WORDS, GROUPS)
    assert pytest.approx(0.15) == unknown.point[2]
    assert (0.0, 0.5 * (0.3 + 0.1)) == pytest.approx((unknown.low(["diverse"]), unknown.high(["diverse"])))
    at_most = {**listed, " The": logs(y=0.3, n=0.1)}
    assert 0.5 * (0.3 + 0.1) == pytest.approx(bound_masses(at_most, 2, WORDS, GROUPS).high(["diverse"]))


def test_a_word_that_may_begin_one_of_another_group_is_sure_for_both_together() -> None:
    words = [Sought("male", " He"), Sought("female", " Her"), Sought("diverse", " They")]
    entries = logs(_He=0.6, _x=0.3, _They=0.05)
    found = bound_masses({"": entries}, 3, words, GROUPS)
    assert (0.6, 0.0, 0.05) == pytest.approx(found.point)
    assert (0.0, 0.6) == pytest.approx((found.low(["male"]), found.high(["male"])))
    assert 0.65 == pytest.approx(found.low(GROUPS))
    # Listed or known as a token, " Her" does not begin with " He".
    listed = bound_masses({"": [*entries, (" Her", math.log(0.04))]}, 3, words, GROUPS)
    assert (0.6, 0.6) == pytest.approx((listed.low(["male"]), listed.high(["male"])))
    known = [replace(word, ids=(i,)) for i, word in enumerate(words)]
    assert 0.6 == pytest.approx(bound_masses({"": entries}, 3, known, GROUPS).low(["male"]))
    # After " He" the list tells.
    continued = bound_masses({"": entries, " He": logs(r=0.1, _is=0.8)}, 2, words, GROUPS)
    assert (0.54, 0.06) == pytest.approx(continued.point[:2])
    assert (0.48, 0.6) == pytest.approx((continued.low(["male"]), continued.high(["male"])))
    assert (0.0, 0.17) == pytest.approx((continued.low(["female"]), continued.high(["female"])))


def test_what_is_sure_for_two_groups_together_bounds_a_difference_from_either() -> None:
    words = [Sought("male", " He"), Sought("female", " Her"), Sought("diverse", " They")]
    found = bound_masses({"": logs(_He=0.6, _x=0.3, _They=0.1)}, 3, words, GROUPS)
    assert (-0.5 / 0.7, 0.1 / 0.7) == pytest.approx(found.difference_ends("diverse", "male"))


def test_where_only_one_group_can_have_mass_its_share_is_1() -> None:
    found = bound_masses({"": [(" The", 0.0)], " The": [("y", 0.0)]}, 1, WORDS, GROUPS)
    assert (0.0, 1.0) == (found.low(["diverse"]), found.high(["diverse"]))
    assert [(0.0, 0.0), (0.0, 0.0), (1.0, 1.0)] == [found.share_ends(group) for group in GROUPS]
    assert (0.0, 1.0) == found.difference_ends("diverse", "male")
    assert (-1.0, 0.0) == found.difference_ends("female", "diverse")


def test_target_words_that_share_an_unlisted_first_token_count_it_once() -> None:
    words = [Sought("diverse", " Non-binary", ids=(1, 2)), Sought("diverse", " Nonbinary", ids=(1, 3))]
    listed = {"": logs(_x=0.5, _y=0.1)}
    assert 0.1 == pytest.approx(bound_masses(listed, 2, words, GROUPS).high(["diverse"]))
    unknown = [replace(word, ids=None) for word in words]
    assert 0.2 == pytest.approx(bound_masses(listed, 2, unknown, GROUPS).high(["diverse"]))


def test_of_two_entries_of_equal_text_the_least_is_sure() -> None:
    entries = [(" He", math.log(0.3)), (" He", math.log(0.1)), (" It", math.log(0.6))]
    found = bound_masses({"": entries}, 3, WORDS, GROUPS)
    assert pytest.approx(0.1) == found.point[0]
    assert (0.1, 0.4) == pytest.approx((found.low(["male"]), found.high(["male"])))


def test_half_a_character_may_begin_what_goes_on_with_it() -> None:
    words = [Sought("male", " él"), Sought("female", " ella")]
    listed = {"": logs(**{"_\ufffd": 0.5, "_x": 0.5})}
    found = bound_masses(listed, 2, words, GROUPS)
    assert (0.0, 0.5) == pytest.approx((found.low(["male"]), found.high(["male"])))
    assert 0.0 == pytest.approx(found.high(["female"]))
    # Many tokens look like this one: a list holds it for sure only where it is whole.
    known = [Sought("male", " é", tokens=(" \ufffd",)), words[1]]
    assert 0.0 == bound_masses(listed, 2, known, GROUPS).low(["male"])


def test_an_empty_text_is_an_end_and_begins_no_word() -> None:
    """llama.cpp lists the end of text as "", and so half a character too."""
    listed = {"": [("", math.log(0.5)), *logs(_He=0.3, _She=0.1, _x=0.05)]}
    found = bound_masses(listed, 4, WORDS, GROUPS)
    assert (0.3, 0.3) == pytest.approx((found.low(["male"]), found.high(["male"])))
    assert (0.0, 0.05) == pytest.approx((found.low(["diverse"]), found.high(["diverse"])))
    assert (0.4, 0.45) == pytest.approx(found.coverage_ends())
    foreign = [Sought("male", "él"), Sought("female", "ella")]
    assert (0.55, 0.05) == pytest.approx(
        tuple(bound_masses(listed, 4, foreign, GROUPS).high([group]) for group in ("male", "female"))
    )


# --- means of cells: jobs, groups, contrasts -----------------------------------------------------------


def world(random: Random) -> tuple[list[CellShares], list[CellShares]]:
    """A small design, each cell a tiny model of its own: its exact shares, and what its lists bound."""
    exact, bounded = [], []
    for debiasing, template, job in itertools.product((0, 1), (1, 2, 3), ("a", "b", "c", "d")):
        group = "female-dominated" if job in "ab" else "male-dominated"
        cell = replace(CELL, job=job, job_group=group, template_id=template, debiasing_id=debiasing)
        while True:
            drawn = case(random, "none")
            if drawn is None or (true := drawn[0].exact()).shares is None:
                continue
            model, listed, k = drawn
            break
        target_words = [{"group": e.group, "text": e.text} for e in model.sought("none")]
        row = {"key": "k", "estimator": "top-k", "target_words": target_words, "listed": listed, "k": k}
        exact.append(replace(true, cell=cell))
        bounded.append(cell_shares(cell, row, GROUPS, contrast=("female", "male")))
    return exact, bounded


def made_of(cells: Sequence[CellShares]) -> dict[str, list[dict[str, Any]]]:
    return tables(
        cells,
        StudyCells(
            groups=GROUPS,
            contrast=("female", "male"),
            levels={"high": (1,)},
            min_coverage=0.01,
            interval="crossed",
            margins={"share": 0.05},
            seed=1,
        ),
    )


def misses_of_means(exact: Sequence[CellShares], bounded: Sequence[CellShares]) -> Iterator[str]:
    """Every job's, group's and contrast's exact number that its bounds, or its interval, do not hold."""
    pairs = (
        ("probe_jobs", "female_minus_male", ("difference_low", "difference_high")),
        ("probe_groups", "share", ("share_low", "share_high")),
        ("probe_groups", "share", ("ci_low", "ci_high")),
        ("tests", "estimate", ("bound_low", "bound_high")),
        ("tests", "estimate", ("ci_low", "ci_high")),
    )
    true, found = made_of(exact), made_of(bounded)
    for name, number, (low, high) in pairs:
        for a, b in zip(true[name], found[name], strict=True):
            if name == "tests" and a["kind"] not in ("crossed", "slope"):
                continue
            known = None not in (a[number], b[low], b[high])
            if known and not b[low] - ROUNDING <= a[number] <= b[high] + ROUNDING:
                yield f"{name} {number} {a[number]} is not in {b[low]}, {b[high]}"


@pytest.mark.parametrize("worlds", [range(6), pytest.param(range(6, 216), marks=pytest.mark.slow)])
def test_no_bound_of_a_mean_or_of_a_contrast_is_ever_missed(worlds: range) -> None:
    n_empty = 0
    for seed in worlds:
        exact, bounded = world(Random(f"means {seed}"))
        assert [] == list(misses_of_means(exact, bounded)), f"seed {seed}"
        n_empty += sum(x.shares is None for x in bounded)
    assert n_empty > len(worlds)  # cells in which nothing is listed are the trap


def test_leaving_out_where_nothing_is_listed_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = CrossedCells.complete
    monkeypatch.setattr(CrossedCells, "complete", lambda self: whole(self) & ~self.empty.any(axis=0))
    worlds = (world(Random(f"means {seed}")) for seed in range(40))
    assert any(list(misses_of_means(*one)) for one in worlds)


def test_a_template_in_which_nothing_is_listed_stays_in_the_bounds() -> None:
    """Three templates, nothing listed in one: the exact mean is 0.666, the old bounds were 0.364 to 0.500."""
    cells = []
    for template, ends in ((1, (0.364, 0.5)), (2, (0.364, 0.5)), (3, None)):
        cell = replace(CELL, template_id=template)
        nothing = CellShares(
            cell, "top-k", (0.0, 0.0, 0.0), 0.0, None, "no target word listed", ((None, None),) * 3
        )
        of = ends and ((0.0, 1.0), ends, (0.0, 1.0))
        shares = (0.3, 0.4, 0.3)
        cells.append(CellShares(cell, "top-k", shares, 1.0, shares, None, of) if of else nothing)
    row = next(row for row in made_of(cells)["probe_groups"] if row["gender"] == "female")
    assert (0.364 * 2 / 3, (0.5 * 2 + 1) / 3) == pytest.approx((row["share_low"], row["share_high"]))
    assert row["share_low"] < 0.666 < row["share_high"]
    assert (3, 1) == (row["n_templates"], row["n_empty"])
    assert row["ci_low"] <= row["share_low"]
    assert row["ci_high"] >= row["share_high"]
