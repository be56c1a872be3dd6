"""Which words mark the groups of a user's own column, beside what shuffled labels give.

See docs/methods.md#groups. Sentences name the column and its groups as the user wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.finding import Finding, Rank, Ranked, agreeing, of_models, parts_of, reasons_of
from biaskit.report.findings.marked_words import (
    BEYOND,
    N_WORDS,
    longer,
    more_than_chance,
    surely_longer,
)
from biaskit.report.findings.representation import texts_measured
from biaskit.runs.collection import Part
from biaskit.tables.query import Row, defined, grouped, undefined, where
from biaskit.wording import count, listed, people, short

N_LISTS = 5
"""Lists whose words a sentence names."""
LEFT_OUT = "without gender words, names and the groups' own names"
LISTS = {"method": "calibrated"}


def groups(content: Content) -> Iterator[Ranked]:
    """Findings of every part of the generation engine that has the table."""
    for part in parts_of(content, "personas"):
        lists = where(part.tables.get("group_lists", ()), **LISTS)
        for one in of_models(part, lists, _of_one, _of_many):
            yield Rank.NOT_MEASURED if one.verdict == "not-measured" else Rank.LEAD, one


def group_name(row: Row) -> str:
    """A group as the user wrote it, and the gender where it is crossed."""
    crossed = f", {people(row['gender'])}" if row["gender"] else ""
    return f"“{short(row['group'])}”{crossed}"


def _of_one(part: Part, model: str, lists: Sequence[Row]) -> Finding:
    whose = f"{short(model)}'s texts"
    known = defined(lists, *BEYOND)
    if not known:
        return _not_measured(part, [model], lists, whose)
    text, sure = _counted(lists, known, whose), surely_longer(known)
    if not sure:
        text += "none stays longer."
    else:
        said = [_top(part, row) for row in sorted(sure, key=lambda row: row["gender"] != "")[:N_LISTS]]
        more = f"; and {count(len(sure) - N_LISTS, 'more list')}" if len(sure) > N_LISTS else ""
        text += f"{count(len(sure), 'list')} {agreeing(len(sure), 'stay')} longer: {'; '.join(said)}{more}."
    return Finding(text + _missing(lists), "groups", "shown", _using(part, [model]))


def _of_many(part: Part, models: Sequence[str], lists: Sequence[Row]) -> Finding:
    whose = f"the texts of {count(len(models), 'model')}"
    known = defined(lists, *BEYOND)
    if not known:
        return _not_measured(part, models, lists, whose)
    sure = grouped(surely_longer(known), "model")
    n = sum(map(len, sure.values()))
    text = f"{_counted(lists, known, whose)}{n:,} {agreeing(n, 'stay')} longer, in {len(sure)} of the models."
    return Finding(text + _missing(lists), "groups", "shown", _using(part, models))


def _using(part: Part, models: Sequence[str]) -> str:
    return f"calibrated, {texts_measured(part, models, [])}"


def _not_measured(part: Part, models: Sequence[str], lists: Sequence[Row], whose: str) -> Finding:
    what = f"Words that mark a group of “{short(lists[0]['column'])}” in {whose}"
    text = f"{what}: not measured ({reasons_of(lists)})."
    return Finding(text, "groups", "not-measured", _using(part, models))


def _counted(lists: Sequence[Row], known: Sequence[Row], whose: str) -> str:
    text = f"{longer(known)} of words that mark a group of “{short(lists[0]['column'])}” in {whose} "
    text += f"({_held_against(lists)}) {more_than_chance(known, 'labels', LEFT_OUT)}."
    return f"{text} Judged together (false discovery rate 5 %), "


def _held_against(lists: Sequence[Row]) -> str:
    """What the groups are held against, and how many lists are of one gender of a group."""
    of_groups = where(lists, gender="")
    rivals = {row["group"]: row["against"] for row in of_groups}
    shared = [one for one in rivals if all(rivals[group] == one for group in rivals if group != one)]
    if set(rivals.values()) == {"others"}:
        text = "each against all others together"
    elif len(rivals) == 2:
        text = f"{listed([f'“{short(group)}”' for group in rivals])} against each other"
    elif shared:
        text = f"each against “{short(shared[0])}”, which itself is held against each of them"
    else:
        text = "each against the unmarked groups, and these against each of the others"
    if not (crossed := len(lists) - len(of_groups)):
        return text
    own = "it is" if crossed == 1 else "they are"
    return f"{text}; {crossed} of one gender of a group: {own} held against the other gender too"


def _top(part: Part, row: Row) -> str:
    """The first words of a list."""
    words = plain_words(part, row)
    first = listed([f"“{short(word, 40)}”" for word in words[:N_WORDS]])
    more = f" and {len(words) - N_WORDS} more" if len(words) > N_WORDS else ""
    return f"for {group_name(row)}: {first.replace(' and ', ', ') if more else first}{more}"


def plain_words(part: Part, row: Row) -> list[str]:
    """The words of a list that are neither gender words nor names of persons or groups."""
    scope = {name: row[name] for name in ("model", "column", "group", "against", "gender", "method")}
    plain = {"is_name": False, "is_gender_word": False, "is_group_word": False}
    return [one["word"] for one in where(part.tables.get("group_words", ()), **scope, **plain)]


def _missing(lists: Sequence[Row]) -> str:
    missing = undefined(lists, *BEYOND)
    return f" {count(len(missing), 'list')} not measured ({reasons_of(missing)})." if missing else ""
