"""What is said beside the listed words: the most probable next tokens (docs/methods.md#next-tokens)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.figures import panels, scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, cut
from biaskit.report.figures.panels import Band, Dots, Panel, Point
from biaskit.report.figures.view import Plot, View, told
from biaskit.report.said_next import EVERY_GROUP, the_rest
from biaskit.tables.query import Row, distinct, where, without_instruction
from biaskit.wording import percent

LISTED = "a listed word"
MOST = 7
"""Tokens of a figure beside the listed words."""


def said_next(view: View) -> Iterator[Figure]:
    """A figure with a panel for each bias type; none where rows keep no tokens."""
    rows = where(without_instruction(view.rows("probe_next")), job_group=EVERY_GROUP, setting="plain")
    yield from view.charts(rows, "next", "What is said next", _next)


def _next(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    shown, said = [], []
    for bias_type in distinct(rows, "bias_type"):
        of = _of_models(view, where(rows, bias_type=bias_type), models)
        means = {name: sum(own.get(name, 0.0) for own in of.values()) for own in of.values() for name in own}
        labels = [LISTED, *sorted(means.keys() - {LISTED}, key=lambda name: (-means[name], name))[:MOST]]
        dots = []
        for model, own in of.items():
            tips = {name: f"{cut(model)}, {cut(name)}: {percent(own[name])} %" for name in own}
            points = [Point(own[name], tip=tips[name]) if name in own else None for name in labels]
            dots.append(Dots(view.marks[model], points))
            shares = ", ".join(f"{cut(name)} {percent(own[name])} %" for name in labels if name in own)
            said.append(f"{cut(model)}, {asked(bias_type)}: {shares}.")
        scale = scales.amounts(panels.ends_of(dots), "probability", least=0.1, most=1.0)
        shown.append(Panel(labels, scale, dots, title=asked(bias_type), pitch=0.2 + 0.02 * len(models)))
    caption = (
        "The words of the study hold the first row; below it stands what is said instead, the most probable "
        "first. Mean probability in percent at the prompts, over all jobs and templates, without an "
        "instruction. Table: probe_next (beyond)."
    )
    return Plot([Band(shown)], caption, f"Dot plots. {told(said, 'probe_next')}", view.entries(models))


def _of_models(view: View, rows: Sequence[Row], models: Sequence[str]) -> dict[str, dict[str, float]]:
    found = {}
    for model in models:
        if own := where(rows, model=model):
            rest = dict(the_rest(own, most=99, least=0.0))
            found[model] = {LISTED: _coverage(view, model, own[0]["bias_type"]), **rest}
    return found


def _coverage(view: View, model: str, bias_type: str) -> float:
    """The mean over job groups of the listed words' probability, each job counted once."""
    groups = without_instruction(view.rows("probe_groups", model=model, bias_type=bias_type, setting="plain"))
    known = {row["job_group"]: row for row in groups if row["coverage"] is not None}.values()
    n = sum(row["n_jobs"] for row in known)
    return sum(row["coverage"] * row["n_jobs"] for row in known) / n if n else 0.0
