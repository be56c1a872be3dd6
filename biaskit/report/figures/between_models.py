"""How models differ: a forest, or a grid of verdicts for many pairs (docs/methods.md#verdicts)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from biaskit.report.figures import forest, scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, cut, people, shorten
from biaskit.report.figures.panels import Band, Dots, Panel, point
from biaskit.report.figures.sheet import Entry, Sheet, fill_style, marker_style
from biaskit.report.figures.style import GRID, INK, Mark
from biaskit.report.figures.view import Plot, View
from biaskit.stats.verdict import Verdict, interval_side, verdict_of
from biaskit.tables.query import Row, first, in_main_setting, where
from biaskit.wording import count, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PAIRS = 15
"""Pairs of models that one forest takes; more become a grid of verdicts."""
Shape = Literal["different", "equivalent", "both", "unclear", "unidentified", "unmeasured"]
SHAPES: Mapping[Shape, tuple[Mark, str, str]] = {
    "different": (Mark("#d55e00", "o"), "", "different"),
    "equivalent": (Mark("#0072b2", "s"), "", "equivalent"),
    "both": (Mark("#0072b2", "D"), "none", "equivalent, yet not 0"),
    "unclear": (Mark("#7a7a7a", "o"), "none", "no clear difference"),
    "unidentified": (Mark("#7a7a7a", "s"), "none", "not identified (bounds too wide) or no verdict"),
    "unmeasured": (Mark(INK, "_"), "", "not measured"),
}
"""Marker, its fill, and its name in the legend."""
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


def models(view: View) -> Iterator[Figure]:
    """Differences between models without an instruction: a forest, or a grid of verdicts for many pairs."""
    rows = [
        row
        for row in forest.crossed(view.content.between.get("tests", ()), "models")
        if _is_of(view, row)
        and (str(row["instruction_a"]), str(row["instruction_b"])) == ("0", "0")
        and row["gender"] in view.part.contrast
    ]
    rows = in_main_setting(rows)
    for name, more, columns in forest.in_figures(view, rows, "models") if rows else ():
        own = [row for row in rows if (row["bias_type"], row["group_a"]) in columns]
        n_pairs = len({(row["model_a"], row["model_b"]) for row in own})
        draw = _forest if n_pairs <= MOST_PAIRS else _verdicts
        yield view.finished(name, "How the models differ", draw(view, own, columns), more)


def _is_of(view: View, row: Row) -> bool:
    """Whether a row compares models of this part, or groups of them: these have names of their own."""
    sides = {str(row["model_a"]), str(row["model_b"])}
    known = {model.label for part in view.content.parts for model in part.models}
    alone = sum(part.engine == "probe" for part in view.content.parts) == 1
    return sides <= set(view.models) or (alone and not sides & known)


def _about(rows: Sequence[Row]) -> tuple[str, str]:
    """The margin's words, and the note that every figure of models carries."""
    margins = sorted({row["margin"] for row in rows if row["margin"] is not None})
    within = f"within ±{100 * margins[0]:g} points" if len(margins) == 1 else "within the margin"
    return within, (
        f"n = {forest.n_jobs_of(rows)} common jobs per group; differences of shares in points (of −1 to 1); "
        f"95\u00a0% intervals over jobs and templates; equivalent: the 90\u00a0% interval lies {within}; "
        "without an instruction."
    )


def _legend(rows: Sequence[Row], within: str) -> list[Entry]:
    present = {shape_of(row) for row in rows}
    return [
        Entry(f"{text} {within}" if key == "equivalent" else text, mark, fill=fill)
        for key, (mark, fill, text) in SHAPES.items()
        if key in present
    ]


def _forest(view: View, rows: Sequence[Row], columns: forest.Columns) -> Plot:
    pairs = list(dict.fromkeys((str(r["model_a"]), str(r["model_b"])) for r in rows))
    within, note = _about(rows)
    of_jobs = _jobs_between(view, pairs, str(rows[0]["setting"]))
    margin = next((row["margin"] for row in rows if row["margin"] is not None), None)
    labels = [f"{shorten(a, 0.9)} − {shorten(b, 0.9)}" for a, b in pairs]

    def dots(own: Sequence[Row], column: tuple[str, str, str]) -> list[Dots]:
        points = []
        for a, b in pairs:
            row = first(own, model_a=a, model_b=b)
            mark, fill, _ = SHAPES[shape_of(row)]
            tip = forest.tip_of(row, f"{cut(a)} − {cut(b)}, {asked(column[0])}") if row else ""
            points.append(point(row, tip=tip, mark=mark, fill=fill))
        return [Dots(Mark(INK, "o"), points, behind=[of_jobs.get((*pair, *column), []) for pair in pairs])]

    limit = forest.limit_of(rows, of_jobs.values(), 2 * (margin or 0.05))
    scale = scales.effects(limit, "difference, points", "points", margin=margin)
    caption = (
        f"Share for the first model minus share for the second. {note} Shapes tell the verdicts apart. "
        "Tables: tests (kind crossed, contrast models), probe_jobs."
    )
    alt = f"Forest plot of {count(len(pairs), 'pair')} of models. {_said_of_models(rows)}"
    legend = _legend(rows, within) + ([forest.JOBS] if of_jobs else [])
    return Plot(forest.bands(view, rows, columns, labels, scale, dots), caption, alt, legend)


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
        f"{cut(most['group_a'] or 'all')} jobs ({cut(most['bias_type'])}) is {points(abs(most['estimate']))} "
        f"higher for {cut(higher)} than for {cut(lower)}."
    )


def _verdicts(view: View, rows: Sequence[Row], columns: forest.Columns) -> Plot:
    """A triangle of models against models for each panel: which way, equivalent, or not clear."""
    labels = [m for m in view.models if any(m in (r["model_a"], r["model_b"]) for r in rows)]
    named = [f"{i} · {m}" for i, m in enumerate(labels, 1)][1:]
    within, note = _about(rows)
    bands = []
    for gender in [g for g in view.part.contrast if where(rows, gender=g)]:
        found = []
        for bias_type, group in columns:
            own = where(rows, bias_type=bias_type, group_a=group, gender=gender)
            draw = partial(_verdict_cells, labels, own)
            below = forest.SIDES.get(group, group)
            found.append(Panel(named, _numbered, title=asked(bias_type), below=below, square=True, draw=draw))
        bands.append(Band(found, f"Share of {people(gender)}"))
    legend = [
        Entry("row's share larger", Mark("#d55e00", "^")),
        Entry("row's share smaller", Mark("#d55e00", "v")),
        *(e for e in _legend(rows, within) if e.text != "different"),
    ]
    caption = (
        f"Verdict for the row's model against the column's, numbered in the order of the rows. {note} "
        "Table: tests (kind crossed, contrast models), which holds every estimate and interval."
    )
    alt = f"Grid of {len(labels)} models against each other. {_said_of_models(rows)}"
    return Plot(bands, caption, alt, legend)


def _numbered(axes: Axes, room: float) -> None:  # noqa: ARG001
    """A column for each row."""
    n = round(axes.get_ylim()[0] + 0.5)
    axes.set_xlim(-0.5, n - 0.5)
    axes.set_xticks(range(n), [str(k + 1) for k in range(n)])


def _verdict_cells(labels: Sequence[str], rows: Sequence[Row], sheet: Sheet, axes: Axes) -> None:
    """A marker for each pair, the later model in the row."""
    for y in range(len(labels) - 1):
        axes.plot([-0.5, y + 0.5], [y, y], color=GRID, linewidth=0.4, zorder=0)
    places: dict[tuple[Shape, bool], list[tuple[int, int, str]]] = {}
    for row in rows:
        a, b = labels.index(row["model_a"]), labels.index(row["model_b"])
        key = shape_of(row)
        lower = key == "different" and (row["estimate"] < 0) != (a < b)
        tip = forest.tip_of(row, f"{cut(row['model_a'])} − {cut(row['model_b'])}, {asked(row['bias_type'])}")
        places.setdefault((key, lower), []).append((min(a, b), max(a, b) - 1, tip))
    for (key, lower), found in places.items():
        mark, fill, _ = SHAPES[key]
        marker = "v" if lower else "^" if key == "different" else mark.marker
        style = marker_style(Mark(mark.colour, marker), size=4.5) | fill_style(mark, fill)
        (marks,) = axes.plot([x for x, *_ in found], [y for _, y, _ in found], **style)
        sheet.tip(marks, [tip for *_, tip in found])
