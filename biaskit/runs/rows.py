"""What a row is on disk: one line of JSON, its key first, with a checksum (reference/run-folder#rows)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from biaskit.common.inputs import parse_json
from biaskit.common.provenance import canonical_json

SUM_DIGITS = 8  # hex digits of a row's checksum: one changed row in four thousand million passes


def row_line(row: Mapping[str, Any]) -> str:
    """Write one line of ASCII JSON without its line break: key, checksum, then the rest by name."""
    head, rest = _head_and_rest(row)
    return f'{head}"sum":"{_sum(head + rest)}"{"," if rest != "}" else ""}{rest}'


def _head_and_rest(row: Mapping[str, Any]) -> tuple[str, str]:
    rest = {name: value for name, value in row.items() if name not in ("key", "sum")}
    return f'{{"key":{json.dumps(row["key"])},', canonical_json(rest)[1:]


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:SUM_DIGITS]


class NoRow(ValueError):
    """A line that is no row, or a row whose content is not what was written; says which."""


def read_row(line: bytes) -> dict[str, Any]:
    """Read a line's row; its checksum is of the content, however spelt. Raises `NoRow`."""
    try:
        row = parse_json(line)
    except ValueError:
        raise NoRow("is not a row written by biaskit") from None
    if not isinstance(row, dict) or not isinstance(row.get("key"), str):
        raise NoRow("is not a row written by biaskit: it has no key")
    stated = row.pop("sum", None)
    head = f'{{"key":{json.dumps(row["key"])},'
    prefix = f'{head}"sum":"{stated}",'.encode("ascii", "replace")
    text = line.rstrip(b"\r\n")
    if text.startswith(prefix) and stated == _sum(head + text[len(prefix) :].decode("ascii", "replace")):
        return row
    if stated != _sum("".join(_head_and_rest(row))):
        raise NoRow("does not match its checksum: it was changed")
    return row


def is_unfinished(line: bytes) -> bool:
    """Tell whether a last line can be what one interrupted write left: zero bytes, or a row's beginning.

    Anything else that does not parse is somebody's file and is never cut.
    """
    text = line.rstrip(b"\0")
    start = b'{"key":"'
    return (text.startswith(start) or start.startswith(text)) and all(32 <= byte < 127 for byte in text)
