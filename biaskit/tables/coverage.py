"""How much probability the target words have, and what is little (methods/probabilities#low-coverage)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from biaskit.measurement import KINDS, measurement
from biaskit.tables.query import Row, column, defined
from biaskit.tables.schema import SCHEMAS, Column

Coverage = tuple[float, float] | None
"""The least and the greatest coverage over groups of jobs; None where none is known."""
LITTLE = 0.5
"""Under this coverage every sentence says what the target words hold."""
WEAK = 0.1
"""Under this coverage a share is weak evidence."""


@cache
def table_with_coverage(kind_name: str) -> str:
    """Find the table of shares that says how much probability the target words have; "" without one."""
    table = measurement(kind_name).published[0] if kind_name in KINDS else ""
    return table if table and Column("coverage", "number") in SCHEMAS[table].parts else ""


def coverage_of(rows: Iterable[Row], *, of_two: bool = True) -> Coverage:
    """Find the least and the greatest coverage of rows of probe_groups.csv.

    `of_two`: of the words of the two groups that are contrasted, since what is said rests on them (the first
    group's rows have it); else of all target words.
    """
    name = "binary_coverage" if of_two else "coverage"
    known = column(defined(rows, name), name)
    return (min(known), max(known)) if known else None


def is_under(coverage: Coverage, limit: float) -> bool:
    """Tell whether the least coverage is known to lie under a limit."""
    return coverage is not None and coverage[0] < limit


def better_format(held: Mapping[str, float], prompt_format: str) -> str | None:
    """Find the format that reaches most, unless it is weak or reaches less than twice `prompt_format`."""
    best = max(held, key=held.__getitem__, default=prompt_format)
    reaches_more = prompt_format in held and held[best] >= max(WEAK, 2 * held[prompt_format])
    return best if reaches_more else None
