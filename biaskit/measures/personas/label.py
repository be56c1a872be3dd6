"""What `biaskit label` and `bk.label` do, and how labels come into a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from biaskit.arguments import checked
from biaskit.common.files import check_folder
from biaskit.common.wording import count
from biaskit.corpora.sources import shown
from biaskit.errors import UsageError
from biaskit.measures.personas.design import read
from biaskit.measures.personas.labels.correction import Labels, sheet_of
from biaskit.measures.personas.labels.drawing import FOLDER, Drawn, draw, who_counts
from biaskit.measures.personas.labels.sheets import agreement, read_sheet, short_id, write_sheet
from biaskit.measures.personas.recordings import RECORDED, recorded_run
from biaskit.measures.personas.texts.documents import KEY, TextDocument, manifest_of_texts, texts_of
from biaskit.report.result import RunResult, run_path
from biaskit.runs.manifest import read_manifest
from biaskit.runs.store import read_rows, rows_file


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
    texts = _who_counts(path)[1]
    if not texts:
        raise UsageError(f"{path} has no texts without a gender in the prompt: there is no share to correct.")
    sheet = path / FOLDER / ("all.csv" if every else "sheet.csv")
    drawn = Drawn.stored_in(path) if Drawn.is_in(path) and not every else None
    if sheet.exists() or (drawn and len(drawn.probability) != n):
        if drawn is None:
            raise UsageError(f"{sheet} is there already: use it, or remove it to write it again.")
        was = count(len(drawn.probability), "text")
        raise UsageError(
            f"{sheet} is of an earlier draw of {was}: fill it, or move {sheet.parent} away first."
        )
    if not every and drawn is None:  # where it is there, the last call was killed before the sheet
        drawn = draw(texts, n, seed)
        drawn.store(path)
    _write(path, sheet, drawn.probability if drawn else map(KEY, texts))
    return sheet


def use_labels(run: Path, sheets: Sequence[str | Path], gold: str | Path | None) -> None:
    """Read filled sheets into a run, in place of those it had; the next analysis uses them.

    `gold`: a person's sheet; `sheets` are then one of a model's labels, which take the rules' place. Instead
    of sheets, "none" forgets all labels. Raises `UsageError` for a sheet of another run, and for one twice.
    """
    named = [*map(str, sheets)]
    if gold is not None and (len(named) != 1 or named == ["none"]):
        raise UsageError("--gold wants one --labels, the labels of a model for every text.")
    if named == ["none"]:
        (run / FOLDER / Labels.file).unlink(missing_ok=True)
        return
    every = named if gold is None else [*named, str(gold)]
    if len({Path(sheet).resolve() for sheet in every}) < len(every):
        raise UsageError("One sheet is named twice in --labels and --gold: each reader fills a copy.")
    key_of, texts = _who_counts(run)
    drawn, of_all = Drawn.stored_in(run).probability, list(map(KEY, texts))
    readers, judge = [_keyed(sheet, key_of, run) for sheet in every], None
    if gold is not None:
        judge = readers.pop(0)
        if missing := [key for key in of_all if key not in judge]:
            raise UsageError(
                f"{named[0]} lacks {count(len(missing), 'text')}, first {short_id(missing[0])}: label every"
                " row of the sheet from biaskit label RUN --all."
            )
    if len(drawn) < len(of_all) and any(labels.keys() >= {*of_all} for labels in readers):
        raise UsageError(
            f"One sheet labels all {len(of_all):,} texts, and {len(drawn):,} were drawn: if it is a model's,"
            " add a person's sheet with --gold; if a person read all, draw all with biaskit label --n."
        )
    notes = (agreement(*readers[:2]),) if len(readers) > 1 else ()
    labels = Labels(readers=tuple(readers), judge=judge, notes=notes)
    waiting = labels.settled()[1]
    third = run / FOLDER / sheet_of(waiting)
    if waiting and not third.exists():
        _write(run, third, waiting)
    labels.store(run)


def _who_counts(run: Path) -> tuple[dict[str, str], list[TextDocument]]:
    """Map the ids of a run's texts to keys, and list the texts that a share is about."""
    manifest = manifest_of_texts(run, ": labels are for texts")
    check_folder(run / FOLDER)
    # A bad line stops the analysis, where a user decides about it, and no sheet.
    design = read(manifest.resolved, {"skip_bad_lines": True})
    if design.templates:
        raise UsageError(f"{run} has debiasing prompts: labels are for runs without.")
    documents = texts_of(run, manifest, design)
    keys = list(map(KEY, documents.texts))
    return dict(zip(map(short_id, keys), keys, strict=True)), who_counts(documents, design.study)


def _keyed(sheet: str | Path, key_of: Mapping[str, str], run: Path) -> dict[str, str]:
    labels = read_sheet(sheet)
    if strangers := [name for name in labels if name not in key_of]:
        raise UsageError(
            f"{sheet} is a sheet of another run, or its ids were changed: {run} has no text"
            f" {shown(strangers[0])} ({len(strangers)} of {count(len(labels), 'label')} are of none)."
        )
    return {key_of[name]: label for name, label in labels.items()}


def _write(run: Path, sheet: Path, keys: Iterable[str]) -> None:
    text_of = {row["key"]: row["text"] for row in read_rows(rows_file(run, "personas"), skip_bad=True)}
    imported = read_manifest(run).imported is not None
    write_sheet(sheet, [(key, text_of[key]) for key in keys], imported=imported)
