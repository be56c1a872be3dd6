"""A finding, its verdict, and how a row of tests.csv reads as a phrase (docs/methods.md#verdicts)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal, get_args

from biaskit.report.content import Content
from biaskit.runs.collection import Part
from biaskit.stats.verdict import Verdict, interval_side, verdict_of
from biaskit.tables.quantities import OF_FACTORS
from biaskit.tables.query import Row, contrast_of, defined, distinct, first, where
from biaskit.tables.reasons import ESTIMATORS_DIFFER, is_reason, parts_of_reason
from biaskit.wording import (
    fine_points,
    fine_points_range,
    listed,
    plain_number,
    points,
    points_range,
    short,
)

Topic = Literal[
    "probe-explicit",
    "probe-implicit",
    "representation",
    "srb",
    "words",
    "groups",
    "transfer",
    "debiasing",
    "models",
    "gaps",
    "relations",
]
Outcome = Verdict | Literal["shown"]
"""What a sentence comes to: the verdict of its rows, or numbers that no verdict is given on."""

TOPICS: tuple[Topic, ...] = get_args(Topic)
MANY_MODELS = 4
"""Above this number the models of a table share one sentence."""
N_NOTES = 3


class Rank(IntEnum):
    """How far up a sentence stands."""

    HEADLINE = 0
    LEAD = 1
    DETAIL = 2
    NOT_MEASURED = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """A few sentences about one thing; every number in them stands in a table of the report.

    `verdict` is what they come to, "shown" where they only report numbers (docs/methods.md#verdicts);
    `measured_with` names estimator, prompt form, n and model behind the numbers. Models' labels and the
    tables' reasons in the text are foreign text (docs/reading.md#foreign-text).
    """

    text: str
    topic: Topic
    verdict: Outcome
    measured_with: str


Ranked = tuple[Rank, Finding]


def tests(rows: Sequence[Row], quantity: str, kind: str, contrast: str) -> list[Row]:
    """Rows of tests.csv of one quantity, kind and contrast; the contrast is the end of the family."""
    return [row for row in where(rows, quantity=quantity, kind=kind) if contrast_of(row) == contrast]


def parts_of(content: Content, engine: str) -> Iterator[Part]:
    """Every part of an engine."""
    return (part for part in content.parts if part.engine == engine)


def of_models(
    part: Part,
    rows: Sequence[Row],
    of_one: Callable[[Part, str, Sequence[Row]], Finding],
    of_many: Callable[[Part, Sequence[str], Sequence[Row]], Finding],
) -> list[Finding]:
    """A finding for each model of a table, or one for all where they are many."""
    models = distinct(rows, "model")
    if len(models) > MANY_MODELS:
        return [of_many(part, models, rows)]
    return [of_one(part, model, where(rows, model=model)) for model in models]


def women_against_men(part: Part, model: str, quantity: str) -> Row | None:
    """The paired test over occupations of one number of women's and of men's texts."""
    return first(tests(part.tables.get("tests", ()), quantity, "paired", "genders"), model_a=model)


# --- verdicts ----------------------------------------------------------------------------------------


def outcome_of(row: Row | None) -> Outcome:
    """The verdict of a row; an estimate without an interval, or without a verdict, is a number shown."""
    known = row is not None and row["estimate"] is not None
    verdict = verdict_of(row)
    return "shown" if known and verdict in ("not-measured", "no-verdict") else verdict


def shared(verdicts: Sequence[Outcome]) -> Outcome:
    """The verdict of a sentence about several rows: theirs where all agree, else a number shown."""
    return verdicts[0] if verdicts and len(set(verdicts)) == 1 else "shown"


# --- a row as a phrase -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unit:
    """How a difference is written."""

    amount: Callable[[float], str]
    ends: Callable[[float, float], str]
    margin: Callable[[float], str]


POINTS = Unit(points, points_range, points)
FINE = Unit(fine_points, fine_points_range, points)
NUMBER = Unit(plain_number, lambda low, high: f"{plain_number(low)} to {plain_number(high)}", plain_number)


WITHOUT_DIRECTION: Mapping[Verdict, str] = {
    "no-clear-difference": ", no clear difference",
    "not-identified": ", not identified: the bounds leave it open, an exact estimator would decide",
    "no-verdict": ", no verdict",
}


def difference(row: Row | None, unit: Unit = POINTS, *, more: str = "more", less: str = "less") -> str:
    """Phrase a row: its size, direction and interval, and what follows; or why nothing was measured.

    An empty `more` gives the number with its sign, for scores whose sign has a meaning.
    """
    if row is None:
        return "not measured (no test was made)"
    estimate = row["estimate"]
    if estimate is None:
        return f"not measured ({reason_of(row)})"
    size = unit.amount(abs(estimate) if more else estimate)
    if estimate != 0 and more:
        size += f" {more if estimate > 0 else less}"
    if row["ci_low"] is None:
        return f"{size} (no interval: {reason_of(row)})"
    text = f"{size} [{unit.ends(*possible_ends(row))}]"
    verdict = verdict_of(row)
    if verdict == "equivalent":
        ends = unit.ends(*possible_ends(row, "ci90"))
        yet = "yet " if interval_side(row) else ""
        text += f", {yet}equivalent within ±{unit.margin(row['margin'])} (90 % interval {ends})"
    elif verdict == "no-clear-difference" and interval_side(row):
        n = row.get("n_claims") or 0
        among = f"{n} comparisons" if n > 1 else "the comparisons of its tables"
        text += f", no clear difference: alone it would be one, not among {among}"
    else:
        text += WITHOUT_DIRECTION.get(verdict, "")
    return text


def possible_ends(row: Row, interval: str = "ci") -> tuple[float, float]:
    """The interval of a row as it is shown: that of a difference of shares ends at ±1.

    A t interval over few jobs goes beyond what two shares can differ by; tests.csv keeps the test's own.
    """
    low, high = row[f"{interval}_low"], row[f"{interval}_high"]
    if contrast_of(row) in OF_FACTORS:  # differences of differences, ended where those end
        return low, high
    if str(row.get("quantity", "")).endswith("share"):
        low, high = max(low, -1.0), min(high, 1.0)
    return low, high


def apart(row: Row, units: str) -> str:
    """Phrase a mean distance: jobs may lie far off in both directions and agree on average."""
    if row["estimate"] is None:
        return ""
    ends = f" [{points_range(row['ci_low'], row['ci_high'])}]" if row["ci_low"] is not None else ""
    return f"Whichever way, {units} lie {points(row['estimate'])}{ends} off on average, noise included."


def noted(rows: Sequence[Row], *columns: str) -> str:
    """The reasons beside numbers that are defined all the same, each once: what was left out, conditional on.

    `columns`: the numbers, by default estimate with its interval. Begins with a space, or is empty.
    """
    known = defined(rows, *(columns or ("estimate", "ci_low")))
    counts = Counter(short(part) for row in known if row["reason"] for part in parts_of_reason(row["reason"]))
    said = [
        f"{reason} ({n} of {len(known)} numbers)" if n < len(known) else reason
        for reason, n in sorted(counts.items(), key=lambda one: not is_reason(one[0], ESTIMATORS_DIFFER))
    ]
    if len(said) > N_NOTES:
        said = [*said[:N_NOTES], f"{len(said) - N_NOTES} more in the table"]
    return f" Note: {'; '.join(said)}." if said else ""


def reason_of(row: Mapping[str, Any]) -> str:
    """The reason a row gives for what it does not hold."""
    return short(str(row.get("reason") or "")) or "no reason given"


def reasons_of(rows: Sequence[Row]) -> str:
    """Reasons of several rows, the most frequent first, each once with its number."""
    counted = Counter(reason_of(row) for row in rows).most_common(3)
    if len(counted) == 1:
        return counted[0][0]
    return "; ".join(f"{n} × {reason}" for reason, n in counted)


def tally(
    verdicts: Sequence[Outcome], *, more: str, less: str, margin: str = "", unclear: str = "difference"
) -> str:
    """Count verdicts: '7 of 10 rise, 1 fall and 2 show no clear difference'."""
    names: dict[Outcome, str] = {
        "higher": more,
        "lower": less,
        "equivalent": f"are equivalent{margin}",
        "no-clear-difference": f"show no clear {unclear}",
        "not-identified": "are not identified",
        "shown": "have no interval",
        "not-measured": "are not measured",
    }
    counts = Counter(verdicts)
    found = [f"{n:,} {agreeing(n, name)}" for verdict, name in names.items() if (n := counts[verdict])]
    if found:
        number, _, rest = found[0].partition(" ")
        found[0] = f"{number} of {len(verdicts):,} {rest}"
    return listed(found)


def agreeing(number: int, words: str) -> str:
    """Words that begin with a verb, for one or for several."""
    verb, _, rest = words.partition(" ")
    one = {"are": "is", "have": "has"}.get(verb, f"{verb}s")
    return f"{one if number == 1 else verb} {rest}".rstrip()


def margin_of(rows: Sequence[Row]) -> str:
    """The margin of the rows' equivalence, as ' within ±5 points'; nothing where there was none."""
    found = sorted({row["margin"] for row in rows if row.get("margin") is not None})
    return f" within ±{points(found[0])}" if len(found) == 1 else ""
