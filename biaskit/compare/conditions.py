"""Sentences on how models were measured differently: their differences come from that too."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from biaskit.common.provenance import canonical_json
from biaskit.common.wording import short
from biaskit.models.options import IN_MEMORY
from biaskit.runs.collection import Model, StoredRun

NOT_SETTINGS = frozenset({"study", "slot", "groups", "texts", "expressions"})
NO_NUMBER = frozenset(
    {"margin", "report", "reference", "skip_bad_lines", "lock", "table", "summary", "papers"}
)
DRAWN = ("per_gender", "batch", "max_samples", "fill", "on_prefix", "max_samples_per_prompt")
LONGEST = 60


def measured_differently(runs: Sequence[StoredRun], models: Sequence[Model]) -> Iterator[str]:
    """Say what differs between the runs or models of one engine, a sentence for each thing."""
    settings = []
    for run in runs:
        study = run.manifest["resolved"].get("study", {})
        drawn = () if run.manifest["resolved"].get("imported") else DRAWN
        choices = run.analysis.get("choices", {})
        version = run.analysis.get("versions", run.manifest["versions"]).get("biaskit", "")
        settings.append(
            {"study": run.manifest["study"]}
            | {name: value for name, value in run.question.items() if name not in NOT_SETTINGS}
            | {name: study[name] for name in drawn if name in study}
            | {name: value for name, value in choices.items() if name not in NO_NUMBER}
            | {"biaskit's version": version}
        )
    for name in dict.fromkeys(name for settings_of_run in settings for name in settings_of_run):
        runs_of: dict[str, list[str]] = {}
        for run, settings_of_run in zip(runs, settings, strict=True):
            if name in settings_of_run:
                value = settings_of_run[name]
                text = value if isinstance(value, str) else canonical_json(value)
                shown = "none" if value in (None, "") else short(text, LONGEST)
                runs_of.setdefault(shown, []).append(str(run.path))
        if len(runs_of) > 1:
            listed = "; ".join(f"{value} in {', '.join(paths)}" for value, paths in runs_of.items())
            yield f"{name} differs between the runs: {listed}."
    models_of: dict[str, list[str]] = {}
    for model in models:
        if model.estimator:
            models_of.setdefault(model.estimator, []).append(model.label)
    if len(models_of) > 1:
        listed = "; ".join(f"{estimator}: {', '.join(labels)}" for estimator, labels in models_of.items())
        yield (
            f"Estimators differ between the models ({listed}): they may explain part of a difference."
            + _asked_alike(models_of, models)
        )
    # Who answered for an API, and when: a name is no fingerprint.
    answered = [
        f"{model.label} as {' and '.join(model.answered_by)},"
        f" {' to '.join(dict.fromkeys(str(day) for day in (model.first_answered, model.last_answered)))}"
        for model in models
        if model.where == "api" and model.answered_by
    ]
    if answered:
        yield f"API models answered: {'; '.join(answered)}."


def _asked_alike(estimators: Iterable[str], models: Sequence[Model]) -> str:
    """Write the command that asks the other models as the weakest does; "" where all are exact."""
    weaker = [name for name in estimators if name.startswith(("top-k", "sampling"))]
    if not weaker:
        return ""
    weakest = min(weaker, key=lambda name: (name.startswith("top-k"), len(name), name))  # the smallest k
    name, _, settings = weakest.rstrip(")").partition("(")
    set_by = [pair for pair in settings.split(",") if pair.startswith(("k=", "draws=")) and pair != "k=20"]
    how = f"--estimator {name}" + "".join(f" --set {pair.replace('draws', 'samples')}" for pair in set_by)
    asked = [model for model in models if model.estimator not in ("", weakest)]
    if any(model.spec.startswith(IN_MEMORY) for model in asked):
        return f" To use one for all, in Python: estimator={name!r}."
    specs = [shlex.quote(m.spec if m.label == m.spec else f"{m.label}={m.spec}") for m in asked]
    return (
        f" To use one for all: `biaskit probe {' '.join(specs)} {how}`, with the other options of their runs."
    )
