"""Texts in a Parquet file, as a stream of its row groups."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from biaskit.errors import CorpusError, MissingExtraError

_BATCH = 1024


def parquet_columns(path: Path, where: str) -> tuple[str, ...]:
    """Every column of a file, used or not."""
    with _opened(path, where, [0]) as file:
        return tuple(file.schema_arrow.names)


def parquet_records(
    path: Path, where: str, columns: Mapping[str, str]
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The rows from 1, with the values of what is wanted; null is None."""
    row = [0]
    with _opened(path, where, row) as file:
        for batch in file.iter_batches(_BATCH, columns=list(columns.values())):
            names = batch.schema.names
            values = [batch.column(names.index(name)).to_pylist() for name in columns.values()]
            for record in zip(*values, strict=True):
                row[0] += 1
                yield row[0], dict(zip(columns, record, strict=True))


@contextmanager
def _opened(path: Path, where: str, row: list[int]) -> Iterator[Any]:
    """A Parquet file; `row`: the last that was read, which an error names."""
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError(
            f'{where}: Parquet needs pyarrow, which is not installed: pip install "biaskit[parquet]"'
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:
        # Arrow checks the encoding of a text, and whether Python has a date, only when it makes one.
        raise CorpusError(
            f"{where} cannot be read as Parquet, near row {row[0] + 1}: {' '.join(str(error).split())[:200]}."
            " Write the file again."
        ) from None
