"""Which cell of a run a stored row answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from biaskit.exchange.source import Source
from biaskit.probe.analysis import places_of
from biaskit.probe.design import ProbeDesign
from biaskit.probe.stored_design import read_design
from biaskit.records import Cell
from biaskit.runs.collection import StoredRun


def design_of(run: StoredRun) -> ProbeDesign:
    """The design of a run of the prober."""
    return read_design(run.manifest["resolved"])


def rows_of_cells(source: Source, run: StoredRun) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """(cell, row) for every stored row of a run's own question, in the order of the rows.

    Cells are named as in the collection. A row of two labels of one model comes twice, a drawn cell once for
    each round; rows of other questions in the folder are passed over, as in the analysis.
    """
    cells, places = places_of(run.manifest, design_of(run))
    for row in source.rows(run):
        yield from ((cells[place], row) for place in places(row))
