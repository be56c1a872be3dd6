"""What models were asked, as tasks of lm-evaluation-harness (`exchange/lm_eval_task.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from biaskit.common.wording import count
from biaskit.errors import UsageError
from biaskit.exchange.lm_eval_task import Asked, line_of
from biaskit.measures.probe.design import read
from biaskit.measures.probe.prompts import cells
from biaskit.measures.probe.publish import answered_cells
from biaskit.records import NO_DEBIASING, PromptCell, ScoreRequest
from biaskit.runs.collection import StoredRun
from biaskit.runs.store import slug


def tasks(run: StoredRun, notes: list[str]) -> Iterator[Asked]:
    """Yield each model with a task for each bias type, group of jobs, debiasing prompt and context.

    What cannot be asked is left out with a note. Raises `UsageError` where word ends were scored.
    """
    design = read(run.manifest.resolved)
    if design.study.word_boundary == "word":
        raise UsageError(
            f"{run.path} includes the end of each word (word_boundary = word), which lm-evaluation-harness"
            " cannot: probe again with --set word_boundary=token."
        )
    # What the rows add to the design: rendered chat prompts, and words with their tokens.
    prompts: dict[PromptCell, str] = {}
    words_of: dict[tuple[str, str, int], Sequence[dict[str, Any]]] = {}
    for cell, row in answered_cells(run):
        prompts[cell] = row["prompt"]
        if row["estimator"] != "sampling":  # whose rows hold words without their space
            words_of.setdefault((cell.model, cell.bias_type, cell.template_id), row["target_words"])
    for label, entry in run.manifest.models.items():
        prompt_format = entry.prompt_format
        rendered = prompt_format != "raw"  # by a chat template
        if rendered and entry.where != "local":
            notes.append(f"{label}: its server renders the chat messages, so it gets no tasks")
            continue
        asked = Asked(label, {}, design.groups)
        n_missing = 0
        for cell, prompt, target_words in cells(design, label, prompt_format):
            if rendered and cell not in prompts:
                n_missing += 1
                continue
            words = words_of.get((label, cell.bias_type, cell.template_id))
            request = ScoreRequest("", prompt, target_words)
            line = line_of(cell.template_id, cell.job, request, prompts[cell] if rendered else None, words)
            task = f"{cell.bias_type}_{slug(cell.job_group)}"
            task += f"_debiasing-{cell.debiasing_id}" * (cell.debiasing_id != NO_DEBIASING)
            task += f"_{cell.context}" * (cell.context != "plain")
            asked.lines.setdefault(task, []).append(line)
        if n_missing:
            notes.append(f"{label}: {count(n_missing, 'chat prompt')} without an answer left out")
        if asked.lines:
            yield asked
