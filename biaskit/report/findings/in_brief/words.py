"""How a model writes: words beyond gender words, then words of groups of the user's own column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.finding import parts_of
from biaskit.report.findings.groups import LISTS, plain_words
from biaskit.report.findings.in_brief.sentence import (
    CLEAR,
    Foreign,
    Piece,
    Said,
    said,
    sentence,
)
from biaskit.report.findings.in_brief.write import things, whose
from biaskit.report.findings.marked_words import BEYOND, lists_of, surely_longer, words_of
from biaskit.runs.collection import Part
from biaskit.tables.query import Row, defined, distinct, where
from biaskit.wording import people

N_WORDS = 3
MOST_GROUPS = 3


def words(content: Content) -> Iterator[Said]:
    """What word lists say that are longer than chance, judged together."""
    for part in parts_of(content, "personas"):
        yield from _words(part)
        yield from _groups(part)


def _words(part: Part) -> Iterator[Said]:
    lists = _lists(part)
    models = distinct(lists, "model")
    if len(models) > 1:
        yield from _words_of_many(part, models, lists)
        return
    for model in models:
        known = defined(where(lists, model=model), *BEYOND)
        sure, text_of = surely_longer(known), whose(part, [model])
        found = [_marked(part, known, sure, gender, text_of) for gender in distinct(sure, "gender")]
        yield from sorted(found, key=lambda one: one.strength)
        if known and not sure:
            text = sentence(
                "No clear sign of words, beyond gender words, that mark women or men in {whose}.",
                whose=text_of,
            )
            yield said(text, "how", "shown")


def _lists(part: Part) -> list[Row]:
    """Lists of texts whose gender was read; where there are none, of those whose gender was given."""
    read = lists_of(part)
    return read if defined(read, *BEYOND) else lists_of(part, "specified")


def _marked(part: Part, known: Sequence[Row], sure: Sequence[Row], gender: str, of: Piece) -> Said:
    own = where(known, gender=gender)
    first = [Foreign(word, "“", "”") for word in list(words_of(part, sure, gender))[:N_WORDS]]
    clause = "{n} words mark {who} in {whose}{chance}"
    text = _with_words(clause, _totals(own), first, who=people(gender), whose=of)
    return said(text, "how", "shown", about="how-words", strength=CLEAR)


def _totals(lists: Sequence[Row]) -> dict[str, str]:
    """How many words lists hold beyond gender words, and how many of any kind shuffled labels give."""
    n = sum(row["n_marked_beyond"] for row in lists)
    means = [row["null_mean"] for row in lists]
    by_chance = None if None in means else sum(means)
    said_so = by_chance is not None and by_chance < n
    shown = "" if by_chance is None else f"{by_chance:.0f}" if by_chance >= 0.95 else f"{by_chance:.1f}"
    return {"n": f"{n:,}", "chance": f" where chance gives {shown}" if said_so else ""}


def _with_words(clause: str, totals: dict[str, str], words: Sequence[Foreign], **pieces: Piece) -> str:
    named_words = {f"word{i}": word for i, word in enumerate(words)}
    places = [", ".join(f"{{word{i}}}" for i in range(n)) for n in range(len(words), 0, -1)]
    templates = [f"{clause}: {place}." for place in places]
    return sentence(*templates, f"{clause}.", **totals, **named_words, **pieces)


def _words_of_many(part: Part, models: Sequence[str], lists: Sequence[Row]) -> Iterator[Said]:
    known = defined(lists, *BEYOND)
    if not known:
        return
    sure = distinct(surely_longer(known), "model")
    what = f"{len(models)} {things(part)}"
    if not sure:
        text = f"No clear sign of words, beyond gender words, that mark women or men in the texts of {what}."
        yield said(sentence(text), "how", "shown")
        return
    n = "All" if len(sure) == len(models) else f"{len(sure)} of"
    verb = "uses" if len(sure) == 1 < len(models) else "use"
    text = f"{n} {what} {verb} words, beyond gender words, that mark women or men more than chance gives."
    yield said(sentence(text), "how", "shown", about="how-words", strength=CLEAR)


def _groups(part: Part) -> Iterator[Said]:
    """The longest lists of a column's own groups; crossed with gender only in the long findings."""
    lists = where(part.tables.get("group_lists", ()), **LISTS)
    for model in distinct(lists, "model"):
        known = defined(where(lists, model=model), *BEYOND)
        sure = sorted(
            where(surely_longer(known), gender=""), key=lambda row: row["n_marked_beyond"], reverse=True
        )
        for row in sure[:MOST_GROUPS]:
            words = [Foreign(word, "“", "”") for word in plain_words(part, row)[:N_WORDS]]
            clause = "{n} words mark {group} ({column}) in {whose}{chance}"
            pieces: dict[str, Piece] = {
                "group": Foreign(row["group"], "“", "”"),
                "column": Foreign(row["column"]),
                "whose": whose(part, [model]),
            }
            text = _with_words(clause, _totals([row]), words, **pieces)
            yield said(text, "how", "shown", about="how-groups", strength=CLEAR)
        if known and not sure:
            text = sentence(
                "No clear sign of words that mark a group of {column} in {whose}.",
                column=Foreign(lists[0]["column"], "“", "”"),
                whose=whose(part, [model]),
            )
            yield said(text, "how", "shown", about="how-groups")
