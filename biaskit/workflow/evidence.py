"""What `biaskit export --to evidence` puts together: a stored run's page and files, for an audit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from biaskit.errors import RunError
from biaskit.exchange.evidence import RunEvidence, evidence
from biaskit.exchange.source import ExportFiles, Source
from biaskit.inputs import Inputs, digest_of_file
from biaskit.provenance import versions
from biaskit.report.figures import draw_all
from biaskit.report.findings import say
from biaskit.report.page import render_page
from biaskit.runs.collection import StoredRun
from biaskit.runs.manifest import MANIFEST
from biaskit.runs.store import rows_file
from biaskit.runs.verification import FILE, read_verification
from biaskit.tables.sets import ANALYSIS, TABLES, read_set
from biaskit.workflow.report import with_rows

_FILES = Inputs(RunError, most=512 * 2**20)


def as_evidence(source: Source) -> ExportFiles:
    """One zip; `texts` False among the options leaves out every generated or imported text."""
    source.takes_only("texts")
    texts = source.options.get("texts", True)
    content = replace(
        source.content,
        with_texts=texts,
        texts_reason="" if texts else "left out by --no-texts",
        versions=versions(),
    )
    content = with_rows(content, source.collection)
    page = render_page(content, say(content), draw_all(content))
    runs = [_of_run(run) for run in source.collection.runs]
    return evidence(content, page, runs)


def _of_run(run: StoredRun) -> RunEvidence:
    tables = {f"{name}.csv": content for name, content in read_set(run.path).tables.items()}
    tables[ANALYSIS] = _FILES.content(run.path / TABLES / ANALYSIS)
    verified = read_verification(run.path)
    record = _FILES.content(run.path / FILE) if verified is not None else None
    return RunEvidence(run.path.name, run.manifest, tables, dict(_digests(run)), record)


def _digests(run: StoredRun) -> Iterator[tuple[str, str]]:
    for file in (run.path / MANIFEST, rows_file(run.path, run.engine)):
        if file.is_file():
            yield file.name, digest_of_file(file)
