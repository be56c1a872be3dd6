"""What stored tables of several runs say of each other: tests, gaps, changes, notes.

See docs/methods.md#both-engines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from biaskit.compare.aliases import Aliases
from biaskit.compare.conditions import how_to_compare, measured_differently, other_vectors
from biaskit.compare.gaps import BothEngines, Measure, gap_rows, labour_table, measures
from biaskit.compare.pairs import Side, SidePair, model_pairs, pairs_of_groups
from biaskit.compare.personas import Texts, change_rows, one_vector_model, pair_rows_of_texts, texts_of
from biaskit.compare.personas import comparable as texts_comparable
from biaskit.compare.probe import (
    Answers,
    LeftOut,
    answers_of,
    forms_apart,
    groups_apart,
    pair_rows,
    same_templates,
    say_left_out,
)
from biaskit.compare.relations import gap_tests, relation_rows
from biaskit.compare.same_prompts import PromptTexts
from biaskit.runs.collection import Collection, Model, StoredRun
from biaskit.stats.contrasts import Row as TestRow
from biaskit.stats.contrasts import adjust
from biaskit.tables.query import Row

NAMES = {"probe": "the prober", "personas": "texts"}
OTHER_FORMS = "different prompt forms"
MOST_NAMED = 3
"""Pairs named in a sentence that holds for several."""


@dataclass(slots=True)
class ComparisonTables:
    """Rows of tests.csv, gaps.csv and srb_change.csv, and what a careful reader must know."""

    tests: list[TestRow] = field(default_factory=list)
    gaps: list[TestRow] = field(default_factory=list)
    srb_change: list[TestRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pairs: list[tuple[str, str, str]] = field(default_factory=list)  # engine, later, earlier


def compare_collection(
    collection: Collection,
    *,
    groups: Sequence[Side] = (),
    aliases: Aliases | None = None,
    margins: Mapping[str, float],
) -> ComparisonTables:
    """Hold every model against every other of its engine, and the engines' gaps against each other.

    Differences are later named − earlier named, models in the order of the runs and of their manifests.
    `margins`: quantity → half width of "equivalent within". p_adjusted is Holm's over all rows.
    """
    made = ComparisonTables(notes=list(collection.notes))
    answers = _answers(collection, made)
    texts = _texts(collection)
    for engine in ("probe", "personas"):
        labels = [model.label for model in _models(collection, engine)]
        made.pairs += [(engine, later.name, earlier.name) for later, earlier in model_pairs(labels)]
    _between_probes(collection, answers, groups, margins, made)
    _between_texts(collection, texts, groups, margins, made)
    _gaps(collection, answers, texts, groups, aliases or Aliases(), margins, made)
    made.tests = adjust(made.tests)
    made.notes = list(dict.fromkeys(made.notes))
    return made


def _runs(collection: Collection, engine: str) -> list[StoredRun]:
    return [run for run in collection.runs if run.engine == engine]


def _models(collection: Collection, engine: str) -> list[Model]:
    """The models of an engine in the order of the runs and of their manifests."""
    known = {
        model.label: model for part in collection.parts if part.engine == engine for model in part.models
    }
    labels = [label for run in _runs(collection, engine) for label in run.manifest["models"]]
    return [known[label] for label in dict.fromkeys(labels) if label in known]


# --- the prober --------------------------------------------------------------------------------------


def _answers(collection: Collection, made: ComparisonTables) -> dict[str, Answers]:
    """Every model's cells; gender groups in the order of the first run that has the same ones."""
    found: dict[str, Answers] = {}
    orders: dict[frozenset[str], tuple[str, ...]] = {}
    for run in _runs(collection, "probe"):
        own = tuple(str(group) for group in run.manifest["resolved"]["groups"])
        groups = orders.setdefault(frozenset(own), own)
        rows = run.tables.get("probe_cells", ())
        where = str(run.path / "tables" / "probe_cells.csv")
        found |= answers_of(rows, groups, where, PromptTexts(run.question))
        made.notes += [f"{m} has no cell in {where}." for m in run.manifest["models"] if m not in found]
    return found


def _between_probes(
    collection: Collection,
    answers: Mapping[str, Answers],
    groups: Sequence[Side],
    margins: Mapping[str, float],
    made: ComparisonTables,
) -> None:
    models = [model for model in _models(collection, "probe") if model.label in answers]
    left_out: list[tuple[SidePair, LeftOut]] = []
    apart: list[str] = []
    for pair in _pairs(models, groups, "probe", made):
        if said := groups_apart(pair, answers):
            made.notes.append(said)
            continue
        rows, left = pair_rows(pair, answers, margins)
        made.tests += rows
        left_out.append((pair, left))
        if said := forms_apart(pair, answers, rows):
            (apart if OTHER_FORMS in said else made.notes).append(said)
    made.notes += _left_out_notes(left_out)
    runs = _runs(collection, "probe")
    made.notes += _forms_notes(apart, models, runs)
    made.notes += measured_differently(runs, models)


def _forms_notes(said: Sequence[str], models: Sequence[Model], runs: Sequence[StoredRun]) -> Iterator[str]:
    """The sentences of pairs in two prompt forms, as one where they are many, and what would help."""
    if not said:
        return
    if len(said) <= MOST_NAMED:
        yield from said
    else:
        forms: dict[str, list[str]] = {}
        for model in models:
            forms.setdefault(model.prompt_form, []).append(model.label)
        listed = "; ".join(f"{form}: {', '.join(labels)}" for form, labels in forms.items())
        yield f"The models have {OTHER_FORMS} ({listed}): there is no test between those of two forms."
    yield how_to_compare(runs)


def _pairs(
    models: Sequence[Model], groups: Sequence[Side], engine: str, made: ComparisonTables
) -> Iterator[SidePair]:
    labels = [model.label for model in models]
    for side in groups:
        if models and (missing := [model for model in side.models if model not in labels]):
            made.notes.append(
                f"The group {side.name} is not compared in {NAMES[engine]}: {', '.join(missing)} did not run."
            )
    yield from model_pairs(labels)
    yield from pairs_of_groups(groups, models)


def _left_out_notes(left_out: Sequence[tuple[SidePair, LeftOut]]) -> Iterator[str]:
    """Each sentence once, with the pairs it holds for."""
    pairs: dict[str, list[str]] = {}
    for (later, earlier), left in left_out:
        if said := say_left_out(left):
            pairs.setdefault(said, []).append(f"{later.name} against {earlier.name}")
    for said, named in pairs.items():
        n = len(named) - MOST_NAMED
        more = f" and {n} more pair{'s' if n > 1 else ''}" if n > 0 else ""
        yield f"{', '.join(named[:MOST_NAMED])}{more}: {said}."


# --- texts -------------------------------------------------------------------------------------------


def _texts(collection: Collection) -> dict[str, Texts]:
    found: dict[str, Texts] = {}
    for run in _runs(collection, "personas"):
        forms = {label: str(entry["prompt_form"] or "") for label, entry in run.manifest["models"].items()}
        seed = int(run.manifest["resolved"]["study"].get("seed", 1))
        found |= texts_of(run.tables, forms, run=str(run.path), seed=seed, asked=PromptTexts(run.question))
    return found


def _between_texts(
    collection: Collection,
    texts: Mapping[str, Texts],
    groups: Sequence[Side],
    margins: Mapping[str, float],
    made: ComparisonTables,
) -> None:
    runs, models = _runs(collection, "personas"), _models(collection, "personas")
    apart: list[str] = []
    for pair in _pairs(models, groups, "personas", made):
        rows, notes = pair_rows_of_texts(pair, texts, margins)
        made.tests += rows
        apart += [note for note in notes if OTHER_FORMS in note]
        made.notes += [note for note in notes if OTHER_FORMS not in note]
        if all(len(side.models) == 1 for side in pair) and all(s.name in texts for s in pair):
            made.srb_change += change_rows(pair, texts)
    made.notes += _forms_notes(apart, models, runs)
    if said := _vectors_note(runs, texts):
        made.notes.append(said)
    made.notes += measured_differently(runs, models)


def _vectors_note(runs: Sequence[StoredRun], texts: Mapping[str, Texts]) -> str | None:
    of_run: dict[str, list[Texts]] = {}
    for own in texts.values():
        if own.vectors:
            of_run.setdefault(own.run, []).append(own)
    names = {run: list(dict.fromkeys(own.vectors for own in found)) for run, found in of_run.items()}
    return other_vectors(runs, names, lambda a, b: one_vector_model([*of_run[a], *of_run[b]]))


# --- the gaps ----------------------------------------------------------------------------------------


def _gaps(
    collection: Collection,
    answers: Mapping[str, Answers],
    texts: Mapping[str, Texts],
    groups: Sequence[Side],
    aliases: Aliases,
    margins: Mapping[str, float],
    made: ComparisonTables,
) -> None:
    """gaps.csv, the relations of every model and the tests of the gaps between models."""
    probes, written = _runs(collection, "probe"), _runs(collection, "personas")
    if not probes or not written:
        made.notes.append(f"There are no gaps: only {'the prober' if probes else 'texts'} ran.")
        return
    jobs = [row for run in probes for row in run.tables.get("probe_jobs", ())]
    represented = [row for run in written for row in run.tables.get("representation", ())]
    made.notes += aliases.unknown(_names(jobs, represented))
    labour = labour_table(represented, jobs, aliases)
    made.notes += [labour.note] if labour.note else []
    joined = list(_both_engines(collection, made))
    measured: dict[str, list[Measure]] = {}
    for both in joined:
        rows, notes = gap_rows(both, labour, aliases)
        made.gaps += rows
        made.notes += [f"{note.rstrip('.')}." for note in notes]
        if rows:
            measured[both.model] = list(measures(rows))
            seed = texts[both.personas_model].seed
            made.tests += relation_rows(measured[both.model], margins, seed)
    _between_gaps(collection, joined, answers, texts, groups, measured, margins, made)


def _between_gaps(
    collection: Collection,
    joined: Sequence[BothEngines],
    answers: Mapping[str, Answers],
    texts: Mapping[str, Texts],
    groups: Sequence[Side],
    measured: Mapping[str, Sequence[Measure]],
    margins: Mapping[str, float],
    made: ComparisonTables,
) -> None:
    """Each gap of two models against each other, where all were asked the same."""
    own = {both.model: both for both in joined}

    def comparable(pair: SidePair, one: Measure) -> bool:
        members = [own[model] for side in pair for model in side.models]
        if one.gap == "probe_gap":
            asked = [answers[both.probe_model] for both in members]
            names = {both.probe_model for both in members}
            same = same_templates(asked, one.bias_type, one.prompt_form)
        else:
            names = {both.personas_model for both in members}
            same = texts_comparable([texts[name] for name in names], scores=one.gap == "srb_spread")
        return same and len(names) == len(members)  # one model's number is not held against itself

    known = {model.label: model for engine in ("personas", "probe") for model in _models(collection, engine)}
    models = [known[label] for label in measured]
    for pair in (*model_pairs(list(measured)), *pairs_of_groups(groups, models)):
        seed = texts[own[pair[0].models[0]].personas_model].seed
        made.tests += gap_tests(pair, measured, comparable, margins, seed)


def _names(jobs: Sequence[Row], represented: Sequence[Row]) -> set[str]:
    return {str(row["job"]) for row in jobs} | {str(row["occupation"]) for row in represented}


def _both_engines(collection: Collection, made: ComparisonTables) -> Iterator[BothEngines]:
    """Models that both engines asked under one label, as the runs themselves have it.

    Where several runs of one engine have the label, each is joined with the other engine's one; where
    both engines have several, nobody can tell which belong together.
    """
    probes, written = (_by_own_label(_runs(collection, engine)) for engine in ("probe", "personas"))
    joined = [label for label in probes if label in written]
    if not joined:
        made.notes.append(
            "There are no gaps: no model stands in both engines under one label (LABEL=SPEC gives it one)."
        )
    for own in joined:
        if len(probes[own]) > 1 and len(written[own]) > 1:
            made.notes.append(f"{own} stands in several runs of both engines: it has no gaps.")
            continue
        for here, run in probes[own]:
            for there, texts in written[own]:
                name = here if len(probes[own]) > 1 else there
                yield BothEngines(name, run.tables, texts.tables, here, there)


def _by_own_label(runs: Sequence[StoredRun]) -> dict[str, list[tuple[str, StoredRun]]]:
    """Label in a run's rows → its labels in the collection, with their runs."""
    found: dict[str, list[tuple[str, StoredRun]]] = {}
    for run in runs:
        for own, label in run.names.items():
            found.setdefault(own, []).append((label, run))
    return found
