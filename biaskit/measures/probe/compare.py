"""Tests between models that were probed, of one run or of several (methods/comparisons#model-pairs)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from biaskit.compare.comparison import Comparison
from biaskit.compare.pairs import PairNote, PairTest, PairTests, Side, SidePair, nothing_common, rows_of_all
from biaskit.compare.same_prompts import PromptTexts
from biaskit.measures.probe.axis import along_axis
from biaskit.measures.probe.changes import change_rows
from biaskit.measures.probe.compare_cells import Answers, answers_of, pair_rows
from biaskit.measures.probe.compare_outcomes import outcomes_of, pair_rows_of_outcomes, without_answers
from biaskit.measures.probe.design import ProbeDesign
from biaskit.runs.collection import contrast_of
from biaskit.stats.contrast import Contrast
from biaskit.stats.contrasts import adjust
from biaskit.tables.query import Row


def compare(comparison: Comparison) -> None:
    """Add tests of shares and of sampled answers; groups are in the order of the first run with the same."""
    runs, notes = comparison.runs("probe"), comparison.tables.notes
    answers: dict[str, Answers] = {}
    outcomes: dict[str, Answers] = {}
    orders: dict[frozenset[str], tuple[str, ...]] = {}
    for run in runs:
        order = tuple(str(group) for group in run.manifest.resolved["groups"])
        groups = orders.setdefault(frozenset(order), order)
        rows, asked = run.tables.get("probe_prompts", ()), PromptTexts(run.question)
        where = str(run.path / "tables" / "probe_prompts.csv")
        answers |= answers_of(rows, groups, where, asked, contrast=list(filter(None, contrast_of(run))))
        outcomes |= outcomes_of(rows, run.manifest.models, where, asked)
        for model in run.manifest.models:
            if rows and model not in answers:
                notes.append(f"{model} has no row in {where}.")
    models = [model for model in comparison.models(runs) if model.label in answers]
    left_out: dict[str, None] = {}
    test = _test_of(answers, outcomes, comparison.margins, left_out)
    comparison.test_models(models, test, "probe")
    groups_of = {label: (own.groups, own.contrast or own.groups[:2]) for label, own in answers.items()}

    def changes(before: str, after: str) -> tuple[list[Row], list[Row]]:
        return change_rows(before, after, answers, comparison.margins)

    comparison.add_changes(models, groups_of, changes)
    if comparison.axis is not None and {*comparison.axis.values} <= answers.keys():
        rows, tests = along_axis(comparison.axis, answers, comparison.margins)
        comparison.tables.rows["curve"] += rows
        comparison.tables.tests += tests
    if left_out:
        notes.append(f"Left out, since not all models had the same prompts: {'; '.join(left_out)}.")
    notes += without_answers([model.label for model in models], outcomes)


def between_models(
    cells: Sequence[Row], design: ProbeDesign, models: Iterable[str], where: str
) -> tuple[list[Contrast], list[str]]:
    """Test every pair of models of one run, later named − earlier; two formats have no row but a note.

    `cells`: of probe_prompts.csv, the file `where`. Templates of one frame are one unit.
    """
    asked, margins = PromptTexts(design.question()), design.study.margin
    answers = answers_of(cells, design.groups, where, asked, contrast=design.contrast)
    formats, absent = {}, []
    for model in models:
        if model in answers:
            formats[model] = next(iter(answers[model].blocks)).prompt_format
        else:
            absent.append(f"{model} has no row in probe_prompts.csv.")
    rows, notes = rows_of_all(_test_of(answers, {}, margins, {}), formats)
    return adjust(rows), [*absent, *notes]


def _test_of(
    answers: Mapping[str, Answers],
    outcomes: Mapping[str, Answers],
    margins: Mapping[str, float],
    left_out: dict[str, None],
) -> PairTest:
    """Make the test of two sides; it adds the arms that it cannot compare to `left_out`."""

    def test(pair: SidePair) -> PairTests:
        if note := _groups_apart(pair, answers):
            return [], [note]
        rows, arms = pair_rows(pair, answers, margins)
        left_out.update(dict.fromkeys(arms))
        note = _formats_apart(pair, answers, rows)
        return [*rows, *pair_rows_of_outcomes(pair, outcomes, margins)], [note] if note else []

    return test


def _groups_apart(pair: SidePair, answers: Mapping[str, Answers]) -> PairNote | None:
    """Return a note if the gender groups differ: then nothing is compared."""
    side_of = {", ".join(answers[model].groups): side.name for side in pair for model in side.models}
    if len(side_of) < 2:
        return None
    listed = " and ".join(f"{name} ({groups})" for groups, name in side_of.items())
    text = f"{listed} have different gender groups, so there is no test between them."
    return PairNote("gender groups", text)


def _formats_apart(
    pair: SidePair, answers: Mapping[str, Answers], rows: Sequence[Contrast]
) -> PairNote | None:
    """Return a note if two sides have the same cells in different prompt formats, or no cell in common."""
    compared = {(row.bias_type, row.debiasing_a, row.context) for row in rows}
    later, earlier = (_formats_of(side, answers) for side in pair)
    for cell in later.keys() & earlier.keys() - compared:
        if len(later[cell] | earlier[cell]) > 1:
            return PairNote("prompt formats")
    return None if rows else nothing_common(pair)


def _formats_of(side: Side, answers: Mapping[str, Answers]) -> dict[tuple[object, ...], set[str]]:
    """Find the prompt formats of a side's cells, by bias type, debiasing prompt and context."""
    formats: dict[tuple[object, ...], set[str]] = {}
    for model in side.models:
        for arm in answers[model].blocks:
            cell = arm.bias_type, str(arm.debiasing_id), arm.context
            formats.setdefault(cell, set()).add(arm.prompt_format)
    return formats
