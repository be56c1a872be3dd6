"""The figures of a report: SVG, PNG and PDF, from stored tables only (METHODS §1.4, §2, §3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from biaskit.files import write_atomically
from biaskit.report.content import Content
from biaskit.report.figures.record import Figure, Missing

__all__ = ["Figure", "Missing", "draw_all", "save"]


def draw_all(content: Content) -> tuple[Figure | Missing, ...]:
    """Every figure of a report in the order of the page; one that cannot be drawn says why."""
    from biaskit.report.figures import (
        both,
        debiasing,
        models,
        personas,
        probe,
        srb,
        triangle,
        variance,
        words,
    )
    from biaskit.report.figures.sheet import rules
    from biaskit.report.figures.view import views

    drawn: list[Figure | Missing] = []
    with rules():
        for view in views(content, "probe"):
            drawn += [*probe.jobs(view), *probe.groups(view), *triangle.ternary(view)]
            drawn += variance.variance(view)
            drawn += [*debiasing.debiasing(view), *models.models(view)]
        for view in views(content, "personas"):
            drawn += personas.figures(view)
            drawn += srb.figures(view)
            drawn += words.figures(view)
        drawn += both.figures(content)
    return tuple(drawn)


def save(figures: Sequence[Figure | Missing], folder: Path, *, pdf: bool) -> list[Path]:
    """Write `<name>.svg`, `<name>.png` and, when asked, `<name>.pdf`; returns the paths."""
    paths: list[Path] = []
    for figure in figures:
        if isinstance(figure, Missing):
            continue
        made = {"svg": figure.svg, "png": figure.png()} | ({"pdf": figure.pdf()} if pdf else {})
        for kind, content in made.items():
            path = folder / f"{figure.name}.{kind}"
            write_atomically(path, content)
            paths.append(path)
    return paths
