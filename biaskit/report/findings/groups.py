"""Names of groups of jobs, or of fields of study, in sentences and figures."""

from __future__ import annotations

from collections.abc import Iterable

from biaskit.common.wording import short
from biaskit.report.findings.sentence import Foreign, Piece
from biaskit.runs.collection import Part
from biaskit.stats.contrast import Contrast
from biaskit.tables.query import Row, distinct, where

SPLIT = ("female-dominated", "male-dominated")
SHORT_NAME = 12


def are_fields(part: Part) -> bool:
    """Whether items are fields of study, held against doctorates (methods/prompts#fields-of-study)."""
    return part.study.startswith("fields-of-study")


def in_order(rows: Iterable[Row]) -> list[str]:
    """List the groups of jobs in rows, those mostly held by women first, as in the papers."""
    return sorted(distinct(rows, "job_group"), key=lambda group: group != SPLIT[0])


def one_job(part: Part, group: str) -> str:
    """Find the only job of a group; "" where it has several, or was not asked by jobs."""
    names = distinct(where(part.tables.get("probe_jobs", ()), job_group=group), "job")
    return str(names[0]) if len(names) == 1 else ""


def jobs_of(part: Part, group: str) -> str:
    """Name a group of jobs in words; one job is no group, and named."""
    if job := one_job(part, group):
        return f"“{short(job)}” alone"
    noun = "fields" if are_fields(part) else "jobs"
    if group in SPLIT:
        who = "women" if group == SPLIT[0] else "men"
        return f"fields with mostly {who}" if are_fields(part) else f"jobs mostly held by {who}"
    return f"{noun} of the group “{short(group)}”"


def moved(before: Contrast | None, after: Contrast | None) -> str:
    """Choose the verb of a change of a gap: only what is clear has a direction that can turn or narrow."""
    if before is None or after is None or before.direction is None or after.estimate is None:
        return "changes"
    if before.conclusion == "no-clear-difference":  # so the page says
        return "changes"
    if after.direction not in (None, before.direction):
        return "turns"
    if after.estimate * before.estimate < 0 and not after.equivalent:  # within its margin it has closed
        return "changes"
    return "widens" if abs(after.estimate) > abs(before.estimate) else "narrows"


def nearer_to(part: Part, change: Contrast) -> str:
    """Name the group of jobs towards which a gap changes that is not known to widen: 'women’s jobs'."""
    more = (change.group_a if change.estimate > 0 else change.group_b) or ""
    if more not in SPLIT:
        return f"“{short(more, SHORT_NAME)}”"
    return f"{'women’s' if more == SPLIT[0] else 'men’s'} {'fields' if are_fields(part) else 'jobs'}"


def one_group(part: Part, group: str) -> Piece:
    """Name a group of jobs in a sentence; "" is all of them."""
    if job := one_job(part, group):
        return Foreign(job, "“", "” alone")
    if not group:
        return "all fields" if are_fields(part) else "all jobs"
    return jobs_of(part, group) if group in SPLIT else Foreign(group, "the group “", "”")


def two_groups(part: Part, a: str, b: str) -> Piece:
    """Name two groups of jobs at once in a sentence."""
    if a in SPLIT and b in SPLIT:
        who = "women’s and men’s" if a == SPLIT[0] else "men’s and women’s"
        return f"{who} {'fields' if are_fields(part) else 'jobs'}"
    return f"the groups “{short(a, SHORT_NAME)}” and “{short(b, SHORT_NAME)}”"
