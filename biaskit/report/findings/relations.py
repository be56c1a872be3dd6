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
from biaskit.stats.verdict import direction_of
from biaskit.tables.quantities import BETWEEN_ENGINES, RELATIONS, relation
from biaskit.tables.query import Row, contrast_of, defined, distinct, extremes, grouped, undefined, where
from biaskit.wording import count, plain_number, short

GAP_NAMES = {
    "probe_gap": "the probe gap",
    "represented_gap": "the gap in texts",
    "labour_gap": "the gap in the U.S. labour force",
    "srb_spread": "the SRB spread",
}


NOISY = " Noise in either number draws the correlation towards 0."


def relations(content: Content) -> Iterator[Ranked]:
    """Rank correlations over occupations; those between the engines lead."""
    shown = RELATIONS if content.reference in ("labour", "both") else BETWEEN_ENGINES
    missing: list[Row] = []
    for y, x in shown:
        rows = where(content.between.get("tests", ()), kind="spearman", quantity=relation(y, x))
        rows = [row for row in rows if contrast_of(row) != "models"]
        missing += undefined(rows, "estimate")
        rank = Rank.LEAD if (y, x) in BETWEEN_ENGINES else Rank.DETAIL
        for (bias_type,), known in grouped(defined(rows, "estimate"), "bias_type").items():
            ends = _named(y, bias_type), _named(x, bias_type)
            if len(known) > MANY_MODELS:
                yield rank, _of_many(*ends, known)
            else:
                yield from ((rank, _of_one(*ends, row)) for row in known)
    if missing:
        text = f"{count(len(missing), 'relation')} between the engines' gaps over occupations not measured "
        text += f"({reasons_of(missing)})."
        yield Rank.NOT_MEASURED, Finding(text, "relations", "not-measured", _using(missing))


def _named(gap: str, bias_type: str) -> str:
    asked = f" ({bias_type} prompts)" if bias_type and gap == "probe_gap" else ""
    return f"{GAP_NAMES[gap]}{asked}"


def _of_one(y: str, x: str, row: Row) -> Finding:
    number = plain_number(row["estimate"])
    if row["ci_low"] is not None:
        number += f" [{plain_number(row['ci_low'])} to {plain_number(row['ci_high'])}]"
    direction = direction_of(row)
    verb = {"higher": "rises with", "lower": "falls as", None: "shows no clear relation to"}[direction]
    tail = f"{x} grows" if direction == "lower" else x
    text = f"Over {count(row['n_a'] or 0, 'occupation')}, {y} of {short(row['model_a'])} {verb} {tail}: "
    text += f"rank correlation {number}.{NOISY if 'labour_gap' not in row['quantity'] else ''}{noted([row])}"
    return Finding(text, "relations", outcome_of(row), _using([row]))


def _of_many(y: str, x: str, rows: Sequence[Row]) -> Finding:
    verdicts = [outcome_of(row) for row in rows]
    low, high = extremes(rows, "estimate")
    ends = [f"{plain_number(row['estimate'])} ({short(row['model_a'])})" for row in (low, high)]
    text = f"Over occupations, {y} and {x} in {count(len(rows), 'model')}: "
    text += tally(verdicts, more="rise together", less="run against each other", unclear="relation")
    text += f"; rank correlations from {ends[0]} to {ends[1]}."
    return Finding(text, "relations", shared(verdicts), _using(rows))


def _using(rows: Sequence[Row]) -> str:
    models = distinct(rows, "model_a")
    who = short(models[0]) if len(models) == 1 else count(len(models), "model")
    forms = [f"{form} prompts" for form in distinct(rows, "prompt_form") if form]
    return ", ".join(["Spearman, bootstrap over occupations", *forms, who])
