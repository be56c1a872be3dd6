"""Prints a result in the format that was asked for."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from biaskit.cli.terminal import emit, emit_json, emit_notes, width
from biaskit.common.files import remove_abandoned, write_or_refuse
from biaskit.common.wording import count
from biaskit.report.render.document import Document
from biaskit.report.render.headline import first_findings
from biaskit.report.render.latex import render_latex
from biaskit.report.render.text import READABLE, render_notes, render_text
from biaskit.report.result import RunResult
from biaskit.runs.folder import NOTES
from biaskit.runs.manifest import read_manifest
from biaskit.runs.store import find_run
from biaskit.tables.sets import read_set
from biaskit.workflow.report import stored_content

FINISHED_WITH_MISSING = 3
N_FINDINGS = 3  # of a run that was just made; the page has all of them
N_LINES = 6  # of notes and signature; a file in the run's folder has all of them


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
    """Print the paper's tables as text or LaTeX, every table as JSON, or the group table as CSV.

    Of the notes under the text, which begin with the most important, a screen shows a few; `verbose`: all.
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
        # Not at the top: it is a third of what `report` of one run would import.
        from biaskit.workflow.compare import ComparisonResult

        document = result.document()
        emit(render_text(Document(document.tables), width()) + "\n" if document.tables else "")
        if isinstance(result, ComparisonResult):
            findings = first_findings(result.content, width=width())
        else:
            findings = first_findings(stored_content(result.path), width=width(), most=N_FINDINGS)
        notes = replace(document, tables=())
        remove_abandoned(result.path, NOTES)
        write_or_refuse(result.path / NOTES, render_text(notes, READABLE).encode())
        shown = render_text(notes, width()) if verbose else first_notes(notes, width())
        emit(f"{findings}\n\n{shown}\n")
        emit(f"Run: {result.path}\nEvery number is in its tables/*.csv.\n")
        emit(f"Page: biaskit report {shlex.quote(str(result.path))}\n")
        if read_manifest(result.path).imported:
            emit("It shows your texts, which may name people: --no-texts leaves them out.\n")


def as_json(result: RunResult) -> dict[str, Any]:
    """Give what a program reads of a result: every table as rows."""
    signature, tables = result.analysis()["signature"], read_set(result.path).rows()
    about = {"run": str(result.path), "signature": signature, "warnings": list(result.warnings)}
    return about | {"tables": tables}


def first_notes(document: Document, columns: int) -> str:
    """Render notes and signature, or the first notes and what is left, in `N_LINES` at most."""
    whole = render_text(document, columns)
    if whole.count("\n") <= N_LINES:
        return whole
    lines = render_notes(document.notes, columns).split("\n")
    begins = [*(i for i, line in enumerate(lines) if line.startswith("Note: ")), len(lines)]
    end = max(i for i in begins if i < N_LINES) or N_LINES - 1  # only a first note that is too long
    n_more = sum(end <= i < len(lines) for i in begins)
    more = f"{count(n_more, 'more note')} and " if n_more else ""
    return (
        "\n".join([*lines[:end], f"… {more}the signature: with --verbose, or in {NOTES} of the run"]) + "\n"
    )


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
        sys.exit(FINISHED_WITH_MISSING)
