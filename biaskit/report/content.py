"""What a report is made of: stored tables of runs, and the prompts and texts behind them, as plain records.

Nothing here computes and nothing here opens a run: `workflow` fills it, figures, findings and the page
read it. Every text in it (prompts, generated texts, words, labels, notes) is foreign text (DESIGN §4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
"""Public tables by name, rows as `tables.read_rows` gives them: an undefined number is None."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a run, as its manifest and rows tell it."""

    label: str  # as the tables of the report name it
    spec: str
    fingerprint: str
    tuning: str  # base | instruct | unknown
    where: str  # local | api | scripted | texts
    prompt_form: str  # "" for imported texts
    estimator: str  # "exact", "top-k(k=20)", …; "" in the generation engine
    run: str  # the folder its rows lie in, as the user named it
    answered_by: tuple[str, ...] = ()  # who really answered, where the rows tell
    first_answered: str | None = None  # UTC date of the first and of the last row
    last_answered: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One engine's study with the tables of every run that asked it; models are unique in it."""

    engine: Literal["probe", "personas"]
    study: str
    summary: str
    tables: Tables
    models: tuple[Model, ...]
    runs: tuple[str, ...]
    signatures: tuple[str, ...]  # one per run
    notes: tuple[str, ...]  # what a careful reader must know, from the runs' analyses
    analyses: tuple[Mapping[str, Any], ...]  # analysis.json of each run
    papers: tuple[str, ...] = ()  # corpora whose papers are cited
    groups: tuple[str, ...] = ()  # gender groups of the prober
    contrast: tuple[str, str] = ("", "")
    floor: float = 0.01  # of coverage
    templates: tuple[Row, ...] = ()  # as asked: id, bias_type, question, opening
    instructions: tuple[Row, ...] = ()  # as asked: id, text, level; without 0
    commands: tuple[str, ...] = ()  # how each run was made


@dataclass(frozen=True, slots=True)
class PromptShown:
    """A prompt as a model really got it."""

    engine: str
    study: str
    model: str
    what: str  # such as "implicit, template 3, instruction 0, plain, nurse"
    form: str
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
    origin: str  # associated | specified
    specified_gender: str | None
    gender: str | None
    rule_id: str | None
    text: str  # may be cut; `cut` says so
    spans: tuple[Span, ...]
    key: str
    cut: bool = False
    instruction_id: int | None = None


@dataclass(frozen=True, slots=True)
class WordInContext:
    """A marked word of a list and sentences that hold it, by their place in `Content.sentences`."""

    model: str
    occupation: str
    origin: str
    gender: str
    word: str
    z: float
    sentences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Deviation:
    """Where the numbers follow another definition than a paper, and which key gives the paper's."""

    paper: str
    what: str
    ours: str
    theirs: str
    key: str


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
    sentences: tuple[str, ...] = ()  # each once
    deviations: tuple[Deviation, ...] = ()
    with_texts: bool = True  # False: --no-texts, or no run holds texts
    texts_reason: str = ""  # why there are none
    command: str = ""  # reproduces the report
    versions: Mapping[str, str] = field(default_factory=dict)
    bibtex: str = ""
    reference: Literal["parity", "labour", "both", "none"] = "both"

    def part(self, engine: str) -> Part | None:
        """The first part of an engine."""
        return next((part for part in self.parts if part.engine == engine), None)
