"""A run as logs of Inspect: one for each model and bias type (docs/integrations.md#inspect)."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from biaskit.exchange.inspect_format import of_log, of_sample
from biaskit.exchange.inspect_units import Sample, Unit, units_of
from biaskit.exchange.source import ExportFiles, Source, package
from biaskit.provenance import key_of
from biaskit.runs.manifest import estimator_of, read_manifest
from biaskit.runs.store import slug
from biaskit.tables.query import Row

SCORER = "biaskit"
_NEVER = "1970-01-01T00:00:00+00:00"
"""When texts were written that do not say when."""
_STOPS = {"stop": "stop", "length": "max_tokens", "refusal": "content_filter", "filter": "content_filter"}
"""What ended a text, as Inspect calls it."""
_OLDEST = (1980, 1, 1, 0, 0, 0)
"""The date of a zip's members: the time of the export would make each export another file."""
_WHICH = ("job_group", "occupation", "template_id", "instruction_id", "setting", "origin")
"""The columns that tell a row of results from others of its log."""


def as_inspect(source: Source) -> ExportFiles:
    """Every run of a source as logs, written by Inspect's own writer."""
    source.takes_only()
    logs = package("inspect_ai.log", "inspect", "A log of Inspect")
    files: dict[str, bytes] = {}
    notes = []
    for run in source.collection.runs:
        units, left_out = units_of(source, run)
        notes += left_out
        for unit in units:
            if unit.samples:
                files[_name(unit, files)] = _written(logs, _log(logs, unit))
            else:
                notes.append(f"{unit.label} has no answer{_of(unit)} and gets no log")
    first = next(iter(files), "")
    notes.append("inspect view --log-dir FOLDER shows them")
    return ExportFiles(files, first, tuple(notes))


def _of(unit: Unit) -> str:
    return f" to an {unit.bias_type} prompt" if unit.bias_type else ""


def _name(unit: Unit, taken: Mapping[str, object]) -> str:
    """A file's name, whatever the label says."""
    kind = unit.bias_type or "personas"
    study = slug(str(unit.run.manifest["study"]))
    plain = f"{study}-{slug(unit.run.names[unit.label])}-{kind}.eval"
    return (
        plain if plain not in taken else f"{study}-{key_of([str(unit.run.path), unit.label, kind])[:8]}.eval"
    )


def _written(logs: ModuleType, log: Any) -> bytes:
    """A log as Inspect writes it, its members dated alike."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.eval"
        logs.write_eval_log(log, str(path), format="eval")
        content = path.read_bytes()
    made = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for member in old.infolist():
            again = zipfile.ZipInfo(member.filename, _OLDEST)
            again.compress_type, again.external_attr = member.compress_type, member.external_attr
            new.writestr(again, old.read(member))
    return made.getvalue()


def _log(logs: ModuleType, unit: Unit) -> Any:
    """One unit as Inspect's record of an evaluation."""
    manifest = read_manifest(unit.run.path)
    entry = manifest["models"][unit.label]
    times = sorted(at for sample in unit.samples for at in sample.times)
    begun, ended = (times[0], times[-1]) if times else (_NEVER, _NEVER)
    model = str(entry["spec"])
    return logs.EvalLog(
        status="success",
        eval=_spec(logs, unit, manifest, begun),
        plan=logs.EvalPlan(name=SCORER),
        results=logs.EvalResults(
            total_samples=unit.n_asked,
            completed_samples=len(unit.samples),
            scores=list(_scores(logs, unit)),
        ),
        stats=logs.EvalStats(started_at=begun, completed_at=ended, model_usage=_usage(unit, model)),
        samples=[_sample(logs, sample, model) for sample in unit.samples],
    )


def _spec(logs: ModuleType, unit: Unit, manifest: Mapping[str, Any], begun: str) -> Any:
    entry = manifest["models"][unit.label]
    choices = dict(unit.run.analysis.get("choices", {}))
    signature = str(unit.run.analysis.get("signature", ""))
    ident = key_of([signature, unit.run.analysis.get("rows_digest"), unit.label, unit.bias_type])
    told = {
        "label": unit.label,
        "fingerprint": entry["fingerprint"],
        "tuning": entry["tuning"],
        "prompt_form": entry["prompt_form"],
        "estimator": estimator_of(entry) if unit.bias_type else "",
        "signature": signature,
        "command": manifest.get("command", ""),
        "notes": list(unit.run.analysis.get("notes", ())),
    }
    return logs.EvalSpec(
        eval_id=ident[:22],
        run_id=key_of([signature])[:22],
        task_id=key_of([ident, "task"])[:22],
        created=begun,
        task="-".join(filter(None, (str(manifest["study"]), unit.bias_type))),
        task_args={"bias_type": unit.bias_type} if unit.bias_type else {},
        dataset=logs.EvalDataset(
            name=str(manifest["study"]), samples=unit.n_asked, sample_ids=[one.id for one in unit.samples]
        ),
        model=str(entry["spec"]),
        config=logs.EvalConfig(),
        # What models wrote is shown as it is: no markup, no links, no pictures.
        viewer=package("inspect_ai.viewer", "inspect", "A log of Inspect").ViewerConfig(trust_content=False),
        packages={str(name): str(number) for name, number in manifest["versions"].items()},
        metadata={"about": told, "biaskit": of_log(manifest, choices, unit.label, unit.bias_type)},
    )


def _usage(unit: Unit, model: str) -> dict[str, Any]:
    sent = sum(n for sample in unit.samples for n in sample.numbers("prompt_tokens"))
    new = sum(n for sample in unit.samples for n in sample.numbers("n_tokens"))
    usage = package("inspect_ai.model", "inspect", "A log of Inspect").ModelUsage
    total = {"input_tokens": sent, "output_tokens": new, "total_tokens": sent + new}
    return {model: usage(**total)} if sent + new else {}


# --- samples -----------------------------------------------------------------------------------------


def _sample(logs: ModuleType, sample: Sample, model: str) -> Any:
    models = package("inspect_ai.model", "inspect", "A log of Inspect")
    score = package("inspect_ai.scorer", "inspect", "A log of Inspect").Score
    # Made without an id, a message gets one at random.
    messages = [
        models.ChatMessageAssistant(id=f"{sample.id}-{i}", content=text, source="generate")
        for i, (text, _) in enumerate(sample.answers)
    ]
    asked = models.ChatMessageUser(id=f"{sample.id}-asked", content=sample.prompt, source="input")
    choices = [
        models.ChatCompletionChoice(message=message, stop_reason=_STOPS.get(str(end), "unknown"))
        for message, (_, end) in zip(messages, sample.answers, strict=True)
    ]
    times = sample.times
    return logs.EvalSample(
        id=sample.id,
        epoch=1,
        input=sample.prompt,
        target="",
        messages=[asked, *messages[:1]],
        output=models.ModelOutput(model=model, choices=choices),
        scores={SCORER: score(value=_value(sample), metadata=dict(sample.scored))},
        metadata={**sample.columns, "biaskit": of_sample(sample.rows)},
        uuid=sample.id[-22:],
        started_at=times[0] if times else None,
        completed_at=times[-1] if times else None,
    )


def _value(sample: Sample) -> Any:
    """A text's gender alone; of a cell every share, by its group."""
    return dict(sample.score) if len(sample.score) > 1 else next(iter(sample.score.values()))


# --- results -----------------------------------------------------------------------------------------


def _scores(logs: ModuleType, unit: Unit) -> Iterator[Any]:
    """A score for each group, and for coverage: means over jobs and templates with their intervals."""
    if unit.bias_type is None:
        yield _score(logs, unit, "women", unit.results, "female_share")
        return
    for group in unit.groups:
        own = [row for row in unit.results if row["gender"] == group]
        yield _score(logs, unit, f"{group} share", own, "share")
    once = [row for row in unit.results if row["gender"] == unit.groups[0]]
    kept = ("coverage", "coverage_median", "n_below_floor", "n_jobs", "n_templates", *_WHICH)
    rows = [{name: value for name, value in row.items() if name in kept} for row in once]
    yield _score(logs, unit, "coverage", rows, "coverage")


def _score(logs: ModuleType, unit: Unit, name: str, rows: Sequence[Row], column: str) -> Any:
    """One score; a mean that is not defined is named with its reason, as a metric has to be a number."""
    metrics = {}
    missing = []
    for row in rows:
        where = _where(row, unit.results)
        said = {key: value for key, value in row.items() if value is not None and key != "model"}
        if row[column] is None:
            missing.append(f"{where}: {row.get('reason')}")
        else:
            title = f"{name} in {where}" if where else name
            metrics[title] = logs.EvalMetric(name=title, value=row[column], metadata=said)
    return logs.EvalScore(
        name=name,
        scorer=SCORER,
        scored_samples=len(unit.samples),
        unscored_samples=unit.n_asked - len(unit.samples),
        metrics=metrics,
        metadata={"not measured": json.dumps(missing)} if missing else None,
    )


def _where(row: Row, among: Sequence[Row]) -> str:
    """The values that tell this row from the others of its log; its group of jobs always."""
    said = []
    for column in _WHICH:
        value = row.get(column)
        if value is not None and (column == "job_group" or len({one.get(column) for one in among}) > 1):
            plain = column in ("job_group", "occupation", "template_id", "setting")
            said.append(str(value) if plain else f"{column.removesuffix('_id')} {value}")
    return ", ".join(said)
