"""How much of a content goes into a page, and what is left out, in which order, until it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from biaskit.report.content import Content
from biaskit.report.page import listed_tables, passages

SENTENCES = 3
MARKED = (20, 10, 5)
FEWEST = 8  # texts or prompts that stay
ROWS = (20_000, 10_000, 5_000, 2_000)
LAST_ROWS = (1_000, 500, 200, 50)
Drawn = tuple[str, str]
"""A drawing for a wide window, and the same for a phone; empty where the page itself holds it."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of each thing a page holds; the defaults are all of it."""

    sentences: int = SENTENCES
    every_text: int = 1  # every 2nd, every 4th, …
    marked: int = MARKED[0]
    every_prompt: int = 1
    columns: int = 1  # 0: a phone gets a wide drawing too, and scrolls
    figures: int | None = None  # at most this many bytes of a drawing
    longest: int | None = None  # rows of a table


def smaller(content: Content, drawings: Sequence[Drawn]) -> Iterator[Extent]:
    """Extents from all of it downwards: drawings for phones go first, the shortest tables last.

    The findings, the limits and the models are no part of it: they always stay.
    """
    now = Extent()
    yield now
    steps: tuple[tuple[str, Iterable[int]], ...] = (
        ("columns", (0,)),
        ("sentences", (1,)),
        ("every_text", _halvings(len(content.examples))),
        ("marked", MARKED[1:]),
        ("longest", ROWS),
        ("every_prompt", _halvings(len(content.prompts))),
        ("figures", (size - 1 for size in sorted({len(svg) for svg, _ in drawings}, reverse=True))),
        ("longest", LAST_ROWS),
    )
    for what, values in steps:
        for value in values:
            now = replace(now, **{what: value})
            yield now


DECIDED_BY: Mapping[str, tuple[str, ...]] = {
    "tables": ("marked", "longest"),
    "figures": ("figures", "columns"),
    "prompts": ("every_prompt",),
    "texts": ("every_text",),
    "words": ("marked", "sentences"),
}
"""The fields of an extent that change a part of the data."""


def data_of(content: Content, drawings: Sequence[Drawn], extent: Extent) -> dict[str, Callable[[], Any]]:
    """Makers of the page's data by name, each to be packed for itself."""
    return {
        "tables": lambda: [
            *map(
                listed_tables.packed,
                listed_tables.list_tables(content, marked=extent.marked, longest=extent.longest),
            ),
            *questions(content),
        ],
        "figures": lambda: [
            svg + column * extent.columns if _fits(svg, extent) else "" for svg, column in drawings
        ],
        "prompts": lambda: passages.prompts(content.prompts[:: extent.every_prompt]),
        "texts": lambda: [*map(passages.example, content.examples[:: extent.every_text])],
        "words": lambda: passages.words(
            passages.first_words(content.words, extent.marked), content.sentences, per_word=extent.sentences
        ),
    }


def questions(content: Content) -> list[dict[str, Any]]:
    """Templates and instructions as the studies put them, as tables of the page."""
    found = []
    for number, part in enumerate(content.parts, 1):
        for what, rows in (("templates", part.templates), ("instructions", part.instructions)):
            title, anchor = f"{what.capitalize()} of {part.study}", f"asked-{number}-{what}"
            table = listed_tables.ListedTable(title, number, anchor, title, "", (), rows, rows, ())
            found += [{**listed_tables.packed(table), "file": ""}] if rows else []
    return found


def left_out(content: Content, drawings: Sequence[Drawn], extent: Extent) -> dict[str, str]:
    """A sentence for each thing that the page holds less of, by the section that it is missing from."""
    said: dict[str, list[str]] = {name: [] for name in ("words", "texts", "prompts", "figures", "tables")}
    if extent.sentences < SENTENCES and content.words:
        said["words"].append(f"{extent.sentences} instead of {SENTENCES} sentences for each marked word")
    if extent.marked < MARKED[0] and content.words:
        said["words"].append(f"only the first {extent.marked} words of each list")
    if extent.every_text > 1:
        said["texts"].append(_of(content.examples, extent.every_text, "example texts"))
    if extent.every_prompt > 1:
        said["prompts"].append(_of(content.prompts, extent.every_prompt, "prompts"))
    if missing := sum(bool(svg) and not _fits(svg, extent) for svg, _ in drawings):
        said["figures"].append(
            f"{missing} of {len(drawings)} figures are not drawn here: they lie in figures/"
        )
    tables = listed_tables.list_tables(content, marked=extent.marked)
    if extent.marked < MARKED[0] and any(table.name == "marked_words" for table in tables):
        said["tables"].append(f"marked words: only the first {extent.marked} of each list")
    if cut := [table.name for table in tables if extent.longest and len(table.rows) > extent.longest]:
        said["tables"].append(f"only the first {extent.longest:,} rows of {', '.join(dict.fromkeys(cut))}")
    return {name: (", " if name == "words" else "; ").join(parts) for name, parts in said.items() if parts}


def _halvings(n: int) -> Iterator[int]:
    """2, 4, 8, … as long as every 2nd, 4th, 8th of `n` things leaves enough of them."""
    every = 2
    while -(-n // every) >= FEWEST:
        yield every
        every *= 2


def _of(all_of_them: Sequence[object], every: int, what: str) -> str:
    return f"{-(-len(all_of_them) // every)} of {len(all_of_them)} {what}"


def _fits(svg: str, extent: Extent) -> bool:
    return extent.figures is None or len(svg) <= extent.figures
