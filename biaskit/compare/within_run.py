"""Tests between the models of one run, from its stored tables (docs/methods.md#model-pairs, tests.csv)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from biaskit.compare.pairs import model_pairs
from biaskit.compare.personas import change_rows, pair_rows_of_texts, texts_of
from biaskit.compare.probe import CONTRAST, answers_of, forms_apart, pair_rows
from biaskit.stats.contrasts import Row, adjust
from biaskit.tables.io import read_table_rows, write_table
from biaskit.tables.query import contrast_of


def between_models(
    run_tables_dir: Path, *, groups: Sequence[str], models: Sequence[str], margins: Mapping[str, float]
) -> tuple[list[Row], list[str]]:
    """Rows paired and crossed for every pair of models, later named minus earlier named, and notes.

    Read from the stored probe_cells.csv: each bias type, instruction, setting and prompt form apart, every
    job group and gender, on the (job, template) cells that both models have complete. Two prompt forms are
    never compared: such a pair has no row and a sentence in the notes. p_adjusted is Holm's over these
    rows, which are whole families.
    """
    path = run_tables_dir / "probe_cells.csv"
    answers = answers_of(read_table_rows(path), groups, str(path))
    notes = [f"{model} has no cell in {path.name}." for model in models if model not in answers]
    rows: list[Row] = []
    for pair in model_pairs([model for model in models if model in answers]):
        of_pair, _ = pair_rows(pair, answers, margins)
        rows += of_pair
        if note := forms_apart(pair, answers, of_pair):
            notes.append(note.text)
    return adjust(rows), notes


def between_persona_models(
    run_tables_dir: Path, *, forms: Mapping[str, str], margins: Mapping[str, float], seed: int
) -> tuple[list[Row], list[str]]:
    """Rows welch and paired for every pair of models over common occupations, later named minus earlier.

    Read from the stored srb.csv (women and men apart, GAS(P) Table 14) and representation.csv (share of
    women, template `all`); writes srb_change.csv, old = named first. `forms`: model → prompt form; two
    forms are never compared.
    """
    tables = {name: _stored(run_tables_dir / f"{name}.csv") for name in ("srb", "representation")}
    texts = texts_of(tables, forms, run=str(run_tables_dir), seed=seed)
    rows: list[Row] = []
    changes: list[Row] = []
    notes: list[str] = []
    for pair in model_pairs(list(forms)):
        of_pair, apart = pair_rows_of_texts(pair, texts, margins)
        rows += of_pair
        notes += [note.text for note in apart]
        changes += change_rows(pair, texts)
    if changes:
        write_table(run_tables_dir / "srb_change.csv", "srb_change", changes)
    return adjust(rows), notes


def merge_tests(path: Path, rows: Sequence[Row]) -> None:
    """Put the rows between models into a tests.csv, in place of those of an earlier comparison.

    The rows of single models stay as they are, and Holm is done anew over the whole file.
    """
    kept = [row for row in _stored(path) if contrast_of(row) != CONTRAST]
    write_table(path, "tests", adjust([*kept, *rows]), groups=(), contrast=("", ""))


def _stored(path: Path) -> list[Row]:
    return read_table_rows(path) if path.exists() else []
