"""What `biaskit report` and `bk.report` do: one page, figures and LaTeX tables of stored runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from biaskit.compare.gathering import Collection, StoredRun, gather
from biaskit.errors import RunError
from biaskit.files import write_atomically
from biaskit.personas.paper_tables import paper_tables as persona_tables
from biaskit.personas.showing import show
from biaskit.probe.paper_tables import paper_tables as probe_tables
from biaskit.provenance import versions
from biaskit.report.content import Content, ExampleText, Part, PromptShown, Tables, WordInContext
from biaskit.report.deviations import deviations_of
from biaskit.report.document import PaperTable
from biaskit.report.latex import latex_files
from biaskit.report.prompts import prompts_shown
from biaskit.runs import find_run, read_manifest, read_rows, rows_file
from biaskit.sources import load_corpus
from biaskit.studies import ReportKeys

PAGE = "report.html"


@dataclass(frozen=True)
class Report:
    """What was written, and the content behind it."""

    page: Path
    figures: tuple[Path, ...]
    latex: tuple[Path, ...]
    content: Content
    notes: tuple[str, ...] = ()


def report(
    *runs: str | Path,
    out: str | Path | None = None,
    texts: bool = True,
    groups: Sequence[str] = (),
    aliases: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Report:
    """Write the page, the figures and the papers' tables of one run, or of several side by side.

    Args:
        runs: run folders of either engine, or a folder that `compare` wrote; by default the newest run.
        out: where the page goes; by default `report.html` in the run's folder (of several runs: in the
            comparison's). Figures and LaTeX tables always lie in that folder, under figures/ and latex/.
        texts: False leaves out every generated or imported text.
        groups, aliases: as `compare` takes them.
        settings: `report.max_mb`, `report.pdf`, `reference` and `margin.QUANTITY`.

    The page's numbers are those of the stored tables. Raises `BiaskitError` with one line to act on.
    """
    from biaskit.report.figures import draw_all, save
    from biaskit.report.findings import cannot_show, findings
    from biaskit.report.page import render_page

    given = dict(settings or {})
    keys = ReportKeys.model_validate(
        {name.removeprefix("report."): given[name] for name in given if name.startswith("report.")}
    )
    content, folder = _content(runs, texts, groups, aliases, given)
    figures = draw_all(content)
    page = render_page(content, findings(content), cannot_show(content), figures, max_mb=keys.max_mb)
    target = Path(out) if out is not None else folder / PAGE
    _write(target, page.html)
    drawn = tuple(save(figures, folder / "figures", pdf=keys.pdf))
    latex = tuple(_latex(content, folder / "latex"))
    return Report(target, drawn, latex, content, tuple(page.notes))


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise RunError(
            f"{path} cannot be written: {error.strerror or error}. Choose another --out."
        ) from error


# --- the content -------------------------------------------------------------------------------------


def content_of(
    *runs: str | Path,
    texts: bool = True,
    groups: Sequence[str] = (),
    aliases: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Content:
    """What a report of these runs says, without writing a page."""
    return _content(runs, texts, groups, aliases, dict(settings or {}))[0]


def _content(
    runs: Sequence[str | Path],
    texts: bool,
    groups: Sequence[str],
    aliases: str | Path | None,
    settings: Mapping[str, Any],
) -> tuple[Content, Path]:
    paths, groups, aliases = _expanded(runs, groups, aliases)
    collection = gather(paths)
    between, notes, folder = _between(collection, paths, groups, aliases, settings)
    content = Content(
        title=_title(collection.parts),
        parts=collection.parts,
        between=between,
        notes=(*collection.notes, *notes),
        deviations=deviations_of(paper for part in collection.parts for paper in part.papers),
        with_texts=texts,
        texts_reason="" if texts else "left out by --no-texts",
        command=_command(paths, texts, groups, aliases),
        versions=versions(),
        bibtex=_bibtex(collection.parts),
        reference=settings.get("reference", _reference(collection)),
    )
    return _with_rows(content, collection), folder


def _expanded(
    runs: Sequence[str | Path], groups: Sequence[str], aliases: str | Path | None
) -> tuple[list[Path], Sequence[str], str | Path | None]:
    """The runs that are meant; a folder that `compare` wrote stands for its runs, groups and aliases."""
    found: list[Path] = []
    for path in [find_run(str(run)) for run in runs] or [find_run(None)]:
        manifest = read_manifest(path)
        if manifest["engine"] != "compare":
            found.append(path)
            continue
        resolved = manifest["resolved"]
        found += [find_run(str(entry["path"])) for entry in resolved["runs"]]
        groups = groups or tuple(resolved.get("groups", ()))
        aliases = aliases or resolved.get("aliases")
    return found, groups, aliases


def _between(
    collection: Collection,
    paths: Sequence[Path],
    groups: Sequence[str],
    aliases: str | Path | None,
    settings: Mapping[str, Any],
) -> tuple[Tables, list[str], Path]:
    """What ties runs and models together, and the folder everything goes to."""
    from biaskit.workflow.comparing import compare

    n_models = len({model.label for part in collection.parts for model in part.models})
    if len(paths) == 1 and n_models == 1:
        return {}, [], paths[0]
    margins = {name: value for name, value in settings.items() if name.startswith("margin.")}
    own = paths[0] if len(paths) == 1 else None
    made = compare(*paths, out=own and own / "comparison", groups=groups, aliases=aliases, settings=margins)
    tables = {name: rows for name, rows in made.tables().items() if rows}
    return tables, list(made.warnings), own or made.path


def _title(parts: Sequence[Part]) -> str:
    labels = list(dict.fromkeys(model.label for part in parts for model in part.models))
    if len(labels) == 1:
        return f"How {labels[0]} treats gender"
    return f"How {len(labels)} models treat gender"


def _reference(collection: Collection) -> Any:
    stated = [run.manifest["resolved"]["study"].get("reference") for run in collection.runs]
    return next((one for one in stated if one), "both")


def _command(paths: Sequence[Path], texts: bool, groups: Sequence[str], aliases: str | Path | None) -> str:
    words = ["biaskit", "report", *map(str, paths)]
    for group in groups:
        words += ["--group", group]
    words += ["--aliases", str(aliases)] if aliases else []
    return shlex.join([*words, *([] if texts else ["--no-texts"])])


def _bibtex(parts: Sequence[Part]) -> str:
    names = dict.fromkeys(paper for part in parts for paper in part.papers)
    return "\n\n".join(dict.fromkeys(load_corpus(name).bibtex.strip() for name in names))


# --- what the rows add -------------------------------------------------------------------------------


def _with_rows(content: Content, collection: Collection) -> Content:
    """The same content with prompts, example texts and sentences, read from the rows once per run."""
    prompts: list[PromptShown] = []
    examples: list[ExampleText] = []
    words: list[WordInContext] = []
    sentences: dict[str, int] = {}
    for part in collection.parts:
        for run in collection.runs_of(part):
            prompts += prompts_shown(part, _rows(run), run.names)
            if part.engine != "personas" or not content.with_texts:
                continue
            choices = run.analysis.get("choices", {})
            shown = show(_rows(run), run.tables, choices)
            examples += shown.examples
            places = [sentences.setdefault(sentence, len(sentences)) for sentence in shown.sentences]
            words += [
                replace(word, sentences=tuple(places[i] for i in word.sentences)) for word in shown.words
            ]
    reason = content.texts_reason
    if content.with_texts and not any(part.engine == "personas" for part in collection.parts):
        reason = "no run of the generation engine is part of this report (`biaskit personas`)"
    return replace(
        content,
        prompts=tuple(prompts),
        examples=tuple(examples),
        words=tuple(words),
        sentences=tuple(sentences),
        with_texts=content.with_texts and not reason,
        texts_reason=reason,
    )


def _rows(run: StoredRun) -> Iterator[dict[str, Any]]:
    file = rows_file(run.path, run.engine)
    skip = bool(run.manifest["resolved"]["study"].get("skip_bad_lines", False))
    return read_rows(file, skip_bad=skip) if file.is_file() else iter(())


# --- tables for papers -------------------------------------------------------------------------------


def _latex(content: Content, folder: Path) -> Iterator[Path]:
    """The papers' tables of every part, a file each, and one document that holds them all."""
    tables = [table for part in content.parts for table in _paper_tables(part, content.between)]
    signature = "; ".join(one for part in content.parts for one in part.signatures)
    for name, text in latex_files(tables, signature).items():
        _write(folder / name, text)
        yield folder / name


def _paper_tables(part: Part, between: Tables) -> list[PaperTable]:
    if part.engine == "probe":
        return probe_tables(part)
    return persona_tables(part.tables, between)
