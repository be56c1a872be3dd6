"""From decisions.csv to decision_order.csv: how often the one shown first is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from biaskit.measures.decisions.people import Table, model_of, tables_of
from biaskit.stats.clustered import spread_of_clusters, wilson_of_clusters
from biaskit.stats.crossed import share_interval

if TYPE_CHECKING:
    import pandas as pd

NEAR = 0.05
"""About one half, within which two are as good as equally probable."""
COLUMNS = [
    *("model", "question", "job", "position", "n", "chosen", "rate", "ci_low", "ci_high"),
    *("robust", "fragile", "near_even"),
]


def decision_order(rows: pd.DataFrame, *, choice: int) -> pd.DataFrame:
    """Make decision_order.csv of one model, where one of `choice` shown is chosen; else no row.

    `rows` of decisions.csv with `position` from 1; a row for each question, job (`all`, each if several) and
    position: `rate` is the share chosen there (by chance 1/choice), `chosen` its count or expected count, the
    interval over cases, and pairs where two are shown in both orders: Wilson's of counts, of probabilities
    that of mean shares (`crossed.share_interval`). With `choice` 2 and a column `pair`, in both orders, the
    row of position 1 has the shares of pairs and cases that are `near_even` (both orders within 5 points of
    one half), `robust` (the same person both times) or `fragile` (the same place).
    """
    import pandas as pd

    made: list[dict[str, Any]] = []
    for table in tables_of(rows, choice=choice, places=True) if choice > 1 else ():
        for position in sorted({*table.rows["position"]} - {""}):
            shown = table.rows[table.rows["position"] == position]
            row: dict[str, Any] = {"question": table.question, "job": table.job, "position": int(position)}
            row |= _rate(shown, counted=table.counted)
            if position == 1 and table.paired:
                row |= _kept(table)
            made.append(row)
    model = model_of(rows)
    return pd.DataFrame(made, columns=COLUMNS).assign(model=model)


def _rate(shown: pd.DataFrame, *, counted: bool) -> dict[str, Any]:
    """Average what those shown in one place get: a case, or a pair in a case in both orders, is one."""
    paired = (shown["pair"] != "").all()
    each = shown.groupby(["pair", "case"] if paired else ["case"], as_index=False, sort=False)["x"].mean()
    values, rate = each["x"].to_numpy(float), float(shown["x"].mean())
    cases = each["case"].tolist()
    spread = spread_of_clusters(values, each["pair"].tolist() if paired else cases, cases if paired else None)
    low, high = wilson_of_clusters(rate, len(values), spread) or (None, None)
    if not counted and spread.variance is not None and spread.dof is not None:
        low, high = map(float, share_interval(rate, spread.variance, spread.dof))
    return {"n": len(shown), "chosen": float(shown["x"].sum()), "rate": rate, "ci_low": low, "ci_high": high}


def _kept(table: Table) -> dict[str, float]:
    """Find how often the other order changes who is chosen."""
    first = table.rows[table.rows["sex"] == table.rows["sex"].iloc[0]]
    orders = first.pivot_table(index=["pair", "case"], columns="position", values="x").dropna()
    if orders.shape[1] < 2 or not len(orders):
        return {}
    p = orders.to_numpy(float)
    near = (abs(p - 0.5) <= NEAR).all(axis=1)
    robust = ~near & ((p > 0.5).all(axis=1) | (p < 0.5).all(axis=1))
    shares = {"near_even": near, "robust": robust, "fragile": ~near & ~robust}
    return {name: float(is_so.mean()) for name, is_so in shares.items()}
