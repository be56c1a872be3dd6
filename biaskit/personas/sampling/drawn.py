"""Which draws a row file holds, of whatever model: a model's own keys follow, before its rows are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from biaskit.personas.sampling.design import DrawSeries
from biaskit.runs.rows import lines_under
from biaskit.runs.store import read_rows

Scope = tuple[object, ...]
Row = dict[str, Any]

_SCOPE = ("occupation", "template_id", "specified_gender", "instruction_id", "setting")


def scope_of(row: Mapping[str, Any]) -> Scope:
    """Which series a row belongs to."""
    return tuple(row.get(name) for name in _SCOPE)


class Drawn:
    """The draws of each series that some rows are, whoever answered them.

    Many models answer the same draws, so these are no more than one model's rows, and hardly any memory.
    """

    def __init__(self) -> None:
        self._of: dict[Scope, _Numbers] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Note a row; what is no draw has no key either."""
        scope, draw = scope_of(row), row.get("draw")
        if type(draw) is int and draw >= 0 and all(isinstance(part, str | int | None) for part in scope):
            self._of.setdefault(scope, _Numbers()).add(draw)

    def keys(
        self,
        series_of: Mapping[Scope, DrawSeries],
        keys_of: Callable[[DrawSeries], Callable[[int], str]],
    ) -> Iterator[str]:
        """The key that each draw has for a model, given its series and the keys of their draws."""
        for scope, numbers in self._of.items():
            if (series := series_of.get(scope)) is not None:
                yield from map(keys_of(series), numbers)


class _Numbers:
    """Numbers of draws; those from 0 on without a gap are one."""

    __slots__ = ("_beyond", "_whole")

    def __init__(self) -> None:
        self._whole = 0
        self._beyond: set[int] = set()

    def add(self, number: int) -> None:
        if number >= self._whole:
            self._beyond.add(number)
        while self._whole in self._beyond:
            self._beyond.remove(self._whole)
            self._whole += 1

    def __iter__(self) -> Iterator[int]:
        yield from range(self._whole)
        yield from self._beyond


class TextsBeside:
    """The rows of runs beside this one, for one model after the other: only the first reads them all.

    It notes what they are draws of; a later model then reads what lies under its own keys.
    """

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[tuple[int, ...], Drawn]] = {}

    def rows(self, keys_in: Callable[[Drawn], Iterator[str]], path: Path) -> Iterator[Row]:
        """The rows of a file that can be a model's, whose keys are `keys_in` what the file holds."""
        now = path.stat()
        state = (now.st_ino, now.st_size, now.st_mtime_ns)
        before, drawn = self._seen.get(path, ((), Drawn()))
        if before == state:
            yield from read_rows(path, skip_bad=True, wanted=lines_under(frozenset(keys_in(drawn))))
            return
        drawn = Drawn()
        for row in read_rows(path, skip_bad=True):
            drawn.add(row)
            yield row
        self._seen[path] = state, drawn  # a file that is being written is read anew
