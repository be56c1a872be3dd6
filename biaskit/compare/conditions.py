"""How differently models were measured, in sentences: what a difference between them holds as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from biaskit.provenance import canonical_json
from biaskit.runs.collection import Model, StoredRun
from biaskit.runs.manifest import draws_of

NOT_SETTINGS = frozenset({"study", "slot", "groups", "texts", "expressions"})
NO_NUMBER = frozenset(
    {"margin", "report", "reference", "skip_bad_lines", "lock", "table", "summary", "papers"}
)
DRAWN = ("per_gender", "batch", "max_draws", "fill", "on_prefix")
LONGEST = 60


def measured_differently(runs: Sequence[StoredRun], models: Sequence[Model]) -> list[str]:
    """One sentence for each thing that differs between the runs or models of one engine."""
    said = [*_settings_apart(runs), *_estimators_apart(models), *_answers_apart(models)]
    return [f"{sentence}." for sentence in said]


# --- runs --------------------------------------------------------------------------------------------


def _settings_apart(runs: Sequence[StoredRun]) -> Iterator[str]:
    """Every choice in a run's question or analysis that changes a number and is not the same in all runs."""
    settings = [_settings(run) for run in runs]
    for name in dict.fromkeys(name for own in settings for name in own):
        there = [(run, own[name]) for run, own in zip(runs, settings, strict=True) if name in own]
        values: dict[str, list[str]] = {}
        for run, value in there:
            values.setdefault(_short(value), []).append(str(run.path))
        if len(values) > 1:
            listed = "; ".join(f"{value} in {', '.join(paths)}" for value, paths in values.items())
            yield f"{name} differs between the runs: {listed}"


def _settings(run: StoredRun) -> dict[str, Any]:
    choices = run.analysis.get("choices", {})
    study = run.manifest["resolved"].get("study", {})
    asked = {name: value for name, value in run.question.items() if name not in NOT_SETTINGS}
    imported = run.manifest["resolved"].get("imported")
    drawn = {name: study[name] for name in DRAWN if name in study and not imported}
    if any(draws_of(entry) is not None for entry in run.manifest["models"].values()):
        drawn["max_draws_per_cell"] = study.get("max_draws_per_cell")
    made = {name: value for name, value in choices.items() if name not in NO_NUMBER}
    version = run.analysis.get("versions", run.manifest["versions"]).get("biaskit", "")
    return {"study": run.manifest["study"], **asked, **drawn, **made, "biaskit's version": version}


def _short(value: object) -> str:
    if value is None or value == "":
        return "none"
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


# --- models ------------------------------------------------------------------------------------------


def _estimators_apart(models: Sequence[Model]) -> Iterator[str]:
    by: dict[str, list[str]] = {}
    for model in models:
        if model.estimator:
            by.setdefault(model.estimator, []).append(model.label)
    if len(by) > 1:
        listed = "; ".join(f"{estimator}: {', '.join(labels)}" for estimator, labels in by.items())
        yield (
            f"Estimators differ between the models ({listed}): a difference between models holds theirs too"
        )


def _answers_apart(models: Sequence[Model]) -> Iterator[str]:
    """Who answered for the API models and when: a name is no fingerprint."""
    listed = [
        f"{model.label} as {' and '.join(model.answered_by)}, {_when(model)}"
        for model in models
        if model.where == "api" and model.answered_by
    ]
    if listed:
        yield f"API models answered: {'; '.join(listed)}"


def _when(model: Model) -> str:
    first, last = model.first_answered, model.last_answered
    return str(first) if first == last else f"{first} to {last}"
