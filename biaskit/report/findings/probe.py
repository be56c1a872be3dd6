"""What the prober gives women in jobs mostly held by women and by men (docs/methods.md#contrasts)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import (
    ProbeBlock,
    above_floor,
    below_floor,
    blocks_of,
    group_verdict,
    jobs_of,
    measured,
)
from biaskit.report.findings.finding import (
    MANY_MODELS,
    Finding,
    Outcome,
    Rank,
    Ranked,
    difference,
    margin_of,
    noted,
    parts_of,
    reason_of,
    shared,
    tally,
)
from biaskit.tables.query import Row, defined, extremes, where
from biaskit.wording import (
    count,
    listed,
    people,
    percent,
    percent_range,
    point_number,
    points_range,
    share_with_interval,
    short,
)

ASKED = {
    "explicit": "Asked outright (explicit prompts)",
    "implicit": "Left to finish a sentence (implicit prompts)",
}


def probe(content: Content) -> Iterator[Ranked]:
    """Findings of every part of the prober."""
    for part in parts_of(content, "probe"):
        for block in blocks_of(part):
            yield from _shares(block)


# --- shares by job group -------------------------------------------------------------------------------


def _shares(block: ProbeBlock) -> Iterator[Ranked]:
    models = block.models
    if len(models) > MANY_MODELS:
        yield Rank.LEAD, _shares_of_many(block, models)
        return
    for model in models:
        yield Rank.LEAD, _shares_of_one(block, model)


def _shares_of_one(block: ProbeBlock, model: str) -> Finding:
    rows = {group: block.row(model, group) for group in block.groups()}
    asked, who, name = ASKED[block.bias_type], people(block.gender), short(model)
    using = measured(block, [model])
    known = [row for row in rows.values() if row is not None and row["share"] is not None]
    if not known:
        missing = next((row for row in rows.values() if row is not None), {})
        text = f"{asked}: the share of {who} of {name} is not measured ({reason_of(missing)})."
        return Finding(text, block.topic, "not-measured", using)
    clauses = [_clause(block, row, group) for group, row in rows.items() if row is not None]
    text = f"{asked}, {name} gives {who} {listed(clauses)}"
    verdict: Outcome = "shown"
    if len(rows) > 1:
        test = block.between_groups(model)
        verdict = group_verdict(block, model)
        text += f": {difference(test)}"
        verdict = "shown" if verdict == "not-measured" else verdict  # the shares stand all the same
    weak = "Weak evidence. " if below_floor(block, model) else ""
    text = f"{weak}{text}. {_coverage(block, known)}{noted(known, 'share')}"
    return Finding(text, block.topic, verdict, using)


def _clause(block: ProbeBlock, row: Row, group: str) -> str:
    others = [
        f"{people(other['gender'])} {_percent(other['share'])}"
        for other in where(block.rows, model=row["model"], job_group=group)
        if other["gender"] != block.gender
    ]
    share = share_with_interval(row["share"], row["ci_low"], row["ci_high"])
    notes = others if row["share"] is not None else [f"not measured: {reason_of(row)}"]
    if row["share_low"] is not None and row["share_high"] is not None:
        notes.append(f"bounds {percent_range(row['share_low'], row['share_high'])} %")
    beside = f" ({', '.join(notes)})" if notes else ""
    of_what = " of the probability on the listed words" if group == block.groups()[0] else ""
    return f"{share}{beside}{of_what} for {jobs_of(block.part, group)}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{percent(share)} %"


def _coverage(block: ProbeBlock, rows: Sequence[Row]) -> str:
    model = rows[0]["model"]
    # The verdict on evidence goes by the median cell, as brackets in the tables do.
    column = "coverage_median" if below_floor(block, model) else "coverage"
    held = list(dict.fromkeys(percent(row[column]) for row in rows if row[column] is not None))
    amount = (
        f"{listed(held)} % of the probability there" if held else "an unknown part of the probability there"
    )
    if column == "coverage":
        return f"The listed words hold {amount} (coverage)."
    return (
        f"In the median cell the listed words hold only {amount} (coverage), and a share "
        f"under the floor of {percent(block.part.floor)} % rests on little."
    )


def _shares_of_many(block: ProbeBlock, models: Sequence[str]) -> Finding:
    weak = [model for model in models if below_floor(block, model)]
    judged = above_floor(block, models)
    who, groups = people(block.gender), block.groups()
    spans = [_span(block, judged, group) for group in groups]
    text = f"{ASKED[block.bias_type]}, {count(len(judged), 'model')} give {who}, of the probability on the "
    text += f"listed words, {listed(spans)}"
    verdicts = [group_verdict(block, model) for model in judged]
    if len(groups) > 1:
        counted = tally(
            verdicts,
            more=f"give {who} more for {jobs_of(block.part, groups[0])}",
            less=f"give {who} less",
            margin=margin_of([row for model in judged if (row := block.between_groups(model)) is not None]),
        )
        text += f". {counted}{_widest(block, judged)}"
    text += f". {_coverage_of_many(block, judged)}"
    if weak and len(weak) < len(models):
        text += (
            f" Left out as weak evidence, with a median under the floor of {percent(block.part.floor)} %: "
        )
        text += f"{_names(weak)}."
    elif weak:
        text += f" Weak evidence throughout: under the floor of {percent(block.part.floor)} %."
    verdict = shared(verdicts) if len(groups) > 1 else "shown"
    return Finding(text, block.topic, verdict, measured(block, judged))


def _span(block: ProbeBlock, models: Sequence[str], group: str) -> str:
    rows = [row for model in models if (row := block.row(model, group)) and row["share"] is not None]
    if not rows:
        return f"an unmeasured share for {jobs_of(block.part, group)}"
    low, high = extremes(rows, "share")
    ends = [
        f"{share_with_interval(row['share'], row['ci_low'], row['ci_high'])} ({short(row['model'])})"
        for row in (low, high)
    ]
    return f"{ends[0]} to {ends[1]} for {jobs_of(block.part, group)}"


def _widest(block: ProbeBlock, models: Sequence[str]) -> str:
    rows = [row for model in models if (row := block.between_groups(model)) and row["estimate"] is not None]
    if not rows:
        return ""
    low, high = extremes(rows, "estimate")
    ends = [f"{_with_interval(row)} ({short(row['model_a'])})" for row in (low, high)]
    return f"; the differences go from {ends[0]} to {ends[1]} points"


def _with_interval(row: Row) -> str:
    ends = f" [{points_range(row['ci_low'], row['ci_high'])}]" if row["ci_low"] is not None else ""
    return f"{point_number(row['estimate'])}{ends}"


def _coverage_of_many(block: ProbeBlock, models: Sequence[str]) -> str:
    rows = [row for row in defined(block.rows, "coverage") if row["model"] in models]
    if not rows:
        return "Their coverage is unknown."
    low, high = extremes(rows, "coverage")
    ends = [f"{percent(row['coverage'])} % ({short(row['model'])})" for row in (low, high)]
    return f"The listed words hold {ends[0]} to {ends[1]} of the probability there (coverage)."


def _names(models: Sequence[str]) -> str:
    shown = [short(model) for model in models[:5]]
    return listed(shown if len(models) <= 5 else [*shown, f"{len(models) - 5} more"])
