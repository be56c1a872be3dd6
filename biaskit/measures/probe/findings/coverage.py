"""Say what else a model says: how little the target words hold, which answers decline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biaskit.common.wording import percent, share_with_interval
from biaskit.measurement import words
from biaskit.measures.probe.findings.blocks import ProbeBlock, blocks_in, measured
from biaskit.records import ALL
from biaskit.report.content import Content
from biaskit.report.findings.sentence import Foreign, Piece, Sentence, filled, percents, sentence_of
from biaskit.report.next_tokens import the_rest
from biaskit.tables.coverage import LITTLE, coverage_of, is_under
from biaskit.tables.query import Row, defined, grouped, where

_SAYS = words("probe")["else"]
RARE = 0.01
"""Answers that decline less often than this are not said."""


def coverage(content: Content) -> Iterator[Sentence]:
    """Say little coverage, and answers that decline."""
    for block in blocks_in(content):
        next_tokens = grouped(where(block.of_table("probe_next"), job_group=ALL), "model")
        for model in block.models:
            yield from _coverage(block, model, next_tokens.get((model,), ()))
            declined = where(block.outcomes.get((model,), ()), job_group=ALL, outcome="declines")
            for row in defined(declined, "share"):
                if row["share"] >= RARE:
                    number = share_with_interval(row["share"], row["ci_low"], row["ci_high"])
                    share, bracket, interval = number.partition(" [")
                    pieces: dict[str, Piece] = {"share": share, "interval": bracket + interval}
                    yield _of_block(block, model, [_SAYS["declines"]], pieces, number if bracket else "")


def _coverage(block: ProbeBlock, model: str, next_tokens: Sequence[Row]) -> Iterator[Sentence]:
    covered = coverage_of(block.rows_of(model), of_two=False)
    if covered is None or not is_under(covered, LITTLE):
        return
    pieces: dict[str, Piece] = {"share": percents(covered)}
    templates = _SAYS["coverage"][1:]
    for name, value in the_rest(next_tokens, most=1):
        templates, pieces["rest"] = _SAYS["coverage"], Foreign(name, after=f" ({percent(value)} %)")
    yield _of_block(block, model, templates, pieces)


def _of_block(
    block: ProbeBlock, model: str, templates: Sequence[str], pieces: Mapping[str, Piece], number: str = ""
) -> Sentence:
    text = filled(*templates, **{"opening": block.opening(), "model": Foreign(model), **pieces})
    using, about = measured(block, model), f"else-{block.bias_type}"
    return sentence_of(text, block.topic, "else", measured=using, about=about, number=number)
