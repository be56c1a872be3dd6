"""Which words mark women and men, or a user's own groups, beside what shuffled labels give.

Gender words and names are left out: they mark a gender whatever the texts describe
(docs/methods.md#gender-words, #word-list-null, #groups).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.finding import Topic, agreeing, noted, parts_of
from biaskit.report.findings.sentence import CLEAR, Foreign, Piece, Said, said, sentence
from biaskit.report.findings.write import texts_measured, things, whose
from biaskit.runs.collection import Part
from biaskit.stats.multiplicity import benjamini_hochberg
from biaskit.tables.query import Row, defined, distinct, undefined, where
from biaskit.wording import count, first_words, people, short

N_WORDS = 3
MOST_GROUPS = 3
SURE = 0.05
"""False discovery rate at which lists judged together are called longer than chance."""
BEYOND = ("n_marked_beyond", "null_p95_beyond", "p_value_beyond")
OLD_TABLES = "tables of an older biaskit; biaskit analyze makes them again"


def words(content: Content) -> Iterator[Said]:
    """What word lists say that are longer than chance, judged together."""
    for part in parts_of(content, "personas"):
        yield from _genders(part)
        yield from _groups(part)


# --- lists -----------------------------------------------------------------------------------------------


def lists_of(part: Part, origin: str = "associated") -> list[Row]:
    """Rows of the lists that sentences speak of: calibrated, of texts without a gender in the prompt."""
    table = part.tables.get("word_lists", ())
    return [row for row in where(table, method="calibrated", origin=origin) if row["against"] != "all"]


def surely_longer(rows: Sequence[Row]) -> list[Row]:
    """The lists that stay longer than chance where all of them are judged together (Benjamini-Hochberg)."""
    q = benjamini_hochberg([row["p_value_beyond"] for row in rows])
    return [row for row, value in zip(rows, q.tolist(), strict=True) if value <= SURE]


def words_of(part: Part, longer: Sequence[Row], gender: str) -> list[str]:
    """The words of a gender's longer lists: those of most occupations first, then by z."""
    own = {row["occupation"]: row for row in longer if row["gender"] == gender}
    if not own:
        return []
    one = next(iter(own.values()))
    scope = {name: one[name] for name in ("model", "origin", "gender", "against", "method")}
    found: dict[str, list[float]] = {}
    for row in where(part.tables.get("marked_words", ()), **scope, is_name=False, is_gender_word=False):
        if row["occupation"] in own:
            found.setdefault(row["word"], []).append(row["z"])
    return sorted(found, key=lambda word: (-len(found[word]), -max(found[word]), word))


def group_words_of(part: Part, row: Row) -> list[str]:
    """The words of a group's list that are neither gender words nor names of persons or groups."""
    scope = {name: row[name] for name in ("model", "column", "group", "against", "gender", "method")}
    plain = {"is_name": False, "is_gender_word": False, "is_group_word": False}
    return [one["word"] for one in where(part.tables.get("group_words", ()), **scope, **plain)]


def _measured(part: Part, models: Sequence[str], lists: Sequence[Row]) -> str:
    known, missing = defined(lists, *BEYOND), undefined(lists, *BEYOND)
    longer = sum(row["n_marked_beyond"] > row["null_p95_beyond"] for row in known)
    notes = [f"{longer} of {count(len(known), 'list')} longer than 95 % of shuffled ones"] if known else []
    notes += [f"{len(surely_longer(known))} judged together (false discovery rate 5 %)"] if known else []
    notes += [f"{count(len(missing), 'list')} not measured", *noted(missing)] if missing else []
    if any(row.get("origin") == "specified" for row in lists):
        notes.append("gender in the prompt")
    if rivals := [short(row["against"]) for row in lists if row.get("gender") == "" and "group" in row]:
        notes.append(f"held against {first_words(list(dict.fromkeys(rivals)), N_WORDS, ', ')}")
    return texts_measured(part, models, (), "calibrated Marked Words", *notes)


def _not_measured(part: Part, lists: Sequence[Row], what: str, topic: Topic) -> Said:
    made_before = defined(lists, "null_p95") and not defined(lists, "n_marked_beyond")
    models = distinct(lists, "model")
    text = sentence(
        "Words that mark {what} in {whose} are not measured ({why}).",
        "Words that mark {what} in {whose} are not measured.",
        what=Foreign(what),
        whose=whose(part, models),
        why=Foreign(OLD_TABLES if made_before else next(iter(noted(lists)), "no reason given"), longest=80),
    )
    return said(text, topic, "how", "not-measured", _measured(part, models, lists), about=f"how-{topic}")


def _marked(lists: Sequence[Row], words_: Sequence[str], topic: Topic, using: str, **pieces: Piece) -> Said:
    """How many words lists hold beyond gender words, how many shuffled labels give, and the first of them."""
    n, means = sum(row["n_marked_beyond"] for row in lists), [row["null_mean"] for row in lists]
    by_chance = None if None in means else sum(means)
    shown = "" if by_chance is None else f"{by_chance:.0f}" if by_chance >= 0.95 else f"{by_chance:.1f}"
    first = [Foreign(word, "“", "”") for word in words_[:N_WORDS]]
    clause = "{n} words mark {who} in {whose}{chance}"
    places = [", ".join(f"{{word{i}}}" for i in range(k)) for k in range(len(first), 0, -1)]
    text = sentence(
        *(f"{clause}: {place}." for place in places),
        f"{clause}.",
        n=f"{n:,}",
        chance=f" where chance gives {shown}" if by_chance is not None and by_chance < n else "",
        **{f"word{i}": word for i, word in enumerate(first)},
        **pieces,
    )
    return said(text, topic, "how", measured=using, about=f"how-{topic}", strength=CLEAR)


# --- genders, then groups --------------------------------------------------------------------------------


def _genders(part: Part) -> Iterator[Said]:
    """Lists of texts whose gender was read; where there are none, of those whose gender was given."""
    read = lists_of(part)
    lists = read if defined(read, *BEYOND) else lists_of(part, "specified") or read
    models, known = distinct(lists, "model"), defined(lists, *BEYOND)
    if lists and not known:
        yield _not_measured(part, lists, "a gender", "words")
    elif len(models) > 1:
        yield _of_many(part, models, lists)
    for model in models if len(models) == 1 else ():
        sure, using = surely_longer(known), _measured(part, models, lists)
        of = {"whose": whose(part, models)}
        for gender in distinct(sure, "gender"):
            first, own = words_of(part, sure, gender), where(known, gender=gender, model=model)
            yield _marked(own, first, "words", using, who=people(gender), **of)
        if known and not sure:
            text = "No clear sign of words, beyond gender words, that mark women or men in {whose}."
            yield said(sentence(text, **of), "words", "how", measured=using)


def _of_many(part: Part, models: Sequence[str], lists: Sequence[Row]) -> Said:
    sure = distinct(surely_longer(defined(lists, *BEYOND)), "model")
    what, using = f"{len(models)} {things(part)}", _measured(part, models, lists)
    if not sure:
        text = f"No clear sign of words, beyond gender words, that mark women or men in the texts of {what}."
        return said(sentence(text), "words", "how", measured=using)
    n = "All" if len(sure) == len(models) else f"{len(sure)} of"
    verb = "uses" if len(sure) == 1 < len(models) else "use"
    text = f"{n} {what} {verb} words, beyond gender words, that mark women or men more than chance gives."
    return said(sentence(text), "words", "how", measured=using, about="how-words", strength=CLEAR)


def _groups(part: Part) -> Iterator[Said]:
    """The longest lists of a column's own groups, then of one gender of a group; many models are counted."""
    lists = where(part.tables.get("group_lists", ()), method="calibrated")
    models, known = distinct(lists, "model"), defined(lists, *BEYOND)
    if not lists:
        return
    column, using = Foreign(lists[0]["column"]), _measured(part, models, lists)
    sure = sorted(surely_longer(known), key=lambda row: (row["gender"] != "", -row["n_marked_beyond"]))
    if not known:
        yield _not_measured(part, lists, f"a group of {lists[0]['column']}", "groups")
    elif not sure or len(models) > 1:
        n = len(distinct(sure, "model"))
        text = "{n} of {m} models {use} words that mark a group of {column}, more than chance gives."
        text = text if sure else "No clear sign of words that mark a group of {column} in {whose}."
        pieces = {"column": column, "whose": whose(part, models), "n": str(n), "m": str(len(models))}
        text = sentence(text, **pieces, use=agreeing(n, "use"))
        yield said(
            text, "groups", "how", measured=using, about="how-groups", strength=CLEAR if sure else None
        )
    for row in sure[:MOST_GROUPS] if len(models) == 1 else ():
        of_gender = f", {people(row['gender'])}" if row["gender"] else ""
        group = Foreign(row["group"], "“", f"”{of_gender} ({row['column']})")
        first = group_words_of(part, row)
        yield _marked([row], first, "groups", using, who=group, whose=whose(part, models))
