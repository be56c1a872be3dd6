"""What `biaskit label` and `bk.label` do, and how labels come into a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from biaskit.arguments import checked
from biaskit.common.files import write_or_refuse
from biaskit.common.wording import count
from biaskit.corpora.sources import shown
from biaskit.errors import UsageError
from biaskit.personas.analysis import texts_of
from biaskit.personas.labels.correction import Labels, forget_labels
from biaskit.personas.labels.drawing import FOLDER, draw, read_drawn, short_id, who_counts
from biaskit.personas.labels.sheets import Sheet, agreement, differing, read_sheet, write_sheet
from biaskit.personas.sampling.design import PersonasDesign
from biaskit.personas.sampling.stored_design import read_design
from biaskit.personas.texts.documents import TextDocuments
from biaskit.runs.manifest import read_manifest
from biaskit.runs.store import read_rows, rows_file
from biaskit.workflow.recordings import RECORDED, recorded_run
from biaskit.workflow.result import RunResult, run_path

NO_LABELS = "none"  # --labels none: analyse without any


@checked()
def label(run: str | Path | RunResult, *, n: int = 200, seed: int = 1, every: bool = False) -> Path:
    """Draw texts of a run for a person to label, who says what the rules cannot: whom each is about.

    >>> sheet = bk.label(written, n=20)
    >>> sheet.read_text("utf-8-sig").splitlines()[0]
    'id,person_gender,text'

    Args:
        run: a result, a run's folder, or recorded:demo-base.
        n: how many texts: at random, more where the rules find no gender, at least ten of each model and
            occupation.
        seed: of the draw.
        every: write all texts instead, for a model that labels them.

    Returns the sheet, labels/sheet.csv in the run's folder; beside it lie sheet.html, which is filled without
    a spreadsheet, and instructions.md for the reader. `bk.load(run, labels=…)` reads it. Raises `UsageError`
    where the run has no such texts, or a sheet already.
    """
    path = recorded_run(run) if isinstance(run, str) and run.startswith(RECORDED) else run_path(run)
    design, documents = _texts_of(path)
    texts = who_counts(documents, batch_of(design, documents))
    if not texts:
        raise UsageError(f"{path} has no texts without a gender in the prompt: there is no share to correct.")
    sheet = path / FOLDER / ("all.csv" if every else "sheet.csv")
    if sheet.exists() or (not every and read_drawn(path)):
        raise UsageError(f"{sheet} was drawn before: fill it, or move {sheet.parent} away to draw again.")
    if every:
        keys = [text.key for text in texts]
    else:
        drawn = draw(texts, n, seed)
        drawn.store(path)
        keys = [*drawn.probability]
    _write(path, sheet, keys)
    instructions = Path(__file__).parents[1] / "personas" / FOLDER / "instructions.md"
    write_or_refuse(sheet.with_name("instructions.md"), instructions.read_bytes())
    return sheet


def use_labels(run: Path, sheets: Sequence[str | Path], gold: str | Path | None) -> None:
    """Read filled sheets into a run, in place of those it had; the next analysis uses them.

    `gold`: a person's sheet; `sheets` are then one of a model's labels, which take the rules' place.
    Raises `UsageError` for a sheet of another run.
    """
    if [*map(str, sheets)] == [NO_LABELS]:
        forget_labels(run)
        return
    if gold is not None and len(sheets) != 1:
        raise UsageError("--gold takes one file of --labels: the labels of one model.")
    design, documents = _texts_of(run)
    key_of = {short_id(text.key): text.key for text in documents.texts}
    read = [_keyed(read_sheet(sheet), key_of, run) for sheet in ([gold] if gold else sheets)]
    judge, notes = None, []
    if gold is not None:
        _, judge = _keyed(read_sheet(sheets[0]), key_of, run)
        missing = [t for t in who_counts(documents, batch_of(design, documents)) if t.key not in judge]
        if missing:
            raise UsageError(
                f"{sheets[0]} has no label of {count(len(missing), 'text')}, first {short_id(missing[0].key)}:"
                " a model labels every text (biaskit label RUN --all)."
            )
    readers = [labels for _, labels in read]
    if len(readers) > 1:
        notes.append(agreement(*readers[:2]))
    if keys := differing(readers):
        again = run / FOLDER / "differing.csv"
        _write(run, again, keys)
        notes.append(
            f"{count(len(keys), 'text')} that readers label differently: let a third decide in {again}, and"
            " name it after the others in --labels"
        )
    Labels(tuple(readers), judge, tuple(name for name, _ in read), tuple(notes)).store(run)


def batch_of(design: PersonasDesign, documents: TextDocuments) -> int | None:
    """Return how many draws of each prompt are a sample; None of imported texts, which all are."""
    return None if documents.imported else (design.study.batch or design.study.per_gender)


def _texts_of(run: Path) -> tuple[PersonasDesign, TextDocuments]:
    manifest = read_manifest(run)
    if manifest["engine"] != "personas":
        raise UsageError(f"{run} is a run of biaskit probe: labels are for texts (biaskit personas).")
    design = read_design(manifest["resolved"])
    if design.templates:
        raise UsageError(f"{run} has debiasing instructions: labels are for runs without.")
    return design, texts_of(run, manifest, design)


def _keyed(sheet: Sheet, key_of: Mapping[str, str], run: Path) -> tuple[str, dict[str, str]]:
    if strangers := sorted(sheet.labels.keys() - key_of.keys()):
        raise UsageError(
            f"{sheet.where} is a sheet of another run: {run} has no text {shown(strangers[0])}"
            f" ({len(strangers)} of {count(len(sheet.labels), 'label')} are of none)."
        )
    return sheet.where, {key_of[name]: label for name, label in sheet.labels.items()}


def _write(run: Path, sheet: Path, keys: Sequence[str]) -> None:
    rows: dict[str, Any] = {
        row["key"]: row["text"] for row in read_rows(rows_file(run, "personas"), skip_bad=True)
    }
    write_sheet(sheet, [(short_id(key), rows[key]) for key in keys])
