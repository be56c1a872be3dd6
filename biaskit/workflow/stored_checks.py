"""What `biaskit verify` looks at without a model: rows, lists, signature and tables of a stored run."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

from biaskit.corpora.loaders import (
    load_expression_sets,
    load_instructions,
    load_items,
    load_templates,
    render_forms,
)
from biaskit.corpora.prompts import load_persona_prompts
from biaskit.corpora.sources import SHIPPED, list_corpora, source_digest
from biaskit.errors import BiaskitError, CorpusError, RunError
from biaskit.files import digest_of, files_of, is_intact, read_record
from biaskit.inputs import Inputs
from biaskit.personas.sampling.stored_design import design_signature as sign_texts
from biaskit.probe.stored_design import design_signature as sign_cells
from biaskit.progress import Watcher
from biaskit.runs.resolved import design_digest
from biaskit.runs.shards import shard_of
from biaskit.runs.verification import Check
from biaskit.tables.schema import SCHEMAS
from biaskit.tables.sets import ALONE, ANALYSIS, TABLES, TableSet
from biaskit.wording import count, listed
from biaskit.workflow.personas import tables_of_texts
from biaskit.workflow.probe import tables_of_probe_run

_TABLE = Inputs(RunError, most=2**30)
MOST_NAMED = 3
ROUNDING = 1e-9
"""Relative difference of a number that another processor or library may make."""


def check(name: str, faults: Sequence[str], fine: str) -> Check:
    """A check that differs where anything is at fault: the first faults by name, the others counted."""
    if not faults:
        return Check(name, "agrees", fine)
    more = f"; and {len(faults) - MOST_NAMED:,} more" if len(faults) > MOST_NAMED else ""
    return Check(name, "differs", "; ".join(faults[:MOST_NAMED]) + more)


# --- lists -----------------------------------------------------------------------------------------------


def check_question(manifest: Mapping[str, Any]) -> Check:
    """The study in the manifest against its own digest."""
    resolved = {name: value for name, value in manifest["resolved"].items() if name != "imported"}
    if design_digest(resolved) == resolved.get("digest"):
        return Check("question", "agrees", "the manifest's study is as its digest says")
    return Check("question", "differs", "the manifest's study was changed: its digest is that of another")


def check_corpora(manifest: Mapping[str, Any]) -> Check:
    """Lists in the manifest against the lists they were read from, and those against their digests."""
    resolved, faults, away = manifest["resolved"], [], []
    try:
        list_corpora()  # each file held against its digest
    except CorpusError as error:
        faults.append(str(error))
    sources = resolved.get("sources") or {}
    for source, stated in sources.items():
        try:
            found = source_digest(source)
        except CorpusError:
            away.append(source)
            continue
        if found != stated:
            faults.append(
                f"{source} is another list here ({found[:8] or 'not shipped'}, the run's {stated[:8]})"
            )
    if not faults and sources and all(source.startswith(SHIPPED) for source in sources):
        faults += _not_in_lists(resolved)
    if away and not faults:
        return Check("corpora", "not-checked", f"not on this machine: {listed(away[:MOST_NAMED])}")
    return check("corpora", faults, f"{count(len(sources), 'list')} as in the manifest and as shipped")


def _not_in_lists(resolved: Mapping[str, Any]) -> Iterator[str]:
    """Entries of the manifest that are in none of the shipped lists it names."""
    known = _shipped_entries(resolved.get("sources") or {})
    for name, entry in _stated_entries(resolved):
        if entry not in known:
            yield f"{name} of the manifest stands in no list that it names"
            return


def _stated_entries(resolved: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What the manifest says of each entry of its lists, as far as a number depends on it."""
    for item in resolved["items"]:
        share = item["labour_female_share"]
        yield f"item {item['name']!r}", ("item", item["name"], item["group"], share)
    for template in resolved["templates"]:
        named = f"{template['bias_type']} template {template['id']}"
        yield named, ("template", template["question"], template["opening"])
    for one in filter(None, resolved["instructions"]):
        yield f"instruction {one['id']}", ("instruction", one["text"])
    for prompt in resolved.get("prompts", ()):
        yield f"prompt {prompt['name']!r}", ("prompt", prompt["open"], prompt["specified"])
    for number, listed_ in enumerate(resolved.get("expression_sets", ()), start=1):
        yield f"set of expressions {number}", ("expressions", *sorted(map(tuple, listed_)))


_LOADERS: Sequence[Callable[[str], Iterator[tuple[Any, ...]]]] = (
    lambda source: (("item", i.name, i.group, i.labour_female_share) for i in load_items(source)),
    lambda source: (("template", t.question, t.opening) for t in load_templates(source).templates),
    lambda source: (("instruction", i.text) for i in load_instructions(source)),
    lambda source: (("prompt", p.open, p.specified) for p in load_persona_prompts(source)),
    lambda source: (
        ("expressions", *sorted((e.group, e.text) for e in render_forms(one)))
        for one in load_expression_sets(source).values()
    ),
)
"""From a list's source to its entries, in the same form; of a list of another kind a `CorpusError`."""


def _shipped_entries(sources: Mapping[str, str]) -> set[tuple[Any, ...]]:
    found: set[tuple[Any, ...]] = set()
    for source, load in product(sources, _LOADERS):
        with suppress(CorpusError):
            found.update(load(source))
    return found


# --- tables ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tables:
    """A run's stored tables beside those that its rows give."""

    run: Path
    manifest: Mapping[str, Any]
    signed: str  # what the manifest's own choices give
    record: Mapping[str, Any] = field(default_factory=dict)  # analysis.json
    made: TableSet | None = None

    @classmethod
    def of(cls, run: Path, manifest: Mapping[str, Any], design: Any) -> Tables:
        """What lies there, as it is; `design`: what the manifest describes."""
        sign = sign_texts if manifest["engine"] == "personas" else sign_cells
        signed = sign(design, manifest["models"])
        return cls(run, manifest, signed, read_record(run / TABLES / ANALYSIS) or {})

    @property
    def expected(self) -> bool:
        """Whether the run is one that has tables."""
        return shard_of(self.run, self.manifest).whole

    def stored(self) -> dict[str, bytes]:
        """Name → file of every public table that lies there."""
        paths = {name: self.run / TABLES / f"{name}.csv" for name in sorted(SCHEMAS) if name not in ALONE}
        return {name: _TABLE.content(path) for name, path in paths.items() if path.is_file()}

    def check(self, watcher: Watcher) -> list[Check]:
        """The tables as they were written, the tables that the rows give, and the signature."""
        if not self.expected:
            return []
        if not self.record:
            return [Check("tables", "not-checked", "the run has no tables yet: `biaskit analyze` makes them")]
        found = [self._as_written()]
        make = tables_of_texts if self.manifest["engine"] == "personas" else None
        try:
            choices = self.record.get("choices")
            self.made = (
                make(self.run, choices, watcher=watcher) if make else tables_of_probe_run(self.run, choices)
            )
        except BiaskitError as error:
            return [*found, Check("tables", "not-checked", f"they cannot be made again: {error}")]
        return [*found, self._against_rows(self.made), self._signatures(self.made)]

    def _as_written(self) -> Check:
        stated, stored = files_of(self.record), self.stored()
        faults = [] if is_intact(self.record) else [f"{ANALYSIS} was changed after the analysis"]
        for name in sorted({*stated, *(f"{one}.csv" for one in stored)}):
            if name in stated:
                content = stored.get(name.removesuffix(".csv"))
                if digest_of(content) != stated[name]:
                    faults.append(f"{name} {'is gone' if content is None else 'is not as it was written'}")
        return check("tables as written", faults, f"{count(len(stored), 'table')} with the digests they had")

    def _against_rows(self, made: TableSet) -> Check:
        name, before, now = "tables from rows", self.record.get("methods"), made.analysis.get("methods")
        if before != now:
            return Check(name, "not-checked", "another version of the methods made the stored tables")
        faults: list[str] = []
        rounded = 0.0
        if self.record.get("rows_digest") != made.analysis.get("rows_digest"):
            faults.append("the rows are not those that the tables were made of")
        stored = self.stored()
        for table in sorted({*stored, *made.content}):
            told, largest = _compared(table, stored.get(table), made.content.get(table))
            faults += [told] if told else []
            rounded = max(rounded, largest)
        exactly = "byte for byte" if not rounded else f"to rounding (relative difference {rounded:.0e})"
        return check(
            name, faults, f"{count(len(stored), 'table')} made again from the rows, the same {exactly}"
        )

    def _signatures(self, made: TableSet) -> Check:
        faults = []
        pairs = (
            (ANALYSIS, str(self.record.get("signature", "")), str(made.analysis.get("signature", ""))),
            ("manifest.json", str(self.manifest["signature"]), self.signed),
        )
        for where, stored, now in pairs:
            if stored and (others := _other_parts(stored, now, whole=where == ANALYSIS)):
                faults.append(f"{where} says {others[0]}, its choices give {others[1]}")
        return check("signature", faults, "it is that of the choices, of the models and of the question")


def _other_parts(stored: str, now: str, *, whole: bool) -> tuple[str, str] | None:
    """The first part in which two signatures differ; the installed biaskit is of the reader, not of the run.

    `whole`: what only one of them has counts too; an older biaskit stated less in a manifest.
    """
    one, two = (
        {name: value for part in text.split(" | ") for name, _, value in [part.partition("=")]}
        for text in (stored, now)
    )
    names = {*one, *two} if whole else one.keys() & two.keys()
    for name in sorted(names - {"biaskit"}):
        if one.get(name) != two.get(name):
            return f"{name}={one.get(name, '(nothing)')}", f"{name}={two.get(name, '(nothing)')}"
    return None


def _compared(table: str, stored: bytes | None, made: bytes | None) -> tuple[str, float]:
    """What differs between a stored table and the one that the rows give, and the largest rounding."""
    if stored is None or made is None:
        return f"{table}.csv {'is missing' if stored is None else 'does not follow from the rows'}", 0.0
    if stored == made:
        return "", 0.0
    before, after = (list(csv.reader(io.StringIO(one.decode("utf-8", "replace")))) for one in (stored, made))
    largest, n, first = 0.0, 0, ""
    nothing: list[str] = []
    for number, (one, two) in enumerate(zip_longest(before, after, fillvalue=nothing)):
        for place, (a, b) in enumerate(zip_longest(one, two, fillvalue="")):
            if a == b:
                continue
            if (distance := _relative(a, b)) <= ROUNDING:
                largest = max(largest, distance)
                continue
            n += 1
            column = after[0][place] if place < len(after[0]) else f"column {place + 1}"
            first = (
                first
                or f"{table}.csv, row {number}, {column}: {a or 'empty'} stored, {b or 'empty'} from the rows"
            )
    if not n and not largest:
        return f"{table}.csv is written otherwise, its values are the same", 0.0
    return f"{first}{f' ({n:,} values of the table differ)' if n > 1 else ''}", largest


def _relative(a: str, b: str) -> float:
    try:
        one, two = float(a), float(b)
    except ValueError:
        return math.inf
    return abs(one - two) / max(abs(one), abs(two), 1e-300) if math.isfinite(one - two) else math.inf
