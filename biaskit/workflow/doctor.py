"""What `biaskit doctor` and `bk.doctor` do: measure what a model can answer, and by which estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Unpack

from biaskit.arguments import checked
from biaskit.errors import UsageError
from biaskit.models.api.abilities import Abilities
from biaskit.models.spec import full_spec, is_api, open_scorer, split_label
from biaskit.progress import Silent, Watcher
from biaskit.records import OWN_SYSTEM, PROBE_FORMATS, ModelIdentity
from biaskit.report.render.document import Document, TitledTable, listed_table
from biaskit.report.render.html import Printed
from biaskit.runs.start import ApiArguments, api_options


@dataclass(frozen=True)
class Examination(Printed):
    """What was found out about a model."""

    label: str
    identity: ModelIdentity
    abilities: Abilities | None  # of an API; a local model is not measured
    used: Mapping[str, float | None]

    def estimators(self) -> dict[str, list[str]]:
        """List by prompt format the possible estimators, first the one that `auto` takes."""
        usual = ["exact", "top-k", "sampling"]
        possible: dict[str, list[str]] = {}
        for prompt_format in PROBE_FORMATS:
            if self.abilities is not None:
                possible[prompt_format] = list(self.abilities.estimators(prompt_format))
            elif prompt_format in self.identity.formats:
                possible[prompt_format] = usual
        return {prompt_format: names for prompt_format, names in possible.items() if names}

    def open_formats(self) -> tuple[str, ...]:
        """List the prompt formats in which texts can be asked for, first the one that `auto` takes."""
        if self.abilities is not None:
            return self.abilities.open_formats()
        return ("chat", "completion", "raw") if len(self.identity.formats) > 1 else ("completion", "raw")

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "model": self.label,
            "details": dict(self.identity.details),
            "probabilities": self.estimators(),
            "texts": list(self.open_formats()),
            "abilities": None if self.abilities is None else self.abilities.as_json(),
            "used": dict(self.used),
        }

    def document(self) -> Document:
        """Lay it out for a renderer: what was found, and what measurements will use."""
        details = self.identity.details
        if self.abilities is None:
            rows = [(name, str(value)) for name, value in details.items()]
            about = _two_columns(f"{self.label}, a model in this process", ("What", "Value"), rows)
        else:
            rows = [(finding.question, finding.answer) for finding in self.abilities.findings]
            about = _two_columns(f"{self.label} at {details['host']}", ("Question", "Found"), rows)
        rows, estimators = [], self.estimators()
        for prompt_format in PROBE_FORMATS:
            names = estimators.get(prompt_format, [])
            also = f" (also {', '.join(names[1:])})" if names[1:] else ""
            why = self.abilities.problems.get(prompt_format) if self.abilities else None
            impossible = f"not possible ({why})" if why else "not possible"
            rows.append((f"probabilities, {prompt_format}", f"{names[0]}{also}" if names else impossible))
        rows.append(("texts", ", ".join(self.open_formats()) or "not possible"))
        heads = ("Answer and prompt format", "Estimator or format")
        uses = _two_columns("What measurements will use", heads, rows)
        return Document((about, uses), tuple(self._notes()))

    def _notes(self) -> list[str]:
        if self.abilities is None:
            own = self.identity.details.get(OWN_SYSTEM)
            said = f"without a system prompt, its chat template inserts its own: “{own}”"
            return ["a local model is scored exactly", *([said] if own else [])]
        notes = [
            f"{name} is not possible: {why}"
            for name, why in self.abilities.problems.items()
            if name in ("selected-ids", "echo", "top-k", "top-k, chat")
        ]
        if self.abilities.echo:
            notes.append(
                "echo (prompt log-probabilities) is exact and needs a call per target word, about"
                f" {self.abilities.echo_latency:.2f} s each; --estimator top-k needs one per prompt and gives"
                " bounds"
            )
        cost = self.used.get("cost")
        paid = "the price is unknown" if cost is None else f"{cost:.6f} USD"
        return [*notes, f"this took {self.used.get('calls', 0):.0f} calls, {paid}"]


@checked(ApiArguments)
def doctor(model: str, *, watcher: Watcher | None = None, **options: Unpack[ApiArguments]) -> Examination:
    """Measure what a model can answer; an API gets some twenty short prompts.

    >>> bk.doctor("demo").estimators()["raw"]
    ['exact', 'top-k', 'sampling']

    Args:
        model: a spec such as `api:NAME@http://127.0.0.1:8000/v1`, `openai:NAME` or `demo`.
        watcher: is told of requests that are sent again.

    Returns what was found: `estimators()` for each prompt format of a probe, `open_formats()` for texts, and
    `document()`, which the command prints. Raises `ModelError` where the endpoint does not answer or refuses
    the key.
    """
    label, spec = split_label(model)
    if full_spec(spec).startswith("scripted:"):
        raise UsageError(f"{label} answers from a script: there is nothing to test.")
    api = api_options(options, {label: spec}, watcher or Silent())
    with closing(open_scorer(spec, label=label, api=api)) as scorer:
        identity = scorer.identity
        measured = identity.abilities if is_api(spec) else None
        abilities = None if measured is None else Abilities.from_json(measured)
        return Examination(label, identity, abilities, scorer.used())


def _two_columns(title: str, heads: tuple[str, str], pairs: Sequence[tuple[str, str]]) -> TitledTable:
    rows = tuple((name, " ".join(text.split())) for name, text in pairs)
    return listed_table(title, heads, rows, 2, wide=frozenset({1}))
