"""Two logs of one task, sample by sample: what is paired, what is not and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from biaskit.exchange.logs.samples import TaskLog
from biaskit.stats.arrays import FloatArray
from biaskit.stats.matched import Matched, matched, unmatched
from biaskit.stats.welch import welch
from biaskit.wording import count, first_words, short

OTHER_INPUT = "the same id with another input"
NOTHING_PAIRED = "no sample is paired: Welch's test of all scored samples"
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Pairing:
    """One metric of two logs.

    Attributes:
        a, b: scores `[n]` of the paired samples, in one order.
        left_out: sample → why it is not paired.
    """

    a: FloatArray
    b: FloatArray
    left_out: Mapping[str, str]

    def counts(self) -> Counter[str]:
        """How many samples are left out for each reason."""
        return Counter(self.left_out.values())

    def text(self) -> str:
        """'2 not in the log of m2 (q1 q7), 1 …'; empty where all samples are paired."""
        said = []
        for reason, n in self.counts().items():
            samples = [short(sample, 30) for sample, why in self.left_out.items() if why == reason]
            said.append(f"{n:,} {reason} ({first_words(samples, SHOWN, ', ')})")
        return "; ".join(said)


def pair(a: TaskLog, b: TaskLog, metric: str) -> Pairing:
    """The samples of two logs by their ids, and by their inputs where both logs have these."""
    left_out: dict[str, str] = {}
    paired: list[str] = []
    for sample in dict.fromkeys((*a.inputs, *b.inputs)):
        why = _why_not(sample, a, b, metric)
        if why is None:
            paired.append(sample)
        else:
            left_out[sample] = why
    own_a, own_b = a.numbers.get(metric, {}), b.numbers.get(metric, {})
    return Pairing(np.array([own_a[s] for s in paired]), np.array([own_b[s] for s in paired]), left_out)


def _why_not(sample: str, a: TaskLog, b: TaskLog, metric: str) -> str | None:
    for own in (a, b):
        if sample not in own.inputs:
            return f"not in the log of {own.model}"
    asked = a.inputs[sample], b.inputs[sample]
    if all(asked) and asked[0] != asked[1]:
        return OTHER_INPUT
    lacking = [(own, why) for own in (a, b) if (why := own.why_missing(metric, sample))]
    if not lacking:
        return None
    return " and ".join(f"{why} in the log of {own.model}" for own, why in lacking)


def test_of(a: TaskLog, b: TaskLog, metric: str, pairing: Pairing) -> Matched:
    """The test of a − b: of the paired samples, or of all scored ones where none is paired."""
    if pairing.a.size:
        return matched(pairing.a, pairing.b)
    whole = [np.array(list(own.numbers.get(metric, {}).values())) for own in (a, b)]
    if not all(own.size for own in whole):
        return Matched("paired", None, reason="no sample has a score in both logs")
    return unmatched(welch(*whole))


def differing_prompts(a: TaskLog, b: TaskLog) -> int:
    """Samples that both logs have with one input and two prompts: another template, or other examples."""
    return sum(
        a.inputs[sample] == b.inputs[sample] and prompt != b.prompts[sample]
        for sample, prompt in a.prompts.items()
        if sample in b.prompts
    )


def differing_terms(a: TaskLog, b: TaskLog) -> Iterator[str]:
    """What the two logs say differently of how they were made."""
    for name in dict.fromkeys((*a.about, *b.about)):
        first, second = (short(own.about.get(name, "none"), 40) for own in (b, a))
        if first != second:
            yield f"{name} ({first} / {second})"


def notes_of_pair(a: TaskLog, b: TaskLog) -> Iterator[str]:
    """What differs between two logs of one task beside the model."""
    between = f"{a.task}, {a.model} and {b.model}"
    if n := differing_prompts(a, b):
        yield (
            f"{between}: {count(n, 'sample')} of one input had two prompts (another chat template, or other"
            " examples): the difference holds that too"
        )
    if terms := list(differing_terms(a, b)):
        yield f"{between} were run differently: {', '.join(terms)}"
