"""Which words mark women and men, beside what shuffled genders give (docs/methods.md#word-list-null)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.finding import MANY_MODELS, Finding, Rank, Ranked, agreeing, parts_of, reasons_of
from biaskit.report.findings.representation import texts_measured
from biaskit.runs.collection import Part
from biaskit.tables.query import Row, defined, distinct, undefined, where
from biaskit.wording import count, people, short

N_WORDS = 5
ASSOCIATING = frozenset(
    (
        *("she", "her", "hers", "herself", "female", "mrs", "ms"),
        *("he", "his", "him", "himself", "male", "mr"),
        *("they", "their", "nonbinary", "theythem"),
    )
)
"""Words by which a text was associated with a gender: of course they mark it.

See docs/methods.md#gender-association.
"""
LEFT_OUT = "without pronouns, names and the words by which texts were told apart"


def marked_words(content: Content) -> Iterator[Ranked]:
    """Findings of every part of the generation engine: words of texts without a gender in the prompt."""
    for part in parts_of(content, "personas"):
        table = part.tables.get("word_lists", ())
        lists = [
            row for row in where(table, method="calibrated", origin="associated") if row["against"] != "all"
        ]
        models = distinct(lists, "model")
        if len(models) > MANY_MODELS:
            yield Rank.LEAD, _of_many(part, models, lists)
        else:
            for model in models:
                yield Rank.LEAD, _of_one(part, model, where(lists, model=model))


def longer_than_null(row: Row) -> bool:
    """Whether a list is longer than 95 % of those with shuffled genders."""
    return row["n_marked"] is not None and row["null_p95"] is not None and row["n_marked"] > row["null_p95"]


def _of_one(part: Part, model: str, lists: Sequence[Row]) -> Finding:
    name, using = short(model), f"calibrated, {texts_measured(part, [model], [])}"
    known = defined(lists, "n_marked")
    if not known:
        text = f"Words that mark a gender in {name}'s texts: not measured ({reasons_of(lists)})."
        return Finding(text, "words", "not-measured", using, "words")
    longer = [row for row in known if longer_than_null(row)]
    rest = len(known) - len(longer)
    text = f"{len(longer):,} of {count(len(known), 'list')} of words that mark a gender in {name}'s texts "
    text += f"(gender not in the prompt, one list per occupation and gender) {agreeing(len(longer), 'are')} "
    text += f"longer than their null (95 % of lists with shuffled genders); {rest:,} "
    text += f"{agreeing(rest, 'are')} not longer than their null, and their length says nothing."
    clauses = [clause for gender in distinct(known, "gender") if (clause := _top(part, longer, gender))]
    if clauses:
        text += f" The longer lists hold, {LEFT_OUT}: {'; '.join(clauses)}."
    if len(known) < len(lists):
        text += f" {count(len(lists) - len(known), 'list')} not measured "
        text += f"({reasons_of([row for row in lists if row['n_marked'] is None])})."
    return Finding(text, "words", "shown", using, "words")


def _top(part: Part, longer: Sequence[Row], gender: str) -> str:
    """The words of a gender's longer lists, those of most occupations first, then by z."""
    own = {row["occupation"]: row for row in longer if row["gender"] == gender}
    if not own:
        return ""
    model, against = next((row["model"], row["against"]) for row in own.values())
    scope = {
        "model": model,
        "origin": "associated",
        "gender": gender,
        "against": against,
        "method": "calibrated",
    }
    found: dict[str, list[Row]] = {}
    for row in where(part.tables.get("marked_words", ()), **scope):
        own_word = not (row["is_pronoun"] or row["is_name"] or row["word"] in ASSOCIATING)
        if row["occupation"] in own and own_word:
            found.setdefault(row["word"], []).append(row)
    if not found:
        return f"for {people(gender)} no word"
    ordered = sorted(found, key=lambda word: (-len(found[word]), -max(r["z"] for r in found[word]), word))
    words = [_with_occupations(word, found[word]) for word in ordered[:N_WORDS]]
    rows = [row for word in found.values() for row in word]
    sure = sum(row["q_value"] is not None and row["q_value"] <= 0.05 for row in rows)
    more = f" and {len(found) - N_WORDS} more" if len(found) > N_WORDS else ""
    alone = f"{sure} of {len(rows)}" if sure else "none"
    return f"for {people(gender)} {', '.join(words)}{more}, {alone} with q ≤ 0.05"


def _with_occupations(word: str, rows: Sequence[Row]) -> str:
    where_found = short(rows[0]["occupation"], 30) if len(rows) == 1 else f"{len(rows)} occupations"
    return f"“{short(word, 40)}” ({where_found})"


def _of_many(part: Part, models: Sequence[str], lists: Sequence[Row]) -> Finding:
    using = f"calibrated, {texts_measured(part, models, [])}"
    known = defined(lists, "n_marked")
    if not known:
        text = f"Words that mark a gender in the texts of {count(len(models), 'model')}: not measured "
        return Finding(f"{text}({reasons_of(lists)}).", "words", "not-measured", using, "words")
    counts = {model: sum(longer_than_null(row) for row in where(known, model=model)) for model in models}
    measured = {model: len(where(known, model=model)) for model in models}
    with_lists = [model for model in models if measured[model]]
    most = max(with_lists, key=lambda model: counts[model] / measured[model])
    least = min(with_lists, key=lambda model: counts[model] / measured[model])
    ends = [f"{counts[model]} of {measured[model]} in {short(model)}" for model in (most, least)]
    longer = sum(counts.values())
    text = f"{longer:,} of {count(len(known), 'list')} of words that mark a gender in the texts of "
    text += f"{count(len(models), 'model')} (gender not in the prompt) are longer than their null (95 % of "
    text += f"lists with shuffled genders), from {ends[0]} to {ends[1]}. The other {len(known) - longer:,} "
    text += "are not longer than their null, and their length says nothing."
    if len(known) < len(lists):
        missing = undefined(lists, "n_marked")
        text += f" {count(len(missing), 'list')} not measured ({reasons_of(missing)})."
    return Finding(text, "words", "shown", using, "words")
