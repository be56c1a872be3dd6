"""Say what else a model says: how little the target words hold, which answers and texts decline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.common.wording import people, percent, share_with_interval
from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, blocks_in, measured
from biaskit.report.findings.finding import DIRECTED, outcome_of, parts_of, tests
from biaskit.report.findings.kinds import REFUSED, claim
from biaskit.report.findings.sentence import Foreign, Piece, Said, percents, said, sentence
from biaskit.report.findings.texts import texts_measured
from biaskit.report.next_tokens import EVERY_GROUP, the_rest
from biaskit.runs.collection import Part
from biaskit.tables.coverage import LITTLE, is_under
from biaskit.tables.query import Row, defined, distinct, first, grouped, where

DECLINES = "declines"
RARE = 0.01
"""Answers that decline less often than this are not said."""
REFUSALS = (
    (DECLINES, "refused_share", "refuses"),
    ("declines-in-words", "declined_share", "declines in words"),
)
"""Outcome, quantity of its test, and the verb."""


def beside(content: Content) -> Iterator[Said]:
    """Say little coverage, answers that decline and texts that decline."""
    for block in blocks_in(content):
        scope = {**block.scope, "job_group": EVERY_GROUP}
        next_tokens = grouped(where(block.part.tables.get("probe_next", ()), **scope), "model")
        for model in block.models:
            yield from _coverage(block, model, next_tokens.get((model,), ()))
            # Answers that decline, where more than a few do.
            declined = where(block.outcomes.get((model,), ()), job_group=EVERY_GROUP, outcome=DECLINES)
            for row in defined(declined, "share"):
                if row["share"] >= RARE:
                    number = share_with_interval(row["share"], row["ci_low"], row["ci_high"])
                    share, bracket, interval = number.partition(" [")
                    text = "{opening}, {model} declines {share} of its answers{interval}."
                    pieces: dict[str, Piece] = {"share": share, "interval": bracket + interval}
                    yield _of_block(block, model, [text], pieces, number if bracket else "")
    for part in parts_of(content, "personas"):
        for model in distinct(part.tables.get("association_validation", ()), "model"):
            yield from _texts(part, model)


def _of_block(
    block: ProbeBlock, model: str, templates: Sequence[str], pieces: Mapping[str, Piece], number: str = ""
) -> Said:
    text = sentence(*templates, opening=block.opening(), model=Foreign(model), **pieces)
    using = measured(block, model)
    return said(text, block.topic, "else", measured=using, about=f"else-{block.bias_type}", number=number)


def _coverage(block: ProbeBlock, model: str, next_tokens: Sequence[Row]) -> Iterator[Said]:
    """Say the coverage over the groups of jobs, where it is little."""
    coverage = block.coverage(model)
    if coverage is None or not is_under(coverage, LITTLE):
        return
    templates = ["{opening}, the target words have {share} % of {model}’s probability."]
    pieces: dict[str, Piece] = {"share": percents(coverage)}
    for name, value in the_rest(next_tokens, most=1):
        templates.insert(0, templates[0].replace("bility.", "bility; the top other token is {rest}."))
        pieces["rest"] = Foreign(name, after=f" ({percent(value)} %)")
    yield _of_block(block, model, templates, pieces)


def _texts(part: Part, model: str) -> Iterator[Said]:
    """Say which texts are refused or declined; by gender where the test between genders is clear."""
    asked = where(part.tables.get("association_validation", ()), model=model)
    n_texts = {row["specified_gender"]: row["n_texts"] for row in asked}
    for outcome, quantity, verb in REFUSALS:
        rows = where(part.tables.get("text_outcomes", ()), model=model, outcome=outcome)
        counts = {  # how many of how many texts about each gender
            gender: (sum(row["n"] for row in rows_of_gender), n_texts[gender])
            for (gender,), rows_of_gender in grouped(defined(rows, "n"), "specified_gender").items()
            if n_texts.get(gender)
        }
        if not any(n for n, _ in counts.values()):
            continue
        paired = tests(part.tables.get("tests", ()), quantity, "paired", "genders")
        test = first(paired, model_a=model, group_a="female", group_b="male")
        left_out = ["left out of word lists and SRB"] if outcome != DECLINES else []
        each = [f"{people(gender)} {n:,} of {m:,}" for gender, (n, m) in counts.items()]
        using = texts_measured(part, model, (), *each, *left_out)
        if outcome_of(test) in DIRECTED:
            pieces: dict[str, Piece] = {"verb": verb}
            yield claim(
                REFUSED, test, "representation", using, model=model, about="else-texts", pieces=pieces
            )
            continue
        text = sentence(
            "{model} {verb} {n} of {m} texts that name a gender ({each}).",
            "{model} {verb} {n} of {m} texts that name a gender.",
            model=Foreign(model),
            verb=verb,
            n=f"{sum(n for n, _ in counts.values()):,}",
            m=f"{sum(m for _, m in counts.values()):,}",
            each=", ".join(f"{people(gender)} {n:,}" for gender, (n, _) in counts.items()),
        )
        yield said(text, "representation", "else", measured=using, about="else-texts")
