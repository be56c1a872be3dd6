"""The rows of sheets of an .xlsx, read by openpyxl: of a formula its saved result, nothing is evaluated."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from io import BytesIO
from pathlib import Path
from typing import Any

from biaskit.common.inputs import Inputs
from biaskit.errors import CorpusError, MissingExtraError, nearest

XLSX = ".xlsx"
_WORKBOOK = Inputs(CorpusError, most=256 * 2**20, remedy="Save it as .csv.")


class _NoValue(str):
    """What a cell holds that shows no value, in words."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet of a workbook."""

    where: str  # its file, as messages name it
    name: str
    header: tuple[str, ...]  # the first row that is not empty
    first: int  # the row below the header, as the spreadsheet numbers it
    cells: Sequence[Sequence[str | None]]  # below the header, merged ones with what they show

    def rows(self, columns: Mapping[str, int]) -> Iterator[tuple[int, Mapping[str, object]]]:
        """Yield the numbers and cells of rows that are not empty; `columns`: name → place, from 0."""
        for number, row in enumerate(self.cells, start=self.first):
            for place in columns.values():
                if isinstance(row[place], _NoValue):
                    cell = f"{self.where}, sheet {self.name!r}, row {number}: {self.header[place]}"
                    raise CorpusError(f"{cell} is {row[place]}. Open the workbook, see to the cell and save.")
            if any(row):
                yield number, {name: row[place] or "" for name, place in columns.items()}


def split_sheet(name: str) -> tuple[str, str | None]:
    """Split FILE.xlsx#SHEET into file and sheet; None where no sheet is named."""
    path, mark, sheet = name.partition(f"{XLSX}#")
    return (f"{path}{XLSX}", sheet) if mark and not Path(name).exists() else (name, None)


def is_sheet(name: str) -> bool:
    """Tell whether a file's name is that of a workbook, with or without a sheet."""
    return split_sheet(name)[0].lower().endswith(XLSX)


def open_sheets(path: Path, where: str, wanted: str | None) -> list[Sheet]:
    """Open the sheet of that name, else all that are not empty; at least one, or an error of one line."""
    content = _WORKBOOK.content(path, where)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and checks of input, which no text depends on
            return _read(content, where, wanted)
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


def _read(content: bytes, where: str, wanted: str | None) -> list[Sheet]:
    import openpyxl

    results = openpyxl.load_workbook(BytesIO(content), read_only=True, data_only=True, keep_links=False)
    names = [sheet.title for sheet in results.worksheets]
    if wanted is not None and wanted not in names:
        listed = ", ".join(map(repr, names[:12]))
        raise CorpusError(f"{where} has no sheet {wanted!r}.{nearest(wanted, names)} It has {listed}.")
    sheets, written = [], None
    for name in names if wanted is None else [wanted]:
        results[name].reset_dimensions()  # some programs state them wrong
        cells = [list(map(_text, row)) for row in results[name].rows]
        filled = [place for place, row in enumerate(cells) if any(row)]
        if not filled:
            continue
        top, width = filled[0], max(map(len, cells))
        cells = [row + [None] * (width - len(row)) for row in cells[: filled[-1] + 1]]
        if any(None in row for row in cells[top + 1 :]):  # results have neither formulas nor merged cells
            written = written or openpyxl.load_workbook(BytesIO(content), keep_links=False)
            _complete(cells, top + 1, written[name])
        header = tuple(text or "" for text in cells[top])
        while not header[-1]:
            header = header[:-1]
        sheets.append(Sheet(where, name, header, top + 2, cells[top + 1 :]))
    if not sheets:
        empty = f"sheet {wanted or names[0]!r}" if names else "the workbook"
        raise CorpusError(f"{where}, {empty} is empty. Write a header row, and the rows below it.")
    return sheets


def _complete(cells: list[list[str | None]], first: int, sheet: Any) -> None:
    """Fill merged cells with what they show, and mark formulas without a result, from row `first` on."""
    for number, row in enumerate(cells[first:], start=first + 1):
        for place, text in enumerate(row):
            if text is None and sheet.cell(number, place + 1).data_type == "f":
                row[place] = _NoValue("a formula without a result")
    for area in sheet.merged_cells.ranges:
        column = slice(area.min_col - 1, area.min_col)  # to the right, a merged cell is one long text
        for row in cells[area.min_row : area.max_row] if area.min_row > first else ():
            row[column] = cells[area.min_row - 1][column]


def _text(cell: Any) -> str | None:
    """Write a cell as text: a date without its midnight, a number with the digits a spreadsheet keeps."""
    value = cell.value
    if value is None:
        return None if cell.data_type == "n" else ""  # an empty text is the result of a formula
    if cell.data_type == "e":
        return _NoValue(f"the error {value}")
    if isinstance(value, datetime) and value.time() == time():
        return str(value.date())
    return f"{value:.15g}" if isinstance(value, float) else str(value)
