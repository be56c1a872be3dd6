"""Where the spread of cells comes from: jobs, templates and the rest.

See docs/methods.md#variance-components.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from biaskit.report.figures.dots import panel_title, row_labels, share_axis
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import clean, cut, people, shorten
from biaskit.report.figures.probe import job_groups_of, label_width, plain
from biaskit.report.figures.sheet import MARGIN, WIDTH, Entry, Sheet
from biaskit.report.figures.style import HATCHES, INK
from biaskit.report.figures.view import Drawing, View, charts, number, short, told
from biaskit.tables.query import Row, distinct, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SOURCES = (
    ("var_job", "jobs", "#b8a37a"),
    ("var_template", "templates", "#7c9cb5"),
    ("var_residual", "residual", "#e0e0e0"),
)


def variance(view: View) -> Iterator[Figure | Missing]:
    """The part of the variance of a share that lies between jobs, templates, and in the rest."""
    first = view.part.contrast[0]
    rows = where(plain(view, "probe_variance"), gender=first)
    title = f"Where the share of {people(first)} varies ({view.heading})"
    reason = "There is no table probe_variance: it takes several jobs and templates."
    yield from charts(view, rows, "variance", title, reason, _variance, size=10)


def _variance(view: View, models: Sequence[str]) -> Drawing:
    first = view.part.contrast[0]
    rows = [r for r in plain(view, "probe_variance") if r["gender"] == first and r["model"] in models]
    bias_types = distinct(rows, "bias_type")
    lines = list(dict.fromkeys((str(r["model"]), str(r["job_group"])) for r in rows))
    job_groups = job_groups_of(view)
    lines.sort(key=lambda line: (models.index(line[0]), job_groups.index(line[1])))
    groups_ = {str(r["job_group"]): r["n_jobs"] for r in plain(view, "probe_groups")}
    n = ", ".join(f"{count} {cut(group)}" for group, count in groups_.items())
    templates = " and ".join(
        str(n) for n in dict.fromkeys(r["n_templates"] for r in plain(view, "probe_groups"))
    )
    note = (
        f"n = {n} jobs × {templates} templates; parts of the variance of the cells' shares (0 to 1, no "
        "interval); SD: square root of the whole variance (–: not measured)."
    )
    legend = [Entry(name, patch=(colour, HATCHES[i])) for i, (_, name, colour) in enumerate(_SOURCES)]
    pitch = 0.2
    sheet = Sheet(len(lines) * pitch + 0.62, legend=legend, note=note)
    labels = [" · ".join(clean(text) for text in line if text) for line in lines]
    left = label_width(labels, 2.3)
    row_labels(sheet, [shorten(label, left - MARGIN) for label in labels], 0.3, pitch, left)
    width = (WIDTH - left - 0.1) / len(bias_types) - 0.5
    said = []
    for i, bias_type in enumerate(bias_types):
        x = left + 0.1 + i * (width + 0.5)
        panel_title(sheet, x, 0.12, clean(bias_type))
        sheet.text(x + width + 0.06, 0.12, "SD")
        axes = sheet.axes(x, 0.3, width, len(lines) * pitch)
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.set_yticks([])
        share_axis(axes, "part of the variance", parity=False)
        for y, (model, group) in enumerate(lines):
            own = [
                r for r in rows if (r["model"], r["job_group"], r["bias_type"]) == (model, group, bias_type)
            ]
            said.append(_variance_bar(sheet, axes, own, y, (x + width + 0.06, 0.3 + (y + 0.5) * pitch)))
    caption = f"{note} Negative components are 0. Instruction none. Table: probe_variance."
    return Drawing(sheet, caption, f"Stacked bars. {told(said, 'probe_variance')}")


def _variance_bar(sheet: Sheet, axes: Axes, own: Sequence[Row], y: int, beside: tuple[float, float]) -> str:
    parts = [number(own[0][column]) for column, _, _ in _SOURCES] if own else [number(None)]
    total = sum(parts)
    if not total > 0:
        sheet.text(*beside, "0" if total == 0 else "–")
        return ""
    start = 0.0
    for i, (part, (_, _, colour)) in enumerate(zip(parts, _SOURCES, strict=True)):
        axes.barh(
            y,
            part / total,
            0.62,
            left=start,
            facecolor=colour,
            edgecolor=INK,
            linewidth=0.5,
            hatch=HATCHES[i],
        )
        start += part / total
    sheet.text(*beside, f"{total**0.5:.2f}".removeprefix("0"))
    row = own[0]
    said = ", ".join(f"{name} {short(p / total)}" for p, (_, name, _) in zip(parts, _SOURCES, strict=True))
    return f"{cut(row['model'])}, {cut(row['bias_type'])}, {cut(row['job_group'])}: {said}."
