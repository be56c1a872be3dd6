"""How much of the probability the target words have behind tests (methods/probabilities#coverage-floor)."""

from __future__ import annotations

from collections.abc import Sequence

from biaskit.report.content import Content, kind_of
from biaskit.tables.coverage import Coverage, coverage_of
from biaskit.tables.query import Row, in_main_setting, where

SIDES = ("model_a", "model_b")


def coverage_behind(content: Content, rows: Sequence[Row], sides: Sequence[str] = SIDES) -> Coverage:
    """Find least and greatest coverage behind rows of tests; a mean over models stands for the page."""
    every: list[Row] = []
    for part in content.parts:
        shares = part.tables.get(kind_of(part).published[0], ())
        if shares and "coverage" in shares[0]:
            every += in_main_setting(where(shares, instruction_id=0))
    labels = {row["model"] for row in every}
    named = set()
    for row in rows:
        for side in sides:
            label = row[side] if row[side] in labels else None
            named.add((label, row["bias_type"], row["prompt_form"]))
    behind = []
    for row in every:
        way = (row["bias_type"], row["prompt_form"])
        if (row["model"], *way) in named or (None, *way) in named:
            behind.append(row)
    return coverage_of(behind)
