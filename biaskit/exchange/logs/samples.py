"""What a log of any tool comes to: a number for each sample and metric, or why it has none."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from biaskit.errors import UsageError
from biaskit.foreign import is_formula
from biaskit.inputs import Inputs
from biaskit.provenance import canonical_json
from biaskit.wording import count, short

LOG_FILES = Inputs(UsageError, most=512 * 2**20, remedy="Name a log that its tool has finished writing.")
FAILED = "failed"
NO_SCORE = "no score"
NOT_FINITE = "its score is not a finite number"
TWICE = "stands in the log more than once"

_WORDS: Mapping[str, float] = MappingProxyType(
    {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
)
"""As Inspect reads them: correct, incorrect, partial, no answer."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a log says of one sample in one epoch.

    Attributes:
        sample: its id.
        input: digest of what was asked and of the answer that is right; "" where the log has none.
        scores: metric → value as it stands in the log.
        prompt: digest of the prompt as the model got it; "" where the log has none.
        failed: whether the sample ended in an error.
    """

    sample: str
    input: str
    scores: Mapping[str, Any]
    epoch: int = 1
    prompt: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TaskLog:
    """One model's scores on one task.

    Attributes:
        tool: "inspect" or "lm-eval".
        task, model: as the log names them; `model` may be made longer to tell two logs apart.
        path: the file.
        created: ISO time, "" where it is not known.
        about: what else the log says of how it was made, by name.
        stated: metric → the mean that the log itself gives, where it gives one.
        notes: what a careful reader must know of this log, a sentence each.
        inputs: sample → digest of its input; every sample of the log, in its order.
        prompts: sample → digest of its prompt, where there is one.
        numbers: metric → sample → mean over its epochs.
        missing: metric → sample → why it has no number.
        refused: metric → why none of its scores are numbers.
        failed: samples that ended in an error.
    """

    tool: str
    task: str
    model: str
    path: Path
    created: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    stated: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    missing: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()

    def why_missing(self, metric: str, sample: str) -> str | None:
        """Why a sample of this log has no number; None where it has one."""
        if sample in self.numbers.get(metric, {}):
            return None
        unscored = FAILED if sample in self.failed else NO_SCORE
        return self.missing.get(metric, {}).get(sample, unscored)

    def metrics(self) -> list[str]:
        """Every metric of the log, in its order, those without numbers too."""
        return [*self.numbers, *(name for name in self.refused if name not in self.numbers)]


def with_readings(log: TaskLog, readings: Iterable[Reading]) -> TaskLog:
    """The log with what its samples come to; epochs are averaged within a sample first."""
    inputs: dict[str, str] = {}
    prompts: dict[str, str] = {}
    values: dict[str, dict[str, dict[int, Any]]] = {}
    twice: set[str] = set()
    failed: Counter[str] = Counter()
    for one in readings:
        sample = cell(one.sample)
        if inputs.setdefault(sample, one.input) != one.input:
            twice.add(sample)
        if one.prompt:
            prompts.setdefault(sample, one.prompt)
        failed[sample] += one.failed
        for metric, value in one.scores.items():
            epochs = values.setdefault(cell(metric), {}).setdefault(sample, {})
            if one.epoch in epochs:
                twice.add(sample)
            epochs[one.epoch] = value
    made = replace(log, inputs=inputs, prompts=prompts)
    return _with_numbers(made, values, twice, {name for name, n in failed.items() if n})


def _with_numbers(
    log: TaskLog, values: Mapping[str, Mapping[str, Mapping[int, Any]]], twice: set[str], failed: set[str]
) -> TaskLog:
    numbers: dict[str, dict[str, float]] = {}
    missing: dict[str, dict[str, str]] = {}
    refused: dict[str, str] = {}
    notes = list(log.notes)
    most = max((len(epochs) for own in values.values() for epochs in own.values()), default=0)
    for metric, own in values.items():
        if (why := _no_numbers(own)) is not None:
            refused[metric] = why
            continue
        numbers[metric], missing[metric], n_lacking = {}, {}, 0
        for sample in log.inputs:
            scored = [x for x in map(number_of, own.get(sample, {}).values()) if x is not None]
            finite = [x for x in scored if math.isfinite(x)]
            if sample in twice:
                missing[metric][sample] = TWICE
            elif finite:
                numbers[metric][sample] = fmean(finite)
                n_lacking += most - len(finite)
            else:
                unscored = FAILED if sample in failed else NO_SCORE
                missing[metric][sample] = NOT_FINITE if scored else unscored
        if n_lacking:
            lacking = count(n_lacking, "score of an epoch is", "scores of epochs are")
            notes.append(f"{metric}: {lacking} missing; their samples count by their other epochs")
    scored_failures = sum(any(sample in own for own in numbers.values()) for sample in failed)
    if scored_failures and most <= 1:
        notes.append(f"{count(scored_failures, 'sample')} ended in an error and have a score all the same")
    return replace(
        log, numbers=numbers, missing=missing, refused=refused, notes=tuple(notes), failed=frozenset(failed)
    )


def _no_numbers(own: Mapping[str, Mapping[int, Any]]) -> str | None:
    """Why the scores of a metric cannot be compared: the first that is no number."""
    for sample, epochs in own.items():
        for value in epochs.values():
            if value is not None and number_of(value) is None:
                return f"sample {short(sample, 40)} has {short(repr(value), 40)}, which is no number"
    return None


def number_of(value: Any) -> float | None:
    """A score as a number: C, P, I and N, yes and no, digits; None for anything else."""
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, str):
        known = _WORDS.get(value, _WORDS.get(value.lower()))
        if known is not None:
            return known
        try:
            return float(value)
        except ValueError:
            return None
    return None


def digest_of(value: Any) -> str:
    """A short digest of a JSON value, NaN included."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()[:16]


def cell(text: str) -> str:
    """Foreign text as it may stand in a table: on one line, and nothing that a spreadsheet would run."""
    line = " ".join(str(text).split())
    return f"'{line}" if is_formula(line) else line


def allowed_nan(name: str) -> float:
    """The constants that Python's json writes and JSON does not have; tools write NaN for "not scored"."""
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}[name]


def texts_of(about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is said of a log, as text; what is empty is left out."""
    for name, value in about.items():
        if value not in (None, "", {}, []):
            yield name, value if isinstance(value, str) else canonical_json(value)
