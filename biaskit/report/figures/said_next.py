"""What is said beside the listed words: the most probable next tokens (docs/methods.md#next-tokens)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Band, Dots, Panel, Plot, Point, amounts, ends_of
from biaskit.report.figures.style import asked
from biaskit.report.figures.view import View
from biaskit.report.said_next import EVERY_GROUP, the_rest
from biaskit.tables.query import Row, defined, distinct, where, without_instruction

LISTED = "a listed word"
MOST = 7
"""Tokens of a figure beside the listed words."""


def said_next(view: View) -> Iterator[Figure]:
    """A figure with a panel for each bias type; none where rows keep no tokens."""
    rows = where(without_instruction(view.rows("probe_next")), job_group=EVERY_GROUP, setting="plain")
    yield from view.charts(rows, "next", "What is said next", _next)


def _next(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    panels = []
    for bias_type in distinct(rows, "bias_type"):
        of_models = {}
        for model in models:
            if own := where(rows, bias_type=bias_type, model=model):
                # The mean over job groups of the listed words' probability, each job counted once.
                of_model = view.rows("probe_groups", model=model, bias_type=bias_type, setting="plain")
                known = defined(without_instruction(of_model), "coverage")
                by_group = {row["job_group"]: row for row in known}.values()
                n_jobs = sum(row["n_jobs"] for row in by_group)
                held = sum(row["coverage"] * row["n_jobs"] for row in by_group)
                listed = held / n_jobs if n_jobs else 0.0
                of_models[model] = {LISTED: listed, **dict(the_rest(own, most=99, least=0.0))}
        sums: dict[str, float] = {}
        for tokens in of_models.values():
            for name, value in tokens.items():
                sums[name] = sums.get(name, 0.0) + value
        labels = [LISTED, *sorted(sums.keys() - {LISTED}, key=lambda name: (-sums[name], name))[:MOST]]
        dots = []
        for model, tokens in of_models.items():
            points = [Point(tokens[name]) if name in tokens else None for name in labels]
            dots.append(Dots(view.marks[model], points))
        panels.append(
            Panel(labels, amounts(ends_of(dots), 0.1, "probability", "%"), dots, title=asked(bias_type))
        )
    caption = (
        "The words of the study hold the first row; below it stands what is said instead, the most probable "
        "first. Mean probability in percent at the prompts, over all jobs and templates, without an "
        "instruction. Table: probe_next (beyond)."
    )
    return Plot([Band(panels)], caption, view.entries(models))
