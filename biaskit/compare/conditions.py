"""Sentences on how models were measured differently: their differences come from that too."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from biaskit.common.provenance import canonical_json
from biaskit.common.wording import short
from biaskit.models.options import IN_MEMORY
from biaskit.runs.collection import Model, StoredRun
from biaskit.tables.reasons import do_differ

NOT_SETTINGS = frozenset({"study", "slot", "groups", "texts", "target_words", "label"})
NO_NUMBER = frozenset(
    {"margin", "report", "reference", "skip_bad_lines", "lock", "table", "summary", "papers"}
)
DRAWN = ("per_gender", "batch", "max_samples", "fill", "on_prefix", "max_samples_per_prompt")
LONGEST = 60


def measured_differently(runs: Sequence[StoredRun], models: Sequence[Model]) -> Iterator[str]:
    """Say what differs between the runs or models of one kind, a sentence for each thing."""
    runs_of: dict[str, dict[str, list[str]]] = {}  # setting → its value → the runs that have it
    for run in runs:
        for name, value in _settings(run).items():
            text = value if isinstance(value, str) else canonical_json(value)
            shown = "none" if value in (None, "") else short(text, LONGEST)
            runs_of.setdefault(name, {}).setdefault(shown, []).append(str(run.path))
    for name, by_value in runs_of.items():
        if len(by_value) > 1:
            listed = "; ".join(f"{value} in {', '.join(paths)}" for value, paths in by_value.items())
            yield f"{name} differs between the runs: {listed}."
    models_of: dict[str, list[str]] = {}
    for model in models:
        if model.estimator:
            models_of.setdefault(model.estimator, []).append(model.label)
    if do_differ(models_of):
        listed = "; ".join(f"{estimator}: {', '.join(labels)}" for estimator, labels in models_of.items())
        yield (
            f"Estimators differ between the models ({listed}): they may explain part of a difference."
            + _asked_alike(runs[0].measurement, models_of, models)
        )
    # Who answered for an API, and when: a name is no fingerprint.
    answered = []
    for model in models:
        if model.where == "api" and model.answered_by:
            days = " to ".join(dict.fromkeys((str(model.first_answered), str(model.last_answered))))
            answered.append(f"{model.label} as {' and '.join(model.answered_by)}, {days}")
    if answered:
        yield f"API models answered: {'; '.join(answered)}."


def _settings(run: StoredRun) -> dict[str, Any]:
    """Everything that numbers of a run depend on beside its prompts, by name."""
    resolved = run.manifest.resolved
    study, choices = resolved.get("study", {}), run.analysis.get("choices", {})
    drawn = () if resolved.get("imported") else DRAWN
    settings = {"study": run.study}
    settings |= {name: value for name, value in run.question.items() if name not in NOT_SETTINGS}
    settings |= {name: study[name] for name in drawn if name in study}
    settings |= {name: value for name, value in choices.items() if name not in NO_NUMBER}
    version = run.analysis.get("versions", run.manifest.versions).get("biaskit", "")
    return settings | {"biaskit's version": version}


def _asked_alike(command: str, estimators: Iterable[str], models: Sequence[Model]) -> str:
    """Write the command that asks the other models as the weakest does."""
    weaker = [name for name in estimators if name.startswith(("top-k", "sampling"))]
    weakest = min(weaker, key=lambda name: (name.startswith("top-k"), len(name), name))  # the smallest k
    name, _, settings = weakest.rstrip(")").partition("(")
    how = f"--estimator {name}"
    for pair in settings.split(","):
        if pair.startswith(("k=", "samples=")) and pair != "k=20":
            how += f" --set {pair}"
    asked = [model for model in models if model.estimator not in ("", weakest)]
    if any(model.spec.startswith(IN_MEMORY) for model in asked):
        return f" To use one for all, in Python: estimator={name!r}."
    specs = [model.spec if model.label == model.spec else f"{model.label}={model.spec}" for model in asked]
    line = f"biaskit {command} {shlex.join(specs)} {how}"
    return f" To use one for all: `{line}`, with the other options of their runs."
