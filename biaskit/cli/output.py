"""Prints a result in the format that was asked for."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from biaskit.cli.terminal import emit, emit_json, emit_notes, width
from biaskit.common.files import remove_abandoned, write_or_refuse
from biaskit.common.foreign import visible
from biaskit.common.wording import count
from biaskit.report.findings import BETWEEN, READING, first_about
from biaskit.report.render.document import Document
from biaskit.report.render.headline import first_findings
from biaskit.report.render.latex import render_latex
from biaskit.report.render.text import READABLE, cell_width, fold, render_text
from biaskit.report.result import RunResult
from biaskit.runs.folder import NOTES
from biaskit.runs.manifest import COMPARISON, read_manifest
from biaskit.runs.store import find_run
from biaskit.tables.sets import read_set

FINISHED_WITH_MISSING = 3
STOPPED_AT_CAP = 5
N_FINDINGS = 3  # with a table they fit one screen; the page has all of them


def named_or_newest(runs: Sequence[str]) -> list[Path]:
    """Find the runs that a command names, else the newest one, and say which that is."""
    if runs:
        return list(map(find_run, runs))
    newest = find_run(None)
    emit(f"Newest run: {newest}\n", err=True)
    return [newest]


def print_document(document: Document) -> None:
    """Print a document as text."""
    emit(render_text(document, width()))


def print_result(result: RunResult, output_format: str, *, verbose: bool = False) -> None:
    """Print findings, tables and a note as text, or tables as LaTeX, JSON (all, with findings) or CSV (one).

    `verbose`: every note, and how to read the findings.
    """
    if output_format == "json":
        emit_json(as_json(result))
    elif output_format == "csv":
        tables = result.path / "tables"
        name = result.headline or read_manifest(result.path).kind.published[0]
        content = (tables / f"{name}.csv").read_bytes()
        # A program gets the bytes of the file, a person sees it as any foreign text.
        if sys.stdout.isatty() or not hasattr(sys.stdout, "buffer"):
            emit(content.decode("utf-8", errors="surrogatepass"))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
    elif output_format == "latex":
        emit(render_latex(result.document()))
    else:
        document = result.document()
        emit(state_of(result) + first_findings(result.screen(), width=width(), most=N_FINDINGS) + "\n\n")
        emit(render_text(Document(document.tables), width()) + "\n" if document.tables else "")
        notes = replace(document, tables=(), notes=(*document.notes, READING))
        remove_abandoned(result.path, NOTES)
        write_or_refuse(result.path / NOTES, render_text(notes, READABLE).encode())
        said = render_text(notes, width()) + "\n"
        emit(said if verbose else first_note(document.notes, width(), whole=not result.complete))
        emit(f"Run: {result.path}\nPage: biaskit report {shlex.quote(str(result.path))}\n")
        if read_manifest(result.path).imported:
            emit("It shows your texts, which may name people: --no-texts leaves them out.\n")


def state_of(result: RunResult) -> str:
    """Say before anything else how much of a run is answered; "" where all is, or nobody knows."""
    manifest = read_manifest(result.path)
    if manifest.measurement == COMPARISON or manifest.imported:
        return ""
    done, planned = manifest.kind.progress(result.path, manifest, manifest.design())
    if planned is None or done >= planned:
        return ""
    stopped = "; stopped at its cost limit (--max-cost)" if result.capped else ""
    return f"{done:,} of {count(planned, manifest.kind.unit)} answered{stopped}.\n"


def as_json(result: RunResult) -> dict[str, Any]:
    """Give what a program reads of a result: every table as rows."""
    signature, tables = result.analysis()["signature"], read_set(result.path).rows()
    about = {"run": str(result.path), "signature": signature, "warnings": list(result.warnings)}
    findings = list(map(asdict, first_about(BETWEEN, result.screen())))
    return about | {"findings": findings, "tables": tables}


def first_note(notes: Sequence[str], columns: int, *, whole: bool = False) -> str:
    """Render the first note, which matters most, with the number of others; "" without notes.

    It has one line, or two if it is the only one; not cut if `whole`: why answers are missing, what to do.
    """
    if not notes:
        return ""
    where = f" ({f'1 of {len(notes)}' if len(notes) > 1 else 'whole'}: --verbose)"
    [first] = fold(visible(notes[0].rstrip(".")), 10**6)
    room = min(columns, READABLE) - len("Note: ") - len(where)
    if len(notes) == 1 and (whole or cell_width(first) <= room + READABLE):
        whole, where = True, ""
    if whole:
        return "\n".join(fold(f"Note: {first}{where}.", min(columns, READABLE))) + "\n"
    if cell_width(first) > room:
        first = fold(first, room - 1)[0] + "…"
    return f"Note: {first}{where}.\n"


def finish(result: RunResult, output_format: str, *, dry_run: bool, verbose: bool) -> None:
    """End a command that queries models: with the folder, the tables or the failures, and the exit code."""
    if dry_run:
        emit_notes(result.warnings, err=True)
        emit(f"Run folder: {result.path}\n")
    elif (result.path / "tables").is_dir():
        print_result(result, output_format, verbose=verbose)
    else:
        emit_notes(result.warnings, err=True)
    if not result.complete:
        sys.exit(STOPPED_AT_CAP if result.capped else FINISHED_WITH_MISSING)
