"""What a contrast comes to, by its numbers and its place in a tree of questions (methods/tests#verdicts)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from biaskit.common.wording import ROUNDING
from biaskit.measurement import specs
from biaskit.stats.crossed import MANY, p_of_interval

Row = Mapping[str, Any]
Direction = Literal["higher", "lower"]
Verdict = Literal[
    Direction, "equivalent", "no-clear-difference", "not-identified", "not-measured", "no-verdict", "shown"
]

LEVEL = 0.05
AREAS = ("auc_transfer", "auc_inferred", "auc_requested")
"""Areas under the curve less 0.5."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a kind of row is to a question; a detail is of the leads whose subject begins as its own."""

    question: str
    rank: int | None  # 0 leads; higher: leads where nothing lower was measured of the model; None: a detail
    subject: tuple[str, ...]  # columns that say whom a row is about


MAIN_CONTEXTS = ("plain", "dialogue-plain", "")
"""Where prompts were asked in several contexts, only these rows have a role; without plain ones, all have."""


def _roles_stated() -> Iterator[tuple[tuple[str, str, str, str], Role]]:
    for folder, spec in specs().items():
        for stated in spec.get("roles", ()):
            place = spec.get("measurement", folder), stated["kind"], stated["quantity"], stated["contrast"]
            if "question" in stated:
                yield place, Role(stated["question"], stated.get("rank"), tuple(stated["subject"].split()))


ROLES = dict(_roles_stated())
"""(measurement, kind, quantity, contrast) → its role. Rows of other judged kinds have no direction."""
JUDGED = {
    (spec.get("measurement", name), kind) for name, spec in specs().items() for kind in spec.get("judged", ())
}
"""(measurement, kind) of the rows that get a verdict; the others stand beside them in tests.csv."""

IDENTITY = (
    *("family", "gender", "model_a", "model_b", "bias_type", "context", "prompt_format"),
    *("debiasing_a", "debiasing_b", "group_a", "group_b"),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """How the rows of a page are judged: whose shares are in the tree; `strict`: 5 % in any world."""

    genders: Collection[str] = ("female",)
    strict: bool = False


@dataclass(slots=True)
class _Claim:
    """One comparison, with the places of its rows, and what the tree makes of it."""

    role: Role
    subject: tuple[Any, ...]
    p: float
    places: list[int] = field(default_factory=list)
    lead: bool = False
    named: bool = False
    level: float | None = None  # None: a detail without a named lead, which is not judged


# --- one row -----------------------------------------------------------------------------------------


def is_judged(row: Row) -> bool:
    """Tell whether a row is of a kind that gets a verdict."""
    return (row["measurement"], row["kind"]) in JUDGED


def interval_side(row: Row) -> Direction | None:
    """Find the side of 0 that the whole 95 % interval lies on; a 0 up to rounding has no direction."""
    if row["ci_low"] is None or row["ci_high"] is None:
        return None
    if row["ci_low"] > ROUNDING:
        return "higher"
    return "lower" if row["ci_high"] < -ROUNDING else None


def verdict_of(row: Row | None) -> Verdict:
    """Read the verdict of a row of tests.csv; where none is stored, only judged kinds have a direction."""
    if row is None:
        return "not-measured"
    asked, p = is_judged(row), row["p_value"]
    side = interval_side(row) if asked and p is not None and p < LEVEL else None
    return row.get("verdict") or judge(row, side, asked=asked)


def judge(row: Row, side: Direction | None, *, asked: bool = True) -> Verdict:
    """Judge a contrast by its numbers alone (methods/tests#verdicts).

    `row` has the columns of tests.csv; under bounds its intervals and p-value hold them already. `side`: the
    direction that the tree names; `asked`: whether the row has a part in it. Returns `not-measured` without
    an estimate or an interval, `no-verdict` where the interval is conditional or rests on too few cells (no
    p-value), `equivalent` even where the 95 % interval excludes 0, and `not-identified` where there would be
    a verdict but for the bounds.
    """
    if row["estimate"] is None or row["ci_low"] is None or row["ci_high"] is None:
        return "not-measured"
    if row["p_value"] is None:
        return "no-verdict"
    if row.get("equivalent"):
        return "equivalent"
    if not asked:
        return "shown"
    open_ = interval_side(row) is None and _would_be_decided(row)
    return side or ("not-identified" if open_ else "no-clear-difference")


def _would_be_decided(row: Row) -> bool:
    """Tell whether the interval, without what the bounds add to it, would give a verdict."""
    low, high = row.get("bound_low"), row.get("bound_high")
    if low is None or high is None or low == high or row["ci90_low"] is None or row["ci90_high"] is None:
        return False

    def alone(name: str) -> tuple[float, float]:
        below, above = row[f"{name}_low"], row[f"{name}_high"]
        return row["estimate"] - (low - below), row["estimate"] + (above - high)

    (low95, high95), (low90, high90) = alone("ci"), alone("ci90")
    margin = row["margin"]
    inside = margin is not None and -margin <= low90 and high90 <= margin
    return bool(inside or low95 > ROUNDING or high95 < -ROUNDING)


def interval_at(row: Row, level: float) -> tuple[float, float]:
    """Find the interval of a row at 1 − `level`, on the scale on which its 95 % interval was made.

    Formula: the 95 % interval about the estimate, or about the bounds, by t(1 − level/2)/t(0.975) as wide, z
        without degrees of freedom (bounds that hold 0); an area under the curve on the logit scale; a rank
        correlation r, whose 95 % interval is a bootstrap's, tanh(z ± t(1 − level/2) z/t(1 − p/2)), z = atanh
        r: it inverts its p-value.
    Reference: methods/tests#levels.
    """
    from scipy.special import expit, logit, stdtrit

    if row["kind"] == "spearman" and row["n_a"] is not None and 0 < abs(row["estimate"]) < 1:
        z, dof = math.atanh(row["estimate"]), row["n_a"] - 2
        reach = abs(z) * float(stdtrit(dof, 1 - level / 2) / stdtrit(dof, 1 - row["p_value"] / 2))
        return math.tanh(z - reach), math.tanh(z + reach)
    dof = row["dof"] or MANY
    wider = float(stdtrit(dof, 1 - level / 2) / stdtrit(dof, 0.975))
    low, high = bounds_of(row)
    below, above = low - row["ci_low"], row["ci_high"] - high
    if row["quantity"] in AREAS and -0.5 < low < 0.5 and below > 0:
        middle = float(logit(low + 0.5))
        reach = (middle - float(logit(row["ci_low"] + 0.5))) * wider
        return float(expit(middle - reach)) - 0.5, float(expit(middle + reach)) - 0.5
    if row["kind"] == "crossed" and low == high:  # one end may have been cut to what a difference can be
        below = above = max(below, above)
    if row["p_value"] > level:  # as it is where few templates leave p no smaller
        low, high = min(low, below * wider), max(high, -above * wider)
    return low - below * wider, high + above * wider


def p_against(row: Row, value: float) -> float:
    """Compute the two-sided p-value of "the number is `value`" from a 95 % interval; of the nearer bound."""
    low, high = bounds_of(row)
    if low <= value <= high:
        return 1.0
    off, half = (low - value, low - row["ci_low"]) if low > value else (value - high, row["ci_high"] - high)
    return p_of_interval(off, off - half, off + half, row["dof"] or MANY)


def bounds_of(row: Row) -> tuple[float, float]:
    """Read the bounds of a number; where it has none, the number twice."""
    low, high = (
        row["estimate"] if row.get(name) is None else row[name] for name in ("bound_low", "bound_high")
    )
    return low, high


def first_level(n_questions: int, n_leads: int, *, strict: bool) -> float:
    """Compute the level at which the first of a question's leads is named, for plans."""
    return LEVEL * (0.8 if strict else 1.0) / (n_questions * n_leads)


# --- the rows of a page ------------------------------------------------------------------------------


def with_verdicts(*tables: Sequence[Row], rule: Rule = Rule()) -> list[list[dict[str, Any]]]:
    """Judge the rows of one or several tests.csv, as one page, by a tree of questions.

    Formula: Q questions; of the m leads of one, p_q = min over k of m p_(k)/k (Simes). R: the largest r with
        p_(r) ≤ 0.05 r/Q; alpha_q = 0.05 R/Q (Benjamini-Hochberg; of a question that is not among the R, 0.05
        (R + 1)/Q). Inside, K: the largest k with p_(k) ≤ alpha_q k/m; K leads are named. Details of named
        leads: Holm at alpha_q. Strict: Holm at 0.04/Q over leads and at 0.01/Q over their details.
    Each row gets `verdict` and, not for the file, `question`, `lead`, and `shown_low` and `shown_high`, the
    interval at the row's own level: it holds 0 where no direction is named. A row without a p-value is no
    claim; of a kind that is not judged, its verdict is empty.
    Reference: methods/tests#verdicts; Benjamini and Bogomolov 2014, Bogomolov et al. 2021 (TreeBH).
    """
    rows = [row for table in tables for row in table]
    roles = [role for table in tables for role in _roles(table, rule.genders)]
    claims = _claims(rows, roles)
    _climb(claims, strict=rule.strict)
    claim_at = {place: claim for claim in claims for place in claim.places}
    judged = []
    for place, row in enumerate(rows):
        claim, verdict = claim_at.get(place), ""
        ends: tuple[float | None, float | None] = (row["ci_low"], row["ci_high"])
        if claim is not None and claim.level is not None:
            ends = interval_at(row, claim.level)
            at_level = {"ci_low": ends[0], "ci_high": ends[1]}
            verdict = judge(row, interval_side(at_level) if claim.named else None)
        elif is_judged(row):
            verdict = judge(row, None, asked=False)
        role = roles[place]
        lead = role is not None and role.rank == 0 if claim is None else claim.lead
        own = {"verdict": verdict, "question": role.question if role else "", "lead": lead}
        judged.append({**row, **own, "shown_low": ends[0], "shown_high": ends[1]})
    in_order = iter(judged)
    return [list(islice(in_order, len(table))) for table in tables]


def _roles(rows: Sequence[Row], genders: Collection[str]) -> list[Role | None]:
    """Find the role of each row; None for other genders' shares, other contexts, and one debiasing prompt."""
    asked_plainly = {row["measurement"] for row in rows if row["context"] == "plain"}
    roles: list[Role | None] = []
    for row in rows:
        contrast = str(row["family"]).rsplit("/", 1)[-1]
        without = row["debiasing_a"] == row["debiasing_b"] not in ("0", "", None)
        without |= contrast == "genders" and (row["group_a"], row["group_b"]) != ("female", "male")
        without |= row["measurement"] in asked_plainly and row["context"] not in MAIN_CONTEXTS
        without |= row["quantity"] in ("share", "group_gap") and row["gender"] not in genders
        role = ROLES.get((row["measurement"], row["kind"], row["quantity"], contrast))
        roles.append(None if without else role)
    return roles


def _claims(rows: Sequence[Row], roles: Sequence[Role | None]) -> list[_Claim]:
    """Gather the claims of rows: the same comparison may stand in a run's table and in a comparison's."""
    claims: dict[tuple[Any, ...], _Claim] = {}
    for place, (row, role) in enumerate(zip(rows, roles, strict=True)):
        measured = all(row[name] is not None for name in ("estimate", "p_value", "ci_low"))
        if role is not None and measured:
            key = tuple(row[name] for name in IDENTITY)
            if key not in claims:
                claims[key] = _Claim(role, tuple(row[name] for name in role.subject), row["p_value"])
            claims[key].places.append(place)
    return list(claims.values())


def _climb(claims: Sequence[_Claim], *, strict: bool) -> None:
    """Name claims, and give each its level."""
    by_question: dict[str, list[_Claim]] = {}
    for claim in claims:
        by_question.setdefault(claim.role.question, []).append(claim)
    leads: dict[str, list[_Claim]] = {}
    p_of: dict[str, float] = {}
    for question, of_question in by_question.items():
        if found := _mark_leads(of_question):
            leads[question] = found
            p_of[question] = min(len(found) * claim.p / rank for rank, claim in enumerate(found, 1))
    n = len(leads)
    in_order = sorted(p_of, key=lambda question: p_of[question])
    n_answered = max((r for r, q in enumerate(in_order, 1) if p_of[q] <= LEVEL * r / n), default=0)
    for place, question in enumerate(in_order):
        of_question = leads[question]
        alpha = LEVEL * (n_answered if place < n_answered else n_answered + 1) / n
        if strict:
            alpha = LEVEL / n / 5  # of details; leads have the other four parts
            _step_down(of_question, 4 * alpha)
        else:
            m = len(of_question)
            n_named = max((k for k, lead in enumerate(of_question, 1) if lead.p <= alpha * k / m), default=0)
            for k, lead in enumerate(of_question):
                lead.named = k < n_named
                lead.level = alpha * (n_named if lead.named else n_named + 1) / m
        named = {lead.subject[:i] for lead in of_question if lead.named for i in range(len(lead.subject) + 1)}
        details = [claim for claim in by_question[question] if not claim.lead and claim.subject in named]
        _step_down(sorted(details, key=lambda claim: claim.p), alpha)


def _step_down(in_order: Sequence[_Claim], alpha: float) -> None:
    """Name claims by Holm's procedure; those from the first that fails share its level."""
    named, level = True, alpha
    for k, claim in enumerate(in_order):
        if named:
            level = alpha / (len(in_order) - k)
            named = claim.p <= level
        claim.named, claim.level = named, level


def _mark_leads(claims: Sequence[_Claim]) -> list[_Claim]:
    """Mark the leads of a question; give them by their p-values."""
    rank_of: dict[Any, int] = {}
    for claim in claims:
        if claim.role.rank is not None:
            model = claim.subject[0]
            rank_of[model] = min(rank_of.get(model, claim.role.rank), claim.role.rank)
    for claim in claims:
        claim.lead = claim.role.rank == rank_of.get(claim.subject[0], -1)
    return sorted((claim for claim in claims if claim.lead), key=lambda claim: claim.p)
