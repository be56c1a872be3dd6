"""Sheets of texts that a person labels: how they are written and read, and how far two readers agree."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from biaskit.common.files import write_or_refuse
from biaskit.common.foreign import is_formula
from biaskit.common.wording import count
from biaskit.corpora.sources import shown
from biaskit.errors import CorpusError, nearest
from biaskit.personas.texts.files import open_file

LABELS: Mapping[str, str] = {
    "women": "female",
    "men": "male",
    "non-binary": "nonbinary",
    "none": "none",
    "unclear": "unclear",
}
"""Word of a sheet → label."""
_ALSO = {
    **{"w": "women", "f": "women", "woman": "women", "female": "women", "m": "men", "man": "men", "male": "men"},
    **{"n": "non-binary", "nonbinary": "non-binary", "0": "none", "?": "unclear"},
}
_COLUMNS = {"id": "id", "label": "person_gender"}


@dataclass(frozen=True, slots=True)
class Sheet:
    """The labels of one reader; texts without one are not in it."""

    where: str  # as messages name it
    digest: str
    labels: Mapping[str, str]  # id → label


def write_sheet(path: Path, texts: Iterable[tuple[str, str]]) -> None:
    """Write (id, text) as a sheet to fill, and beside it as a page that needs no spreadsheet."""
    rows = list(texts)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["id", "person_gender", "text"])
    # A blank in front keeps a spreadsheet from running a text as a formula.
    writer.writerows([name, "", f" {text}" if is_formula(text) else text] for name, text in rows)
    # The mark is what Excel knows UTF-8 by.
    write_or_refuse(path, b"\xef\xbb\xbf" + table.getvalue().encode("utf-8", errors="replace"))
    page = Path(__file__).with_name("sheet.html").read_text("utf-8")
    inside = json.dumps(rows).replace("<", "\\u003c")  # no text can end the script
    write_or_refuse(path.with_suffix(".html"), page.replace("/*TEXTS*/[]", inside).encode())


def read_sheet(path: str | Path) -> Sheet:
    """Read a filled sheet. Raises `CorpusError` for a word that is no label, and for two labels of one text."""
    source = open_file(path, _COLUMNS)
    labels: dict[str, str] = {}
    for line, record in source.records:
        name, word = (str(record[role] or "").strip() for role in ("id", "label"))
        if not word:
            continue
        plain = word.lower()
        label = LABELS.get(_ALSO.get(plain, plain))
        if label is None:
            raise CorpusError(
                f"{source.where}, {source.unit} {line}: {shown(word)} is no label."
                f"{nearest(plain, LABELS)} Labels are {', '.join(LABELS)}."
            )
        if labels.setdefault(name, label) != label:
            raise CorpusError(
                f"{source.where}, {source.unit} {line}: the text {shown(name)} has two labels. Keep one."
            )
    if not labels:
        raise CorpusError(f"{source.where} has no label yet: fill the column person_gender.")
    return Sheet(source.where, source.digest, labels)


def agreement(first: Mapping[str, str], second: Mapping[str, str]) -> str:
    """Say how far two readers agree on the texts that both labelled: Cohen's kappa with its interval."""
    both = sorted(first.keys() & second.keys())
    if not both:
        return "the readers have no text in common"
    same = sum(first[key] == second[key] for key in both)
    said = f"two readers agree on {same:,} of {count(len(both), 'text')}"
    kinds = [*LABELS.values()]
    counts = np.zeros((len(kinds), len(kinds)))
    for key in both:
        counts[kinds.index(first[key]), kinds.index(second[key])] += 1
    used = counts[:, counts.sum(0) + counts.sum(1) > 0][counts.sum(0) + counts.sum(1) > 0]
    if len(used) < 2:
        return f"{said}, all with one label: no kappa"
    from statsmodels.stats.inter_rater import cohens_kappa

    found = cohens_kappa(used)
    # The normal interval passes 1, which kappa cannot.
    high = min(float(found.kappa_upp), 1.0)
    return f"{said}; Cohen's kappa {found.kappa:.2f} [{found.kappa_low:.2f} to {high:.2f}]"


def differing(sheets: Sequence[Mapping[str, str]]) -> list[str]:
    """List the texts that two readers label differently and no third has decided."""
    seen: dict[str, list[str]] = {}
    for labels in sheets:
        for key, label in labels.items():
            seen.setdefault(key, []).append(label)
    return [key for key, labels in seen.items() if len(labels) == 2 and labels[0] != labels[1]]
