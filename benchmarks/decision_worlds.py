"""How often gaps, ratios and verdicts about decisions are false, held and found, where the truth is known.

    python benchmarks/decision_worlds.py --out worlds.jsonl [--only PART] [WORLDS]

Each world samples people and cases anew; log-odds are the sum of what each adds. A world is a line of the
output, in percent, and the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit

from biaskit.compare.comparison import MODELS
from biaskit.measures.decisions.compare import between_models
from biaskit.measures.decisions.gaps import gaps_of
from biaskit.measures.decisions.order import decision_order
from biaskit.runs.shares.top_k import Sought, bound_masses
from biaskit.stats.arrays import FloatArray, IntArray
from biaskit.stats.cases import Decisions, within_cases
from biaskit.stats.contrasts import adjust
from biaskit.stats.crossed import crossed_test
from biaskit.stats.ratios import equal_groups, impact_ratios

N_WORLDS = 1_000
NODES = np.polynomial.hermite_e.hermegauss(80)
Counts = dict[str, float]


def mean_rate(centre: float, spread: float) -> float:
    """The mean probability about a centre in log-odds, over a normal spread."""
    nodes, weights = NODES
    return float((expit(centre + spread * nodes) * weights).sum() / weights.sum())


@dataclass(frozen=True)
class Crossed:
    """People of groups × cases: people in each group, cases, and in log-odds what each varies by."""

    people: tuple[int, ...]
    n_cases: int
    name: float = 0.15
    case: float = 1.0
    interaction: float = 0.0  # case × group
    effects: tuple[float, ...] = ()  # of each group
    centre: float = -0.3
    noise: float = 0.1
    samples: int = 0  # of a P; 0: exact
    missing: float = 0.0  # part of cells, harder cases more
    lost: float = 0.0  # part of the first group alone
    skewed: bool = False
    n_jobs: int = 1
    job: float = 0.0  # job × group, fixed

    def effect(self, group: int) -> float:
        return self.effects[group] if self.effects else 0.0

    def rate(self, group: int) -> float:
        spread = np.sqrt(self.name**2 + self.case**2 + self.interaction**2 + self.noise**2)
        return mean_rate(self.centre + self.effect(group), float(spread))

    def sample(self, rng: np.random.Generator) -> tuple[Decisions, FloatArray]:
        group = np.repeat(np.arange(len(self.people)), self.people)
        n, c = len(group), self.n_cases
        names = rng.standard_normal(n)
        if self.skewed:
            names = rng.exponential(1.0, n) - 1.0
        of_groups = np.array([self.effect(g) for g in range(len(self.people))])
        logit = self.centre + self.case * rng.standard_normal(c) + (self.name * names)[:, None]
        by_case = self.interaction * rng.standard_normal((len(self.people), c))
        logit = logit + (of_groups[:, None] + by_case)[group]
        logit = logit + self.noise * rng.standard_normal((n, c))
        job = np.arange(c) % self.n_jobs
        logit += self.job * np.where(group == 0, 1, -1)[:, None] * (job - (self.n_jobs - 1) / 2)
        p = expit(logit)
        x = rng.binomial(self.samples, p) / self.samples if self.samples else p
        keep = np.ones((n, c), bool)
        if self.missing:
            hard = np.argsort(np.argsort(logit.mean(axis=0))) < c / 2
            keep = rng.random((n, c)) > self.missing * np.where(hard, 1.5, 0.5)
        if self.lost:
            keep &= ~((group == 0)[:, None] & (rng.random((n, c)) < self.lost))
        a, b = np.indices((n, c))
        # the other attribute is spread evenly, as by design
        rows = Decisions(
            np.repeat(group, c),
            a.ravel() % 2,
            a.ravel(),
            b.ravel(),
            job[b.ravel()] if self.n_jobs > 1 else None,
        )
        return rows.among(keep.ravel()), x.ravel()[keep.ravel()]


@dataclass(frozen=True)
class Chosen:
    """Rankings: k people of all groups are shown, one is chosen by softmax of what names add."""

    k: int
    people: int  # of each group
    n_cases: int = 1_000
    name: float = 0.5
    effects: tuple[float, ...] = ()
    place: float = 0.5  # what the first place adds

    def sample(self, rng: np.random.Generator) -> tuple[Decisions, FloatArray]:
        k, h = self.k, self.n_cases
        group = np.tile(np.arange(k), (h, 1))
        person = group * self.people + rng.integers(0, self.people, (h, k))
        names = self.name * rng.standard_normal(k * self.people)
        effects = np.array(self.effects) if self.effects else np.zeros(k)
        first = np.argmax(rng.random((h, k)), axis=1)[:, None] == np.arange(k)
        utility = names[person] + effects[group] + self.place * first + rng.gumbel(size=(h, k))
        x = (utility == utility.max(axis=1, keepdims=True)).astype(float)
        case = np.repeat(np.arange(h), k)
        return Decisions(group.ravel(), np.zeros(h * k, int), person.ravel(), case, None, k), x.ravel()


@dataclass(frozen=True)
class Postings:
    """Logs: other people for each posting; more women where more are chosen; 0/1 by one probability."""

    n_cases: int
    size: int  # mean people of a posting
    shares: tuple[float, ...] = (0.5, 0.5)
    confounded: float = 0.0
    ratios: tuple[float, ...] = ()
    case: float = 1.0
    interaction: float = 0.0
    centre: float = -1.0
    again: float = 0.0  # part of people who applied before
    pool: int = 0  # people of each group, who all come again; 0: each once
    name: float = 0.0

    def sample(self, rng: np.random.Generator) -> tuple[Decisions, FloatArray]:
        sizes = rng.poisson(self.size - 2, self.n_cases) + 2
        case = np.repeat(np.arange(self.n_cases), sizes)
        level = self.case * rng.standard_normal(self.n_cases)
        log_shares = np.log(self.shares) + np.outer(level, np.eye(len(self.shares))[0]) * self.confounded
        utility = log_shares[case] + rng.gumbel(size=(len(case), len(self.shares)))
        group = np.argmax(utility, axis=1)
        by_case = self.interaction * rng.standard_normal((self.n_cases, len(self.shares)))
        person = np.arange(len(case))
        if self.pool:
            person = group * self.pool + rng.integers(0, self.pool, len(case))
            once = np.unique(np.stack([case, person]), axis=1, return_index=True)[1]
            case, group, person = case[once], group[once], person[once]
        names = self.name * rng.standard_normal(int(person.max()) + 1)[person]
        p = expit(self.centre + level[case] + by_case[case, group] + names)
        if self.ratios:
            p = p * np.array(self.ratios)[group]
        if self.again:
            old = rng.random(len(case)) < self.again
            for g in range(len(self.shares)):
                mine = np.flatnonzero(group == g)
                person[mine[old[mine]]] = rng.choice(mine, int(old[mine].sum()))
        x = (rng.random(len(case)) < p).astype(float)
        return Decisions(group, np.zeros(len(case), int), person, case, None), x


@dataclass(frozen=True)
class Rows:
    """Rows that are independent: n of each group, 0/1 by its own rate; neither cases nor people repeat."""

    n: tuple[int, ...]
    rates: tuple[float, ...]

    def sample(self, rng: np.random.Generator) -> tuple[Decisions, FloatArray]:
        group: IntArray = np.repeat(np.arange(len(self.n)), self.n)
        x = (rng.random(len(group)) < np.array(self.rates)[group]).astype(float)
        return Decisions(group, np.zeros(len(group), int), np.arange(len(group)), None), x


@dataclass(frozen=True)
class Pairs:
    """A woman and a man shown together, in both orders, one of them chosen."""

    n_pairs: int
    n_cases: int
    pair: float = 0.3
    effect: float = 0.0
    first: float = 1.0  # what the first place adds
    first_by_case: float = 0.5
    interaction: float = 0.3  # case × sex
    noise: float = 0.3

    def probabilities(self, rng: np.random.Generator) -> FloatArray:
        """P(woman) by pair, case and whether she is first: `[pairs, cases, 2]`."""
        pair = self.pair * rng.standard_normal((self.n_pairs, 1)) + self.effect
        both = pair + self.interaction * rng.standard_normal(self.n_cases)
        place = self.first + self.first_by_case * rng.standard_normal(self.n_cases)
        noise = self.noise * rng.standard_normal((self.n_pairs, self.n_cases, 2))
        return expit(both[:, :, None] + place[:, None] * np.array([1.0, -1.0]) + noise)

    def sample(self, rng: np.random.Generator) -> tuple[Decisions, FloatArray]:
        x = self.probabilities(rng).mean(axis=2).ravel()
        a, b = (code.ravel() for code in np.indices((self.n_pairs, self.n_cases)))
        group, person = np.repeat([0, 1], len(x)), np.concatenate([a, a + self.n_pairs])
        rows = Decisions(group, np.zeros(2 * len(x), int), person, np.tile(b, 2), None, 2, paired=True)
        return rows, np.concatenate([x, 1 - x])

    def frame(self, rng: np.random.Generator) -> pd.DataFrame:
        p, made = self.probabilities(rng), []
        for a, b, order in np.ndindex(p.shape):
            own = {"case": f"c{b}", "pair": f"p{a}", "race": ""}
            woman = {"person": f"w{a}", "sex": "female", "position": 1 + order, "p_yes": p[a, b, order]}
            man = {"person": f"m{a}", "sex": "male", "position": 2 - order, "p_yes": 1 - p[a, b, order]}
            made += [own | woman, own | man]
        return pd.DataFrame(made).assign(question="invite", wording="", job="")


RACES = ("White", "Black", "Asian", "Hispanic")


@dataclass(frozen=True)
class Two:
    """Two models that decide on the same people and cases; odds change by `level`, women's by `change`."""

    each: int  # people of each sex and race
    n_cases: int
    n_races: int = 4
    differ: float | None = None  # of 0/1: part of cells that the second model draws anew; None: exact P
    change: float = 0.0  # of women's log-odds, in the second model
    level: float = 0.0  # of all log-odds, in the second model
    effect: float = 0.0  # of women's log-odds, in both
    women: float = 1.0  # part of women's rows that there are
    own: float = 0.0  # SD of what a model adds of its own to a name, and to sex × case
    name: float = 0.15
    interaction: float = 0.1  # sex × case
    centre: float = -0.3
    once: bool = False  # each person in one case alone, as in postings
    lists: tuple[int, int] | None = None  # how many tokens each model lists; None: all

    def truth(self) -> float:
        """The change of women − men."""
        spread = float(np.sqrt(1 + self.name**2 + self.interaction**2 + 2 * self.own**2))
        rates = [mean_rate(self.centre + x, spread) for x in (self.effect, 0.0)]
        later = [mean_rate(self.centre + self.level + x, spread) for x in (self.effect + self.change, 0.0)]
        return later[0] - later[1] - (rates[0] - rates[1])

    def frame(self, rng: np.random.Generator) -> pd.DataFrame:
        """Rows of decisions.csv of models a and b."""
        n, c = 2 * self.n_races * self.each, self.n_cases
        woman, race = np.arange(n) % 2 == 0, np.arange(n) // 2 % self.n_races
        places = (n, c) if self.once else (n, 1)
        sex = (~woman).astype(int)

        def parts(name: float, interaction: float) -> FloatArray:
            by_case: FloatArray = interaction * rng.standard_normal((2, c))[sex]
            return by_case + name * rng.standard_normal(places)

        both = self.centre + rng.standard_normal(c) + parts(self.name, self.interaction)
        both = both + self.effect * woman[:, None]
        logit = [both + parts(self.own, self.own), both + parts(self.own, self.own)]
        logit[1] = logit[1] + self.level + self.change * woman[:, None]
        luck = rng.random((n, c))
        anew = np.where(rng.random((n, c)) < (self.differ or 0.0), rng.random((n, c)), luck)
        a, b = np.indices((n, c))
        person = a * c + b if self.once else a
        kept = ((rng.random((n, c)) < self.women) | ~woman[:, None]).ravel()
        made = []
        for model, u in enumerate((luck, anew)):
            p = expit(logit[model])
            rows: dict[str, Any] = {"model": "ab"[model], "case": b.ravel(), "person": person.ravel()}
            rows |= {
                "sex": np.where(woman, "female", "male")[a.ravel()],
                "race": np.array(RACES)[race[a.ravel()]],
            }
            rows |= {"selected": (u < p).astype(float).ravel()}
            own = pd.DataFrame(rows).astype({"case": str, "person": str})
            own["p_yes"] = None if self.differ is not None else p.ravel()
            own["p_low"] = own["p_high"] = own["p_yes"]
            if self.lists and self.lists[model]:
                own = own.assign(**listed(p.ravel(), self.lists[model], rng))
            missing = own["p_yes"].isna() if self.lists else ~kept
            made.append(own[kept & ~missing])
        return pd.concat(made).assign(question="hire", wording="", job="", position=None, n_answers=None)


def listed(p: FloatArray, k: int, rng: np.random.Generator) -> dict[str, FloatArray]:
    """What a list of the k likeliest tokens tells of P(yes) `[n]`: coverage 0.4 to 0.8, ten other tokens."""
    words = [
        Sought(group, text, (text,)) for group, text in (("y", "Yes"), ("y", "yes"), ("n", "No"), ("n", "no"))
    ]
    found = np.full((len(p), 3), np.nan)
    for row, share in enumerate(p):
        coverage, capital = rng.uniform(0.4, 0.8), rng.uniform(0.7, 0.98)
        masses = [share * capital, share * (1 - capital), (1 - share) * capital, (1 - share) * (1 - capital)]
        others = (1 - coverage) * rng.dirichlet(np.full(10, 0.5))
        every = [*(coverage * np.array(masses)), *others]
        texts = [*(word.text for word in words), *(f"w{n}" for n in range(10))]
        best = sorted(
            zip(texts, np.log(np.maximum(every, 1e-300)).tolist(), strict=True), key=lambda x: -x[1]
        )
        bounds = bound_masses({"": best[:k]}, k, words, ("y", "n"))
        if sum(bounds.point):
            found[row] = bounds.point[0] / sum(bounds.point), *bounds.share_ends("y")
    return dict(zip(("p_yes", "p_low", "p_high"), found.T, strict=True))


World = Crossed | Chosen | Pairs | Postings | Rows


def of_gap(world: World, n_worlds: int, truth: float = 0.0) -> Counts:
    """How often the gap of group 0 against 1 has p < 0.05, its interval the truth; true and estimated SD."""
    found, held, estimates, variances, undefined = 0, 0, [], [], 0
    for rng in generators(world, n_worlds):
        rows, x = world.sample(rng)
        gap = within_cases(rows, x, 0, 1)
        test = None if gap is None else crossed_test(gap.estimate, gap.spread)
        if gap is None or test is None or test.ci95 is None or test.p_value is None:
            undefined += 1
            continue
        found += test.p_value < 0.05
        held += test.ci95[0] <= truth <= test.ci95[1]
        estimates.append(gap.estimate)
        variances.append(float(gap.spread.variance))  # type: ignore[arg-type]
    n = max(n_worlds - undefined, 1)
    sd = float(np.sqrt(np.mean(variances)) / np.std(estimates))
    return {
        "found": 100 * found / n,
        "held": 100 * held / n,
        "sd": sd,
        "undefined": 100 * undefined / n_worlds,
    }


def of_ratios(world: World, n_worlds: int, truth: FloatArray, *, counted: bool) -> Counts:
    """How often a table has a false `below`, a false `above`, any of them; and group 1 is found below."""
    k = len(truth)
    names = ("false below", "false above", "below", "above", "p_equal", "undefined", "held")
    counts = dict.fromkeys(names, 0)
    for rng in generators(world, n_worlds):
        rows, x = world.sample(rng)
        ratios = impact_ratios(rows, x, np.ones(k, bool), counted=counted)
        if np.isnan(ratios.low).all():
            counts["undefined"] += 1
            continue
        n = np.bincount(rows.group, minlength=k).astype(float)
        verdicts = np.array([ratios.verdict(g, n) for g in range(k)])
        below, above = verdicts == "below", verdicts == "above"
        counts["false below"] += bool((below & (truth >= 0.8 - 1e-9)).any())
        counts["false above"] += bool((above & (truth <= 0.8 + 1e-9)).any())
        counts["held"] += bool(((ratios.low <= truth + 1e-9) & (truth - 1e-9 <= ratios.high)).all())
        counts["below"] += bool(below[-1])
        counts["above"] += bool(above[0])
        if truth.min() == 1.0:
            equal = equal_groups(ratios, rng)
            counts["p_equal"] += equal is not None and equal[2] < 0.05
    return {name: 100 * n / n_worlds for name, n in counts.items()}


def frame_of(world: Crossed, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of decisions.csv of a world with groups sex × race, women first."""
    rows, x = world.sample(rng)
    races = np.array(["White", "Black", "Asian", "Hispanic"])
    half = len(world.people) // 2
    names = {"person": rows.person, "case": rows.case, "job": 0 if rows.job is None else rows.job}
    frame = pd.DataFrame({**names, "p_yes": x, "race": races[rows.group % half]})
    return frame.assign(
        sex=np.where(rows.group < half, "female", "male"), question="hire", wording="", position=None
    )


def of_pages(world: Crossed, n_worlds: int) -> Counts:
    """How many pages of sex and race name a direction, and how many call a lead equivalent."""
    named = same = 0
    for rng in generators(world, n_worlds):
        tests = [gap.contrast("m", 0.05) for gap in gaps_of(frame_of(world, rng))]
        judged = adjust([test for test in tests if test.context == "hire"])
        named += any(row.verdict in ("higher", "lower") for row in judged)
        same += judged[0].verdict == "equivalent"
    return {"named": 100 * named / n_worlds, "equivalent": 100 * same / n_worlds}


def of_models(world: Two, n_worlds: int) -> Counts:
    """How many pages of two models name a direction; how often the change of women − men is found, held."""
    asked = SimpleNamespace(name="hire", choose=0)
    study = SimpleNamespace(reference_race="White", margin={"gap": 0.05})
    design: Any = SimpleNamespace(study=study, questions=[asked], people=())
    names = ("named", "named change", "found", "held", "undefined", "differ")
    counts, defined = dict.fromkeys(names, 0.0), 0
    for rng in generators(world, n_worlds):
        frame = world.frame(rng)
        tests = []
        for model, own in frame.groupby("model"):
            tests += [gap.contrast(str(model), 0.05) for gap in gaps_of(own)]
        changes, _ = between_models(frame.to_dict("records"), {"a": "", "b": ""}, design)
        judged = adjust([*tests, *changes])
        named = [row.contrast for row in judged if row.verdict in ("higher", "lower")]
        counts["named"] += bool(named)
        counts["named change"] += MODELS in named
        if world.lists is None:
            counts["differ"] += float(np.ptp(frame["selected"].to_numpy().reshape(2, -1), axis=0).sum())
        [sex] = [row for row in changes if row.group_b == "male"]
        if sex.p_value is None or sex.ci_low is None:
            counts["undefined"] += 1
            continue
        defined += 1
        counts["found"] += sex.p_value < 0.05
        counts["held"] += sex.ci_low <= world.truth() <= sex.ci_high
    shares = {name: 100 * counts[name] / n_worlds for name in ("named", "named change", "undefined")}
    of_defined = {name: 100 * counts[name] / max(defined, 1) for name in ("found", "held")}
    return shares | of_defined | {"differ": counts["differ"] / n_worlds, "truth": 100 * world.truth()}


def of_lists(world: Two, n_worlds: int) -> Counts:
    """How often women − men from lists of the likeliest tokens is found, its interval the truth."""
    spread = float(np.sqrt(1 + world.name**2 + world.interaction**2 + 2 * world.own**2))
    truth = mean_rate(world.centre + world.effect, spread) - mean_rate(world.centre, spread)
    found = held = inside = 0
    widths = []
    for rng in generators(world, n_worlds):
        frame = world.frame(rng)
        gap = next(gap for gap in gaps_of(frame[frame["model"] == "a"]) if gap.row["contrast"] == "sex")
        test = gap.contrast("a", 0.05)
        found += test.p_value is not None and test.p_value < 0.05
        held += test.ci_low <= truth <= test.ci_high
        low, high = test.bounds
        inside += low <= truth <= high
        widths.append(high - low)
    shares = {"found": found, "held": held, "between the bounds": inside}
    percent = {name: 100 * n / n_worlds for name, n in shares.items()}
    return percent | {"bounds": 100 * float(np.mean(widths)), "truth": 100 * truth}


def of_flips(world: Crossed, n_worlds: int) -> Counts:
    """Different decisions of a woman and a man less those of two of one sex, in points: mean and SD."""
    apart = []
    for rng in generators(world, n_worlds):
        row = gaps_of(frame_of(world, rng))[0].row
        apart.append(row["to_a"] + row["to_b"] - row["same_group"])
    points = 100 * np.array(apart)
    return {
        "mean": float(points.mean()),
        "se": float(points.std() / np.sqrt(n_worlds)),
        "sd": float(points.std()),
    }


def of_places(world: Pairs | Chosen, n_worlds: int) -> Counts:
    """How often the interval of the first place holds the mean over very many cases."""
    many = replace(world, n_cases=20_000)
    rng = np.random.default_rng(1)
    if isinstance(world, Pairs):
        p = replace(many, n_pairs=40).probabilities(rng)
        truth = float((p[:, :, 0] + 1 - p[:, :, 1]).mean() / 2)
    else:
        truth = float(np.mean([first_chosen(many, rng).mean() for _ in range(20)]))
    held, widths = 0, []
    for rng in generators(world, n_worlds):
        if isinstance(world, Pairs):
            frame = world.frame(rng)
        else:
            chosen = first_chosen(world, rng)
            one = {"case": np.arange(world.n_cases), "person": "a", "position": 1, "selected": chosen}
            frame = pd.DataFrame(one).assign(question="", wording="", job="", sex="", race="")
        row = decision_order(frame, choice=2 if isinstance(world, Pairs) else world.k).iloc[0]
        held += row["ci_low"] <= truth <= row["ci_high"]
        widths.append(row["ci_high"] - row["ci_low"])
    return {"held": 100 * held / n_worlds, "width": 100 * float(np.mean(widths)), "truth": 100 * truth}


def first_chosen(world: Chosen, rng: np.random.Generator) -> FloatArray:
    """Whether the one shown first is chosen, in each case `[H]`."""
    group = np.tile(np.arange(world.k), (world.n_cases, 1))
    names = world.name * rng.standard_normal(world.k * world.people)
    person = group * world.people + rng.integers(0, world.people, group.shape)
    utility = names[person] + world.place * (group == 0) + rng.gumbel(size=group.shape)
    return (np.argmax(utility, axis=1) == 0).astype(float)


def generators(world: object, n: int) -> Iterator[np.random.Generator]:
    """A generator for each sample, the same whatever worlds there are beside."""
    for seed in range(n):
        yield np.random.default_rng([zlib.crc32(repr(world).encode()), seed])


def effect_of_ratio(world: Crossed, ratio: float) -> float:
    """The effect in log-odds with which a group's mean rate is a part of that of one without."""
    whole = world.rate(0)
    return float(brentq(lambda e: replace(world, effects=(e,)).rate(0) - ratio * whole, -6, 6))


def crossed_ratios(
    people: tuple[int, ...], low: int, ratio: float, **more: float
) -> tuple[Crossed, FloatArray]:
    """A crossed world in which the last `low` groups have a part of the others' rate."""
    world = Crossed(people, 32, **more)  # type: ignore[arg-type]
    k = len(people)
    effect = effect_of_ratio(world, ratio)
    effects = tuple(0.0 if g < k - low else effect for g in range(k))
    return replace(world, effects=effects), np.where(np.arange(k) < k - low, 1.0, ratio)


def worlds() -> Iterator[tuple[str, Callable[[int], Counts]]]:
    """Every world by name."""

    def gap(name: str, world: World, truth: float = 0.0) -> tuple[str, Callable[[int], Counts]]:
        return f"gap {name}", lambda n: of_gap(world, n, truth)

    def apart(world: Crossed) -> float:
        return world.rate(0) - world.rate(1)

    for people in (4, 8, 20, 40):
        for cases in (4, 8, 32):
            for name in (0.0, 0.15, 0.3):
                for interaction in (0.0, 0.3):
                    half = (people // 2,) * 2
                    world = Crossed(half, cases, name, interaction=interaction)
                    yield gap(f"null {people} names {cases} cases sd {name} case×sex {interaction}", world)
    for effect in (0.2, 0.4):
        for interaction in (0.0, 0.3):
            world = Crossed((10, 10), 32, interaction=interaction, effects=(effect, 0.0))
            yield gap(f"effect {effect} 20 names 32 cases case×sex {interaction}", world, apart(world))
    plain = Crossed((10, 10), 32)
    for title, world in {
        "20 % missing": replace(plain, missing=0.2),
        "20 % missing sd 0.3": replace(plain, missing=0.2, name=0.3, interaction=0.3),
        "3 + 20 people": Crossed((3, 20), 32),
        "3 + 20 people 0.3": Crossed((3, 20), 32, 0.3, interaction=0.3),
        "2 + 20 people": Crossed((2, 20), 32, 0.3),
        "skewed names": replace(plain, skewed=True, name=0.3),
        "1 sample": replace(plain, samples=1),
        "10 samples": replace(plain, samples=10),
        "10 % of one group lost": replace(plain, lost=0.1),
        "10 % lost, harder cases more": replace(plain, lost=0.05, missing=0.05),
        "4 jobs that differ": replace(plain, n_jobs=4, job=0.3),
        "4 jobs 8 cases": Crossed((10, 10), 8, 0.15, n_jobs=4, job=0.3),
        "10 jobs": Crossed((10, 10), 40, 0.15, n_jobs=10, interaction=0.3),
    }.items():
        yield gap(title, world)
    for k in (8, 4, 2):
        for people in (5, 10, 25, 100):
            yield gap(f"one of {k} {people} a group", Chosen(k, people))
    for people in (5, 100):
        yield gap(f"one of 8 {people} a group sd 0", Chosen(8, people, name=0.0))
        yield gap(f"one of 8 {people} a group 200 cases", Chosen(8, people, 200))
    for again in (0.0, 0.05, 0.3):
        for confounded in (0.0, 0.8):
            for n, size in ((40, 10), (100, 8), (300, 4)):
                world = Postings(n, size, confounded=confounded, interaction=0.3, again=again)
                yield gap(f"postings {n}×{size} confounded {confounded} again {again}", world)

    for pool, size in ((10, 3), (10, 8), (40, 4)):
        for sd in (0.0, 0.5, 1.0):
            world = Postings(200, size, pool=pool, name=sd)
            yield gap(f"postings 200×{size} of a pool of {pool} sd {sd}", world)

    def ratio(
        name: str, world: World, truth: FloatArray, counted: bool
    ) -> tuple[str, Callable[[int], Counts]]:
        return f"ratio {name}", lambda n: of_ratios(world, n, truth, counted=counted)

    for k in (2, 4, 8):
        for low in sorted({1, k // 2, k - 1}):
            for samples in (0, 1):
                for each in (5, 10):
                    world, truth = crossed_ratios((each,) * k, low, 0.8, samples=samples, interaction=0.1)
                    what = "0/1" if samples else "P"
                    yield ratio(f"0.8 of {low}/{k}, {k}×{each} names {what}", world, truth, bool(samples))
            truth = np.where(np.arange(k) < k - low, 1.0, 0.8)
            for n in (100, 300, 1000):
                rows = Rows((n,) * k, tuple(0.3 * truth))
                yield ratio(f"0.8 of {low}/{k}, rows {n}", rows, truth, True)
            for rate in (0.1, 0.3):
                name = f"0.8 of {low}/{k}, rows 30 beside 300 rate {rate}"
                sizes = (30,) + (300,) * (k - 1)
                yield ratio(name, Rows(sizes, tuple(rate * truth)), truth, True)
                yield ratio(
                    f"{name}, the rare one low", Rows(sizes, tuple(rate * truth[::-1])), truth[::-1], True
                )
            posted = Postings(100, 5 * k, (1 / k,) * k, ratios=tuple(truth))
            yield ratio(f"0.8 of {low}/{k}, postings", posted, truth, True)
    for k, each in ((4, 10), (8, 5)):
        for samples in (0, 1):
            world, truth = crossed_ratios((each,) * k, 1, 0.6, samples=samples)
            yield ratio(f"0.6 {k}×{each} {'0/1' if samples else 'P'}", world, truth, bool(samples))
            world, truth = crossed_ratios((each,) * k, 1, 1.0, samples=samples)
            yield ratio(f"1.0 {k}×{each} {'0/1' if samples else 'P'}", world, truth, bool(samples))
    for people in (10, 100):
        yield ratio(f"1.0 one of 8, {people} a group", Chosen(8, people), np.ones(8), True)
    yield ratio("1.0 rows 8×125", Rows((125,) * 8, (0.125,) * 8), np.ones(8), True)

    for n_pairs, n_cases in ((3, 4), (5, 8), (20, 32)):
        for pair in (0.0, 0.15, 0.5):
            yield gap(f"pairs {n_pairs}×{n_cases} sd {pair}", Pairs(n_pairs, n_cases, pair))
    yield gap("pairs 20×32, 0.2", Pairs(20, 32, effect=0.2))
    plain = Crossed((5,) * 8, 32)
    for name in (0.0, 0.15, 0.3):
        yield f"pages null sd {name}", partial(of_pages, replace(plain, name=name))
        yield (
            f"pages null sd {name} case×group 0.3",
            partial(of_pages, replace(plain, name=name, interaction=0.3)),
        )
    women = (0.3,) * 4 + (0.0,) * 4
    yield "pages women 0.3", partial(of_pages, replace(plain, effects=women))
    for own in (0.0, 0.3):
        for each, n_races, n_cases in ((5, 4, 32), (10, 1, 32), (3, 1, 6)):
            yield (
                f"models P own {own} {n_races} races × {each} × {n_cases}",
                partial(of_models, Two(each, n_cases, n_races, own=own)),
            )
    for differ in (1.0, 0.05, 0.02, 0.01):
        for once in (False, True):
            for n_races in (1, 4) if differ in (1.0, 0.02) else (1,):
                world = Two(10 if n_races == 1 else 3, 20, n_races, differ, once=once)
                yield f"models 0/1 differ {differ} races {n_races} once {once}", partial(of_models, world)
    for once in (False, True):
        for women in (0.15, 1.0):
            for level in (-0.06, -0.12, -0.3):
                world = Two(10, 20, 1, 0.0, level=level, women=women, once=once)
                yield f"models 0/1 level {level} women {women} once {once}", partial(of_models, world)
        for change in (0.06, 0.15, 0.4):
            world = Two(10, 20, 1, 0.0, change, once=once)
            yield f"models 0/1 change {change} once {once}", partial(of_models, world)
    for k in (5, 10):
        for effect in (0.0, 0.4):
            lists = Two(10, 20, 1, effect=effect, lists=(k, 0))
            yield f"lists {k} effect {effect}", partial(of_lists, lists)
            yield f"lists change {k} effect {effect}", partial(of_models, lists)
    for each, name in ((10, 0.0), (10, 0.5), (2, 0.5)):
        yield f"flips null 2×{each} sd {name}", partial(of_flips, Crossed((each, each), 32, name, noise=0.5))
    for pair_world in (Pairs(5, 8), Pairs(20, 32), Pairs(20, 32, first_by_case=0.0), Pairs(20, 8, first=2.0)):
        yield f"order {pair_world}", partial(of_places, pair_world)
    for k, place in ((8, 0.5), (8, 2.5), (4, 0.0)):
        yield f"order one of {k} place {place}", partial(of_places, Chosen(k, 100, 300, place=place))


def main() -> None:
    """Make every world that the output lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("worlds", type=int, nargs="?", default=N_WORLDS)
    options = parser.parse_args()
    lines = options.out.read_text(encoding="utf-8").splitlines() if options.out.is_file() else []
    done = {json.loads(line)["world"] for line in lines}
    for name, made in worlds():
        if name not in done and options.only in name:
            found = {key: round(value, 3) for key, value in made(options.worlds).items()}
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"world": name, "n": options.worlds, **found}) + "\n")


if __name__ == "__main__":
    main()
