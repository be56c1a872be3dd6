"""How models differ: a forest, or a grid of verdicts for many pairs (docs/methods.md#verdicts)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from biaskit.report.figures import dots, forest
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.figures.lettering import cut, people, shorten
from biaskit.report.figures.sheet import WIDTH, Entry, Sheet, marker_style
from biaskit.report.figures.style import GRID, INK, Mark
from biaskit.report.figures.view import Drawing, View, short
from biaskit.stats.verdict import Verdict, interval_side, verdict_of
from biaskit.tables.query import Row, first, in_main_setting, where
from biaskit.wording import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PAIRS = 15
"""Pairs of models that one forest takes; more become a grid of verdicts."""
Shape = Literal["different", "equivalent", "both", "unclear", "unidentified", "unmeasured"]
SHAPES: Mapping[Shape, tuple[Mark, bool, str]] = {
    "different": (Mark("#d55e00", "o"), False, "different"),
    "equivalent": (Mark("#0072b2", "s"), False, "equivalent"),
    "both": (Mark("#0072b2", "D"), True, "equivalent, yet not 0"),
    "unclear": (Mark("#7a7a7a", "o"), True, "no clear difference"),
    "unidentified": (Mark("#7a7a7a", "s"), True, "not identified (bounds too wide) or no verdict"),
}
"""Marker, whether it is hollow, and its name in the legend."""
_SHAPE_OF: Mapping[Verdict, Shape] = {
    "higher": "different",
    "lower": "different",
    "equivalent": "equivalent",
    "no-clear-difference": "unclear",
    "not-identified": "unidentified",
    "no-verdict": "unidentified",
    "not-measured": "unmeasured",
}


def shape_of(row: Row | None) -> Shape:
    """How a difference is drawn: by its verdict; equivalent with an interval that excludes 0 is "both"."""
    shape = _SHAPE_OF[verdict_of(row)]
    return "both" if row is not None and shape == "equivalent" and interval_side(row) else shape


def models(view: View) -> Iterator[Figure | Missing]:
    """Differences between models without an instruction: a forest, or a grid of verdicts for many pairs."""
    title = "How the models differ"
    rows = [
        row
        for row in forest.crossed(view.content.between.get("tests", ()), "models")
        if _is_of(view, row)
        and (str(row["instruction_a"]), str(row["instruction_b"])) == ("0", "0")
        and row["gender"] in view.part.contrast
    ]
    if not rows:
        reason = "Fewer than two models were asked this study in one prompt form, or they were not compared."
        yield view.missing("models", title, reason)
        return
    rows = in_main_setting(rows)
    for name, more, columns in forest.in_figures(view, rows, "models"):
        own = [row for row in rows if (row["bias_type"], row["group_a"]) in columns]
        n_pairs = len({(row["model_a"], row["model_b"]) for row in own})
        draw = _forest if n_pairs <= MOST_PAIRS else _verdicts
        yield view.finished(name, title, draw(view, own, columns), more)


def _is_of(view: View, row: Row) -> bool:
    """Whether a row compares models of this part, or groups of them: these have names of their own."""
    sides = {str(row["model_a"]), str(row["model_b"])}
    known = {model.label for part in view.content.parts for model in part.models}
    alone = sum(part.engine == "probe" for part in view.content.parts) == 1
    return sides <= set(view.models) or (alone and not sides & known)


def _about(rows: Sequence[Row]) -> tuple[str, str]:
    """The margin's words, and the note that every figure of models carries."""
    margins = sorted({row["margin"] for row in rows if row["margin"] is not None})
    within = f"within ±{margins[0]:g}" if len(margins) == 1 else "within the margin"
    return within, (
        f"n = {forest.n_jobs_of(rows)} common jobs per group; differences of shares (−1 to 1); "
        f"95\u00a0% intervals over jobs and templates; equivalent: the 90\u00a0% interval lies {within}."
    )


def _verdict_legend(rows: Sequence[Row], within: str) -> list[Entry]:
    present = {shape_of(row) for row in rows}
    entries = [
        Entry(f"{text} {within}" if key == "equivalent" else text, mark, hollow)
        for key, (mark, hollow, text) in SHAPES.items()
        if key in present
    ]
    return entries + ([dots.UNDEFINED] if "unmeasured" in present else [])


def _forest(view: View, rows: Sequence[Row], columns: Sequence[tuple[str, str]]) -> Drawing:
    pairs = list(dict.fromkeys((str(r["model_a"]), str(r["model_b"])) for r in rows))
    genders = forest.genders_of(view, rows)
    within, note = _about(rows)
    between_jobs = _jobs_between(view, pairs, str(rows[0]["setting"]))
    ends = forest.ends_of(rows, between_jobs.values())
    margin = next((row["margin"] for row in rows if row["margin"] is not None), None)
    labels = [f"{shorten(a, 0.9)} − {shorten(b, 0.9)}" for a, b in pairs]
    limit = dots.widest(ends, 2 * (margin or 0.05))
    grid = forest.Grid(columns, genders, labels, 1, "difference", limit, margin)
    legend = _verdict_legend(rows, within) + ([Entry("single jobs", forest.JOB)] if between_jobs else [])
    sheet = Sheet(grid.block * len(genders), legend=legend)
    for axes, gender, (bias_type, group) in forest.panels(sheet, grid):
        behind = [between_jobs.get((*pair, bias_type, group, gender), []) for pair in pairs]
        forest.jobs_behind(axes, [behind], grid)
        own = where(rows, bias_type=bias_type, group_a=group, gender=gender)
        for y, (a, b) in enumerate(pairs):
            _verdict_row(axes, first(own, model_a=a, model_b=b), y)
        dots.dot_panel(axes, [], len(pairs), grid.pitch)
        dots.effect_axis(axes, grid.limit, grid.axis, grid.margin)
    caption = (
        f"Share for the first model minus share for the second. {note} Shapes tell the verdicts apart. "
        "Instruction none. Tables: tests (kind crossed, contrast models), probe_jobs."
    )
    alt = f"Forest plot of {count(len(pairs), 'pair')} of models. {_said_of_models(rows)}"
    return Drawing(sheet, caption, alt)


def _verdict_row(axes: Axes, row: Row | None, y: int) -> None:
    key = shape_of(row)
    if row is None or key == "unmeasured":
        dots.dashes(axes, [y], INK)
        return
    mark, hollow, _ = SHAPES[key]
    axes.plot([row["ci_low"], row["ci_high"]], [y, y], color=mark.colour, linewidth=1.0, zorder=2)
    axes.plot([row["estimate"]], [y], zorder=3, clip_on=False, **marker_style(mark, hollow=hollow))


def _jobs_between(view: View, pairs: Sequence[tuple[str, str]], setting: str) -> forest.OfJobs:
    """Each job's share for the first model of a pair minus for the second."""
    rows = view.rows("probe_jobs", instruction_id=0, setting=setting)
    at = {(r["model"], r["bias_type"], r["job"]): r for r in rows}

    def for_second(row: Row) -> Iterator[tuple[forest.Key, Row | None]]:
        for a, b in pairs:
            if a == row["model"]:
                yield (a, b, row["bias_type"]), at.get((b, row["bias_type"], row["job"]))

    return forest.differences_on_jobs(view, rows, for_second)


def _said_of_models(rows: Sequence[Row]) -> str:
    counts = Counter(map(shape_of, rows))
    said = (
        f"Of {len(rows)} differences {counts['different']} are clear, "
        f"{counts['equivalent'] + counts['both']} equivalent, {counts['unclear']} not clear and "
        f"{counts['unmeasured']} not measured."
    )
    clear = [row for row in rows if shape_of(row) in ("different", "both")]
    if not clear:  # the largest of differences that are not clear would read like a finding
        return said
    most = max(clear, key=lambda row: abs(row["estimate"]))
    higher, lower = (most["model_a"], most["model_b"])[:: 1 if most["estimate"] > 0 else -1]
    return (
        f"{said} The largest clear one: the share of {people(most['gender'])} in "
        f"{cut(most['group_a'] or 'all')} jobs ({cut(most['bias_type'])}) is {short(abs(most['estimate']))} "
        f"higher for {cut(higher)} than for {cut(lower)}."
    )


def _verdicts(view: View, rows: Sequence[Row], columns: Sequence[tuple[str, str]]) -> Drawing:
    """A triangle of models against models for each panel: which way, equivalent, or not clear."""
    labels = [m for m in view.models if any(m in (r["model_a"], r["model_b"]) for r in rows)]
    named = [f"{i} · {m}" for i, m in enumerate(labels, 1)]
    genders = forest.genders_of(view, rows)
    within, note = _about(rows)
    n = len(labels) - 1
    left = dots.label_width(named, 1.3)
    widths = {k: (WIDTH - left - 0.15) / k - 0.15 for k in (4, 2, 1)}
    per_line = next((k for k, width in widths.items() if width / n >= 0.13), 1)
    cell = min(0.2, widths[per_line] / n)
    panels = [(g, *column) for g in genders for column in columns]
    block = cell * n + 0.72
    legend = [
        Entry("row's share larger", Mark("#d55e00", "^")),
        Entry("row's share smaller", Mark("#d55e00", "v")),
        *(e for e in _verdict_legend(rows, within) if e.text != "different"),
    ]
    sheet = Sheet(block * -(-len(panels) // per_line), legend=legend)
    for i, panel in enumerate(panels):
        x = left + 0.1 + (i % per_line) * (widths[per_line] + 0.15)
        top = (i // per_line) * block + 0.42
        if i % per_line == 0:
            dots.row_labels(sheet, named[1:], top, cell, left)
        heading = shorten(f"{people(panel[0])}, {panel[1]}", widths[per_line])
        sheet.text(x, top - 0.3, heading, fontweight="bold")
        sheet.text(x, top - 0.14, shorten(panel[2], widths[per_line]))
        axes = sheet.axes(x, top, cell * n, cell * n)
        axes.set_xticks(range(n), [str(k + 1) for k in range(n)])
        _verdict_cells(
            axes, labels, [r for r in rows if (r["gender"], r["bias_type"], r["group_a"]) == panel]
        )
    caption = (
        f"Verdict for the row's model against the column's, numbered in the order of the rows. {note} "
        "Instruction none. Table: tests (kind crossed, contrast models), which holds every estimate and "
        "interval."
    )
    alt = f"Grid of {len(labels)} models against each other. {_said_of_models(rows)}"
    return Drawing(sheet, caption, alt)


def _verdict_cells(axes: Axes, labels: Sequence[str], rows: Sequence[Row]) -> None:
    """A marker for each pair, the later model in the row."""
    n = len(labels) - 1
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    for y in range(n):
        axes.plot([-0.5, y + 0.5], [y, y], color=GRID, linewidth=0.4, zorder=0)
    places: dict[tuple[Shape, bool], tuple[list[int], list[int]]] = {}
    for row in rows:
        a, b = labels.index(row["model_a"]), labels.index(row["model_b"])
        key = shape_of(row)
        lower = key == "different" and (row["estimate"] < 0) != (a < b)
        xs, ys = places.setdefault((key, lower), ([], []))
        xs.append(min(a, b))
        ys.append(max(a, b) - 1)
    for (key, lower), (xs, ys) in places.items():
        if key == "unmeasured":
            axes.plot(xs, ys, **marker_style(Mark(INK, "_")))
            continue
        mark, hollow, _ = SHAPES[key]
        marker = "v" if lower else "^" if key == "different" else mark.marker
        axes.plot(xs, ys, **marker_style(Mark(mark.colour, marker), hollow=hollow, size=4.5))
