"""Draw what each debiasing prompt changes (methods/tests#contrasts)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.measures.probe.figures.groups import CAPTIONS
from biaskit.report.figures import forest
from biaskit.report.figures.drawing import Figure
from biaskit.report.figures.plot import INKED, Dots, Entry, Plot, effects, ends_of, point
from biaskit.report.figures.style import cut
from biaskit.report.figures.view import View
from biaskit.stats.contrast import Contrast
from biaskit.tables.query import distinct


def debiasing(view: View) -> Iterator[Figure]:
    """Draw women's share under each debiasing prompt (and level) minus their share without one."""
    rows = forest.crossed(view, view.tests(), "debiasing", "levels")
    rows = [row for row in rows if row.gender == view.part.contrast[0]]
    title = "What each debiasing prompt changes"
    yield from view.charts(rows, "debiasing", title, _debiasing, column="model_a")


def _debiasing(view: View, rows: Sequence[Contrast], models: Sequence[str]) -> Plot:
    texts = {str(i["id"]): str(i["text"]) for i in view.part.debiasing_prompts}
    lines = list(dict.fromkeys(row.debiasing_a for row in rows))
    labels = [f"prompt {line}" if line in texts else f"level {line}" for line in lines]
    contexts = distinct(rows, "context")

    def dots(of_panel: Sequence[Contrast]) -> list[Dots]:
        rows_by_line = {(r.model_a, r.context, r.debiasing_a): r for r in of_panel}
        series = []
        for model in models:
            for i, context in enumerate(contexts):
                points = [point(rows_by_line.get((model, context, line))) for line in lines]
                series.append(Dots(view.marks[model], points, "none" if i else ""))
        return series

    axis = effects(ends_of(map(point, rows)), 0.1, "with − without, points")
    legend = view.entries(models)
    if len(contexts) > 1:
        legend += [Entry(cut(s), INKED, "none" if i else "") for i, s in enumerate(contexts)]
    legend.append(Entry("no difference", line=":"))
    legend += [Entry(f"{line}: {texts[line]}") for line in lines if line in texts]
    caption = CAPTIONS["debiasing"].format(forest.n_jobs_of(rows), view.weak)
    return Plot(forest.bands(view, rows, labels, axis, dots), caption, legend)
