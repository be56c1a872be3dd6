"""What else a model says: how little the listed words hold, and which answers and texts decline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, blocks_of, measured
from biaskit.report.findings.contrasts import Claim, Kind, contrast, directed
from biaskit.report.findings.finding import DIRECTED, outcome_of, parts_of, tests
from biaskit.report.findings.sentence import Foreign, Piece, Said, said, sentence
from biaskit.report.findings.write import texts_measured
from biaskit.report.said_next import EVERY_GROUP, the_rest
from biaskit.runs.collection import Part
from biaskit.tables.query import defined, distinct, first, grouped, where
from biaskit.wording import people, percent, percent_range, share_with_interval

LITTLE = 0.5
"""Below this part of the probability on the listed words the page says so."""
DECLINES = "declines"
RARE = 0.01
"""Answers that decline less often than this say nothing."""
REFUSALS = (
    (DECLINES, "refused_share", "refuses"),
    ("declines-in-words", "declined_share", "declines in words"),
)
"""Outcome, quantity of its test, and the verb."""
REFUSED = Kind(
    question="else",
    what="texts about women and men declined",
    one=directed("{model} {verb} texts about women {amount} {more} often than texts about men{ends}."),
)


def beside(content: Content) -> Iterator[Said]:
    """Coverage, answers that decline, texts that decline."""
    for part in parts_of(content, "probe"):
        for block in blocks_of(part):
            yield from _coverage(block)
        for block in blocks_of(part):
            yield from _answers(block)
    for part in parts_of(content, "personas"):
        for model in distinct(part.tables.get("association_validation", ()), "model"):
            yield from _texts(part, model)


def _of_block(
    block: ProbeBlock, templates: Sequence[str], pieces: Mapping[str, Piece], number: str = ""
) -> Said:
    text = sentence(*templates, **{"opening": block.opening(), **pieces})
    using = measured(block, block.models)
    return said(text, block.topic, "else", measured=using, about=f"else-{block.bias_type}", number=number)


def _held(block: ProbeBlock, model: str) -> list[float]:
    """The listed words' part of the probability in each group of jobs."""
    return sorted(row["coverage"] for row in defined(block.rows_of(model), "coverage"))


def _coverage(block: ProbeBlock) -> Iterator[Said]:
    held = {model: own for model in block.models if (own := _held(block, model))}
    little = [model for model, own in held.items() if own[-1] < LITTLE]
    if len(block.models) == 1:
        yield from (_coverage_of_one(block, model, held[model]) for model in little)
    elif little:
        n_all = len(held)
        n = f"{len(little)} of {n_all}" if len(little) < n_all else "both" if n_all == 2 else f"all {n_all}"
        text = "{opening}, the listed words hold less than half of the probability in {n} models."
        yield _of_block(block, [text], {"n": n})


def _coverage_of_one(block: ProbeBlock, model: str, held: Sequence[float]) -> Said:
    rows = where(block.part.tables.get("probe_next", ()), **block.scope, model=model, job_group=EVERY_GROUP)
    low, high = percent(held[0]), percent(held[-1])
    templates = ["{opening}, the listed words hold {share} % of {model}’s probability."]
    pieces: dict[str, Piece] = {}
    for name, value in the_rest(rows, most=1):
        templates.insert(0, templates[0].replace("bility.", "bility; the likeliest other start is {rest}."))
        pieces["rest"] = Foreign(name, after=f" ({percent(value)} %)")
    share = low if low == high else percent_range(held[0], held[-1])
    return _of_block(block, templates, {"share": share, "model": Foreign(model), **pieces})


def _answers(block: ProbeBlock) -> Iterator[Said]:
    """Answers that decline, where more than a few do."""
    rows = where(block.part.tables.get("probe_outcomes", ()), **block.scope, job_group=EVERY_GROUP)
    known = [row for row in defined(where(rows, outcome=DECLINES), "share") if row["share"] >= RARE]
    if known and len(block.models) > 1:
        text = "{opening}, {n} of {all} models decline some answers."
        yield _of_block(block, [text], {"n": str(len(known)), "all": str(len(block.models))})
    for row in known if len(block.models) == 1 else ():
        number = share_with_interval(row["share"], row["ci_low"], row["ci_high"])
        share, bracket, interval = number.partition(" [")
        text = "{opening}, {model} declines {share} of its answers{interval}."
        pieces: dict[str, Piece] = {"share": share, "interval": bracket + interval}
        pieces["model"] = Foreign(row["model"])
        yield _of_block(block, [text], pieces, number if bracket else "")


def declined(part: Part, model: str, outcome: str) -> dict[str, tuple[int, int]]:
    """How many of how many texts about each gender have an outcome; empty where none has."""
    rows = defined(where(part.tables.get("text_outcomes", ()), model=model, outcome=outcome), "n")
    asked = where(part.tables.get("association_validation", ()), model=model)
    n_texts = {row["specified_gender"]: row["n_texts"] for row in asked}
    counts = {
        gender: (sum(row["n"] for row in own), n_texts[gender])
        for (gender,), own in grouped(rows, "specified_gender").items()
        if n_texts.get(gender)
    }
    return counts if any(n for n, _ in counts.values()) else {}


def _texts(part: Part, model: str) -> Iterator[Said]:
    """Texts that are refused or declined; whom they are about where the test between genders says so."""
    for outcome, quantity, verb in REFUSALS:
        counts = declined(part, model, outcome)
        rows = tests(part.tables.get("tests", ()), quantity, "paired", "genders")
        test = first(rows, model_a=model, group_a="female", group_b="male")
        each = ", ".join(f"{people(gender)} {n:,}" for gender, (n, _) in counts.items())
        left_out = ["in no list of words and no SRB"] if outcome != DECLINES else []
        using = texts_measured(
            part, [model], (), *(f"{people(g)} {n:,} of {m:,}" for g, (n, m) in counts.items()), *left_out
        )
        if counts and outcome_of(test) in DIRECTED:
            yield contrast(
                REFUSED,
                [Claim(model, test)],
                "representation",
                using,
                about="else-texts",
                pieces={"verb": verb},
            )
        elif counts:
            text = sentence(
                "{model} {verb} {n} of {m} texts that name a gender ({each}).",
                "{model} {verb} {n} of {m} texts that name a gender.",
                model=Foreign(model),
                verb=verb,
                n=f"{sum(n for n, _ in counts.values()):,}",
                m=f"{sum(m for _, m in counts.values()):,}",
                each=each,
            )
            yield said(text, "representation", "else", measured=using, about="else-texts")
