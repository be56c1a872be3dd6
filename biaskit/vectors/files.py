"""Files of word vectors as others publish them: word2vec's text and binary format, and GloVe's text.

Read as a stream, so that of a file larger than memory only the wanted words are kept. Never a pickle.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from biaskit.errors import UsageError
from biaskit.inputs import Inputs, digest_of_file, one_line, opened, unpacked

Found = dict[str, NDArray[np.float32]]

_VECTORS = Inputs(UsageError, most=0)
_HEAD = 1 << 20
_LONGEST_LINE = 1 << 20
_LONGEST_WORD = 10_000
_LARGEST_NUMBER = 1e30
_MOST_DIMENSIONS = 100_000
_ADVICE = "Give a file in word2vec's format (text or binary) or GloVe's."
_OTHER_FORMATS = (
    *((bytes([0x80, protocol]), "a pickle, which could run code when loaded") for protocol in range(2, 6)),
    (b"\x93NUMPY", "a NumPy array without words"),
    (b"PK\x03\x04", "a zip archive (a folder of files, or a model of another library)"),
    (b"\xba\x16\x4f\x2f", "a model of fastText, which ships its vectors as .vec too"),
)


@dataclass(frozen=True, slots=True)
class _Format:
    """How a file of vectors is written; n_vectors is None in GloVe's, which has no first line of sizes."""

    n_vectors: int | None
    n_dimensions: int
    binary: bool


def read_vectors(path: Path, wanted: Collection[str]) -> tuple[Found, str]:
    """The vectors of the wanted words, and the SHA-256 of the file.

    Arguments: path of word2vec text or binary, or GloVe text, told apart by content, each also as .gz.
    Returns: the wanted words that the file has; of a word that stands there twice the first vector.
    Errors: UsageError for a file that is cut, broken or in another format, with path and line.
    Reference: checked against gensim's `KeyedVectors.load_word2vec_format`.
    """
    with _VECTORS.saying(one_line(str(path))):
        form = _recognise(path)
        keys = {word.encode("utf-8", "surrogatepass"): word for word in wanted}
        with _opened(path) as file:
            found = (_read_binary if form.binary else _read_text)(file, form, keys, path)
        return found, digest_of_file(path)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with opened(path) as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with unpacked(path, packed=packed) as file:
        yield file


def _recognise(path: Path) -> _Format:
    with _opened(path) as file:
        head = file.read(_HEAD)
    for start, what in _OTHER_FORMATS:
        if head.startswith(start):
            raise UsageError(f"{path} is {what}. {_ADVICE}")
    first, newline, rest = head.removeprefix(codecs.BOM_UTF8).partition(b"\n")
    if not first.strip():
        raise UsageError(f"{path} {'begins with an empty line' if head else 'is empty'}. {_ADVICE}")
    sizes = first.split()
    if len(sizes) == 2 and all(size.isdigit() and len(size) < 12 for size in sizes):
        n, d = map(int, sizes)
        if not n or not 0 < d <= _MOST_DIMENSIONS:
            _broken(path, 1, f"{n} vectors of {d} numbers")
        return _Format(n, d, binary=not _is_record(rest.partition(b"\n")[0], d) and _is_binary(rest))
    d = len(first.rstrip().split(b" ")) - 1
    if not newline or not _is_record(first, d):
        _broken(path, 1, "neither the sizes of word2vec's format nor a word and its numbers")
    return _Format(None, d, binary=False)


def _is_record(line: bytes, n_dimensions: int) -> bool:
    numbers = line.rstrip().split(b" ")[1:]
    return 0 < n_dimensions == len(numbers) and all(map(_is_number, numbers))


def _is_number(text: bytes) -> bool:
    with contextlib.suppress(ValueError):
        float(text)
        return True
    return False


def _is_binary(content: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return True
    return b"\0" in content


def _read_text(file: IO[bytes], form: _Format, wanted: Mapping[bytes, str], path: Path) -> Found:
    found: Found = {}
    n_read = 0
    for line_number in itertools.count(1):
        line = file.readline(_LONGEST_LINE)
        if not line:
            break
        if len(line) == _LONGEST_LINE:
            _broken(path, line_number, "is longer than a million bytes")
        if line_number == 1:
            line = b"" if form.n_vectors is not None else line.removeprefix(codecs.BOM_UTF8)
        line = line.rstrip()
        if not line:
            continue
        n_read += 1
        word, numbers = _word_and_numbers(line, form, line_number, path)
        if word in wanted and wanted[word] not in found:
            found[wanted[word]] = _parsed(numbers, line_number, path)
    if form.n_vectors is not None and n_read != form.n_vectors:
        promised = f"{n_read:,} vectors, its first line says {form.n_vectors:,}"
        raise UsageError(f"{path} is cut or broken: it holds {promised}. Download it again.")
    return found


def _word_and_numbers(line: bytes, form: _Format, line_number: int, path: Path) -> tuple[bytes, bytes]:
    n_spaces, d = line.count(b" "), form.n_dimensions
    if n_spaces == d:
        word, _, numbers = line.partition(b" ")
        return word, numbers
    parts = line.split(b" ")
    # The largest of GloVe's files has words with spaces inside, such as ". . .".
    spaced = n_spaces > d and form.n_vectors is None and not all(map(_is_number, parts[1:-d]))
    if not spaced:
        _broken(path, line_number, f"{n_spaces} numbers after the word, {d} expected")
    return b" ".join(parts[:-d]), b" ".join(parts[-d:])


def _parsed(numbers: bytes, line_number: int, path: Path) -> NDArray[np.float32]:
    try:
        values = np.array([float(number) for number in numbers.split(b" ")])
    except ValueError as error:
        _broken(path, line_number, str(error))
    return _checked(values, f"{path}, line {line_number}")


def _checked(values: NDArray[Any], where: str) -> NDArray[np.float32]:
    if not (np.abs(values) < _LARGEST_NUMBER).all():  # also false for NaN
        raise UsageError(f"{where}: a vector with NaN, infinity or a number beyond 1e30. {_ADVICE}")
    return values.astype(np.float32)


def _read_binary(file: IO[bytes], form: _Format, wanted: Mapping[bytes, str], path: Path) -> Found:
    assert form.n_vectors is not None
    found: Found = {}
    size = 4 * form.n_dimensions
    file.readline()
    chunk, at = b"", 0
    for number in range(1, form.n_vectors + 1):
        space = chunk.find(b" ", at)
        while space < 0 or len(chunk) < space + 1 + size:
            more = file.read(_HEAD)
            if not more or (space < 0 and len(chunk) - at > _LONGEST_WORD):
                what = f"vector {number:,} of {form.n_vectors:,} is not whole"
                raise UsageError(f"{path} is cut or broken: {what}. Download it again.")
            chunk, at = chunk[at:] + more, 0
            space = chunk.find(b" ")
        word = chunk[at:space].lstrip(b"\n")
        if word in wanted and wanted[word] not in found:
            values = np.frombuffer(chunk, dtype="<f4", count=form.n_dimensions, offset=space + 1)
            found[wanted[word]] = _checked(values, f"{path}, vector {number:,}")
        at = space + 1 + size
    if (chunk[at:] + file.read(2)).strip():
        promised = f"its first line says {form.n_vectors:,} vectors of {form.n_dimensions} numbers"
        raise UsageError(f"{path} is broken: {promised}, and more follows. Download it again.")
    return found


def _broken(path: Path, line_number: int, what: str) -> NoReturn:
    raise UsageError(f"{path}, line {line_number:,}: {what}. {_ADVICE}")
