"""The quantities of tests.csv: shares and scores, the gaps of an occupation, relations between gaps."""

from __future__ import annotations

from collections.abc import Mapping

from biaskit.measurement import specs

GAPS = ("probe_gap", "represented_gap", "workforce_gap", "srb_spread")
"""The columns of gaps.csv (methods/comparisons#gaps)."""
QUANTITIES = tuple(dict.fromkeys(name for spec in specs().values() for name in spec.get("margins", ())))
"""Every quantity of tests.csv that a margin can be set for."""
RELATIONS = tuple((y, x) for y, _, x in (name.partition("~") for name in QUANTITIES) if x)
"""(y, x) of every relation over occupations (methods/comparisons#relations)."""
BETWEEN_KINDS = tuple((y, x) for y, x in RELATIONS if x != "workforce_gap")

AREAS = {
    "auc_inferred": ("inferred", "inferred"),
    "auc_requested": ("requested", "requested"),
    "auc_transfer": ("requested", "inferred"),
}
"""Areas under the curve in tests.csv → trained on, tested on in text_transfer.csv (methods/srb#transfer).

The fourth pair of origins stands in text_transfer.csv alone: no contrast is made of it.
"""
SHARES: Mapping[bool, tuple[str, str, str]] = {
    True: ("binary_share", "binary_share_ci_low", "binary_share_ci_high"),
    False: ("share", "ci_low", "ci_high"),
}
"""Columns of a share in probe_groups.csv and of its ends: of the two groups, or of all target words."""
OUTCOME_SHARE = "outcome_share"
NAMED = "listed"
"""The outcome of an answer that names one group of the study; in tables its groups follow one by one."""
TESTED_OUTCOMES = (NAMED, "unknown", "both", "declines")
"""Outcomes of sampled answers that are contrasted between job groups and between models."""
ANSWERS_OF_MODELS = "answers-models"
"""The contrast of two models' shares of outcomes (methods/probabilities#continuations)."""


def relation(y: str, x: str) -> str:
    """Name a relation as the column `quantity` does: y over x."""
    return f"{y}~{x}"
