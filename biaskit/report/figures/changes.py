"""Draw what changed prompt by prompt between two runs, or along an axis (methods/comparisons#change)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle

from biaskit.records import ALL
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import Axis, Band, Entry, Plot, Spot, Square, number, shares
from biaskit.report.figures.style import GREY, Mark, asked, cut, look_of, people
from biaskit.report.figures.view import View
from biaskit.report.findings.changes import said_rows
from biaskit.report.findings.claims import shared_words
from biaskit.tables.query import Row, among, defined, distinct, grouped, in_main_context, named, where

SAME = Mark(GREY, "o")
MARKERS = ("^", "v", "D", "s", "P", "X")
CURVES = {"share": ("ci", "share of {}"), "flips": ("flips", "flipped")}
CURVES |= {"typical_change": ("typical", "typical change")}


def flipped(view: View) -> Iterator[Figure]:
    """Draw the first figure of a comparison: before against after, or along an axis, if an answer flips."""
    if named(said_rows(view.content), "n_flips"):
        yield from _drawn(view)


def unflipped(view: View) -> Iterator[Figure]:
    """Draw the same where no answer flips, below."""
    if not named(said_rows(view.content), "n_flips"):
        yield from _drawn(view)


def _drawn(view: View) -> Iterator[Figure]:
    curve = where(view.content.between.get("curve", ()), job_group=ALL, debiasing_id=0)
    curve = in_main_context(among(curve, "model", view.models))
    rows = among(among(said_rows(view.content), "before", view.models), "after", view.models)
    rows = defined(rows, "n_flips")
    said = shared_words()["changes"]
    if curve:
        bands = []
        for (bias_type,), own in grouped(curve, "bias_type").items():
            bands.append(Band([*_curves(view, own)], asked(bias_type)))
        plot = Plot(bands, said["curve"].format(curve[0]["n_prompts"]))
        yield view.figure("curve", f"Along {cut(curve[0]['axis'])}", plot)
    elif rows and all(view.part.contrast):
        groups = dict.fromkeys((*view.part.contrast, *view.part.groups))
        marks, legend = {}, [Entry("the same, or nearly a tie", SAME)]
        for group, marker in zip(groups, cycle(MARKERS), strict=False):
            marks[group] = Mark(look_of(group, view.part.groups)[0], marker)
            legend.append(Entry(f"now {people(group)}", marks[group]))
        n = " or ".join(map(str, distinct(rows, "n_prompts")))
        caption = said["caption"].format(n, *map(people, view.part.contrast))
        squares = [_square(view, row, marks) for row in rows]
        plot = Plot([Band(squares)], caption, legend)
        yield view.figure("change", "What changed, prompt by prompt", plot)


def _square(view: View, row: Row, marks: Mapping[str, Mark]) -> Square:
    first, second = map("{}_share".format, view.part.contrast)
    key = {name: row[name] for name in ("bias_type", "debiasing_id", "context", "prompt_format")}
    changed = where(view.content.between["changed_prompts"], before=row["before"], after=row["after"], **key)
    now = {}
    for prompt in where(changed, near_tie=False):
        if prompt["answer_before"] != prompt["answer_after"]:
            now[prompt["template_id"], prompt["job"]] = marks[prompt["answer_after"]]
    cells = grouped(view.rows("probe_prompts", model=row["after"], **key), "template_id", "job")
    spots: dict[Mark, list[Spot]] = {}  # none empty: matplotlib's layout collapses
    for old in view.rows("probe_prompts", model=row["before"], **key):
        place = old["template_id"], old["job"]
        for new in cells.get(place, ()):
            x, y = number(old[first]) - number(old[second]), number(new[first]) - number(new[second])
            spots.setdefault(now.get(place, SAME), []).append(Spot(old["job"], x, y))
    x_axis = Axis(cut(row["before"], 18), -1, 1, "points", 0)
    y_axis = replace(x_axis, name=cut(row["after"], 18))
    return Square(
        asked(row["bias_type"]), x_axis, y_axis, spots, [((-1, -1), (1, 1), ":")], zone=row["tie_zone"]
    )


def _curves(view: View, rows: Sequence[Row]) -> Iterator[Square]:
    rows = sorted(rows, key=lambda row: row["value"])
    values = distinct(rows, "value")
    room = 0.06 * (values[-1] - values[0])
    low = values[0] - room
    # An axis that begins below 0 shows signs, and steps have none.
    x = Axis(cut(rows[0]["axis"], 24), low if values[0] < 0 else max(low, 0), values[-1] + room, ticks=values)
    for name, (ends, title) in CURVES.items():
        spots = []
        for row in rows:
            low, high = number(row[f"{ends}_low"]), number(row[f"{ends}_high"])
            spots.append(Spot(row["model"], row["value"], number(row[name]), low, high))
        y = shares(title.format(people(view.part.contrast[0])))
        yield Square("", x, y, {view.marks[rows[0]["model"]]: spots}, joined=True)
