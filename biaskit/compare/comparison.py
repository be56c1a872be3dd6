"""Compare stored tables of several runs: each kind tests its models, then what relates the kinds speaks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from biaskit.compare.changes import CHANGES, MOST_MODELS, completed, pairs_of
from biaskit.compare.conditions import measured_differently
from biaskit.compare.pairs import PairTest, Side, group_notes, model_pairs, pairs_of_groups, rows_of_pairs
from biaskit.compare.validity import validity_of_kinds
from biaskit.errors import UsageError
from biaskit.measurement import KINDS, folders
from biaskit.runs.collection import Collection, Model, StoredRun, rule_of
from biaskit.stats.contrast import Contrast
from biaskit.stats.contrasts import adjust
from biaskit.stats.verdict import Rule
from biaskit.tables.query import Row

MODELS = "models"
"""The contrast of tests between models."""


@dataclass(slots=True)
class ComparisonTables:
    """Rows of tests.csv and of the other tables between models, and what a careful reader must know."""

    tests: list[Contrast] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))  # of other tables
    notes: list[str] = field(default_factory=list)
    pairs: list[tuple[str, str, str]] = field(default_factory=list)  # measurement, later, earlier
    groups: dict[str, None] = field(default_factory=dict)  # gender groups of the rows of what changed
    contrast: tuple[str, str] = ("", "")  # of them


@dataclass(frozen=True, slots=True)
class Axis:
    """What the models of a comparison differ in, with the value of each, in the order named."""

    name: str
    values: Mapping[str, float]

    @classmethod
    def of(cls, text: str, models: Sequence[str]) -> Axis:
        """Read NAME=VALUE,VALUE,…, a value for each model, three at least. Raises `UsageError`."""
        name, _, listed = text.partition("=")
        try:
            values = list(map(float, listed.split(",")))
        except ValueError:
            values = []
        known = len(values) == len(models) and all(map(math.isfinite, values))
        if not name.strip() or not known or len({*values}) < 3:
            raise UsageError(
                f"--axis {text}: write NAME=VALUE,VALUE,VALUE, such as bits=32,8,4, with a value for each of"
                f" {', '.join(models)}, three different ones at least."
            )
        return cls(name.strip(), dict(zip(models, values, strict=True)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a kind's tests between models need, and the tables that they add to."""

    collection: Collection
    groups: Sequence[Side]  # of models, as the user named them
    aliases: Mapping[str, str]  # name → the name that stands for it (`compare/aliases.py`)
    margins: Mapping[str, float]  # quantity → half width of "equivalent within"; and `tie_zone`
    tables: ComparisonTables
    axis: Axis | None = None

    def runs(self, kind: str) -> list[StoredRun]:
        """List the runs of a kind in the order they were named."""
        return [run for run in self.collection.runs if run.measurement == kind]

    def models(self, runs: Sequence[StoredRun]) -> list[Model]:
        """List the models of runs in the order of the runs and of their manifests."""
        models = [model for part in self.collection.parts for model in part.models]
        return [model for run in runs for model in models if model.run == str(run.path)]

    def test_models(self, models: Sequence[Model], test: PairTest, kind: str) -> None:
        """Test every pair of models, later named − earlier, and of groups of them.

        Notes say which have no test, and what else differs between models and runs.
        """
        labels = [model.label for model in models]
        for side in self.groups:
            missing = [label for label in side.models if label not in labels]
            if models and missing:
                self.tables.notes.append(
                    f"The group {side.name} is not compared in biaskit {kind}:"
                    f" {', '.join(missing)} did not run."
                )
        self.tables.notes += group_notes(self.groups, models)
        pairs = (*model_pairs(labels), *pairs_of_groups(self.groups, models))
        rows, notes = rows_of_pairs(pairs, test, {model.label: model.prompt_format for model in models})
        self.tables.tests += rows
        self.tables.notes += [*notes, *measured_differently(self.runs(kind), models)]

    def add_changes(
        self,
        models: Sequence[Model],
        groups_of: Mapping[str, tuple[Sequence[str], Sequence[str]]],
        change: Callable[[str, str], tuple[Sequence[Row], Sequence[Row]]],
    ) -> None:
        """Add the rows of `CHANGES` for pairs of models with the same gender groups.

        `groups_of`: model → groups and contrast; `change`: makes the rows of an earlier and a later model.
        """
        tables = self.tables
        most = MOST_MODELS if self.axis is None else 0
        for later, earlier in pairs_of([model.label for model in models], most):
            groups, (first, second) = groups_of[earlier.name]
            if {*groups} == {*groups_of[later.name][0]}:
                tables.groups |= dict.fromkeys(groups)
                tables.contrast = tables.contrast if all(tables.contrast) else (first, second)
                for name, rows in zip(CHANGES, change(earlier.name, later.name), strict=True):
                    tables.rows[name] += rows


def compare_collection(
    collection: Collection,
    *,
    groups: Sequence[Side] = (),
    aliases: Mapping[str, str] | None = None,
    margins: Mapping[str, float],
    axis: Axis | None = None,
) -> ComparisonTables:
    """Compare every model with every other of its kind, later named − earlier, and relate the kinds."""
    tables = ComparisonTables(notes=list(collection.notes))
    comparison = Comparison(collection, groups, aliases or {}, margins, tables, axis)
    for kind in KINDS:
        labels = [model.label for model in comparison.models(comparison.runs(kind))]
        tables.pairs += [(kind, later.name, earlier.name) for later, earlier in model_pairs(labels)]
    for folder in folders():
        folder.compare(comparison)
    tables.rows["validity"] += validity_of_kinds(collection, comparison.aliases)
    if axis is not None and not tables.rows.get("curve"):
        tables.notes.append(f"No curve along {axis.name}: no prompt that all models have shares of.")
    for name in (*CHANGES, "curve"):
        if name in tables.rows:
            tables.rows[name] = completed(name, tables.rows[name], [*tables.groups], tables.contrast)
    tables.tests = adjust(tables.tests, rule_of(collection.parts))
    tables.notes = list(dict.fromkeys(tables.notes))
    return tables


def merge_tests(stored: Sequence[Row], rows: Sequence[Contrast], rule: Rule = Rule()) -> list[Contrast]:  # noqa: B008
    """Put new rows between models into a stored tests.csv; p_adjusted and verdicts are made anew over all."""
    return adjust([*(row for row in map(Contrast.of, stored) if row.contrast != MODELS), *rows], rule)
