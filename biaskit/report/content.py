"""The content of a report: stored tables of runs, and the prompts and texts behind them, as plain records.

Nothing here computes or opens a run: `workflow` fills it; figures, findings and the page read it. Every text
(prompts, generated texts, words, labels, notes) is foreign text (reference/reasons#foreign-text).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from biaskit.report.questions import QuestionId
from biaskit.runs.collection import Model, Part, rule_of
from biaskit.stats.contrast import Contrast
from biaskit.stats.verdict import with_verdicts
from biaskit.tables.query import Tables


@dataclass(frozen=True, slots=True)
class PromptShown:
    """A prompt exactly as a model got it."""

    measurement: str
    study: str
    model: str
    kind: str  # the bias type, or the template
    what: str  # such as "implicit, template 3, debiasing prompt 0, plain, nurse"
    prompt_format: str
    prompt: str
    system: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]` counted for a class: female, male, neutral or nonbinary."""

    start: int
    end: int
    counts_as: str


@dataclass(frozen=True, slots=True)
class ExampleText:
    """A generated or imported text with the words that decided its association (GAS(P) Algorithm 1)."""

    model: str
    occupation: str
    origin: str  # inferred | requested
    requested_gender: str | None
    gender: str | None
    rule_id: str | None
    text: str  # may be cut; `cut` says so
    spans: tuple[Span, ...]
    key: str
    cut: bool = False
    debiasing_id: int | None = None
    person_gender: str | None = None  # known from the user's file
    outcome: str = ""  # person, no-person, declines, …
    question: QuestionId = "write"  # under which it stands


@dataclass(frozen=True, slots=True)
class WordInContext:
    """A marked word of a list, and the sentences with it by their index in `Content.sentences`."""

    model: str
    occupation: str
    origin: str
    gender: str
    word: str
    z: float
    sentences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """Texts of a run to read: examples, and words in sentences that are stored once."""

    examples: list[ExampleText]
    words: list[WordInContext]
    sentences: list[str]


@dataclass(frozen=True, slots=True)
class Deviation:
    """Where the numbers follow another definition than a paper, and which key gives the paper's."""

    paper: str
    what: str
    ours: str
    theirs: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Whether `biaskit compare --require equivalent` would pass: every difference is equivalent."""

    holds: bool
    n_failing: int
    n_rows: int
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """Everything a report says, before anyone decides how it looks."""

    title: str
    parts: tuple[Part, ...]
    between: Tables  # tests (between models, and relations), gaps, srb_change; empty tables are absent
    notes: tuple[str, ...] = ()  # of the comparison: forms, estimators, dates, signatures that differ
    prompts: tuple[PromptShown, ...] = ()
    examples: tuple[ExampleText, ...] = ()
    words: tuple[WordInContext, ...] = ()
    sentences: tuple[str, ...] = ()  # without repeats
    deviations: tuple[Deviation, ...] = ()
    with_texts: bool = True  # False: --no-texts, or no run holds texts
    texts_reason: str = ""  # why there are none
    command: str = ""  # reproduces the report
    versions: Mapping[str, str] = field(default_factory=dict)
    bibtex: str = ""
    reference: Literal["parity", "workforce", "both", "none"] = "both"
    equivalence: Equivalence | None = None  # where two models are compared
    verified: tuple[str, ...] = ()  # what `biaskit verify` found of the runs, a line each

    @property
    def models(self) -> list[Model]:
        """The models of all parts."""
        return [model for part in self.parts for model in part.models]

    @property
    def labels(self) -> list[str]:
        """The labels of its models, each once, in the order of the page."""
        return list(dict.fromkeys(model.label for model in self.models))

    @property
    def imported(self) -> bool:
        """Whether every text was at hand, and no model was asked."""
        return bool(self.models) and all(model.where == "texts" for model in self.models)

    @property
    def tests(self) -> list[Contrast]:
        """The rows of tests.csv between models, and of relations."""
        return list(map(Contrast.of, self.between.get("tests", ())))

    @property
    def every_test(self) -> list[Contrast]:
        """Those between models, then those of every part."""
        return [*self.tests, *chain.from_iterable(part.tests for part in self.parts)]

    def judged(self) -> Content:
        """Add verdicts to all tests, as the rows of one page."""
        sets = [*(part.tables for part in self.parts), self.between]
        tests = with_verdicts(*(tables.get("tests", ()) for tables in sets), rule=rule_of(self.parts))
        pairs = zip(sets, tests, strict=True)
        judged = [{**tables, "tests": rows} if rows else tables for tables, rows in pairs]
        parts = (replace(part, tables=tables) for part, tables in zip(self.parts, judged[:-1], strict=True))
        return replace(self, parts=tuple(parts), between=judged[-1])


def prompt_formats_of(parts: Iterable[Part]) -> list[str]:
    """List the prompt formats of parts, each once, in order of appearance; none of imported texts."""
    models = chain.from_iterable(part.models for part in parts)
    return list(filter(None, dict.fromkeys(model.prompt_format for model in models)))


def parts_of(parts: Sequence[Part], name: str) -> list[Part]:
    """List the parts of a kind."""
    return [part for part in parts if part.measurement == name]
