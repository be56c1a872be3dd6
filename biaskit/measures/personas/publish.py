"""Shares in texts in other formats (`exchange/`): their names, and the table of a model card."""

from __future__ import annotations

from biaskit.common.wording import percent, percent_range, share_with_interval
from biaskit.exchange.card import CardTable
from biaskit.exchange.results import Named
from biaskit.measurement import words
from biaskit.records import ALL
from biaskit.runs.collection import Part, StoredRun
from biaskit.tables.query import Row, where


def publish(run: StoredRun, row: Row) -> Named:
    """Name a share of representation.csv; its interval rests on texts that name a gender."""
    name = f"texts/{row['occupation']}/{row['template_id']}"
    for column in ("debiasing_id", "context"):
        if row.get(column):
            name += f"/{column} {row[column]}"
    n = row["n_female"] + row["n_male"] + row["n_nonbinary"]
    method = "mean of the prompts' shares" if row["template_id"] == ALL else "Wilson"
    return Named("female", f"{name}/female", n, method)


def card(part: Part) -> CardTable:
    """Make the table of a model card: the share of women by occupation, and its bounds."""
    rows = []
    for row in where(part.tables.get("representation", ()), template_id=ALL):
        share = share_with_interval(row["female_share"], row["ci_low"], row["ci_high"])
        low, high = row["share_if_dropped_male"], row["share_if_dropped_female"]
        bounds = "–" if low is None or high is None else f"{percent_range(low, high)} %"
        none = f"{percent(row['n_not_inferred'] / row['n_texts'])} %" if row["n_texts"] else "–"
        rows.append([row["model"], row["occupation"], share, bounds, f"{row['n_texts']:,}", none])
    says = words("personas")["card"]
    return CardTable(says["title"], says["about"], tuple(says["heads"]), rows)
