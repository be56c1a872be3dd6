"""A run as logs of Inspect: one for each model and bias type, of texts one for each model."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from biaskit.exchange.source import ExportFiles, Source, package
from biaskit.probe.analysis import CELL
from biaskit.provenance import key_of
from biaskit.runs.collection import StoredRun
from biaskit.runs.store import slug
from biaskit.tables.query import Row, where

SCORER = "biaskit"
_NEVER = "1970-01-01T00:00:00+00:00"
"""When texts were written that do not say when."""
_STOPS = {"stop": "stop", "length": "max_tokens", "refusal": "content_filter", "filter": "content_filter"}
"""What ended a text, as Inspect calls it."""
_WHICH = ("job_group", "occupation", "template_id", "instruction_id", "setting", "prompt_form")
"""The columns that tell a row of results from others of its log."""
TEXTS = "personas"


@dataclass(frozen=True, slots=True)
class _Sample:
    """A cell or a text: its stored rows, what was answered, and what the tables say of it."""

    rows: Sequence[Row]
    answers: Sequence[tuple[str, str | None]]  # each with what ended it
    value: float | str | dict[str, float | None] | None
    said: Mapping[str, Any]


def as_inspect(source: Source) -> ExportFiles:
    """Every run of a source as logs, written by Inspect's own writer."""
    source.takes_only()
    files: dict[str, bytes] = {}
    for run in source.collection.runs:
        found = _cells(source, run) if run.engine == "probe" else _texts(source, run)
        for (label, kind), samples in found.items():
            name = f"{slug(str(run.manifest['study']))}-{slug(label)}-{kind}.eval"
            files[name] = _log(run, label, kind, samples)
    return ExportFiles(files, next(iter(files), ""), ("inspect view --log-dir FOLDER shows them",))


_Found = dict[tuple[str, str], list[_Sample]]


def _cells(source: Source, run: StoredRun) -> _Found:
    """The answered cells of each model and bias type, in the order of the study."""
    rows: dict[tuple[Any, ...], list[Row]] = {}
    for cell, row in source.cells(run):
        rows.setdefault((cell.model, *(getattr(cell, name) for name in CELL)), []).append(row)
    found: _Found = {}
    for said in run.tables.get("probe_cells", ()):
        if own := rows.get((said["model"], *(said[name] for name in CELL))):
            shares = {
                name.replace("_", " "): value for name, value in said.items() if name.endswith("_share")
            }
            value = {**shares, "coverage": said["coverage"]}
            sample = _Sample(own, list(_answers(own)), value, said)
            found.setdefault((said["model"], said["bias_type"]), []).append(sample)
    return found


def _answers(rows: Sequence[Row]) -> Iterator[tuple[str, str | None]]:
    """What was drawn; where nothing was, a line for each expression with what is known of it."""
    for row in rows:
        if row["estimator"] == "sampling":
            yield from ((text, finish) for text, finish in row.get("answers", ()))
        else:
            ends = ((e["text"], e["group"], e["log_prob"]) for e in row["expressions"])
            lines = ("–" if log is None else f"{math.exp(log):.6f}  {text!r} ({g})" for text, g, log in ends)
            yield "\n".join(lines), None


def _texts(source: Source, run: StoredRun) -> _Found:
    associated = {row["key"]: row for row in run.tables.get("associations", ())}
    found: _Found = {}
    for row in source.rows(run):
        if said := associated.get(row["key"]):
            answer = (str(row["text"]), row.get("finish_reason"))
            sample = _Sample([row], [answer], said["gender"] or "none", said)
            found.setdefault((said["model"], TEXTS), []).append(sample)
    return found


def _log(run: StoredRun, label: str, kind: str, samples: Sequence[_Sample]) -> bytes:
    """A log as Inspect writes it."""
    logs = package("inspect_ai.log", "inspect", "A log of Inspect")
    viewer = package("inspect_ai.viewer", "inspect", "A log of Inspect")
    entry = run.manifest["models"][label]
    signature = str(run.analysis["signature"])
    ident = key_of([signature, run.analysis["rows_digest"], label, kind])[:22]
    rows = [row for sample in samples for row in sample.rows]
    times = sorted(str(row["answered_at"]) for row in rows if row.get("answered_at")) or [_NEVER]
    told = {name: entry.get(name) for name in ("fingerprint", "tuning", "prompt_form", "estimator")}
    log = logs.EvalLog(
        status="success",
        eval=logs.EvalSpec(
            eval_id=ident,
            run_id=ident,
            task_id=ident,
            created=times[0],
            task=f"{run.manifest['study']}-{kind}",
            dataset=logs.EvalDataset(name=str(run.manifest["study"]), samples=len(samples)),
            model=str(entry["spec"]),
            config=logs.EvalConfig(),
            # What models wrote is shown as it is: no markup, no links, no pictures.
            viewer=viewer.ViewerConfig(trust_content=False),
            packages={str(name): str(number) for name, number in run.manifest["versions"].items()},
            metadata={"label": label, "signature": signature, "notes": run.analysis["notes"], **told},
        ),
        plan=logs.EvalPlan(name=SCORER),
        results=logs.EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=list(_scores(run, label, kind, len(samples))),
        ),
        stats=logs.EvalStats(started_at=times[0], completed_at=times[-1]),
        samples=[_sample(i, sample, str(entry["spec"])) for i, sample in enumerate(samples)],
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.eval"
        logs.write_eval_log(log, str(path), format="eval")
        return path.read_bytes()


def _sample(number: int, sample: _Sample, model: str) -> Any:
    logs = package("inspect_ai.log", "inspect", "A log of Inspect")
    models = package("inspect_ai.model", "inspect", "A log of Inspect")
    score = package("inspect_ai.scorer", "inspect", "A log of Inspect").Score
    ident = f"{number:06d}-{sample.rows[0]['key']}"
    prompt = str(sample.rows[0].get("prompt") or "")
    choices = [
        models.ChatCompletionChoice(
            message=models.ChatMessageAssistant(content=text, source="generate"),
            stop_reason=_STOPS.get(str(end), "unknown"),
        )
        for text, end in sample.answers
    ]
    asked = models.ChatMessageUser(content=prompt, source="input")
    return logs.EvalSample(
        id=ident,
        epoch=1,
        input=prompt,
        target="",
        messages=[asked, *(choice.message for choice in choices[:1])],
        output=models.ModelOutput(model=model, choices=choices),
        scores={SCORER: score(value=sample.value)},
        metadata=dict(sample.said),
    )


def _scores(run: StoredRun, label: str, kind: str, n_samples: int) -> Iterator[Any]:
    """A score for each group: means over jobs and templates, or of texts, with their intervals."""
    logs = package("inspect_ai.log", "inspect", "A log of Inspect")
    if kind == TEXTS:
        rows = where(run.tables.get("representation", ()), model=label)
        named = {"women share": (rows, "female_share")}
    else:
        rows = where(run.tables.get("probe_groups", ()), model=label, bias_type=kind)
        groups = dict.fromkeys(row["gender"] for row in rows)
        named = {f"{group} share": (where(rows, gender=group), "share") for group in groups}
    for name, (own, column) in named.items():
        varying = [c for c in _WHICH if c == "job_group" or len({row.get(c) for row in own}) > 1]
        metrics, missing = {}, []
        for row in own:
            place = ", ".join(f"{row[c]}" for c in varying if row.get(c) is not None)
            if row[column] is None:  # a metric has to be a number
                missing.append(f"{place}: {row['reason']}")
            else:
                title = f"{name} in {place}" if place else name
                said = {key: value for key, value in row.items() if value is not None}
                metrics[title] = logs.EvalMetric(name=title, value=row[column], metadata=said)
        about = {"not measured": json.dumps(missing)} if missing else None
        yield logs.EvalScore(
            name=name, scorer=SCORER, scored_samples=n_samples, metrics=metrics, metadata=about
        )
