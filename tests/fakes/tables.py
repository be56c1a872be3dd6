"""One public table by itself; the product writes them as sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from biaskit.tables.io import table_bytes


def write_table(path: Path, name: str, rows: Sequence[Mapping[str, object]], **layout: Any) -> None:
    """Write a table; `layout` as `columns` takes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(table_bytes(name, rows, **layout))
