"""Sheets of texts that a person labels: how they are written and read, and how far two readers agree."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from biaskit.common.files import write_or_refuse
from biaskit.common.foreign import is_formula
from biaskit.common.wording import count
from biaskit.corpora.sources import shown
from biaskit.errors import CorpusError, nearest
from biaskit.measurement import words
from biaskit.measures.personas.texts.files import ANY, open_file

WORDS = ("women", "men", "non-binary", "none", "unclear")
NONE, UNCLEAR = "none", "unclear"
_READ = {  # word of a sheet → label
    **dict.fromkeys(("women", "woman", "w", "female", "f"), "female"),
    **dict.fromkeys(("men", "man", "m", "male"), "male"),
    **dict.fromkeys(("non-binary", "nonbinary", "n"), "nonbinary"),
    **dict.fromkeys(("none", "0"), NONE),
    **dict.fromkeys(("unclear", "?"), UNCLEAR),
}


def short_id(key: str) -> str:
    """Shorten the key of a text to what a sheet names it by; a spreadsheet would read digits as a number."""
    return f"t-{key[:12]}"


def write_sheet(path: Path, texts: Iterable[tuple[str, str]], *, imported: bool = False) -> None:
    """Write (key, text) as a sheet, and beside it a page that needs no spreadsheet, and instructions.

    `imported`: the texts were at hand, and nobody knows who wrote them.
    """
    from markdown_it import MarkdownIt

    rows = [(short_id(key), text) for key, text in texts]
    table = io.StringIO()
    writer = csv.writer(table, quoting=csv.QUOTE_ALL, lineterminator="\n")  # a bare "\r" ends lines
    writer.writerow(["id", "person_gender", "text"])
    # A blank in front keeps a spreadsheet from running a text as a formula.
    writer.writerows([name, "", f" {text}" if is_formula(text) else text] for name, text in rows)
    # Excel knows UTF-8 by this mark.
    write_or_refuse(path, ("\ufeff" + table.getvalue()).encode("utf-8", errors="replace"))
    instructions = path.with_name("instructions.md")
    if not instructions.exists():  # it may be a person's by now
        said, about = Path(__file__).with_name("instructions.md"), words("personas")["labels"]
        text = said.read_text("utf-8").replace("{texts}", about["imported" if imported else "sampled"])
        write_or_refuse(instructions, text.encode())
    # With tables, and no HTML that a changed file may hold; the page has a first heading of its own.
    how = MarkdownIt("js-default").render(instructions.read_text("utf-8", errors="replace"))
    page = Path(__file__).with_name("sheet.html").read_text("utf-8")
    page = page.replace("<!--INSTRUCTIONS-->", how.split("</h1>", 1)[-1])
    inside = json.dumps(rows).replace("<", "\\u003c")  # no text ends the script
    write_or_refuse(path.with_suffix(".html"), page.replace("/*TEXTS*/[]", inside).encode())


def read_sheet(path: str | Path) -> dict[str, str]:
    """Read a filled sheet: id of a text → label, without the texts that have none yet.

    Raises `CorpusError` for a word that is no label, for two labels of one text, and without any label.
    """
    columns = {"id": "id", "label": "person_gender"}
    source = open_file(path, columns, ANY)
    # A filled copy often stands behind the sheet that it was made of.
    sources = [source, *(open_file(f"{path}#{name}", columns, ANY) for name in source.alike)]
    labels: dict[str, str] = {}
    for source in sources:
        for line, record in source.records:
            name, label = str(record["id"] or "").strip(), record["label"]
            word = "" if label is None else str(label)
            word = unicodedata.normalize("NFKC", word).strip().lower()  # Japanese keyboards: full-width
            if not word:
                continue
            here = f"{source.where}, {source.unit} {line}"
            if word not in _READ:
                hint = nearest(word, WORDS)
                raise CorpusError(f"{here}: {shown(word)} is no label.{hint} Labels are {', '.join(WORDS)}.")
            if labels.setdefault(name, _READ[word]) != _READ[word]:
                raise CorpusError(f"{here}: the text {shown(name)} has another label above. Keep one.")
    if not labels:
        raise CorpusError(f"{source.where} has no label yet: fill its column person_gender.")
    return labels


def agreement(first: Mapping[str, str], second: Mapping[str, str]) -> str:
    """Say how far two readers agree on the texts that both labelled: Cohen's kappa with its interval."""
    from sklearn.metrics import confusion_matrix
    from statsmodels.stats.inter_rater import cohens_kappa

    both = sorted(first.keys() & second.keys())
    if not both:
        return "the readers have no text in common"
    a, b = [first[text] for text in both], [second[text] for text in both]
    same = sum(map(str.__eq__, a, b))
    said = f"the readers agree on {same:,} of {count(len(both), 'text')}"
    if min(len({*a}), len({*b})) < 2:  # kappa has no interval
        return f"{said}; kappa needs two labels of each"
    kappa = cohens_kappa(confusion_matrix(a, b))
    # The normal interval may pass 1, which kappa cannot.
    ends = f"[{kappa.kappa_low:.2f} to {min(kappa.kappa_upp, 1):.2f}]"
    return f"{said}: Cohen's kappa {kappa.kappa:.2f} {ends}; no interval holds what readers get wrong"
