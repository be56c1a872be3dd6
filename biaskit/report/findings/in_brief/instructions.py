"""Whether instructions help, and what the framing of a question changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, below_floor, blocks_of
from biaskit.report.findings.debiasing import effects
from biaskit.report.findings.finding import outcome_of, parts_of, shared
from biaskit.report.findings.framing import factor_rows
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
    strength_of,
    who,
    within,
)
from biaskit.tables.query import Row, defined, distinct, grouped
from biaskit.wording import count

DIRECTED = ("higher", "lower")


def instructions(content: Content) -> Iterator[Said]:
    """Debiasing instructions, then factors of framing."""
    blocks = [block for part in parts_of(content, "probe") for block in blocks_of(part)]
    for block in blocks:
        rows = defined(effects(block, "instructions"), "estimate")
        rows = [row for row in rows if row["model_a"] in block.models]
        if rows:
            yield from _instructions(block, rows)
    for block in blocks:
        for model in block.models:
            yield from _framing(block, model)


def _instructions(block: ProbeBlock, rows: Sequence[Row]) -> Iterator[Said]:
    """The largest clear change, and how many are clear."""
    verdicts = [outcome_of(row) for row in rows]
    clear = [row for row in rows if outcome_of(row) in DIRECTED]
    if clear:
        yield _change(block, max(clear, key=lambda row: abs(row["estimate"])), "instruction {instruction}")
    weak = any(below_floor(block, model) for model in distinct(rows, "model_a"))
    models = distinct(rows, "model_a")
    pieces: dict[str, Piece] = {
        "opening": opening(block.bias_type, weak=weak),
        "whose": Foreign(models[0], after="’s") if len(models) == 1 else f"{len(models)} models’",
        "n": count(len(rows), "change"),
        "within": within(rows),
        "clear": str(len(clear)),
        "what": count(len(distinct(rows, "instruction_a")), "instruction"),
    }
    if not clear and set(verdicts) == {"equivalent"}:
        template = "{opening}, {what} leave {whose} answers about the same{within}."
    elif not clear:
        template = "{opening}, no clear change of {whose} answers by any of {what}."
    else:
        template = "{opening}, {clear} of {n} by {what} to {whose} answers are clear."
    strength = max(WEAKER, strength_of(verdicts)) if weak else strength_of(verdicts)
    verdict = "shown" if clear else shared(verdicts)
    yield said(
        sentence(template, **pieces), "help", verdict, about=f"help-{block.bias_type}", strength=strength
    )


def _change(block: ProbeBlock, row: Row, because: str) -> Said:
    """What one instruction, or one framing, clearly changes for a group of jobs."""
    verdict, weak = outcome_of(row), below_floor(block, row["model_a"])
    text = sentence(
        f"{{opening}}, {because} makes {{model}} say {{who}} {{amount}} {{more}} often for {{jobs}}{{ends}}.",
        f"{{opening}}, {because} makes {{model}} say {{who}} {{amount}} {{more}} often for {{jobs}}.",
        opening=opening(block.bias_type, weak=weak),
        instruction=Foreign(row["instruction_a"]),
        model=Foreign(row["model_a"]),
        who=who(block.gender),
        amount=amount(row),
        more="more" if verdict == "higher" else "less",
        jobs=one_group(block.part, row["group_a"]),
        ends=ends(row),
    )
    strength = WEAKER if weak else STRENGTH[verdict]
    return said(
        text, "help", verdict, about=f"help-{block.bias_type}", number=number(row, verdict), strength=strength
    )


def _framing(block: ProbeBlock, model: str) -> Iterator[Said]:
    """For each factor: what it does to the difference between groups, or in a group where that is clearer."""
    rows = defined(factor_rows(block, model, "factors"), "estimate")
    for own in grouped(rows, "instruction_a", "instruction_b").values():
        inside = [row for row in own if row["group_a"] == row["group_b"]]
        between = [row for row in own if row["group_a"] != row["group_b"]]
        clear = [row for row in (*between, *inside) if outcome_of(row) in DIRECTED]
        if clear and clear[0] in inside:
            yield _change(block, max(clear, key=lambda row: abs(row["estimate"])), "“{instruction}”")
        elif between or inside:
            yield _of_difference(block, (between or inside)[0])


def _of_difference(block: ProbeBlock, row: Row) -> Said:
    verdict, weak = outcome_of(row), below_floor(block, row["model_a"])
    a, b = row["group_a"], row["group_b"]
    lead = "the lead of {a} over {b}" if a != b else "the share of {who} for {a}"
    moved = "{opening}, “{instruction}” " + ("raises" if verdict == "higher" else "lowers")
    templates = {
        **dict.fromkeys(
            DIRECTED, (f"{moved} {lead} by {{amount}}{{ends}}.", f"{moved} {lead} by {{amount}}.")
        ),
        "equivalent": (f"{{opening}}, “{{instruction}}” leaves {lead} about the same{{within}}.",),
        "not-identified": (f"{{opening}}, what “{{instruction}}” changes in {lead} is not identified.",),
        "no-clear-difference": (f"{{opening}}, no clear change by “{{instruction}}” of {lead}.",),
    }
    text = sentence(
        *templates.get(verdict, (f"{{opening}}, no verdict on what “{{instruction}}” changes in {lead}.",)),
        opening=opening(block.bias_type, weak=weak),
        instruction=Foreign(row["instruction_a"]),
        a=one_group(block.part, a),
        b=other_group(block.part, b, a),
        who=who(block.gender),
        amount=amount(row),
        ends=ends(row),
        within=within([row]),
    )
    strength = max(WEAKER, STRENGTH[verdict]) if weak else STRENGTH[verdict]
    return said(
        text, "help", verdict, about=f"help-{block.bias_type}", number=number(row, verdict), strength=strength
    )
