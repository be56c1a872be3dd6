"""Which names of the two measurements mean one occupation (methods/comparisons#joining-kinds)."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from biaskit.common.inputs import Inputs
from biaskit.errors import CorpusError

_ALIASES = Inputs(CorpusError, most=64 * 2**20)


def key_of(name: str, aliases: Mapping[str, str]) -> str:
    """Key of an occupation's name, under which the measurements are joined: lower case, aliases replaced."""
    plain = " ".join(name.lower().split())
    return aliases.get(plain, plain)


def read_aliases(path: Path) -> dict[str, str]:
    """Read name → name that stands for it from two columns without a header; .tsv has tabs."""
    import pandas as pd

    text, separator = _ALIASES.text(path, f"--aliases {path}"), "\t" if path.suffix == ".tsv" else ","
    try:
        frame = pd.read_csv(StringIO(text), sep=separator, header=None, dtype=str, keep_default_na=False)
    except ValueError as error:
        raise CorpusError(f"--aliases {path}: {' '.join(str(error).split())}.") from error
    if frame.shape[1] != 2 or (frame == "").any(axis=None):
        raise CorpusError(f"--aliases {path}: write two columns, two names of one occupation in each row.")
    return {key_of(left, {}): key_of(right, {}) for left, right in frame.itertuples(index=False)}
