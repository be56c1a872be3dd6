"""The printed table of a user's own groups: which words mark them, beside chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from biaskit.common.wording import PEOPLE, short
from biaskit.report.render.cells import in_list
from biaskit.report.render.document import PaperTable, TitledTable
from biaskit.report.render.generic import printed_table
from biaskit.tables.query import Row, defined, grouped, where
from biaskit.tables.schema import SCHEMAS

N_WORDS = 10
FIRST = "first ten"
MOST_LETTERS = 500  # letters of a cell in a manuscript's table: TeX cannot read a line of a megabyte
_GROUP_LIST = ("model", "group", "gender", "against")


def group_tables(words: Sequence[Row], lists: Sequence[Row]) -> Iterator[TitledTable]:
    """Make a line per group of a user's own column, and per gender of it."""
    calibrated = defined(where(lists, method="calibrated"), "n_marked")
    words_of_list = grouped(where(words, method="calibrated"), *_GROUP_LIST)
    lines = []
    for row in calibrated:
        marked = words_of_list.get(tuple(row[name] for name in _GROUP_LIST), ())[:N_WORDS]
        first = " ".join(f"({w['word']})" if w["is_group_word"] else in_list(w) for w in marked)
        who = f"{row['group']}, {PEOPLE[row['gender']]}" if row["gender"] else row["group"]
        lines.append({**row, "who": who, "first": first or "(none)"})
    column = calibrated[0]["column"] if calibrated else ""
    yield from printed_table(
        f"Words that mark the groups of {column} (Calibrated Marked Words, z > 1.96)",
        SCHEMAS["group_lists"].printed,
        lines,
        note="ungendered: without gendered words, names and the groups' own names (in brackets); baseline:"
        " lists with shuffled labels; p: of the ungendered length; a & b: words marked against each.",
    )


def group_papers(words: Sequence[Row], lists: Sequence[Row]) -> Iterator[PaperTable]:
    """Make the same for a manuscript; the caption names the column, since no paper has this table."""
    for printed in group_tables(words, lists):
        heads = [heading.text for heading in printed.header[-1]]
        cells = [tuple(map(partial(short, longest=MOST_LETTERS), row)) for row in printed.rows]
        wide = frozenset({heads.index(FIRST)})
        title = short(printed.title, 200)
        yield PaperTable("words-of-groups", replace(printed, title=title, rows=tuple(cells), wide=wide))
