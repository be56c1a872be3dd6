"""`biaskit report`."""

from __future__ import annotations

import webbrowser
from contextlib import closing
from dataclasses import asdict
from operator import attrgetter
from typing import Any

import click

from biaskit.cli.options import examples, option, with_format, with_settings, with_sides
from biaskit.cli.output import named_or_newest
from biaskit.cli.terminal import TerminalWatcher, emit, emit_json, width


@click.command(
    "report",
    epilog=examples(
        "biaskit report",
        "biaskit report RUN --open",
        "biaskit report PROBE-RUN PERSONAS-RUN --no-texts --out page.html",
        "biaskit report RUN --set report.pdf=true",
    ),
)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@option("--open open_it", None, "Open the page in the browser.", is_flag=True)
@option("--out", "FILE", "Output file; default: report.html in the run's folder.")
@option("--title", "TEXT", "Title of this page and later ones; by default it names the model.", default="")
@option("--no-texts", None, "Omit all generated and imported texts.", is_flag=True)
@with_sides
@with_format("Format of the printed findings; the page is the same.", ("text", "json"))
@with_settings()
def command(runs: tuple[str, ...], open_it: bool, no_texts: bool, output_format: str, **chosen: Any) -> None:
    """Write one self-contained HTML page about stored runs, with figures (SVG, PNG) and LaTeX tables.

    Several runs, of any measurement, can share one page. Without RUN, the newest run in this folder is used.
    No model is loaded, and the page makes no network requests. Keys: report.pdf, reference.
    """
    from biaskit.report.render.headline import headline
    from biaskit.workflow.report import report

    paths = named_or_newest(runs)
    with closing(TerminalWatcher(assume_yes=True)) as watcher:
        written = report(*paths, texts=not no_texts, watcher=watcher, **chosen)
    if output_format == "json":
        emit_json(
            {
                "page": str(written.page),
                "figures": list(map(str, written.figures)),
                "latex": list(map(str, written.latex)),
                "findings": list(map(asdict, written.findings)),
            }
        )
    else:
        emit(headline(written.content, width=width(), said=written.findings) + "\n")
        emit(f"\nPage: {written.page}\n")
        n_figures = len({path.stem for path in written.figures})
        kinds = ", ".join(dict.fromkeys(path.suffix[1:].upper() for path in written.figures))
        emit(f"Figures: {n_figures} ({kinds}) in {written.figures[0].parent}\n" if n_figures else "")
        emit(f"LaTeX: {len(written.latex)} files in {written.latex[0].parent}\n" if written.latex else "")
        if written.content.with_texts and any(map(attrgetter("imported"), written.content.parts)):
            emit("The page shows your texts, which may name people: --no-texts leaves them out.\n")
    if open_it:
        webbrowser.open(written.page.resolve().as_uri())
