"""What `biaskit verify` found of a run, as verification.json holds it (howto/verify).

It is not signed: whoever can write in the folder can write this file too. It says what to ask again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError, computed_field

from biaskit.common.files import check_replaceable
from biaskit.common.inputs import Inputs
from biaskit.common.wording import count
from biaskit.errors import RunError

FILE = "verification.json"
MOST_NAMED = 3
Outcome = Literal["agrees", "differs", "not-checked"]
_RECORD = Inputs(RunError, most=64 * 2**20)
Pair = tuple[Mapping[str, Any], Any]  # a stored row and the request that it answers


class Check(BaseModel, frozen=True):
    """One thing that was checked, and the result."""

    name: str  # rows, lists, tables, model; prompts or texts, as its rows are called
    outcome: Outcome
    text: str  # one line: how much was looked at, and what does not fit
    model: str = ""
    asked: int = 0  # prompts or texts that were queried again
    beyond: int = 0  # those of them beyond the tolerance, or not the same
    largest: float | None = None  # difference in natural log-probability
    tolerance: float | None = None

    @classmethod
    def of(cls, name: str, faults: Sequence[str], fine: str, model: str = "") -> Check:
        """Make a check that differs where anything is at fault: first faults are named, others counted."""
        more = f"; and {len(faults) - MOST_NAMED:,} more" if len(faults) > MOST_NAMED else ""
        text = "; ".join(faults[:MOST_NAMED]) + more if faults else fine
        return cls(name=name, outcome="differs" if faults else "agrees", text=text, model=model)

    @classmethod
    def left_out(cls, name: str, why: str, model: str = "") -> Check:
        """Make a check of what could not be checked."""
        return cls(name=name, outcome="not-checked", text=why, model=model)

    @property
    def shown(self) -> str:
        """What was checked, and of which model, in words."""
        return f"{self.name} {self.model}".strip()


class Verification(BaseModel, frozen=True):
    """A whole verification."""

    biaskit_verification: Literal[1] = 1
    at: str  # UTC, ISO 8601
    seed: int
    prompts: int  # of each model, as requested
    versions: dict[str, str]
    rows_digest: str  # of the rows that the tables were made from, as in analysis.json
    checks: tuple[Check, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def outcome(self) -> Outcome:
        """The worst of its checks."""
        outcomes = {check.outcome for check in self.checks}
        if "differs" in outcomes:
            return "differs"
        return "not-checked" if "not-checked" in outcomes else "agrees"


def check_place(path: Path) -> None:
    """Refuse a place where no verification can be written, before a model is asked. Raises `RunError`."""
    check_replaceable(path, "verification", (".json",), lambda content: b'"biaskit_verification"' in content)


def read_verification(run: Path) -> Verification | None:
    """Read the verification in a run's folder; None where there is none that can be read."""
    try:
        return Verification.model_validate_json(_RECORD.content(run / FILE))
    except (RunError, ValidationError):
        return None


def verified_line(run: Path, rows_digest: object) -> str:
    """Write the one line of a page on a run's verification; empty where there is none."""
    verification = read_verification(run)
    if verification is None:
        return ""
    day = verification.at[:10]
    if verification.rows_digest != rows_digest:
        return f"The verification of {day} is of other rows than this page: run `biaskit verify` again."
    asked = sum(check.asked for check in verification.checks)
    beyond = sum(check.beyond for check in verification.checks)
    result = f"{count(asked, 'answer')} queried again, {beyond or 'none'} outside the tolerance"
    for outcome, what in (("differs", "what differs"), ("not-checked", "not checked")):
        names = [c.shown for c in verification.checks if c.outcome == outcome]
        if names:
            result += f"; {what}: {', '.join(names)}"
    return f"Verified on {day}: {result}."
