"""Which samples are the log of a model: the cells of a bias type, or the texts of a generation run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biaskit.exchange.inspect_format import Placed
from biaskit.exchange.source import Source
from biaskit.probe.analysis import CELL, cell_places
from biaskit.probe.continuations import continued_models
from biaskit.probe.design import ProbeDesign
from biaskit.probe.stored_design import read_design
from biaskit.records import Cell
from biaskit.runs.collection import StoredRun
from biaskit.runs.manifest import read_manifest
from biaskit.runs.store import read_rows, rows_file
from biaskit.tables.query import Row, where

Answer = tuple[str, str | None]
"""A text and what ended it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A cell or a text, ready for a log.

    Attributes:
        id: sorts as the study does, and tells the row's key.
        prompt: as it was sent.
        answers: what was drawn, or one text of the probabilities.
        score: name → share, coverage or gender; None where it is not defined.
        scored: what else the tables say of it.
        columns: what was asked.
        rows: all that an import needs.
    """

    id: str
    prompt: str
    answers: tuple[Answer, ...]
    score: Mapping[str, float | str | None]
    scored: Mapping[str, Any]
    columns: Mapping[str, Any]
    rows: tuple[Placed, ...]

    def numbers(self, name: str) -> list[int]:
        """What its rows say of a number of tokens."""
        return [n for _, _, row in self.rows if type(n := row.get(name)) is int]

    @property
    def times(self) -> list[str]:
        """When its rows were answered, in order."""
        return sorted(at for _, _, row in self.rows if isinstance(at := row.get("answered_at"), str))


@dataclass(frozen=True, slots=True)
class Unit:
    """One log: a model, and in a probe run a bias type."""

    run: StoredRun
    label: str  # as the run's own rows and manifest name the model
    bias_type: str | None
    samples: tuple[Sample, ...]
    n_asked: int
    results: tuple[Row, ...]  # rows of probe_groups or representation
    groups: tuple[str, ...] = ()


def units_of(source: Source, run: StoredRun) -> tuple[list[Unit], list[str]]:
    """The logs of a run, and what they cannot hold as sentences."""
    return _probe_units(source, run) if run.engine == "probe" else _text_units(source, run)


# --- probabilities -----------------------------------------------------------------------------------


def _probe_units(source: Source, run: StoredRun) -> tuple[list[Unit], list[str]]:
    manifest = read_manifest(run.path)  # with the labels that its rows have
    design = read_design(manifest["resolved"])
    cells, places = cell_places(manifest, design)
    stored: dict[int, list[Placed]] = {}
    n_unused = 0
    for name, rows, of in _files(source, run, manifest, design, (cells, places)):
        for at, row in enumerate(rows):
            own = of(row)
            n_unused += not own
            for i in own:
                stored.setdefault(i, []).append((name, at, row))
    of_tables = _by_cell(run.tables.get("probe_cells", ()))
    made: dict[tuple[str, str], list[Sample]] = {}
    for i, cell in enumerate(cells):
        samples = made.setdefault((cell.model, cell.bias_type), [])
        if any(name == "probe" for name, _, _ in stored.get(i, ())):
            said = of_tables[(run.names[cell.model], *_cell(cell))]
            samples.append(_cell_sample(i, cell, stored[i], said, design.groups))
    n_asked = {unit: sum((c.model, c.bias_type) == unit for c in cells) for unit in made}
    groups = run.tables.get("probe_groups", ())
    units = [
        Unit(
            run,
            label,
            bias_type,
            tuple(samples),
            n_asked[label, bias_type],
            tuple(where(groups, model=run.names[label], bias_type=bias_type)),
            design.groups,
        )
        for (label, bias_type), samples in made.items()
    ]
    return units, _unused(n_unused, run)


Places = Callable[[Mapping[str, Any]], Sequence[int]]
"""Which cells a row belongs to, by their numbers."""


def _files(
    source: Source,
    run: StoredRun,
    manifest: Mapping[str, Any],
    design: ProbeDesign,
    found: tuple[list[Cell], Places],
) -> Iterator[tuple[str, Iterable[Mapping[str, Any]], Places]]:
    """Each row file of a probe run with its rows, and which cells each of them belongs to."""
    cells, places = found
    yield "probe", source.rows(run), places
    if not (path := rows_file(run.path, "continuations")).is_file():
        return
    number = {cell: i for i, cell in enumerate(cells)}
    continued, of = cell_places({"models": continued_models(manifest)}, design)
    skip = design.study.skip_bad_lines
    yield "continuations", read_rows(path, skip_bad=skip), lambda row: [number[continued[i]] for i in of(row)]


def _unused(n: int, run: StoredRun) -> list[str]:
    return [f"{n:,} stored rows of {run.path} are not part of its question and are in no log"] if n else []


def _cell(one: Cell) -> tuple[Any, ...]:
    return tuple(getattr(one, name) for name in CELL)


def _by_cell(rows: Sequence[Row]) -> dict[tuple[Any, ...], Row]:
    return {(row["model"], *(row[name] for name in CELL)): row for row in rows}


def _cell_sample(i: int, cell: Cell, rows: list[Placed], said: Row, groups: tuple[str, ...]) -> Sample:
    first = next(row for name, _, row in rows if name == "probe")
    score = {f"{group} share": said[f"{group}_share"] for group in groups}
    return Sample(
        id=f"{i:06d}-{first['key']}",
        prompt=str(first["prompt"]),
        answers=tuple(_answers(row for name, _, row in rows if name == "probe")),
        score={**score, "coverage": said["coverage"]},
        scored={name: value for name, value in said.items() if name not in ("model", *CELL, "job_group")},
        columns={"job": cell.job, "job_group": cell.job_group}
        | {name: getattr(cell, name) for name in CELL if name != "job"}
        | {"key": first["key"], "system": first.get("system")},
        rows=tuple(rows),
    )


def _answers(rows: Iterator[Mapping[str, Any]]) -> Iterator[Answer]:
    """What was drawn; where nothing was, a line for each expression with what is known of it."""
    for row in rows:
        if row["estimator"] == "sampling":
            yield from ((text, finish) for text, finish in row.get("answers", ()))
        elif row["estimator"] == "top-k":
            lists = row["listed"][""]
            yield "\n".join(f"{math.exp(p):.6f}  {token!r}" for token, p in lists), "max_tokens"
        else:
            known = [(e["text"], e["group"], e["log_prob"]) for e in row["expressions"]]
            lines = (
                f"{0.0 if p is None else math.exp(p):.6f}  {text!r} ({group})" for text, group, p in known
            )
            yield "\n".join(lines), None


# --- texts -------------------------------------------------------------------------------------------


def _text_units(source: Source, run: StoredRun) -> tuple[list[Unit], list[str]]:
    associated = {row["key"]: row for row in run.tables.get("associations", ())}
    made: dict[str, list[Sample]] = {label: [] for label in run.names}
    n_unused = 0
    for at, row in enumerate(source.rows(run)):
        said = associated.get(row["key"])
        if said is None or row.get("model") not in made:
            n_unused += 1
            continue
        made[row["model"]].append(_text_sample(at, row, said))
    shares = run.tables.get("representation", ())
    units = [
        Unit(run, label, None, tuple(own), len(own), tuple(where(shares, model=run.names[label])))
        for label, own in made.items()
    ]
    return units, _unused(n_unused, run)


def _text_sample(at: int, row: Mapping[str, Any], said: Row) -> Sample:
    hidden = ("text", "prompt", "answered_at", "answered_by", "model")
    return Sample(
        id=f"{at:06d}-{row['key']}",
        prompt=str(row.get("prompt") or ""),
        answers=((str(row["text"]), row.get("finish_reason")),),
        score={"gender": said["gender"] or "none"},
        scored={name: value for name, value in said.items() if name not in ("model", "key")},
        columns={name: value for name, value in row.items() if name not in hidden},
        rows=(("personas", at, row),),
    )
