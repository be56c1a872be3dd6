"""Does what a policy requires hold? One verdict and one wording for every face (docs/methods.md#gate)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biaskit.common.wording import percent
from biaskit.compare.policy import Policy, Require, short_policy
from biaskit.stats.verdict import is_judged, verdict_of
from biaskit.tables.query import Row, contrast_of

Pair = tuple[str, str, str]
"""(engine, later, earlier): two models that were to be compared."""
Coverage = Mapping[tuple[str, str], float | None]
"""(model, bias type) → the part of the probability that the listed words hold; None where unknown."""
SHOWN = 5
"""Rows that do not hold, named in words."""
CI90 = ("ci90_low", "ci90_high")
NO_DIRECTION = {
    "no-clear-difference": "no clear difference",
    "not-identified": "not identified (the bounds are too wide; an exact estimator would decide)",
    "no-verdict": "no verdict (see its reason)",
}


@dataclass(frozen=True, slots=True)
class Failing:
    """A row that does not show what is required, and why, with its numbers."""

    row: Row
    why: str

    @property
    def text(self) -> str:
        """In one line."""
        return f"{named(self.row)}: {self.why}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one requirement."""

    require: Require
    n_rows: int
    failing: tuple[Failing, ...] = ()
    not_compared: tuple[str, ...] = ()  # models, or pairs of them, without such a row

    @property
    def holds(self) -> bool:
        """Every row says yes, there is at least one, and no model is without. Nothing is not yes."""
        return self.n_rows > 0 and not self.failing and not self.not_compared

    @property
    def text(self) -> str:
        """In one sentence."""
        title = self.require.title
        if self.holds:
            return f"Required: {title} holds in all {self.n_rows} rows."
        said = [f"{len(self.failing)} of {self.n_rows} rows"] if self.failing else []
        if missing := len(self.not_compared):
            what = "pairs of models" if self.require.contrast == "models" else "models"
            said.append(f"{missing} {what} were not compared")
        return f"Required: {title} does not hold: {', '.join(said) or 'nothing was compared'}."

    @property
    def lines(self) -> tuple[str, ...]:
        """What does not hold, row by row, at most `SHOWN` of each kind."""
        more = len(self.failing) - SHOWN
        return (
            *(f"not compared: {pair}" for pair in self.not_compared[:SHOWN]),
            *(one.text for one in self.failing[:SHOWN]),
            *((f"and {more} more rows of tests.csv",) if more > 0 else ()),
        )


@dataclass(frozen=True, slots=True)
class GateResult:
    """What came of a policy; true where all of it holds."""

    outcomes: tuple[Outcome, ...]

    @property
    def holds(self) -> bool:
        """Whether every requirement holds."""
        return bool(self.outcomes) and all(one.holds for one in self.outcomes)

    def __bool__(self) -> bool:
        return self.holds

    @property
    def text(self) -> str:
        """Every requirement with what does not hold; ends without a line feed."""
        return "\n".join(
            line for one in self.outcomes for line in (one.text, *(f"  {said}" for said in one.lines))
        )


def judge_policy(
    policy: Policy,
    rows: Sequence[Row],
    *,
    pairs: Sequence[Pair] = (),
    coverage: Coverage | None = None,
) -> GateResult:
    """Hold rows of tests.csv against a policy.

    Args:
        rows: with their verdicts, as the claims of one page (`stats.verdict.with_verdicts`).
        pairs: that must have a row of the contrast `models`, so that a model that could not be compared does
            not pass.
        coverage: of each model that was probed.
    """
    outcomes = []
    for require in policy.requires:
        meant = [row for row in rows if _is_meant(require, row)]
        failing = [Failing(row, why) for row in meant if (why := _why_not(require, row, coverage or {}))]
        missing = _without_a_row(require, meant, pairs)
        outcomes.append(Outcome(require, len(meant), tuple(failing), missing))
    return GateResult(tuple(outcomes))


def require_equivalent(rows: Sequence[Row], contrast: str = "models", pairs: Sequence[Pair] = ()) -> Outcome:
    """The short form: every row of a contrast that has a margin is equivalent within it.

    Raises `UsageError` for an unknown contrast.
    """
    return judge_policy(short_policy(contrast), rows, pairs=pairs).outcomes[0]


def _is_meant(require: Require, row: Row) -> bool:
    where = require.where.items()
    if contrast_of(row) != require.contrast or any(row[name] != value for name, value in where):
        return False
    if require.models and not {row["model_a"], row["model_b"]} <= set(require.models):
        return False
    return is_judged(row) if require.has_own_line else row["margin"] is not None


def _without_a_row(require: Require, meant: Sequence[Row], pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Models that the requirement speaks of and no row does."""
    engine = require.engine
    if require.contrast == "models":
        done = {(row["engine"], frozenset((row["model_a"], row["model_b"]))) for row in meant}
        named = set(require.models)
        due = [(own, a, b) for own, a, b in pairs if engine in (None, own) and (not named or {a, b} <= named)]
        missing = [f"{a} and {b} ({own})" for own, a, b in due if (own, frozenset((a, b))) not in done]
        in_pairs = {label for _, *both in due for label in both}
        return (*missing, *(label for label in require.models if label not in in_pairs))
    done_alone = {label for row in meant for label in (row["model_a"], row["model_b"])}
    return tuple(label for label in require.models if label not in done_alone)


def _why_not(require: Require, row: Row, coverage: Coverage) -> str:
    """Why a row does not show what is required; "" where it does."""
    if verdict_of(row) in ("not-measured", "no-verdict"):
        return verdict_in_words(row)
    needed = ("estimate", "ci_low", "ci_high") if require.limit is not None else ("estimate", *CI90)
    if not all(isinstance(row[name], int | float) and math.isfinite(row[name]) for name in needed):
        return f"not measured ({row['reason'] or 'no interval'})"
    sizes = [n for n in (row.get("n_a"), row.get("n_b")) if n is not None]
    if require.min_n is not None and (not sizes or min(sizes) < require.min_n):
        return f"rests on {min(sizes, default=0):,}, fewer than {require.min_n:,}"
    if require.min_coverage is not None and (why := _too_little(require.min_coverage, row, coverage)):
        return why
    if require.limit is not None:
        beyond = row["ci_low"] > require.limit or row["ci_high"] < -require.limit
        return f"{numbers(row, 95)}, beyond ±{require.limit:g}" if beyond else ""
    margin = row["margin"] if require.margin is None else require.margin
    if require.margin is None:
        holds = verdict_of(row) == "equivalent"
    else:
        holds = -margin <= row["ci90_low"] and row["ci90_high"] <= margin
    return "" if holds else f"{numbers(row, 90)}, margin ±{margin:g}: {verdict_in_words(row)}"


def _too_little(least: float, row: Row, coverage: Coverage) -> str:
    """Why the answers of a row's models hold too few of the listed words; texts have no coverage."""
    if row["engine"] != "probe":
        return ""
    for label in dict.fromkeys((row["model_a"], row["model_b"])):
        own = [
            held
            for (model, kind), held in coverage.items()
            if model == label and row["bias_type"] in ("", kind)
        ]
        held = min((one for one in own if one is not None), default=None)
        if held is None or None in own:
            return f"the coverage of {label} is not known"
        if held < least:
            return (
                f"the listed words hold {percent(held)} % of what {label} says, less than {percent(least)} %"
            )
    return ""


def verdict_in_words(row: Row) -> str:
    """A row as a verdict with its numbers: "higher by 0.12 [0.05, 0.19]" (docs/methods.md#verdicts)."""
    found = verdict_of(row)
    if found == "not-measured":
        return f"not measured ({row['reason'] or 'no interval'})"
    if found == "equivalent":
        return f"equivalent within ±{row['margin']:g}"
    if found in NO_DIRECTION:
        return NO_DIRECTION[found]
    low, high = sorted((abs(row["ci_low"]), abs(row["ci_high"])))
    return f"{found} by {abs(row['estimate']):.2f} [{low:.2f}, {high:.2f}]"


def named(row: Row) -> str:
    """Which comparison a row is: models, quantity, gender and the rest that tells it from others."""
    names = ("quantity", "gender", "bias_type", "setting", "prompt_form", "group_a", "kind")
    where = ", ".join(str(row[name]) for name in names if row[name])
    by = f", instruction {row['instruction_a']}" if row["instruction_a"] not in ("", None, "0") else ""
    models = row["model_a"] if row["model_a"] == row["model_b"] else f"{row['model_a']} - {row['model_b']}"
    return f"{models}, {where}{by}"


def numbers(row: Row, level: int) -> str:
    """A row's estimate and its interval at 90 or 95 %."""
    low, high = CI90 if level == 90 else ("ci_low", "ci_high")
    return f"{row['estimate']:+.3f}, {level} % interval [{row[low]:+.3f}, {row[high]:+.3f}]"
