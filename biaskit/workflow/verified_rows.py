"""The rows of a stored run: each against its study, its key and itself, and those drawn to be asked again."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from biaskit.personas.sampling import asked_again as of_texts
from biaskit.personas.sampling.stored_design import read_design as read_texts
from biaskit.personas.texts.documents import why_not as text_why_not
from biaskit.probe import asked_again as of_cells
from biaskit.probe.believed import why_not
from biaskit.probe.stored_design import read_design as read_cells
from biaskit.records import DrawRequest, Expression, ScoreRequest
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.runs.verification import Check
from biaskit.wording import count
from biaskit.workflow.stored_checks import check

R = TypeVar("R", ScoreRequest, DrawRequest)
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Engine(Generic[R]):
    """What looking at a row needs to know of its engine."""

    design: Any
    request_of: Callable[[Row], tuple[str, R] | None]
    unfit: Callable[[Row, R], str | None]  # what keeps a row from being believed
    own_fault: Callable[[Row, R], str | None]
    named: Callable[[Row], str]
    unit: str


def engine_of(manifest: Mapping[str, Any]) -> Engine[Any]:
    """The engine of a run's rows."""
    if manifest["engine"] == "personas":
        texts = read_texts(manifest["resolved"])
        draws = of_texts.StoredDraws(manifest, texts)
        return Engine(
            texts,
            draws.request_of,
            lambda row, _: text_why_not(row),
            of_texts.own_fault,
            of_texts.text_name,
            "text",
        )
    design = read_cells(manifest["resolved"])
    cells, boundary = of_cells.StoredCells(manifest, design), design.study.word_boundary
    return Engine(
        design,
        cells.request_of,
        lambda row, request: why_not(row, _expressions(request)),
        lambda row, _: of_cells.own_fault(row, boundary),
        of_cells.cell_name,
        "cell",
    )


def _expressions(request: ScoreRequest) -> tuple[Expression, ...]:
    return request.expressions


@dataclass(slots=True)
class LookedAt(Generic[R]):
    """What one pass over the rows found."""

    reading: Reading = field(default_factory=Reading)
    unreadable: str = ""
    unknown: int = 0  # rows that this question does not need
    unfit: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)  # rows whose key is not that of what they answer
    arithmetic: list[str] = field(default_factory=list)
    n_of: dict[str, int] = field(default_factory=dict)  # model → rows that can be asked again
    drawn: dict[str, list[tuple[Row, R]]] = field(default_factory=dict)

    def checks(self, *, imported: bool) -> Iterator[Check]:
        """What the rows come to, without a model."""
        read = self.reading
        faults: list[str] = [self.unreadable] if self.unreadable else []
        faults += [f"{count(read.n_skipped, 'line')} not as written"] if read.n_skipped else []
        faults += [f"{count(read.n_twice, 'row')} there twice"] if read.n_twice else []
        fine = f"{count(read.n_rows, 'row')}, each as it was written"
        fine += f", {read.n_unsummed:,} without a checksum" if read.n_unsummed else ""
        fine += f", {self.unknown:,} not part of the question" if self.unknown else ""
        fine += ", and an unfinished end" if read.cut_bytes else ""
        yield check("rows", [*faults, *self.unfit], fine)
        if not imported and not self.unreadable:
            known = read.n_rows - self.unknown
            yield check("keys", self.keys, f"{count(known, 'row')} with the key of what it answers")
            yield check("arithmetic", self.arithmetic, f"{count(known, 'row')} without a contradiction")


def look_at_rows(
    run: Path, manifest: Mapping[str, Any], engine: Engine[R], cells: int, seed: int
) -> LookedAt[R]:
    """Read every row once; of each model `cells` rows are drawn, which follow from the seed and their keys.

    The order in which rows lie, and whether they are compressed, change nothing of the draw.
    """
    found: LookedAt[R] = LookedAt()
    heaps: dict[str, list[tuple[int, int, Row, R]]] = {}
    path = rows_file(run, manifest["engine"])
    if not path.is_file():
        found.unreadable = f"there is no {path.name}"
        return found
    imported = bool(manifest["resolved"].get("imported"))
    for number, row in enumerate(read_rows(path, skip_bad=True, reading=found.reading)):
        known = None if imported else engine.request_of(row)
        if known is None:
            found.unknown += not imported
            continue
        label, request = known
        if not _sound(found, engine, row, request):
            continue
        found.n_of[label] = found.n_of.get(label, 0) + 1
        rank = int.from_bytes(hashlib.sha256(f"{seed}:{row['key']}".encode()).digest()[:8], "big")
        heap = heaps.setdefault(label, [])
        if len(heap) < cells:
            heapq.heappush(heap, (-rank, number, row, request))
        elif cells and -heap[0][0] > rank:
            heapq.heapreplace(heap, (-rank, number, row, request))
    found.drawn = {
        label: [one[2:] for one in sorted(heap, key=lambda one: one[1])] for label, heap in heaps.items()
    }
    return found


def _sound(found: LookedAt[R], engine: Engine[R], row: Row, request: R) -> bool:
    """Whether a row can be asked again: believable, and with the key of what it says that it answers."""
    where = engine.named(row)
    if why := engine.unfit(row, request):
        found.unfit.append(f"{where}: {why}")
        return False
    if request.key != row["key"]:
        found.keys.append(f"{where}: its prompt, words or model were others when it was asked")
        return False
    if why := engine.own_fault(row, request):
        found.arithmetic.append(f"{where}: {why}")
    return True
