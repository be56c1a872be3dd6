"""What the contrasts of a page come to, by their places in a tree of questions (methods/tests#verdicts)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Literal

from biaskit.measurement import specs
from biaskit.stats.contrast import IDENTITY, LEVEL, Contrast, Verdict, side_of


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


@dataclass(frozen=True, slots=True)
class Rule:
    """How the rows of a page are judged: whose shares are in the tree; `strict`: 5 % in any world.

    `binary`: the prober's shares are those of two groups, as of *she* and *he*, else of all target words.
    """

    genders: Collection[str] = ("female",)
    strict: bool = False
    binary: bool = True


def one_rule(rules: Iterable[Rule]) -> Rule:
    """Find the rule of a page: strict, or of all target words, where one of its runs asks for it."""
    genders: set[str] = set()
    strict, binary = False, True
    for rule in rules:
        genders |= {*rule.genders}
        strict |= rule.strict
        binary &= rule.binary
    return Rule(genders or ("female",), strict, binary)


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


def first_level(n_questions: int, n_leads: int, *, strict: bool) -> float:
    """Compute the level at which the first of a question's leads is named, for plans."""
    return LEVEL * (0.8 if strict else 1.0) / (n_questions * n_leads)


# --- the rows of a page ------------------------------------------------------------------------------


def with_verdicts(*tables: Sequence[Mapping[str, Any]], rule: Rule = Rule()) -> list[list[Contrast]]:
    """Judge the rows of one or several tests.csv, as one page, by a tree of questions.

    Formula: Q questions; of the m leads of one, p_q = min over k of m p_(k)/k (Simes). R: the largest r with
        p_(r) ≤ 0.05 r/Q; alpha_q = 0.05 R/Q (Benjamini-Hochberg; of a question that is not among the R, 0.05
        (R + 1)/Q). Inside, K: the largest k with p_(k) ≤ alpha_q k/m; K leads are named. Details of named
        leads: Holm at alpha_q. Strict: Holm at 0.04/Q over leads and at 0.01/Q over their details.
    The interval at a row's own level holds 0 where no direction is named. A row without a p-value is no
    claim; of a kind that is not judged, its verdict is empty.
    Reference: methods/tests#verdicts; Benjamini and Bogomolov 2014, Bogomolov et al. 2021 (TreeBH).
    """
    pages = [list(map(Contrast.of, table)) for table in tables]
    rows = list(chain(*pages))
    roles = [role for page in pages for role in _roles(page, rule)]
    claims = _claims(rows, roles)
    _climb(claims, strict=rule.strict)
    claim_at = {place: claim for claim in claims for place in claim.places}
    judged = []
    for place, (row, role) in enumerate(zip(rows, roles, strict=True)):
        claim = claim_at.get(place)
        verdict: Verdict | Literal[""] = ""
        low, high = row.ci_low, row.ci_high
        if claim is not None and claim.level is not None:
            low, high = row.interval_at(claim.level)
            verdict = row.judge(side_of(low, high) if claim.named else None)
        elif row.is_judged:
            verdict = row.judge(None, asked=False)
        lead = role is not None and role.rank == 0 if claim is None else claim.lead
        question = role.question if role else ""
        judged.append(
            replace(row, verdict=verdict, question=question, lead=lead, shown_low=low, shown_high=high)
        )
    in_order = iter(judged)
    return [list(islice(in_order, len(page))) for page in pages]


def _roles(rows: Sequence[Contrast], rule: Rule) -> list[Role | None]:
    """Find the role of each row; None for other shares, other contexts, and one debiasing prompt."""
    asked_plainly = {row.measurement for row in rows if row.context == "plain"}
    has_binary = {row.measurement for row in rows if row.is_binary}
    roles: list[Role | None] = []
    for row in rows:
        without = row.debiasing_a == row.debiasing_b not in ("0", "", None)
        without |= row.contrast == "genders" and (row.group_a, row.group_b) != ("female", "male")
        without |= row.measurement in asked_plainly and row.context not in MAIN_CONTEXTS
        if row.whole in ("share", "group_gap", "asymmetry"):
            without |= row.measurement in has_binary and row.is_binary != rule.binary
            without |= row.gender not in (*rule.genders, None, "")  # "" as read from a file
        role = ROLES.get((row.measurement, row.kind, row.whole, row.contrast))
        roles.append(None if without else role)
    return roles


def _claims(rows: Sequence[Contrast], roles: Sequence[Role | None]) -> list[_Claim]:
    """Gather the claims of rows: the same comparison may stand in a run's table and in a comparison's."""
    claims: dict[tuple[Any, ...], _Claim] = {}
    for place, (row, role) in enumerate(zip(rows, roles, strict=True)):
        if role is not None and row.estimate is not None and row.p_value is not None and row.has_interval:
            key = tuple(row[name] for name in IDENTITY)
            if key not in claims:
                claims[key] = _Claim(role, tuple(row[name] for name in role.subject), row.p_value)
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
