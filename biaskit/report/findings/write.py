"""Who a model writes about: texts against labour statistics, texts that name no gender, non-binary people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.records import NONBINARY_REFERENCE
from biaskit.report.content import Content
from biaskit.report.findings.contrasts import Claim, Kind, contrast, directed
from biaskit.report.findings.finding import measured_by, noted, parts_of, tests
from biaskit.report.findings.labour import apart
from biaskit.report.findings.sentence import DETAIL, Foreign, Piece, Said, said, sentence, why
from biaskit.runs.collection import Part
from biaskit.stats.proportions import wilson
from biaskit.tables.query import Row, defined, distinct, extremes, first, mean_over_prompts, undefined
from biaskit.tables.reasons import NOT_ENGLISH
from biaskit.wording import count, listed, percent, share_with_interval, short

MANY_WITHOUT = 1 / 3
"""From this part of texts without a gender on, the page says so."""
_OFTEN = "write about women %s often than U.S. labour statistics would"
AGAINST_LABOUR = Kind(
    question="write",
    what="women against U.S. labour statistics",
    of=" in {whose}",
    one={
        **directed(
            "{whose} speak of women {amount} {more} often than U.S. labour statistics would, on "
            "average{ends}."
        ),
        "equivalent": ("{whose} speak of women about as often as U.S. labour statistics would{within}.",),
        "no-clear-difference": (
            "{whose} show no clear difference from U.S. labour statistics in speaking of women{span}.",
        ),
    },
    many={
        "higher": _OFTEN % "more",
        "lower": _OFTEN % "less",
        "equivalent": "write about women about as often as U.S. labour statistics would",
        "no-clear-difference": "show no clear difference from U.S. labour statistics",
    },
)


def write(content: Content) -> Iterator[Said]:
    """Findings of every part of the generation engine."""
    for part in parts_of(content, "personas"):
        rows = occupations_of(part)
        if models := [model.label for model in part.models] or distinct(rows, "model"):
            yield _shares(part, models, rows, labour=content.reference in ("labour", "both"))
            yield from _without_gender(part, models, rows)
            yield from _nonbinary(part, models, rows)
            yield from _rules(part, models)


# --- parts of texts --------------------------------------------------------------------------------------


def occupations_of(part: Part) -> list[Row]:
    """Rows of the mean over prompts, without an instruction."""
    return mean_over_prompts(part.tables.get("representation", ()))


def against_labour(part: Part, model: str) -> Row | None:
    """The paired test of the share of women in texts against the labour share, over occupations."""
    rows = tests(part.tables.get("tests", ()), "represented_share", "paired", "labour")
    return first(rows, model_a=model, gender="female")


def are_imported(part: Part) -> bool:
    """Whether the texts were brought along: nobody knows what they were asked for."""
    return any(model.where == "texts" for model in part.models)


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


def things(part: Part) -> str:
    """What is counted where there are several."""
    return "sets of your texts" if are_imported(part) else "models"


def texts_measured(part: Part, models: Sequence[str], rows: Sequence[Row] = (), *notes: str) -> str:
    """Prompt form, n, model; `rows`: of representation.csv."""
    forms = dict.fromkeys(model.prompt_form for model in part.models if model.label in models)
    form = listed([f"{form} prompts" if form else "imported texts" for form in forms])
    occupations = count(len(distinct(rows, "occupation")), "occupation") if rows else ""
    texts = count(sum(row["n_texts"] or 0 for row in rows), "text") if rows else ""
    who = short(models[0]) if len(models) == 1 else count(len(models), "model")
    return measured_by(form, occupations, texts, who, notes=notes)


def _readable(rows: Sequence[Row]) -> list[Row]:
    """Rows of texts in a language that the rules read: the others name a gender that nobody counted."""
    return [row for row in rows if row["reason"] != NOT_ENGLISH]


def _left_out(rows: Sequence[Row]) -> list[str]:
    """Texts and occupations in no share."""
    n_none = sum(row["n_unassociated"] or 0 for row in _readable(rows))
    n_refused = sum(row["n_refused"] or 0 for row in rows)
    notes = [f"{count(n_none, 'text')} without a gender in no share"] if n_none else []
    notes += [f"{count(n_refused, 'text')} refused"] if n_refused else []
    missing = undefined(rows, "female_share")
    return [
        *notes,
        *([f"{count(len(missing), 'occupation')} without a share", *noted(missing)] if missing else []),
    ]


# --- sentences -------------------------------------------------------------------------------------------


def _shares(part: Part, models: Sequence[str], rows: Sequence[Row], *, labour: bool) -> Said:
    found = {model: against_labour(part, model) for model in models} if labour else {}
    known = {model: row for model, row in found.items() if row is not None and row["estimate"] is not None}
    if not known:
        return _range(part, models, rows)
    off = tests(part.tables.get("tests", ()), "represented_share", "distance", "labour")
    notes = [note for model in known if len(models) == 1 for note in apart(first(off, model_a=model))]
    notes += [*noted([*found.values()]), *_left_out(rows)]
    return contrast(
        AGAINST_LABOUR,
        [Claim(model, row) for model, row in found.items()],
        "representation",
        texts_measured(part, models, rows, *notes),
        things=things(part),
        pieces={"whose": whose(part, models)},
    )


def _range(part: Part, models: Sequence[str], rows: Sequence[Row]) -> Said:
    """Without labour statistics: the share of one occupation, or from the lowest to the highest."""
    known, text_of = defined(rows, "female_share"), whose(part, models)
    using = texts_measured(part, models, rows, *_left_out(rows))
    if not known:
        text = sentence(
            "{whose}: who they are about is not measured ({why}).",
            "{whose}: who they are about is not measured.",
            whose=text_of,
            why=why(rows[0]) if rows else "no texts without a gender in the prompt",
        )
        return said(text, "representation", "write", "not-measured", using)
    low, high = extremes(known, "female_share")
    if low is high:
        share = share_with_interval(low["female_share"], low["ci_low"], low["ci_high"])
        template = "{whose} speak of women in {share} of those that name a gender."
        text = sentence(template, whose=text_of, share=share)
        return said(text, "representation", "write", measured=using, number=share)
    text = sentence(
        "Of {whose} that name a gender, {low} % ({least}) to {high} % ({most}) are about women.",
        "Of {whose} that name a gender, {low} to {high} % are about women.",
        whose=text_of,
        low=percent(low["female_share"]),
        high=percent(high["female_share"]),
        least=Foreign(low["occupation"]),
        most=Foreign(high["occupation"]),
    )
    return said(text, "representation", "write", measured=using)


def _without_gender(part: Part, models: Sequence[str], rows: Sequence[Row]) -> Iterator[Said]:
    readable = _readable(rows)
    n, n_none = (sum(row[name] or 0 for row in readable) for name in ("n_texts", "n_unassociated"))
    if not n or n_none <= MANY_WITHOUT * n:
        return
    text = sentence(
        "{none} % of {whose} name no gender; the shares leave them out.",
        none=percent(n_none / n),
        whose=whose(part, models, n),
    )
    yield said(text, "representation", "write", measured=texts_measured(part, models, rows))


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
    using = texts_measured(part, models, known, f"{percent(NONBINARY_REFERENCE)} % of the U.S. population")
    yield said(text, "representation", "write", measured=using, strength=DETAIL)


def _rules(part: Part, models: Sequence[str]) -> Iterator[Said]:
    """How often the words of texts say the gender that was asked for."""
    table = [row for row in part.tables.get("association_validation", ()) if row["n_texts"]]
    rows = [row for row in table if row["model"] in models]
    if not rows:
        return
    n, n_correct = (sum(row[name] for row in rows) for name in ("n_texts", "n_correct"))
    text = sentence(
        "Of {n} that were to be about one gender, the word rules read that gender in {share} %.",
        n=count(n, "text"),
        share=percent(n_correct / n),
    )
    each = [f"{row['specified_gender']} {row['n_correct']} of {row['n_texts']}" for row in rows[:3]]
    using = texts_measured(part, models, (), *(each if len(models) == 1 else ()))
    yield said(text, "representation", "write", measured=using, strength=DETAIL)
