"""What the commands of both engines do before and after they ask: labels, lists, the line to go on."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.corpora.sources import check_label
from biaskit.errors import UsageError
from biaskit.models.api.endpoint import hide_urls, keys_by_label, keys_of
from biaskit.models.spec import full_spec, split_label
from biaskit.progress import Watcher
from biaskit.runs.session import Outcome
from biaskit.runs.store import read_rows, rows_file
from biaskit.study.config import is_path
from biaskit.study.keys import Study

if TYPE_CHECKING:
    from biaskit.models.api.options import ApiOptions


def list_override(name: str, value: str | Sequence[str] | None) -> dict[str, Any]:
    """A list option as keys: a path replaces the whole list, anything else chooses from it."""
    if value is None:
        return {}
    if isinstance(value, str) and is_path(value):
        return {f"{name}.source": value, f"{name}.select": "all"}
    return {f"{name}.select": value if isinstance(value, str) else tuple(value)}


def name_models(models: Sequence[str], study: Study, watcher: Watcher) -> dict[str, str]:
    """The models of a call, else the study's own, which are shown and need a yes."""
    named = label_models(models or [f"{label}={spec}" for label, spec in study.models.items()])
    if named and not models:
        # A study file from somebody else may name any folder or server.
        listed = ", ".join(f"{label} = {hide_urls(spec)}" for label, spec in named.items())
        watcher.confirm(f"The study {study.name} names the models itself: {listed}.")
    if not named:
        raise UsageError(
            "Name a model: demo, hf:ORG/NAME, hf:PATH, gguf:PATH, openai:NAME, api:NAME@URL or scripted:FILE."
        )
    return named


def label_models(texts: Sequence[str]) -> dict[str, str]:
    """Label → spec, in order; labels are unique and can stand in a public table."""
    found: dict[str, str] = {}
    for text in texts:
        label, spec = split_label(text)
        check_label(label, "The model label")
        if label == "all":
            raise UsageError("No model can be called all: in the tables that is their sum.")
        if label in found:
            raise UsageError(
                f"Two models are called {label!r}: give one of them a label, as in other={hide_urls(spec)}."
            )
        found[label] = spec
    return found


def command_line() -> str:
    """The command as it was given, for the manifest; without a login that stood in a URL."""
    # Word by word: quoting would take a password apart.
    return shlex.join(["biaskit", *map(hide_urls, sys.argv[1:])]) if sys.argv[:1] else ""


@dataclass(frozen=True, slots=True)
class ApiCall:
    """What a command or a call in Python says about its API models."""

    api_key_env: str | Sequence[str] | None = None  # VARIABLE, or LABEL=VARIABLE for each model
    endpoint_name: str | None = None
    max_cost: float | None = None  # USD
    price: str | None = None  # IN,OUT in USD per million tokens
    accept_drift: bool = False

    def options(self, models: Mapping[str, str], watcher: Watcher) -> ApiOptions:
        """Checked, for the models of this call. Raises `UsageError`."""
        from biaskit.models.api.options import ApiOptions
        from biaskit.models.api.prices import parse_price

        given = (self.api_key_env,) if isinstance(self.api_key_env, str) else tuple(self.api_key_env or ())
        keys = keys_by_label(keys_of(given), {label: full_spec(spec) for label, spec in models.items()})
        if self.max_cost is not None and not 0 <= self.max_cost < float("inf"):
            raise UsageError(f"--max-cost {self.max_cost}: give an amount in USD, such as 5.")
        return ApiOptions(
            keys=keys,
            endpoint_name=self.endpoint_name,
            max_cost=self.max_cost,
            price=parse_price(self.price) if self.price is not None else None,
            note=watcher.detail,
        )


NO_API = ApiCall()
"""Nothing said: keys by their usual variable, known prices, no cap."""


def how_to_go_on(run: Path, engine: str) -> str:
    """What an interrupted run says."""
    rows = rows_file(run, engine)
    n = sum(1 for _ in read_rows(rows, skip_bad=True)) if rows.exists() else 0
    return f"Stopped. {n} finished rows are kept in {run}; the same command goes on from there."


def left_out(asked: Outcome, unit: str) -> list[str]:
    """What a reader must know of answers that never came."""
    notes = [
        f"{label}: {n} {unit} failed ({reason}); the same command asks them again"
        for label, reasons in asked.failed.items()
        for reason, n in reasons.items()
    ]
    for label, reason in asked.failed_models.items():
        what = "was not asked any further" if label in asked.stopped else "is left out"
        notes.append(f"{label} {what}: {reason}")
    return notes
