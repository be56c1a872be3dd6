"""What `biaskit label` and `bk.label` do, and how labels come into a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from biaskit.arguments import checked
from biaskit.common.wording import count
from biaskit.corpora.sources import shown
from biaskit.errors import UsageError
from biaskit.personas.analysis import texts_of
from biaskit.personas.labels.correction import Labels
from biaskit.personas.labels.drawing import FOLDER, Drawn, draw, who_counts
from biaskit.personas.labels.sheets import agreement, read_sheet, short_id, write_sheet
from biaskit.personas.sampling.stored_design import read_design
from biaskit.personas.texts.documents import TextDocument
from biaskit.runs.manifest import read_manifest
from biaskit.runs.store import read_rows, rows_file
from biaskit.workflow.recordings import RECORDED, recorded_run
from biaskit.workflow.result import RunResult, run_path


@checked()
def label(run: str | Path | RunResult, *, n: int = 200, seed: int = 1, every: bool = False) -> Path:
    """Draw texts of a run for a person to label, who says what the rules cannot: whom each is about.

    >>> bk.label(written, n=20).name
    'sheet.csv'

    Args:
        run: a result, a run's folder, or recorded:demo-base.
        n: how many texts; more where the rules find no gender, at least ten of each model and occupation.
        seed: of the draw.
        every: write all texts instead, for a model that labels them.

    Returns the sheet, labels/sheet.csv in the run's folder; beside it, sheet.html needs no spreadsheet and
    instructions.md is for the reader. Raises `UsageError` where the run has no such texts or has a sheet.
    """
    path = recorded_run(run) if isinstance(run, str) and run.startswith(RECORDED) else run_path(run)
    if not (texts := _who_counts(path)[1]):
        raise UsageError(f"{path} has no texts without a gender in the prompt: there is no share to correct.")
    sheet = path / FOLDER / ("all.csv" if every else "sheet.csv")
    if sheet.exists() or (not every and Drawn.read(path)):
        raise UsageError(f"{sheet} was drawn before: fill it, or move {sheet.parent} away to draw again.")
    drawn = None if every else draw(texts, n, seed)
    _write(path, sheet, [*drawn.probability] if drawn else [text.key for text in texts])
    if drawn:
        drawn.store(path)
    return sheet


def use_labels(run: Path, sheets: Sequence[str | Path], gold: str | Path | None) -> None:
    """Read filled sheets into a run, in place of those it had; the next analysis uses them.

    `gold`: a person's sheet; `sheets` are then one of a model's labels, which take the rules' place. Instead
    of sheets, "none" forgets all labels. Raises `UsageError` for a sheet of another run.
    """
    if [*map(str, sheets)] == ["none"]:
        (run / FOLDER / Labels.file).unlink(missing_ok=True)
        return
    if gold is not None and len(sheets) != 1:
        raise UsageError("--gold wants one --labels, the labels of a model for every text.")
    key_of, texts = _who_counts(run)
    readers = [_keyed(sheet, key_of, run) for sheet in ([gold] if gold else sheets)]
    judge, notes = _keyed(sheets[0], key_of, run) if gold else None, []
    missing = [short_id(text.key) for text in texts if judge is not None and text.key not in judge]
    if missing:
        n = count(len(missing), "text")
        raise UsageError(f"{sheets[0]} lacks {n}, first {missing[0]}: label all of biaskit label RUN --all.")
    if len(readers) > 1:
        notes.append(agreement(*readers[:2]))
    if keys := Labels(readers=tuple(readers)).differing():
        again = run / FOLDER / "differing.csv"
        if not again.exists():  # a third reader may have begun
            _write(run, again, keys)
        n = count(len(keys), "text")
        notes.append(f"readers differ on {n}: let a third fill {again}, and name it last in --labels")
    Labels(readers=tuple(readers), judge=judge, notes=tuple(notes)).store(run)


def _who_counts(run: Path) -> tuple[dict[str, str], list[TextDocument]]:
    """Map the ids of a run's texts to keys, and list the texts that a share is about."""
    manifest = read_manifest(run)
    if manifest["engine"] != "personas":
        raise UsageError(f"{run} is a run of biaskit probe: labels are for texts (biaskit personas).")
    design = read_design(manifest["resolved"])
    if design.templates:
        raise UsageError(f"{run} has debiasing prompts: labels are for runs without.")
    documents = texts_of(run, manifest, design)
    return {short_id(t.key): t.key for t in documents.texts}, who_counts(documents, design.study)


def _keyed(sheet: str | Path, key_of: Mapping[str, str], run: Path) -> dict[str, str]:
    labels = read_sheet(sheet)
    if strangers := sorted(labels.keys() - key_of.keys()):
        raise UsageError(
            f"{sheet} is a sheet of another run: {run} has no text {shown(strangers[0])}"
            f" ({len(strangers)} of {count(len(labels), 'label')} are of none)."
        )
    return {key_of[name]: label for name, label in labels.items()}


def _write(run: Path, sheet: Path, keys: Sequence[str]) -> None:
    rows = {row["key"]: row["text"] for row in read_rows(rows_file(run, "personas"), skip_bad=True)}
    write_sheet(sheet, [(key, rows[key]) for key in keys])
