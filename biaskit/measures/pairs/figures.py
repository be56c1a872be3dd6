"""Draw pairs: a row for each stereotype, a panel for each language (methods/probabilities#pairs)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from biaskit.common.wording import count
from biaskit.measurement import words
from biaskit.records import ALL
from biaskit.report.figures import FigureKind
from biaskit.report.figures.differences import models
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Band, Dots, Panel, Plot, point, shares
from biaskit.report.figures.view import View, portions
from biaskit.report.questions import QuestionId
from biaskit.tables.query import Row, among, apart_from, distinct, total, where

MOST_ROWS, MOST_PANELS = 44, 5
_SHARE = ("female_share", "ci_low", "ci_high")
ARROWS = {"female": "→", "male": "←"}


def figures() -> Mapping[QuestionId, Sequence[FigureKind]]:
    """Name the kinds of figures in the order of the page."""
    return {"say": (pairs,), "models": (models,)}


def pairs(view: View) -> Iterator[Figure]:
    """Draw the share of the feminine sentence by language, then over all, in as many figures as they need."""
    of_languages = apart_from(view.rows("pair_groups"), language=ALL)
    for number, place, some in portions(distinct(of_languages, "language"), MOST_PANELS):
        rows = among(of_languages, "language", some)
        title = f"Share of the feminine sentence by language{place}"
        yield from view.charts(rows, f"pairs-languages{number}", title, _pairs)
    rows = view.rows("pair_groups", language=ALL)
    yield from view.charts(rows, "pairs", "Share of the feminine sentence", _pairs)


def _pairs(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    # More stereotypes than fit stand in the table; a list without any has one row.
    every = distinct(apart_from(rows, stereotype=ALL), "stereotype")
    names = every[:MOST_ROWS] or [ALL]
    left_out = f", the first {MOST_ROWS} of {len(every)} stereotypes" if len(every) > MOST_ROWS else ""
    directions: defaultdict[str, set[str]] = defaultdict(set)
    for row in view.rows("pair_scores"):
        directions[str(row["stereotype"])].add(row["direction"] or "")
    arrows = []
    for name in names:  # none where pairs of a stereotype expect different sides
        expects, *others = directions.get(name, {""})
        arrows.append("" if others else ARROWS.get(expects, ""))
    languages = distinct(rows, "language")
    axis = shares("feminine sentence", parity=True)
    axis = axis if len(languages) == 1 else replace(axis, ticks=(0, 0.5, 1))  # three fit a narrow panel
    row_at = {(row["language"], row["model"], row["stereotype"]): row for row in rows}
    panels = []
    for language in languages:
        dots = []
        for model in models:
            found = [row_at.get((language, model, name)) for name in names]
            points = [None if row is None else point(row, _SHARE) for row in found]
            dots.append(Dots(view.marks[model], points))
        title = "" if language == ALL else str(language) or "(none)"
        beside = arrows if any(arrows) else ()
        panels.append(Panel(names, axis, dots, title=title, beside=beside, heading="expected"))
    n = total(where(rows, model=models[0], stereotype=ALL), "n_pairs")
    caption = words("pairs")["captions"]["pairs"].format(count(n, "pair"), left_out)
    return Plot([Band(panels)], caption, view.entries(models))
