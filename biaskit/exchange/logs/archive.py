"""Members of a zip file that somebody else made, each no larger than its reader says."""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from biaskit.errors import UsageError
from biaskit.exchange.logs.samples import LOG_FILES, allowed_nan
from biaskit.exchange.source import package
from biaskit.inputs import TooMuch, one_line, opened, parse_json

ZSTANDARD = 93
MOST = 256 * 2**20
"""Bytes of one member: the summaries of some 100,000 samples, or one long sample."""
_ONCE = 4096
"""Packed bytes that are unpacked at once: they come to 128 MiB at worst, and then the member is refused."""


class Archive:
    """An open zip file of JSON values."""

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self.where = one_line(str(path))
        self._file = file
        self.names = frozenset(file.namelist())

    def json(self, name: str) -> Any:
        """A member's JSON value, NaN included. Raises `UsageError` of one line."""
        where = f"{self.where}: {one_line(name)}"
        try:
            content = self._content(name)
        except TooMuch as error:
            raise UsageError(f"{where} {error}.") from None
        except (zipfile.BadZipFile, EOFError, zlib.error, OSError, RuntimeError, ValueError) as error:
            raise UsageError(f"{where} cannot be unpacked: {error}. {LOG_FILES.remedy}") from None
        except Exception as error:  # what a library that is not always there raises for broken data
            if type(error).__module__.partition(".")[0] not in ("zstandard", "zstd", "compression"):
                raise
            raise UsageError(f"{where} cannot be unpacked: {error}. {LOG_FILES.remedy}") from None
        try:
            return parse_json(content, parse_constant=allowed_nan)
        except ValueError as error:
            raise UsageError(f"{where} is not valid JSON: {error}. {LOG_FILES.remedy}") from None

    def _content(self, name: str) -> bytes:
        info = self._file.getinfo(name)
        if info.compress_type == ZSTANDARD and not _has_zstandard():
            package("zipfile_zstd", "inspect", f"{self.where} is packed with Zstandard, which")
        if info.file_size > MOST:
            raise TooMuch(f"has {info.file_size:,} bytes, and at most {MOST:,} are read")
        parts, size = [], 0
        with self._file.open(info) as member:
            while part := member.read(_ONCE):
                parts.append(part)
                size += len(part)
                if size > MOST:
                    raise TooMuch(f"unpacks to more than {MOST:,} bytes")
        return b"".join(parts)


def _has_zstandard() -> bool:
    """Whether Python's zipfile unpacks Zstandard: from 3.14 on by itself, before with `zipfile_zstd`."""
    return hasattr(zipfile, "ZIP_ZSTANDARD")


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """A zip file. Raises `UsageError` for what is none, or is cut off."""
    where = one_line(str(path))
    with LOG_FILES.saying(where), opened(path) as file:
        try:
            packed = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, RuntimeError, NotImplementedError) as error:
            raise UsageError(
                f"{where} is no .eval log, or only a part of one: {error}. {LOG_FILES.remedy}"
            ) from None
        with packed:
            yield Archive(path, packed)
