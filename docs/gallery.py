r"""Draw docs/gallery/ again: every kind of figure of a report once, from stored runs.

From a checkout, about a quarter of an hour; scripted models have made-up numbers:

    biaskit probe demo --out runs/occugender
    biaskit probe demo demo-base --bias-type implicit --out runs/pair
    biaskit probe demo --bias-type implicit --ways --out runs/ways
    biaskit probe demo-base --study gasp-occupations --jobs teacher,doctor,cook,lawyer --out runs/gasp
    same="--bias-type implicit --jobs 1-10,21-30 --templates 1-10"
    biaskit probe plain=demo $same --out runs/before
    printf 'Say he and she equally often.\n' > fair.txt
    biaskit probe fair=demo $same --system-prompt fair.txt --out runs/after
    biaskit pairs demo-base --out runs/pairs
    biaskit decisions demo --jobs "software engineer" --n-cases 3 --n-people 16 --out runs/decisions
    biaskit probe demo --study occugender-debias --jobs 1-3,21-23 --templates 1-3 --out runs/debiasing
    biaskit probe demo --jobs 1-3,21-23 --templates 1 --continue 5 --out runs/answers
    biaskit analyze recorded:demo-base --out runs/texts
    python tests/fakes/many_models.py runs/scripted --models 3 --texts 12 \
        --occupations nurse,teacher,secretary,cook,lawyer,engineer,mechanic,pilot,librarian,carpenter
    python docs/gallery.py runs

The last command takes names of files too, and copies the figures from the reports of the folder `runs`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import biaskit as bk

GALLERY = Path(__file__).resolve().parent / "gallery"


@dataclass(frozen=True)
class Shown:
    """A figure of the gallery: its kind below `biaskit/measures/`, its file, and where it is."""

    kind: str  # module and function
    file: str  # in docs/gallery/, without its ending
    runs: tuple[str, ...]  # that are reported together
    figure: str = ""  # its name in figures/, where that is another

    @property
    def path(self) -> Path:
        """The file in the gallery."""
        return GALLERY / f"{self.file}.svg"


SHOWN = (
    Shown("report.figures.changes.flipped", "change", ("before", "after")),
    Shown("agree.figures.answer", "answer", ("occugender",)),
    Shown("agree.figures.answer", "answer-both", ("gasp", "texts"), "answer"),
    Shown("agree.figures.answer", "base-and-chat", ("pair",), "answer"),
    Shown("agree.figures.answer", "answer-models", ("scripted/probe", "scripted/personas"), "answer"),
    Shown("probe.figures.groups.groups", "groups", ("occugender",)),
    Shown("probe.figures.jobs.workforce", "workforce", ("occugender",)),
    Shown("probe.figures.jobs.jobs", "jobs", ("scripted/probe",)),
    Shown("personas.figures.scatter", "scatter", ("scripted/personas",)),
    Shown("personas.figures.words", "words", ("scripted/personas",), "words-1"),
    Shown("personas.figures.areas", "transfer", ("texts",)),
    Shown("personas.figures.scores", "srb", ("texts",)),
    Shown("pairs.figures.pairs", "pairs", ("pairs",), "pairs-languages"),
    Shown("decisions.figures.gaps", "decisions", ("decisions",), "decisions-hire"),
    Shown("decisions.figures.ratios", "ratios", ("decisions",), "ratios-hire"),
    Shown("probe.figures.outcomes.outcomes", "outcomes", ("answers",)),
    Shown("report.figures.differences.models", "models", ("scripted/probe",)),
    Shown("agree.figures.gaps", "gaps-implicit", ("scripted/probe", "scripted/personas")),
    Shown("probe.figures.debiasing.debiasing", "debiasing", ("debiasing",)),
    Shown("probe.figures.ways.ways", "ways", ("ways",)),
    Shown("probe.figures.groups.variance", "variance", ("occugender",)),
)


def figures_of(runs: tuple[str, ...], folder: Path) -> dict[str, str]:
    """The figures of a report as SVG, by name."""
    paths = bk.report(*(folder / run for run in runs)).figures
    return {path.stem: path.read_text(encoding="utf-8") for path in paths if path.suffix == ".svg"}


def main() -> int:
    """Report each set of runs once and copy what the gallery shows; all or only the files named."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder, files = Path(sys.argv[1]).resolve(), sys.argv[2:]
    chosen = [shown for shown in SHOWN if not files or shown.file in files]
    figures = {runs: figures_of(runs, folder) for runs in {shown.runs for shown in chosen}}
    GALLERY.mkdir(exist_ok=True)
    for shown in chosen:
        shown.path.write_text(figures[shown.runs][shown.figure or shown.file], encoding="utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except bk.BiaskitError as error:
        sys.exit(str(error))
