"""What an export is made from, and the files that it makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from biaskit.common.wording import listed
from biaskit.errors import UsageError
from biaskit.measures.probe.design import read
from biaskit.measures.probe.requests import places_of
from biaskit.records import Cell
from biaskit.report.content import Content
from biaskit.runs.collection import Collection, StoredRun

_FLAGS = {"texts": "--no-texts"}  # the others are called as they are in Python


@dataclass(frozen=True, slots=True)
class Source:
    """Stored runs, side by side."""

    collection: Collection  # their tables and manifests, models told apart
    content: Content  # the same with a verdict on every contrast (`Content.judged`); no texts, no prompts
    options: Mapping[str, Any]  # of one format, by their names on the command line

    def cells(self, run: StoredRun) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Yield (cell, row) for every stored row of a run's own question, in the order of the rows.

        Models have their names of the collection. A row that two labels of one model share comes twice, a
        drawn cell once for each round; rows of other questions are passed over, as in the analysis.
        """
        cells, places = places_of(run.manifest, read(run.manifest["resolved"]))
        for row in run.rows():
            yield from ((cells[place], row) for place in places(row))

    def takes_only(self, *names: str) -> None:
        """Refuse options that belong to another format. Raises `UsageError`."""
        flags = {name: _FLAGS.get(name, f"--{name}") for name in (*names, *self.options)}
        for name in self.options:
            if name not in names:
                takes = f"takes {listed([flags[n] for n in names])}" if names else "takes no option"
                raise UsageError(f"This format {takes}, not {flags[name]}.")


@dataclass(frozen=True, slots=True)
class ExportFiles:
    """Files by their names in the folder of an export; `first` is the one to open."""

    files: Mapping[str, bytes]
    first: str
    notes: tuple[str, ...] = ()  # what the format could not hold, and how the files are used


def package(name: str, extra: str, why: str) -> ModuleType:
    """Import a package of an extra. Raises `UsageError` with the line that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(f"{why} needs {name} ({error}): pip install 'biaskit[{extra}]'.") from None
