"""What `biaskit export --to evidence` makes: an audit's zip of what was asked, what came of it, and digests.

The same runs give the same bytes: no time, no name of a machine, and files in order.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from biaskit.common.files import digest_of
from biaskit.common.foreign import markdown
from biaskit.common.inputs import Inputs, digest_of_file
from biaskit.common.provenance import versions
from biaskit.errors import RunError
from biaskit.exchange.card import card
from biaskit.exchange.source import ExportFiles, Source
from biaskit.report.content import Content
from biaskit.report.figures import draw_all
from biaskit.report.findings import sentences
from biaskit.report.page import render_page
from biaskit.runs.collection import StoredRun
from biaskit.runs.manifest import MANIFEST
from biaskit.runs.store import rows_file
from biaskit.runs.verification import FILE, read_verification
from biaskit.tables.sets import ANALYSIS, TABLES, read_set
from biaskit.workflow.report import with_rows

ARCHIVE, SUMS, FOLDER, CROSSWALK = "evidence.zip", "SHA256SUMS", "evidence", "crosswalk.csv"
_ANY_TIME = (1980, 1, 1, 0, 0, 0)
_FILES = Inputs(RunError, most=512 * 2**20)


def as_evidence(source: Source) -> ExportFiles:
    """Make one zip; the option `texts`, if False, leaves out every generated or imported text."""
    source.takes_only("texts")
    texts = source.options.get("texts", True)
    left_out = "" if texts else "left out by --no-texts"
    content = replace(source.content, with_texts=texts, texts_reason=left_out, versions=versions())
    content = with_rows(content, source.collection)
    page = render_page(content, sentences(content), draw_all(content))
    inside = {"page.html": page, "card.md": card(content).encode()}
    for number, run in enumerate(source.collection.runs, start=1):
        # The manifest with digests of the rows, every table, and a verification where there is one.
        place, hashed = f"run-{number}", (run.path / MANIFEST, rows_file(run.path, run.measurement))
        digests = {file.name: digest_of_file(file) for file in hashed if file.is_file()}
        inside[f"protocol/{place}.json"] = _json({**run.manifest.as_json(), "files": digests})
        for name, table in read_set(run.path).tables.items():
            inside[f"results/{place}/{name}.csv"] = table
        inside[f"results/{place}/{ANALYSIS}"] = _FILES.content(run.path / TABLES / ANALYSIS)
        if read_verification(run.path) is not None:
            inside[f"verification/{place}.json"] = _FILES.content(run.path / FILE)
    inside["protocol/prompts.json"] = _json(list(map(asdict, content.prompts)))
    inside["versions.json"] = _json(dict(content.versions))
    inside[CROSSWALK] = Path(__file__).with_name(CROSSWALK).read_bytes()
    inside["README.md"] = _readme(content, source.collection.runs).encode()
    note = "check the files of evidence.zip with `sha256sum -c SHA256SUMS`; the rows themselves are not in it"
    return ExportFiles({ARCHIVE: zipped(inside)}, ARCHIVE, (note,))


def zipped(inside: Mapping[str, bytes]) -> bytes:
    """Pack a zip whose bytes follow from the files alone, with their SHA-256 in SHA256SUMS."""
    sums = "".join(f"{digest_of(inside[name])}  {name}\n" for name in sorted(inside))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in sorted({**inside, SUMS: sums.encode()}.items()):
            info = zipfile.ZipInfo(f"{FOLDER}/{name}", _ANY_TIME)
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("ascii")


def _readme(content: Content, runs: tuple[StoredRun, ...]) -> str:
    names = "\n".join(f"- run-{n}: {markdown(run.path.name)}" for n, run in enumerate(runs, start=1))
    verification = "\nNot verified yet: `biaskit verify RUN` does it.\n"
    if any(read_verification(run.path) is not None for run in runs):
        verification = "| verification/ | what `biaskit verify` found |\n"
    return f"""# Evidence: {markdown(content.title)}

Made by `biaskit export --to evidence` from stored answers; no model was queried.
It is evidence of what was measured, and claims no conformity with any law or standard.

{names}

| Where | What |
|---|---|
| page.html | every number, figure and sentence, with limits and deviations from the papers |
| card.md | a short summary |
| protocol/ | study, lists with digests, models with fingerprints, prompts as sent |
| results/ | every table, and how it was made (analysis.json) |
| versions.json | versions of the packages used |
| crosswalk.csv | where fields of common forms find their numbers; some files come from other measurements |
| SHA256SUMS | digests of all files: `sha256sum -c SHA256SUMS` |
{verification}
Generated and imported texts: {markdown(content.texts_reason or "on page.html")}. Rows are not included;
protocol/ has their digests.
"""
