"""Say which words mark women and men, or a user's own groups, beside what shuffled labels give.

Gender words and names are left out: they mark a gender whatever the texts describe
(methods/words#gender-words, #word-list-null, #groups).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from biaskit.common.wording import count, first_words, people, short
from biaskit.measurement import words as words_of_kind
from biaskit.measures.personas.findings.texts import texts_measured, whose
from biaskit.records import ALL, UNNAMED
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.finding import BY_CHANCE, is_answered, leads_of, noted
from biaskit.report.findings.sentence import CLEAR, DETAIL, Foreign, Piece, Sentence, filled, sentence_of
from biaskit.runs.collection import Part
from biaskit.stats.contrast import Verdict
from biaskit.stats.multiplicity import benjamini_hochberg
from biaskit.tables.query import Row, apart_from, column, defined, distinct, undefined, where

_SAYS: Mapping[str, Any] = words_of_kind("personas")["how"]
N_WORDS = 3
MOST_GROUPS = 3
SURE = 0.05
"""False discovery rate at which lists judged together are called longer than chance."""
BEYOND = ("n_marked_beyond", "null_p95_beyond", "p_value_beyond")
LIST = ("model", "occupation", "origin", "gender", "against", "method")
"""Columns of marked_words.csv and word_lists.csv that say which list a row is of."""


def words(content: Content) -> Iterator[Sentence]:
    """Say which word lists are longer than chance, judged together, and their first words."""
    # Under a question that has an answer, or that nothing else can answer (methods/tests#verdicts).
    listed = is_answered(content, "how") or not defined(leads_of(content, "how"), "p_value")
    for part in parts_of(content.parts, "personas"):
        yield from _genders(part, listed=listed)
        yield from _groups(part)


def lists_of(part: Part, origin: str = "inferred") -> list[Row]:
    """Pick the lists that sentences speak of: calibrated, of texts of one origin."""
    table = part.tables.get("word_lists", ())
    return apart_from(where(table, method="calibrated", origin=origin), against=ALL)


def leading(lists: Sequence[Row]) -> list[Row]:
    """Pick the lists that answer the question: a model's over all occupations, where it has them, alone."""
    models = distinct(defined(where(lists, occupation=ALL), *BEYOND), "model")
    return list(filter(lambda row: (row["occupation"] == ALL) == (row["model"] in models), lists))


def surely_longer(rows: Sequence[Row]) -> list[Row]:
    """Pick the lists that are longer than chance, all of them judged together (Benjamini-Hochberg)."""
    q = benjamini_hochberg(column(rows, "p_value_beyond"))
    return [row for row, value in zip(rows, q.tolist(), strict=True) if value <= SURE]


def words_of(part: Part, longer: Sequence[Row], gender: str) -> list[str]:
    """List the words of a model's longer lists of a gender: those of most occupations first, then by z."""
    lists = where(longer, gender=gender)
    if not lists:
        return []
    occupations = set(distinct(lists, "occupation"))
    scope = {name: lists[0][name] for name in ("model", "origin", "gender", "against", "method")}
    zs: dict[str, list[float]] = {}
    for row in where(part.tables.get("marked_words", ()), **scope, is_name=False, is_gender_word=False):
        if row["occupation"] in occupations:
            zs.setdefault(row["word"], []).append(row["z"])
    return sorted(zs, key=lambda word: (-len(zs[word]), -max(zs[word]), word))


def _measured(part: Part, model: str, lists: Sequence[Row]) -> str:
    known, missing = defined(lists, *BEYOND), undefined(lists, *BEYOND)
    longer = sum(row["n_marked_beyond"] > row["null_p95_beyond"] for row in known)
    notes = []
    if known:
        notes.append(f"{longer} of {count(len(known), 'list')} longer than 95 % of shuffled ones")
        notes.append(f"{len(surely_longer(known))} judged together ({BY_CHANCE})")
    if missing:
        notes += [f"{count(len(missing), 'list')} not measured", *noted(missing)]
    if any(row.get("origin") == "requested" for row in lists):
        notes.append("gender in the prompt")
    if lists[0].get("occupation") == ALL:
        notes.append("genders compared within occupations")
    rivals = [short(row["against"]) for row in lists if row.get("gender") == "" and "group" in row]
    if rivals:
        notes.append(f"compared with {first_words(list(dict.fromkeys(rivals)), N_WORDS, ', ')}")
    return texts_measured(part, model, (), "calibrated Marked Words", *notes)


def _unmarked(part: Part, model: str, lists: Sequence[Row], what: str, topic: str) -> Sentence:
    measured = bool(defined(lists, *BEYOND))
    why = Foreign(next(iter(noted(lists)), "no reason given"), longest=80)
    templates = _SAYS["unmarked" if measured else "lists_not_measured"]
    text = filled(*templates, what=Foreign(what), whose=whose(part, model), why=why)
    verdict: Verdict = "shown" if measured else "not-measured"
    using = _measured(part, model, lists)
    return sentence_of(text, topic, "how", verdict, using, about=f"how-{topic}")


def _marked(
    lists: Sequence[Row], longer: int, marked: Sequence[str], topic: str, using: str, **pieces: Piece
) -> Sentence:
    """Say how many lists are longer than chance, or how many words one has, and the first words."""
    # A word may be in several lists, so their lengths have no sum to speak of.
    says, pieces["n"], pieces["count"] = "in_lists", f"{longer:,}", count(len(lists), "occupation")
    if len(lists) == 1:
        n, by_chance = lists[0]["n_marked_beyond"], lists[0]["null_mean"]
        says, pieces["n"], pieces["chance"] = "marked", f"{n:,}", ""
        if by_chance is not None and by_chance < n:
            pieces["chance"] = f" (by chance: {by_chance:.{0 if by_chance >= 0.95 else 1}f})"
        if (job := lists[0].get("occupation", UNNAMED)) not in (UNNAMED, ALL):
            pieces["chance"] = Foreign(job, _SAYS["of_one"], str(pieces["chance"]).replace(" (", "; ") or ")")
    pieces["how"] = "most often" if longer > 1 else "above all"
    for i, word in enumerate(marked[:N_WORDS]):
        pieces[f"word{i}"] = Foreign(word, "“", "”")
    lacking = f"{{word{len(marked[:N_WORDS])}}}"
    templates = [template for template in _SAYS[says] if lacking not in template]
    text = filled(*templates, **pieces)
    return sentence_of(text, topic, "how", measured=using, about=f"how-{topic}", strength=CLEAR)


def _genders(part: Part, *, listed: bool) -> Iterator[Sentence]:
    """Speak of texts whose gender was read; where no list is measured, of those whose gender was given."""
    read = lists_of(part)
    every = read if defined(read, *BEYOND) else lists_of(part, "requested") or read
    lead = leading(every)
    sure = surely_longer(defined(lead, *BEYOND))  # of all models together
    named = distinct(sure, "model") if listed else []
    yield from _of_genders(part, lead, sure, named)
    for model in distinct(lead, "model"):
        if not where(sure, model=model):
            lists = where(lead, model=model)
            measured = bool(defined(lists, *BEYOND))
            yield _unmarked(part, model, lists, "women or men" if measured else "a gender", "words")
    # Lists of one occupation are details of a model's list over all, and said under it.
    details = list(filter(lambda row: row not in lead and row["model"] in named, defined(every, *BEYOND)))
    for sentence in _of_genders(part, details, surely_longer(details), named):
        yield replace(sentence, strength=DETAIL)


def _of_genders(
    part: Part, every: Sequence[Row], sure: Sequence[Row], models: Sequence[str]
) -> Iterator[Sentence]:
    """Speak of the words of each gender with a list that is surely longer."""
    for model in models:
        lists, of_model = where(every, model=model), where(sure, model=model)
        for gender in distinct(of_model, "gender"):
            of_gender = where(defined(lists, *BEYOND), gender=gender)
            first, longer = words_of(part, of_model, gender), len(where(of_model, gender=gender))
            pieces: dict[str, Piece] = {"who": people(gender), "whose": whose(part, model)}
            using = _measured(part, model, lists)
            yield _marked(of_gender, longer, first, "words", using, **pieces)


def _groups(part: Part) -> Iterator[Sentence]:
    """Speak of the longest lists of a column's own groups, then of one gender of a group."""
    every = where(part.tables.get("group_lists", ()), method="calibrated")
    sure = sorted(
        surely_longer(defined(every, *BEYOND)), key=lambda row: (row["gender"] != "", -row["n_marked_beyond"])
    )
    for model in distinct(every, "model"):
        lists, of_model = where(every, model=model), where(sure, model=model)
        for row in of_model[:MOST_GROUPS]:
            of_gender = f", {people(row['gender'])}" if row["gender"] else ""
            group = Foreign(row["group"], "“", f"”{of_gender} ({row['column']})")
            # Of its words those that are neither gender words nor names of persons or groups.
            scope = {c: row[c] for c in ("model", "column", "group", "against", "gender", "method")}
            plain = {"is_name": False, "is_gender_word": False, "is_group_word": False}
            first = [word["word"] for word in where(part.tables.get("group_words", ()), **scope, **plain)]
            using = _measured(part, model, lists)
            yield _marked([row], 1, first, "groups", using, who=group, whose=whose(part, model))
        if not of_model:
            yield _unmarked(part, model, lists, f"a group of {lists[0]['column']}", "groups")
