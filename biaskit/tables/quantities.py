"""What tests.csv compares: shares and scores, the four gaps of an occupation, relations between the gaps."""

from __future__ import annotations

GAPS = ("probe_gap", "represented_gap", "labour_gap", "srb_spread")
"""The columns of gaps.csv (docs/methods.md#gaps)."""
BETWEEN_ENGINES = (
    ("represented_gap", "probe_gap"),
    ("srb_spread", "probe_gap"),
    ("srb_spread", "represented_gap"),
)
RELATIONS = (
    *BETWEEN_ENGINES,
    *((gap, "labour_gap") for gap in ("probe_gap", "represented_gap", "srb_spread")),
)
"""(y, x) of every relation over occupations (docs/methods.md#relations)."""


def relation(y: str, x: str) -> str:
    """What the column `quantity` calls y over x."""
    return f"{y}~{x}"


QUANTITIES = (
    *(
        "share",
        "asymmetry",
        "represented_share",
        "refused_share",
        "srb",
        "probe_gap",
        "represented_gap",
        "srb_spread",
    ),
    *(relation(y, x) for y, x in RELATIONS),
)
"""Every quantity of tests.csv that a margin can be set for."""
