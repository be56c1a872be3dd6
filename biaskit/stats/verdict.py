"""What a contrast comes to: one function of its numbers, for every table, sentence, figure and gate.

See docs/methods.md#verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from biaskit.common.wording import ROUNDING
from biaskit.stats.multiplicity import holm

Row = Mapping[str, Any]
Direction = Literal["higher", "lower"]
Verdict = Literal[
    "higher", "lower", "equivalent", "no-clear-difference", "not-identified", "not-measured", "no-verdict"
]

LEVEL = 0.05
MANY = 1e6
"""Degrees of freedom where a row names none."""
# Only rows of these kinds get a verdict; the others stand beside them in tests.csv.
JUDGED = {
    "probe": ("crossed", "slope", "spearman"),
    "personas": ("paired",),
    "compare": ("paired", "slope", "spearman"),
}

_IDENTITY = (
    *("engine", "quantity", "gender", "model_a", "model_b", "bias_type", "setting", "prompt_form"),
    *("instruction_a", "instruction_b", "group_a", "group_b", "kind"),
)


def is_judged(row: Row) -> bool:
    """Tell whether a row is of a kind that gets a verdict."""
    return row["kind"] in JUDGED.get(str(row["engine"]), ())


def interval_side(row: Row) -> Direction | None:
    """Find the side of 0 that the whole 95 % interval lies on; a 0 up to rounding has no direction."""
    if row["ci_low"] is None or row["ci_high"] is None:
        return None
    return "higher" if row["ci_low"] > ROUNDING else "lower" if row["ci_high"] < -ROUNDING else None


def verdict_of(row: Row | None) -> Verdict:
    """Read the verdict of a row of tests.csv; judge it by its own numbers where none is stored."""
    if row is None:
        return "not-measured"
    return row.get("verdict") or judge(row, row["p_value"])


def judge(row: Row, p_claim: float | None) -> Verdict:
    """Judge a contrast by its numbers alone (docs/methods.md#verdicts).

    `row` has the columns of tests.csv; under bounds its intervals and p-value hold them already. `p_claim`
    is its p-value, adjusted over the claims it stands among. Returns `not-measured` without an estimate or
    an interval, `no-verdict` where the interval is conditional or rests on too few cells (no p-value),
    `equivalent` even where the 95 % interval excludes 0, and `not-identified` where there would be a verdict
    but for the bounds.
    """
    if row["estimate"] is None or row["ci_low"] is None or row["ci_high"] is None:
        return "not-measured"
    if p_claim is None:
        return "no-verdict"
    if row.get("equivalent"):
        return "equivalent"
    side = interval_side(row)
    if side is not None:
        return side if p_claim < LEVEL else "no-clear-difference"
    return "not-identified" if _would_be_decided(row) else "no-clear-difference"


def _would_be_decided(row: Row) -> bool:
    """Tell whether the interval, without what the bounds add to it, would give a verdict."""
    low, high = row.get("bound_low"), row.get("bound_high")
    if low is None or high is None or low == high or row["ci90_low"] is None or row["ci90_high"] is None:
        return False

    def alone(name: str) -> tuple[float, float]:
        below, above = row[f"{name}_low"], row[f"{name}_high"]
        return row["estimate"] - (low - below), row["estimate"] + (above - high)

    (low95, high95), (low90, high90) = alone("ci"), alone("ci90")
    margin = row["margin"]
    inside = margin is not None and -margin <= low90 and high90 <= margin
    return bool(inside or low95 > ROUNDING or high95 < -ROUNDING)


def with_verdicts(*tables: Sequence[Row]) -> list[list[dict[str, Any]]]:
    """Judge the rows of one or several tests.csv, as the claims of one page or one gate.

    Formula: Holm's step-down over the p-values of all judged rows of the tables together. One
        gender's share says much what another's does: each gender's rows are a family of their own.
    Arguments: tables of rows of tests.csv.
    Returns: the same rows in the same order, each with `verdict` and, not for the file, `n_claims`: how
        many comparisons it stands among.
    Missing or empty input: a row of a kind that is not judged has an empty verdict and is no claim.
    Reference: docs/methods.md#verdicts.
    """
    rows = [row for table in tables for row in table]
    claims = [i for i, row in enumerate(rows) if is_judged(row)]
    p_values = {i: rows[i]["p_value"] for i in claims}
    genders = {gender for i in claims if (gender := _gender_of_share(rows[i]))} or {""}
    adjusted: dict[int, tuple[float, int]] = {}
    for gender in sorted(genders):
        # The same comparison may stand in a run's table and in a comparison's: it is one claim.
        family: dict[tuple[Any, ...], list[int]] = {}
        for i in claims:
            if p_values[i] is not None and _gender_of_share(rows[i]) in ("", gender):
                family.setdefault(tuple(rows[i][name] for name in _IDENTITY), []).append(i)
        p_of_claims = [p_values[members[0]] for members in family.values()]
        for members, p in zip(family.values(), holm([""] * len(family), p_of_claims), strict=True):
            for i in members:
                if p is not None and p >= adjusted.get(i, (0.0, 0))[0]:
                    adjusted[i] = p, len(family)
    judged = []
    for i, row in enumerate(rows):
        p, n = adjusted.get(i, (None, 0))
        judged.append({**row, "verdict": judge(row, p) if i in p_values else "", "n_claims": n})
    in_order = iter(judged)
    return [list(islice(in_order, len(table))) for table in tables]


def _gender_of_share(row: Row) -> str:
    """Name the gender whose share the row compares; "" for numbers that are no share of one gender."""
    quantity = str(row["quantity"])
    return str(row["gender"] or "") if "share" in quantity or quantity == "instruction_effect" else ""
