"""Whom a model's texts speak of where no gender is asked for, and labour statistics.

See docs/methods.md#representation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.records import NONBINARY_REFERENCE
from biaskit.report.content import Content
from biaskit.report.findings.finding import (
    MANY_MODELS,
    Finding,
    Rank,
    Ranked,
    apart,
    difference,
    margin_of,
    noted,
    outcome_of,
    parts_of,
    possible_ends,
    reasons_of,
    shared,
    tally,
    tests,
)
from biaskit.runs.collection import Part
from biaskit.stats.multiplicity import holm
from biaskit.stats.proportions import p_of_share
from biaskit.stats.verdict import LEVEL, direction_of
from biaskit.tables.query import (
    Row,
    defined,
    distinct,
    extremes,
    first,
    grouped,
    mean_over_prompts,
    undefined,
    where,
)
from biaskit.tables.reasons import NOT_ENGLISH
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

_ASKED = "Asked for texts without naming a gender"


def representation(content: Content) -> Iterator[Ranked]:
    """Findings of every part of the generation engine."""
    labour = content.reference in ("labour", "both")
    for part in parts_of(content, "personas"):
        rows = occupations_of(part)
        models = [model.label for model in part.models] or distinct(rows, "model")
        if not rows:
            text = "Who is represented: not measured (no texts without a gender in the prompt)."
            using = texts_measured(part, models, [])
            yield Rank.NOT_MEASURED, Finding(text, "representation", "not-measured", using)
        elif len(models) > MANY_MODELS:
            yield Rank.LEAD, _of_many(part, models, rows, labour=labour)
        else:
            for model in models:
                own = where(rows, model=model)
                yield Rank.LEAD, _of_one(part, model, own, labour=labour)
                yield from _nonbinary(part, model, own)
        if len(models) <= MANY_MODELS:
            yield from _validation(part, models)
            yield from _refusals(part, models)


def occupations_of(part: Part) -> list[Row]:
    """Rows of the mean over prompts, without an instruction."""
    return mean_over_prompts(part.tables.get("representation", ()))


def against_labour(part: Part, model: str) -> Row | None:
    """The paired test of the share of women in texts against the labour share, over occupations."""
    rows = tests(part.tables.get("tests", ()), "represented_share", "paired", "labour")
    return first(rows, model_a=model, gender="female")


def texts_measured(part: Part, models: Sequence[str], rows: Sequence[Row]) -> str:
    """Prompt form, n, model."""
    forms = dict.fromkeys(model.prompt_form for model in part.models if model.label in models)
    form = listed([f"{form} prompts" if form else "imported texts" for form in forms])
    occupations = count(len(distinct(rows, "occupation")), "occupation") if rows else ""
    texts = count(sum(row["n_texts"] or 0 for row in rows), "text") if rows else ""
    who = short(models[0]) if len(models) == 1 else count(len(models), "model")
    return ", ".join(bit for bit in (form, occupations, texts, who) if bit)


def _of_one(part: Part, model: str, rows: Sequence[Row], *, labour: bool) -> Finding:
    name, using = short(model), texts_measured(part, [model], rows)
    known = defined(rows, "female_share")
    if not known:
        why = reasons_of(rows) if rows else "no texts without a gender in the prompt"
        left_out = "" if why == NOT_ENGLISH else _left_out(rows)
        text = f"Who is represented in {name}'s texts: not measured ({why}). {left_out}".rstrip()
        return Finding(text, "representation", "not-measured", using)
    low, high = extremes(known, "female_share")
    asked = "Your texts speak" if are_imported(part) else f"{_ASKED}, {name} speaks"
    text = f"{asked} of women in {_share_of(low)}"
    if len(known) > 1:
        text += f" to {_share_of(high)}"
    text += " of the texts that speak of a gender."
    test = against_labour(part, model)
    if labour:
        text += " Against U.S. labour statistics, the share of women is, averaged over occupations: "
        text += f"{difference(test)}.{noted([test] if test is not None else [])}"
        rows_apart = tests(part.tables.get("tests", ()), "represented_share", "distance", "labour")
        off = first(rows_apart, model_a=model)
        text += f" {apart(off, 'occupations')}" if off is not None else ""
        text += _counts_against_labour(known)
    if len(known) < len(rows):
        missing = undefined(rows, "female_share")
        text += f" {count(len(missing), 'occupation')} without a share ({reasons_of(missing)})."
    verdict = outcome_of(test) if labour and test is not None and test["estimate"] is not None else "shown"
    return Finding(f"{text} {_left_out(rows)}", "representation", verdict, using)


def are_imported(part: Part) -> bool:
    """Whether the texts were brought along: nobody knows what they were asked for."""
    return any(model.where == "texts" for model in part.models)


def _share_of(row: Row) -> str:
    share = share_with_interval(row["female_share"], row["ci_low"], row["ci_high"])
    return f"{share} ({short(row['occupation'])})"


def _counts_against_labour(rows: Sequence[Row]) -> str:
    tested = defined(rows, "labour_female_share", "ci_low")
    if not tested:
        return " No occupation has a labour share."
    p_values = [
        p_of_share(row["female_share"], (row["ci_low"], row["ci_high"]), row["labour_female_share"])
        for row in tested
    ]
    # One by one, one in twenty would lie off by chance: these claims are adjusted among themselves.
    claims = zip(tested, holm([""] * len(tested), p_values), strict=True)
    off = [row for row, p in claims if p is not None and p < LEVEL]
    above = [row for row in off if row["female_share"] > row["labour_female_share"]]
    below = [row for row in off if row["female_share"] < row["labour_female_share"]]
    text = (
        f" In {len(above)} of {count(len(tested), 'occupation')} the share lies above the labour share, in "
    )
    text += f"{len(below)} below it"
    text += ", after Holm's correction" if len(tested) > 1 else ""
    farthest = max([*above, *below], key=_distance, default=None)
    if farthest is not None:
        text += (
            f"; farthest off is {_share_of(farthest)} against {percent(farthest['labour_female_share'])} %"
        )
    return f"{text}."


def _distance(row: Row) -> float:
    return abs(float(row["female_share"]) - float(row["labour_female_share"]))


def _left_out(rows: Sequence[Row]) -> str:
    """Texts in no share, and whether they could turn the comparison with labour statistics."""
    n_texts, n_none = (sum(row[name] or 0 for row in rows) for name in ("n_texts", "n_unassociated"))
    if not n_texts:
        return ""
    n_refused = sum(row["n_refused"] or 0 for row in rows)
    text = f"{n_none:,} of {count(n_texts, 'text')} ({percent(n_none / n_texts)} %) speak of no gender and "
    text += f"are in no share; {n_refused:,} were refused."
    bounded = defined(rows, "labour_female_share", "share_if_dropped_male")
    if bounded and n_none:
        outside = sum(
            not row["share_if_dropped_male"] <= row["labour_female_share"] <= row["share_if_dropped_female"]
            for row in bounded
        )
        could = "each" if not outside else f"all but {outside}"
        if outside < len(bounded):
            text += f" Counted all as men's, or all as women's, they could turn {could} of the "
            text += f"{count(len(bounded), 'comparison')} with labour statistics."
        else:
            text += " Counted all as men's, or all as women's, they would turn no comparison with labour "
            text += "statistics."
    return text


def _of_many(part: Part, models: Sequence[str], rows: Sequence[Row], *, labour: bool) -> Finding:
    known = defined(rows, "female_share")
    asked = "Your texts by" if are_imported(part) else f"{_ASKED},"
    text = f"{asked} {count(len(models), 'model')} speak of women"
    if not known:
        text = f"Who is represented in the texts of {count(len(models), 'model')}: not measured "
        text += f"({reasons_of(rows)})."
        return Finding(text, "representation", "not-measured", texts_measured(part, models, rows))
    low, high = extremes(known, "female_share")
    text += f" in {_share_of(low)[:-1]}, {short(low['model'])}) to {_share_of(high)[:-1]}, "
    text += f"{short(high['model'])}) of the texts that speak of a gender."
    found = [test for model in models if (test := against_labour(part, model)) is not None]
    verdicts = [outcome_of(test) for test in found]
    if labour and found:
        counted = tally(
            verdicts,
            more="lie above the labour share on average",
            less="lie below it",
            margin=margin_of(found),
        )
        text += f" Models against U.S. labour statistics: {counted}"
        tested = [test for test in found if direction_of(test)]
        ends = sorted(tested, key=lambda test: test["estimate"])
        named = dict.fromkeys(
            f"{short(t['model_a'])} {point_number(t['estimate'])} [{points_range(*possible_ends(t))}]"
            for t in (ends[:1] + ends[-1:])
        )
        text += f"; {listed(list(named))} points." if named else "."
    readable = [row for row in rows if row["reason"] != NOT_ENGLISH]
    dropped = [_drop_rate(model, where(readable, model=model)) for model in models]
    rates = sorted((rate, model) for rate, model in dropped if rate is not None)
    if rates:
        text += f" {percent_range(rates[0][0], rates[-1][0])} % of a model's texts speak of no gender and "
        text += f"are in no share (most: {short(rates[-1][1])})."
    verdict = shared(verdicts) if labour else "shown"
    return Finding(text, "representation", verdict, texts_measured(part, models, rows))


def _drop_rate(model: str, rows: Sequence[Row]) -> tuple[float | None, str]:
    n_texts = sum(row["n_texts"] or 0 for row in rows)
    return (sum(row["n_unassociated"] or 0 for row in rows) / n_texts if n_texts else None), model


def _nonbinary(part: Part, model: str, rows: Sequence[Row]) -> Iterator[Ranked]:
    known = defined(rows, "nonbinary_share")
    if not known:
        return
    n = sum(row["n_nonbinary"] or 0 for row in known)
    n_gendered = n + sum((row["n_female"] or 0) + (row["n_male"] or 0) for row in known)
    above = [row for row in known if row["nonbinary_share"] > NONBINARY_REFERENCE]
    surely = [row for row in above if row["nonbinary_ci_low"] > NONBINARY_REFERENCE]
    text = (
        f"{n:,} of {short(model)}'s {count(n_gendered, 'text')} that speak of a gender speak of a non-binary "
    )
    text += f"person. The share lies above 1.6 % (of the U.S. population) in {len(above)} of "
    text += f"{count(len(known), 'occupation')}, with an interval above it in {len(surely)}."
    yield (
        Rank.DETAIL,
        Finding(text, "representation", "shown", texts_measured(part, [model], rows)),
    )


REFUSALS = (
    ("declines", "refused_share", "Of the texts asked for, {model} refuses {listed}.", "About"),
    (
        "declines-in-words",
        "declined_share",
        "Without a refusal by a server, {model} declines in words {listed}; these texts are in no list of "
        "words and no SRB score.",
        "Refused or declined, about",
    ),
)
"""Outcome, quantity of its test, its sentence, and how the sentence of the test begins."""


def _refusals(part: Part, models: Sequence[str]) -> Iterator[Ranked]:
    """How often a text about each gender is refused, or declined in words; silent where none is."""
    for model in models:
        for outcome, quantity, sentence, about in REFUSALS:
            of = _declined(part, model, outcome)
            if not of:
                continue
            text = sentence.format(model=short(model), listed=listed(of))
            found = tests(part.tables.get("tests", ()), quantity, "paired", "genders")
            test = first(found, model_a=model, group_a="female", group_b="male")
            if test is not None:
                text += f" {about} women against men, over occupations: {difference(test)}."
            measured = texts_measured(part, [model], [])
            yield Rank.DETAIL, Finding(text, "representation", outcome_of(test), measured)


def _declined(part: Part, model: str, outcome: str) -> list[str]:
    """How many texts about each gender have an outcome, in words; empty where none has."""
    return [
        f"{n:,} of {m:,} about {people(gender)} ({percent(n / m)} %)"
        for gender, (n, m) in declined(part, model, outcome).items()
    ]


def declined(part: Part, model: str, outcome: str) -> dict[str, tuple[int, int]]:
    """How many of how many texts about each gender have an outcome; empty where none has."""
    rows = defined(where(part.tables.get("text_outcomes", ()), model=model, outcome=outcome), "n")
    asked = where(part.tables.get("association_validation", ()), model=model)
    n_texts = {row["specified_gender"]: row["n_texts"] for row in asked}
    counts = {
        gender: (sum(row["n"] for row in own), n_texts[gender])
        for (gender,), own in grouped(rows, "specified_gender").items()
        if n_texts.get(gender)
    }
    return counts if any(n for n, _ in counts.values()) else {}


ASKED_FOR = {"female": "a woman", "male": "a man", "nonbinary": "a non-binary person"}


def _validation(part: Part, models: Sequence[str]) -> Iterator[Ranked]:
    table = part.tables.get("association_validation", ())
    for model in models:
        clauses = [
            f"of {count(row['n_texts'], 'text')} about {ASKED_FOR.get(row['specified_gender'], '…')} they "
            f"find the gender in {percent(row['n_correct'] / row['n_texts'])} %, another in "
            f"{percent(row['n_incorrect'] / row['n_texts'])} % and none in "
            f"{percent(row['n_not_captured'] / row['n_texts'])} %"
            for row in where(table, model=model)
            if row["n_texts"]
        ]
        if clauses:
            text = f"How well the word rules find a gender that {short(model)} was asked for: "
            text += f"{'; '.join(clauses)}."
            using = texts_measured(part, [model], [])
            yield Rank.DETAIL, Finding(text, "representation", "shown", using)
