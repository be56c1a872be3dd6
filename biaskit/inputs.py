"""The one reader of files that somebody else wrote: what may be opened, how much is read, what is decoded.

A file is regular, no larger than its reader says, UTF-8, and not nested without end; everything else is one
line at once, in the words and with the exit code of the room that asked (`Inputs`). Nothing here waits: a
pipe, a device or a folder is named before it is read. See SECURITY.md, "Files that are read".
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import io
import json
import math
import os
import re
import stat
import tomllib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from biaskit.errors import BiaskitError, UsageError

MOST_NESTED = 100
"""Levels of lists and tables inside each other: far more than anything that biaskit reads has."""
MOST_DIGITS = 100
"""Of a whole number: below it every number of a file is a float too."""
LONGEST_LINE = 64 * 2**20
"""Bytes of one line of a file that is read line by line: a text of ten million words."""
UNPACKED, UNPACKED_TIMES = 2**30, 200
"""What a compressed file may hold: bytes, or times its own size if that is more. Text packs 3 to 20 times."""

_ONCE = 2**17
_BROKEN = (gzip.BadGzipFile, EOFError, zlib.error)
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_LARGE_EXPONENT = re.compile(r"[0-9][eE]\+?[0-9]{3,}(?![0-9A-Za-z\"])")
# A number is followed by neither a letter nor a quote; the digits of a digest are, and often hold an e.
_SHAPE = bytes.maketrans(b"123456789E", b"000000000e")
_MANY_DIGITS = b"0" * MOST_DIGITS
# What tomllib may make of keys joined with dots.
_NESTS = (dict, list)  # what json and tomllib make of tables and lists, themselves and no classes of them
_DOTTED = re.compile(r"""(?<![\w"'-])(?:[\w"'-]+[ \t]*\.[ \t]*){100}""")


class TooMuch(ValueError):
    """A file or a value in it is larger than its reader allows; the message ends a sentence about it."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """How the files of one kind are read.

    Attributes:
        error: what is raised, always of one line.
        most: bytes of a file that is read as a whole.
        remedy: what a user does about a file that cannot be read, as a sentence.
    """

    error: type[BiaskitError]
    most: int
    remedy: str = "Give the path of a readable file."

    def content(self, path: Path, where: str | None = None) -> bytes:
        """What a file holds. `where` is how messages name it; by default by its path."""
        where = one_line(str(path)) if where is None else where
        with self.saying(where), opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            content = b"" if size > self.most else file.read(size + 1)  # room is made for all that is asked
            if size < len(content):  # files that the system makes up have the size 0, and one may grow
                content += file.read(self.most + 1 - len(content))
            if max(size, len(content)) > self.most:
                raise TooMuch(f"has {max(size, len(content)):,} bytes, and at most {self.most:,} are read")
            return content

    def text(self, path: Path, where: str | None = None) -> str:
        """A file as text: UTF-8 with or without a byte order mark; never a guess."""
        where = one_line(str(path)) if where is None else where
        return self.decoded(self.content(path, where), where)

    def json(self, path: Path, where: str | None = None) -> Any:
        """A file of one JSON value."""
        where = one_line(str(path)) if where is None else where
        return self.parsed_json(self.text(path, where), where)

    def toml(self, path: Path, where: str | None = None) -> dict[str, Any]:
        """A TOML document."""
        where = one_line(str(path)) if where is None else where
        return self.parsed_toml(self.text(path, where), where)

    def decoded(self, content: bytes, where: str) -> str:
        """UTF-8 that is at hand; UTF-16 is named, any other byte by its line."""
        try:
            return decode(content)
        except UnicodeDecodeError as error:
            raise self.error(f"{where}{_not_utf8(content, error.start)}") from None

    def parsed_json(self, text: str, where: str) -> Any:
        """JSON that is at hand."""
        try:
            return parse_json(text)
        except ValueError as error:
            raise self.error(f"{where} is not valid JSON: {_reason(error)}. {self.remedy}") from None

    def parsed_toml(self, text: str, where: str) -> dict[str, Any]:
        """TOML that is at hand."""
        try:
            return parse_toml(text)
        except ValueError as error:
            raise self.error(f"{where} is not valid TOML: {_reason(error)}. Correct it there.") from None

    @contextlib.contextmanager
    def saying(self, where: str) -> Iterator[None]:
        """Whatever keeps a file from being opened, read or unpacked inside, as one line."""
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
    """A file's name inside a message of one line."""
    return name if name.isprintable() else repr(name)


def expanded(path: str | Path) -> Path:
    """A path with the home that its ~ stands for. Raises `UsageError` where that has none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        home, shown = one_line(Path(path).parts[0]), one_line(str(path))
        raise UsageError(f"{shown}: no folder is known for {home}. Write the whole path.") from None


# --- files -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """A regular file, open; never waits. Raises `OSError`, also for a pipe, a device, a folder or a loop."""
    with open_regular(path) as file:
        yield file


def open_regular(path: Path) -> io.BufferedReader:
    """`opened` without its end: the caller closes the file."""
    try:
        _check_regular(os.stat(path).st_mode)
        # Looked at twice: between the two somebody may put a pipe there, which would wait for a writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags)
    except ValueError:  # a NUL in the path
        raise FileNotFoundError(str(path)) from None
    try:
        _check_regular(os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file, compressed or not. Raises `OSError`."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_regular(mode: int) -> None:
    for is_kind, what in _KINDS:
        if is_kind(mode):
            raise OSError(0, f"it is {what}, not a regular file")


@contextlib.contextmanager
def unpacked(
    path: Path, *, packed: bool | None = None, lines: bool = True, start: int = 0
) -> Iterator[io.BufferedReader]:
    """A regular file as a stream, unpacked where it is gzip's, with an end to its lines and to all of it.

    Args:
        packed: whether it is compressed; by default a name in .gz says so.
        lines: whether it is made of lines.
        start: the byte of the unpacked file to begin at.

    Raises `OSError`, `TooMuch`, and what gzip raises for broken data.
    """
    longest = LONGEST_LINE if lines else None
    with opened(path) as file:
        if path.suffix.lower() == ".gz" if packed is None else packed:
            most = max(UNPACKED, UNPACKED_TIMES * os.fstat(file.fileno()).st_size)
            with gzip.GzipFile(fileobj=file) as whole:
                whole.seek(start)
                yield io.BufferedReader(_Bounded(whole, most, longest), _ONCE)
        else:
            file.seek(start)
            yield io.BufferedReader(_Bounded(file, None, longest), _ONCE)


class _Bounded(io.RawIOBase):
    """A stream that ends in `TooMuch` where a line, or all of it, is longer than anybody's data."""

    def __init__(self, source: io.BufferedIOBase, most: int | None, longest: int | None) -> None:
        self._source = source
        self._most = most
        self._longest = longest
        self._n_read = self._n_of_line = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._source.read(len(buffer))
        end = content.rfind(b"\n")
        self._n_of_line = len(content) - end - 1 if end >= 0 else self._n_of_line + len(content)
        self._n_read += len(content)
        if self._most is not None and self._n_read > self._most:
            raise TooMuch(f"unpacks to more than {self._most:,} bytes, which no file of its size does")
        if self._longest is not None and self._n_of_line > self._longest:
            raise TooMuch(f"has a line of more than {self._longest:,} bytes")
        buffer[: len(content)] = content
        return len(content)


# --- text and values -----------------------------------------------------------------------------------


def decode(content: bytes) -> str:
    """UTF-8 with or without a byte order mark. Raises `UnicodeDecodeError`."""
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8")


UTF16 = " is UTF-16, as some spreadsheets save it. Save it as UTF-8."
"""What is wrong with a file that begins with `codecs.BOM_UTF16_LE` or `_BE`, after its name."""


def _not_utf8(content: bytes, start: int) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return UTF16
    position = start + (len(codecs.BOM_UTF8) if content.startswith(codecs.BOM_UTF8) else 0)
    line = content.count(b"\n", 0, position) + 1
    byte = f"byte 0x{content[position]:02x} at position {position}"
    return f", line {line} is not UTF-8: {byte}. Save the file as UTF-8."


def parse_json(text: str | bytes, **how: Any) -> Any:
    """A JSON value whose numbers are finite and whose nesting has an end; bytes are UTF-8.

    `how` goes to `json.loads`.

    Raises `ValueError` (json's own, `UnicodeDecodeError` or `TooMuch`), and nothing else.
    """
    text = decode(text) if isinstance(text, bytes) else text
    if how or text.startswith("\ufeff"):
        return _bounded(lambda: json.loads(text, **{"parse_constant": _no_number, **how}), text)
    return _bounded(lambda: _PLAIN.decode(text), text)


def parse_toml(text: str) -> dict[str, Any]:
    """A TOML document whose numbers and nesting have an end. Raises `ValueError` and nothing else."""
    if _DOTTED.search(text):
        raise TooMuch(f"more than {MOST_NESTED} keys joined with dots")
    found: dict[str, Any] = _bounded(lambda: tomllib.loads(text), text)
    return found


def _bounded(parse: Callable[[], Any], text: str) -> Any:
    try:
        value = parse()
    except RecursionError:
        raise _too_deep() from None
    # Nearly every text is told by these to be flat and to hold plain numbers; the others are walked through.
    suspect = _may_hold_large_number(text)
    if suspect or text.count("[") + text.count("{") > MOST_NESTED:
        _check_depth(value)
    if suspect:
        _check_numbers(value)
    return value


def _may_hold_large_number(text: str) -> bool:
    """Whether a number that no float holds could stand in a text."""
    # With 0 for every digit, searches of bytes tell nearly every text; a pattern takes ten times as long.
    shape = text.encode("ascii", "replace").translate(_SHAPE)
    if _MANY_DIGITS in shape:
        return True
    return (b"0e000" in shape or b"0e+000" in shape) and _LARGE_EXPONENT.search(text) is not None


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MOST_NESTED + 1:
            raise _too_deep()
        lists = [one.values() if one.__class__ is dict else one for one in level if one.__class__ in _NESTS]
        level = [one for listed in lists for one in listed]


def _check_numbers(value: Any) -> None:
    level = [value]
    while level:
        inside: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inside += one.values()
            elif isinstance(one, list):
                inside += one
            elif type(one) is int and abs(one) >= 10**MOST_DIGITS:
                raise TooMuch(f"a whole number of more than {MOST_DIGITS} digits")
            elif type(one) is float and math.isinf(one):
                raise TooMuch("a number beyond 1e308")
        level = inside


def _too_deep() -> TooMuch:
    return TooMuch(f"lists or tables nested more than {MOST_NESTED} deep")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


_PLAIN = json.JSONDecoder(parse_constant=_no_number)
"""Made once: `json.loads` makes one for every row."""


def _reason(error: ValueError) -> str:
    text = str(error).partition("; use sys.set_int_max_str_digits")[0]
    return " ".join(text.split()).rstrip(".")
