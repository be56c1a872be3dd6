"""Numbers and lists as words: percent, points, intervals, names of genders, shortened foreign text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

LONGEST_QUOTE = 80
MINUS = "−"

PEOPLE: Mapping[str, str] = MappingProxyType(
    {"female": "women", "male": "men", "nonbinary": "non-binary people", "diverse": "diverse"}
)
"""The prober's `diverse` (or unknown) and the texts' `nonbinary` differ (methods/index#gender-groups)."""


def people(gender: str) -> str:
    """Name a gender as users read it; a study's own group stands in quotation marks."""
    return PEOPLE.get(gender, f"“{short(gender)}”")


def short(text: object, longest: int = LONGEST_QUOTE) -> str:
    """Put foreign text on one line, cut with … at `longest` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def listed(items: Sequence[str]) -> str:
    """'a, b and c'."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def joined(reasons: Sequence[str | None]) -> str | None:
    """Join the reasons that are not empty, each once, to one text; None when there is none."""
    return "; ".join(dict.fromkeys(reason for reason in reasons if reason)) or None


def first_words(words: Sequence[str], most: int, separator: str = " ") -> str:
    """'a b c and 4 more'."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return f"{separator.join(words[:most])}{more}"


def percent(fraction: float) -> str:
    """Write a share in percent without its sign: whole, but one decimal below 1 and above 99.

    Rounding never makes 0 or 100 of what is neither.
    """
    value = 100 * fraction
    if value in (0, 100):
        return f"{value:.0f}"
    if value < 0.05:
        return "<0.1"
    if value > 99.95:
        return ">99.9"
    return f"{value:.1f}" if value < 0.95 or value > 99.05 else f"{value:.0f}"


def percent_range(low: float, high: float) -> str:
    """'52–67', in percent."""
    return f"{percent(low)}–{percent(high)}"


def share_with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """'60 % [52–67]'; a share that is None is '–'."""
    if value is None:
        return "–"
    interval = "" if low is None or high is None else f" [{percent_range(low, high)}]"
    return f"{percent(value)} %{interval}"


ROUNDING = 1e-12  # sums of shares in double precision differ by less where nothing differs


def _signed(number: str) -> str:
    return MINUS + number[1:] if number.startswith("-") else number


def point_number(fraction: float, decimals: int = 0) -> str:
    """Write a difference of shares in points: whole, with decimals where it would round to 0.

    A number that is not 0 is never written as 0: an interval that just excludes 0 must not seem to touch it.
    """
    value = 100 * fraction
    if abs(fraction) <= ROUNDING:
        return "0"
    size = abs(value)
    if size < 0.001:
        return "almost 0"
    if size >= 0.95:
        return _signed(f"{value:.{decimals}f}")
    return _signed(f"{value:.1f}" if size >= 0.05 else f"{value:.1g}")


def points(fraction: float) -> str:
    """'26 points', '1 point'."""
    number = point_number(fraction)
    return f"{number} point" if number in ("1", MINUS + "1") else f"{number} points"


def points_range(low: float, high: float, decimals: int = 0) -> str:
    """'18 to 34', in points."""
    return f"{point_number(low, decimals)} to {point_number(high, decimals)}"


def plain_number(value: float) -> str:
    """Write a score or a coefficient with two decimals, more where it would round to 0."""
    if value == 0:
        return "0"
    return _signed(f"{value:.2f}" if abs(value) >= 0.005 else f"{value:.1g}")


def count(number: int, what: str, plural: str = "") -> str:
    """'1 job', '2,400 texts'."""
    return f"{number:,} {what if number == 1 else plural or what + 's'}"


def number_range(numbers: Sequence[int]) -> str:
    """'25', or '24–25' where they differ."""
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}–{high}"
