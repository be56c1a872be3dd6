"""How a log of Inspect holds a run: what `inspect_log` writes.

Rows stand in a sample as the lines that they are on disk, checksum and all, and so does the manifest: a text
of a model is a text inside a text, which no viewer takes for anything, and no number is written anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from biaskit.runs.rows import row_line

MARK = "biaskit"
"""The name under which a log's metadata, and a sample's, hold what is ours."""
LOG_FORMAT = 1
FILES = ("probe", "continuations", "personas")
"""The row files whose rows a sample may hold, by their names in `ROWS_FILES`."""

Placed = tuple[str, int, Mapping[str, Any]]
"""Which file a row is of, where it stands there, and the row."""


def of_log(
    manifest: Mapping[str, Any], choices: Mapping[str, Any], label: str | None, bias_type: str | None
) -> dict[str, Any]:
    """What a log says of its run. `choices`: how the run was analysed; `label` None: the samples tell it."""
    return {
        "format": LOG_FORMAT,
        "engine": manifest["engine"],
        "study": manifest["study"],
        "model": label,
        "bias_type": bias_type,
        "choices": json.dumps(choices),
        "manifest": json.dumps(manifest),
    }


def of_sample(rows: Sequence[Placed], entry: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a sample holds of its run; `entry`: its model's in the manifest, where the log has none."""
    lines = [{"file": file, "at": at, "row": row_line(row)} for file, at, row in rows]
    return {"rows": lines} if entry is None else {"rows": lines, "entry": json.dumps(entry)}
