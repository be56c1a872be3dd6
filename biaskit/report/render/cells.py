"""Write numbers for the cells of tables."""

from __future__ import annotations

from biaskit.tables.query import Row

LABEL = 40
"""Letters of a model's label in a table that stands models side by side."""
UNDEFINED = "–"


def in_list(row: Row) -> str:
    """Write a marked word, in brackets if it is a name, a gender word or a word of its group's own name."""
    is_bare = row["is_name"] or row["is_gender_word"] or row.get("is_group_word")
    return f"({row['word']})" if is_bare else str(row["word"])


def percent(value: float | None) -> str:
    """Write a fraction as a percentage with one digit; undefined: –."""
    return UNDEFINED if value is None else f"{100 * value:.1f}"


def number(value: float | None, digits: int) -> str:
    """Write a number with so many digits; undefined: –."""
    return UNDEFINED if value is None else f"{value:.{digits}f}"


def p_value(value: float | None) -> str:
    """Write a p-value with four digits, or <0.0001; undefined: –."""
    if value is None:
        return UNDEFINED
    return f"{value:.4f}" if value >= 0.0001 else "<0.0001"


def signed(value: float | None, digits: int = 3) -> str:
    """Write a difference, always with its sign; undefined: –."""
    return UNDEFINED if value is None else f"{value:+.{digits}f}"


def span(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """Write an interval: a fraction's in percent, a difference's (`signed`) unscaled; undefined: –."""
    if low is None or high is None:
        return UNDEFINED
    return f"{low:+.3f} to {high:+.3f}" if signed else f"{100 * low:.1f}–{100 * high:.1f}"
