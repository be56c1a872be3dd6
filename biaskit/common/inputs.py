"""The one reader of files that somebody else wrote: regular files, no larger than their reader says, UTF-8.

Everything else is one line, in the words and with the exit code of the room that asked (`Inputs`).
See SECURITY.md, "Files that are read".
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import io
import json
import os
import tomllib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from biaskit.errors import BiaskitError, UsageError

_BROKEN = (gzip.BadGzipFile, EOFError, zlib.error)


class TooMuch(ValueError):
    """A file or a value in it is larger than its reader allows; the message ends a sentence about it."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """How the files of one kind are read."""

    error: type[BiaskitError]  # what is raised, always of one line
    most: int  # bytes of a file that is read as a whole
    remedy: str = "Give the path of a readable file."  # what a user does about one that cannot be read

    def content(self, path: Path, where: str | None = None) -> bytes:
        """Read what a file holds. `where`: how messages name it, by default by its path."""
        where = where or one_line(str(path))
        with self.saying(where), opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > self.most:
                raise TooMuch(f"has {size:,} bytes, and at most {self.most:,} are read")
            return file.read()

    def text(self, path: Path, where: str | None = None) -> str:
        """Read a file as text: UTF-8 with or without a byte order mark; never a guess."""
        return self.decoded(self.content(path, where), where or one_line(str(path)))

    def json(self, path: Path) -> Any:
        """Read a file of one JSON value."""
        return self.parsed_json(self.text(path), one_line(str(path)))

    def toml(self, path: Path, where: str | None = None) -> dict[str, Any]:
        """Read a TOML document."""
        return self.parsed_toml(self.text(path, where), where or one_line(str(path)))

    def decoded(self, content: bytes, where: str) -> str:
        """Decode UTF-8; the error names UTF-16 as such, and any other byte with its line."""
        try:
            return decode(content)
        except UnicodeDecodeError as error:
            if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise self.error(
                    f"{where} is UTF-16, as some spreadsheets save it. Save it as UTF-8."
                ) from None
            line = error.object.count(b"\n", 0, error.start) + 1
            position = error.start + len(content) - len(error.object)  # without the byte order mark
            byte = f"byte 0x{content[position]:02x} at position {position}"
            raise self.error(f"{where}, line {line} is not UTF-8: {byte}. Save the file as UTF-8.") from None

    def parsed_json(self, text: str, where: str) -> Any:
        """Parse JSON."""
        try:
            return parse_json(text)
        except ValueError as error:
            raise self.error(f"{where} is not valid JSON: {_reason(error)}. {self.remedy}") from None

    def parsed_toml(self, text: str, where: str) -> dict[str, Any]:
        """Parse TOML."""
        try:
            return parse_toml(text)
        except ValueError as error:
            raise self.error(f"{where} is not valid TOML: {_reason(error)}. Correct it there.") from None

    @contextlib.contextmanager
    def saying(self, where: str) -> Iterator[None]:
        """Turn whatever keeps a file from being opened, read or unpacked inside into an error of one line."""
        try:
            yield
        except FileNotFoundError:
            raise self.error(f"There is no file {where}. Check the path.") from None
        except TooMuch as error:
            raise self.error(f"{where} {error}.") from None
        except _BROKEN as error:
            raise self.error(f"{where} cannot be unpacked: {error}. Compress the file again.") from None
        except OSError as error:
            reason = error.strerror or error
            raise self.error(f"{where} cannot be read: {reason}. {self.remedy}") from None


def one_line(name: str) -> str:
    """Write a file's name so that a message keeps to one line."""
    return name if name.isprintable() else repr(name)


def expanded(path: str | Path) -> Path:
    """Put the home that ~ stands for into a path. Raises `UsageError` where a user has none."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{one_line(str(path))}: {error} Write the whole path.") from None


@contextlib.contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a regular file. Raises `OSError`, also for a pipe or a device, which might wait without end."""
    if path.exists() and not path.is_file():
        raise OSError(0, f"it is {'a folder' if path.is_dir() else 'a pipe or device'}, not a regular file")
    with path.open("rb") as file:
        yield file


def digest_of_file(path: Path) -> str:
    """Compute the SHA-256 of a file's bytes. Raises `OSError`."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[io.BufferedReader]:
    """Open a regular file, unpacked where its name ends in .gz. Raises `OSError` and what gzip raises."""
    with opened(path) as file:
        packed = path.suffix.lower() == ".gz"
        yield io.BufferedReader(gzip.GzipFile(fileobj=file)) if packed else file


def decode(content: bytes) -> str:
    """Decode UTF-8 with or without a byte order mark. Raises `UnicodeDecodeError`."""
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8")


def parse_json(text: str | bytes, **how: Any) -> Any:
    """Parse JSON without NaN and infinity, by `json.loads` with `how`. Raises `ValueError`, nothing else."""
    text = decode(text) if isinstance(text, bytes) else text
    try:
        return json.loads(text, **{"parse_constant": _no_number, **how}) if how else _DECODER.decode(text)
    except RecursionError:
        raise TooMuch("lists nested too deep") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document. Raises `ValueError` and nothing else."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TooMuch("lists or tables nested too deep") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
"""Made once: `json.loads` makes one for every row."""


def _reason(error: ValueError) -> str:
    text = str(error).partition("; use sys.set_int_max_str_digits")[0]
    return " ".join(text.split()).rstrip(".")
