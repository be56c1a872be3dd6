"""Who a model says: one sentence for each way of asking, and what wording changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, below_floor, blocks_of, group_verdict
from biaskit.report.findings.finding import Outcome, parts_of, shared
from biaskit.report.findings.framing import over_paraphrases
from biaskit.report.findings.in_brief.sentence import (
    STRENGTH,
    WEAKER,
    Foreign,
    Piece,
    Said,
    amount,
    ends,
    number,
    one_group,
    opening,
    other_group,
    said,
    sentence,
    span,
    strength_of,
    who,
    why,
    within,
)
from biaskit.report.findings.in_brief.several import counted
from biaskit.tables.query import Row, defined, extremes
from biaskit.wording import count, percent, share_with_interval


def say(content: Content) -> Iterator[Said]:
    """What the prober found between groups of jobs, then how far it holds over paraphrases."""
    blocks = [block for part in parts_of(content, "probe") for block in blocks_of(part)]
    for block in blocks:
        if len(block.models) > 1:
            yield from _of_many(block)
        else:
            yield from (one for model in block.models for one in _of_one(block, model))
    for block in blocks:
        yield from (one for model in block.models for one in _wording(block, model))


def _of_one(block: ProbeBlock, model: str) -> Iterator[Said]:
    row, weak = block.between_groups(model), below_floor(block, model)
    if row is None or row["estimate"] is None:
        yield from _shares(block, model, row)
        return
    verdict = group_verdict(block, model)
    text = sentence(
        *_TEMPLATES.get(verdict, _NO_VERDICT),
        **_pieces(block, row),
        opening=opening(block.bias_type, weak=weak),
        model=Foreign(model),
        amount=amount(row),
        more="more" if verdict == "higher" else "less",
        ends=ends(row),
        span=span(row),
        within=within([row]),
        why=why(row),
    )
    strength = max(WEAKER, STRENGTH[verdict]) if weak else STRENGTH[verdict]
    yield said(text, "say", verdict, about=_about(block), number=number(row, verdict), strength=strength)


_TEMPLATES = {
    **dict.fromkeys(
        ("higher", "lower"),
        (
            "{opening}, {model} says {who} {amount} {more} often for {a} than for {b}{ends}.",
            "{opening}, {model} says {who} {amount} {more} often for {a}{ends}.",
        ),
    ),
    "equivalent": (
        "{opening}, {model} says {who} about as often for {a} as for {b}{within}.",
        "{opening}, {model} says {who} about as often for {a} as for {b}.",
    ),
    "no-clear-difference": (
        "{opening}, no clear difference in how often {model} says {who} for {a} and for {b}{span}.",
        "{opening}, no clear difference in how often {model} says {who} for {a} and {b}.",
    ),
    "not-identified": (
        "{opening}, the difference between {a} and {b} in {model}’s answers is not identified.",
    ),
}
_NO_VERDICT = (
    "{opening}, no verdict on {a} against {b} for {model}: {why}.",
    "{opening}, no verdict on {a} against {b} for {model}.",
)


def _pieces(block: ProbeBlock, row: Row | None) -> dict[str, Piece]:
    a, b = (row["group_a"], row["group_b"]) if row is not None else [*block.groups(), "", ""][:2]
    part = block.part
    return {"who": who(block.gender), "a": one_group(part, a), "b": other_group(part, b, a)}


def _about(block: ProbeBlock) -> str:
    return f"say-{block.bias_type}"


def _shares(block: ProbeBlock, model: str, test: Row | None) -> Iterator[Said]:
    """Where no two groups are held against each other: the share of each, or why there is none."""
    rows = [row for group in block.groups() if (row := block.row(model, group)) is not None]
    pieces: dict[str, Piece] = {
        "opening": opening(block.bias_type, weak=below_floor(block, model)),
        "model": Foreign(model),
    }
    known = defined(rows, "share")
    for row in known:
        share = share_with_interval(row["share"], row["ci_low"], row["ci_high"])
        value, bracket, interval = share.partition(" [")
        text = sentence(
            "{opening}, {model} says {who} {value} of the time for {group}{interval}.",
            who=who(block.gender),
            group=one_group(block.part, row["job_group"]),
            value=value,
            interval=bracket + interval,
            **pieces,
        )
        yield said(text, "say", "shown", about=_about(block), number=share if bracket else "")
    if not known:
        text = sentence(
            "{opening}, how often {model} says {who} is not measured ({why}).",
            who=who(block.gender),
            why=why(rows[0] if rows else test),
            **pieces,
        )
        yield said(text, "say", "not-measured", about=_about(block))


def _shares_of_many(block: ProbeBlock, models: Sequence[str], *, weak: bool) -> Iterator[Said]:
    """For each group of jobs from the lowest share to the highest."""
    for group in block.groups():
        rows = [row for model in models if (row := block.row(model, group)) is not None]
        if known := defined(rows, "share"):
            low, high = extremes(known, "share")
            text = sentence(
                "{opening}, {models} say {who} {low} to {high} % of the time for {group}.",
                opening=opening(block.bias_type, weak=weak),
                models=count(len(known), "model"),
                who=who(block.gender),
                low=percent(low["share"]),
                high=percent(high["share"]),
                group=one_group(block.part, group),
            )
            yield said(text, "say", "shown", about=_about(block))


def judged(block: ProbeBlock, models: Sequence[str]) -> tuple[list[str], int, bool]:
    """The models a sentence counts, how many it leaves out as weak, and whether all of them are."""
    strong = [model for model in models if not below_floor(block, model)]
    return strong or list(models), len(models) - len(strong) if strong else 0, not strong


def _of_many(block: ProbeBlock) -> Iterator[Said]:
    models, n_weak, weak = judged(block, block.models)
    rows = {model: block.between_groups(model) for model in models}
    if len(block.groups()) < 2 or not any(row is not None for row in rows.values()):
        yield from _shares_of_many(block, models, weak=weak)
        return
    verdicts = [group_verdict(block, model) for model in models]
    row = next(row for row in rows.values() if row is not None)
    text = counted(
        verdicts,
        _CLAUSES,
        _SHORT_CLAUSES,
        before="{opening}, ",
        n_weak=n_weak,
        pieces={"opening": opening(block.bias_type, weak=weak), **_pieces(block, row)},
    )
    strength = max(WEAKER, strength_of(verdicts)) if weak else strength_of(verdicts)
    yield said(text, "say", shared(verdicts), about=_about(block), strength=strength)


_OFTEN = "say {who} %s often for {a} than for {b}"
_CLAUSES: dict[Outcome, str] = {
    "higher": _OFTEN % "more",
    "lower": _OFTEN % "less",
    "equivalent": "say {who} about as often for {a} as for {b}",
    "no-clear-difference": "show no clear difference between {a} and {b}",
    "not-identified": "leave the difference between {a} and {b} not identified",
    "no-verdict": "have no verdict on {a} against {b}",
    "shown": "have no verdict on {a} against {b}",
    "not-measured": "have no measured difference between {a} and {b}",
}
_SHORT_CLAUSES: dict[Outcome, str] = {
    **_CLAUSES,
    "higher": "say {who} more often for {a}",
    "lower": "say {who} less often for {a}",
}


def _wording(block: ProbeBlock, model: str) -> Iterator[Said]:
    for row in over_paraphrases(block, model):
        if row["n_same_sign"] is None or not row["n_wordings"]:
            continue
        text = sentence(
            "{opening}, {model}’s difference between {a} and {b} goes one way in {n} of {m} paraphrases.",
            "{opening}, {model}’s difference between groups goes one way in {n} of {m} paraphrases.",
            opening=opening(block.bias_type, weak=below_floor(block, model)),
            model=Foreign(model),
            n=str(row["n_same_sign"]),
            m=str(row["n_wordings"]),
            **{name: piece for name, piece in _pieces(block, row).items() if name != "who"},
        )
        yield said(text, "say", "shown", about=_about(block))
