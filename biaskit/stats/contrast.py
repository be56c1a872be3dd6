"""A row of tests.csv: what it compares, its numbers, and what they come to (methods/tests#verdicts)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from biaskit.common.wording import ROUNDING
from biaskit.measurement import specs
from biaskit.stats.crossed import MANY, p_of_interval

Direction = Literal["higher", "lower"]
Verdict = Literal[
    Direction, "equivalent", "no-clear-difference", "not-identified", "not-measured", "no-verdict", "shown"
]
Number = Any
"""None where it is undefined: who reads one has asked before."""

LEVEL = 0.05
MOST_SPREAD = 2.0
"""Margins that the spread of true differences may have where their mean is called equivalent."""
AREAS = ("auc_transfer", "auc_inferred", "auc_requested")
"""Areas under the curve less 0.5."""
BINARY = "binary_"
"""Before a quantity: of the first group's part of the two that a study contrasts, as of *she* and *he*."""
JUDGED = {
    (spec.get("measurement", name), kind) for name, spec in specs().items() for kind in spec.get("judged", ())
}
"""(measurement, kind) of the rows that get a verdict; the others stand beside them in tests.csv."""
IDENTITY = (
    *("family", "gender", "model_a", "model_b", "bias_type", "context", "prompt_format"),
    *("debiasing_a", "debiasing_b", "group_a", "group_b"),
)
"""Columns that tell one comparison from another."""


def side_of(low: Number, high: Number) -> Direction | None:
    """Find the side of 0 that a whole interval lies on; a 0 up to rounding has no direction."""
    if low is None or high is None:
        return None
    if low > ROUNDING:
        return "higher"
    return "lower" if high < -ROUNDING else None


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns that say what a row of tests.csv compares; None where a column does not apply."""

    measurement: str
    contrast: str  # the last part of the family: groups, debiasing, levels, contexts, factors, models, …
    model_a: str
    model_b: str
    bias_type: str = ""
    context: str = ""
    prompt_format: str = ""
    debiasing_a: str = ""
    debiasing_b: str = ""
    quantity: str = "share"
    gender: str | None = None
    group_a: str | None = None
    group_b: str | None = None
    unit: str = "job"

    @property
    def is_binary(self) -> bool:
        """Whether it is of the first group's part of two, whatever belongs to neither."""
        return self.quantity.startswith(BINARY)

    @property
    def whole(self) -> str:
        """The quantity, or that of which it is the binary one: they have one margin and one role."""
        return self.quantity.removeprefix(BINARY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast(Scope, Mapping[str, Any]):
    """A row of tests.csv; as a mapping it has the columns of the file, and then what the tree of a page adds.

    Under bounds its intervals and p-value hold them already. The tree (`stats/verdict.py`) adds the question
    that a row answers, whether it leads, and the interval at its own level.
    """

    kind: str
    estimate: Number = None
    effect_size: Number = None
    statistic: Number = None
    dof: Number = None
    p_value: Number = None
    p_adjusted: Number = None
    ci_low: Number = None
    ci_high: Number = None
    n_a: Number = None
    n_b: Number = None
    ci90_low: Number = None
    ci90_high: Number = None
    margin: Number = None
    equivalent: bool | None = None
    bound_low: Number = None
    bound_high: Number = None
    verdict: Verdict | Literal[""] = ""
    spread_of_true: Number = None
    reason: str | None = None
    question: str | None = None
    lead: bool = False
    shown_low: Number = None
    shown_high: Number = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Contrast:
        """Read a row of the file; one that was read before stays as it is."""
        if isinstance(row, Contrast):
            return row
        stated = {name: row[name] for name in _ON_PAGE if name in row}
        return cls(contrast=stated.pop("family").rpartition("/")[2], **stated)

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def _columns(self) -> Sequence[str]:
        return _COLUMNS if self.question is None else _ON_PAGE

    @property
    def family(self) -> str:
        """The rows that are adjusted together."""
        return f"{self.measurement}/{self.quantity}/{self.kind}/{self.contrast}"

    @property
    def models(self) -> tuple[str, str]:
        """Its two sides; within a model the model twice."""
        return self.model_a, self.model_b

    @property
    def is_judged(self) -> bool:
        """Whether it is of a kind that gets a verdict."""
        return (self.measurement, self.kind) in JUDGED

    @property
    def has_interval(self) -> bool:
        """Whether its 95 % interval is known."""
        return self.ci_low is not None and self.ci_high is not None

    @property
    def direction(self) -> Direction | None:
        """The side of 0 that the whole 95 % interval lies on."""
        return side_of(self.ci_low, self.ci_high)

    @property
    def shown(self) -> tuple[float, float]:
        """The interval that a page shows: at the row's own level (methods/tests#levels).

        That of a difference of shares is cut to [−1, 1]: a t interval over few jobs reaches beyond it.
        """
        known = self.shown_low is not None
        low, high = (self.shown_low, self.shown_high) if known else (self.ci_low, self.ci_high)
        return (max(low, -1.0), min(high, 1.0)) if self.quantity.endswith("share") else (low, high)

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds of its number; where it has none, the number twice."""
        low, high = self.bound_low, self.bound_high
        return self.estimate if low is None else low, self.estimate if high is None else high

    @property
    def conclusion(self) -> Verdict:
        """Its verdict; where none is stored, only judged kinds have a direction."""
        tested = self.is_judged and self.p_value is not None and self.p_value < LEVEL
        return self.verdict or self.judge(self.direction if tested else None, asked=self.is_judged)

    def judge(self, side: Direction | None, *, asked: bool = True) -> Verdict:
        """Judge it by its numbers alone (methods/tests#verdicts).

        `side`: the direction that the tree names; `asked`: whether the row has a part in it. Returns
        `not-measured` without an estimate or an interval, `no-verdict` where the interval is conditional or
        rests on too few cells (no p-value), `equivalent` even where the 95 % interval excludes 0, and
        `not-identified` where there would be a verdict but for the bounds.
        """
        if self.estimate is None or not self.has_interval:
            return "not-measured"
        if self.p_value is None:
            return "no-verdict"
        if self.equivalent:
            return "equivalent"
        if not asked:
            return "shown"
        open_ = self.direction is None and self._would_be_decided()
        return side or ("not-identified" if open_ else "no-clear-difference")

    def _would_be_decided(self) -> bool:
        """Tell whether the interval, without what the bounds add to it, would give a verdict."""
        low, high = self.bounds
        if low == high or self.ci90_low is None or self.ci90_high is None:
            return False

        def alone(below: float, above: float) -> tuple[float, float]:
            return self.estimate - (low - below), self.estimate + (above - high)

        low90, high90 = alone(self.ci90_low, self.ci90_high)
        inside = self.margin is not None and -self.margin <= low90 and high90 <= self.margin
        return inside or side_of(*alone(self.ci_low, self.ci_high)) is not None

    def interval_at(self, level: float) -> tuple[float, float]:
        """Find its interval at 1 − `level`, on the scale on which its 95 % interval was made.

        Formula: the 95 % interval about the estimate, or about the bounds, by t(1 − level/2)/t(0.975) as
            wide, z without degrees of freedom (bounds that hold 0); an area under the curve on the logit
            scale; a rank correlation r, whose 95 % interval is a bootstrap's, tanh(z ± t(1 − level/2) z/t(1 −
            p/2)), z = atanh r: it inverts its p-value.
        Reference: methods/tests#levels.
        """
        from scipy.special import expit, logit, stdtrit

        if self.kind == "spearman" and self.n_a is not None and 0 < abs(self.estimate) < 1:
            z, n = math.atanh(self.estimate), self.n_a - 2
            reach = abs(z) * float(stdtrit(n, 1 - level / 2) / stdtrit(n, 1 - self.p_value / 2))
            return math.tanh(z - reach), math.tanh(z + reach)
        dof = self.dof or MANY
        wider = float(stdtrit(dof, 1 - level / 2) / stdtrit(dof, 0.975))
        low, high = self.bounds
        below, above = low - self.ci_low, self.ci_high - high
        if self.quantity in AREAS and -0.5 < low < 0.5 and below > 0:
            middle = float(logit(low + 0.5))
            reach = (middle - float(logit(self.ci_low + 0.5))) * wider
            return float(expit(middle - reach)) - 0.5, float(expit(middle + reach)) - 0.5
        if self.kind == "crossed" and low == high:  # one end may have been cut to what a difference can be
            below = above = max(below, above)
        if self.p_value > level:  # as it is where few templates leave p no smaller
            low, high = min(low, below * wider), max(high, -above * wider)
        return low - below * wider, high + above * wider

    def p_against(self, value: float) -> float:
        """Compute the two-sided p-value of "the number is `value`" from its interval; of the nearer bound."""
        low, high = self.bounds
        if low <= value <= high:
            return 1.0
        off, half = (low - value, low - self.ci_low) if low > value else (value - high, self.ci_high - high)
        return p_of_interval(off, off - half, off + half, self.dof or MANY)


_OWN = [field.name for field in fields(Contrast)][len(fields(Scope)) :]
_ON_PAGE = ("measurement", "family", "quantity", *IDENTITY[1:], "kind", "unit", *_OWN[1:])
_COLUMNS = _ON_PAGE[: _ON_PAGE.index("question")]
