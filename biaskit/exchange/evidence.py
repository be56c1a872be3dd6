"""A folder for an audit as one zip: what was asked, what came of it, its limits, and digests of all of it.

The same runs give the same bytes: no time, no name of a machine, and files in order.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from biaskit.exchange.card import card
from biaskit.exchange.source import ExportFiles
from biaskit.foreign import markdown
from biaskit.report.content import Content
from biaskit.report.findings import say
from biaskit.wording import count

ARCHIVE, SUMS, FOLDER = "evidence.zip", "SHA256SUMS", "evidence"
_ANY_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX, _READABLE = 3, 0o100644 << 16
_MADE, _MEASURED = "made with", "measured with"
CROSSWALK = "crosswalk.md"


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """A run's part of the folder."""

    name: str  # of its folder
    manifest: Mapping[str, Any]
    tables: Mapping[str, bytes]
    digests: Mapping[str, str]  # of manifest and rows, which stay with whoever measured
    verification: bytes | None


def evidence(content: Content, page: bytes, runs: Sequence[RunEvidence]) -> ExportFiles:
    """The zip of some runs. `page`: the report's, with texts or without."""
    inside = {"page.html": page, "card.md": card(content).encode()}
    inside |= {name: text.encode() for name, text in _documents(content, runs).items()}
    for number, run in enumerate(runs, start=1):
        place = f"run-{number}"
        inside[f"protocol/{place}.json"] = _json(_protocol(run))
        inside |= {f"results/{place}/{name}": table for name, table in run.tables.items()}
        if run.verification is not None:
            inside[f"verification/{place}.json"] = run.verification
    inside["protocol/prompts.json"] = _json([asdict(one) for one in content.prompts])
    inside["versions.json"] = _json(
        {
            "made with": dict(content.versions),
            "measured with": [dict(run.manifest["versions"]) for run in runs],
        }
    )
    note = "check the files of evidence.zip with `sha256sum -c SHA256SUMS`; the rows themselves are not in it"
    return ExportFiles({ARCHIVE: zipped(inside)}, ARCHIVE, (note,))


def zipped(inside: Mapping[str, bytes]) -> bytes:
    """A zip whose bytes follow from the files alone, with their SHA-256 in SHA256SUMS."""
    sums = "".join(f"{hashlib.sha256(inside[name]).hexdigest()}  {name}\n" for name in sorted(inside))
    whole = {**inside, SUMS: sums.encode()}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(whole):
            entry = zipfile.ZipInfo(f"{FOLDER}/{name}", _ANY_TIME)
            entry.compress_type, entry.create_system, entry.external_attr = (
                zipfile.ZIP_DEFLATED,
                _UNIX,
                _READABLE,
            )
            archive.writestr(entry, whole[name], compresslevel=6)
    return target.getvalue()


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("ascii")


def _protocol(run: RunEvidence) -> dict[str, Any]:
    """What was asked of whom, with digests of the lists and of the rows."""
    kept = ("engine", "study", "question", "resolved", "models", "command", "signature")
    return {**{name: run.manifest.get(name) for name in kept}, "files": dict(run.digests)}


def _documents(content: Content, runs: Sequence[RunEvidence]) -> dict[str, str]:
    said = say(content)
    notes = list(dict.fromkeys((*content.notes, *(n for part in content.parts for n in part.notes))))
    limits = [*said.limits, *notes]
    verified = any(run.verification is not None for run in runs)
    return {
        "README.md": "\n".join(_readme(content, runs, verified=verified)) + "\n",
        "limits.md": _list("What the numbers cannot show", limits),
        "deviations.md": _list(
            "Where biaskit follows another definition than the papers", _deviations(content)
        ),
        CROSSWALK: crosswalk(verified=verified),
    }


def _list(title: str, entries: Sequence[str]) -> str:
    shown = [f"- {markdown(one)}" for one in entries] or ["None is known."]
    return "\n".join([f"# {title}", "", *shown, ""])


def _deviations(content: Content) -> list[str]:
    return [
        f"{one.paper}, {one.what}: here {one.ours}; there {one.theirs}."
        + (f" Key: {one.key}." if one.key else "")
        for one in content.deviations
    ]


def _readme(content: Content, runs: Sequence[RunEvidence], *, verified: bool) -> Iterator[str]:
    yield f"# Evidence: {markdown(content.title)}"
    yield ""
    yield "Made by `biaskit export --to evidence` from stored answers; no model was asked for it."
    yield "It is evidence of what was measured, and claims no conformity with any law or standard."
    yield ""
    yield from (f"- run-{n}: {markdown(run.name)}" for n, run in enumerate(runs, start=1))
    yield ""
    yield "| Where | What |"
    yield "|---|---|"
    yield "| page.html | every number, figure and sentence; opens from disk and asks no server |"
    yield "| card.md | the same in short |"
    yield "| protocol/ | study, lists with digests, models with fingerprints, prompts as they were put |"
    yield "| results/ | every table, and how it was made (analysis.json) |"
    yield "| limits.md, deviations.md | what the numbers cannot show; other definitions than the papers’ |"
    if verified:
        yield "| verification/ | what `biaskit verify` found: cells asked again, checks, versions |"
    yield "| versions.json | of the packages that measured and that made this folder |"
    yield "| crosswalk.md | which question of which document this may help to answer |"
    yield "| SHA256SUMS | of every file: `sha256sum -c SHA256SUMS` |"
    yield ""
    if not verified:
        yield "No verification lies here: `biaskit verify RUN` makes one."
        yield ""
    why = content.texts_reason or "texts stand on page.html"
    yield f"Generated and imported texts: {markdown(why)}. {count(len(runs), 'run')}; rows are not included,"
    yield "their digests stand in protocol/."


def crosswalk(*, verified: bool) -> str:
    """The text of crosswalk.md; without a verification it says that there is none."""
    text = files("biaskit.exchange").joinpath(CROSSWALK).read_text("utf-8")
    return text if verified else text.replace("verification/", "verification/ (none here)")
