"""Names on the page in a reader's words: columns, values, verdicts, and what kinds state of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biaskit.common.wording import PEOPLE
from biaskit.measurement import stated
from biaskit.tables.schema import HEADS

_UNCLEAR = ("no-clear-difference", "not-identified", "no-verdict", "not-measured")
VERDICTS: Mapping[str, str] = {
    **dict.fromkeys(("higher", "lower"), "clear difference"),
    **{name: name.replace("-", " ").replace("verdict", "conclusion") for name in ("equivalent", *_UNCLEAR)},
    "shown": "",
}

OUTCOMES: Mapping[str, str] = stated("outcomes")
"""Outcomes of texts in words."""
RULES: Mapping[str, str] = stated("rules")
"""The rules of the association by their ids."""
CLASSES: Mapping[str, Sequence[str]] = stated("classes")
"""Class of a counted word in an example text → its letter, and what it means."""

_SUFFIXES = {
    "_share_ci_low": "{}, 95 % from",
    "_share_ci_high": "{}, 95 % to",
    "_ci_low": "{}, 95 % from",
    "_ci_high": "{}, 95 % to",
    "_share": "share of {}",
}
"""Endings of the columns of gender groups, the longest first."""

_ORIGINS = {"inferred": "not in the prompt", "requested": "in the prompt"}
VALUES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("gender", "requested_gender", "against", "group_a", "group_b"), PEOPLE),
    **dict.fromkeys(("origin", "trained_on", "tested_on"), _ORIGINS),
    "workforce_side": {"female-dominated": "women", "male-dominated": "men"},
}
"""Column → words for its values; other values are shown unchanged."""


def column(header: str) -> str:
    """Name a column of a table in words."""
    if header in HEADS:
        return HEADS[header]
    for suffix, label in _SUFFIXES.items():
        if (group := header.removesuffix(suffix)) not in (header, "pooled"):
            return label.format(PEOPLE.get(group, group))
    return header.removeprefix("n_").replace("_", " ")
