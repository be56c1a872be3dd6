"""Texts and lists in a spreadsheet (.xlsx): one sheet's rows, cells as they are shown.

Of a formula the result is read that was saved with it; nothing is evaluated and no link is followed. A
workbook that unpacks to more than anybody's data is refused before it is opened.
"""

from __future__ import annotations

import importlib
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from biaskit.errors import CorpusError, MissingExtraError, nearest

XLSX = ".xlsx"
MOST_UNPACKED = 2**29
"""Bytes of a workbook's parts together: some ten million sentences."""
_SHEET = "#"
_FIXED = re.compile(r"#?[#,]*0(?:\.(0+))?(%?)")
"""Number formats that say how many decimals are shown."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet of a workbook, by what messages call the file."""

    path: Path
    where: str
    name: str
    header: tuple[str, ...]
    first: int  # the row of the header, as the spreadsheet numbers it
    others: tuple[str, ...]  # the names of the other sheets

    def rows(self, columns: Mapping[str, int]) -> Iterator[tuple[int, Mapping[str, object]]]:
        """The rows below the header that are not empty; `columns`: what is wanted → where it stands, from 0.

        A row's number is the spreadsheet's; an empty cell is an empty text.
        """
        after = {"min_row": self.first + 1, "max_col": len(self.header)}
        # A result that was not saved reads as an empty cell: the same rows as formulas tell the two apart.
        with _opened(self.path, self.where) as book, _opened(self.path, self.where, results=False) as source:
            formulas = enumerate(_quietly(source[self.name].iter_rows(**after)), start=self.first + 1)
            for number, cells in enumerate(
                _quietly(book[self.name].iter_rows(**after)), start=self.first + 1
            ):
                values = {role: _text(cells, place) for role, place in columns.items()}
                if None in values.values():
                    empty = [place for role, place in columns.items() if values[role] is None]
                    same = next((row for n, row in formulas if n == number), ())
                    if any(_text(same, place) is not None for place in empty):
                        raise CorpusError(
                            f"{self.where}, row {number} holds a formula without its result. Open the file in"
                            " a spreadsheet program, save it there, and give it again."
                        )
                if any(_text(cells, place) is not None for place in range(len(cells))):
                    yield number, {role: value or "" for role, value in values.items()}


def split_sheet(name: str) -> tuple[str, str | None]:
    """FILE.xlsx#SHEET as file and sheet; None where no sheet is named."""
    path, mark, sheet = name.partition(f"{XLSX}{_SHEET}")
    return (f"{path}{XLSX}", sheet) if mark and not Path(name).exists() else (name, None)


def is_sheet(name: str) -> bool:
    """Whether a file's name is that of a workbook, with or without a sheet."""
    return split_sheet(name)[0].lower().endswith(XLSX)


def open_sheet(path: Path, where: str, wanted: str | None) -> Sheet:
    """The sheet of that name, else the first; its header is the first row that is not empty."""
    with _opened(path, where) as book:
        names = [sheet.title for sheet in book.worksheets]
        if not names:
            raise CorpusError(f"{where} holds no sheet with cells. Save a table in it.")
        name = names[0] if wanted is None else wanted
        if name not in names:
            listed = ", ".join(map(repr, names[:12]))
            raise CorpusError(f"{where} has no sheet {name!r}.{nearest(name, names)} It has {listed}.")
        others = tuple(one for one in names if one != name)
        for number, cells in enumerate(_quietly(book[name].iter_rows()), start=1):
            header = [_text(cells, place) or "" for place in range(len(cells))]
            while header and not header[-1]:
                header.pop()
            if header:
                return Sheet(path, where, name, tuple(header), number, others)
    raise CorpusError(f"{where}, sheet {name!r} is empty. Write a header row, and the rows below it.")


@contextmanager
def _opened(path: Path, where: str, *, results: bool = True) -> Iterator[Any]:
    """A workbook, read as a stream; whatever is wrong with it is one line. `results`: of formulas."""
    try:
        openpyxl = importlib.import_module("openpyxl")
    except ImportError as error:
        raise MissingExtraError(
            f'{where}: .xlsx needs openpyxl, which is not installed: pip install "biaskit[xlsx]"'
        ) from error
    try:
        # Opened here: openpyxl leaves a file open that it opened itself and could not read.
        with path.open("rb") as file:
            _check_size(file, where)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of styles and checks of input, which no text depends on
                book = openpyxl.load_workbook(file, read_only=True, data_only=results, keep_links=False)
            with closing(book):
                for sheet in book.worksheets:
                    sheet.reset_dimensions()  # what a file says of its size need not be so
                yield book
    except (CorpusError, MemoryError):
        raise
    except zipfile.BadZipFile:
        raise CorpusError(
            f"{where} is no .xlsx workbook. Save it as .xlsx without a password, or as .csv."
        ) from None
    except Exception as error:  # files of strangers, read by a library: what it raises has no end
        if isinstance(error, OSError) and error.errno is not None:
            raise
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise CorpusError(
            f"{where} cannot be read as a workbook: {why}. Save it again, or as .csv."
        ) from error


def _check_size(file: BinaryIO, where: str) -> None:
    """Refuse a zip bomb by its directory: no part is unpacked beyond what that says."""
    with zipfile.ZipFile(file) as parts:
        size = sum(part.file_size for part in parts.infolist())
    if size > MOST_UNPACKED:
        raise CorpusError(
            f"{where} unpacks to {size:,} bytes; at most {MOST_UNPACKED:,} are read. Save it as .csv."
        )


def _quietly(rows: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """The same rows; what the library warns of (dates out of range) is then an error or a text anyhow."""
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row = next(rows, None)
        if row is None:
            return
        yield row


def _text(cells: Sequence[Any], place: int) -> str | None:
    """A cell as it is shown, as far as its format says; an empty one is None."""
    if place >= len(cells) or (value := cells[place].value) is None:
        return None
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return str(value.date() if value.time() == time() else value)
    if isinstance(value, int | float):
        return _number(value, cells[place].number_format)
    return str(value) if isinstance(value, str | date | time | timedelta) else repr(value)


def _number(value: float, shown_as: object) -> str:
    """A number in its format where that fixes the decimals, else with the digits a spreadsheet keeps."""
    if found := _FIXED.fullmatch(str(shown_as)):
        decimals, percent = found.groups()
        return f"{value * (100 if percent else 1):.{len(decimals or '')}f}{percent}"
    return f"{value:.15g}"
