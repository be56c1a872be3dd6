"""A run made in parts: which part of the plan a shard asks (howto/large-models#shards)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

from pydantic import Field

from biaskit.errors import RunError, UsageError

T = TypeVar("T")


class Shard(NamedTuple):
    """The I-th of N parts of a run, from 1; one of one is the whole run."""

    number: Annotated[int, Field(ge=1)] = 1
    of: Annotated[int, Field(ge=1)] = 1

    def __str__(self) -> str:
        return "a whole run" if self.whole else f"shard {self.number} of {self.of}"

    @property
    def whole(self) -> bool:
        """Whether this is the whole run."""
        return self.of == 1

    def places(self, n: int) -> range:
        """List this part's places among `n` entries: every N-th, so that neighbours are spread evenly."""
        return range(self.number - 1, n, self.of)

    def among(self, entries: Sequence[T]) -> tuple[T, ...]:
        """Pick the entries of this part, in their order."""
        return tuple(entries[self.number - 1 :: self.of])

    def named(self, folder: str) -> str:
        """Name this part's default folder after the whole run's."""
        return folder if self.whole else f"{folder}-shard-{self.number}-of-{self.of}"


WHOLE = Shard()


def read_shard(text: str | None) -> Shard:
    """Read `I/N` as a shard; None is the whole run. Raises `UsageError`."""
    parts = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", "1/1" if text is None else text, re.ASCII)
    if parts is None or not 1 <= int(parts[1]) <= int(parts[2]):
        raise UsageError(f"--shard {text}: give I/N, the I-th of N parts, with I from 1 to N, such as 2/8.")
    return Shard(int(parts[1]), int(parts[2]))


def refuse_shard(run: Path, shard: Shard) -> None:
    """Raise `RunError` for a part of a run: tables of it alone would look like the whole run's."""
    if not shard.whole:
        raise RunError(
            f"{run} is {shard}, which has no tables. When all {shard.of} shards are done:"
            " biaskit analyze SHARD... --out RUN"
        )
