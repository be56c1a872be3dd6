"""Compare stored tables of several runs: tests, gaps, SRB changes (methods/comparisons#both-engines)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
    nothing_common,
    pair_rows,
    same_templates,
)
from biaskit.compare.relations import gap_tests, relation_rows
from biaskit.compare.same_prompts import PromptTexts
from biaskit.compare.sentence_pairs import pair_rows_of_sentences, scores_of
from biaskit.errors import nearest
from biaskit.runs.collection import Collection, Model, StoredRun, rule_of
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
    margins: Mapping[str, float],  # quantity → half width of "equivalent within"
) -> ComparisonTables:
    """Compare every model with every other of its engine, later named − earlier, and both engines' gaps."""
    tables = ComparisonTables(notes=list(collection.notes))
    comparison = _Comparison(collection, groups, margins, tables)
    for engine in ("probe", "personas"):
        labels = [model.label for model in comparison.models(engine)]
        tables.pairs += [(engine, later.name, earlier.name) for later, earlier in model_pairs(labels)]
    comparison.compare_answers()
    comparison.compare_texts()
    comparison.compare_gaps(aliases or {})
    tables.tests = adjust(tables.tests, rule_of(collection.parts))
    tables.notes = list(dict.fromkeys(tables.notes))
    return tables


@dataclass
class _Comparison:
    """What all steps of a comparison need, and the tables that they fill."""

    collection: Collection
    groups: Sequence[Side]
    margins: Mapping[str, float]
    tables: ComparisonTables

    def __post_init__(self) -> None:
        self.answers, self.outcomes = self._answers()
        self.scores: dict[str, Any] = {}  # of pairs of sentences
        for run in self.runs("probe"):
            pairs = run.manifest["resolved"].get("pairs", ())
            self.scores |= scores_of(run.tables.get("pair_scores", ()), pairs)
        self.texts = self._texts()

    def runs(self, engine: str) -> list[StoredRun]:
        """List the runs of an engine in the order they were named."""
        return [run for run in self.collection.runs if run.engine == engine]

    def models(self, engine: str) -> list[Model]:
        """List the models of an engine in the order of the runs and of their manifests."""
        parts = [part for part in self.collection.parts if part.engine == engine]
        by_label = {model.label: model for part in parts for model in part.models}
        labels = [label for run in self.runs(engine) for label in run.manifest["models"]]
        return [by_label[label] for label in dict.fromkeys(labels) if label in by_label]

    def _pairs(self, models: Sequence[Model], engine: str) -> Iterator[SidePair]:
        labels = [model.label for model in models]
        where = "biaskit probe" if engine == "probe" else "biaskit personas"
        for side in self.groups:
            if models and (missing := [model for model in side.models if model not in labels]):
                self.tables.notes.append(
                    f"The group {side.name} is not compared in {where}: {', '.join(missing)} did not run."
                )
        self.tables.notes += group_notes(self.groups, models)
        yield from model_pairs(labels)
        yield from pairs_of_groups(self.groups, models)

    # --- the prober ----------------------------------------------------------------------------------

    def _answers(self) -> tuple[dict[str, Answers], dict[str, Answers]]:
        """Read the cells and answers of every model; groups in the order of the first run with the same."""
        answers: dict[str, Answers] = {}
        outcomes: dict[str, Answers] = {}
        orders: dict[frozenset[str], tuple[str, ...]] = {}
        for run in self.runs("probe"):
            order = tuple(str(group) for group in run.manifest["resolved"]["groups"])
            groups = orders.setdefault(frozenset(order), order)
            rows, asked = run.tables.get("probe_cells", ()), PromptTexts(run.question)
            where = str(run.path / "tables" / "probe_cells.csv")
            answers |= answers_of(rows, groups, where, asked)
            outcomes |= outcomes_of(rows, run.manifest["models"], where, asked)
            absent = [m for m in run.manifest["models"] if rows and m not in answers]
            self.tables.notes += [f"{model} has no row in {where}." for model in absent]
        return answers, outcomes

    def compare_answers(self) -> None:
        """Add the tests between models that were probed, and their notes."""
        models = [model for model in self.models("probe") if model.label in {**self.answers, **self.scores}]
        left_out: dict[str, None] = {}
        notes: list[PairNote] = []
        for pair in self._pairs(models, "probe"):
            members = {model for side in pair for model in side.models}
            if members <= self.scores.keys():
                rows = pair_rows_of_sentences(pair, self.scores, self.margins)
                self.tables.tests += rows
                if not rows:
                    notes.append(nothing_common(pair))
                continue
            if members & self.scores.keys():
                notes.append(nothing_common(pair))
                continue
            if note := groups_apart(pair, self.answers):
                notes.append(note)
                continue
            rows, arms = pair_rows(pair, self.answers, self.margins)
            self.tables.tests += rows
            self.tables.tests += pair_rows_of_outcomes(pair, self.outcomes, self.margins)
            left_out |= dict.fromkeys(arms)
            if note := forms_apart(pair, self.answers, rows):
                notes.append(note)
        self.tables.notes += say_apart(notes, {model.label: model.prompt_form for model in models})
        if left_out:
            self.tables.notes.append(
                f"Left out, since not all models had the same prompts: {'; '.join(left_out)}."
            )
        self.tables.notes += measured_differently(self.runs("probe"), models)
        self.tables.notes += without_answers([model.label for model in models], self.outcomes)

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

    def compare_texts(self) -> None:
        """Add tests and changes of SRB between models that wrote texts, and their notes."""
        runs, models = self.runs("personas"), self.models("personas")
        notes: list[PairNote] = []
        for pair in self._pairs(models, "personas"):
            rows, notes_of_pair = pair_rows_of_texts(pair, self.texts, self.margins)
            self.tables.tests += rows
            notes += notes_of_pair
            if all(len(side.models) == 1 and side.name in self.texts for side in pair):
                self.tables.srb_change += change_rows(pair, self.texts)
        self.tables.notes += say_apart(notes, {model.label: model.prompt_form for model in models})
        scored = [texts for texts in self.texts.values() if texts.vectors]
        if not one_vector_model(scored):
            listed = ", ".join(dict.fromkeys(f"{texts.run} ({texts.vectors})" for texts in scored))
            self.tables.notes.append(
                f"SRB scores come from different word vectors ({listed}), so they are not compared."
                " `biaskit analyze RUN RUN --out DIR` trains one vector model on all texts of runs that can"
                " be merged."
            )
        self.tables.notes += measured_differently(runs, models)
        columns = [
            f"{short(run.tables['group_lists'][0]['column'])} in {run.path}"
            for run in runs
            if run.tables.get("group_lists")
        ]
        if columns:
            self.tables.notes.append(
                f"Own groups are not compared ({', '.join(columns)}): each run's group_lists.csv has its own."
            )

    # --- the gaps ------------------------------------------------------------------------------------

    def compare_gaps(self, aliases: Mapping[str, str]) -> None:
        """Add gaps.csv, the relations of every model and the tests of the gaps between models."""
        tables, probes, written = self.tables, self.runs("probe"), self.runs("personas")
        if self.scores and not self.answers and not written:
            return  # pairs of sentences have no occupations
        if not probes or not written:
            only = "probe" if probes else "personas"
            tables.notes.append(f"There are no gaps: only biaskit {only} ran.")
            return
        jobs = [row for run in probes for row in run.tables.get("probe_jobs", ())]
        represented = [row for run in written for row in run.tables.get("representation", ())]
        names = {key_of(str(row["job"]), {}) for row in jobs}
        names |= {key_of(str(row["occupation"]), {}) for row in represented}
        unknown = [name for name in dict.fromkeys([*aliases, *aliases.values()]) if name not in names]
        tables.notes += [f"--aliases: no run has {name!r}.{nearest(name, names)}" for name in unknown]
        labour, notes = labour_table(represented, jobs, aliases)
        tables.notes += notes
        joined = {both.model: both for both in self._both_engines()}
        measured: dict[str, list[Measure]] = {}
        for model, both in joined.items():
            rows, notes = gap_rows(both, labour, aliases)
            tables.gaps += rows
            tables.notes += notes
            if rows:
                measured[model] = list(measures(rows))
                seed = self.texts[both.personas_model].seed
                tables.tests += relation_rows(measured[model], self.margins, seed)
        self._gaps_between_models(joined, measured)

    def _gaps_between_models(
        self, joined: Mapping[str, BothEngines], measured: Mapping[str, Sequence[Measure]]
    ) -> None:
        """Add the tests of each gap between two models, where both were asked the same."""

        def comparable(pair: SidePair, measure: Measure) -> bool:
            members = [joined[model] for side in pair for model in side.models]
            if measure.gap == "probe_gap":
                names = {both.probe_model for both in members}
                asked = [self.answers[both.probe_model] for both in members]
                same = same_templates(asked, measure.bias_type, measure.prompt_form)
            else:
                names = {both.personas_model for both in members}
                texts = [self.texts[name] for name in names]
                same = texts_comparable(texts, scores=measure.gap == "srb_spread")
            return same and len(names) == len(members)  # no number is compared with itself

        by_label = {model.label: model for engine in ("personas", "probe") for model in self.models(engine)}
        models = [by_label[label] for label in measured]
        for pair in (*model_pairs(list(measured)), *pairs_of_groups(self.groups, models)):
            seed = self.texts[joined[pair[0].models[0]].personas_model].seed
            self.tables.tests += gap_tests(pair, measured, comparable, self.margins, seed)

    def _both_engines(self) -> Iterator[BothEngines]:
        """Join the tables of models that both engines have under one label, as the runs themselves name them.

        Where several runs of one engine have the label, each is joined with the one run of the other; where
        both engines have several, nobody can tell which belong together.
        """
        by_label: dict[str, dict[str, list[tuple[str, StoredRun]]]] = {"probe": {}, "personas": {}}
        for run in self.collection.runs:
            for label, label_here in run.names.items():
                by_label[run.engine].setdefault(label, []).append((label_here, run))
        probes, written = by_label.values()
        joined = [label for label in probes if label in written]
        if not joined:
            self.tables.notes.append(
                "There are no gaps: no model has the same label in both engines (LABEL=SPEC sets it)."
            )
        for label in joined:
            if len(probes[label]) > 1 and len(written[label]) > 1:
                self.tables.notes.append(f"{label} is in several runs of both engines: it has no gaps.")
                continue
            for probe_label, probe in probes[label]:
                for texts_label, texts in written[label]:
                    name = probe_label if len(probes[label]) > 1 else texts_label
                    yield BothEngines(name, probe.tables, texts.tables, probe_label, texts_label)
