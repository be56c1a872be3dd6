"""What is said beside the listed words: the most probable next tokens (docs/methods.md#next-tokens)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.figures import dots
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import asked, cut
from biaskit.report.figures.sheet import WIDTH, Sheet
from biaskit.report.figures.style import GRID
from biaskit.report.figures.view import Drawing, View, told
from biaskit.report.said_next import EVERY_GROUP, the_rest
from biaskit.tables.query import Row, distinct, where, without_instruction
from biaskit.wording import percent

TITLE = "What is said next"
LISTED = "a listed word"
MOST = 7
"""Tokens of a figure beside the listed words."""


def said_next(view: View) -> Iterator[Figure | Missing]:
    """A figure for each bias type; none where rows keep no tokens."""
    rows = where(without_instruction(view.rows("probe_next")), job_group=EVERY_GROUP, setting="plain")
    for bias_type in distinct(rows, "bias_type"):
        own = where(rows, bias_type=bias_type)
        yield from view.charts(own, f"next-{bias_type}", f"{TITLE}, {asked(bias_type)}", "", _drawing)


def _drawing(view: View, rows: Sequence[Row], models: Sequence[str]) -> Drawing:
    of_models = {model: dict(the_rest(where(rows, model=model), most=99, least=0.0)) for model in models}
    means = {
        name: sum(said.get(name, 0.0) for said in of_models.values())
        for name in {name for said in of_models.values() for name in said}
    }
    names = sorted(means, key=lambda name: (-means[name], name))[:MOST]
    for model, said in of_models.items():
        said[LISTED] = _coverage(view, model, rows[0]["bias_type"])
    labels = [LISTED, *(cut(name, 24) for name in names)]
    pitch, left = max(0.2, dots.row_height(len(models))), dots.label_width(labels)
    note = "Mean probability at the prompts, over all jobs and templates; without an instruction."
    sheet = Sheet(len(labels) * pitch + 0.5, legend=view.entries(models) if len(models) > 1 else [])
    dots.row_labels(sheet, labels, 0.08, pitch, left)
    axes = sheet.axes(left + 0.12, 0.08, WIDTH - left - 0.2 - dots.GUTTER, len(labels) * pitch)
    series = [
        dots.series_of(view.marks[model], [{"x": said.get(name)} for name in [LISTED, *names]], ("x",))
        for model, said in of_models.items()
    ]
    dots.dot_panel(axes, series, len(labels), pitch)
    highest = max((value for said in of_models.values() for value in said.values() if value), default=0.1)
    axes.set_xlim(0, min(1.0, 1.1 * highest))
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.set_xlabel("probability", labelpad=2)
    caption = (
        "The words of the study hold the first row; below it stands what is said instead, the most probable"
        f" first. {note} Table: probe_next (beyond)."
    )
    sentences = []
    for model, said in of_models.items():
        shares = [f"{name} {percent(said[name])} %" for name in [LISTED, *names] if name in said]
        sentences.append(f"{cut(model)}: {', '.join(shares)}.")
    return Drawing(sheet, caption, f"Dot plot of {len(labels)} rows. {told(sentences, 'probe_next')}")


def _coverage(view: View, model: str, bias_type: str) -> float:
    """The mean over job groups of the listed words' probability, each job counted once."""
    groups = without_instruction(view.rows("probe_groups", model=model, bias_type=bias_type, setting="plain"))
    known = {row["job_group"]: row for row in groups if row["coverage"] is not None}.values()
    n = sum(row["n_jobs"] for row in known)
    return sum(row["coverage"] * row["n_jobs"] for row in known) / n if n else 0.0
