"""The tables of GAS(P) from stored tables: 1-3, 5, 7, 8, 11, 13-15 and the table of Figure 5.

Rows and columns follow the paper, with a column more where the stored tables know more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from biaskit.measurement import words as words_of_kind
from biaskit.measures.personas.printing.document import WHO, with_who
from biaskit.records import ALL
from biaskit.report.reasons import because
from biaskit.report.render.cells import UNDEFINED, number, percent
from biaskit.report.render.document import Heading, PaperTable, TitledTable, listed_table
from biaskit.report.render.generic import printed_table
from biaskit.runs.claims import Claim
from biaskit.runs.store import slug
from biaskit.stats.contrast import Contrast
from biaskit.tables.query import (
    Row,
    Tables,
    apart_from,
    column,
    defined,
    distinct,
    first,
    grouped,
    mean_over_prompts,
    total,
    where,
)

PER_TABLE = 4  # models side by side in one table; more of them are split into parts
MOST_WORDS = 150  # words of one cell; a cell cannot go over a page
MOST_LETTERS = 60  # letters of one word: TeX cannot read a line of a megabyte
EXAMPLE = "software engineer"  # the occupation of the paper's Tables 7, 8 and 15
Cells = tuple[str, ...]
_NOTHING: Tables = MappingProxyType({})
_PAPERS: Mapping[str, Any] = words_of_kind("personas")["papers"]


def paper_tables(tables: Tables, between: Tables = _NOTHING, *, claim: Claim) -> list[PaperTable]:
    """Make the tables of GAS(P) that these stored tables give, in the paper's order, or their parts.

    `between`: tables between models (tests). `claim`: whether the run asked what GAS(P) asked; where it did
    not, titles and names are plain. Tables 7, 8 and 15 show the words of software engineers, as in the paper,
    else of the occupation with most texts behind its lists. A table that cannot be made is absent.
    """
    texts: Counter[str] = Counter()
    lists = apart_from(where(tables.get("word_lists", ()), method="calibrated"), occupation=ALL)
    for row in defined(lists, "n_marked"):
        texts[row["occupation"]] += row["n_target"] or 0
    occupation = EXAMPLE if EXAMPLE in texts else max(texts, key=texts.__getitem__, default="")
    papers = []
    for draft in _drafts(tables, between, occupation):
        if draft.table.rows:
            draft_claim = claim if draft.place else Claim.NONE
            title = f"{draft.table.title}{draft_claim.place(f'GAS(P), {draft.place}')}{draft.title_end}"
            place = draft.place.lower().replace(",", "").replace(" ", "-")
            name = draft_claim.file_name(f"gasp-{place}", draft.plain_name)
            papers.append(PaperTable(f"{name}{draft.part}", replace(draft.table, title=title)))
    return papers


@dataclass(frozen=True, slots=True)
class _Draft:
    """A table before it has its title and file name, which depend on the table of GAS(P) it follows."""

    place: str  # such as "Table 11"; empty where it shows another occupation than the paper's
    plain_name: str  # name of the file where it is not GAS(P)'s
    table: TitledTable
    part: str = ""  # end of the file's name
    title_end: str = ""


def _drafted(name: str, rows: Iterable[Cells], why: str = "", *, part: str = "", **said: str) -> _Draft:
    """Lay finished cells out as words.toml says.

    `why`: the reasons of what is missing, for the note; `said` fills place, name and title.
    """
    says = _PAPERS[name]
    title, wide = says["title"].format(**said), frozenset(says.get("wide", ()))
    table = listed_table(title, says["heads"], rows, says["n_text"], note=says["note"] + why, wide=wide)
    place = said["place"] if "place" in said else says["place"]
    return _Draft(place, says["name"].format(**said), table, part)


def _drafts(tables: Tables, between: Tables, occupation: str) -> Iterator[_Draft]:
    over_prompts = mean_over_prompts(tables.get("representation", ()))
    yield _drafted("validation", _validation(tables.get("gender_validation", ())))
    yield from _captured(over_prompts)
    yield from _calibration(tables.get("calibration", ()))
    yield _only_in(tables, occupation, "marked-personas")
    yield _only_in(tables, occupation, "calibrated")
    yield from _shares(over_prompts)
    tests = [*tables.get("tests", ()), *between.get("tests", ())]
    yield from _srb_tests(list(map(Contrast.of, tests)))
    yield _overlap(tables, occupation)
    yield from _clusters(tables.get("clusters", ()))


def _validation(rows: Sequence[Row]) -> Iterator[Cells]:
    rows_of: dict[str, Sequence[Row]] = {"all models": rows}
    for (model,), of_one in grouped(rows, "model").items():
        rows_of[model] = of_one
    if len(rows_of) == 2:
        del rows_of["all models"]
    for model, of_model in rows_of.items():
        for (gender,), texts in grouped(of_model, "requested_gender").items():
            n, shares = total(texts, "n_texts"), []
            for kind in ("n_correct", "n_incorrect", "n_not_captured"):
                shares.append(number(100 * total(texts, kind) / n if n else None, 2))
            yield (model, WHO[gender], str(n), *shares)


def _captured(over_prompts: Sequence[Row]) -> Iterator[_Draft]:
    if not over_prompts:
        return
    says, columns = _PAPERS["captured"], {}
    for (model,), of_model in grouped(over_prompts, "model").items():
        texts = total(of_model, "n_texts")
        dropped = total(of_model, "n_not_inferred")
        columns[model] = (percent(1 - dropped / texts if texts else None), str(texts), str(len(of_model)))
    turned = len(columns) > PER_TABLE
    if turned:
        heads, rows = ["Model", *says["heads"]], [(model, *cells) for model, cells in columns.items()]
    else:
        heads, rows = ["", *columns], list(zip(says["heads"], *columns.values(), strict=True))
    note = says["note"].format(turned=says["turned"] * turned)
    yield _Draft(says["place"], says["name"], listed_table(says["title"], heads, rows, note=note))


def _calibration(rows: Sequence[Row]) -> Iterator[_Draft]:
    """Make Table 3 (women), its counterpart for men, Table 5 (non-binary people), for each calibration."""
    by_calibration = grouped(where(rows, prior="hybrid"), "model", "occupation")
    for gender, place in _PAPERS["calibration"]["genders"].items():
        for (model, occupation), of_calibration in by_calibration.items():
            of_gender = where(of_calibration, gender=gender)
            body = []
            for row in of_gender:
                if round(4 * row["alpha"], 9) % 1:
                    continue  # between the paper's five
                n = row["n_marked"]
                shown = UNDEFINED if n is None else _listed(row["words_differing"].split())
                alpha, against = f"{row['alpha']:g}", WHO[row["against"]]
                body.append((alpha, number(row["c"], 4), against, number(n, 0), shown))
            part = f"-{slug(f'{model}-{occupation}')}" if len(by_calibration) > 1 else ""
            said = {**place, "who": WHO[gender], "occupation": occupation, "model": model}
            yield _drafted("calibration", body, because(of_gender, "n_marked"), part=part, **said)


def _only_in(tables: Tables, occupation: str, method: str) -> _Draft:
    """List the words of one method alone: men's and women's against each other, N against both."""
    scope = {"occupation": occupation, "origin": "requested"}
    lists = where(tables.get("word_lists", ()), **scope, method="calibrated")
    alone_in_method = where(tables.get("word_methods", ()), **scope, only_in=method)
    marked = where(tables.get("marked_words", ()), **scope)
    body = []
    for model in distinct(lists, "model"):
        for gender, against in (("male", "female"), ("female", "male"), ("nonbinary", ALL)):
            listed = first(lists, model=model, gender=gender, against=against)
            if listed is None:
                continue
            alone_of_gender = where(alone_in_method, model=model, gender=gender)
            if against == ALL:
                # word_methods.csv leaves out a gender against both others: the two lists side by side.
                all_others = where(marked, model=model, gender=gender, against=ALL)
                of_other = set(column(apart_from(all_others, method=method), "word"))
                alone_of_gender = [row for row in all_others if row["word"] not in of_other]
            words, undefined = column(alone_of_gender, "word"), listed["n_marked"] is None
            n, shown = (UNDEFINED, UNDEFINED) if undefined else (str(len(words)), _listed(words))
            body.append((model, WHO[gender], n, shown))
    return _drafted(method, body, because(lists, "n_marked"), **_said_of(occupation))


def _said_of(occupation: str) -> dict[str, str]:
    """Name the occupation whose words are shown; of another than the paper's, no place in the paper."""
    return {"occupation": occupation} if occupation == EXAMPLE else {"occupation": occupation, "place": ""}


def _overlap(tables: Tables, occupation: str) -> _Draft:
    rows = where(tables.get("word_overlap", ()), occupation=occupation)
    body = []
    for (model, gender), of_gender in grouped(rows, "model", "gender").items():
        for place, where_marked in _PAPERS["overlap"]["places"].items():
            if words := column(where(of_gender, place=place), "word"):
                body.append((model, WHO[gender], where_marked, str(len(words)), _listed(words)))
    return _drafted("overlap", body, **_said_of(occupation))


def _shares(over_prompts: Sequence[Row]) -> Iterator[_Draft]:
    cells = {}
    for row in over_prompts:
        n = row["n_female"] + row["n_male"] + row["n_nonbinary"]
        se = number(None if row["se"] is None else 100 * row["se"], 2)
        cells[row["occupation"], row["model"]] = (percent(row["female_share"]), se, str(n))
    labels = {name: (name,) for name in distinct(over_prompts, "occupation")}
    for draft, models in _side_by_side("shares", labels, distinct(over_prompts, "model"), cells):
        rows = [row for row in over_prompts if row["model"] in models]
        note = draft.table.note + because(rows, "female_share", "se")
        yield replace(draft, table=replace(draft.table, note=note))


def _srb_tests(tests: Sequence[Contrast]) -> Iterator[_Draft]:
    welch = where(tests, quantity="srb", kind="welch")
    for contrast in ("genders", "models"):
        rows, says = with_who(where(welch, contrast=contrast)), _PAPERS[f"srb_{contrast}"]
        note = says["note"] + because(rows, "statistic")
        for table in printed_table(says["title"], says["columns"], rows, note=note):
            yield _Draft(says["place"], says["name"], table)


def _clusters(rows: Sequence[Row]) -> Iterator[_Draft]:
    of_models = apart_from(rows, model=ALL)
    kept = distinct(where(of_models, kept=True), "cluster")
    if not kept:
        return
    n_lead = 2 if any(column(rows, "category")) else 1
    labels, cells = {}, {}
    for row in rows:
        if row["cluster"] not in kept:
            continue
        labels[row["cluster"]] = (_listed(row["words"].split()), row["category"] or "")[:n_lead]
        share, n = row["female_share"], row["n_occupations_female"] + row["n_occupations_male"]
        men = percent(None if share is None else 1 - share)
        cells[row["cluster"], row["model"]] = (percent(share), men, str(n))
    for draft, _ in _side_by_side("clusters", labels, distinct(of_models, "model"), cells):
        yield draft


def _side_by_side(
    name: str, labels: Mapping[Any, Cells], models: Sequence[str], cells: Mapping[tuple[Any, str], Cells]
) -> Iterator[tuple[_Draft, list[str]]]:
    """Lay out the same columns for each model, at most four models to a part; with each part its models.

    `labels`: the first cells of each row; `cells` by row and model.
    """
    says, n_parts = _PAPERS[name], -(-len(models) // PER_TABLE)
    n_text, nothing = len(next(iter(labels.values()), ())), (UNDEFINED,) * len(says["heads"])
    for i in range(n_parts):
        chosen = list(models[i * PER_TABLE : (i + 1) * PER_TABLE])
        over = (*[Heading("")] * n_text, *map(partial(Heading, span=len(nothing)), chosen))
        heads = tuple(map(Heading, (*says["lead"][:n_text], *says["heads"] * len(chosen))))
        rows = []
        for key, label in labels.items():
            line = label
            for model in chosen:
                line += cells.get((key, model), nothing)
            rows.append(line)
        wide = frozenset(says.get("wide", ()))
        table = TitledTable(says["title"], (over, heads), tuple(rows), says["note"], n_text, wide)
        part, end = (f"-part-{i + 1}", f", part {i + 1} of {n_parts}") if n_parts > 1 else ("", "")
        yield _Draft(says["place"], says["name"], table, part, end), chosen


def _listed(words: Sequence[str]) -> str:
    """Join words with commas, as the paper prints them; of a very long list the first and how many follow."""
    if not words:
        return "(none)"
    ending = f", and {len(words) - MOST_WORDS} more" if len(words) > MOST_WORDS else ""
    shown = (word if len(word) <= MOST_LETTERS else f"{word[:MOST_LETTERS]}…" for word in words[:MOST_WORDS])
    return ", ".join(shown) + ending
