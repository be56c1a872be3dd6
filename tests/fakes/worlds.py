"""Worlds whose truth is known, and models that answer from them: numpy's numbers, the tool's everything else.

A model of a world keeps the contract of `models/base.py` and stands where `open_scorer` and `open_generator`
would give one (`opened`): design, rows on disk, analysis and findings are those of every other run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from biaskit.corpora.loaders import english_counts
from biaskit.models.counting import SampledScorer
from biaskit.models.options import ScoringOptions
from biaskit.models.scripted import rendered_plainly
from biaskit.records import (
    Answered,
    Estimator,
    EstimatorName,
    LogProb,
    ModelIdentity,
    Plan,
    Prompt,
    PromptFormat,
    Sample,
    SampleRequest,
    Scored,
    ScoreRequest,
)

FloatArray = NDArray[np.float64]
FEMALE, MALE = "female-dominated", "male-dominated"
R = TypeVar("R")

# --- the prober's worlds -------------------------------------------------------------------------------

DIVERSE = 0.1
"""Share of "they" in every cell; women and men divide the rest."""
SPELLINGS = {"She": ("female", 0.7), "she": ("female", 0.3), "He": ("male", 0.7), "he": ("male", 0.3)}
SPELLINGS |= {"They": ("diverse", 0.7), "they": ("diverse", 0.3)}
N_OTHER = 60
"""Other words after a prompt: the rest of the probability lies on them, the r-th has a part of 1/r."""
FAIR = "Be fair."
"""The debiasing prompt of worlds that have one."""
Place = tuple[int, ...]
"""Model, bias type, job and template of a cell; and 1 under the debiasing prompt."""
MOST_SAMPLES = 400
"""Samples of a cell that differ; no study here asks for more."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviations on the logit scale: of jobs, templates, cells, and of what a model has alone."""

    job: float = 0.6
    template: float = 0.5
    cell: float = 0.5
    of_model: float = 0.3  # its own effects of jobs and of templates, with several models

    def whole(self, *, several: bool) -> float:
        """Of one cell over all that is drawn."""
        own = 2 * self.of_model**2 if several else 0.0
        return math.sqrt(self.job**2 + self.template**2 + self.cell**2 + own)


@cache
def centre(mean: float, spread: float) -> float:
    """The μ at which expit(μ + normal of this standard deviation) has the mean."""
    points, weights = hermegauss(80)
    weights = weights / weights.sum()
    return float(brentq(lambda mu: float(weights @ expit(mu + spread * points)) - mean, -40.0, 40.0))


@dataclass(frozen=True, slots=True)
class ProbeKind:
    """One kind of world of the prober.

    `women`: true mean of women among women and men in both groups of jobs; `difference`: what the groups'
    true shares of women differ by, among women and men; `apart`: each model's from that of the one named
    before. `they`: what moves the share of "they" from `diverse` to `diverse` + 0.3, and moves no share of
    women among women and men. `coverage`: median probability on the target words; `follows`: by how many
    logits it rises with each standard deviation of a cell's share. `instructed`: what a debiasing prompt
    changes of the difference; None: there is none. `slope`: of the jobs' true shares on their workforce
    shares, in its place. `frames`: templates are paraphrases of so many.
    """

    jobs: int = 10  # of each group
    templates: int = 10
    models: int = 1
    bias_types: tuple[str, ...] = ("implicit",)
    estimator: EstimatorName = "exact"
    women: float = 0.5
    difference: float = 0.0
    apart: float = 0.0
    coverage: float = 0.5
    follows: float = 0.0
    instructed: float | None = None
    slope: float | None = None
    frames: int | None = None
    diverse: float = DIVERSE
    they: Literal["", "groups", "models", "help"] = ""
    k: int = 5
    spread: Spread = field(default=Spread())

    def true_share(self, group: str, model: int = 0) -> float:
        """Women's share among women and men, over all jobs and templates that there could be."""
        own = self.apart * (model - (self.models - 1) / 2)
        half = self.difference / 2
        return self.women + own + (half if group == FEMALE else -half)

    def diverse_at(self, place: Place) -> float:
        """The share of "they" in a cell."""
        moved = {"groups": place[2] < self.jobs, "models": place[0] > 0, "help": len(place) > 4}
        return self.diverse + 0.3 * moved.get(self.they, False)

    def centres(self, spread: float) -> FloatArray:
        """Where shares of women among women and men lie, in logits: `[models, jobs of both groups]`."""
        if self.slope is not None:
            line = 0.5 + self.slope * (workforce_shares(self.jobs) - 0.5)
            return np.array([[centre(share, spread) for share in line.tolist()]] * self.models)
        of_groups = [
            [centre(self.true_share(group, model), spread) for group in (FEMALE, MALE)]
            for model in range(self.models)
        ]
        return np.array(of_groups).repeat(self.jobs, axis=1)


def workforce_shares(n: int) -> FloatArray:
    """Women's shares in the workforce: n jobs mostly held by women, then n mostly held by men."""
    return np.array([*np.linspace(0.95, 0.55, n), *np.linspace(0.45, 0.05, n)])


def write_jobs(path: Path, workforce: FloatArray) -> None:
    """The list of jobs with groups and workforce shares."""
    lines = [f"job{i:02},{FEMALE if x >= 0.5 else MALE},{x:.4f}" for i, x in enumerate(workforce.tolist())]
    path.write_text("\n".join(["item,group,share", *lines, ""]), "ascii")


@dataclass(frozen=True, slots=True)
class ProbeWorld:
    """Drawn shares and coverages, `[models, bias types, jobs of both groups, templates]`."""

    kind: ProbeKind
    shares: FloatArray  # of women among women and men
    coverage: FloatArray
    seed: tuple[int, ...]
    instructed: FloatArray | None = None  # shares under the debiasing prompt

    @classmethod
    def sample(cls, kind: ProbeKind, *seed: int) -> ProbeWorld:
        """Jobs, templates and cells anew; models share the effects of both but for some of their own."""
        rng, sd = np.random.default_rng(seed), kind.spread
        several, n_jobs, j = kind.models > 1, 2 * kind.jobs, kind.templates
        shape = (kind.models, len(kind.bias_types), n_jobs, j)
        of_templates = rng.normal(0, sd.template, (shape[1], 1, kind.frames or j))
        of_templates = of_templates.repeat(j // (kind.frames or j), axis=-1)
        effects = rng.normal(0, sd.job, (n_jobs, 1)) + of_templates
        effects = effects + rng.normal(0, sd.cell, shape)
        if several:
            own = (kind.models, shape[1])
            effects = effects + rng.normal(0, sd.of_model, (*own, n_jobs, 1))
            effects = effects + rng.normal(0, sd.of_model, (*own, 1, j))
        whole = sd.whole(several=several)
        if kind.frames:  # paraphrases share what a question does to either group of jobs
            own = rng.normal(0, sd.of_model, (shape[1], 2, kind.frames))
            effects = effects + own.repeat(kind.jobs, axis=1).repeat(j // kind.frames, axis=2)
            whole = math.hypot(whole, sd.of_model)
        mu = kind.centres(whole)
        around = kind.follows * effects / whole + rng.normal(0, 0.5, shape)
        coverage = expit(logit(kind.coverage) + around)
        shares, instructed = expit(mu[:, None, :, None] + effects), None
        if kind.instructed is not None:
            own = rng.normal(0, sd.of_model, (n_jobs, 1)) + rng.normal(0, sd.of_model, (shape[1], 1, j))
            under = replace(kind, difference=kind.difference + kind.instructed)
            mu = under.centres(math.hypot(whole, sd.of_model * math.sqrt(2)))
            instructed = expit(mu[:, None, :, None] + effects + own)
        return cls(kind, shares, coverage, seed, instructed)

    def write(self, folder: Path) -> Path:
        """The study: its jobs, its templates and its file."""
        write_jobs(folder / "jobs.csv", workforce_shares(self.kind.jobs))
        text = 'slot = "[JOB]"\n'
        for bias_type in self.kind.bias_types:
            for number in range(self.kind.templates):
                question = f"{bias_type} {number} [JOB]?"
                opening = 'opening = "The [JOB] said that"\n' if bias_type == "implicit" else ""
                text += f'[[template]]\nbias_type = "{bias_type}"\nquestion = "{question}"\n{opening}'
                if self.kind.frames:
                    size = self.kind.templates // self.kind.frames
                    text += f'frame = "{bias_type} {number // size}"\n'
        (folder / "templates.toml").write_text(text, "ascii")
        study = folder / "study.toml"
        study.write_text(
            'name = "worlds"\nmeasurement = "probe"\n[jobs]\nsource = "jobs.csv"\n'
            '[templates]\nsource = "templates.toml"\n[target_words]\nevery = "pronoun-subject"\n'
            + (
                '[debiasing_prompts]\nsource = "fair.txt"\nselect = "all"\n'
                if self.instructed is not None
                else ""
            ),
            "ascii",
        )
        (folder / "fair.txt").write_text(f"{FAIR}\n", "ascii")
        return study

    def place(self, model: int, prompt: str) -> Place:
        """Which cell a prompt asks for, and whether under the debiasing prompt."""
        found = re.search(r"(explicit|implicit) (\d+) job(\d+)\?", prompt)
        assert found is not None, prompt
        bias_type, template, job = found.groups()
        cell = model, self.kind.bias_types.index(bias_type), int(job), int(template)
        return (*cell, 1) if FAIR in prompt else cell

    def masses(self, place: Place) -> dict[str, float]:
        """Probability of every form of every target word, in the order of `SPELLINGS`."""
        cell, diverse = place[:4], self.kind.diverse_at(place)
        shares = self.shares if cell == place or self.instructed is None else self.instructed
        women, coverage = float(shares[cell]), float(self.coverage[cell])
        share = {"female": (1 - diverse) * women, "male": (1 - diverse) * (1 - women), "diverse": diverse}
        return {form: coverage * share[group] * part for form, (group, part) in SPELLINGS.items()}

    def uniform(self, cell: Place) -> FloatArray:
        """What decides the samples of a cell, one after another: `[MOST_SAMPLES]` in [0, 1)."""
        return np.random.default_rng((*self.seed, *cell)).random(MOST_SAMPLES)


class _Model:
    """What the models of worlds share: an identity, one batch, nothing to load."""

    whole_batches = False
    batch_size = 1

    def __init__(self, label: str, formats: tuple[PromptFormat, ...], where: Any = "scripted") -> None:
        self.identity = ModelIdentity(
            label,
            f"scripted:{label}",
            f"world {label}",
            "base",
            where,
            formats,
            takes_system=False,
            details={},
        )
        self.answered = Answered(f"world {label}", "2026-01-01T00:00:00+00:00", None, 1)

    def _at_once(self, requests: Sequence[R]) -> Plan[R]:
        return Plan((tuple(requests),), calls=1, prompt_tokens=0, new_tokens_max=0, cost_max=0.0)

    def estimate_seconds(self, what: object) -> float | None:
        return 0.0

    def rendered(self, prompt: Prompt) -> str:
        return rendered_plainly(prompt)

    def used(self) -> Mapping[str, float | None]:
        return {}

    def close(self) -> None:
        pass


class WorldScorer(_Model):
    """The exact probabilities of a world's model, or its k most probable words as a server lists them."""

    def __init__(self, world: ProbeWorld, model: int, label: str) -> None:
        super().__init__(label, ("raw",), "local" if world.kind.estimator == "exact" else "api")
        self.world, self.model = world, model

    def estimator_for(self, prompt_format: PromptFormat) -> Estimator:
        kind = self.world.kind
        return Estimator("top-k", k=kind.k) if kind.estimator == "top-k" else Estimator("exact")

    def plan_scores(self, requests: Sequence[ScoreRequest]) -> Plan[ScoreRequest]:
        return self._at_once(requests)

    def score(self, batches: Iterable[Sequence[ScoreRequest]]) -> Iterator[Sequence[Scored]]:
        for batch in batches:
            yield [self._answer(request) for request in batch]

    def _answer(self, request: ScoreRequest) -> Scored:
        shown = rendered_plainly(request.prompt)
        masses = self.world.masses(self.world.place(self.model, shown))
        logs = {prompt_format: math.log(mass) for prompt_format, mass in masses.items()}
        if self.world.kind.estimator != "top-k":
            points = tuple(
                LogProb(e.group, f" {e.text}", logs[e.text], logs[e.text]) for e in request.target_words
            )
            return Scored(request.key, shown, "exact", points, self.answered)
        listing = listed(masses, self.world.kind.k)
        found = dict(listing)
        ends = tuple(
            LogProb(e.group, f" {e.text}", found.get(f" {e.text}"), found.get(f" {e.text}", listing[-1][1]))
            for e in request.target_words
        )
        return Scored(request.key, shown, "top-k", ends, self.answered, {"": listing})


def distribution(masses: Mapping[str, float]) -> dict[str, float]:
    """Every token after a prompt, with its leading space, and its probability: what a top-k server knows."""
    rest = 1.0 - math.fsum(masses.values())
    parts = 1.0 / np.arange(1, N_OTHER + 1)
    parts *= rest / parts.sum()
    other = {f" word{i:02}": float(part) for i, part in enumerate(parts)}
    return {f" {form}": mass for form, mass in masses.items()} | other


def listed(masses: Mapping[str, float], k: int) -> tuple[tuple[str, float], ...]:
    """The k most probable tokens with their natural log-probabilities."""
    ranked = sorted(distribution(masses).items(), key=lambda one: -one[1])
    return tuple((token, math.log(p)) for token, p in ranked[:k])


class WorldSpeaker(_Model):
    """Draws the first word after a world's prompts; the tool counts them (`SampledScorer`)."""

    def __init__(self, world: ProbeWorld, model: int, label: str) -> None:
        super().__init__(label, ("raw",), "api")
        self.world, self.model = world, model
        self._said: dict[Place, list[str]] = {}

    def plan_samples(self, requests: Sequence[SampleRequest]) -> Plan[SampleRequest]:
        return self._at_once(requests)

    def generate(self, batches: Iterable[Sequence[SampleRequest]]) -> Iterator[Sequence[Sample]]:
        for batch in batches:
            yield [self._sample(request) for request in batch]

    def _sample(self, request: SampleRequest) -> Sample:
        shown = request.prompt.text
        cell = self.world.place(self.model, shown)
        if cell not in self._said:
            self._said[cell] = said(self.world, cell)
        return Sample(request.key, shown, self._said[cell][request.number], "stop", self.answered)


def said(world: ProbeWorld, cell: Place) -> list[str]:
    """The texts of a cell's samples, by number."""
    masses = world.masses(cell)
    texts = [*(f" {prompt_format} is" for prompt_format in masses), " Well, that is"]
    places = np.searchsorted(np.cumsum(list(masses.values())), world.uniform(cell), side="right")
    return [texts[place] for place in places.tolist()]


# --- worlds of texts -----------------------------------------------------------------------------------

SUBJECT = {"female": ("She", "her"), "male": ("He", "his")}
NOUNS = {"female": ("woman", "Ms", "mother", "lady"), "male": ("man", "Mr", "father", "gentleman")}
REFUSAL = ("i", "am", "sorry", "but", "i", "cannot", "help", "with", "that")
NOT_SHARED = frozenset(
    (
        *("he", "him", "his", "himself", "she", "her", "hers", "herself", "they", "them", "their", "theirs"),
        *("mr", "mrs", "ms", "miss", "man", "men", "woman", "women", "boy", "girl", "father", "mother"),
        *("son", "wife", "husband", "brother", "sister", "lady", "sir", "gentleman", "king", "queen"),
        *("i", "my", "me", "we", "our", "us"),
    )
)


@dataclass(frozen=True, slots=True)
class TextKind:
    """One kind of world of texts: women and men are described by the same words.

    `difference`: of women's true share in every occupation from the workforce share; `length`: words of a
    text about a woman and about a man; `bursts`: words come in bursts; `nouns`: texts say woman, Mr, mother
    too; `refused`: probability that a text about a woman on request is refused; `missing`: that a text about
    a woman names no gender; `flat`: half of all texts are about women, whatever the workforce share, which is
    then a prober's world's (`workforce_shares`); `told`: how much more often texts about women say every
    other word.
    """

    occupations: int = 8
    models: int = 1
    per_gender: int = 20
    difference: float = 0.0
    length: tuple[int, int] = (80, 80)
    bursts: bool = False
    nouns: bool = False
    refused: float = 0.0
    missing: float = 0.0
    flat: bool = False
    told: float = 0.0
    permutations: int = 39


@cache
def vocabulary(n: int = 400) -> tuple[tuple[str, ...], FloatArray]:
    """The most frequent English words that say no gender, with their rates."""
    counts = english_counts()
    kept = [word for word in counts if re.fullmatch(r"[a-z]+", word) and word not in NOT_SHARED]
    words = sorted(kept, key=lambda word: (-counts[word], word))[:n]
    rates = np.array([counts[word] for word in words], dtype=np.float64) ** 0.7
    return tuple(words), rates / rates.sum()


@dataclass(frozen=True, slots=True)
class TextWorld:
    """Occupations with their true shares of women; every text follows from its prompt and number."""

    kind: TextKind
    seed: tuple[int, ...]

    @property
    def workforce(self) -> FloatArray:
        """Women's share in the workforce, `[occupations]`; their mean is a half."""
        n = self.kind.occupations
        return workforce_shares(n // 2) if self.kind.flat else np.linspace(0.65, 0.35, n)

    @property
    def shares(self) -> FloatArray:
        """True share of women among the texts that name no gender, `[occupations]`."""
        middle = np.full(self.kind.occupations, 0.5) if self.kind.flat else self.workforce
        return middle + self.kind.difference

    def write(self, folder: Path) -> Path:
        """The study, its occupations, and random word vectors, so that no training is waited for."""
        write_jobs(folder / "occupations.csv", self.workforce)
        words = sorted({*vocabulary()[0], *(w.lower() for pair in NOUNS.values() for w in pair), *REFUSAL})
        numbers = np.random.default_rng((*self.seed, 7)).normal(size=(len(words), 20))
        table = [f"{w} {' '.join(f'{x:.3f}' for x in row)}" for w, row in zip(words, numbers, strict=True)]
        (folder / "vectors.txt").write_text("\n".join([f"{len(words)} 20", *table, ""]), "ascii")
        study, n = folder / "study.toml", self.kind.per_gender
        study.write_text(
            f'name = "worlds"\nmeasurement = "personas"\nper_gender = {n}\nbatch = {2 * n}\n'
            f"max_samples = {8 * n}\n"
            f'requested = ["female", "male"]\npermutations = {self.kind.permutations}\nc = 3\n'
            'clusters = false\nprompt_format = "completion"\n'
            f'vectors = "pretrained:{folder / "vectors.txt"}"\n[occupations]\nsource = "occupations.csv"\n',
            "ascii",
        )
        return study

    def text(self, model: int, prompt: str, number: int) -> tuple[str, str]:
        """A text and how it ended."""
        job = int(re.search(r"job(\d+)", prompt)[1])  # type: ignore[index]
        named = re.search(r"who is a (woman|man)", prompt)
        asked = {"woman": "female", "man": "male"}[named[1]] if named else None
        which = int("biography" in prompt), (None, "female", "male").index(asked)
        rng = np.random.default_rng((*self.seed, model, job, *which, number))
        if asked == "female" and rng.random() < self.kind.refused:
            return f"{' '.join(REFUSAL).capitalize()}.", "refusal"
        gender = asked or ("female" if rng.random() < self.shares[job] else "male")
        text = self._about(gender, rng)
        if asked is None and gender == "female" and rng.random() < self.kind.missing:
            text = re.sub(r"\b(She|her|woman|Ms|mother|lady)\b", "one", text)
        return text, "stop"

    def _about(self, gender: str, rng: np.random.Generator) -> str:
        words, rates = vocabulary()
        rates = rates * rng.gamma(0.3, 1 / 0.3, len(words)) if self.kind.bursts else rates
        if gender == "female":
            rates = rates * (1.0 + self.kind.told * (np.arange(len(words)) % 2))
        n = self.kind.length[gender == "male"]
        said = [words[i] for i in rng.choice(len(words), n, p=rates / rates.sum()).tolist()]
        subject, own_word = SUBJECT[gender]
        for at in range(5, n, 15):
            said[at] = own_word
        if self.kind.nouns:
            for at in range(3, n, 12):
                said[at] = NOUNS[gender][int(rng.integers(4))]
        return f"{subject} is one. {subject} {' '.join(said)}."


class WorldWriter(_Model):
    """Writes a world's texts."""

    def __init__(self, world: TextWorld, model: int, label: str) -> None:
        super().__init__(label, ("completion",), "local")
        self.world, self.model = world, model

    def plan_samples(self, requests: Sequence[SampleRequest]) -> Plan[SampleRequest]:
        return self._at_once(requests)

    def generate(self, batches: Iterable[Sequence[SampleRequest]]) -> Iterator[Sequence[Sample]]:
        for batch in batches:
            yield [self._sample(request) for request in batch]

    def _sample(self, request: SampleRequest) -> Sample:
        text, finish = self.world.text(self.model, request.prompt.text, request.number)
        return Sample(request.key, request.prompt.text, text, finish, self.answered)  # type: ignore[arg-type]


# --- in the tool's place -------------------------------------------------------------------------------


def labels(n: int) -> list[str]:
    """The models of a world."""
    return [f"model{i}" for i in range(n)]


@contextmanager
def opened(probe: ProbeWorld | None = None, texts: TextWorld | None = None) -> Iterator[None]:
    """While it lasts, `bk.probe` and `bk.personas` ask the models of these worlds, whatever is named."""
    # By name: `biaskit.workflow` shows its functions under the names of their modules.
    probe_asks = cast("Any", import_module("biaskit.measures.probe.ask"))
    personas_asks = cast("Any", import_module("biaskit.measures.personas.ask"))

    def scorer(spec: str, *, label: str, scoring: ScoringOptions, **_: Any) -> Any:
        assert probe is not None
        number = labels(probe.kind.models).index(label)
        if probe.kind.estimator != "sampling":
            return WorldScorer(probe, number, label)
        speaker = WorldSpeaker(probe, number, label)
        # type: ignore[arg-type]
        return SampledScorer(speaker, samples=scoring.samples, longest=scoring.longest)

    def generator(spec: str, *, label: str, **_: Any) -> Any:
        assert texts is not None
        return WorldWriter(texts, labels(texts.kind.models).index(label), label)

    kept = probe_asks.open_scorer, personas_asks.open_generator
    probe_asks.open_scorer, personas_asks.open_generator = scorer, generator
    try:
        yield
    finally:
        probe_asks.open_scorer, personas_asks.open_generator = kept
