"""Tests between the models of one run, from its tables (methods/comparisons#model-pairs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from biaskit.compare.pairs import PairNote, model_pairs, say_apart
from biaskit.compare.personas import change_rows, pair_rows_of_texts, texts_of
from biaskit.compare.probe import CONTRAST, answers_of, forms_apart, pair_rows
from biaskit.compare.same_prompts import PromptTexts
from biaskit.compare.sentence_pairs import pair_rows_of_sentences, scores_of
from biaskit.stats.contrasts import Row, adjust
from biaskit.stats.verdict import Rule
from biaskit.tables.query import Row as StoredRow
from biaskit.tables.query import Tables, contrast_of


def between_models(
    cells: Sequence[StoredRow],  # of probe_cells.csv
    *,
    groups: Sequence[str],
    models: Sequence[str],
    margins: Mapping[str, float],
    run: str = "",
    asked: PromptTexts | None = None,
) -> tuple[list[Row], list[str]]:
    """Test every pair of models, later named minus earlier named; return rows paired and crossed, and notes.

    Each job group and gender has rows, on the (job, template) cells that both models have complete. A pair
    in two prompt forms has no row but a note.
    """
    answers = answers_of(cells, groups, f"{run} probe_cells.csv".strip(), asked)
    notes = [f"{model} has no row in probe_cells.csv." for model in models if model not in answers]
    rows: list[Row] = []
    apart: list[PairNote] = []
    for pair in model_pairs([model for model in models if model in answers]):
        rows_of_pair, _ = pair_rows(pair, answers, margins)
        rows += rows_of_pair
        if note := forms_apart(pair, answers, rows_of_pair):
            apart.append(note)
    forms = {model: next(iter(answers[model].blocks)).prompt_form for model in models if model in answers}
    return adjust(rows), [*notes, *say_apart(apart, forms)]


def between_models_on_pairs(
    rows: Sequence[StoredRow], pairs: Sequence[Mapping[str, Any]], margins: Mapping[str, float]
) -> list[Row]:
    """Test every pair of models on rows of pair_scores.csv, later named minus earlier named."""
    scores = scores_of(rows, pairs)
    made = (pair_rows_of_sentences(pair, scores, margins) for pair in model_pairs(list(scores)))
    return adjust([*chain.from_iterable(made)])


def between_persona_models(
    tables: Tables, *, forms: Mapping[str, str], margins: Mapping[str, float], seed: int, run: str = ""
) -> tuple[list[Row], list[Row], list[str]]:
    """Test every pair of models over common occupations: later named minus earlier, rows welch and paired.

    Made from srb (women and men apart, GAS(P) Table 14) and representation (share of women, template
    `all`). Returns these rows, those of srb_change.csv (old = named first), and notes. `forms`: model →
    prompt form; a pair in two forms is not compared.
    """
    texts = texts_of(tables, forms, run=run, seed=seed)
    rows: list[Row] = []
    changes: list[Row] = []
    apart: list[PairNote] = []
    for pair in model_pairs(list(forms)):
        rows_of_pair, notes = pair_rows_of_texts(pair, texts, margins)
        rows += rows_of_pair
        apart += notes
        changes += change_rows(pair, texts)
    return adjust(rows), changes, say_apart(apart, forms)


def merge_tests(stored: Sequence[StoredRow], rows: Sequence[Row], rule: Rule = Rule()) -> list[Row]:  # noqa: B008
    """Put new rows between models into a stored tests.csv; p_adjusted and verdicts are made anew over all."""
    return adjust([*(row for row in stored if contrast_of(row) != CONTRAST), *rows], rule)
