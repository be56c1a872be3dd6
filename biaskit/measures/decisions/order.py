"""From decisions.csv to decision_order.csv: how often the one shown first is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from biaskit.measures.decisions.people import Table, tables_of
from biaskit.stats.clustered import spread_of_clusters, wilson_of_clusters
from biaskit.stats.crossed import share_interval

if TYPE_CHECKING:
    import pandas as pd

NEAR = 0.05
"""About one half, within which two are as good as equally probable."""


def decision_order(rows: pd.DataFrame, *, choice: int) -> pd.DataFrame:
    """Make decision_order.csv of one model and question: no row unless one of `choice` is chosen.

    Position 1 of two shown in both orders has the shares of robust, fragile and near even
    (methods/decisions#order).
    """
    import pandas as pd

    made: list[dict[str, Any]] = []
    for table in tables_of(rows, choice=choice, places=True) if choice > 1 else ():
        for position in sorted({*table.rows["position"]} - {""}):
            shown = table.rows[table.rows["position"] == position]
            row: dict[str, Any] = {"question": table.question, "job": table.job, "position": int(position)}
            row |= _rate(table, shown)
            if position == 1 and table.paired:
                row |= _kept(table.rows)
            made.append(row)
    return pd.DataFrame(made)


def _rate(table: Table, shown: pd.DataFrame) -> dict[str, Any]:
    """Average what those shown in one place get: a case, or a pair in a case in both orders, is one."""
    units = ["pair", "case"] if table.paired else ["case"]
    each = shown.groupby(units, as_index=False, sort=False)["x"].mean()
    values, rate = each["x"].to_numpy(float), float(shown["x"].mean())
    crossed = each["case"].tolist() if table.paired else None
    spread = spread_of_clusters(values, each[units[0]].tolist(), crossed)
    low, high = wilson_of_clusters(rate, len(values), spread) or (None, None)
    if not table.counted and spread.variance is not None and spread.dof is not None:
        low, high = map(float, share_interval(rate, spread.variance, spread.dof))
    return {"n": len(shown), "chosen": float(shown["x"].sum()), "rate": rate, "ci_low": low, "ci_high": high}


def _kept(rows: pd.DataFrame) -> dict[str, float]:
    """Find how often the other order changes who is chosen."""
    first = rows[rows["sex"] == rows["sex"].iloc[0]]
    orders = first.pivot_table(index=["pair", "case"], columns="position", values="x").dropna()
    if orders.shape[1] < 2 or not len(orders):
        return {}
    p = orders.to_numpy(float)
    near = (abs(p - 0.5) <= NEAR).all(axis=1)
    robust = ~near & ((p > 0.5).all(axis=1) | (p < 0.5).all(axis=1))
    shares = {"near_even": near, "robust": robust, "fragile": ~near & ~robust}
    return {name: float(is_so.mean()) for name, is_so in shares.items()}
