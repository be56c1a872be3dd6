"""Tests between models on the decisions that both made (methods/comparisons#model-pairs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biaskit.compare.comparison import MODELS, Comparison
from biaskit.compare.pairs import PairNote, PairTests, SidePair, members_of, nothing_common, rows_of_all
from biaskit.measures.decisions.design import DecisionsDesign, read
from biaskit.measures.decisions.gaps import gaps_of
from biaskit.measures.decisions.lists import pairs_of
from biaskit.records import ALL
from biaskit.stats.contrast import Contrast
from biaskit.tables.query import Row, defined, distinct, grouped

ASKED = ("question", "wording", "job", "case", "person", "sex", "race", "position")
"""Columns of decisions.csv that say what was decided."""
Decided = Mapping[tuple[Any, ...], tuple[float, float, float]]
"""By what was decided: the decision, and what it lies between."""
Shown = tuple[int, Mapping[tuple[str, str, str], str]]
"""Of a question: how many are shown of whom one is chosen, and of each person of a pair which pair."""


def compare(comparison: Comparison) -> None:
    """Add tests of the change of each gap between models that decided on the same."""
    runs = comparison.runs("decisions")
    decided: dict[str, Decided] = {}
    shown: dict[str, Shown] = {}
    for run in runs:
        decided |= _decided(run.tables.get("decisions", ()))
        shown |= _shown(read(run.manifest.resolved))
    reference = str(runs[0].analysis["choices"]["reference_race"]) if runs else ""
    models = [model for model in comparison.models(runs) if model.label in decided]
    formats = {model.label: model.prompt_format for model in models}
    test = _Test(decided, shown, reference, comparison.margins, formats)
    comparison.test_models(models, test, "decisions")


def between_models(
    rows: Sequence[Row], formats: Mapping[str, str], design: DecisionsDesign
) -> tuple[list[Contrast], list[str]]:
    """Test every pair of models of one run, later named − earlier; also returns notes.

    `rows`: of decisions.csv; `formats`: model → its prompt format.
    """
    decided, shown, study = _decided(rows), _shown(design), design.study
    test = _Test(decided, shown, study.reference_race, study.margin, formats)
    return rows_of_all(test, {model: formats[model] for model in formats if decided.get(model)})


@dataclass(frozen=True, slots=True)
class _Test:
    """The test of two sides: none between two prompt formats, or of nothing that both decided."""

    decided: Mapping[str, Decided]
    shown: Mapping[str, Shown]
    reference: str
    margins: Mapping[str, float]
    formats: Mapping[str, str]

    def __call__(self, pair: SidePair) -> PairTests:
        asked_in = {self.formats[model]: model for side in pair for model in side.models}
        if len(asked_in) > 1:
            asked = " and ".join(f"{model} ({name or 'a log'})" for name, model in asked_in.items())
            text = f"{asked}: no test between two prompt formats. Set prompt_format."
            return [], [PairNote("prompt formats", text)]
        rows = self._changes(pair)
        if not rows and not all(members_of(pair, self.decided)):
            names = f"{pair[0].name} and {pair[1].name}"
            text = f"{names}: scores, and rows that nothing tells apart, have no test."
            return [], [PairNote("prompts", text)]
        return rows, [] if rows else [nothing_common(pair)]

    def _changes(self, pair: SidePair) -> list[Contrast]:
        """Test the later side's gaps minus the earlier's, prompt by prompt; a side is a mean of models."""
        import pandas as pd

        members, later = members_of(pair, self.decided), len(pair[0].models)
        rows = []
        for key in members[0]:
            values = [member[key] for member in members if key in member]
            if len(values) == len(members):
                after, before = np.mean(values[:later], axis=0), np.mean(values[later:], axis=0)
                change = dict(zip(("p_yes", "p_low", "p_high"), after - before[[0, 2, 1]], strict=True))
                counted = np.isin(np.array(values)[:, 0], (0, 1)).all()
                rows.append({**dict(zip(ASKED, key, strict=True)), **change, "counted": counted})
        made = []
        for (question,), own in grouped(rows, "question").items():
            choice, pair_of = self.shown[question]
            frame, base = pd.DataFrame(own), reference_in(own, self.reference)
            if frame["counted"].all():
                frame = frame.rename(columns={"p_yes": "selected"})
            frame["pair"] = [pair_of.get((row["person"], row["sex"], row["race"]), "") for row in own]
            for gap in gaps_of(frame, reference_race=base, choice=choice, scores=True):
                if gap.row["job"] == ALL and gap.row["contrast"] in ("sex", "race"):
                    test = gap.contrast(pair[0].name, self.margins.get("gap"))
                    made.append(replace(test, contrast=MODELS, model_b=pair[1].name, context=question))
        return made


def reference_in(rows: Sequence[Row], stated: str) -> str:
    """Find the reference race as rows write it; empty where they lack it."""
    return next((race for race in distinct(rows, "race") if race.casefold() == stated.casefold()), "")


def _shown(design: DecisionsDesign) -> dict[str, Shown]:
    pair_of: dict[tuple[str, str, str], str] = {}
    for number, pair in enumerate(pairs_of(design.people)):
        pair_of |= {(person.name, person.sex, person.race): str(number) for person in pair}
    return {asked.name: (asked.choose, pair_of if asked.choose else {}) for asked in design.questions}


def _decided(rows: Sequence[Row]) -> Mapping[str, Decided]:
    """Map each model to its probabilities with their bounds, or decisions of 0 and 1, by what was decided.

    Rows of a log that nothing tells apart are left out: nobody knows which of them another model's are.
    """
    found: dict[str, dict[tuple[Any, ...], tuple[float, float, float]]] = {}
    for (model,), own in grouped(rows, "model").items():
        known = grouped(defined(own, "selected"), *ASKED)  # scores have no selected
        found[model] = {}
        for key, (row, *others) in known.items():
            if not others:
                x = row["selected"] if row["p_yes"] is None else row["p_yes"]
                # intervals of samples stand in the same columns, and are no bounds
                bounded = row["p_low"] is not None and row["p_high"] is not None and not row["n_answers"]
                found[model][key] = (x, row["p_low"], row["p_high"]) if bounded else (x, x, x)
    return found
