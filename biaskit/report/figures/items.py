"""Shares item by item, from women's jobs to men's, beside labour statistics and parity.

The first picture of one model, and the jobs of several (docs/methods.md#cells-to-tables,
docs/methods.md#representation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from biaskit.report.content import Content
from biaskit.report.figures import panels, scales
from biaskit.report.figures.figure import Figure
from biaskit.report.figures.lettering import asked, cut, people
from biaskit.report.figures.panels import Band, Dots, Panel, Point
from biaskit.report.figures.probe import by_labour, by_share, estimators_of, plain, shows, spread
from biaskit.report.figures.sheet import Entry
from biaskit.report.figures.style import INK, Mark
from biaskit.report.figures.view import Plot, View, all_marks, finished, views
from biaskit.tables.query import Row, distinct, mean_over_prompts, where
from biaskit.wording import count, percent, share_with_interval

MOST_ROWS = 44
"""More items than a screen has room for are drawn against labour statistics instead (`labour.py`)."""
TALLEST = 4.5
"""Inches of the rows: with legend and axis they stay on a screen of 800 pixels."""
LABOUR = Mark(INK, "d")


@dataclass(frozen=True, slots=True)
class Measure:
    """One way to ask a model: the shares of the items."""

    panel: str  # says | writes
    name: str
    of: Mapping[str, Point]
    mark: Mark
    fill: str = ""


def answer(content: Content, name: str) -> Iterator[Figure]:
    """The first picture of one model, where there is something to draw and a screen holds it."""
    measures, labour = _measures(content)
    order = {item: labour.get(item) for item in _items(measures, labour)}
    known = [each for one in measures for each in one.of.values() if each.x == each.x]
    if not known or len(order) > MOST_ROWS:
        return
    group, noun = _who(content), _noun(content)
    view = _first(content, "probe") or _first(content, "personas")
    assert view is not None  # something is measured
    shown = _panels(view, measures, order, group)
    legend = [Entry(m.name, m.mark, fill=m.fill) for m in measures] if len(measures) > 1 else []
    tables = ["probe_jobs"] * any(m.panel == "says" for m in measures)
    tables += ["representation"] * any(m.panel == "writes" for m in measures)
    caption = (
        f"In percent; n = {count(len(order), noun)}, sorted by the share of women in labour statistics; "
        f"bars: 95\u00a0% intervals. Tables: {' and '.join(tables)}."
    )
    legend += _references(view, order)
    plot = Plot([Band(shown)], caption, _alt(measures, order), legend)
    yield finished(name, f"Share of {group} by {noun}", plot)


def jobs(view: View) -> Iterator[Figure]:
    """Each job for each model, a panel for each way to ask; none where the first picture holds the same."""
    first = view.part.contrast[0]
    rows = plain(view, "probe_jobs") if first else []
    if len(all_marks(view.content)) > 1 or len(distinct(rows, "job")) > MOST_ROWS:
        yield from view.charts(rows, "jobs", f"Share of {people(first)} in each job", _jobs)


def _jobs(view: View, rows: Sequence[Row], models: Sequence[str]) -> Plot:
    group = people(view.part.contrast[0])
    order = by_labour(rows, "job")
    shown = []
    for bias_type in distinct(rows, "bias_type"):
        own = where(rows, bias_type=bias_type)
        of = {model: of_jobs(view, where(own, model=model), several=True) for model in models}
        dots = [Dots(view.marks[model], [of[model].get(job) for job in order]) for model in models]
        scale = scales.shares(f"share of {group}", f"{group}, %", parity=shows(view, "parity"))
        shown.append(Panel(list(order), scale, [*_labour(view, order), *dots], title=asked(bias_type)))
    templates = spread([row["n_templates"] for row in rows])
    caption = (
        f"In percent; n = {len(order)} jobs, each the mean of {templates} templates, sorted by the share of "
        "women in labour statistics; bars: 95\u00a0% intervals over templates; without an instruction. "
        f"{estimators_of(rows)}Table: probe_jobs."
    )
    alt = " ".join(f"{cut(model)}: {_means(where(rows, model=model), view)}." for model in models[:4])
    legend = [*view.entries(models), *_references(view, order)]
    return Plot(
        [Band(shown)], caption, f"Dot plot of the share of {group} in {len(order)} jobs. {alt}", legend
    )


def _means(rows: Sequence[Row], view: View) -> str:
    said = []
    for bias_type in distinct(rows, "bias_type"):
        for group in sorted(distinct(where(rows, bias_type=bias_type), "job_group")):
            own = where(rows, bias_type=bias_type, job_group=group)
            shares = [row[f"{view.part.contrast[0]}_share"] for row in own]
            known = [share for share in shares if share is not None]
            if known:
                mean = percent(sum(known) / len(known))
                said.append(f"{asked(bias_type)}, mean {mean} % in {cut(group or 'all')} jobs")
    return "; ".join(said) or "not measured"


def _first(content: Content, engine: str) -> View | None:
    return next(iter(views(content, engine)), None)


def _who(content: Content) -> str:
    view = _first(content, "probe")
    return people(view.part.contrast[0] if view and view.part.contrast[0] else "female")


def _noun(content: Content) -> str:
    return "job" if _first(content, "probe") else "occupation"


def _measures(content: Content) -> tuple[list[Measure], dict[str, float | None]]:
    """Every way in which the model was asked, and the items with their labour share."""
    found: list[Measure] = []
    labour: dict[str, float | None] = {}
    if (view := _first(content, "probe")) is not None and view.part.contrast[0]:
        rows, mark = plain(view, "probe_jobs"), view.marks[view.models[0]]
        labour |= by_labour(rows, "job")
        for bias_type in distinct(rows, "bias_type"):
            of = of_jobs(view, where(rows, bias_type=bias_type))
            fill = "none" if bias_type == "explicit" else ""
            found.append(Measure("says", asked(bias_type), of, mark, fill))
    if (view := _first(content, "personas")) is not None:
        rows = mean_over_prompts(view.rows("representation"))
        shares = by_labour(rows, "occupation")
        labour |= {item: share for item, share in shares.items() if labour.get(item) is None}
        mark = Mark(view.marks[view.models[0]].colour, "s")
        found.append(Measure("writes", "in texts", of_occupations(rows), mark))
    return found, by_share(labour)


def of_jobs(view: View, rows: Sequence[Row], *, several: bool = False) -> dict[str, Point]:
    """Shares of the contrast's first group in each job, with what a point says."""
    first = view.part.contrast[0]
    columns = (f"{first}_share", f"{first}_share_ci_low", f"{first}_share_ci_high")
    found = {}
    for row in rows:
        whose = f"{cut(row['model'])}, " if several else ""
        tip = (
            f"{whose}{cut(row['job'])}, {asked(row['bias_type'])}: "
            f"{share_with_interval(*(row[c] for c in columns))} {people(first)}; coverage "
            f"{percent(row['coverage'] or 0.0)} %, {count(row['n_templates'] or 0, 'template')}"
        )
        found[str(row["job"])] = panels.point(row, columns, tip)
    return found


def of_occupations(rows: Sequence[Row]) -> dict[str, Point]:
    """Shares of women in the texts about each occupation."""
    columns = ("female_share", "ci_low", "ci_high")
    found = {}
    for row in rows:
        named = sum(row[n] or 0 for n in ("n_female", "n_male", "n_nonbinary"))
        tip = (
            f"{cut(row['occupation'])}, in texts: {share_with_interval(*(row[c] for c in columns))} women; "
            f"{named:,} of {count(row['n_texts'] or 0, 'text')} name a gender"
        )
        found[str(row["occupation"])] = panels.point(row, columns, tip)
    return found


def _items(measures: Sequence[Measure], labour: Mapping[str, float | None]) -> list[str]:
    """Every item with a share; where they are too many, those that both engines have."""
    each = [set().union(*(m.of for m in measures if m.panel == p)) for p in {m.panel: 0 for m in measures}]
    every = set().union(*each) if each else set()
    common = set.intersection(*each) if each else set()
    chosen = common if len(every) > MOST_ROWS and len(common) > 1 else every
    return [item for item in labour if item in chosen]


def _panels(
    view: View, measures: Sequence[Measure], order: Mapping[str, float | None], group: str
) -> list[Panel]:
    found = []
    for name in dict.fromkeys(one.panel for one in measures):
        own = [one for one in measures if one.panel == name]
        short = f"{group} in its {'texts' if name == 'writes' else 'answers'}"
        named = f" ({own[0].name})" if name == "says" and len(own) == 1 else ""
        dots = [Dots(one.mark, [one.of.get(item) for item in order], one.fill) for one in own]
        found.append(
            Panel(
                list(order),
                scales.shares(f"share of {short}{named}", short, parity=shows(view, "parity")),
                [*_labour(view, order), *dots],
                pitch=min(0.2, TALLEST / len(order)),
                least=0.7,
                apart=False,
            )
        )
    return found


def _labour(view: View, order: Mapping[str, float | None]) -> list[Dots]:
    """The share of women in labour statistics, where the report holds shares against it."""
    if not (shows(view, "labour") and any(share is not None for share in order.values())):
        return []
    points = [
        None if share is None
        else Point(share, tip=f"{cut(item)}, labour statistics: {percent(share)} % women")
        for item, share in order.items()
    ]  # fmt: skip
    return [Dots(LABOUR, points, "none")]


def _references(view: View, order: Mapping[str, float | None]) -> list[Entry]:
    legend = [Entry("labour statistics", LABOUR, fill="none")] if _labour(view, order) else []
    return legend + [scales.PARITY] * shows(view, "parity")


def _alt(measures: Sequence[Measure], order: Mapping[str, float | None]) -> str:
    said = []
    for one in measures:
        known = {i: own.x for i, own in one.of.items() if i in order and own.x == own.x}
        if known:
            least, most = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
            said.append(
                f"{one.name}: from {percent(known[least])} % ({cut(least)}) to {percent(known[most])} % "
                f"({cut(most)})."
            )
    return f"Dot plot of {len(order)} rows. {' '.join(said)}"
