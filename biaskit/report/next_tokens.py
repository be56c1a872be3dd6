"""What is said beside the listed words, in words: rows of probe_next.csv as names and a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from biaskit.common.wording import percent
from biaskit.records import NO_INSTRUCTION
from biaskit.tables.query import Row, grouped, where

EVERY_GROUP = "all"
"""The job group of rows that are means over all cells."""
_BLANK = {"": "a space", "\\n": "a line break", "\\n\\n": "two line breaks", "\\t": "a tab"}


def in_words(token: str) -> str:
    """A table's token as a sentence names it: without the space before it, blank ones by name."""
    text = token[1:-1].strip(" ")
    return _BLANK.get(text, f"“{text}”")


def the_rest(rows: Iterable[Row], most: int = 4, least: float = 0.01) -> list[tuple[str, float]]:
    """Names and mean probabilities of what is no listed word, the most probable first.

    `rows`: of one group of one block. Tokens that differ by a space alone are one. At most `most`, each of
    at least `least`; a token of which nobody knows what follows is left out.
    """
    found: dict[str, float] = {}
    for row in rows:
        if row["beyond"]:
            name = in_words(row["token"])
            found[name] = found.get(name, 0.0) + row["beyond"]
    ranked = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    return [one for one in ranked if one[1] >= least][:most]


def line_of_the_rest(rows: Sequence[Row]) -> str:
    """'Instead of a listed word: a line break 31 %, “The” 8 %.', by model where there are several.

    `rows`: of one bias type and setting, of which means over all jobs without an instruction are used; ""
    where there are none.
    """
    models = grouped(where(rows, job_group=EVERY_GROUP, instruction_id=NO_INSTRUCTION), "model")
    said = {
        model: ", ".join(f"{name} {percent(value)} %" for name, value in the_rest(own))
        for (model,), own in models.items()
    }
    found = [f"{model}: {line}" if len(models) > 1 else line for model, line in said.items() if line]
    return f"Instead of a listed word: {'; '.join(found)}." if found else ""
