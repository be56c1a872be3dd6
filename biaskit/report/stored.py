"""What the findings and figures of one stored run need, from its tables alone."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any

from biaskit.common.inputs import Inputs
from biaskit.common.wording import listed
from biaskit.errors import RunError
from biaskit.measurement import words
from biaskit.report.content import Content
from biaskit.runs.collection import BETWEEN_MODELS, Collection, gather
from biaskit.stats.contrast import Contrast
from biaskit.tables.sets import read_set

TITLE = "title.txt"  # of a run's or a comparison's folder


def stored_content(run: Path) -> Content:
    """Gather what findings need from a run's stored tables: its tests between models are among them."""
    collection, tests = gather([run]), read_set(run, ("tests",)).rows().get("tests", ())
    between = {"tests": [row for row in map(Contrast.of, tests) if row.contrast in BETWEEN_MODELS]}
    reference = reference_of(collection)
    title = title_of(collection)
    return Content(title, collection.parts, between, collection.notes, reference=reference).judged()


def kept_title(folder: Path) -> str:
    """Read the title that an earlier report of a folder was given; "" where none was."""
    file = folder / TITLE
    return Inputs(RunError, most=2**16).text(file).strip() if file.is_file() else ""


def title_of(collection: Collection) -> str:
    """Make the title of a page that was never given one."""
    labels = list(dict.fromkeys(model.label for part in collection.parts for model in part.models))
    if len(collection.runs) == 1 and (title := kept_title(collection.runs[0].path)):
        return title
    kinds = {part.measurement for part in collection.parts}
    subject = words(next(iter(kinds))).get("page", {}).get("subject", "") if len(kinds) == 1 else ""
    sources = [PurePath(part.imported["source"]).name for part in collection.parts if part.imported]
    if sources and len(sources) == len(collection.parts):
        return f"{subject or 'Gender'} in {listed([*dict.fromkeys(sources)])}"
    if subject:
        return f"{subject} of {labels[0] if len(labels) == 1 else f'{len(labels)} models'}"
    return f"How {labels[0]} treats gender" if len(labels) == 1 else f"How {len(labels)} models treat gender"


def reference_of(collection: Collection) -> Any:
    """Find what the page of these runs compares shares with."""
    stated = [run.manifest.resolved["study"].get("reference") for run in collection.runs]
    return next(filter(None, stated), "both")
