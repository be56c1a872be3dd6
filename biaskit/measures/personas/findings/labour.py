"""Say whether texts mirror, flatten or exaggerate the workforce (methods/representation#labour-words)."""

from __future__ import annotations

from collections.abc import Iterator

from biaskit.common.wording import percent, short
from biaskit.measures.personas.findings.texts import occupations_of
from biaskit.records import GENDERS
from biaskit.report.content import Content, kind_of, parts_of
from biaskit.report.findings.finding import measured_by, noted, tests
from biaskit.report.findings.labour import Slope, apart, claim_of, slopes_with_words
from biaskit.report.findings.sentence import Sentence
from biaskit.runs.collection import Part
from biaskit.tables.query import defined, first, total, where


def slopes(content: Content) -> Iterator[Slope]:
    """Yield the slope of each model; the mean difference from the labour shares takes the level's place."""
    for part in parts_of(content.parts, "personas"):
        rows_of_kind = {
            kind: tests(part.tables.get("tests", ()), "represented_share", kind, "labour")
            for kind in ("slope", "paired", "distance")
        }
        for row in defined(rows_of_kind["slope"], "estimate"):
            model = row["model_a"]
            level, distance = (first(rows_of_kind[kind], model_a=model) for kind in ("paired", "distance"))
            yield Slope(part, model, row, level, distance)


def labour(content: Content) -> Iterator[Sentence]:
    """Make a sentence for each model; the mean difference says what an unclear word would."""
    for slope in slopes_with_words(content):
        if kind_of(slope.part).name == "personas" and slope.word != "unclear":
            notes = [*noted((slope.row, slope.level, slope.distance)), *apart(slope.distance)]
            using = measured_by(short(slope.model), notes=[*notes, *_not_of_two(slope.part, slope.model)])
            yield claim_of(
                *(slope, "write"),
                topic="representation",
                measured=using,
                about="write",
                pieces={"opening": "in its texts"},
            )


def _not_of_two(part: Part, model: str) -> list[str]:
    """Note how many of the texts with a gender are about neither a woman nor a man."""
    rows = where(occupations_of(part), model=model)
    n_of = {gender: total(rows, f"n_{gender}") for gender in GENDERS}
    if not n_of["nonbinary"]:
        return []
    neither = percent(n_of["nonbinary"] / sum(n_of.values()))
    return [f"women among women and men; {neither} % of texts with a gender are about neither"]
