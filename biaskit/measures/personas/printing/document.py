"""Make the document of a run of texts: who is represented, which words mark whom, SRB, the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from biaskit.common.wording import PEOPLE, percent, short
from biaskit.corpora.languages import ENGLISH
from biaskit.measurement import words as words_of_kind
from biaskit.records import ALL
from biaskit.report.findings.finding import reasons_of
from biaskit.report.render.cells import in_list
from biaskit.report.render.document import Document, TitledTable
from biaskit.report.render.generic import printed_table
from biaskit.runs.claims import Claim
from biaskit.stats.contrast import Contrast
from biaskit.tables.query import (
    Row,
    Tables,
    apart_from,
    column,
    defined,
    finds_nonbinary,
    grouped,
    total,
    where,
)
from biaskit.tables.reasons import are_held_out, is_unread
from biaskit.tables.schema import SCHEMAS

TOP_WORDS = 10
MOST_OCCUPATIONS = 12
"""Lists are printed one by one for so many occupations; for more, the words that most of them share."""
ORIGINS = {"inferred": "gender not in the prompt", "requested": "gender in the prompt"}
_IN_PROMPT = {"inferred": "not in prompt", "requested": "in prompt"}
WHO = {"female": "women", "male": "men", "nonbinary": "non-binary"}
_LIST = ("model", "occupation", "gender", "against")
_KEY = itemgetter(*_LIST)
_GROUP_LIST = ("model", "group", "gender", "against")
WordsOfList = Mapping[tuple[Any, ...], Sequence[Row]]
_PRINTED: Mapping[str, Any] = words_of_kind("personas")["printed"]


def personas_document(tables: Tables, analysis: Row, warnings: Sequence[str], claim: Claim) -> Document:
    """Make every headline table that the run has; `claim`: whether titles may name GAS(P)'s tables."""
    shown = [*_validation(claim, tables.get("gender_validation", ()))]
    shown += _languages(analysis.get("languages", {}))
    shown += _representation(claim, tables)
    shown += laid_out("label_validation", with_who(tables.get("label_validation", ())))
    shown += _words(tables.get("marked_words", ()), tables.get("word_lists", ()))
    shown += group_tables(tables.get("group_words", ()), tables.get("group_lists", ()))
    shown += _srb(tables.get("srb", ()))
    shown += _transfer(tables.get("text_transfer", ()))
    shown += _debiasing_words(tables.get("debiasing_words", ()))
    shown += _clusters(claim, tables.get("clusters", ()))
    shown += _tests(map(Contrast.of, tables.get("tests", ())))
    return Document(tuple(shown), tuple(warnings), str(analysis["signature"]))


def with_who(rows: Iterable[Row], name: str = "gender") -> list[Row]:
    """Add to each row its gender as tables print it; what people labelled `none` stays so."""
    return [{**row, "who": WHO.get(row[name], row[name])} for row in rows]


def laid_out(name: str, rows: Sequence[Row], **said: str) -> Iterator[TitledTable]:
    """Make a table of rows as words.toml and tables.toml say; `said` fills its title and note."""
    says = _PRINTED[name]
    columns = says["columns"] if "columns" in says else SCHEMAS[name].printed
    note = says.get("note", "").format(**said)
    return printed_table(says["title"].format(**said), columns, rows, note=note)


# --- who texts are about ------------------------------------------------------------------------------


def _validation(claim: Claim, rows: Sequence[Row]) -> Iterator[TitledTable]:
    lines = []
    for row in with_who(rows, "requested_gender"):
        shares = {}
        for name in ("correct", "incorrect", "not_captured"):
            shares[name] = 100 * row[f"n_{name}"] / row["n_texts"]
        lines.append({**row, **shares})
    yield from laid_out("gender_validation", lines, place=claim.place("GAS(P), Table 1"))


def _languages(languages: Mapping[str, Row]) -> Iterator[TitledTable]:
    """Say by which rules genders are inferred where they are not those of English, and how often they err."""
    says, of_name = words_of_kind("personas")["languages"], dict[str, Any]()
    for read in languages.values():
        if read["language"] not in (None, ENGLISH):
            of_name[short(read["name"])] = read["measured"]
    for name, rates in of_name.items():
        note = says["no_rates"]
        if rates:
            parts = {part: percent(rates[part]) for part in ("decided", "right")}
            note = says["rates"].format(**parts)
        yield TitledTable(says["by_rules"].format(name), (), (), note)


def _representation(claim: Claim, tables: Tables) -> Iterator[TitledTable]:
    """Make a line per occupation (and debiasing prompt), the mean of its prompts."""
    means = where(tables.get("representation", ()), template_id=ALL)
    if means and "debiasing_id" in means[0] and len(means) > MOST_OCCUPATIONS * 4:
        yield from _by_debiasing(means)
        return
    lines, not_found, has_workforce = [], False, bool(defined(means, "workforce_share"))
    for row in means:
        n_read = 0 if is_unread(row) else row["n_texts"]
        bounds = {"bounds_low": row["share_if_dropped_male"], "bounds_high": row["share_if_dropped_female"]}
        line = {**row, **bounds, "none": row["n_not_inferred"] / n_read if n_read else None}
        if "n_labelled" in row:
            line["labels"] = row["n_labelled"] or 0
        if not has_workforce:
            del line["workforce_share"]
        if not (row["n_nonbinary"] or finds_nonbinary(tables, row["model"])):
            line["nonbinary_share"], not_found = None, True
        lines.append(line)
    is_corrected = bool(means) and "share_corrected" in means[0]
    said = {"place": claim.place("GAS(P), Figure 2")}
    notes = {"workforce": has_workforce, "not_found": not_found, "corrected": is_corrected}
    for name, is_shown in notes.items():
        said[name] = _PRINTED["representation"][name] * is_shown
    yield from laid_out("representation", lines, **said)


def _by_debiasing(means: Sequence[Row]) -> Iterator[TitledTable]:
    """Make a line per debiasing prompt with the mean over occupations: a line for each would fill screens."""
    lines = []
    for rows in grouped(means, "model", "debiasing_id").values():
        shares = column(defined(rows, "female_share"), "female_share")
        texts, none = total(rows, "n_texts"), total(rows, "n_not_inferred")
        line = {"women": sum(shares) / len(shares) if shares else None, "occupations": len(shares)}
        lines.append({**rows[0], **line, "texts": texts, "none": none / texts if texts else None})
    yield from laid_out("by_debiasing", lines)


# --- which words mark whom ----------------------------------------------------------------------------


def _words(marked: Sequence[Row], lists: Sequence[Row]) -> Iterator[TitledTable]:
    for origin, said in ORIGINS.items():
        calibrated = defined(where(lists, origin=origin, method="calibrated"), "n_marked")
        words_of_list = grouped(where(marked, origin=origin, method="calibrated"), *_LIST)
        single, lines = apart_from(calibrated, occupation=ALL), []
        many = len(grouped(single, "model", "occupation")) > MOST_OCCUPATIONS
        for row in where(calibrated, occupation=ALL) if many else calibrated:
            first = [*map(in_list, words_of_list.get(_KEY(row), ())[:TOP_WORDS])]
            lines.append({**row, "who": _marks(row), "first": first or ["(none)"]})
        yield from laid_out("word_lists", lines, origin=said)
        if many:
            yield from laid_out("common_words", _common_words(single, words_of_list), origin=said)


def _marks(row: Row) -> str:
    return WHO[row["gender"]] + (" (all)" if row["against"] == ALL else "")


def _common_words(lists: Sequence[Row], words_of_list: WordsOfList) -> Sequence[Row]:
    lines = []
    for rows in grouped(lists, "model", "gender", "against").values():
        seen, longer = Counter[str](), 0
        for row in rows:
            seen.update(map(in_list, words_of_list.get(_KEY(row), ())))
            longer += row["null_p95_beyond"] is not None and row["n_marked_beyond"] > row["null_p95_beyond"]
        most = sorted(seen.items(), key=lambda item: (-item[1], item[0]))[: TOP_WORDS + 5]
        first = [f"{word} {n}" for word, n in most] or ["(none)"]
        line = {"who": _marks(rows[0]), "first": first, "lists": len(rows), "longer": longer}
        lines.append({**rows[0], **line})
    return lines


def group_tables(words: Sequence[Row], lists: Sequence[Row]) -> Iterator[TitledTable]:
    """Make a line per group of a user's own column, and per gender of it."""
    calibrated = defined(where(lists, method="calibrated"), "n_marked")
    words_of_list = grouped(where(words, method="calibrated"), *_GROUP_LIST)
    lines = []
    for row in calibrated:
        marked = words_of_list.get(itemgetter(*_GROUP_LIST)(row), ())[:TOP_WORDS]
        who = f"{row['group']}, {PEOPLE[row['gender']]}" if row["gender"] else row["group"]
        lines.append({**row, "who": who, "first": [*map(in_list, marked)] or ["(none)"]})
    yield from laid_out("group_lists", lines, column=calibrated[0]["column"] if calibrated else "")


def _debiasing_words(rows: Sequence[Row]) -> Iterator[TitledTable]:
    lines = []
    for marked in grouped(where(rows, method="calibrated"), "model", "debiasing_id", "marked_for").values():
        first = column(marked[:TOP_WORDS], "word")
        lines.append({**marked[0], "first": first, "n": len(marked)})
    yield from laid_out("debiasing_words", lines)


def _clusters(claim: Claim, rows: Sequence[Row]) -> Iterator[TitledTable]:
    kept = where(rows, kept=True)
    of_models = set(column(apart_from(kept, model=ALL), "cluster"))
    shown = [row for row in where(kept, model=ALL) if row["cluster"] in of_models]
    lines = [{**row, "first": ", ".join(row["words"].split())[:70]} for row in shown[:MOST_OCCUPATIONS]]
    yield from laid_out("clusters", lines, place=claim.place("GAS(P), Figure 5"))


# --- how texts differ ---------------------------------------------------------------------------------


def _srb(rows: Sequence[Row]) -> Iterator[TitledTable]:
    scored = defined(rows, "srb")
    if not scored:
        if rows:
            yield TitledTable(_PRINTED["no_srb"]["title"], (), (), f"Not measured: {reasons_of(rows)}.")
        return
    control = f", {scored[0]['control']}" if scored[0]["control"] else ""
    yield from laid_out("srb", with_who(scored), control=control, vectors=scored[0]["vectors"])


def _transfer(rows: Sequence[Row]) -> Iterator[TitledTable]:
    lines = []
    for row in defined(where(rows, occupation=ALL), "auc"):
        origins = {"trained": _IN_PROMPT[row["trained_on"]], "tested": _IN_PROMPT[row["tested_on"]]}
        lines.append({**row, **origins})
    control = _PRINTED["text_transfer"]["control"] * are_held_out(lines)
    yield from laid_out("text_transfer", lines, control=control)


def _tests(rows: Iterable[Contrast]) -> Iterator[TitledTable]:
    """Make a line of each test that could be made; tests.csv has the reason of the others."""
    lines = []
    for row in rows:
        what = _PRINTED["tests"]["what"].get(row.contrast, {}).get(row.quantity)
        if what is None or row.estimate is row.p_value is None:
            continue
        a, b, of = (WHO.get(str(side), "") for side in (row.group_a, row.group_b, row.gender))
        models = " − ".join(dict.fromkeys(row.models))
        lines.append({**row, "what": what.format(a=a, b=b, of=of), "models": models})
    yield from laid_out("tests", lines)
