"""A run's cells as tasks of lm-evaluation-harness: a folder for its `--include_path`.

What lm_eval 0.4.13 does to a task (its `api/task.py`, `api/model.py`) decides the form. `doc_to_text` that
names a column gives its text as it is, anything else goes through Jinja. `target_delimiter` stands before
every choice, so it is empty and each choice brings its own space. White space at the end of a prompt is moved
into every choice, so chat prompts hand theirs over in the open (`process_results` in `lm_eval_utils.py`). A
model gets the BOS that its tokenizer gives plain text, as ours does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any

from biaskit.common.wording import count
from biaskit.errors import UsageError
from biaskit.exchange.source import ExportFiles, Source
from biaskit.measures.probe.design import read
from biaskit.measures.probe.prompts import cells
from biaskit.measures.probe.shares.cells import extensions_of
from biaskit.models.conversation import forms_of
from biaskit.records import NO_INSTRUCTION, Cell, ScoreRequest
from biaskit.runs.collection import StoredRun
from biaskit.runs.manifest import estimator_of
from biaskit.runs.store import slug

UTILS = Path(__file__).with_name("lm_eval_utils.py")
"""What the tasks call: goes into the folder as it is, and imports nothing of ours."""
_TASK = Template(Path(__file__).with_suffix(".yaml").read_text("ascii"))
_PLAIN = ("raw", "sentence")  # forms that no chat template renders
Lines = dict[str, list[dict[str, Any]]]  # task, without the name of its study → its cells


def as_lm_eval(source: Source) -> ExportFiles:
    """Make a task for each bias type, group of jobs, instruction and setting, and for each study their group.

    Models that were asked the same texts in the same words share their tasks. Raises `UsageError` for runs of
    texts and for cells that the harness cannot ask.
    """
    source.takes_only()
    notes: list[str] = []
    suites: list[tuple[str, str, Lines, list[str]]] = []  # study, model, lines, groups
    for run in source.collection.runs:
        for label, lines, groups in _models(source, run, notes):
            study = str(run.manifest["study"])
            if not any((study, lines, groups) == (suite[0], *suite[2:]) for suite in suites):
                suites.append((study, label, lines, groups))
    if not suites:
        raise UsageError(f"lm-evaluation-harness cannot run any of these prompts: {'; '.join(notes)}.")
    files: dict[str, bytes] = {"utils.py": UTILS.read_bytes()}
    tops = []
    for study, label, lines, groups in suites:
        alone = sum(suite[0] == study for suite in suites) == 1
        top = f"biaskit_{slug(study)}" + ("" if alone else f"_{slug(label)}")
        listed = "".join(f'  - "{top}_{name}"\n' for name in lines)
        files[f"{top}.yaml"] = f'group: "{top}"\ntask:\n{listed}metadata:\n  version: 1.0\n'.encode()
        for name, lines_of_task in lines.items():
            content = "".join(f"{json.dumps(line)}\n" for line in lines_of_task)
            files[f"{top}_{name}.jsonl"] = content.encode("ascii")
            files[f"{top}_{name}.yaml"] = _task(f"{top}_{name}", groups)
        tops.append(top)
    notes.append(
        f"lm_eval run --include_path FOLDER --tasks {','.join(tops)} --model hf --model_args pretrained=…"
    )
    return ExportFiles(files, f"{tops[0]}.yaml", tuple(notes))


def _models(source: Source, run: StoredRun, notes: list[str]) -> Iterator[tuple[str, Lines, list[str]]]:
    """Yield each model of a run with its cells as lines; what cannot be asked is left out with a note."""
    if run.engine != "probe":
        raise UsageError(
            f"{run.path} is a run of texts, and --to lm-eval needs a run of biaskit probe: name one."
        )
    design = read(run.manifest["resolved"])
    boundary = design.study.word_boundary
    if boundary == "word":
        raise UsageError(
            f"{run.path} includes the end of each word (word_boundary = word), which lm-evaluation-harness"
            " cannot: probe again with --set word_boundary=token."
        )
    # What the rows add to the design: rendered chat prompts, and words with their tokens.
    prompts: dict[Cell, str] = {}
    words_of: dict[tuple[str, str, int], Sequence[dict[str, Any]]] = {}
    for cell, row in source.cells(run):
        prompts[cell] = row["prompt"]
        if row["estimator"] != "sampling":  # whose rows hold words without their space
            words_of.setdefault((cell.model, cell.bias_type, cell.template_id), row["expressions"])
    # A comma would end a metric's name, a bar its column of the harness's table.
    groups: list[str] = []
    for group in design.groups:
        plain = re.sub(r"[^\w.+-]+", "-", group).strip("-") or "group"
        groups.append(plain if plain not in groups else f"{plain}-{len(groups) + 1}")
    metric_of = dict(zip(design.groups, groups, strict=True))
    for label, entry in run.manifest["models"].items():
        form = entry["prompt_form"]
        if form not in _PLAIN and entry["where"] != "local":
            notes.append(f"{label}: its server renders the chat messages, so it gets no tasks")
            continue
        lines: Lines = {}
        for cell, unrendered, expressions in cells(design, label, form):
            prompt = unrendered.text if form in _PLAIN else prompts.get(cell)
            if prompt is None:
                continue
            words = words_of.get((label, cell.bias_type, cell.template_id)) or [
                {"group": e.group, "text": text}
                for e, text in forms_of(ScoreRequest("", unrendered, expressions), prompt)
            ]
            bare = prompt.rstrip()
            space = prompt[len(bare) :]
            choices = [space + word["text"] for word in words]
            line = {"template_id": cell.template_id, "job": cell.job, "prompt": bare}
            line |= {"choices": [space, *choices] if space else choices, "boundary": bool(space)}
            line |= {"group_of": [metric_of[word["group"]] for word in words]}
            line |= {"longer_of": extensions_of(words, boundary)}
            arm = "" if cell.instruction_id == NO_INSTRUCTION else f"_instruction-{cell.instruction_id}"
            arm += "" if cell.setting == "plain" else f"_{cell.setting}"
            lines.setdefault(f"{cell.bias_type}_{slug(cell.job_group)}{arm}", []).append(line)
        if missing := design.n_cells - sum(map(len, lines.values())):
            notes.append(f"{label}: {count(missing, 'chat prompt')} without an answer left out")
        if (how := estimator_of(entry)) != "exact":
            notes.append(f"{label} was measured by {how}; the harness needs every log-probability")
        if lines:
            yield label, lines, groups


def _task(name: str, groups: Sequence[str]) -> bytes:
    metrics = [*(f"{group}_share" for group in groups), "coverage", *(f"{group}_mass" for group in groups)]
    # A share is neither better nor worse: `null` leaves the harness's arrow out.
    shown = "".join(
        f'  - metric: "{metric}"\n    aggregation: !function utils.crossed_mean\n    higher_is_better: null\n'
        for metric in metrics
    )
    return _TASK.substitute(name=name, metrics=shown).encode()
