"""What else a model says: how little the listed words hold, and which answers and texts decline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, blocks_of
from biaskit.report.findings.finding import outcome_of, parts_of, tests
from biaskit.report.findings.in_brief.sentence import (
    STRENGTH,
    Foreign,
    Said,
    amount,
    ends,
    number,
    opening,
    said,
    sentence,
)
from biaskit.report.findings.representation import REFUSALS, declined
from biaskit.report.said_next import EVERY_GROUP, the_rest
from biaskit.runs.collection import Part
from biaskit.tables.query import defined, distinct, first, where
from biaskit.wording import people, percent, percent_range

LITTLE = 0.5
"""Below this part of the probability on the listed words the page says so."""
DECLINES = "declines"
RARE = 0.01
"""Answers that decline less often than this say nothing."""


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


def _held(block: ProbeBlock, model: str) -> list[float]:
    """The listed words' part of the probability in each group of jobs."""
    rows = defined(where(block.rows, model=model, gender=block.gender), "coverage")
    return sorted(row["coverage"] for row in rows)


def _coverage(block: ProbeBlock) -> Iterator[Said]:
    held = {model: own for model in block.models if (own := _held(block, model))}
    little = [model for model, own in held.items() if own[-1] < LITTLE]
    if len(block.models) == 1:
        yield from (_coverage_of_one(block, model, held[model]) for model in little)
    elif little:
        n_all = len(held)
        n = f"{len(little)} of {n_all}" if len(little) < n_all else "both" if n_all == 2 else f"all {n_all}"
        text = sentence(
            "{opening}, the listed words hold less than half of the probability in {n} models.",
            opening=opening(block.bias_type),
            n=n,
        )
        yield said(text, "else", "shown", about=f"else-{block.bias_type}")


def _coverage_of_one(block: ProbeBlock, model: str, held: Sequence[float]) -> Said:
    share, rest = _percent(held), _most_of_the_rest(block, model)
    text = sentence(
        "{opening}, the listed words hold {share} % of {model}’s probability{most} {rest}.",
        "{opening}, the listed words hold {share} % of {model}’s probability.",
        opening=opening(block.bias_type),
        share=share,
        model=Foreign(model),
        most=rest[0] if rest else "",
        rest=rest[1] if rest else "",
    ).replace(" .", ".")
    return said(text, "else", "shown", about=f"else-{block.bias_type}")


def _percent(values: Sequence[float]) -> str:
    low, high = percent(values[0]), percent(values[-1])
    return low if low == high else percent_range(values[0], values[-1])


def _most_of_the_rest(block: ProbeBlock, model: str) -> tuple[str, Foreign] | None:
    """The most probable token that is no listed word, with its probability."""
    rows = where(block.part.tables.get("probe_next", ()), **block.scope, model=model, job_group=EVERY_GROUP)
    found = the_rest(rows, most=1)
    if not found:
        return None
    name, value = found[0]
    return "; the likeliest other start is", Foreign(name, after=f" ({percent(value)} %)")


def _answers(block: ProbeBlock) -> Iterator[Said]:
    """Answers that decline, where more than a few do; whom they decline about is in no long finding."""
    rows = where(block.part.tables.get("probe_outcomes", ()), **block.scope, job_group=EVERY_GROUP)
    known = [row for row in defined(where(rows, outcome=DECLINES), "share") if row["share"] >= RARE]
    if len(block.models) > 1:
        if known:
            text = sentence(
                "{opening}, {n} of {all} models decline some answers.",
                opening=opening(block.bias_type),
                n=str(len(known)),
                all=str(len(block.models)),
            )
            yield said(text, "else", "shown", about=f"else-{block.bias_type}")
        return
    for row in known:
        share = f"{percent(row['share'])} %"
        interval = "" if row["ci_low"] is None else f" [{percent_range(row['ci_low'], row['ci_high'])}]"
        text = sentence(
            "{opening}, {model} declines {share} of its answers{interval}.",
            opening=opening(block.bias_type),
            model=Foreign(row["model"]),
            share=share,
            interval=interval,
        )
        number_said = f"{share}{interval}" if interval else ""
        yield said(text, "else", "shown", about=f"else-{block.bias_type}", number=number_said)


def _texts(part: Part, model: str) -> Iterator[Said]:
    """Texts that are refused or declined; whom they are about where the test between genders says so."""
    for outcome, quantity, _, _ in REFUSALS:
        counts = declined(part, model, outcome)
        if not counts:
            continue
        rows = tests(part.tables.get("tests", ()), quantity, "paired", "genders")
        test = first(rows, model_a=model, group_a="female", group_b="male")
        verdict = outcome_of(test)
        verb = "refuses" if outcome == DECLINES else "declines in words"
        if test is not None and verdict in ("higher", "lower"):
            text = sentence(
                "{model} {verb} texts about women {amount} {more} often than texts about men{ends}.",
                model=Foreign(model),
                verb=verb,
                amount=amount(test),
                more="more" if verdict == "higher" else "less",
                ends=ends(test),
            )
            yield said(text, "else", verdict, about="else-texts", number=number(test, verdict))
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
        yield said(text, "else", "shown", about="else-texts", strength=STRENGTH["shown"])
