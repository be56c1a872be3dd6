"""What a check requires: a file with `[[require]]` tables, or the short form of `--require`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from biaskit.common.inputs import Inputs
from biaskit.common.wording import percent
from biaskit.errors import UsageError, nearest
from biaskit.measurement import specs
from biaskit.study.keys import in_fractions
from biaskit.tables.quantities import QUANTITIES

_ROLES = [role for spec in specs().values() for role in spec.get("roles", ())]
CONTRASTS = tuple(dict.fromkeys(role["contrast"] for role in _ROLES))
WHERE = ("quantity", "measurement", "gender", "bias_type", "context", "prompt_format", "group_a", "group_b")
"""Columns of tests.csv that a requirement may narrow its rows by."""
OF_FLIPS = ("max_flips", "bias_type", "prompt_format", "models", "min_n", "min_coverage", "name")
_INPUTS = Inputs(UsageError, most=2**20, remedy="Correct it there.")


def _labels(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


class Require(BaseModel, extra="forbid", frozen=True, strict=True):
    """One requirement: which rows of tests.csv, and what each of them must show.

    Without `margin` and `limit` every row that has a margin of its own must be equivalent within it.
    """

    contrast: str = "models"  # of `CONTRASTS`
    name: str = ""
    # Within ±margin a row must be shown to lie: its 90 % interval lies inside.
    margin: float | None = Field(None, ge=0, allow_inf_nan=False)
    # Beyond ±limit it must not: its 95 % interval reaches inside. A wide one does, so `min_n` is needed too.
    limit: float | None = Field(None, ge=0, allow_inf_nan=False)
    # At most this part of the prompts may flip, in every row of changes.csv that is of all jobs.
    max_flips: float | None = Field(None, ge=0, le=1)
    models: Annotated[tuple[str, ...], BeforeValidator(_labels)] = ()  # labels; each must have a row
    # Jobs, occupations, pairs, own texts, of `max_flips` prompts: what a row must rest on.
    min_n: int | None = Field(None, ge=1)
    min_coverage: float | None = Field(None, ge=0, le=1)  # of each model that was probed
    # Columns, with the value that a row must have.
    quantity: str | None = None
    measurement: str | None = None
    gender: str | None = None
    bias_type: str | None = None
    context: str | None = None
    prompt_format: str | None = None
    group_a: str | None = None
    group_b: str | None = None

    @model_validator(mode="after")
    def _has_one_meaning(self) -> Require:
        """Refuse what contradicts itself, or would pass without having been asked."""
        if self.contrast not in CONTRASTS:
            raise ValueError(
                f"there is no contrast {self.contrast!r}.{nearest(self.contrast, CONTRASTS)}"
                f" Known: {', '.join(CONTRASTS)}"
            )
        if self.max_flips is not None and (others := self.model_fields_set - {*OF_FLIPS}):
            raise ValueError(f"max_flips takes {', '.join(OF_FLIPS[1:])}, not {min(others)}")
        if self.margin is not None and self.limit is not None:
            raise ValueError("margin is stricter than limit: give one of them")
        if self.has_own_line and self.quantity is None and self.contrast != "ratio":
            raise ValueError(f'name the quantity, such as quantity = "{next(iter(QUANTITIES))}"')
        in_fractions({self.quantity or "": self.margin or self.limit or 0.0})
        if self.limit is not None and self.min_n is None:
            raise ValueError("small samples pass a limit easily, so it needs min_n")
        return self

    @property
    def has_own_line(self) -> bool:
        """Whether it sets a margin or limit of its own and does not use that of each row."""
        return self.margin is not None or self.limit is not None

    @cached_property
    def where(self) -> dict[str, str]:
        """Column → value that a row must have."""
        return self.model_dump(include=set(WHERE), exclude_none=True)

    @property
    def title(self) -> str:
        """Its own name, or else what it requires."""
        if self.name:
            return self.name
        if self.max_flips is not None:
            of = "".join(f", {value}" for value in self.where.values())
            return f"at most {percent(self.max_flips)} % of prompts flip{of}"
        narrowed = "".join(f", {value}" for value in self.where.values())
        if self.contrast == "ratio":
            end = "surely at least" if self.limit is None else "not surely below"
            return f"ratios {end} {self.limit if self.margin is None else self.margin:g}{narrowed}"
        if self.limit is not None:
            return f"within ±{self.limit:g} ({self.contrast}{narrowed})"
        within = "" if self.margin is None else f" within ±{self.margin:g}"
        return f"equivalent{within} ({self.contrast}{narrowed})"


def read_thresholds(thresholds: str | Path | Mapping[str, Any]) -> list[Require]:
    """Read thresholds from their TOML file, or from what such a file would contain. Raises `UsageError`."""
    content = thresholds if isinstance(thresholds, Mapping) else _INPUTS.toml(Path(thresholds))
    where = "The thresholds" if isinstance(thresholds, Mapping) else str(thresholds)
    if unknown := [name for name in content if name != "require"]:
        raise UsageError(f"{where}: there is no {unknown[0]!r}; the file has [[require]] tables.")
    entries = content.get("require")
    if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
        raise UsageError(f"{where}: nothing is required. Write a [[require]] table.")
    return [requirement(entry, f"{where}, [[require]] {n}") for n, entry in enumerate(entries, 1)]


def requirement(entry: object, where: str) -> Require:
    """Check one requirement; `where` it stands, for messages. Raises `UsageError`."""
    try:
        return Require.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            known = f"{nearest(key, Require.model_fields)} Known: {', '.join(sorted(Require.model_fields))}"
            raise UsageError(f"{where}: there is no key {key!r}.{known}.") from None
        message = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
        at = f"{key} = {first['input']!r}: " if key else ""
        raise UsageError(f"{where}: {at}{message}.") from None
