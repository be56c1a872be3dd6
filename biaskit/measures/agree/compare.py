"""Relate what probes and texts say of the same model (methods/comparisons#both-kinds).

Asks nothing, reads the tables of two kinds, and alone may name them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from biaskit.compare.aliases import key_of
from biaskit.compare.comparison import Comparison
from biaskit.compare.pairs import model_pairs, pairs_of_groups
from biaskit.compare.validity import runs_by_label
from biaskit.errors import nearest
from biaskit.measures.agree.gaps import BothKinds, Measure, gap_rows, measures, workforce_table
from biaskit.measures.agree.relations import gap_tests, relation_rows
from biaskit.runs.collection import StoredRun
from biaskit.tables.query import Row, distinct


def compare(comparison: Comparison) -> None:
    """Add gaps.csv, the relations of every model and the tests of the gaps between models."""
    tables, aliases = comparison.tables, comparison.aliases
    probes, written = comparison.runs("probe"), comparison.runs("personas")
    if not probes or not written:
        if aliases and (probes or written):  # they are for gaps alone
            only = "probe" if probes else "personas"
            tables.notes.append(f"There are no gaps, which --aliases is for: only biaskit {only} ran.")
        return
    jobs, represented = _rows(probes, "probe_jobs"), _rows(written, "representation")
    listed = [*distinct(jobs, "job"), *distinct(represented, "occupation")]
    names = {key_of(str(name), {}) for name in listed}
    for name in dict.fromkeys([*aliases, *aliases.values()]):
        if name not in names:
            tables.notes.append(f"--aliases: no run has {name!r}.{nearest(name, names)}")
    workforce, notes = workforce_table(represented, jobs, aliases)
    tables.notes += notes
    measured: dict[str, list[Measure]] = {}
    seeds: dict[str, int] = {}
    for both in list(_both_kinds(probes, written, tables.notes)):  # its notes come first
        rows, notes = gap_rows(both, workforce, aliases)
        tables.rows["gaps"] += rows
        tables.notes += notes
        if rows:
            measured[both.model] = list(measures(both, rows))
            seeds[both.model] = int(both.personas.manifest.resolved["study"].get("seed", 1))
            tests = relation_rows(measured[both.model], comparison.margins, seeds[both.model])
            tables.tests += tests
    models = {model.label: model for model in comparison.models([*written, *probes])}
    of_groups = pairs_of_groups(comparison.groups, [models[label] for label in measured])
    for pair in (*model_pairs(list(measured)), *of_groups):
        seed = seeds[pair[0].models[0]]
        tables.tests += gap_tests(pair, measured, comparison.margins, seed)


def _rows(runs: Iterable[StoredRun], table: str) -> list[Row]:
    return list(chain.from_iterable(run.tables.get(table, ()) for run in runs))


def _both_kinds(
    probes: Iterable[StoredRun], written: Iterable[StoredRun], notes: list[str]
) -> Iterator[BothKinds]:
    """Join the runs of models that both measurements have under one label, as the runs themselves name them.

    Where several runs of one measurement have the label, each is joined with the one run of the other; where
    both measurements have several, nobody can tell which belong together.
    """
    runs_of = runs_by_label([*probes, *written])
    joined = [label for label, by_kind in runs_of.items() if len(by_kind) > 1]
    if not joined:
        notes.append(
            "There are no gaps: no model has the same label in both measurements (LABEL=SPEC sets it)."
        )
    for label in joined:
        probed, texts = runs_of[label]["probe"], runs_of[label]["personas"]
        several = len(probed) > 1
        if several and len(texts) > 1:
            notes.append(f"{label} is in several runs of both measurements: it has no gaps.")
            continue
        for probe_label, probe in probed:
            for texts_label, run in texts:
                name = probe_label if several else texts_label
                yield BothKinds(name, probe, run, probe_label, texts_label)
