"""`biaskit report`."""

from __future__ import annotations

import json
import webbrowser
from typing import Any

import click

from biaskit.cli.options import examples, with_settings, with_sides
from biaskit.cli.terminal import TerminalWatcher, emit, emit_notes, takes_blocks, width
from biaskit.runs.store import find_run


@click.command(
    "report",
    epilog=examples(
        "biaskit report",
        "biaskit report RUN --open",
        "biaskit report PROBE-RUN PERSONAS-RUN --no-texts --out page.html",
        "biaskit report RUN --set report.pdf=true --set report.max_mb=5",
    ),
)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--open", "open_it", is_flag=True, help="Show the page in the browser.")
@click.option(
    "--out", metavar="FILE", help="Where the page goes; by default report.html in the run's folder."
)
@click.option("--no-texts", is_flag=True, help="Leave out every generated or imported text.")
@with_sides
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the findings are printed; the page is the same.",
)
@with_settings
def command(
    runs: tuple[str, ...],
    open_it: bool,
    out: str | None,
    no_texts: bool,
    groups: tuple[str, ...],
    aliases: str | None,
    output_format: str,
    settings: dict[str, Any],
) -> None:
    """One self-contained HTML page of stored runs, with figures (SVG, PNG) and LaTeX tables beside it.

    Several runs, of either engine, stand side by side; without RUN the newest run of this folder is taken.
    No model is loaded and no request leaves the page. Keys: report.max_mb, report.pdf, reference.
    """
    from biaskit.report.render.headline import headline
    from biaskit.workflow.report import report

    if not runs:
        newest = find_run(None)
        emit(f"Newest run: {newest}\n", err=True)
        runs = (str(newest),)
    watcher = TerminalWatcher(assume_yes=True)
    try:
        made = report(
            *runs,
            out=out,
            texts=not no_texts,
            groups=groups,
            aliases=aliases,
            settings=settings,
            watcher=watcher,
        )
    finally:
        watcher.close()
    if output_format == "json":
        content = {
            "page": str(made.page),
            "figures": [str(path) for path in made.figures],
            "latex": [str(path) for path in made.latex],
            "findings": [
                {"topic": f.topic, "verdict": f.verdict, "text": f.text, "measured_with": f.measured_with}
                for f in made.findings
            ],
            "notes": list(made.notes),
        }
        emit(json.dumps(content, indent=1) + "\n")
    else:
        emit(headline(made.content, width=width(), ascii=not takes_blocks()) + "\n")
        emit_notes(made.notes)
        emit(f"\nPage: {made.page}\n")
        n_figures = len({path.stem for path in made.figures})
        kinds = ", ".join(dict.fromkeys(path.suffix[1:].upper() for path in made.figures))
        emit(f"Figures: {n_figures} ({kinds}) in {made.figures[0].parent}\n" if n_figures else "")
        emit(f"LaTeX: {len(made.latex)} files in {made.latex[0].parent}\n" if made.latex else "")
    if open_it:
        webbrowser.open(made.page.resolve().as_uri())
