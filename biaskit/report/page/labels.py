"""Names on the page in a reader's words: titles of tables, columns, values, rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biaskit.common.files import toml_beside
from biaskit.common.wording import PEOPLE

_UNCLEAR = ("no-clear-difference", "not-identified", "no-verdict", "not-measured")
VERDICTS: Mapping[str, str] = {
    **dict.fromkeys(("higher", "lower"), "clear difference"),
    **{name: name.replace("-", " ").replace("verdict", "conclusion") for name in ("equivalent", *_UNCLEAR)},
    "shown": "",
}

_STATED = toml_beside(__file__)
TABLES: Mapping[str, Mapping[str, str]] = _STATED["tables"]
"""Table → its title, what it holds, and the question that it answers."""
COLUMNS: Mapping[str, str] = _STATED["columns"]
"""Columns whose name in the file says too little; others keep it."""
NOT_ON_PAGE: Mapping[str, str] = _STATED["not_on_page"]
"""Tables too long for a page, whose means stand in the others."""
OUTCOMES: Mapping[str, str] = _STATED["outcomes"]
"""Outcomes of texts in words (methods/probabilities#outcomes)."""
RULES: Mapping[str, str] = _STATED["rules"]
"""The rules of the association by their ids (methods/texts#gender-association)."""
CLASSES: Mapping[str, Sequence[str]] = _STATED["classes"]
"""Class of a counted word in an example text → its letter, and what it means."""

_SUFFIXES = {
    "_share_ci_low": "{}, 95 % from",
    "_share_ci_high": "{}, 95 % to",
    "_ci_low": "{}, 95 % from",
    "_ci_high": "{}, 95 % to",
    "_share": "share of {}",
}
"""Endings of the columns of gender groups, the longest first."""

_ORIGINS = {"associated": "not in the prompt", "specified": "in the prompt"}
VALUES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("gender", "specified_gender", "against", "group_a", "group_b"), PEOPLE),
    **dict.fromkeys(("origin", "trained_on", "tested_on"), _ORIGINS),
    "labour_side": {"female-dominated": "women", "male-dominated": "men"},
}
"""Column → words for its values; other values are shown unchanged."""


def column(header: str) -> str:
    """Name a column of a table in words."""
    if header in COLUMNS:
        return COLUMNS[header]
    for suffix, label in _SUFFIXES.items():
        if (group := header.removesuffix(suffix)) not in (header, "pooled"):
            return label.format(PEOPLE.get(group, group))
    return header.removeprefix("n_").replace("_", " ")
