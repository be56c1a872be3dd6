"""What `biaskit verify` found of a run, as verification.json holds it (docs/reading.md#verify).

Nothing of it is signed: whoever can write in the folder can write this file too. It says what to ask again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from biaskit.errors import RunError
from biaskit.files import check_replaceable, write_or_refuse
from biaskit.inputs import Inputs, parse_json
from biaskit.wording import count

FILE = "verification.json"
FORMAT = 1
Outcome = Literal["agrees", "differs", "not-checked"]
_RECORD = Inputs(RunError, most=64 * 2**20)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, and what came of it."""

    name: str  # rows, keys, arithmetic, question, corpora, signature, tables, model, cells, texts
    outcome: Outcome
    text: str  # one line: how much was looked at, and what does not fit
    model: str = ""
    asked: int | None = None  # cells or texts that the model was asked again
    beyond: int | None = None  # of those, beyond the tolerance or not the same
    largest: float | None = None  # difference in natural log-probability
    tolerance: float | None = None
    p_value: float | None = None  # of draws without seeds


@dataclass(frozen=True, slots=True)
class Verification:
    """A whole verification. `rows_digest`: of the rows that the tables were made from, as analysis.json."""

    checks: tuple[Check, ...]
    seed: int
    cells: int  # of each model, as it was asked for
    at: str  # UTC, ISO 8601
    by: str = ""  # as its maker wants to be called
    machine: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # name → SHA-256
    rows_digest: str = ""

    @property
    def outcome(self) -> Outcome:
        """The worst of its checks."""
        found = {check.outcome for check in self.checks}
        return "differs" if "differs" in found else "not-checked" if "not-checked" in found else "agrees"

    def as_json(self) -> dict[str, Any]:
        """What verification.json holds."""
        checks = [{k: v for k, v in asdict(check).items() if v not in (None, "")} for check in self.checks]
        whole = {name: getattr(self, name) for name in _NAMES}
        return {"biaskit_verification": FORMAT, "outcome": self.outcome, **whole, "checks": checks}


_NAMES = ("at", "by", "seed", "cells", "machine", "versions", "rows_digest", "files")


def check_place(path: Path) -> None:
    """Refuse a place where no verification can go, before a model is asked. Raises `RunError`."""
    check_replaceable(path, "verification", (".json",), _is_verification)


def write_verification(path: Path, found: Verification) -> None:
    """Write verification.json, whole or not at all."""
    check_place(path)
    write_or_refuse(path, (json.dumps(found.as_json(), indent=1) + "\n").encode("ascii"))


def _is_verification(content: bytes) -> bool:
    try:
        found = parse_json(content)
    except ValueError:
        return False
    return isinstance(found, dict) and "biaskit_verification" in found


def read_verification(run: Path) -> Verification | None:
    """The verification in a run's folder; None where there is none that can be read."""
    try:
        found = _RECORD.json(run / FILE)
        if found["biaskit_verification"] != FORMAT:
            return None
        checks = tuple(Check(**check) for check in found["checks"])
        whole = Verification(checks, **{name: found[name] for name in _NAMES})
        sound = all(check.outcome in get_args(Outcome) for check in checks) and whole.at[:10].isprintable()
    except (RunError, LookupError, TypeError, AttributeError):
        return None
    return whole if sound and all(isinstance(check.largest, float | int | None) for check in checks) else None


def verified_line(run: Path, rows_digest: object) -> str:
    """The one line of a page on a run's verification; empty where there is none."""
    found = read_verification(run)
    if found is None:
        return ""
    when = f"{found.at[:10]}{f' by {found.by}' if found.by else ''}"
    if found.rows_digest != rows_digest:
        return f"The verification of {when} is of other rows than this page: `biaskit verify` asks again."
    return f"Verified on {when}: {summary(found)}."


def _differing(n: int) -> str:
    return f"{n:,} {'differs' if n == 1 else 'differ'}" if n else "none differs"


def summary(found: Verification) -> str:
    """What was asked again and what came of it, in a few words."""
    asked = [check for check in found.checks if check.asked]
    n, beyond = (sum(getattr(check, name) or 0 for check in asked) for name in ("asked", "beyond"))
    largest = max((check.largest for check in asked if check.largest is not None), default=None)
    what = "cell" if all(check.name == "cells" for check in asked) else "answer"
    told = f"{count(n, what)} asked again, {_differing(beyond)}" if n else ""
    told = told or "no model was asked again"
    told += f", largest difference {largest:.1g} in log-probability" if largest is not None else ""
    wrong = [f"{check.name} {check.model}".strip() for check in found.checks if check.outcome == "differs"]
    open_ = [
        f"{check.name} {check.model}".strip() for check in found.checks if check.outcome == "not-checked"
    ]
    told += f"; what differs: {', '.join(wrong)}" if wrong else ""
    return told + (f"; not checked: {', '.join(open_)}" if open_ else "")
