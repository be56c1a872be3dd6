"""Put in words what models say beside the target words: rows of probe_next.csv."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from biaskit.common.wording import percent
from biaskit.records import ALL, NO_DEBIASING
from biaskit.tables.query import Row, grouped, where

LEAST = 0.01  # probability of what is named
_BLANK = {"": "a space", "\\n": "a line break", "\\n\\n": "two line breaks", "\\t": "a tab"}


def in_words(token: str) -> str:
    """Name a token in a sentence: without the space before it, blank tokens and an end in words."""
    if len(token) == 2:  # quotation marks alone: llama.cpp lists tokens that no text holds so
        return "an end of text"
    text = token[1:-1].strip(" ")
    return _BLANK.get(text, f"“{text}”")


def the_rest(rows: Iterable[Row], most: int = 4) -> list[tuple[str, float]]:
    """List names and mean probabilities of what is no target word, the most probable first.

    `rows`: of one group of jobs in one block. Tokens that differ only by a space count as one. At most
    `most`, each of at least 1 %; rows without a `beyond` are left out.
    """
    probabilities: dict[str, float] = {}
    for row in rows:
        if row["beyond"]:
            name = in_words(row["token"])
            probabilities[name] = probabilities.get(name, 0.0) + row["beyond"]
    ranked = sorted(probabilities.items(), key=lambda item: (-item[1], item[0]))
    return [(name, value) for name, value in ranked if value >= LEAST][:most]


def line_of_the_rest(rows: Sequence[Row]) -> str:
    """Write 'Instead of a target word: a line break 31 %, “The” 8 %.', by model where there are several.

    `rows`: of one bias type and context; means over all jobs without a debiasing prompt are used. "" without
    any.
    """
    models = grouped(where(rows, job_group=ALL, debiasing_id=NO_DEBIASING), "model")
    parts = []
    for (model,), rows_of_model in models.items():
        if line := ", ".join(f"{name} {percent(value)} %" for name, value in the_rest(rows_of_model)):
            parts.append(f"{model}: {line}" if len(models) > 1 else line)
    return f"Instead of a target word: {'; '.join(parts)}." if parts else ""
