"""The tables of GAS(P) from stored tables: 1-3, 5, 7, 8, 11, 13-15 and the table of Figure 5.

Rows and columns follow the paper, with a column more where the stored tables know more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from biaskit.measures.personas.printing.document import WHO
from biaskit.report.reasons import because
from biaskit.report.render.cells import number, p_value, percent, signed, span
from biaskit.report.render.document import Heading, PaperTable, TitledTable
from biaskit.runs.claims import Claim
from biaskit.runs.store import slug
from biaskit.stats.contrast import Contrast
from biaskit.tables.query import (
    Row,
    Tables,
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
_NOTHING: Tables = MappingProxyType({})
_UNDEFINED = "–"


def paper_tables(tables: Tables, between: Tables = _NOTHING, *, claim: Claim) -> list[PaperTable]:
    """Make the tables of GAS(P) that these stored tables give, in the paper's order.

    Arguments: tables, the public tables of personas by name, with rows as `tables.read_rows`
        gives them; between, those between models (tests). claim: whether the run asked what GAS(P) asked;
        where it did not, titles and names are plain. Tables 7, 8 and 15 show the words of software
        engineers, as in the paper, else of the occupation with most texts behind its lists.
    Returns: one PaperTable for each table and, where models or calibrations are many, each part of it; a
        table that cannot be made is absent.
    """
    texts: Counter[str] = Counter()
    for row in where(tables.get("word_lists", ()), method="calibrated"):
        if row["n_marked"] is not None:
            texts[row["occupation"]] += row["n_target"] or 0
    occupation = EXAMPLE if EXAMPLE in texts else max(texts, key=texts.__getitem__, default=None)
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


def _drafts(tables: Tables, between: Tables, occupation: str | None) -> Iterator[_Draft]:
    seven, eight, fifteen = ("Table 7", "Table 8", "Table 15") if occupation == EXAMPLE else ("", "", "")
    over_prompts = mean_over_prompts(tables.get("representation", ()))
    yield _Draft("Table 1", "association", _validation(tables.get("gender_validation", ())))
    yield from _captured(over_prompts)
    yield from _calibration(tables.get("calibration", ()))
    yield _Draft(seven, "words-of-marked-personas", _only_in(tables, occupation, "marked-personas"))
    yield _Draft(eight, "words-of-calibrated", _only_in(tables, occupation, "calibrated"))
    yield from _shares(over_prompts)
    tests = [*tables.get("tests", ()), *between.get("tests", ())]
    yield from _srb_tests(list(map(Contrast.of, tests)))
    yield _Draft(fifteen, "words-with-and-without", _overlap(tables, occupation))
    yield from _clusters(tables.get("clusters", ()))


# --- Tables 1 and 2: association ---------------------------------------------------------------------


def _validation(rows: Sequence[Row]) -> TitledTable:
    rows_of: dict[str, Sequence[Row]] = {"all models": rows}
    for model in distinct(rows, "model"):
        rows_of[model] = where(rows, model=model)
    if len(rows_of) == 2:
        del rows_of["all models"]
    body = []
    for model, of_model in rows_of.items():
        for gender in distinct(rows, "requested_gender"):
            texts = where(of_model, requested_gender=gender)
            if texts:
                n = total(texts, "n_texts")
                shares = []
                for kind in ("n_correct", "n_incorrect", "n_not_captured"):
                    counted = total(texts, kind)
                    shares.append(f"{100 * counted / n:.2f}" if n else _UNDEFINED)
                body.append((model, WHO[gender], str(n), *shares))
    return TitledTable(
        "Gender found in texts whose prompt names one, in % of the texts",
        _heads("Model", "Gender", "texts", "correct", "incorrect", "not captured"),
        tuple(body),
        note="Gender Association Method (GAS(P), Algorithm 1, as released). Unit: texts with the gender"
        " in the prompt; refused and empty ones count as not captured. GAS(P) pools its models.",
        n_text=2,
    )


def _captured(over_prompts: Sequence[Row]) -> Iterator[_Draft]:
    if not over_prompts:
        return
    columns = {}
    for (model,), of_model in grouped(over_prompts, "model").items():
        texts = total(of_model, "n_texts")
        dropped = total(of_model, "n_not_inferred")
        columns[model] = (percent(1 - dropped / texts if texts else None), str(texts), str(len(of_model)))
    heads = ("% captured", "texts", "occupations")
    note = (
        "Texts of the first batch without a gender in the prompt, every prompt and occupation; captured: a"
        " gender is inferred. GAS(P) counts 100 texts for each occupation and prompt."
    )
    header, rows = _heads("", *columns), tuple(zip(heads, *columns.values(), strict=True))
    if len(columns) > PER_TABLE:
        header, rows = _heads("Model", *heads), tuple((model, *cells) for model, cells in columns.items())
        note += " Models are in its columns."
    table = TitledTable("Texts in which a gender is found", header, rows, note=note)
    yield _Draft("Table 2", "texts-with-a-gender", table)


# --- Tables 3 and 5: calibration ---------------------------------------------------------------------


def _calibration(rows: Sequence[Row]) -> Iterator[_Draft]:
    """Make Table 3 (women), its counterpart for men, Table 5 (non-binary people), for each calibration."""
    swept = [row for row in where(rows, prior="hybrid") if row["words_differing"] is not None]
    by_calibration = grouped(swept, "model", "occupation")
    for gender, (place, who) in _CALIBRATED.items():
        for (model, occupation), of_calibration in by_calibration.items():
            of_gender = where(of_calibration, gender=gender)
            body = []
            for row in of_gender:
                if round(4 * row["alpha"], 9) % 1:
                    continue  # between the paper's five
                n = row["n_marked"]
                shown = _UNDEFINED if n is None else _listed(row["words_differing"].split())
                alpha, against = f"{row['alpha']:g}", WHO[row["against"]]
                body.append((alpha, number(row["c"], 4), against, _count(n), shown))
            table = TitledTable(
                f"Words that mark {WHO[gender]} at some α of the hybrid prior but not at all of 0, 0.25, 0.5,"
                f" 0.75 and 1: {occupation}, {model}, gender in the prompt",
                _heads("α", "C", "against", "marked", "words not shared"),
                tuple(body),
                note=_BY_ALPHA + because(of_gender, "n_marked"),
                n_text=5,
                wide=frozenset({4}),
            )
            part = f"-{slug(f'{model}-{occupation}')}" if len(by_calibration) > 1 else ""
            yield _Draft(place, f"words-by-alpha-{who}", table, part)


_CALIBRATED = {
    "female": ("Table 3", "women"),
    "male": ("Table 3, men", "men"),
    "nonbinary": ("Table 5", "non-binary"),
}


_BY_ALPHA = (
    "α: share of the topic prior; C: the largest at which no criterion word is marked, searched at every α"
    " (GAS(P) interpolates between the C of two priors); marked: words with z > 1.96. Names are not removed."
)


# --- Tables 7, 8 and 15: words -----------------------------------------------------------------------


def _only_in(tables: Tables, occupation: str | None, method: str) -> TitledTable:
    """List the words of one method alone: men's and women's against each other, N against both."""
    scope = {"occupation": occupation, "origin": "requested"}
    lists = where(tables.get("word_lists", ()), **scope, method="calibrated")
    alone_in_method = where(tables.get("word_methods", ()), **scope, only_in=method)
    marked = where(tables.get("marked_words", ()), **scope)
    body = []
    for model in distinct(lists, "model"):
        for gender, against in (("male", "female"), ("female", "male"), ("nonbinary", "all")):
            listed = first(lists, model=model, gender=gender, against=against)
            if listed is None:
                continue
            alone_of_gender = where(alone_in_method, model=model, gender=gender)
            if against == "all":
                # word_methods.csv leaves out a gender against both others: the two lists side by side.
                all_others = where(marked, model=model, gender=gender, against="all")
                of_other = {row["word"] for row in all_others if row["method"] != method}
                alone_of_gender = [row for row in all_others if row["word"] not in of_other]
            words, undefined = [row["word"] for row in alone_of_gender], listed["n_marked"] is None
            n, shown = (_UNDEFINED, _UNDEFINED) if undefined else (str(len(words)), _listed(words))
            body.append((model, WHO[gender], n, shown))
    names = ["Marked Personas", "Calibrated Marked Words"][:: -1 if method == "calibrated" else 1]
    return TitledTable(
        f"Words that {names[0]} marks and {names[1]} does not: {occupation}, gender in the prompt",
        _heads("Model", "Gender", "n", "words"),
        tuple(body),
        note="z > 1.96, by descending z; names and pronouns included. Women and men against each other,"
        f" non-binary people against both.{because(lists, 'n_marked')}",
        n_text=4,
        wide=frozenset({3}),
    )


def _overlap(tables: Tables, occupation: str | None) -> TitledTable:
    rows = where(tables.get("word_overlap", ()), occupation=occupation)
    body = []
    for (model, gender), of_gender in grouped(rows, "model", "gender").items():
        for place, where_marked in _PLACES.items():
            if words := [row["word"] for row in where(of_gender, place=place)]:
                body.append((model, WHO[gender], where_marked, str(len(words)), _listed(words)))
    return TitledTable(
        f"Marked words of {occupation} by model and gender",
        _heads("Model", "Gender", "marked in texts", "n", "words"),
        tuple(body),
        note="Calibrated Marked Words, z > 1.96, by descending z, names and pronouns included. Without:"
        " texts whose prompt names no gender, by inferred gender; with: texts whose prompt names it. GAS(P)"
        " shows the same four kinds in one cell, by bold, underlined, gray and plain letters.",
        n_text=5,
        wide=frozenset({4}),
    )


_PLACES = {
    "both": "without and with",
    "other-gender": "without, and with the other gender",
    "inferred-only": "without only",
    "requested-only": "with only",
}


# --- Table 11: representation ------------------------------------------------------------------------


def _shares(over_prompts: Sequence[Row]) -> Iterator[_Draft]:
    cells = {}
    for row in over_prompts:
        n = row["n_female"] + row["n_male"] + row["n_nonbinary"]
        se = _UNDEFINED if row["se"] is None else f"{100 * row['se']:.2f}"
        cells[row["occupation"], row["model"]] = (percent(row["female_share"]), se, str(n))
    labels = {occupation: (occupation,) for occupation in distinct(over_prompts, "occupation")}
    for models, part, title_end in _parts(distinct(over_prompts, "model")):
        shown_rows = [row for row in over_prompts if row["model"] in models]
        table = TitledTable(
            "Women in the texts of each occupation, with standard error",
            *_side_by_side(["Occupation"], labels, models, ("% women", "SE", "n"), cells),
            note="% women of the texts that name a gender, mean over the prompts, first batch; SE: its"
            " standard error in percentage points, the root of the sum of p(1 − p)/(m − 1) over prompts,"
            " divided by their number (0 where all texts agree: representation.csv has the Wilson interval);"
            " n: texts that name a gender (m over all prompts). GAS(P) divides the SD by the number of"
            " samples (200), not by the root of n: 14 to 22 times too small."
            + because(shown_rows, "female_share", "se"),
        )
        yield _Draft("Table 11", "share-of-women", table, part, title_end)


# --- Tables 13 and 14: tests -------------------------------------------------------------------------


def _srb_tests(tests: Sequence[Contrast]) -> Iterator[_Draft]:
    welch = where(tests, quantity="srb", kind="welch")
    rows = where(welch, contrast="genders")
    body = [(row.model_a, *_test_cells(row)) for row in rows]
    table = TitledTable(
        "Women's SRB against men's for each model, Welch's t-test",
        _heads("Model", *_TEST_HEADS, "n women", "n men"),
        tuple(body),
        note=f"Difference: women minus men, with its 95 % interval. {_TEST_NOTE} Both sides have the same"
        " occupations: tests.csv has the paired, Wilcoxon and permutation tests. GAS(P) prints only t and p;"
        " SRB depends on the vectors, so t is not comparable between vector models."
        + because(rows, "statistic"),
    )
    yield _Draft("Table 13", "srb-women-men", table)
    rows = where(welch, contrast="models")
    body = [(*row.models, WHO[str(row.gender)], *_test_cells(row)) for row in rows]
    table = TitledTable(
        "SRB of one model against another for each gender, Welch's t-test",
        _heads("Model a", "Model b", "SRB of", *_TEST_HEADS, "n a", "n b"),
        tuple(body),
        note=f"Difference: a minus b, with its 95 % interval. {_TEST_NOTE} GAS(P) prints t and p of"
        " one pair of models." + because(rows, "statistic"),
        n_text=3,
    )
    yield _Draft("Table 14", "srb-between-models", table)


_TEST_HEADS = ("difference", "95 %", "t", "df", "p", "p Holm", "g")
_TEST_NOTE = "Unit and n: occupations with a score; g: Hedges' g; p Holm: adjusted over this family of tests."


def _test_cells(row: Contrast) -> tuple[str, ...]:
    difference = (signed(row.estimate), span(row.ci_low, row.ci_high, signed=True))
    statistic = (number(row.statistic, 2), number(row.dof, 1))
    p_values = (p_value(row.p_value), p_value(row.p_adjusted))
    sizes = (signed(row.effect_size, 2), _count(row.n_a), _count(row.n_b))
    return (*difference, *statistic, *p_values, *sizes)


# --- Figure 5's table: clusters ----------------------------------------------------------------------


def _clusters(rows: Sequence[Row]) -> Iterator[_Draft]:
    of_models = [row for row in rows if row["model"] != "all"]
    kept = distinct((row for row in of_models if row["kept"]), "cluster")
    if not kept:
        return
    lead = ["Cluster", "Category"] if any(row["category"] for row in rows) else ["Cluster"]
    labels, cells = {}, {}
    for row in (row for row in rows if row["cluster"] in kept):
        labels[row["cluster"]] = (_listed(row["words"].split()), row["category"] or "")[: len(lead)]
        share, n = row["female_share"], row["n_occupations_female"] + row["n_occupations_male"]
        men = percent(None if share is None else 1 - share)
        cells[row["cluster"], row["model"]] = (percent(share), men, str(n))
    for chosen, part, title_end in _parts(distinct(of_models, "model")):
        table = TitledTable(
            "Clusters of words that one gender has in more occupations",
            *_side_by_side(lead, labels, chosen, ("% F", "% M", "#"), cells),
            note="Clusters kept in every model: at least three occupation-gender pairs, and one gender has at"
            " least 1.5 times as many as the other; clusters.csv says how often swapped lists do the same"
            " (null_kept). #: occupations in whose women's or men's list a word of the cluster is marked,"
            " counted once for each gender; % F, % M: how many of these are women's and men's. Gender not in"
            " the prompt. The released rule divides by the men's count (keep_rule = released); the colours"
            " are left out.",
            n_text=len(lead),
            wide=frozenset({0}),
        )
        yield _Draft("Figure 5", "clusters", table, part, title_end)


# --- what they share ---------------------------------------------------------------------------------


def _parts(models: Sequence[str]) -> Iterable[tuple[list[str], str, str]]:
    """Cut the models into parts of at most four: (models, end of the name, end of the title)."""
    n = -(-len(models) // PER_TABLE)
    for i in range(n):
        chosen = list(models[i * PER_TABLE : (i + 1) * PER_TABLE])
        yield (chosen, f"-part-{i + 1}", f", part {i + 1} of {n}") if n > 1 else (chosen, "", "")


def _heads(*texts: str) -> tuple[tuple[Heading, ...], ...]:
    return (tuple(Heading(text) for text in texts),)


def _side_by_side(
    lead: Sequence[str],
    labels: Mapping[Any, tuple[str, ...]],
    models: Sequence[str],
    of_model: tuple[str, ...],
    cells: Mapping[tuple[Any, str], tuple[str, ...]],
) -> tuple[tuple[tuple[Heading, ...], ...], tuple[tuple[str, ...], ...]]:
    """Lay out header and rows of a table with the same columns for each model; `cells` by row and model."""
    over = [*(Heading("") for _ in lead), *(Heading(model, len(of_model)) for model in models)]
    heads = map(Heading, (*lead, *(of_model * len(models))))
    nothing = (_UNDEFINED,) * len(of_model)
    rows = []
    for key, label in labels.items():
        line = list(label)
        for model in models:
            line += cells.get((key, model), nothing)
        rows.append(tuple(line))
    return (tuple(over), tuple(heads)), tuple(rows)


def _listed(words: Sequence[str]) -> str:
    """Join words with commas, as the paper prints them; of a very long list the first and how many follow."""
    if not words:
        return "(none)"
    ending = f", and {len(words) - MOST_WORDS} more" if len(words) > MOST_WORDS else ""
    shown = (word if len(word) <= MOST_LETTERS else f"{word[:MOST_LETTERS]}…" for word in words[:MOST_WORDS])
    return ", ".join(shown) + ending


def _count(value: int | None) -> str:
    return _UNDEFINED if value is None else str(value)
