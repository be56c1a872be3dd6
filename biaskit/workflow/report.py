"""What `biaskit report` and `bk.report` do: one page, figures and LaTeX tables of stored runs."""

from __future__ import annotations

import os
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from biaskit.arguments import checked
from biaskit.common.files import (
    check_folder,
    check_replaceable,
    is_intact,
    may_write,
    read_record,
    remove_abandoned,
    write_or_refuse,
    write_set,
)
from biaskit.common.files import files_of as files_named
from biaskit.common.foreign import visible
from biaskit.common.inputs import expanded
from biaskit.common.provenance import versions
from biaskit.common.wording import count
from biaskit.errors import RunError, StudyError, UsageError, nearest
from biaskit.measurement import measurement
from biaskit.progress import LineWatcher, Watcher
from biaskit.report.content import Content, Equivalence, ExampleText, PromptShown, WordInContext
from biaskit.report.deviations import deviations_of
from biaskit.report.prompts import PromptKinds
from biaskit.report.render.document import PaperTable
from biaskit.report.render.latex import latex_files
from biaskit.report.result import RunResult, run_path
from biaskit.report.stored import TITLE, kept_title, reference_of, title_of
from biaskit.runs.collection import Collection, gather
from biaskit.runs.folder import PAGE
from biaskit.runs.manifest import COMPARISON, read_manifest
from biaskit.runs.store import find_run
from biaskit.runs.verification import verified_line
from biaskit.study.config import explain
from biaskit.study.keys import Reference, ReportKeys
from biaskit.tables.query import Tables
from biaskit.workflow.analyze import make_fit
from biaskit.workflow.cite import bibtex_of

if TYPE_CHECKING:
    from biaskit.report.findings import Finding

PAGES = (".html", ".htm")
FIGURES, LATEX = "figures", "latex"
MADE = (".svg", ".png", ".pdf", ".tex")
RECORD = ".biaskit.json"
"""Beside figures and LaTeX tables: the digest of each, so that what somebody changed is never replaced."""
PREFIX, MARGIN = "report.", "margin."
STEPS = 4  # reading and comparing, drawing, the page, the files: what a long report is at


@dataclass(frozen=True, repr=False)
class Report:
    """What a report wrote and what it says.

    A finding has `topic`, `question`, `verdict` (higher, lower, equivalent, no-clear-difference,
    not-identified, no-verdict, not-measured, shown), `text` (at most 25 words) and `measured_with`.
    """

    page: Path  # the HTML page
    figures: tuple[Path, ...]  # SVG, PNG and, where asked for, PDF files
    latex: tuple[Path, ...]  # tables of the papers and of marked words, and one document that holds all
    findings: tuple[Finding, ...]  # the page's sentences, most important first
    content: Content  # everything the page was made of

    def __repr__(self) -> str:
        parts = {"finding": self.findings, "figure file": self.figures, "LaTeX file": self.latex}
        counts = ", ".join(count(len(listed), what) for what, listed in parts.items())
        return visible(f"Report({str(self.page)!r}: {counts})")


@checked()
def report(
    *runs: str | Path | RunResult,
    out: str | Path | None = None,
    title: str = "",
    texts: bool = True,
    groups: Sequence[str] = (),
    aliases: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    watcher: Watcher | None = None,
) -> Report:
    """Write a page, figures and LaTeX tables of one run, or of several side by side, from stored tables.

    >>> made = bk.report(probed, watcher=bk.Silent())
    >>> made.page.name, made.figures[0].parent.name, made.latex[0].parent.name
    ('report.html', 'figures', 'latex')

    Args:
        runs: folders or results of probes, texts or comparisons; by default the newest run.
        out: the page; by default report.html in the run's folder (of several runs: in the comparison's).
            Figures and tables are in that folder too, or beside the page where it cannot be written.
        title: of the page, and of later ones until another is given; by default it names the model.
        texts: False leaves out every generated or imported text.
        groups, aliases: as `bk.compare` takes them.
        settings: `report.pdf`, `reference` and `margin.QUANTITY`.
        watcher: sees the progress.

    Returns a `Report`: `page`, `figures`, `latex` (paths) and `findings` (sentences with their numbers).
    Raises `BiaskitError` where a run cannot be read or a file cannot be replaced.
    """
    from biaskit.report.figures import draw_all, files_of
    from biaskit.report.findings import sentences
    from biaskit.report.page import is_page, render_page

    paths, settings = list(map(run_path, runs)), settings or {}
    keys = _keys(settings)
    if out is not None:
        if str(out) == "-":
            raise UsageError("Figures and tables are written next to the page: give a file, --out page.html.")
        check_replaceable(expanded(out), "page", PAGES, is_page)  # before an hour is spent on it
    seen = watcher or LineWatcher()
    seen.progress("report", 0, STEPS)
    content, folder = _content(paths, texts, groups, aliases, settings, out, seen)
    if title and may_write(folder):
        write_or_refuse(folder / TITLE, title.encode(errors="replace"))
    if title := title or kept_title(folder):
        content = replace(content, title=title, command=f"{content.command} --title {shlex.quote(title)}")
    target = expanded(out) if out is not None else folder / PAGE
    check_replaceable(target, "page", PAGES, is_page)
    if out is not None and not may_write(folder):
        folder = target.parent
    for name in (FIGURES, LATEX):
        check_folder(folder / name)
    seen.progress("report", 1, STEPS)
    figures = draw_all(content)
    seen.progress("report", 2, STEPS)
    statements = sentences(content)
    page = render_page(content, statements, figures)
    remove_abandoned(target.parent, target.name)
    write_or_refuse(target, page)
    seen.progress("report", 3, STEPS)
    drawn = put_together(folder / FIGURES, files_of(figures, pdf=keys.pdf), seen, made=MADE)
    tables: list[PaperTable] = []
    for part in content.parts:
        tables += measurement(part.measurement).papers(part, content.between)
    signatures = "; ".join(line for part in content.parts for line in part.signatures)
    latex = put_together(folder / LATEX, latex_files(tables, signatures), seen, made=MADE)
    seen.progress("report", 4, STEPS)
    return Report(target, drawn, latex, statements.findings, content)


def _keys(settings: Mapping[str, Any]) -> ReportKeys:
    """Read the keys of the page; of the settings that the comparison takes only the names are checked."""
    known = [*(f"{PREFIX}{name}" for name in ReportKeys.model_fields), "reference"]
    for name in settings:
        if name not in known and not name.startswith(MARGIN):
            listed = ", ".join([*known, "margin.QUANTITY"])
            raise StudyError(f"{name} is not a key of the page.{nearest(name, known)} Known: {listed}.")
    reference = settings.get("reference", "both")
    if reference not in get_args(Reference):
        raise StudyError(f"reference is {reference!r}: write one of {', '.join(get_args(Reference))}.")
    of_page = {name.removeprefix(PREFIX): settings[name] for name in settings if name.startswith(PREFIX)}
    try:
        return ReportKeys.model_validate(of_page)
    except ValidationError as error:
        raise StudyError(explain(error, "--set", ReportKeys, PREFIX)) from error


# --- the content -------------------------------------------------------------------------------------


def content_of(collection: Collection, between: Tables, **more: Any) -> Content:
    """Make the content of stored runs, with what their papers and verifications say; `more`: other fields.

    A verification has the name of its run where there are several.
    """
    papers = list(dict.fromkeys(paper for part in collection.parts for paper in part.papers))
    verified = []
    for run in collection.runs:
        if line := verified_line(run.path, run.analysis.get("rows_digest")):
            verified.append(f"{run.path.name}: {line}" if len(collection.runs) > 1 else line)
    content = Content(
        title=title_of(collection),
        parts=collection.parts,
        between=between,
        notes=collection.notes,
        deviations=deviations_of(papers),
        bibtex="\n\n".join(bibtex_of(papers).values()),
        verified=tuple(verified),
    )
    return replace(content, **more).judged()


def _content(
    runs: Sequence[Path],
    texts: bool,
    groups: Sequence[str],
    aliases: str | Path | None,
    settings: Mapping[str, Any],
    out: str | Path | None,
    watcher: Watcher,
) -> tuple[Content, Path]:
    """Gather everything the page shows, and name the folder that figures and tables go to."""
    compared, paths, groups, aliases = _named(runs, groups, aliases)
    axis = read_manifest(compared).resolved.get("axis") if compared is not None else None
    make_fit(paths, watcher)
    collection = gather(paths)
    command = ["biaskit", "report", *map(str, paths)]
    for group in groups:
        command += ["--group", group]
    if aliases:
        command += ["--aliases", str(aliases)]
    if not texts:
        command.append("--no-texts")
    between: Tables = {}
    folder, notes, equivalence = paths[0], collection.notes, None
    n_models = len({model.label for part in collection.parts for model in part.models})
    if len(paths) > 1 or n_models > 1:
        from biaskit.workflow.compare import compare_gathered

        margins = {name: value for name, value in settings.items() if name.startswith(MARGIN)}
        alone = len(paths) == 1
        target = compared or (paths[0] / "comparison" if alone else None)
        if out is not None and target is not None and not may_write(target.parent if alone else target):
            target = expanded(out).parent / "comparison"
        comparison = compare_gathered(
            collection, out=target, groups=groups, aliases=aliases, axis=axis, settings=margins
        )
        between = comparison.content.between
        notes = tuple(dict.fromkeys((*notes, *comparison.warnings)))
        if not alone or compared is not None:
            folder = comparison.path
        if n_models == 2:
            required = comparison.requirement()
            counts = len(required.failing), required.n_rows
            equivalence = Equivalence(required.holds, *counts, bool(required.weak))
    content = content_of(
        collection,
        between,
        notes=notes,
        with_texts=texts,
        texts_reason="" if texts else "left out by --no-texts",
        command=shlex.join(command),
        versions=versions(),
        reference=settings.get("reference", reference_of(collection)),
        equivalence=equivalence,
    )
    return with_rows(content, collection), folder


def _named(
    runs: Sequence[Path], groups: Sequence[str], aliases: str | Path | None
) -> tuple[Path | None, Sequence[Path], Sequence[str], str | Path | None]:
    """Let a folder that `compare` wrote stand for its runs, groups and aliases; no run: the newest.

    Returns that folder, None where none was named, then runs, groups and aliases.
    """
    folders = list(runs) or [find_run(None)]
    manifests = list(map(read_manifest, folders))
    if not any(manifest.measurement == COMPARISON for manifest in manifests):
        return None, folders, groups, aliases
    if len(folders) > 1:
        raise UsageError("A comparison cannot be combined with runs: name the runs instead.")
    folder, resolved = folders[0], manifests[0].resolved
    paths = [find_run(os.path.normpath(folder / entry["path"])) for entry in resolved["runs"]]
    if not aliases and resolved.get("aliases"):
        aliases = Path(os.path.normpath(folder / resolved["aliases"]))
    return folder, paths, groups or resolved.get("groups", ()), aliases


# --- what the rows add -------------------------------------------------------------------------------


def with_rows(content: Content, collection: Collection) -> Content:
    """Add prompts, example texts and sentences to content; every file of rows is read once."""
    prompts: list[PromptShown] = []
    examples: list[ExampleText] = []
    marked: list[WordInContext] = []
    sentences: dict[str, int] = {}
    has_texts = False
    for part in collection.parts:
        for run in collection.runs_of(part):
            kinds = PromptKinds(part, run.names)
            rows = kinds.noting(run.rows())
            shown = measurement(part.measurement).examples(rows, run) if content.with_texts else None
            deque(rows, maxlen=0)  # what is left, for its prompts
            if shown is not None:
                has_texts = True
                examples += shown.examples
                places = [sentences.setdefault(sentence, len(sentences)) for sentence in shown.sentences]
                for word in shown.words:
                    own = tuple(places[i] for i in word.sentences)
                    marked.append(replace(word, sentences=own))
            prompts += kinds.shown()
    reason = content.texts_reason
    if content.with_texts and not has_texts:
        reason = "no run of personas is part of this report (`biaskit personas`)"
    return replace(
        content,
        prompts=tuple(prompts),
        examples=tuple(examples),
        words=tuple(marked),
        sentences=tuple(sentences),
        with_texts=content.with_texts and not reason,
        texts_reason=reason,
    )


def put_together(
    folder: Path, files: Mapping[str, bytes], watcher: Watcher, *, made: Any = "", hint: str = ""
) -> tuple[Path, ...]:
    """Put the files of a report or an export in their folder; what somebody changed is kept, with a note.

    What an earlier one made and this one does not is removed, if its name ends as `made` says: it may show
    other numbers.
    """
    record = read_record(folder / RECORD)
    earlier = files_named(record) if record is not None and is_intact(record) else {}
    # Whoever can write the record could name any file of this machine in it.
    gone = [name for name in earlier if Path(name).name == name and name.endswith(made)]
    try:
        for note in write_set(folder, files, RECORD, {}, gone=gone) if files or gone else ():
            watcher.note(note)
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {error.strerror or error}.{hint}") from error
    return tuple(folder / name for name in files)
