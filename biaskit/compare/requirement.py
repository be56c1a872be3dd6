"""Whether a comparison that somebody requires holds.

See docs/methods.md#required-equivalence, `--require equivalent[=CONTRAST]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biaskit.errors import UsageError, nearest
from biaskit.stats.verdict import verdict_of
from biaskit.tables.query import Row, contrast_of

CONTRASTS = (
    *("models", "groups", "instructions", "levels", "settings", "factors", "interactions", "bias-types"),
    *("genders", "labour", "gaps"),
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """Rows that can say whether they are equivalent, and those that do not say yes."""

    contrast: str
    n_rows: int
    failing: tuple[Row, ...]
    not_compared: tuple[str, ...] = ()  # pairs of models without such a row

    @property
    def holds(self) -> bool:
        """Every such row says yes, there is at least one, and no pair of models is without."""
        return self.n_rows > 0 and not self.failing and not self.not_compared


def require_equivalent(
    rows: Sequence[Row], contrast: str = "models", pairs: Sequence[tuple[str, str, str]] = ()
) -> Requirement:
    """Judge every row of a contrast that has a margin; empty is not yes.

    `pairs`: (engine, model, model) that must have such a row, so that a model that could not be compared
    does not pass. Raises `UsageError` for an unknown contrast.
    """
    if contrast not in CONTRASTS:
        raise UsageError(
            f"There is no contrast {contrast!r}.{nearest(contrast, CONTRASTS)} Known: {', '.join(CONTRASTS)}."
        )
    judged = [row for row in rows if row["margin"] is not None and contrast_of(row) == contrast]
    compared = {(row["engine"], frozenset((row["model_a"], row["model_b"]))) for row in judged}
    missing = [
        f"{a} and {b} ({engine})" for engine, a, b in pairs if (engine, frozenset((a, b))) not in compared
    ]
    failing = tuple(row for row in judged if verdict_of(row) != "equivalent")
    return Requirement(contrast, len(judged), failing, tuple(missing) if contrast == "models" else ())
