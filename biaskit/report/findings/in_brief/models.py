"""Models against models: what differs most, and how many comparisons come to what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.between_models import IN_NUMBERS, compared, under_floor
from biaskit.report.findings.finding import Outcome, agreeing, outcome_of, parts_of, shared
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
    said,
    sentence,
    span,
    strength_of,
    who,
    why,
    within,
)
from biaskit.tables.query import Row, grouped
from biaskit.wording import listed

N_LARGEST = 2


def models(content: Content) -> Iterator[Said]:
    """The largest of what clearly differs, and one count over all comparisons."""
    rows = compared(content)
    if not rows:
        return
    pairs = grouped(rows, "model_a", "model_b")
    pair = next(iter(pairs)) if len(pairs) == 1 else ()
    yield from _of_pairs(content, rows, *pair)


def is_pair(content: Content) -> bool:
    """Whether the page holds one model or run against one other."""
    return len({(row["model_a"], row["model_b"]) for row in compared(content)}) == 1


def _of_pairs(content: Content, rows: Sequence[Row], *pair: str) -> Iterator[Said]:
    """The largest of what differs, then how many comparisons come to what."""
    clear = [row for row in rows if outcome_of(row) in ("higher", "lower")]
    largest = sorted(clear, key=lambda row: (row["quantity"] in IN_NUMBERS, -abs(row["estimate"])))
    shown = rows if len(rows) == 1 else largest[:N_LARGEST]
    found = [_of_row(content, row) for row in shown]
    if len(rows) > 1:
        found.insert(min(1, len(found)), _summary(content, rows, *pair))
    yield from found


def _summary(content: Content, rows: Sequence[Row], *pair: str) -> Said:
    """How many comparisons come to what; which of two models was named first says nothing."""
    verdicts = [outcome_of(row) for row in rows]
    sides: list[Outcome] = ["higher" if verdict == "lower" else verdict for verdict in verdicts]
    counts, n = Counter(sides), len(sides)
    in_shares = [row for row in rows if row["quantity"] not in IN_NUMBERS]
    pieces: dict[str, Piece] = {"within": within(in_shares), "n": str(n)}
    subject = "between models"
    if pair:
        pieces |= {"a": Foreign(pair[0]), "b": Foreign(pair[1])}
        subject = "between {a} and {b}"
    if counts["equivalent"] == n:
        text = sentence(f"All {{n}} comparisons {subject} come out about the same{{within}}.", **pieces)
    elif counts["no-clear-difference"] == n:
        text = sentence(f"No clear difference {subject} in any of {{n}} comparisons.", **pieces)
    else:
        said_of = [f"{counts[v]} {agreeing(counts[v], words)}" for v, words in _COUNTED.items() if counts[v]]
        text = sentence(f"Of {{n}} comparisons {subject}, {listed(said_of)}.", **pieces)
    weak = bool(under_floor(content, rows))
    strength = max(WEAKER, strength_of(verdicts)) if weak else strength_of(verdicts)
    verdict = shared(sides) if counts["higher"] < n else "shown"
    return said(_weak(text) if weak else text, "models", verdict, strength=strength)


_COUNTED: dict[Outcome, str] = {
    "higher": "differ clearly",
    "equivalent": "are about the same",
    "no-clear-difference": "are unclear",
    "not-identified": "are not identified",
    "no-verdict": "have no verdict",
    "shown": "have no verdict",
    "not-measured": "are not measured",
}


def _weak(text: str) -> str:
    short = f"Weak evidence: {text[:1].lower()}{text[1:]}"
    return sentence("{text}", text=short)


def _of_row(content: Content, row: Row) -> Said:
    verdict, weak = outcome_of(row), bool(under_floor(content, [row]))
    asked = opening(row["bias_type"], weak=weak) if row["bias_type"] else "in texts"
    of = _what(row)
    text = sentence(
        *(template.replace("{of}", of) for template in _TEMPLATES.get(verdict, _NO_VERDICT)),
        opening=asked,
        a=Foreign(row["model_a"]),
        b=Foreign(row["model_b"]),
        amount=amount(row) if row["estimate"] is not None else "",
        more="more" if verdict == "higher" else "less",
        ends=ends(row) if row["quantity"] not in IN_NUMBERS else "",
        span=span(row) if row["quantity"] not in IN_NUMBERS else "",
        within=within([row]),
        why=why(row),
        **_pieces(content, row),
    )
    if row["quantity"] in IN_NUMBERS and verdict in ("higher", "lower"):
        text = _score(row, verdict)
    strength = max(WEAKER, STRENGTH[verdict]) if weak else STRENGTH[verdict]
    shown = number(row, verdict) if row["quantity"] not in IN_NUMBERS else ""
    return said(text, "models", verdict, number=shown, strength=strength)


_DIRECTED = (
    "{opening}, {of} {amount} {more} for {a} than for {b}{ends}.",
    "{opening}, {of} {amount} {more} for {a} than {b}{ends}.",
)
_TEMPLATES = {
    "higher": _DIRECTED,
    "lower": _DIRECTED,
    "equivalent": ("{opening}, {of} about the same for {a} and {b}{within}.",),
    "no-clear-difference": (
        "{opening}, {of} not clearly different for {a} and {b}{span}.",
        "{opening}, {of} not clearly different for {a} and {b}.",
    ),
    "not-identified": ("{opening}, whether {of} different for {a} and {b} is not identified.",),
    "not-measured": (
        "{opening}, {a} against {b} is not measured ({why}).",
        "{opening}, {a} against {b} is not measured.",
    ),
}
_NO_VERDICT = (
    "{opening}, no verdict on {a} against {b} ({why}).",
    "{opening}, no verdict on {a} against {b}.",
)


def _what(row: Row) -> str:
    """What is compared, as the subject of a sentence with its verb."""
    return {
        "share": "the share of {who} for {jobs} is",
        "represented_share": "the share of women is",
        "srb": "the closeness of words for {who} to texts on request is",
        "srb_spread": "the gap between words for women and men is",
    }.get(row["quantity"], "the lead of women over men is")


def _pieces(content: Content, row: Row) -> dict[str, Piece]:
    part = next(parts_of(content, "probe"), None) or content.parts[0]
    return {"who": who(row["gender"] or "female"), "jobs": one_group(part, row["group_a"] or "")}


def _score(row: Row, verdict: Outcome) -> str:
    return sentence(
        "In texts, a score of words for women and men (SRB) is clearly {more} for {a} than for {b}.",
        more="higher" if verdict == "higher" else "lower",
        a=Foreign(row["model_a"]),
        b=Foreign(row["model_b"]),
    )
