"""Files of word vectors as others publish them: word2vec's text and binary format, and GloVe's text."""

from __future__ import annotations

import codecs
import gzip
import warnings
from collections.abc import Collection
from pathlib import Path

import numpy as np

from biaskit.common.inputs import digest_of_file, expanded
from biaskit.errors import UsageError
from biaskit.measures.personas.vectors.training import Vectors

_HEAD = 1 << 16


def load_pretrained(path: str | Path, wanted: Collection[str]) -> Vectors:
    """Load the vectors of the wanted words from a file in word2vec's or GloVe's format, with gensim.

    Text and binary files are told apart by content, also as .gz. Gives the words that the file has, in
    alphabetical order; a vector of zeros is none. Raises `UsageError` for a file that is cut, broken or in
    another format; a pickle is never loaded. Reference: methods/srb#word-vectors.
    """
    from gensim.models import KeyedVectors

    path = expanded(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gensim leaves GloVe's file open
        try:
            if not path.is_file():
                raise FileNotFoundError("there is no such file")
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                first, content = file.readline(_HEAD), file.read(_HEAD)
            parts = first.split()
            has_header = len(parts) == 2 and parts[0].isdigit() and parts[1].isdigit()
            if not has_header:
                np.array(parts[1:], dtype=np.float32)[0]  # GloVe's first line is a word and its numbers
            vectors = KeyedVectors.load_word2vec_format(
                str(path), binary=has_header and _is_binary(content), no_header=not has_header
            )
        except (OSError, EOFError, LookupError, ValueError, OverflowError, MemoryError) as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise UsageError(
                f"{path} cannot be read as word vectors: {reason}."
                " Give a file in word2vec's format (text or binary) or GloVe's."
            ) from None
    words = sorted(word for word in set(wanted) if word in vectors)
    matrix = vectors[words] if words else np.empty((0, 1), dtype=np.float32)
    if not np.isfinite(matrix).all():
        raise UsageError(f"{path} has a vector with NaN or infinity: give another file.")
    return Vectors.from_rows(words, matrix, digest_of_file(path))


def _is_binary(content: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return True
    return b"\0" in content
