"""What stored tables of several runs say of each other: tests, gaps, changes, notes.

See docs/methods.md#both-engines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from biaskit.common.wording import short
from biaskit.compare.aliases import key_of
from biaskit.compare.conditions import measured_differently
from biaskit.compare.gaps import BothEngines, Measure, gap_rows, labour_table, measures
from biaskit.compare.outcomes import outcomes_of, pair_rows_of_outcomes, without_answers
from biaskit.compare.pairs import (
    PairNote,
    Side,
    SidePair,
    group_notes,
    model_pairs,
    pairs_of_groups,
    say_apart,
)
from biaskit.compare.personas import Texts, change_rows, one_vector_model, pair_rows_of_texts, texts_of
from biaskit.compare.personas import comparable as texts_comparable
from biaskit.compare.probe import (
    Answers,
    answers_of,
    forms_apart,
    groups_apart,
    pair_rows,
    same_templates,
)
from biaskit.compare.relations import gap_tests, relation_rows
from biaskit.compare.same_prompts import PromptTexts
from biaskit.errors import nearest
from biaskit.runs.collection import Collection, Model, StoredRun
from biaskit.stats.contrasts import Row as TestRow
from biaskit.stats.contrasts import adjust


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
    aliases: Mapping[str, str] | None = None,
    margins: Mapping[str, float],
) -> ComparisonTables:
    """Hold every model against every other of its engine, and the engines' gaps against each other.

    Differences are later named − earlier named, models in the order of the runs and of their manifests.
    `margins`: quantity → half width of "equivalent within". p_adjusted is Holm's over all rows.
    """
    made = ComparisonTables(notes=list(collection.notes))
    comparison = _Comparison(collection, groups, margins, made)
    for engine in ("probe", "personas"):
        labels = [model.label for model in comparison.models(engine)]
        made.pairs += [(engine, later.name, earlier.name) for later, earlier in model_pairs(labels)]
    comparison.of_probes()
    comparison.of_texts()
    comparison.of_gaps(aliases or {})
    made.tests = adjust(made.tests)
    made.notes = list(dict.fromkeys(made.notes))
    return made


class _Comparison:
    """What every step of a comparison needs, and the tables that they fill."""

    def __init__(
        self,
        collection: Collection,
        groups: Sequence[Side],
        margins: Mapping[str, float],
        made: ComparisonTables,
    ) -> None:
        self.collection, self.groups, self.margins, self.made = collection, groups, margins, made
        self.answers, self.outcomes = self._answers()
        self.texts = self._texts()

    def runs(self, engine: str) -> list[StoredRun]:
        """The runs of an engine in the order they were named."""
        return [run for run in self.collection.runs if run.engine == engine]

    def models(self, engine: str) -> list[Model]:
        """The models of an engine in the order of the runs and of their manifests."""
        parts = [part for part in self.collection.parts if part.engine == engine]
        known = {model.label: model for part in parts for model in part.models}
        labels = [label for run in self.runs(engine) for label in run.manifest["models"]]
        return [known[label] for label in dict.fromkeys(labels) if label in known]

    def _pairs(self, models: Sequence[Model], engine: str) -> Iterator[SidePair]:
        labels = [model.label for model in models]
        where = "the prober" if engine == "probe" else "texts"
        for side in self.groups:
            if models and (missing := [model for model in side.models if model not in labels]):
                named = ", ".join(missing)
                self.made.notes.append(
                    f"The group {side.name} is not compared in {where}: {named} did not run."
                )
        self.made.notes += group_notes(self.groups, models)
        yield from model_pairs(labels)
        yield from pairs_of_groups(self.groups, models)

    # --- the prober ----------------------------------------------------------------------------------

    def _answers(self) -> tuple[dict[str, Answers], dict[str, Answers]]:
        """Every model's cells, and what its drawn answers come to, where it has some.

        Gender groups stand in the order of the first run that has the same ones.
        """
        answers: dict[str, Answers] = {}
        outcomes: dict[str, Answers] = {}
        orders: dict[frozenset[str], tuple[str, ...]] = {}
        for run in self.runs("probe"):
            own = tuple(str(group) for group in run.manifest["resolved"]["groups"])
            groups = orders.setdefault(frozenset(own), own)
            rows, asked = run.tables.get("probe_cells", ()), PromptTexts(run.question)
            where = str(run.path / "tables" / "probe_cells.csv")
            answers |= answers_of(rows, groups, where, asked)
            outcomes |= outcomes_of(rows, run.manifest["models"], where, asked)
            absent = [model for model in run.manifest["models"] if model not in answers]
            self.made.notes += [f"{model} has no cell in {where}." for model in absent]
        return answers, outcomes

    def of_probes(self) -> None:
        """Rows of tests between models that were probed."""
        models = [model for model in self.models("probe") if model.label in self.answers]
        left_out: dict[str, None] = {}
        notes: list[PairNote] = []
        for pair in self._pairs(models, "probe"):
            if note := groups_apart(pair, self.answers):
                notes.append(note)
                continue
            rows, left = pair_rows(pair, self.answers, self.margins)
            self.made.tests += rows
            self.made.tests += pair_rows_of_outcomes(pair, self.outcomes, self.margins)
            left_out |= dict.fromkeys(left)
            if note := forms_apart(pair, self.answers, rows):
                notes.append(note)
        self.made.notes += say_apart(notes, {model.label: model.prompt_form for model in models})
        if left_out:
            self.made.notes.append(
                f"Not asked of all models in the same words, and left out: {'; '.join(left_out)}."
            )
        self.made.notes += measured_differently(self.runs("probe"), models)
        self.made.notes += without_answers([model.label for model in models], self.outcomes)

    # --- texts ---------------------------------------------------------------------------------------

    def _texts(self) -> dict[str, Texts]:
        texts: dict[str, Texts] = {}
        for run in self.runs("personas"):
            entries = run.manifest["models"].items()
            forms = {label: str(entry["prompt_form"] or "") for label, entry in entries}
            seed = int(run.manifest["resolved"]["study"].get("seed", 1))
            asked = PromptTexts(run.question)
            texts |= texts_of(run.tables, forms, run=str(run.path), seed=seed, asked=asked)
        return texts

    def of_texts(self) -> None:
        """Rows of tests and of srb_change between models that wrote texts."""
        runs, models = self.runs("personas"), self.models("personas")
        notes: list[PairNote] = []
        for pair in self._pairs(models, "personas"):
            rows, apart = pair_rows_of_texts(pair, self.texts, self.margins)
            self.made.tests += rows
            notes += apart
            if all(len(side.models) == 1 and side.name in self.texts for side in pair):
                self.made.srb_change += change_rows(pair, self.texts)
        self.made.notes += say_apart(notes, {model.label: model.prompt_form for model in models})
        scored = [texts for texts in self.texts.values() if texts.vectors]
        if not one_vector_model(scored):
            listed = ", ".join(dict.fromkeys(f"{texts.run} ({texts.vectors})" for texts in scored))
            self.made.notes.append(
                f"SRB scores come from other vectors ({listed}): they are neither compared nor put in one"
                " table, srb_z is the score to set side by side. `biaskit analyze RUN RUN --out DIR` trains"
                " one vector model on all texts of runs that can be merged."
            )
        self.made.notes += measured_differently(runs, models)
        columns = [
            f"{short(run.tables['group_lists'][0]['column'])} in {run.path}"
            for run in runs
            if run.tables.get("group_lists")
        ]
        if columns:
            self.made.notes.append(
                f"Own groups are not compared ({', '.join(columns)}): each run's group_lists.csv has its own."
            )

    # --- the gaps ------------------------------------------------------------------------------------

    def of_gaps(self, aliases: Mapping[str, str]) -> None:
        """gaps.csv, the relations of every model and the tests of the gaps between models."""
        made, probes, written = self.made, self.runs("probe"), self.runs("personas")
        if not probes or not written:
            made.notes.append(f"There are no gaps: only {'the prober' if probes else 'texts'} ran.")
            return
        jobs = [row for run in probes for row in run.tables.get("probe_jobs", ())]
        represented = [row for run in written for row in run.tables.get("representation", ())]
        known = {key_of(str(row["job"]), {}) for row in jobs}
        known |= {key_of(str(row["occupation"]), {}) for row in represented}
        unknown = [name for name in dict.fromkeys([*aliases, *aliases.values()]) if name not in known]
        made.notes += [f"--aliases: no run has {name!r}.{nearest(name, known)}" for name in unknown]
        labour, apart = labour_table(represented, jobs, aliases)
        made.notes += apart
        joined = {both.model: both for both in self._both_engines()}
        measured: dict[str, list[Measure]] = {}
        for model, both in joined.items():
            rows, notes = gap_rows(both, labour, aliases)
            made.gaps += rows
            made.notes += notes
            if rows:
                measured[model] = list(measures(rows))
                seed = self.texts[both.personas_model].seed
                made.tests += relation_rows(measured[model], self.margins, seed)
        self._gaps_between_models(joined, measured)

    def _gaps_between_models(
        self, joined: Mapping[str, BothEngines], measured: Mapping[str, Sequence[Measure]]
    ) -> None:
        """Each gap of two models against each other, where all were asked the same."""

        def comparable(pair: SidePair, one: Measure) -> bool:
            members = [joined[model] for side in pair for model in side.models]
            if one.gap == "probe_gap":
                names = {both.probe_model for both in members}
                asked = [self.answers[both.probe_model] for both in members]
                same = same_templates(asked, one.bias_type, one.prompt_form)
            else:
                names = {both.personas_model for both in members}
                same = texts_comparable([self.texts[name] for name in names], scores=one.gap == "srb_spread")
            return same and len(names) == len(members)  # one model's number is not held against itself

        known = {model.label: model for engine in ("personas", "probe") for model in self.models(engine)}
        models = [known[label] for label in measured]
        for pair in (*model_pairs(list(measured)), *pairs_of_groups(self.groups, models)):
            seed = self.texts[joined[pair[0].models[0]].personas_model].seed
            self.made.tests += gap_tests(pair, measured, comparable, self.margins, seed)

    def _both_engines(self) -> Iterator[BothEngines]:
        """Models that both engines asked under one label, as the runs themselves have it.

        Where several runs of one engine have the label, each is joined with the other engine's one; where
        both engines have several, nobody can tell which belong together.
        """
        by_label: dict[str, dict[str, list[tuple[str, StoredRun]]]] = {"probe": {}, "personas": {}}
        for run in self.collection.runs:
            for own, label in run.names.items():
                by_label[run.engine].setdefault(own, []).append((label, run))
        probes, written = by_label.values()
        joined = [label for label in probes if label in written]
        if not joined:
            self.made.notes.append(
                "There are no gaps: no model stands in both engines under one label"
                " (LABEL=SPEC gives it one)."
            )
        for own in joined:
            if len(probes[own]) > 1 and len(written[own]) > 1:
                self.made.notes.append(f"{own} stands in several runs of both engines: it has no gaps.")
                continue
            for here, run in probes[own]:
                for there, texts in written[own]:
                    name = here if len(probes[own]) > 1 else there
                    yield BothEngines(name, run.tables, texts.tables, here, there)
