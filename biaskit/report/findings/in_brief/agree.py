"""Whether answers and texts agree: the headline of both engines, and gaps that go together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, below_floor, group_verdict
from biaskit.report.findings.both_engines import (
    DIRECTED,
    Measured,
    even_but_apart,
    measured_by_both,
    of_texts,
)
from biaskit.report.findings.finding import Outcome, agreeing, outcome_of, shared, tests
from biaskit.report.findings.in_brief.sentence import (
    HEADLINE,
    STRENGTH,
    Foreign,
    Said,
    opening,
    said,
    sentence,
    strength_of,
)
from biaskit.report.findings.in_brief.several import counted
from biaskit.runs.collection import Part
from biaskit.tables.quantities import BETWEEN_ENGINES, relation
from biaskit.tables.query import Row, contrast_of, defined, grouped
from biaskit.wording import count

RESTATED = STRENGTH["shown"]
"""Both halves stand in sentences of their own: only the headline says more than they do."""


def agree(content: Content) -> Iterator[Said]:
    """The headline where it holds, else what both engines come to; then the relations over occupations."""
    pairs = measured_by_both(content)
    for bias_type, form in dict.fromkeys((block.bias_type, block.form) for block, *_ in pairs):
        own = [pair for pair in pairs if (pair[0].bias_type, pair[0].form) == (bias_type, form)]
        yield _of_one(*own[0]) if len(own) == 1 else _of_many(bias_type, own)
    yield from _relations(content)


def _of_one(block: ProbeBlock, part: Part, model: str) -> Said:
    probe, texts, weak = group_verdict(block, model), of_texts(part, model), below_floor(block, model)
    text = sentence(
        _contrast(probe, texts), opening=opening(block.bias_type, weak=weak), model=Foreign(model)
    )
    strength = HEADLINE if even_but_apart(probe, texts) and not weak else RESTATED
    return said(text, "agree", texts, about="agree-headline", strength=strength)


def _contrast(probe: Outcome, texts: Outcome) -> str:
    if even_but_apart(probe, texts):
        return "{opening}, {model} looks even, and still its texts describe women and men differently."
    if texts in DIRECTED and probe not in DIRECTED:
        return "{opening}, {model} shows no clear difference; its texts describe women and men differently."
    if texts in DIRECTED:
        return "{opening}, {model} shows a difference, and its texts describe women and men differently."
    if probe in DIRECTED:
        return "{opening}, {model} shows a difference; its texts show no clear one."
    return "{opening}, neither {model}’s answers nor its texts show a clear difference."


def _of_many(bias_type: str, pairs: Sequence[Measured]) -> Said:
    strong = [pair for pair in pairs if not below_floor(pair[0], pair[2])]
    judged = strong or pairs
    kinds = [(group_verdict(block, model), of_texts(part, model)) for block, part, model in judged]
    even = sum(even_but_apart(*kind) for kind in kinds)
    both = sum(probe in DIRECTED and texts in DIRECTED for probe, texts in kinds)
    asked, n = opening(bias_type, weak=not strong), len(kinds)
    if even:
        verb = agreeing(even, "look even, and still")
        verb = f"{verb} {'describes' if even == 1 else 'describe'}"
        text = f"{{opening}}, {even} of {n} models {verb} women and men differently in texts."
    elif both:
        text = f"{{opening}}, {both} of {n} models {agreeing(both, 'show a difference')}, and in texts too."
    else:
        text = f"{{opening}} and in texts, none of {n} models shows a difference in both."
    strength = HEADLINE if even and strong else RESTATED
    return said(sentence(text, opening=asked), "agree", "shown", about="agree-headline", strength=strength)


# --- over occupations -----------------------------------------------------------------------------------

_GAPS = {
    ("represented_gap", "probe_gap"): ("says women more", "writes about women {more}"),
    ("srb_spread", "probe_gap"): ("says women more", "has words for women and men {apart}"),
    ("srb_spread", "represented_gap"): ("writes about women more", "has words for women and men {apart}"),
}
_MORE = {"higher": ("more", "farther apart"), "lower": ("less", "nearer to each other")}


def _relations(content: Content) -> Iterator[Said]:
    for y, x in BETWEEN_ENGINES:
        rows = tests(content.between.get("tests", ()), relation(y, x), "spearman", "gaps")
        rows = [row for row in defined(rows, "estimate") if contrast_of(row) != "models"]
        for (bias_type,), own in grouped(rows, "bias_type").items():
            yield _relation(y, x, own[0]) if len(own) == 1 else _relation_of_many(y, x, bias_type, own)


def _relation(y: str, x: str, row: Row) -> Said:
    verdict, (where_more, then) = outcome_of(row), _GAPS[y, x]
    opened = "{opening}: over {n}, " if row["bias_type"] else "Over {n}, "
    if verdict in _MORE:
        more, apart = _MORE[verdict]
        clause = f"where {{model}} {where_more}, it {then.format(more=more, apart=apart)}."
    else:
        clause = f"no clear link between where {{model}} {where_more} and {_NOUNS[y]}."
    text = sentence(
        opened + clause,
        opening=opening(row["bias_type"]),
        n=count(row["n_a"] or 0, "occupation"),
        model=Foreign(row["model_a"]),
    )
    return said(text, "agree", verdict, about="agree-relations", strength=STRENGTH[verdict])


_NOUNS = {"represented_gap": "whom its texts are about", "srb_spread": "how its texts describe them"}


def _relation_of_many(y: str, x: str, bias_type: str, rows: Sequence[Row]) -> Said:
    verdicts = [outcome_of(row) for row in rows]
    name = {"probe_gap": "saying women", "represented_gap": "writing about women"}[x]
    other = {"represented_gap": "writing about women", "srb_spread": "words apart for women and men"}[y]
    clauses: dict[Outcome, str] = {
        "higher": f"have {name} and {other} rise together over occupations",
        "lower": f"have {name} and {other} run against each other over occupations",
        **dict.fromkeys(_WITHOUT, f"show no clear link between {name} and {other}"),
    }
    after: dict[Outcome, str] = {"higher": "together", "lower": "against each other"}
    before = "{opening}, " if bias_type else ""
    text = counted(verdicts, clauses, before=before, after=after, pieces={"opening": opening(bias_type)})
    return said(text, "agree", shared(verdicts), about="agree-relations", strength=strength_of(verdicts))


_WITHOUT: tuple[Outcome, ...] = (
    *("no-clear-difference", "equivalent", "shown", "no-verdict", "not-identified", "not-measured"),
)
