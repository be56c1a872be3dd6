"""The frozen records that one stage hands to the next. Nothing here computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args

BiasType = Literal["explicit", "implicit"]
Context = Literal["plain", "dialogue"]
PromptFormat = Literal["raw", "completion", "chat", "chat-prefill", "chat-continue", "sentence"]
Gender = Literal["female", "male", "nonbinary"]
Finish = Literal["stop", "length", "refusal", "filter"]
Tuning = Literal["base", "instruct", "unknown"]
Where = Literal["local", "api", "scripted", "callable"]
EstimatorName = Literal["exact", "selected-ids", "echo", "top-k", "sampling"]

ALL = "all"
"""What a column of a table holds where a row is of all its values together."""
UNNAMED = "texts"  # what tables call texts that came without a file's name

TEMPLATE_DATE = "2024-07-26"
"""What a chat template that asks for today's date is told; Llama 3.x's own where it cannot ask."""
OWN_SYSTEM = "own_system_prompt"
"""In a model's details: how the system prompt begins that its chat template writes where none is given."""
THOUGHT_TOKENS = 2_000  # that a model which thinks gets before its answer
PROBE_FORMATS: tuple[PromptFormat, ...] = ("raw", "chat-prefill", "chat-continue")
"""The forms in which a probability can be asked for, the papers' own first."""

ANSWERED_SEPARATOR = " | "  # in `answered_by`, between the model's name, `PROVIDER`'s and a fingerprint
PROVIDER = "by "  # before the name of who answered for an aggregator
NO_DEBIASING = 0  # the debiasing prompt id that means "none": the arm every debiasing prompt is compared with
GENDERS: tuple[Gender, ...] = get_args(Gender)  # in the order of every table
WOMEN_AND_MEN: tuple[str, str] = ("female", "male")
"""The pair whose words, scores and clusters are compared."""
NONBINARY_REFERENCE = 0.016
"""Share of the U.S. population that identifies as non-binary, as GAS(P) §5.1 quotes it."""


# --- what a corpus holds -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """A job, a field of study, anything that fills a template's slot."""

    name: str
    group: str
    workforce_share: float | None = None  # fraction in [0, 1]
    article: str | None = None  # "a" or "an", where the spelling does not tell
    year: int | None = None  # of the workforce share
    rating: float | None = None  # how much readers expect a woman, fraction in [0, 1]


@dataclass(frozen=True, slots=True)
class Template:
    """A question and, for implicit bias, the opening of its answer; both hold the slot."""

    id: int  # 1-based position within its bias type
    bias_type: BiasType
    question: str
    opening: str = ""
    target_words: str | None = None  # name of a target word set; None: the bias type's own
    frame: str | None = None  # templates of one frame are averaged, and count as one


@dataclass(frozen=True, slots=True)
class SentencePair:
    """Two sentences that differ in a person's gender alone, and a third where the language has one."""

    item: str  # the same item may be there in several languages
    female: str
    male: str
    diverse: str | None = None
    stereotype: str = ""  # what pairs have in common: an occupation, a trait
    direction: Literal["female", "male"] | None = None  # the side that the stereotype expects
    language: str = ""
    prefix: str = ""  # the sentences follow it, and only what they say counts

    @property
    def sentences(self) -> dict[str, str]:
        """Gender → sentence."""
        texts = {"female": self.female, "male": self.male, "diverse": self.diverse}
        return {gender: text for gender, text in texts.items() if text}


@dataclass(frozen=True, slots=True)
class DebiasingPrompt:
    """A debiasing prompt; 0 is none and has no record."""

    id: int
    text: str
    level: str | None = None  # Mattern's level of abstraction


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer in a conversation that precedes the prompt."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """An opening line for a conversational agent and the turns that follow it."""

    opening_line: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class TargetWordSet:
    """Gender groups in their order, each with the target words that count as its mention."""

    name: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    forms: Literal["both", "as-listed"] = "both"


# --- what is asked of a model, and what it answers --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is put to a model, before any chat template is applied (methods/prompts#prompt-formats)."""

    text: str  # the whole prompt; in chat formats the last user turn
    prompt_format: PromptFormat = "raw"
    system: str | None = None  # must reach the system role, or the model is refused
    preamble: str | None = None  # there too where the template has one, else above the first user turn
    turns: tuple[Turn, ...] = ()  # before the last one
    prefill: str = ""  # the beginning of the answer; empty in `chat`, whose answer is open


@dataclass(frozen=True, slots=True)
class TargetWord:
    """One surface form of one group, without its word boundary."""

    group: str
    text: str


@dataclass(frozen=True, slots=True)
class Estimator:
    """How a probability is obtained, as far as a cell's key depends on it (methods/estimators#estimators)."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # of a manifest: what is unknown would change keys

    name: EstimatorName = "exact"
    k: int | None = None  # top-k: how many of the most probable tokens are listed
    samples: int | None = None  # sampling: samples per cell, at temperature 1 and top_p 1
    max_new_tokens: int | None = None  # sampling: most tokens of a sample

    def in_key(self) -> object:
        """Give it the form of keys and manifests; `exact` is a plain text, as in the oldest rows."""
        if self.name == "exact":
            return "exact"
        return {"name": self.name, **self._settings()}

    def __str__(self) -> str:
        settings = [f"{name}={value}" for name, value in self._settings().items()]
        return f"{self.name}({','.join(settings)})" if settings else self.name

    def _settings(self) -> dict[str, int]:
        parts = {"k": self.k, "samples": self.samples, "max_new_tokens": self.max_new_tokens}
        return {name: value for name, value in parts.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """One cell, or a batch of samples: a prompt and every target word whose probability is asked."""

    key: str
    prompt: Prompt
    target_words: tuple[TargetWord, ...]
    first_sample: int = 0  # sampling: samples of this cell in earlier batches; its numbers go on from there


@dataclass(frozen=True, slots=True)
class Answered:
    """Who really answered, when (UTC, ISO 8601), and at how many tokens."""

    by: str
    at: str
    prompt_tokens: int | None = None
    new_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class LogProb:
    """Natural log-probability of one target word, before any exclusion; equal ends: a point."""

    group: str
    text: str  # with its word boundary, as scored
    low: float | None  # None: no lower bound is known
    high: float | None  # None: not bounded either (sampling)
    token_ids: tuple[int, ...] | None = None
    tokens: tuple[str, ...] | None = None  # their texts, where a server tells no ids


@dataclass(frozen=True, slots=True)
class ListedToken:
    """One of the most probable tokens after a prompt, whatever it says."""

    text: str  # no two of a list share it: a second one of the same text carries its id
    log_prob: float  # natural
    id: int


@dataclass(frozen=True, slots=True)
class Scored:
    """The answer to one `ScoreRequest`."""

    key: str
    prompt: str  # as rendered for this model
    estimator: EstimatorName
    log_probs: tuple[LogProb, ...]
    answered: Answered
    listed: Mapping[str, tuple[tuple[str, float], ...]] | None = None
    """top-k: for each asked prefix ("": the prompt itself) the listed (token, log-probability) pairs."""
    may_hide: bool = False  # top-k: whether a listed token may stand for another of the same text
    left_out: tuple[tuple[str, str], ...] = ()  # (group, text) that the model's tokens cannot tell or write
    listed_next: tuple[ListedToken, ...] | None = None  # exact: the most probable first tokens, in order
    samples: int | None = None  # sampling: how many were drawn
    counts: Mapping[str, int] | None = None  # sampling: target word's text → samples that say it
    answers: tuple[tuple[str, Finish], ...] | None = None  # sampling: what each sample said, in their order
    raw: tuple[str | None, ...] | None = None  # sampling: each sample's `raw`, where one has thoughts


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; part of a sample's key."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int = 750


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One text to be sampled: it depends on its prompt, sampling and seed alone (methods/texts#samples)."""

    key: str
    prompt: Prompt
    sampling: Sampling
    seed: int
    number: int = 0  # which sample of its prompt; a seeded model does not look at it
    row: str = ""  # key of the cell whose samples are counted; else the text is a row of its own


@dataclass(frozen=True, slots=True)
class Sample:
    """The answer to one `SampleRequest`."""

    key: str
    prompt: str  # as rendered for this model
    text: str
    finish: Finish
    answered: Answered
    seeded: bool = True  # whether the request's seed was this sample's own; else its row holds none
    raw: str | None = None  # all that was said, where thoughts stand before `text`


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer, and why. Never a row: the next start asks again."""

    key: str
    reason: str
    blocked: bool = False  # by a content filter, which would block it again


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What a model is, as far as a number can depend on it."""

    label: str
    spec: str
    fingerprint: str  # weights, tokenizer and dtype of a local model
    tuning: Tuning
    where: Where
    formats: tuple[PromptFormat, ...]  # the prompt formats it can take
    takes_system: bool
    details: Mapping[str, str]  # architecture, revision, digests, dtype, device: for the manifest
    abilities: Mapping[str, Any] | None = None  # what was measured of an API's endpoint, for the manifest


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Plan(Generic[R]):
    """What a backend would do: the batches, and what they cost at most."""

    batches: Sequence[tuple[R, ...]]
    calls: int
    prompt_tokens: int
    new_tokens_max: int
    cost_max: float | None  # USD; None: unknown
    notes: tuple[str, ...] = ()  # for the manifest and the reader: prefixes, duplicates


# --- what the prober makes of the answers -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PromptCell:
    """One (model, bias type, template, job, debiasing, context) of the product (methods/prompts#cells)."""

    model: str
    bias_type: BiasType
    template_id: int
    job: str
    job_group: str
    workforce_share: float | None
    debiasing_id: int
    context: Context
    prompt_format: PromptFormat
    rating: float | None = None


@dataclass(frozen=True, slots=True)
class CellShares:
    """A cell with what its stored row says; `None` with a reason where it says nothing."""

    cell: Any  # what was asked: the prober's `PromptCell`, another kind's own
    estimator: str | None
    masses: tuple[float, ...] | None  # one per group, in the study's order
    coverage: float | None  # sum of the masses
    shares: tuple[float, ...] | None  # masses / coverage
    reason: str | None = None
    share_ends: tuple[tuple[float | None, float | None], ...] | None = None
    """Bounds of `top-k` (methods/estimators#top-k-bounds) or Wilson's of `sampling`, as the masses."""
    coverage_ends: tuple[float, float] | None = None
    difference_ends: tuple[float | None, float | None] | None = None  # top-k: of the contrast's shares
    matched: int | None = None  # sampling: samples that said a target word


def as_record(record: Any) -> dict[str, Any]:
    """Map name to value of a frozen record and of those in its tuples, without the copies of `asdict`."""
    values = {}
    for name in record.__dataclass_fields__:
        value = getattr(record, name)
        inside = isinstance(value, tuple) and bool(value) and hasattr(value[0], "__dataclass_fields__")
        values[name] = list(map(as_record, value)) if inside else value
    return values
