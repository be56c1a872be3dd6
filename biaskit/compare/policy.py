"""What a gate requires: a policy file with `[[require]]` tables, or the short form of `--require`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from biaskit.errors import UsageError, nearest
from biaskit.inputs import Inputs
from biaskit.tables.quantities import QUANTITIES

CONTRASTS = (
    *("models", "groups", "instructions", "levels", "settings", "bias-types"),
    *("genders", "labour", "gaps"),
)
WHERE: Final = ("quantity", "engine", "gender", "bias_type", "setting", "prompt_form", "group_a", "group_b")
"""Columns of tests.csv that a requirement may narrow its rows by."""
_INPUTS = Inputs(UsageError, most=2**20, remedy="Correct it there.")


@dataclass(frozen=True, slots=True)
class Require:
    """One requirement: which rows of tests.csv, and what each of them must show.

    Without `margin` and `limit` every row that has a margin of its own must be equivalent within it.

    Attributes:
        contrast: of `CONTRASTS`.
        margin: the row must be shown to lie within ±margin: its 90 % interval does.
        limit: the row must not be shown to lie beyond ±limit: its 95 % interval reaches into it. Says
            nothing where little was asked, so it needs `min_n`.
        models: labels of which rows are meant; each must have one.
        min_n: items (jobs, occupations, pairs) that a row must rest on.
        min_coverage: of each model that was probed, fraction in [0, 1].
        where: column → value that a row must have.
    """

    contrast: str = "models"
    name: str = ""
    margin: float | None = None
    limit: float | None = None
    models: tuple[str, ...] = ()
    min_n: int | None = None
    min_coverage: float | None = None
    where: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """What it is called: its own name, or what it asks."""
        if self.name:
            return self.name
        narrowed = "".join(f", {value}" for _, value in self.where)
        if self.limit is not None:
            return f"within ±{self.limit:g} ({self.contrast}{narrowed})"
        within = "" if self.margin is None else f" within ±{self.margin:g}"
        return f"equivalent{within} ({self.contrast}{narrowed})"


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that must hold."""

    requires: tuple[Require, ...]


def short_policy(contrast: str) -> Policy:
    """`--require equivalent=CONTRAST`. Raises `UsageError` for an unknown contrast."""
    return Policy((_checked(Require(contrast=contrast), "--require"),))


def read_policy(policy: str | Path | Mapping[str, Any] | Policy) -> Policy:
    """A policy from its TOML file, or from what such a file would hold. Raises `UsageError`."""
    if isinstance(policy, Policy):
        return policy
    held = policy if isinstance(policy, Mapping) else _INPUTS.toml(Path(policy))
    where = "The policy" if isinstance(policy, Mapping) else str(policy)
    if unknown := [name for name in held if name != "require"]:
        raise UsageError(f"{where}: there is no {unknown[0]!r}; a policy holds [[require]] tables.")
    listed = held.get("require")
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise UsageError(f"{where} requires nothing: write a [[require]] table.")
    return Policy(tuple(_require(one, f"{where}, [[require]] {n}") for n, one in enumerate(listed, 1)))


def _require(given: object, where: str) -> Require:
    if not isinstance(given, Mapping):
        raise UsageError(f"{where} is no table: write [[require]] and keys below it.")
    own = {field.name for field in fields(Require)} - {"where"}
    if unknown := [name for name in given if name not in (*own, *WHERE)]:
        raise UsageError(
            f"{where}: there is no key {unknown[0]!r}.{nearest(str(unknown[0]), [*own, *WHERE])}"
            f" Known: {', '.join(sorted((*own, *WHERE)))}."
        )
    models = given.get("models", ())
    if isinstance(models, str):
        models = (models,)
    if not isinstance(models, Sequence) or not all(isinstance(one, str) for one in models):
        raise UsageError(f'{where}: models is a list of labels, such as ["old", "new"].')
    return _checked(
        Require(
            contrast=_text(given.get("contrast", "models"), "contrast", where),
            name=_text(given.get("name", ""), "name", where),
            margin=_number(given.get("margin"), "margin", where),
            limit=_number(given.get("limit"), "limit", where),
            models=tuple(models),
            min_n=_whole(given.get("min_n"), where),
            min_coverage=_number(given.get("min_coverage"), "min_coverage", where),
            where=tuple((name, _text(given[name], name, where)) for name in WHERE if name in given),
        ),
        where,
    )


def _checked(one: Require, where: str) -> Require:
    """What contradicts itself, or would pass without having been asked."""
    if one.contrast not in CONTRASTS:
        raise UsageError(
            f"{where}: there is no contrast {one.contrast!r}.{nearest(one.contrast, CONTRASTS)}"
            f" Known: {', '.join(CONTRASTS)}."
        )
    if one.margin is not None and one.limit is not None:
        raise UsageError(f"{where}: margin asks for more than limit does: give one of them.")
    if (one.margin is not None or one.limit is not None) and "quantity" not in dict(one.where):
        raise UsageError(f'{where}: say of which quantity, such as quantity = "{next(iter(QUANTITIES))}".')
    if one.limit is not None and one.min_n is None:
        raise UsageError(f"{where}: a limit is passed where little was asked, so it needs min_n.")
    if one.min_coverage is not None and one.min_coverage > 1:
        raise UsageError(f"{where}: min_coverage = {one.min_coverage:g} is a fraction from 0 to 1.")
    return one


def _text(value: object, name: str, where: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where}: {name} = {value!r} is no text: put it into quotes.")
    return value


def _number(value: object, name: str, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise UsageError(f"{where}: {name} = {value!r}: give a number such as 0.05.")
    return float(value)


def _whole(value: object, where: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{where}: min_n = {value!r}: give a whole number from 1.")
    return value
