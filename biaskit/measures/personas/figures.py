"""Draws what texts show: its kinds of figures under the questions that they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biaskit.common.wording import count
from biaskit.measures.personas.findings.words import BEYOND, surely_longer
from biaskit.report.figures import FigureKind, items
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import (
    BEHIND,
    INKED,
    Axis,
    Band,
    Bar,
    Dots,
    Entry,
    Panel,
    Plot,
    effects,
    point,
)
from biaskit.report.figures.style import FEMALE, MALE, Mark, cut, look_of, people
from biaskit.report.figures.view import View, all_marks, spread
from biaskit.report.figures.workforce import LEGEND, PER_FIGURE, spots_of, square
from biaskit.report.questions import QuestionId
from biaskit.stats.classification import CHANCE
from biaskit.tables.quantities import ALL_OCCUPATIONS
from biaskit.tables.query import Row, defined, distinct, first, grouped, mean_over_prompts, named, where
from biaskit.tables.reasons import HOLD_OUT, is_reason, parts_of_reason


def figures() -> Mapping[QuestionId, Sequence[FigureKind]]:
    """Name the kinds of figures in the order of the page."""
    return {"write": (scatter,), "how": (words, areas, scores)}


# --- who texts are about ----------------------------------------------------------------------------------


def scatter(view: View) -> Iterator[Figure]:
    """Draw each occupation; none if the first figure shows them all."""
    rows = defined(mean_over_prompts(view.rows("representation")), "workforce_share")
    if len(all_marks(view.content)) > 1 or len(distinct(rows, "occupation")) > items.MOST_ROWS:
        title = "Share of women in texts and in the workforce"
        yield from view.charts(rows, "scatter", title, _scatter, size=PER_FIGURE)


def _scatter(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    squares = []
    for model in models:
        of_model = where(rows, model=model)
        spots = spots_of(items.of_occupations(of_model), of_model, "occupation")
        squares.append(square(model, "texts", spots, view.marks[model]))
    caption = (
        f"Each point is an occupation{view.place('Figure 6')}: the share of women among texts with an "
        "inferred gender, over all prompts, against U.S. labour statistics, in percent; n = "
        f"{len(distinct(rows, 'occupation'))} occupations, each with "
        f"{spread(rows, 'n_texts')} texts; bars: Wilson 95\u00a0% intervals combined over "
        "prompts; occupations without such texts are left out. Table: representation, template all."
    )
    return Plot([Band(squares)], caption, LEGEND[:1])


# --- words ------------------------------------------------------------------------------------------------


MOST_PANELS = 6
MOST_WORDS, FEW_WORDS = 12, 6  # words of a panel where there are one or two, and where there are more
MOST_MODELS = 4
_LIST = ("model", "occupation", "origin", "gender", "against", "method")


def words(view: View) -> Iterator[Figure]:
    """Draw a figure for each of the first models whose lists are longer than chance."""
    lists = [row for row in view.rows("word_lists", method="calibrated") if row["against"] != "all"]
    marked = grouped(view.rows("marked_words", is_name=False, is_gender_word=False), *_LIST)
    several = len(view.models) > 1
    for i, model in enumerate(view.models[:MOST_MODELS], 1):
        of_model = defined(where(lists, model=model), *BEYOND)
        # Texts that name a gender unasked come first; there may be only texts that were asked to.
        of_model = where(of_model, origin="inferred") or of_model
        if strongest := _strongest(marked, surely_longer(of_model)):
            genders = " and ".join(people(g) for g in distinct([row for row, _ in strongest], "gender"))
            title = f"Words that mark {genders}{f' in the texts of {cut(model)}' if several else ''}"
            name = f"words{f'-{i}' if several else ''}"
            yield view.figure(name, title, _words(strongest, len(of_model)))


def _strongest(
    marked: Mapping[tuple[Any, ...], Sequence[Row]], lists: Sequence[Row]
) -> list[tuple[Row, list[Row]]]:
    """Pick the lists with the strongest words, as many of each gender, with their words by z."""
    pairs = []
    for row in lists:
        words_of_list = marked.get(tuple(row[name] for name in _LIST))
        if words_of_list:
            pairs.append((row, sorted(words_of_list, key=lambda word: (-word["z"], word["word"]))))
    pairs.sort(key=lambda pair: (-pair[1][0]["z"], str(pair[0]["occupation"])))
    genders = distinct([row for row, _ in pairs], "gender")
    each = max(1, MOST_PANELS // max(len(genders), 1))
    chosen: list[tuple[Row, list[Row]]] = []
    for gender in genders:
        of_gender = [pair for pair in pairs if pair[0]["gender"] == gender]
        chosen += of_gender[:each]
    # An occupation's lists are side by side.
    occupations = distinct([row for row, _ in chosen], "occupation")
    chosen.sort(key=lambda pair: (occupations.index(pair[0]["occupation"]), genders.index(pair[0]["gender"])))
    return chosen[:MOST_PANELS]


def _words(lists: Sequence[tuple[Row, list[Row]]], n_lists: int) -> Plot:
    most = MOST_WORDS if len(lists) < 3 else FEW_WORDS
    axis = Axis("z", 0, 1.06 * max(row["z"] for _, rows in lists for row in rows), whole=True)
    several = len({row["occupation"] for row, _ in lists}) > 1
    genders = distinct([row for row, _ in lists], "gender")
    panels = []
    for of_list, every in lists:
        rows = every[:most]
        who = people(of_list["gender"])
        title = f"{who}, {cut(of_list['occupation'])}" if several else who
        n_texts = f" of {of_list['n_target']:,}" if of_list["n_target"] is not None else ""
        beside = [f"{row['documents_target']:,}{n_texts} texts" for row in rows]
        bars = [Bar([(row["z"], *look_of(of_list["gender"], genders))]) for row in rows]
        labels = [str(row["word"]) for row in rows]
        panels.append(Panel(labels, axis, (), bars, title, beside))
    caption = (
        f"The strongest words, without gendered words and names; n = {len(lists)} of "
        f"{count(n_lists, 'list')}, of those longer than expected by chance. z: how much more a gender's "
        "texts use a word (calibrated log-odds in units of their standard deviation, no interval; at 1.96 a "
        "word is marked). Right: how many of that gender's texts use it. Tables: marked_words, word_lists."
    )
    return Plot([Band(panels)], caption)


# --- areas under the curve --------------------------------------------------------------------------------


CELLS = {
    ("inferred", "inferred"): "gender not in the prompt",
    ("requested", "requested"): "gender in the prompt",
    ("requested", "inferred"): "trained with, tested without",
    ("inferred", "requested"): "trained without, tested with",
}
"""(trained on, tested on) → label of the row; with, without: the gender in the prompt."""


def areas(view: View) -> Iterator[Figure]:
    """Draw areas under the curve of every model beside 0.5."""
    rows = view.rows("text_transfer")
    if defined(rows, "auc"):
        yield from view.charts(rows, "transfer", "Women's and men's texts: held-out AUC", _areas)


def _areas(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    means = where(rows, occupation=ALL_OCCUPATIONS)
    single = [row for row in defined(rows, "auc") if row["occupation"] != ALL_OCCUPATIONS]
    cells = [cell for cell in CELLS if defined(where(rows, **_scope(cell)), "auc")]
    dots = []
    for model in models:
        points, behind = [], []
        for cell in cells:
            scope = {"model": model, **_scope(cell)}
            points.append(point(first(means, **scope), ("auc", "ci_low", "ci_high")))
            behind.append([row["auc"] for row in where(single, **scope)])
        dots.append(Dots(view.marks[model], points, behind=behind))
    n = len(distinct(single, "occupation")) or 1  # texts without an occupation have the mean alone
    control = any(is_reason(part, HOLD_OUT) for row in rows for part in parts_of_reason(row["reason"]))
    caption = (
        "How often a classifier trained on other texts, without gendered words and names, scores a text "
        "about a woman higher than one about a man of the same prompt (0 to 1; dotted line: chance, 0.5). "
        f"With, without: the gender in the prompt. n = {count(n, 'occupation')}; points: mean over "
        "occupations, bars: 95\u00a0% intervals over occupations. "
        f"{'Positive control (hold-out), not a result. ' if control else ''}Tables: text_transfer, tests "
        "(auc_inferred, auc_requested, auc_transfer)."
    )
    axis = Axis("AUC", 0, 1, line=CHANCE, ticks=(0, 0.25, 0.5, 0.75, 1))
    panel = Panel([CELLS[cell] for cell in cells], axis, dots, pitch=0.2 + 0.045 * len(models))
    behind_entry = Entry("single occupations", BEHIND)
    return Plot([Band([panel])], caption, [*view.entries(models), behind_entry])


def _scope(cell: tuple[str, str]) -> dict[str, str]:
    return {"trained_on": cell[0], "tested_on": cell[1]}


# --- scores -----------------------------------------------------------------------------------------------


GENDERS = {"female": ("women", Mark(FEMALE, "o")), "male": ("men", Mark(MALE, "s"))}
SURE = 0.05  # a score with a smaller p-value is outside its null
SCORES_PER_FIGURE = 4


def scores(view: View) -> Iterator[Figure]:
    """Draw a figure per vector model, since their scores do not compare (methods/srb#vector-models)."""
    rows = defined(view.rows("srb"), "srb")
    vectors = named(rows, "vectors")
    for i, vector in enumerate(vectors or [""], 1):
        several = len(vectors) > 1
        # Lists without a score have no vectors: they are shown where there is one vector model.
        of_vectors = where(view.rows("srb"), vectors=vector) if several else view.rows("srb")
        name, title = f"srb-vectors-{i}" if several else "srb", "SRB scores"
        if several:
            title += f", vectors {cut(vector)}"
        if rows:
            yield from view.charts(of_vectors, name, title, _scores, size=SCORES_PER_FIGURE)


def _scores(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    # The paper's figure has raw scores; everywhere else gender words are left out.
    place = view.place("Figure 3")
    raw = bool(place) or not defined(rows, "srb_content")
    score, p_value = ("srb", "p_value") if raw else ("srb_content", "srb_content_p_value")
    workforce = {row["occupation"]: row["workforce_share"] for row in view.rows("representation")}
    order = sorted(map(str, distinct(rows, "occupation")), key=lambda name: -(workforce.get(name) or -1.0))
    axis = effects([row[score] for row in defined(rows, score)], 0.1, "closer to women · men", unit="")
    panels = []
    for model in models:
        dots = []
        for gender, (_, mark) in GENDERS.items():
            row_of = {str(row["occupation"]): row for row in where(rows, model=model, gender=gender)}
            points = []
            for row in map(row_of.get, order):
                sure = row is not None and row[p_value] is not None and row[p_value] < SURE
                points.append(point(row, (score,), fill="" if sure else "none"))
            dots.append(Dots(mark, points))
        panels.append(Panel(order, axis, dots, title=model if len(view.models) > 1 else ""))
    beyond = ", without gendered words," if not raw else ""
    vectors = " and ".join(map(cut, named(rows, "vectors"))) or "–"
    caption = (
        f"Subset Representational Bias score{place} of words marked for women and for men{beyond} "
        f"in texts whose prompt names no gender; n = {len(order)} occupations, {len(defined(rows, score))} "
        f"of {2 * len(order) * len(models)} scores defined; unit: difference of distances (−2 to 2), left: "
        "closer to requested women, right: to requested men; no interval; full: outside its permutation "
        f"baseline (p < .05); vectors {vectors}. Raw scores grow with the training of the vectors: compare "
        "only within one vector model. Table: srb."
    )
    legend = [Entry(f"words of {who}", mark) for who, mark in GENDERS.values()]
    legend += [Entry("within its permutation baseline", INKED, "none")]
    return Plot([Band(panels)], caption, legend)
