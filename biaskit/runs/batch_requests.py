"""What `--write-requests` does: a run's questions as a file for a batch service."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.common.files import check_replaceable, streamed
from biaskit.common.inputs import expanded
from biaskit.common.wording import count
from biaskit.errors import UsageError
from biaskit.measurement import Measurement
from biaskit.models.spec import is_api
from biaskit.runs.designs import Design
from biaskit.runs.manifest import read_manifest
from biaskit.runs.session import Session

if TYPE_CHECKING:
    from biaskit.models.api.offline import RequestFile

MOST_OF_OPENAI = 50_000, 200 * 2**20  # requests and bytes that OpenAI takes in one file


def write_requests(
    kind: Measurement, design: Design, session: Session[Any], target: str | Path, max_cost: float | None
) -> list[str]:
    """Write what is still to ask of a run's model to a file instead of asking it; returns the notes."""
    from biaskit.models.api.offline import Offline, RequestFile, is_request_file

    if not hasattr(kind.file("ask"), "what_is_open"):
        raise UsageError(
            f"Runs of `biaskit {kind.name}` take no files of answers: leave --write-requests out."
        )
    if len(session.models) > 1:
        raise UsageError(
            f"--write-requests takes one model, not {len(session.models)}: a batch file is for one model."
        )
    [(label, spec)] = session.models.items()
    if not is_api(spec):
        raise UsageError(f"--write-requests is for API models, and {label} is none: leave it out.")
    if max_cost is not None:
        raise UsageError("--max-cost limits what biaskit sends; with --write-requests it sends nothing.")
    path = expanded(target)
    check_replaceable(path, "file of requests", (".jsonl",), is_request_file)
    with contextlib.nullcontext(io.BytesIO()) if session.dry_run else streamed(path) as file:
        requests = RequestFile(file)
        session.outcome.offline = Offline(requests, design.study.sent_as)
        notes = list(kind.ask(design, session).notes)
    return notes if session.dry_run else notes + _notes(path, requests, session.run, kind, design)


def _notes(path: Path, requests: RequestFile, run: Path, kind: Measurement, design: Design) -> list[str]:
    manifest, notes = read_manifest(run), []
    for label, entry in manifest.models.items():
        if entry.abilities.get("assumed"):
            assumed = entry.abilities["findings"][0]["answer"].removeprefix("assumed: ")
            notes.append(
                f"{label} was not tested, so its abilities are assumed: {assumed}. Change them with"
                " --prompt-format, --estimator and --batch-size (texts per request), in another --out"
            )
    if not requests.n:
        return [*notes, f"no request is left to write: all of {run} are answered"]
    notes.append(
        f"{count(requests.n, 'request')} to {', '.join(requests.endpoints)} in {path}; nothing was sent. When"
        f" they are answered: biaskit import {run} ANSWERS"
    )
    most, size = MOST_OF_OPENAI
    if requests.n > most or requests.size > size:
        notes.append(f"OpenAI takes {most:,} requests and 200 MB a file: split -l {most} {path}")
    still = kind.what_is_open(run, manifest, design)
    if still.later:
        more = count(still.batches, "more batch", "more batches")
        notes.append(
            f"depending on the answers, up to {count(still.later, kind.unit)} in up to {more} may follow"
            " (Algorithm 5): after each import the same command writes the next batch"
        )
    return notes
