"""Who a model writes about: texts against labour statistics, texts that name no gender, non-binary people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.records import NONBINARY_REFERENCE
from biaskit.report.content import Content
from biaskit.report.findings.finding import Outcome, outcome_of, parts_of, shared
from biaskit.report.findings.in_brief.sentence import (
    Foreign,
    Piece,
    Said,
    amount,
    ends,
    number,
    said,
    sentence,
    span,
    strength_of,
    why,
    within,
)
from biaskit.report.findings.in_brief.several import counted
from biaskit.report.findings.representation import against_labour, are_imported, occupations_of
from biaskit.runs.collection import Part
from biaskit.stats.proportions import wilson
from biaskit.tables.query import Row, defined, distinct, extremes
from biaskit.wording import count, percent, share_with_interval

MANY_WITHOUT = 1 / 3
"""From this part of texts without a gender on, the page says so."""


def write(content: Content) -> Iterator[Said]:
    """Findings of every part of the generation engine."""
    for part in parts_of(content, "personas"):
        rows = occupations_of(part)
        models = [model.label for model in part.models] or distinct(rows, "model")
        if models:
            yield from _shares(part, models, rows, labour=content.reference in ("labour", "both"))
            yield from _without_gender(part, models, rows)
            yield from _nonbinary(part, models, rows)


def whose(part: Part, models: Sequence[str], n: int | None = None) -> Piece:
    """Whose texts: 'm’s texts', 'your 2,400 texts', 'the texts of 3 models'."""
    texts = "texts" if n is None else count(n, "text")
    if are_imported(part):
        return f"your {texts}"
    return (
        Foreign(models[0], after=f"’s {texts}")
        if len(models) == 1
        else f"the {texts} of {len(models)} models"
    )


def named(text: str) -> str:
    """A sentence that begins with `whose`, capital unless it begins with a model's own name."""
    return text[:1].upper() + text[1:] if text.startswith(("your ", "the texts of ")) else text


def things(part: Part) -> str:
    """What is counted where there are several."""
    return "sets of your texts" if are_imported(part) else "models"


def _shares(part: Part, models: Sequence[str], rows: Sequence[Row], *, labour: bool) -> Iterator[Said]:
    tests = {model: against_labour(part, model) for model in models} if labour else {}
    measured = {model: row for model, row in tests.items() if row is not None and row["estimate"] is not None}
    if not measured:
        yield _range(part, models, rows)
    elif len(models) == 1:
        yield _against_labour(part, models[0], measured[models[0]])
    else:
        verdicts = [outcome_of(tests[model]) for model in models]
        text = counted(verdicts, _CLAUSES, things=things(part))
        yield said(text, "write", shared(verdicts), strength=strength_of(verdicts))


_OFTEN = "write about women %s often than U.S. labour statistics would"
_CLAUSES: dict[Outcome, str] = {
    "higher": _OFTEN % "more",
    "lower": _OFTEN % "less",
    "equivalent": "write about women about as often as U.S. labour statistics would",
    "no-clear-difference": "show no clear difference from U.S. labour statistics",
    **dict.fromkeys(("shown", "no-verdict"), "have no verdict against U.S. labour statistics"),
    "not-identified": "leave the difference from U.S. labour statistics not identified",
    "not-measured": "have no measured share of women",
}


def _against_labour(part: Part, model: str, row: Row) -> Said:
    verdict = outcome_of(row)
    text = sentence(
        *_TEMPLATES.get(verdict, ("{whose}: no verdict on women against U.S. labour statistics ({why}).",)),
        whose=whose(part, [model]),
        amount=amount(row),
        more="more" if verdict == "higher" else "less",
        ends=ends(row),
        span=span(row),
        within=within([row]),
        why=why(row),
    )
    return said(named(text), "write", verdict, number=number(row, verdict))


_DIRECTED = (
    "{whose} speak of women {amount} {more} often than U.S. labour statistics would, on average{ends}.",
)
_TEMPLATES = {
    "higher": _DIRECTED,
    "lower": _DIRECTED,
    "equivalent": ("{whose} speak of women about as often as U.S. labour statistics would{within}.",),
    "no-clear-difference": (
        "{whose} show no clear difference from U.S. labour statistics in speaking of women{span}.",
    ),
    "not-identified": (
        "{whose}: the difference from U.S. labour statistics in the share of women is not identified.",
    ),
}


def _range(part: Part, models: Sequence[str], rows: Sequence[Row]) -> Said:
    """Without labour statistics: the share of one occupation, or from the lowest to the highest."""
    known, text_of = defined(rows, "female_share"), whose(part, models)
    if not known:
        text = sentence(
            "{whose}: who they are about is not measured ({why}).",
            "{whose}: who they are about is not measured.",
            whose=text_of,
            why=why(rows[0]) if rows else "no texts without a gender in the prompt",
        )
        return said(named(text), "write", "not-measured")
    low, high = extremes(known, "female_share")
    if low is high:
        share = share_with_interval(low["female_share"], low["ci_low"], low["ci_high"])
        text = sentence(
            "{whose} speak of women in {share} of those that name a gender.", whose=text_of, share=share
        )
        return said(named(text), "write", "shown", number=share)
    text = sentence(
        "Of {whose} that name a gender, {low} % ({least}) to {high} % ({most}) are about women.",
        "Of {whose} that name a gender, {low} to {high} % are about women.",
        whose=text_of,
        low=percent(low["female_share"]),
        high=percent(high["female_share"]),
        least=Foreign(low["occupation"]),
        most=Foreign(high["occupation"]),
    )
    return said(text, "write", "shown")


def _without_gender(part: Part, models: Sequence[str], rows: Sequence[Row]) -> Iterator[Said]:
    n, n_none = (sum(row[name] or 0 for row in rows) for name in ("n_texts", "n_unassociated"))
    if not n or n_none <= MANY_WITHOUT * n:
        return
    text = sentence(
        "{none} % of {whose} name no gender; the shares leave them out.",
        none=percent(n_none / n),
        whose=whose(part, models, n),
    )
    yield said(text, "write", "shown")


def _nonbinary(part: Part, models: Sequence[str], rows: Sequence[Row]) -> Iterator[Said]:
    """Non-binary people where their share surely is not that of the population."""
    known = defined(rows, "nonbinary_share")
    n = sum(row["n_nonbinary"] or 0 for row in known)
    n_gendered = n + sum((row["n_female"] or 0) + (row["n_male"] or 0) for row in known)
    interval = wilson(n, n_gendered)
    if len(models) > 1 or interval is None or interval[0] <= NONBINARY_REFERENCE <= interval[1]:
        return
    text = sentence(
        "{n} of {whose} that name a gender {are} about a non-binary person.",
        n=f"{n:,}" if n else "None",
        whose=whose(part, models, n_gendered),
        are="is" if n < 2 else "are",
    )
    yield said(text, "write", "shown", strength=4)
