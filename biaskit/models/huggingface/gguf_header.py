"""The header of a GGUF file, walked before a library reads it: counts and lengths that fit the file."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from biaskit.errors import ModelError
from biaskit.inputs import opened

MOST_KEYS, MOST_TENSORS, MOST_DIMENSIONS = 10_000, 200_000, 8
MOST_ENTRIES = 5_000_000  # of one array: the largest vocabularies have 300,000 tokens, and as many merges
MOST_TEXT = 64 * 2**20  # bytes of one text
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Type of a value → its bytes; 8 is a text, 9 an array."""
_TEXT, _ARRAY = 8, 9


def check_gguf_header(path: Path) -> None:
    """Raise `ModelError` where a header is cut short or claims what no model has.

    The libraries make an object of every entry: an array of 30 million took minutes and all memory.
    """
    try:
        with opened(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            _Walk(content).header()
    except (struct.error, ValueError, OverflowError) as error:
        raise ModelError(f"{path} is truncated or corrupt: {error}. Download the file again.") from error


class _Walk:
    """A place in the file that moves over what is read."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        self._at = 4  # after the magic
        self._size = len(content)

    def header(self) -> None:
        """Version, keys with their values, and the list of tensors."""
        version = self._number("<I")
        if not 2 <= version <= 3:
            raise ValueError(f"its version {version} is not known")
        tensors, keys = self._number("<Q"), self._number("<Q")
        if tensors > MOST_TENSORS or keys > MOST_KEYS:
            raise ValueError(f"it claims {tensors} tensors and {keys} keys")
        for _ in range(keys):
            self._text()
            self._value(self._number("<I"))
        for _ in range(tensors):
            self._text()
            dimensions = self._number("<I")
            if dimensions > MOST_DIMENSIONS:
                raise ValueError(f"a tensor claims {dimensions} dimensions")
            n = 1
            for _ in range(dimensions):
                n *= self._number("<Q")
            if n > 16 * self._size:  # less than a bit for each number
                raise ValueError("a tensor claims more numbers than the file can hold")
            self._skip(12)  # its type and place

    def _value(self, kind: int) -> None:
        if kind in _SIZES:
            self._skip(_SIZES[kind])
        elif kind == _TEXT:
            self._text()
        elif kind == _ARRAY:
            inner, n = self._number("<I"), self._number("<Q")
            if n > MOST_ENTRIES:
                raise ValueError(f"an array claims {n} entries")
            if inner in _SIZES:
                self._skip(n * _SIZES[inner])
            elif inner == _TEXT:
                for _ in range(n):
                    self._text()
            else:
                raise ValueError("it holds arrays of arrays")
        else:
            raise ValueError(f"it holds a value of the unknown type {kind}")

    def _number(self, form: str) -> int:
        (found,) = struct.unpack_from(form, self._content, self._at)
        self._at += struct.calcsize(form)
        return int(found)

    def _text(self) -> None:
        length = self._number("<Q")
        if length > MOST_TEXT:
            raise ValueError(f"a text claims {length} bytes")
        self._skip(length)

    def _skip(self, n: int) -> None:
        self._at += n
        if self._at > self._size:
            raise ValueError("its header goes on after its end")
