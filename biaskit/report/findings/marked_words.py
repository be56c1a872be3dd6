"""Which words mark women and men, beside what shuffled genders give (docs/methods.md#word-list-null).

Gender words and names are left out: they mark a gender whatever the texts describe
(docs/methods.md#gender-words).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.finding import MANY_MODELS, Finding, Rank, Ranked, agreeing, parts_of, reasons_of
from biaskit.report.findings.representation import texts_measured
from biaskit.runs.collection import Part
from biaskit.stats.multiplicity import benjamini_hochberg
from biaskit.tables.query import Row, defined, distinct, grouped, undefined, where
from biaskit.wording import count, people, short

N_WORDS = 5
SURE = 0.05
"""False discovery rate at which lists judged together are called longer than chance."""
LEFT_OUT = "without gender words and names"
BEYOND = ("n_marked_beyond", "null_p95_beyond", "p_value_beyond")
OLD_TABLES = "tables of an older biaskit; biaskit analyze makes them again"


def marked_words(content: Content) -> Iterator[Ranked]:
    """Findings of every part of the generation engine: words of texts without a gender in the prompt."""
    for part in parts_of(content, "personas"):
        lists = lists_of(part) or lists_of(part, "specified")  # texts that all name a gender on request
        models = distinct(lists, "model")
        if len(models) > MANY_MODELS:
            yield Rank.LEAD, _of_many(part, models, lists)
        else:
            for model in models:
                yield Rank.LEAD, _of_one(part, model, where(lists, model=model))


def lists_of(part: Part, origin: str = "associated") -> list[Row]:
    """Rows of the lists that sentences speak of: calibrated, of texts without a gender in the prompt."""
    table = part.tables.get("word_lists", ())
    return [row for row in where(table, method="calibrated", origin=origin) if row["against"] != "all"]


def longer_than_null(row: Row) -> bool:
    """Whether a list holds more words beyond gender words than 95 % of those with shuffled genders."""
    return bool(row["n_marked_beyond"] > row["null_p95_beyond"])


def surely_longer(rows: Sequence[Row]) -> list[Row]:
    """The lists that stay longer than chance where all of them are judged together (Benjamini-Hochberg)."""
    q = benjamini_hochberg([row["p_value_beyond"] for row in rows])
    return [row for row, value in zip(rows, q.tolist(), strict=True) if value <= SURE]


def _of_one(part: Part, model: str, lists: Sequence[Row]) -> Finding:
    name, using = short(model), f"calibrated, {texts_measured(part, [model], [])}"
    known = defined(lists, *BEYOND)
    if not known:
        text = f"Words that mark a gender in {name}'s texts: not measured ({_why_not(lists)})."
        return Finding(text, "words", "not-measured", using)
    asked = "in" if known[0]["origin"] == "specified" else "not in"
    text = f"{longer(known)} of words that mark a gender in {name}'s texts (gender {asked} the prompt, one "
    text += f"list per occupation and gender) {more_than_chance(known)}."
    sure = surely_longer(known)
    if not sure:
        text += " Judged together (false discovery rate 5 %), none stays longer."
    else:
        clauses = [clause for gender in distinct(known, "gender") if (clause := _top(part, sure, gender))]
        text += f" Judged together (false discovery rate 5 %), {count(len(sure), 'list')} "
        text += f"{agreeing(len(sure), 'stay')} longer: {'; '.join(clauses)}."
    if len(known) < len(lists):
        text += f" {count(len(lists) - len(known), 'list')} not measured "
        text += f"({reasons_of(undefined(lists, *BEYOND))})."
    return Finding(text, "words", "shown", using)


def longer(rows: Sequence[Row]) -> str:
    """'3 of 8 lists'."""
    return f"{sum(map(longer_than_null, rows)):,} of {count(len(rows), 'list')}"


def more_than_chance(rows: Sequence[Row], shuffled: str = "genders", left_out: str = LEFT_OUT) -> str:
    """What those lists do, and how many would by chance."""
    chance = f"{len(rows) / 20:.1f}" if len(rows) < 100 else f"{len(rows) / 20:,.0f}"
    text = agreeing(
        sum(map(longer_than_null, rows)), f"hold more words than 95 % of lists with shuffled {shuffled}"
    )
    return f"{text}, all {left_out}; by chance about {chance} would"


def _why_not(lists: Sequence[Row]) -> str:
    made_before = defined(lists, "null_p95") and not defined(lists, "n_marked_beyond")
    return OLD_TABLES if made_before else reasons_of(lists)


def _top(part: Part, longer: Sequence[Row], gender: str) -> str:
    """The words of a gender's longer lists as a sentence names them."""
    if not any(row["gender"] == gender for row in longer):
        return ""
    found = words_of(part, longer, gender)
    if not found:
        return f"for {people(gender)} no word"
    words = [_with_occupations(word, rows) for word, rows in list(found.items())[:N_WORDS]]
    rows = [row for word in found.values() for row in word]
    sure = sum(row["q_value"] is not None and row["q_value"] <= 0.05 for row in rows)
    more = f" and {len(found) - N_WORDS} more" if len(found) > N_WORDS else ""
    alone = f"{sure} of {len(rows)}" if sure else "none"
    return f"for {people(gender)} {', '.join(words)}{more}, {alone} with q ≤ 0.05"


def words_of(part: Part, longer: Sequence[Row], gender: str) -> dict[str, list[Row]]:
    """The words of a gender's longer lists with their rows, those of most occupations first, then by z."""
    own = {row["occupation"]: row for row in longer if row["gender"] == gender}
    if not own:
        return {}
    one = next(iter(own.values()))
    scope = {name: one[name] for name in ("model", "origin", "gender", "against", "method")}
    found: dict[str, list[Row]] = {}
    for row in where(part.tables.get("marked_words", ()), **scope, is_name=False, is_gender_word=False):
        if row["occupation"] in own:
            found.setdefault(row["word"], []).append(row)
    ordered = sorted(found, key=lambda word: (-len(found[word]), -max(r["z"] for r in found[word]), word))
    return {word: found[word] for word in ordered}


def _with_occupations(word: str, rows: Sequence[Row]) -> str:
    where_found = short(rows[0]["occupation"], 30) if len(rows) == 1 else f"{len(rows)} occupations"
    return f"“{short(word, 40)}” ({where_found})"


def _of_many(part: Part, models: Sequence[str], lists: Sequence[Row]) -> Finding:
    using = f"calibrated, {texts_measured(part, models, [])}"
    known = defined(lists, *BEYOND)
    if not known:
        text = f"Words that mark a gender in the texts of {count(len(models), 'model')}: not measured "
        return Finding(f"{text}({_why_not(lists)}).", "words", "not-measured", using)
    sure, measured = grouped(surely_longer(known), "model"), grouped(known, "model")
    counts = {model: len(sure.get((model,), ())) for (model,) in measured}
    parts = {model: counts[model] / len(measured[model,]) for model in counts}
    ends = [
        f"{counts[m]} of {len(measured[m,])} in {short(m)}"
        for m in (max(parts, key=parts.__getitem__), min(parts, key=parts.__getitem__))
    ]
    text = (
        f"{longer(known)} of words that mark a gender in the texts of {count(len(models), 'model')} (gender "
    )
    asked = "in" if known[0]["origin"] == "specified" else "not in"
    text += f"{asked} the prompt) {more_than_chance(known)}. Judged together (false discovery rate 5 %), "
    text += f"{sum(counts.values()):,} {agreeing(sum(counts.values()), 'stay')} longer, from {ends[0]} to "
    text += f"{ends[1]}."
    if len(known) < len(lists):
        missing = undefined(lists, *BEYOND)
        text += f" {count(len(missing), 'list')} not measured ({reasons_of(missing)})."
    return Finding(text, "words", "shown", using)
