"""Draws what texts show: its kinds of figures under the questions that they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from biaskit.common.plain import group_by
from biaskit.common.wording import count
from biaskit.measurement import words as words_of_kind
from biaskit.measures.personas.findings.words import BEYOND, LIST, leading, surely_longer
from biaskit.records import ALL, UNNAMED
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
from biaskit.tables.query import (
    Row,
    apart_from,
    by_labels,
    column,
    defined,
    distinct,
    first,
    grouped,
    lookup,
    mean_over_prompts,
    named,
    where,
)
from biaskit.tables.reasons import are_held_out

_CAPTIONS: Mapping[str, str] = words_of_kind("personas")["captions"]


def figures() -> Mapping[QuestionId, Sequence[FigureKind]]:
    """Name the kinds of figures in the order of the page."""
    return {"write": (scatter,), "how": (words, areas, scores)}


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
    n, texts = len(distinct(rows, "occupation")), spread(rows, "n_texts")
    labels = by_labels(rows)
    bars = _CAPTIONS["by_labels"].format(labels) if labels else _CAPTIONS["by_rules"]
    caption = _CAPTIONS["scatter"].format(place=view.place("Figure 6"), n=n, texts=texts, bars=bars)
    return Plot([Band(squares)], caption, LEGEND[:1])


MOST_PANELS = 6
MOST_WORDS, FEW_WORDS = 12, 6  # words of a panel where there are one or two, and where there are more
MOST_MODELS = 4


def words(view: View) -> Iterator[Figure]:
    """Draw a figure for each of the first models whose lists are longer than chance."""
    lists = apart_from(view.rows("word_lists", method="calibrated"), against=ALL)
    marked = grouped(view.rows("marked_words", is_name=False, is_gender_word=False), *LIST)
    several = len(view.models) > 1
    for i, model in enumerate(view.models[:MOST_MODELS], 1):
        of_model = defined(where(lists, model=model), *BEYOND)
        # Texts that name a gender unasked come first; there may be only texts that were asked to.
        of_model = leading(where(of_model, origin="inferred") or of_model)
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
        if words_of_list := marked.get(itemgetter(*LIST)(row)):
            pairs.append((row, sorted(words_of_list, key=lambda word: (-word["z"], word["word"]))))
    pairs.sort(key=lambda pair: (-pair[1][0]["z"], str(pair[0]["occupation"])))
    by_gender = group_by(pairs, lambda pair: pair[0]["gender"])
    genders, each = list(by_gender), max(1, MOST_PANELS // max(len(by_gender), 1))
    chosen: list[tuple[Row, list[Row]]] = []
    for of_gender in by_gender.values():
        chosen += of_gender[:each]
    # An occupation's lists are side by side.
    occupations = distinct([row for row, _ in chosen], "occupation")
    chosen.sort(key=lambda pair: (occupations.index(pair[0]["occupation"]), genders.index(pair[0]["gender"])))
    return chosen[:MOST_PANELS]


def _words(lists: Sequence[tuple[Row, list[Row]]], n_lists: int) -> Plot:
    most = MOST_WORDS if len(lists) < 3 else FEW_WORDS
    # The strongest word of a list is its first.
    axis = Axis("z", 0, 1.06 * max(of_list[0]["z"] for _, of_list in lists), whole=True)
    shown = [row for row, _ in lists]
    several, genders = len(distinct(shown, "occupation")) > 1, distinct(shown, "gender")
    panels = []
    for of_list, every in lists:
        rows = every[:most]
        who = people(of_list["gender"])
        title = f"{who}, {cut(of_list['occupation'])}" if several else who
        n_texts = f" of {of_list['n_target']:,}" if of_list["n_target"] is not None else ""
        beside = [f"{row['documents_target']:,}{n_texts} texts" for row in rows]
        bars = [Bar([(row["z"], *look_of(of_list["gender"], genders))]) for row in rows]
        panels.append(Panel(column(rows, "word"), axis, (), bars, title, beside))
    return Plot([Band(panels)], _CAPTIONS["words"].format(len(lists), count(n_lists, "list")))


CELLS = {
    ("inferred", "inferred"): "gender not in the prompt",
    ("requested", "requested"): "gender in the prompt",
    ("requested", "inferred"): "train with, test without",
    ("inferred", "requested"): "train without, test with",
}
"""(trained on, tested on) → label of the row; with, without: the gender in the prompt."""


def areas(view: View) -> Iterator[Figure]:
    """Draw areas under the curve of every model beside 0.5."""
    rows = view.rows("text_transfer")
    if defined(rows, "auc"):
        yield from view.charts(rows, "transfer", "Women's and men's texts: held-out AUC", _areas)


def _areas(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    means = where(rows, occupation=ALL)
    single = apart_from(defined(rows, "auc"), occupation=ALL)
    cells = [cell for cell in CELLS if defined(where(rows, **_scope(cell)), "auc")]
    dots = []
    for model in models:
        points, behind = [], []
        for cell in cells:
            scope = {"model": model, **_scope(cell)}
            points.append(point(first(means, **scope), ("auc", "ci_low", "ci_high")))
            behind.append(column(where(single, **scope), "auc"))
        dots.append(Dots(view.marks[model], points, behind=behind))
    control = _CAPTIONS["control"] * are_held_out(rows)
    jobs, over = distinct(single, "occupation"), _CAPTIONS["over_occupations"]
    if len(jobs) == 1 and jobs != [UNNAMED]:
        over = _CAPTIONS["of_one"].format(cut(jobs[0]))
    elif not defined(means, "ci_low"):
        over = _CAPTIONS["no_interval"]
    elif any(row.get("se") for row in means):
        over = _CAPTIONS["over_texts"]
    across = _CAPTIONS["with_without"] * any(trained_on != tested_on for trained_on, tested_on in cells)
    caption = _CAPTIONS["areas"].format(across, count(max(len(jobs), 1), "occupation"), over, control)
    axis = Axis("AUC", 0, 1, line=CHANCE, ticks=(0, 0.25, 0.5, 0.75, 1))
    panel = Panel([CELLS[cell] for cell in cells], axis, dots, pitch=0.2 + 0.045 * len(models))
    behind_entries = [Entry("single occupations", BEHIND)] if len(jobs) > 1 else []
    return Plot([Band([panel])], caption, [*view.entries(models), *behind_entries])


def _scope(cell: tuple[str, str]) -> dict[str, str]:
    return {"trained_on": cell[0], "tested_on": cell[1]}


GENDERS = {"female": ("women", Mark(FEMALE, "o")), "male": ("men", Mark(MALE, "s"))}
SURE = 0.05  # a score with a smaller p-value is outside its null
SCORES_PER_FIGURE = 4


def scores(view: View) -> Iterator[Figure]:
    """Draw a figure per vector model, since their scores do not compare (methods/srb#vector-models)."""
    rows = view.rows("srb")
    vectors = named(defined(rows, "srb"), "vectors")
    if len(vectors) > 1:
        for i, vector in enumerate(vectors, 1):
            title, of_vectors = f"SRB scores, vectors {cut(vector)}", where(rows, vectors=vector)
            yield from view.charts(of_vectors, f"srb-vectors-{i}", title, _scores, size=SCORES_PER_FIGURE)
    elif defined(rows, "srb"):  # lists without a score, which have no vectors, are shown too
        yield from view.charts(rows, "srb", "SRB scores", _scores, size=SCORES_PER_FIGURE)


def _scores(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    # The paper's figure has raw scores; everywhere else gender words are left out.
    place = view.place("Figure 3")
    raw = bool(place) or not defined(rows, "srb_content")
    score, p_value = ("srb", "p_value") if raw else ("srb_content", "srb_content_p_value")
    workforce = lookup(view.rows("representation"), "occupation", "workforce_share")
    order = sorted(distinct(rows, "occupation"), key=lambda name: -(workforce.get(name) or -1.0))
    axis = effects(column(defined(rows, score), score), 0.1, "← closer to women | closer to men →", unit="")
    rows_of = grouped(rows, "model", "gender", "occupation")
    panels = []
    for model in models:
        dots = []
        for gender, (_, mark) in GENDERS.items():
            points = []
            for name in order:
                row = first(rows_of.get((model, gender, name), ()))
                sure = row is not None and row[p_value] is not None and row[p_value] < SURE
                points.append(point(row, (score,), fill="" if sure else "none"))
            dots.append(Dots(mark, points))
        panels.append(Panel(order, axis, dots, title=model if len(view.models) > 1 else ""))
    said: dict[str, object] = {"place": place, "beyond": "" if raw else _CAPTIONS["content"]}
    said |= {"n_defined": len(defined(rows, score)), "n_scores": 2 * len(order) * len(models)}
    vectors = " and ".join(map(cut, named(rows, "vectors"))) or "–"
    n = count(len(order), "occupation")
    caption = _CAPTIONS["scores"].format(**said, n=n, vectors=vectors)
    legend = [Entry(f"words of {who}", mark) for who, mark in GENDERS.values()]
    legend += [Entry("within its permutation baseline", INKED, "none")]
    return Plot([Band(panels)], caption, legend)
