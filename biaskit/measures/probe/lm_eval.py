"""What models were asked, as tasks of lm-evaluation-harness (`exchange/lm_eval_task.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from biaskit.common.wording import count
from biaskit.errors import UsageError
from biaskit.exchange.lm_eval_task import Asked, Words, line_of, metrics_of, words_of_request
from biaskit.measures.probe.design import read
from biaskit.measures.probe.prompts import cells
from biaskit.measures.probe.publish import answered_cells
from biaskit.measures.probe.shares.cells import extensions_of
from biaskit.records import NO_INSTRUCTION, Cell, ScoreRequest
from biaskit.runs.collection import StoredRun
from biaskit.runs.manifest import estimator_of
from biaskit.runs.store import slug

_PLAIN = "raw"  # the form that no chat template renders


def tasks(run: StoredRun, notes: list[str]) -> Iterator[Asked]:
    """Yield each model with a task for each bias type, group of jobs, instruction and setting.

    What cannot be asked is left out with a note. Raises `UsageError` where word ends were scored.
    """
    design = read(run.manifest["resolved"])
    boundary = design.study.word_boundary
    if boundary == "word":
        raise UsageError(
            f"{run.path} includes the end of each word (word_boundary = word), which lm-evaluation-harness"
            " cannot: probe again with --set word_boundary=token."
        )
    # What the rows add to the design: rendered chat prompts, and words with their tokens.
    prompts: dict[Cell, str] = {}
    words_of: dict[tuple[str, str, int], Words] = {}
    for cell, row in answered_cells(run):
        prompts[cell] = row["prompt"]
        if row["estimator"] != "sampling":  # whose rows hold words without their space
            words_of.setdefault((cell.model, cell.bias_type, cell.template_id), row["expressions"])
    metrics = metrics_of(design.groups)
    metric_of = dict(zip(design.groups, metrics, strict=True))
    for label, entry in run.manifest["models"].items():
        form = entry["prompt_form"]
        if form != _PLAIN and entry["where"] != "local":
            notes.append(f"{label}: its server renders the chat messages, so it gets no tasks")
            continue
        asked = Asked(label, {}, metrics)
        missing = 0
        for cell, unrendered, expressions in cells(design, label, form):
            prompt = unrendered.text if form == _PLAIN else prompts.get(cell)
            if prompt is None:
                missing += 1
                continue
            words = words_of.get((label, cell.bias_type, cell.template_id))
            words = words or words_of_request(ScoreRequest("", unrendered, expressions), prompt)
            texts, group_of = [word["text"] for word in words], [metric_of[word["group"]] for word in words]
            line = line_of(prompt, texts, group_of, extensions_of(words, boundary))
            line = {"template_id": cell.template_id, "job": cell.job, **line}
            asked.lines.setdefault(_task_of(cell), []).append(line)
        if missing:
            notes.append(f"{label}: {count(missing, 'chat prompt')} without an answer left out")
        if (how := estimator_of(entry)) != "exact":
            notes.append(f"{label} was measured by {how}; the harness needs every log-probability")
        if asked.lines:
            yield asked


def _task_of(cell: Cell) -> str:
    name = f"{cell.bias_type}_{slug(cell.job_group)}"
    if cell.instruction_id != NO_INSTRUCTION:
        name += f"_instruction-{cell.instruction_id}"
    return name if cell.setting == "plain" else f"{name}_{cell.setting}"
