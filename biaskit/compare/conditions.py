"""How differently models were measured, in sentences: what a difference between them holds as well."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
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
PROBE_FORMS = ("raw", "chat-prefill", "chat-continue")
TEXT_FORMS = ("chat", "completion", "raw")
MERGED = ("per_gender", "batch", "max_draws")


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


# --- the command that would make them comparable -----------------------------------------------------


def how_to_compare(runs: Sequence[StoredRun]) -> str:
    """What would ask all models of one engine's runs in one prompt form: the command, where all can take one.

    What the manifests show: a local base model takes raw text alone, an instruct or scripted model every
    form, an API only the form it was asked in for certain; a system prompt has no place in raw text.
    """
    engine = runs[0].engine
    entries = {label: entry for run in runs for label, entry in run.manifest["models"].items()}
    system = any(_has_system(run) for run in runs)
    usable = [
        form
        for form in (PROBE_FORMS if engine == "probe" else TEXT_FORMS)
        if not (system and form in ("raw", "completion"))
        and all(form in _takes(entry, engine) for entry in entries.values())
    ]
    if not usable:
        return "No prompt form is known that all these models can take: they stand side by side, untested."
    studies = {str(run.manifest["study"]) for run in runs}
    if len(studies) > 1:
        return f"All these models can take --prompt-form {usable[0]}, in one study."
    command = str(runs[0].manifest.get("command") or "") if len(runs) == 1 else ""
    if not command.startswith(f"biaskit {engine} "):
        models = " ".join(shlex.quote(f"{label}={entry['spec']}") for label, entry in entries.items())
        command = f"biaskit {engine} {models} --study {shlex.quote(*studies)}"
    return f"This makes them comparable: `{command} --prompt-form {usable[0]} --out DIR`"


def _has_system(run: StoredRun) -> bool:
    return bool(run.question.get("system_prompt")) or run.question.get("instruction_position") == "system"


def _takes(entry: Mapping[str, Any], engine: str) -> tuple[str, ...]:
    every = PROBE_FORMS if engine == "probe" else TEXT_FORMS
    own = str(entry["prompt_form"] or "")
    if entry["where"] == "scripted" or (entry["where"] == "local" and entry["tuning"] == "instruct"):
        return every
    plain = ("raw",) if engine == "probe" else ("completion", "raw")
    return (own, *plain) if entry["where"] == "local" else (own,)


def other_vectors(
    runs: Sequence[StoredRun], vectors_of: Mapping[str, Sequence[str]], same: Callable[[str, str], bool]
) -> str | None:
    """A sentence where SRB scores come from several vector models, with the command that trains one.

    `vectors_of`: run → names of its vector models; `same` says of two runs whether theirs are one.
    """
    own = [run for run in runs if vectors_of.get(str(run.path))]
    if all(same(str(a.path), str(b.path)) for a in own for b in own):
        return None
    listed = ", ".join(f"{run.path} ({', '.join(vectors_of[str(run.path)])})" for run in own)
    said = (
        f"SRB scores come from other vectors ({listed}): they are neither compared nor put in one table,"
        " srb_z is the score to set side by side"
    )
    if why := not_mergeable(own):
        return f"{said}; {why}, so no common vectors can be trained."
    paths = " ".join(shlex.quote(str(run.path)) for run in own)
    return f"{said}. `biaskit analyze {paths} --out DIR` trains one vector model on all their texts."


def not_mergeable(runs: Sequence[StoredRun]) -> str | None:
    """Why `analyze` would not merge the runs; None where it would."""
    first, *others = runs
    if any(run.manifest["resolved"].get("imported") for run in runs):
        return "imported texts are not merged"
    for run in others:
        for name in (*run.question, *MERGED):
            own, its = ({**r.manifest["resolved"]["study"], **r.question}.get(name) for r in (first, run))
            if not _agree(own, its):
                return f"the runs' {name} differs"
        for label, name in run.names.items():
            known = first.manifest["models"].get(first.names.get(label))
            if known and known["fingerprint"] != run.manifest["models"][name]["fingerprint"]:
                return f"two models are called {label}"
    return None


def _agree(own: object, its: object) -> bool:
    """Whether two values are one study's; of two tables only what both name has to agree."""
    if isinstance(own, Mapping) and isinstance(its, Mapping):
        return all(own[name] == its[name] for name in own if name in its)
    return own == its
