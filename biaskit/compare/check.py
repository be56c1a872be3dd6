"""Judge whether thresholds hold, in the same words for whoever asks (methods/comparisons#check)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from biaskit.common.wording import count, listed, percent
from biaskit.compare.thresholds import Require, requirement
from biaskit.records import ALL
from biaskit.runs.collection import Part, rule_of
from biaskit.stats.contrast import MOST_SPREAD, Contrast
from biaskit.stats.power import texts_to_show
from biaskit.tables.coverage import WEAK, coverage_of, table_with_coverage
from biaskit.tables.quantities import OUTCOME_SHARE
from biaskit.tables.query import Row, Tables, among, distinct, grouped, in_main_context, undefined, where

Pair = tuple[str, str, str]
"""(measurement, later, earlier): two models to be compared."""
Coverage = Mapping[tuple[str, str], float | None]
"""(model, bias type) → probability on the target words; None where unknown."""
SHOWN = 5
"""At most so many failing rows are printed."""
RATIO = "ratio"
"""The contrast of impact ratios: their margin and limit are lines, not distances from 0."""
CI90 = ("ci90_low", "ci90_high")
_OF_CHANGE = ("before", "after", "bias_type", "debiasing_id", "context", "prompt_format")
NO_DIRECTION = {
    "no-clear-difference": "no clear difference",
    "not-identified": "not identified (the bounds are too wide; an exact estimator would decide)",
    "no-verdict": "no conclusion (see its reason)",
    "shown": "not shown to be equivalent",
}


@dataclass(frozen=True, slots=True)
class Failing:
    """A row that does not show what is required, and why."""

    name: str
    row: Row
    why: str
    examples: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The row and the reason in one line."""
        return f"{self.name}: {self.why}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether one requirement holds, with the rows that fail it."""

    require: Require
    n_rows: int
    failing: tuple[Failing, ...] = ()
    not_compared: tuple[str, ...] = ()  # models, or pairs of them, without such a row
    weak: tuple[str, ...] = ()  # models whose rows are weak evidence (methods/probabilities#low-coverage)
    margins: tuple[float, ...] = ()  # within which rows must lie, where the title does not say it

    @property
    def holds(self) -> bool:
        """Whether every row shows it, and every model has one; without any row it does not hold."""
        return self.n_rows > 0 and not self.failing and not self.not_compared

    @property
    def text(self) -> str:
        """The outcome in one sentence."""
        return f"{'Passed' if self.holds else 'Failed'}: {self.require.title}: {self.result}."

    @property
    def result(self) -> str:
        """How many rows pass or fail."""
        if self.holds:
            within = f" within ±{listed([*map('{:g}'.format, self.margins)])}" if self.margins else ""
            return f"all {count(self.n_rows, 'row')}{within}{self.on_weak_evidence}"
        problems = []
        if self.failing:
            problems.append(f"{len(self.failing)} of {count(self.n_rows, 'row')}")
        if missing := len(self.not_compared):
            of_pairs = self.require.contrast == "models" and self.require.max_flips is None
            what = "pairs of models" if of_pairs else "models"
            problems.append(f"{missing} {what} were not compared")
        return (", ".join(problems) or "nothing was compared") + self.on_weak_evidence

    @property
    def on_weak_evidence(self) -> str:
        """Whose coverage is too low; "" if there is no weak evidence."""
        why = f"coverage of {listed(self.weak)} is below {percent(WEAK)} %"
        return f", weak evidence ({why})" if self.weak else ""

    @property
    def lines(self) -> tuple[str, ...]:
        """What does not hold, row by row, at most `SHOWN` of each kind."""
        n_more = len(self.failing) - SHOWN
        shown = [(failing.text, *failing.examples) for failing in self.failing[:SHOWN]]
        table = "tests.csv" if self.require.max_flips is None else "changes.csv"
        return (
            *(f"not compared: {pair}" for pair in self.not_compared[:SHOWN]),
            *chain.from_iterable(shown),
            *((f"and {n_more} more rows of {table}",) if n_more > 0 else ()),
        )


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of every requirement; true where all of them hold."""

    outcomes: tuple[Outcome, ...]

    @property
    def holds(self) -> bool:
        """Whether every requirement holds."""
        return bool(self.outcomes) and all(outcome.holds for outcome in self.outcomes)

    def __bool__(self) -> bool:
        return self.holds

    @property
    def text(self) -> str:
        """How many requirements fail, then each with what does not hold; ends without a line feed."""
        lines = ["\n  ".join((outcome.text, *outcome.lines)) for outcome in self.outcomes]
        if len(lines) > 1:
            n_failed = sum(not outcome.holds for outcome in self.outcomes)
            failed = f"Failed: {n_failed} of {len(lines)} requirements."
            lines.insert(0, failed if n_failed else f"Passed: all {len(lines)} requirements.")
        return "\n".join(lines)


def coverage_of_parts(parts: Sequence[Part]) -> Coverage:
    """Read coverage from the tables of shares that have it."""
    rows: list[Row] = []
    for part in parts:
        rows += part.tables.get(table_with_coverage(part.measurement), ())
    return coverage_in(rows, of_two=rule_of(parts).binary)


def coverage_in(rows: Iterable[Row], *, of_two: bool = True) -> Coverage:
    """Read the least coverage over groups of jobs, without a debiasing prompt, from rows of such a table.

    `of_two`: of the words of the two groups that are contrasted, else of all target words.
    """
    least: dict[tuple[str, str], float | None] = {}
    plain = in_main_context(where(rows, debiasing_id=0))
    for (model, bias_type), own in grouped(plain, "model", "bias_type").items():
        ends = None if undefined(own, "coverage") else coverage_of(own, of_two=of_two)
        least[model, bias_type] = None if ends is None else ends[0]
    return least


def judge_thresholds(
    required: list[Require],
    rows: Sequence[Contrast],
    *,
    pairs: Sequence[Pair] = (),
    coverage: Coverage | None = None,
    changes: Tables | None = None,
) -> CheckResult:
    """Hold rows of tests.csv, and what changed between two models, against thresholds.

    Args:
        rows: with the verdicts of one page (`stats.verdict.with_verdicts`).
        pairs: must have a row of the contrast `models`; a model that could not be compared does not pass.
        coverage: of each model that was probed.
        changes: rows of changes.csv and changed_prompts.csv.
    """
    outcomes = []
    for require in required:
        if require.max_flips is not None:
            outcomes.append(_judge_flips(require, changes or {}, pairs))
            continue
        selected = [row for row in rows if _selects(require, row)]
        failing = []
        held: dict[str, float | None] = {}
        for row in selected:
            if why := _why_not(require, row, coverage or {}):
                failing.append(Failing(named(row), row, why))
            if row.quantity != OUTCOME_SHARE:
                held.update(_held(row, coverage or {}))
        weak = tuple(label for label, part in held.items() if part is not None and part < WEAK)
        missing = _not_compared(require, selected, pairs)
        margins = [] if require.has_own_line else distinct(selected, "margin")
        if require.name and require.margin is not None:  # else its title says it
            margins = [require.margin]
        beside = missing, weak, tuple(sorted(margins))
        outcomes.append(Outcome(require, len(selected), tuple(failing), *beside))
    return CheckResult(tuple(outcomes))


def require_equivalent(
    rows: Sequence[Contrast],
    contrast: str = "models",
    pairs: Sequence[Pair] = (),
    coverage: Coverage | None = None,
) -> Outcome:
    """Judge whether every row of a contrast that has a margin is equivalent. Raises `UsageError`."""
    required = [requirement({"contrast": contrast}, "--require")]
    return judge_thresholds(required, rows, pairs=pairs, coverage=coverage).outcomes[0]


def _judge_flips(require: Require, changes: Tables, pairs: Sequence[Pair]) -> Outcome:
    """Judge rates of flips themselves, not their intervals: a build asks the same prompts each time."""
    rows, models = where(changes.get("changes", ()), job_group=ALL, **require.where), {*require.models}
    if models:
        rows = among(among(rows, "before", models), "after", models)
    prompts = grouped(where(changes.get("changed_prompts", ()), near_tie=False), *_OF_CHANGE)
    failing = []
    for row in rows:
        if why := _why_changed(require, row):
            flips = prompts.get(tuple(map(row.get, _OF_CHANGE)), ())
            flips = [one for one in flips if one["answer_before"] != one["answer_after"]]
            prompt = f"debiasing prompt {row['debiasing_id']}" if row["debiasing_id"] else ""
            way = map(row.get, ("bias_type", "context", "prompt_format"))
            name = ", ".join(filter(None, (f"{row['after']} - {row['before']}", *way, prompt)))
            failing.append(Failing(name, row, why, tuple(map(_in_words, flips[:SHOWN]))))
    missing = models or set().union(*(pair[1:] for pair in pairs))
    missing -= {*distinct(rows, "before"), *distinct(rows, "after")}
    weak = distinct([row for row in rows if (row["coverage"] or 1.0) < WEAK], "after")
    return Outcome(require, len(rows), tuple(failing), tuple(sorted(missing)), tuple(weak))


def _why_changed(require: Require, row: Row) -> str:
    """Say why a row of changes.csv does not show that few answers flip; "" where it does."""
    if row["n_unmatched"]:
        return f"{count(row['n_unmatched'], 'prompt')} of {row['before']} have no match in {row['after']}"
    if row["n_flips"] is None:
        return f"not measured ({row['reason']})"
    if row["n_prompts"] < (require.min_n or 0):
        return f"based on {row['n_prompts']:,}, fewer than {require.min_n:,}"
    held, least = row["coverage"] or 0.0, require.min_coverage or 0.0
    if held < least:
        return f"coverage is {percent(held)} %, below {percent(least)} %"
    if row["flips"] <= (require.max_flips or 0.0):
        return ""
    return f"{row['n_flips']} of {count(row['n_prompts'], 'prompt')} flipped, {percent(row['flips'])} %"


def _in_words(prompt: Row) -> str:
    """Write a flip in one line: 'female 52 % → male 61 %: the prompt'."""
    sides = []
    for side in ("before", "after"):
        group = prompt[f"answer_{side}"]
        sides.append(f"{group} {percent(prompt[f'{group}_{side}'])} %")
    return f"{' → '.join(sides)}: {prompt['prompt']}"


def _selects(require: Require, row: Contrast) -> bool:
    if row.contrast != require.contrast:
        return False
    if any(row[name] != value for name, value in require.where.items()):
        return False
    if require.models and not {*row.models} <= set(require.models):
        return False
    judged = row.is_judged or row.contrast == RATIO
    return judged if require.has_own_line else row.margin is not None


def _not_compared(require: Require, selected: Sequence[Contrast], pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Models, or pairs of them, that the requirement speaks of and that have no row."""
    done = {(row.measurement, frozenset(row.models)) for row in selected}
    found: set[str] = set()
    missing = []
    for kind, a, b in pairs if require.contrast == "models" else ():
        asked = not require.models or {a, b} <= set(require.models)
        if asked and require.measurement in (None, kind):
            found |= {a, b}
            if (kind, frozenset((a, b))) not in done:
                missing.append(f"{a} and {b} ({kind})")
    if require.contrast != "models":
        found = found.union(*(models for _, models in done))
    return (*missing, *(label for label in require.models if label not in found))


def _why_not(require: Require, row: Contrast, coverage: Coverage) -> str:
    """Say why a row does not show what is required; "" where it does."""
    if row.contrast == RATIO:
        return _low_ratio(require, row)
    if row.conclusion in ("not-measured", "no-verdict"):
        return verdict_in_words(row)
    needed = ("estimate", "ci_low", "ci_high") if require.limit is not None else ("estimate", *CI90)
    if not all(isinstance(row[name], int | float) and math.isfinite(row[name]) for name in needed):
        return f"not measured ({row.reason or 'no interval'})"
    sizes = [n for n in (row.n_a, row.n_b) if n is not None]
    if require.min_n is not None and (not sizes or min(sizes) < require.min_n):
        return f"based on {min(sizes, default=0):,}, fewer than {require.min_n:,}"
    if require.min_coverage is not None and (why := _low_coverage(require.min_coverage, row, coverage)):
        return why
    if require.limit is not None:
        beyond = row.ci_low > require.limit or row.ci_high < -require.limit
        return f"{numbers(row, 95)}, outside ±{require.limit:g}" if beyond else ""
    margin = row.margin if require.margin is None else require.margin
    if require.margin is None:
        holds = row.conclusion == "equivalent"
    else:
        holds = -margin <= row.ci90_low and row.ci90_high <= margin
    spread = row.spread_of_true
    if holds and spread is not None and spread > MOST_SPREAD * margin:
        return f"{numbers(row, 90)}, but {row.unit}s differ from it: SD {spread:.3f}, over two margins"
    needs = ""
    if row.unit == "text" and margin and not row.direction:
        needs = f"; about {texts_to_show(row, margin):,} texts a side with a gender would show it"
    return "" if holds else f"{numbers(row, 90)}, margin ±{margin:g}: {verdict_in_words(row)}{needs}"


def _low_ratio(require: Require, row: Contrast) -> str:
    """Say why an impact ratio fails: its low end is under the margin, or its whole interval under the limit.

    The ends hold for all groups of a table together (methods/decisions#ratios).
    """
    line = require.limit if require.margin is None else require.margin
    end = row.ci_high if require.margin is None else row.ci_low
    if end is None or line is None:
        return f"not measured ({row.reason or 'no interval'})"
    if require.min_n is not None and (row.n_a or 0) < require.min_n:
        return f"based on {row.n_a:,}, fewer than {require.min_n:,}"
    return "" if end >= line else f"{row.estimate:.2f} [{row.ci_low:.2f}, {row.ci_high:.2f}], below {line:g}"


def _low_coverage(least: float, row: Contrast, coverage: Coverage) -> str:
    """Say which model of a row has too little coverage; "" where none has."""
    for label, part in _held(row, coverage):
        if part is None:
            return f"coverage of {label} is unknown"
        if part < least:
            return f"coverage of {label} is {percent(part)} %, below {percent(least)} %"
    return ""


def _held(row: Contrast, coverage: Coverage) -> Iterator[tuple[str, float | None]]:
    """Yield the models of a row with their least coverage, None if unknown; of other kinds none."""
    if not table_with_coverage(row.measurement):
        return
    known = {model for model, _ in coverage}
    for label in dict.fromkeys(row.models):
        parts = []
        for (model, bias_type), part in coverage.items():
            of_label = model == label or label not in known  # a mean is over all models
            if of_label and row.bias_type in ("", bias_type):
                parts.append(math.nan if part is None else part)
        yield label, min(parts) if parts and not any(map(math.isnan, parts)) else None


def verdict_in_words(row: Contrast) -> str:
    """Write a row's verdict with its numbers: "higher by 0.12 [0.05, 0.19]" (methods/tests#verdicts)."""
    verdict = row.conclusion
    if verdict == "not-measured":
        return f"not measured ({row.reason or 'no interval'})"
    if verdict == "equivalent":
        return f"equivalent within ±{row.margin:g}"
    if verdict in NO_DIRECTION:
        return NO_DIRECTION[verdict]
    low, high = sorted((abs(row.ci_low), abs(row.ci_high)))
    return f"{verdict} by {abs(row.estimate):.2f} [{low:.2f}, {high:.2f}]"


def named(row: Contrast) -> str:
    """Name the comparison of a row: models, quantity, gender and what else tells it from others."""
    columns = ("quantity", "gender", "bias_type", "context", "prompt_format", "group_a", "kind")
    where = ", ".join(str(row[name]) for name in columns if row[name])
    by = f", debiasing prompt {row.debiasing_a}" if row.debiasing_a not in ("", None, "0") else ""
    return f"{' - '.join(dict.fromkeys(row.models))}, {where}{by}"


def numbers(row: Contrast, level: int) -> str:
    """Write a row's estimate and its interval at 90 or 95 %."""
    low, high = CI90 if level == 90 else ("ci_low", "ci_high")
    return f"{row.estimate:+.3f}, {level} % interval [{row[low]:+.3f}, {row[high]:+.3f}]"
