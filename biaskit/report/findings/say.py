"""Who a model says: between groups of jobs, and against parity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, are_fields, below_floor, blocks_of, measured, one_group
from biaskit.report.findings.contrasts import Claim, Kind, contrast, directed
from biaskit.report.findings.finding import MEASURED, outcome_of, parts_of, tests
from biaskit.report.findings.sentence import (
    DETAIL,
    Foreign,
    Piece,
    Said,
    said,
    sentence,
    who,
    why,
)
from biaskit.stats.verdict import interval_side
from biaskit.tables.query import Row, defined, extremes, grouped, where
from biaskit.wording import count, number_range, percent, share_with_interval

_OFTEN = "say {who} %s often for {a} than for {b}"
GROUPS = Kind(
    question="say",
    lead="{opening}, ",
    what="the difference between {a} and {b}",
    of=" in {model}’s answers",
    one={
        **directed(
            "{model} says {who} {amount} {more} often for {a} than for {b}{ends}.",
            "{model} says {who} {amount} {more} often for {a}{ends}.",
        ),
        "equivalent": (
            "{model} says {who} about as often for {a} as for {b}{within}.",
            "{model} says {who} about as often for {a} as for {b}.",
        ),
        "no-clear-difference": (
            "no clear difference in how often {model} says {who} for {a} and for {b}{span}.",
            "no clear difference in how often {model} says {who} for {a} and {b}.",
        ),
    },
    many={
        "higher": _OFTEN % "more",
        "lower": _OFTEN % "less",
        "equivalent": "say {who} about as often for {a} as for {b}",
        "no-clear-difference": "show no clear difference between {a} and {b}",
    },
    shorter={"higher": "say {who} more often for {a}", "lower": "say {who} less often for {a}"},
)
ASYMMETRY = Kind(
    question="say",
    lead="{opening}, ",
    what="men’s share for men’s jobs against women’s for women’s",
    of=" in {model}’s answers",
    one={
        **directed("{model} says men for men’s jobs {amount} {more} often than women for women’s{ends}."),
        "equivalent": ("{model} says men for men’s jobs about as often as women for women’s{within}.",),
        "no-clear-difference": (
            "no clear difference in how often {model} says men for men’s jobs and women for women’s{span}.",
        ),
    },
    many={
        "higher": "say men for men’s jobs more often than women for women’s",
        "lower": "say men for men’s jobs less often than women for women’s",
        "equivalent": "say men for men’s jobs about as often as women for women’s",
        "no-clear-difference": "show no clear difference between men for men’s jobs and women for women’s",
    },
)

DECIDED = (*MEASURED, "not-identified")


def say(content: Content) -> Iterator[Said]:
    """What the prober found between groups of jobs, then against parity."""
    blocks = [block for part in parts_of(content, "probe") for block in blocks_of(part)]
    for block in blocks:
        yield from _groups(block)
    for block in blocks:
        yield from _asymmetry(block)
        if content.reference in ("parity", "both"):
            yield from _parity(block)


def claims_of(block: ProbeBlock, rows: Sequence[Row]) -> list[Claim]:
    """Rows of tests.csv, one for each model of a block at most, as claims."""
    found = {row["model_a"]: row for row in rows}
    return [Claim(m, found[m], below_floor(block, m)) for m in block.models if m in found]


def about(block: ProbeBlock) -> str:
    """Sentences of one way of asking are about one thing."""
    return f"say-{block.bias_type}"


def of_block(kind: Kind, block: ProbeBlock, claims: Sequence[Claim], least: int = 0, **more: Piece) -> Said:
    """A sentence about claims of a block's models, the first of which has a row."""
    rows = [one.row for one in claims if one.row is not None]
    return contrast(
        kind,
        claims,
        block.topic,
        measured(block, [one.model for one in claims], rows),
        asked=block.bias_type,
        about=f"{kind.question}-{block.bias_type}",
        least=least,
        pieces={**block.pair(rows[0]), **more},
    )


def _groups(block: ProbeBlock) -> Iterator[Said]:
    """Each pair of groups; where no two are held against each other, the share of each."""
    tested = where(tests(block.tests, "share", "crossed", "groups"), gender=block.gender)
    tested = [row for row in tested if row["model_a"] in block.models]
    if len(block.groups()) < 2 or not (defined(tested, "estimate") or (tested and len(block.models) > 1)):
        yield from _shares(block, next(iter(tested), None))
        return
    if len(block.models) == 1 and not any(outcome_of(row) in DECIDED for row in tested):
        yield from _shares(block, None)
    for own in grouped(tested, "group_a", "group_b").values():
        found = {one.model: one for one in claims_of(block, own)}
        missing = [Claim(m, None, below_floor(block, m)) for m in block.models if m not in found]
        yield of_block(GROUPS, block, [*found.values(), *missing])


def _shares(block: ProbeBlock, test: Row | None) -> Iterator[Said]:
    """Where no two groups are held against each other: the share of each, or why there is none."""
    strong = [model for model in block.models if not below_floor(block, model)]
    models = strong or block.models
    pieces: dict[str, Piece] = {
        "opening": block.opening(models),
        "model": Foreign(models[0]),
        "who": who(block.gender),
    }
    weak = None if strong else DETAIL
    rows = {
        group: [row for m in models if (row := block.row(m, group)) is not None] for group in block.groups()
    }
    every = [row for own in rows.values() for row in own]
    for group, own in rows.items():
        if not (known := defined(own, "share")):
            continue
        low, high = extremes(known, "share")
        ends = dict.fromkeys((percent(low["share"]), percent(high["share"])))
        share = share_with_interval(low["share"], low["ci_low"], low["ci_high"]) if len(models) == 1 else ""
        value, bracket, interval = share.partition(" [")
        text = sentence(
            "{opening}, {model} says {who} {value} of the time for {group}{interval}."
            if share
            else "{opening}, {n} say {who} {ends} % of the time for {group}.",
            **pieces,
            group=one_group(block.part, group),
            value=value,
            interval=bracket + interval,
            ends=" to ".join(ends),
            n=count(len(known), "model"),
        )
        number = share if bracket else ""
        using = measured(block, models, own)
        yield said(text, block.topic, "say", measured=using, about=about(block), number=number, strength=weak)
    if not defined(every, "share"):
        text = sentence(
            "{opening}, how often {model} says {who} is not measured ({why})."
            if len(models) == 1
            else "{opening}, how often {n} say {who} is not measured ({why}).",
            **pieces,
            n=count(len(models), "model"),
            why=why(every[0] if every else test),
        )
        yield said(
            text, block.topic, "say", "not-measured", measured(block, models, every), about=about(block)
        )


# --- asymmetry and parity ------------------------------------------------------------------------


def _asymmetry(block: ProbeBlock) -> Iterator[Said]:
    rows = defined(tests(block.tests, "asymmetry", "crossed", "groups"), "estimate")
    claims = [one for one in claims_of(block, rows) if one.outcome in MEASURED]
    if claims:
        yield of_block(ASYMMETRY, block, claims, DETAIL)


def _parity(block: ProbeBlock) -> Iterator[Said]:
    """How many jobs lie on which side of parity, each by its own interval."""
    a, b = block.part.contrast if all(block.part.contrast) else ("female", "male")
    jobs = where(block.part.tables.get("probe_jobs", ()), **block.scope)
    rows = [row for row in jobs if row.get(f"{a}_minus_{b}") is not None and row["ci_low"] is not None]
    sides = {model: [interval_side(row) for row in own] for (model,), own in grouped(rows, "model").items()}
    counts = [
        [sides[model].count(side) for side in ("higher", "lower")] for model in block.models if model in sides
    ]
    if not counts:
        return
    text = sentence(
        "{opening}, {one} by {one}, {models} {say} {who} more than {other} for {more} of {n}, less for {k}.",
        opening=block.opening(block.models),
        models=Foreign(block.models[0]) if len(counts) == 1 else count(len(counts), "model"),
        say="says" if len(counts) == 1 else "say",
        who=who(a),
        other=who(b),
        more=number_range(sorted(more for more, _ in counts)),
        k=number_range(sorted(less for _, less in counts)),
        n=str(len(dict.fromkeys(row["job"] for row in rows))),
        one="field" if are_fields(block.part) else "job",
    )
    using = measured(block, block.models, (), "each job by its own interval over templates")
    yield said(text, block.topic, "say", measured=using, about=about(block), strength=DETAIL)
