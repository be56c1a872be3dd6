"""The quantities of tests.csv: shares and scores, the gaps of an occupation, relations between gaps."""

from __future__ import annotations

GAPS = ("probe_gap", "represented_gap", "labour_gap", "srb_spread")
"""The columns of gaps.csv (methods/comparisons#gaps)."""
BETWEEN_ENGINES = (
    ("represented_gap", "probe_gap"),
    ("srb_spread", "probe_gap"),
    ("srb_spread", "represented_gap"),
)
RELATIONS = (
    *BETWEEN_ENGINES,
    *((gap, "labour_gap") for gap in ("probe_gap", "represented_gap", "srb_spread")),
)
"""(y, x) of every relation over occupations (methods/comparisons#relations)."""

AREAS = {
    "auc_associated": ("associated", "associated"),
    "auc_specified": ("specified", "specified"),
    "auc_transfer": ("specified", "associated"),
}
"""Areas under the curve in tests.csv → trained on, tested on in text_transfer.csv (methods/srb#transfer).

The fourth pair of origins stands in text_transfer.csv alone: no contrast is made of it.
"""
ALL_OCCUPATIONS = "all"
"""The occupation of a row of text_transfer.csv that is the mean over occupations."""
OUTCOME_SHARE = "outcome_share"
NAMED = "listed"
"""The outcome of an answer that names one group of the study; in tables its groups follow one by one."""
TESTED_OUTCOMES = (NAMED, "unknown", "both", "declines")
"""Outcomes of drawn answers that are contrasted between job groups and between models."""
ANSWERS_OF_MODELS = "answers-models"
"""The contrast of two models' shares of outcomes (methods/probabilities#continuations)."""


def relation(y: str, x: str) -> str:
    """Name a relation as the column `quantity` does: y over x."""
    return f"{y}~{x}"


QUANTITIES = (
    *("share", "group_gap", "asymmetry", "represented_share", "refused_share", "declined_share"),
    *("srb", "probe_gap", "represented_gap", "srb_spread", OUTCOME_SHARE),
    *(relation(y, x) for y, x in RELATIONS),
)
"""Every quantity of tests.csv that a margin can be set for."""
