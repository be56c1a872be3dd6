"""Tests between the models of one run, from its tables (docs/methods.md#model-pairs, tests.csv)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biaskit.compare.pairs import PairNote, model_pairs, say_apart
from biaskit.compare.personas import change_rows, pair_rows_of_texts, texts_of
from biaskit.compare.probe import CONTRAST, answers_of, forms_apart, pair_rows
from biaskit.stats.contrasts import Row, adjust
from biaskit.tables.query import Row as StoredRow
from biaskit.tables.query import Tables, contrast_of


def between_models(
    cells: Sequence[StoredRow],
    *,
    groups: Sequence[str],
    models: Sequence[str],
    margins: Mapping[str, float],
    run: str = "",
) -> tuple[list[Row], list[str]]:
    """Rows paired and crossed for every pair of models, later named minus earlier named, and notes.

    Made from the rows of probe_cells.csv: each bias type, instruction, setting and prompt form apart, every
    job group and gender, on the (job, template) cells that both models have complete. Two prompt forms are
    never compared: such a pair has no row and a sentence in the notes. p_adjusted is Holm's over these
    rows, which are whole families.
    """
    answers = answers_of(cells, groups, f"{run} probe_cells.csv".strip())
    notes = [f"{model} has no cell in probe_cells.csv." for model in models if model not in answers]
    rows: list[Row] = []
    apart: list[PairNote] = []
    for pair in model_pairs([model for model in models if model in answers]):
        of_pair, _ = pair_rows(pair, answers, margins)
        rows += of_pair
        if note := forms_apart(pair, answers, of_pair):
            apart.append(note)
    forms = {model: next(iter(answers[model].blocks)).prompt_form for model in models if model in answers}
    return adjust(rows), [*notes, *say_apart(apart, forms)]


def between_persona_models(
    tables: Tables, *, forms: Mapping[str, str], margins: Mapping[str, float], seed: int, run: str = ""
) -> tuple[list[Row], list[Row], list[str]]:
    """Rows welch and paired for every pair of models over common occupations, later named minus earlier.

    Made from srb (women and men apart, GAS(P) Table 14) and representation (share of women, template
    `all`); the second list is srb_change.csv, old = named first, the third notes. `forms`: model → prompt
    form; two forms are never compared.
    """
    texts = texts_of(tables, forms, run=run, seed=seed)
    rows: list[Row] = []
    changes: list[Row] = []
    apart: list[PairNote] = []
    for pair in model_pairs(list(forms)):
        of_pair, notes = pair_rows_of_texts(pair, texts, margins)
        rows += of_pair
        apart += notes
        changes += change_rows(pair, texts)
    return adjust(rows), changes, say_apart(apart, forms)


def merge_tests(stored: Sequence[StoredRow], rows: Sequence[Row]) -> list[Row]:
    """The rows of a tests.csv with those between models in place of those of an earlier comparison.

    The rows of single models stay as they are, and Holm is done anew over the whole file.
    """
    return adjust([*(row for row in stored if contrast_of(row) != CONTRAST), *rows])
