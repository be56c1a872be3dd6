"""How differently models were measured, in sentences: what a difference between them holds as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.provenance import canonical_json
from biaskit.common.wording import short
from biaskit.runs.collection import Model, StoredRun

NOT_SETTINGS = frozenset({"study", "slot", "groups", "texts", "expressions"})
NO_NUMBER = frozenset(
    {"margin", "report", "reference", "skip_bad_lines", "lock", "table", "summary", "papers"}
)
DRAWN = ("per_gender", "batch", "max_draws", "fill", "on_prefix", "max_draws_per_cell")
LONGEST = 60


def measured_differently(runs: Sequence[StoredRun], models: Sequence[Model]) -> Iterator[str]:
    """One sentence for each thing that differs between the runs or models of one engine."""
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
    for name in dict.fromkeys(name for own in settings for name in own):
        runs_of: dict[str, list[str]] = {}
        for run, own in zip(runs, settings, strict=True):
            if name in own:
                value = own[name] if isinstance(own[name], str) else canonical_json(own[name])
                shown = "none" if own[name] in (None, "") else short(value, LONGEST)
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
            f"Estimators differ between the models ({listed}): a difference between models holds theirs too."
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
