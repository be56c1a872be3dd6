"""A run as logs of Inspect: one for each model and bias type, of texts one for each model."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from biaskit.common.provenance import key_of
from biaskit.exchange.source import ExportFiles, Source, package
from biaskit.probe.design import CELL
from biaskit.runs.collection import StoredRun
from biaskit.runs.store import slug
from biaskit.tables.query import Row, where

SCORER = "biaskit"
TEXTS = "personas"
_WHY = "A log of Inspect"
_NEVER = "1970-01-01T00:00:00+00:00"  # when texts were written that do not say when
_STOPS = {"stop": "stop", "length": "max_tokens", "refusal": "content_filter", "filter": "content_filter"}
"""What ended a text, as Inspect calls it."""
_WHICH = ("job_group", "occupation", "template_id", "instruction_id", "setting", "prompt_form")
"""The columns that tell a row of results from others of its log."""
Sample = tuple[Sequence[Row], Row]  # the stored rows of a cell or text, and what the tables say of it


def as_inspect(source: Source) -> ExportFiles:
    """Write every run of a source as logs, with Inspect's own writer."""
    source.takes_only()
    files: dict[str, bytes] = {}
    for run in source.collection.runs:
        for (label, kind), samples in _samples(source, run).items():
            name = f"{slug(str(run.manifest['study']))}-{slug(label)}-{kind}.eval"
            files[name] = _log(run, label, kind, samples)
    return ExportFiles(files, next(iter(files), ""), ("inspect view --log-dir FOLDER shows them",))


def _samples(source: Source, run: StoredRun) -> dict[tuple[str, str], list[Sample]]:
    """Collect the answered cells of each model and bias type, or the texts of each model."""
    samples: dict[tuple[str, str], list[Sample]] = {}
    if run.engine == "probe":
        rows: dict[tuple[Any, ...], list[Row]] = {}
        for cell, row in source.cells(run):
            rows.setdefault((cell.model, *(getattr(cell, name) for name in CELL)), []).append(row)
        for of_cell in run.tables.get("probe_cells", ()):
            if stored := rows.get((of_cell["model"], *(of_cell[name] for name in CELL))):
                samples.setdefault((of_cell["model"], of_cell["bias_type"]), []).append((stored, of_cell))
        return samples
    associated = {row["key"]: row for row in run.tables.get("associations", ())}
    for row in run.rows():
        if (of_text := associated.get(row["key"])) is not None:
            samples.setdefault((of_text["model"], TEXTS), []).append(([row], of_text))
    return samples


def _log(run: StoredRun, label: str, kind: str, samples: Sequence[Sample]) -> bytes:
    """Write a log of one model and kind of sample."""
    logs = package("inspect_ai.log", "inspect", _WHY)
    viewer = package("inspect_ai.viewer", "inspect", _WHY)
    entry = run.manifest["models"][label]
    signature = str(run.analysis["signature"])
    ident = key_of([signature, run.analysis["rows_digest"], label, kind])[:22]
    stored = [row for rows, _ in samples for row in rows]
    times = sorted(str(row["answered_at"]) for row in stored if row.get("answered_at")) or [_NEVER]
    about = {name: entry.get(name) for name in ("fingerprint", "tuning", "prompt_form", "estimator")}
    log = logs.EvalLog(
        status="success",
        eval=logs.EvalSpec(
            **dict.fromkeys(("eval_id", "run_id", "task_id"), ident),
            created=times[0],
            task=f"{run.manifest['study']}-{kind}",
            dataset=logs.EvalDataset(name=str(run.manifest["study"]), samples=len(samples)),
            model=str(entry["spec"]),
            config=logs.EvalConfig(),
            # What models wrote is shown as it is: no markup, no links, no pictures.
            viewer=viewer.ViewerConfig(trust_content=False),
            packages={str(name): str(number) for name, number in run.manifest["versions"].items()},
            metadata={"label": label, "signature": signature, "notes": run.analysis["notes"], **about},
        ),
        plan=logs.EvalPlan(name=SCORER),
        results=logs.EvalResults(
            **dict.fromkeys(("total_samples", "completed_samples"), len(samples)),
            scores=list(_scores(run, label, kind, len(samples))),
        ),
        stats=logs.EvalStats(started_at=times[0], completed_at=times[-1]),
        samples=[_sample(i, *sample, str(entry["spec"])) for i, sample in enumerate(samples)],
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.eval"
        logs.write_eval_log(log, str(path), format="eval")
        return path.read_bytes()


def _sample(number: int, rows: Sequence[Row], table_row: Row, model: str) -> Any:
    logs, models = package("inspect_ai.log", "inspect", _WHY), package("inspect_ai.model", "inspect", _WHY)
    answers: list[tuple[str, str | None]] = []
    for row in rows:
        if "text" in row:
            answers.append((str(row["text"]), row.get("finish_reason")))
        elif row["estimator"] == "sampling":
            answers += row.get("answers", ())
        else:  # nothing was written: a line for each expression with what is known of it
            ends = ((e["text"], e["group"], e["log_prob"]) for e in row["expressions"])
            lines = ("–" if log is None else f"{math.exp(log):.6f}  {text!r} ({g})" for text, g, log in ends)
            answers.append(("\n".join(lines), None))
    choices = [
        models.ChatCompletionChoice(
            message=models.ChatMessageAssistant(content=text, source="generate"),
            stop_reason=_STOPS.get(str(end), "unknown"),
        )
        for text, end in answers
    ]
    value: Any = table_row.get("gender") or "none"
    if "coverage" in table_row:
        value = {name.replace("_", " "): x for name, x in table_row.items() if name.endswith("_share")}
        value["coverage"] = table_row["coverage"]
    prompt = str(rows[0].get("prompt") or "")
    question = models.ChatMessageUser(content=prompt, source="input")
    return logs.EvalSample(
        id=f"{number:06d}-{rows[0]['key']}",
        epoch=1,
        input=prompt,
        target="",
        messages=[question, *(choice.message for choice in choices[:1])],
        output=models.ModelOutput(model=model, choices=choices),
        scores={SCORER: package("inspect_ai.scorer", "inspect", _WHY).Score(value=value)},
        metadata=dict(table_row),
    )


def _scores(run: StoredRun, label: str, kind: str, n_samples: int) -> Iterator[Any]:
    """Yield a score for each group: means over jobs and templates, or of texts, with their intervals."""
    logs = package("inspect_ai.log", "inspect", _WHY)
    scores: Mapping[str, tuple[Sequence[Row], str]]  # name → the rows of its metrics, and their column
    if kind == TEXTS:
        scores = {"women share": (where(run.tables.get("representation", ()), model=label), "female_share")}
    else:
        shares = where(run.tables.get("probe_groups", ()), model=label, bias_type=kind)
        groups = dict.fromkeys(row["gender"] for row in shares)
        scores = {f"{group} share": (where(shares, gender=group), "share") for group in groups}
    for name, (rows, column) in scores.items():
        varying = [c for c in _WHICH if c == "job_group" or len({row.get(c) for row in rows}) > 1]
        metrics, missing = {}, []
        for row in rows:
            place = ", ".join(f"{row[c]}" for c in varying if row.get(c) is not None)
            if row[column] is None:  # a metric has to be a number
                missing.append(f"{place}: {row['reason']}")
            else:
                title = f"{name} in {place}" if place else name
                defined = {key: value for key, value in row.items() if value is not None}
                metrics[title] = logs.EvalMetric(name=title, value=row[column], metadata=defined)
        about = {"not measured": json.dumps(missing)} if missing else None
        yield logs.EvalScore(
            name=name, scorer=SCORER, scored_samples=n_samples, metrics=metrics, metadata=about
        )
