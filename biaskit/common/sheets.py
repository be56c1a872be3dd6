"""The rows of one sheet of an .xlsx, read by pandas: of a formula its saved result, nothing is evaluated."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from io import BytesIO
from pathlib import Path

from biaskit.common.inputs import Inputs
from biaskit.errors import CorpusError, MissingExtraError, nearest

XLSX = ".xlsx"
_WORKBOOK = Inputs(CorpusError, most=256 * 2**20, remedy="Save it as .csv.")


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet of a workbook."""

    name: str
    header: tuple[str, ...]
    first: int  # the row below the header, as the spreadsheet numbers it
    cells: Sequence[Sequence[str]]  # below the header
    others: tuple[str, ...]  # the names of the other sheets

    def rows(self, columns: Mapping[str, int]) -> Iterator[tuple[int, Mapping[str, object]]]:
        """Yield the numbers and cells of rows that are not empty; `columns`: name → place, from 0."""
        for number, row in enumerate(self.cells, start=self.first):
            if any(row):
                yield number, {name: row[place] for name, place in columns.items()}


def split_sheet(name: str) -> tuple[str, str | None]:
    """Split FILE.xlsx#SHEET into file and sheet; None where no sheet is named."""
    path, mark, sheet = name.partition(f"{XLSX}#")
    return (f"{path}{XLSX}", sheet) if mark and not Path(name).exists() else (name, None)


def is_sheet(name: str) -> bool:
    """Tell whether a file's name is that of a workbook, with or without a sheet."""
    return split_sheet(name)[0].lower().endswith(XLSX)


def open_sheet(path: Path, where: str, wanted: str | None) -> Sheet:
    """Open the sheet of that name, else the first; its header is the first row that is not empty."""
    names, name, cells = _read(path, where, wanted)
    for place, row in enumerate(cells):
        if any(row):
            header = tuple(row)
            while not header[-1]:
                header = header[:-1]
            return Sheet(name, header, place + 2, cells[place + 1 :], tuple(n for n in names if n != name))
    raise CorpusError(f"{where}, sheet {name!r} is empty. Write a header row, and the rows below it.")


def _read(path: Path, where: str, wanted: str | None) -> tuple[list[str], str, list[list[str]]]:
    """Read the names of all sheets, and name and cells of the wanted one. Raises errors of one line."""
    import pandas as pd

    content = BytesIO(_WORKBOOK.content(path, where))
    try:
        with warnings.catch_warnings(), pd.ExcelFile(content, engine="openpyxl") as book:
            warnings.simplefilter("ignore")  # of styles and checks of input, which no text depends on
            names = list(map(str, book.sheet_names))
            if not names:
                raise CorpusError(f"{where} has no sheet with cells. Save a table in it.")
            name = names[0] if wanted is None else wanted
            if name not in names:
                listed = ", ".join(map(repr, names[:12]))
                raise CorpusError(f"{where} has no sheet {name!r}.{nearest(name, names)} It has {listed}.")
            frame = book.parse(name, header=None, dtype=object, keep_default_na=False, na_filter=False)
    except CorpusError:
        raise
    except ImportError as error:
        raise MissingExtraError(
            f'{where}: .xlsx needs openpyxl, which is not installed: pip install "biaskit[xlsx]"'
        ) from error
    except zipfile.BadZipFile:
        raise CorpusError(
            f"{where} is not an .xlsx workbook. Save it as .xlsx without a password, or as .csv."
        ) from None
    except Exception as error:  # files of strangers, read by a library: what it raises has no end
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise CorpusError(f"{where} cannot be read as a workbook: {why}. Save it as .csv.") from error
    return names, name, [list(map(_text, row)) for row in frame.itertuples(index=False)]


def _text(value: object) -> str:
    """Write a cell as text: a date without its midnight, a number with the digits a spreadsheet keeps."""
    if isinstance(value, datetime) and value.time() == time():
        return str(value.date())
    if isinstance(value, float):
        return "" if value != value else f"{value:.15g}"
    return str(value)
