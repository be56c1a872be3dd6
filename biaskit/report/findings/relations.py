"""Whether the engines' gaps go together over occupations, and with labour statistics.

See docs/methods.md#relations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.finding import (
    MANY_MODELS,
    Finding,
    Rank,
    Ranked,
    noted,
    outcome_of,
    reasons_of,
    shared,
    tally,
)
from biaskit.tables.query import Row, contrast_of, distinct, where
from biaskit.tables.verdict import direction_of
from biaskit.wording import count, plain_number, short

NAMES = {
    "probe_gap": "the probe gap",
    "represented_gap": "the gap in texts",
    "labour_gap": "the gap in the U.S. labour force",
    "srb_spread": "the SRB spread",
}
ORDER = (
    *("represented_gap~probe_gap", "srb_spread~probe_gap", "srb_spread~represented_gap"),
    *("probe_gap~labour_gap", "represented_gap~labour_gap", "srb_spread~labour_gap"),
)
ENGINES_ONLY = ORDER[:3]


def relations(content: Content) -> Iterator[Ranked]:
    """Rank correlations over occupations; those between the engines lead."""
    allowed = ORDER if content.reference in ("labour", "both") else ENGINES_ONLY
    rows = [
        row
        for row in content.between.get("tests", ())
        if row["kind"] == "spearman" and row["quantity"] in allowed and contrast_of(row) != "models"
    ]
    for quantity in sorted(distinct(rows, "quantity"), key=ORDER.index):
        same = where(rows, quantity=quantity)
        for bias_type in distinct(same, "bias_type"):
            own = where(same, bias_type=bias_type)
            known = [row for row in own if row["estimate"] is not None]
            rank = Rank.LEAD if quantity in ENGINES_ONLY else Rank.DETAIL
            if len(known) > MANY_MODELS:
                yield rank, _of_many(quantity, bias_type, known)
            else:
                for row in known:
                    yield rank, _of_one(quantity, bias_type, row)
    yield from _not_measured(rows)


def _ends(quantity: str, bias_type: str) -> tuple[str, str]:
    y, x = quantity.split("~")
    asked = f" ({bias_type} prompts)" if bias_type else ""
    names = [NAMES[name] + (asked if name == "probe_gap" else "") for name in (y, x)]
    return names[0], names[1]


def _of_one(quantity: str, bias_type: str, row: Row) -> Finding:
    y, x = _ends(quantity, bias_type)
    found = plain_number(row["estimate"])
    if row["ci_low"] is not None:
        found += f" [{plain_number(row['ci_low'])} to {plain_number(row['ci_high'])}]"
    direction = direction_of(row)
    verb = {"higher": "rises with", "lower": "falls as", None: "shows no clear relation to"}[direction]
    tail = f"{x} grows" if direction == "lower" else x
    text = f"Over {count(row['n_a'] or 0, 'occupation')}, {y} of {short(row['model_a'])} {verb} {tail}: "
    text += "rank correlation "
    return Finding(f"{text}{found}.{noted([row])}", "relations", outcome_of(row), _using([row]), "figures")


def _of_many(quantity: str, bias_type: str, rows: Sequence[Row]) -> Finding:
    y, x = _ends(quantity, bias_type)
    verdicts = [outcome_of(row) for row in rows]
    low, high = min(rows, key=lambda row: row["estimate"]), max(rows, key=lambda row: row["estimate"])
    ends = [f"{plain_number(row['estimate'])} ({short(row['model_a'])})" for row in (low, high)]
    text = f"Over occupations, {y} and {x} in {count(len(rows), 'model')}: "
    text += tally(verdicts, more="rise together", less="run against each other", unclear="relation")
    text += f"; rank correlations from {ends[0]} to {ends[1]}."
    return Finding(text, "relations", shared(verdicts), _using(rows), "figures")


def _not_measured(rows: Sequence[Row]) -> Iterator[Ranked]:
    missing = [row for row in rows if row["estimate"] is None]
    if missing:
        text = f"{count(len(missing), 'relation')} between the engines' gaps over occupations not measured "
        text += f"({reasons_of(missing)})."
        yield Rank.NOT_MEASURED, Finding(text, "relations", "not-measured", _using(missing), "figures")


def _using(rows: Sequence[Row]) -> str:
    models = distinct(rows, "model_a")
    who = short(models[0]) if len(models) == 1 else count(len(models), "model")
    forms = [f"{form} prompts" for form in distinct(rows, "prompt_form") if form]
    return ", ".join(["Spearman, bootstrap over occupations", *forms, who])
