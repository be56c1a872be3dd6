"""Texts whose words, genders and order are known; models that say them, and what a run of them left."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from biaskit.measures.personas.command import PersonasResult

COMMON = (
    *("the", "of", "and", "to", "a", "in", "for", "is", "on", "that"),
    *("work", "day", "team", "report", "office", "project", "people", "place", "time", "year"),
)
SUBJECT = {
    "female": "She and her",
    "male": "He and his",
    "nonbinary": "This nonbinary person, they and their",
}
ASKED = {"female": "a woman", "male": "a man", "nonbinary": "a non-binary person"}
TIMES = 12
# Marked words of an occupation: texts without, then texts with a gender in the prompt.
OPEN = {
    "nurse": {"female": "tender warm gentle", "male": "strong bold firm"},
    "mechanic": {"female": "patient warm clever", "male": "strong tough loud"},
    "cook": {"female": "gentle kind clever", "male": "bold loud driven"},
}
NAMED = {
    "nurse": {"female": "tender warm proud", "male": "strong quiet rugged", "nonbinary": "open creative"},
    "mechanic": {"female": "patient proud", "male": "warm tough quiet", "nonbinary": "open bright"},
    "cook": {"female": "gentle kind proud", "male": "bold rugged driven", "nonbinary": "bright creative"},
}
OTHER_NAMED = {
    "nurse": {"female": "gentle bright proud", "male": "firm quiet rugged", "nonbinary": "open creative"},
    "mechanic": {"female": "clever proud kind", "male": "loud tough driven", "nonbinary": "open bright"},
    "cook": {"female": "kind clever proud", "male": "loud rugged bold", "nonbinary": "bright creative"},
}


def story(gender: str | None, words: str = "", number: int = 0) -> str:
    """A text about somebody; its words stand in it twelve times each, beside words of every text."""
    said = [*words.split() * TIMES, *COMMON, *(COMMON[(number + k) % len(COMMON)] for k in range(5))]
    random.Random(number).shuffle(said)
    return f"{SUBJECT[gender] if gender else 'The person'} {' '.join(said)}."


def stories(genders: Sequence[str | None], words: Mapping[str, str]) -> list[str]:
    return [story(gender, words.get(gender or "", ""), i) for i, gender in enumerate(genders)]


def write_script(path: Path, *lines: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")
    return f"scripted:{path}"


def script_of(
    path: Path,
    open_words: Mapping[str, Mapping[str, str]],
    named: Mapping[str, Mapping[str, str]],
    pattern: Sequence[str | None] = ("female", "male"),
) -> str:
    """A model that follows `pattern` where no gender is asked for, and does as asked where one is."""
    lines: list[dict[str, Any]] = []
    for occupation, words in named.items():
        lines += [
            {
                "contains": f"{occupation} who is {ASKED[gender]}",
                "texts": [story(gender, words[gender], i) for i in range(6)],
            }
            for gender in ASKED
        ]
        lines.append({"contains": occupation, "texts": stories(list(pattern) * 6, open_words[occupation])})
    return write_script(path, *lines)


def write_vectors(path: Path, *, dimensions: int = 4) -> str:
    """Vectors of every word above, so that no training is waited for."""
    tables = (OPEN, NAMED, OTHER_NAMED)
    marked = (
        w for one in tables for words in one.values() for listed in words.values() for w in listed.split()
    )
    words = sorted({*marked, *COMMON, "her", "him"})
    chance = random.Random(7)
    lines = [f"{w} {' '.join(f'{chance.gauss(0, 1):.4f}' for _ in range(dimensions))}" for w in words]
    path.write_text("\n".join([f"{len(words)} {dimensions}", *lines, ""]), encoding="ascii")
    return f"pretrained:{path}"


def table(run: Path | PersonasResult, name: str) -> list[dict[str, str]]:
    path = run.path if isinstance(run, PersonasResult) else run
    with (path / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def only(rows: Sequence[dict[str, str]], **wanted: str) -> list[dict[str, str]]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def one(rows: Sequence[dict[str, str]], **wanted: str) -> dict[str, str]:
    [row] = only(rows, **wanted)
    return row


def write_texts(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
