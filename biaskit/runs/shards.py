"""A run made in parts: which part of the plan a shard is, and what must hold for shards to be one run.

A shard asks the whole run's question, in a folder of its own, and has rows but no tables: those of a part
would look like the whole run's (docs/large-models.md#shards).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from biaskit.errors import RunError, UsageError
from biaskit.wording import count

T = TypeVar("T")
SHARD = "shard"
"""The name in manifest.json; a whole run has none."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The I-th of N parts, from 1; the only part of one is the whole."""

    number: int = 1
    of: int = 1

    def __str__(self) -> str:
        return f"shard {self.number} of {self.of}"

    @property
    def whole(self) -> bool:
        """Whether this is all there is."""
        return self.of == 1

    def places(self, n: int) -> range:
        """Which of `n` entries are this part's: every N-th, so that what lies together is spread evenly."""
        return range(self.number - 1, n, self.of)

    def among(self, entries: Sequence[T]) -> tuple[T, ...]:
        """The entries of this part, in their order."""
        return tuple(entries[place] for place in self.places(len(entries)))

    def named(self, folder: str) -> str:
        """A run's default folder, as this part's."""
        return folder if self.whole else f"{folder}-shard-{self.number}-of-{self.of}"

    def in_manifest(self) -> dict[str, list[int]]:
        """How manifest.json says it."""
        return {} if self.whole else {SHARD: [self.number, self.of]}


WHOLE = Shard()


def read_shard(text: str | None) -> Shard:
    """`I/N` as a shard; None is the whole. Raises `UsageError`."""
    if text is None:
        return WHOLE
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard {text}: give I/N, the I-th of N parts, with I from 1 to N, such as 2/8.")
    return Shard(int(found[1]), int(found[2]))


def shard_of(run: Path, manifest: Mapping[str, Any]) -> Shard:
    """Which part a run's manifest says that it is. Raises `RunError` where that cannot be read."""
    stored = manifest.get(SHARD, [1, 1])
    if isinstance(stored, list) and len(stored) == 2 and all(type(one) is int for one in stored):
        number, of = stored
        if 1 <= number <= of:
            return Shard(number, of)
    raise RunError(f"{run}/manifest.json has no number of a shard under {SHARD!r}. Restore it from a backup.")


def check_same_shard(run: Path, manifest: Mapping[str, Any], asked: Shard) -> None:
    """Refuse a folder that holds another part: each part, and the whole, has a folder of its own."""
    stored = shard_of(run, manifest)
    if stored != asked:
        here = "a whole run" if stored.whole else f"{stored}"
        wanted = "the whole run" if asked.whole else f"{asked}"
        raise RunError(f"{run} holds {here}, this command asks for {wanted}. Choose another --out.")


def refuse_shard(run: Path, manifest: Mapping[str, Any]) -> None:
    """Raise `RunError` where a run is one part of several: no tables are made of it alone."""
    shard = shard_of(run, manifest)
    if not shard.whole:
        raise RunError(f"{run} is {shard} and has no tables of its own. {how_to_merge(shard)}")


def how_to_merge(shard: Shard, pattern: str = "SHARD...", out: str = "RUN") -> str:
    """What puts the parts together."""
    return f"Once all {shard.of} are done: biaskit analyze {pattern} --out {out}"


@dataclass(frozen=True, slots=True)
class Part:
    """A run that is to be merged, as far as the checks look at it."""

    run: Path
    shard: Shard
    signature: str
    """Of its question and its models, as of a whole run."""
    n_open: Callable[[], int]
    """How many of its questions have no row yet, at least."""


def check_parts(parts: Sequence[Part], n_units: int, unit: str, *, partial: bool = False) -> list[str]:
    """Hold the shards of one run against each other; returns what is missing, where `partial` allows it.

    `n_units`: entries of the plan that shards divide; parts beyond them are empty and need not be there.
    Raises `RunError` with one line: a whole run among shards, other numbers of shards, one twice, another
    question, one that is not there, one that is not done.
    """
    first = parts[0]
    if all(part.shard.whole for part in parts):
        return []
    for part in parts[1:]:
        if part.shard.of != first.shard.of:
            raise RunError(
                f"{first.run} is {_said(first)} and {part.run} is {_said(part)}: shards of one number are"
                " put together, and nothing else with them."
            )
        if part.signature != first.signature:
            raise RunError(f"{first.run} and {part.run} asked two questions: {_difference(first, part)}.")
    seen: dict[int, Path] = {}
    for part in parts:
        if part.shard.number in seen:
            raise RunError(f"{part.shard} is given twice: {seen[part.shard.number]} and {part.run}.")
        seen[part.shard.number] = part.run
    gaps = [*_not_given(first.shard.of, seen, n_units), *_not_done(parts, unit)]
    if gaps and not partial:
        raise RunError(
            f"{'; '.join(gaps)}. Give the command of each again, then this one; --partial puts together what"
            " is there."
        )
    return gaps


def _said(part: Part) -> str:
    return "a whole run" if part.shard.whole else str(part.shard)


def _difference(one: Part, other: Part) -> str:
    first, second = one.signature.split(" | "), other.signature.split(" | ")
    apart = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
    return f"{apart[0][0]} and {apart[0][1]}" if apart else "one of them says more than the other"


def _not_given(of: int, seen: Mapping[int, Path], n_units: int) -> list[str]:
    missing = [number for number in range(1, min(of, n_units) + 1) if number not in seen]
    if not missing:
        return []
    return [f"{_numbers(missing)} of {of} {'is' if len(missing) == 1 else 'are'} not given"]


def _not_done(parts: Sequence[Part], unit: str) -> list[str]:
    left = [(part, n) for part in parts if (n := part.n_open())]
    return [f"{part.run} ({part.shard}) is not done, {count(n, unit)} to ask" for part, n in left]


def _numbers(numbers: Sequence[int]) -> str:
    shown = [str(number) for number in numbers[:10]]
    more = f" and {len(numbers) - 10} more" if len(numbers) > 10 else ""
    return f"{'shard' if len(numbers) == 1 else 'shards'} {', '.join(shown)}{more}"
