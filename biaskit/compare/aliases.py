"""Which names of the two engines mean one occupation: lower case, and a file of aliases.

See docs/methods.md#joining-engines.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from biaskit.corpora.sources import unlimited_fields
from biaskit.errors import CorpusError, nearest
from biaskit.inputs import Inputs

_ALIASES = Inputs(CorpusError, most=64 * 2**20)
_HEADER = {"job", "occupation", "item", "name", "alias", "probe", "personas", "from", "to", "a", "b"}


@dataclass(frozen=True, slots=True)
class Aliases:
    """Lower-cased name → the name that stands for it; a name of which nothing is said stands for itself."""

    of: Mapping[str, str] = field(default_factory=dict)

    def key(self, name: str) -> str:
        """What two names of one occupation have in common."""
        plain = _plain(name)
        return self.of.get(plain, plain)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """A sentence for every name of the file that no run has, with the nearest one."""
        known = {_plain(name) for name in names}
        wrong = [name for name in dict.fromkeys([*self.of, *self.of.values()]) if name not in known]
        return [f"--aliases: no run has {name!r}.{nearest(name, known)}" for name in wrong]


def read_aliases(path: Path) -> Aliases:
    """Two columns, each row two names of one occupation; with or without a header, .tsv with tabs.

    Raises `CorpusError` for another number of columns, an empty name and a file that cannot be read.
    """
    text = _ALIASES.text(path, f"--aliases {path}")
    separator = "\t" if path.suffix == ".tsv" else ","
    try:
        with unlimited_fields():
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise CorpusError(f"--aliases {path}: {error}.") from error
    groups: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != 2:
            raise CorpusError(
                f"--aliases {path}, line {number}: {len(row)} columns; write two names of one occupation."
            )
        left, right = (_plain(cell) for cell in row)
        if number == 1 and {left, right} <= _HEADER:
            continue
        if not left or not right:
            raise CorpusError(f"--aliases {path}, line {number}: a name is empty.")
        _join(groups, left, right)
    if not groups:
        raise CorpusError(f"--aliases {path} holds no names: write two names of one occupation a line.")
    return Aliases(groups)


def _join(groups: dict[str, str], left: str, right: str) -> None:
    """Put two names and all that meant the same before under the right one's name."""
    old, new = groups.get(left, left), groups.get(right, right)
    groups |= {left: new, right: new, **{name: new for name, of in groups.items() if of == old}}


def _plain(name: str) -> str:
    return " ".join(name.lower().split())
