"""A run's cells as tasks of lm-evaluation-harness: a folder for its `--include_path`.

What lm_eval 0.4.13 does to a task (its `api/task.py`, `api/model.py`) decides the form. `doc_to_text` that
names a column gives its text as it is, anything else goes through Jinja. `target_delimiter` stands before
every choice, so it is empty and each choice brings its own space. White space at the end of a prompt is moved
into every choice, so chat prompts hand theirs over in the open (`process_results` in `lm_eval_utils.py`). A
model gets the BOS that its tokenizer gives plain text, as ours does.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biaskit.errors import UsageError
from biaskit.exchange.cells import design_of, rows_of_cells
from biaskit.exchange.source import ExportFiles, Source
from biaskit.models.conversation import forms_of
from biaskit.probe.design import ProbeDesign, cells
from biaskit.probe.shares.cells import extensions_of
from biaskit.provenance import digest
from biaskit.records import NO_INSTRUCTION, Cell, PromptForm, ScoreRequest
from biaskit.runs.collection import StoredRun
from biaskit.runs.manifest import estimator_of
from biaskit.runs.store import slug
from biaskit.wording import count

UTILS = Path(__file__).with_name("lm_eval_utils.py")
"""What the tasks call: goes into the folder as it is, and imports nothing of ours."""
Json = dict[str, Any]
_Lines = list[tuple[Cell, Json]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one or several models were asked, as the harness is to ask it."""

    study: str
    models: list[str]
    lines: _Lines
    groups: tuple[str, ...]


def as_lm_eval(source: Source) -> ExportFiles:
    """A task for each bias type, group of jobs, instruction and setting, and groups of tasks above them.

    Models that were asked the same texts in the same words share their tasks. Raises `UsageError` for runs of
    texts and for cells that the harness cannot ask.
    """
    source.takes_only()
    notes: list[str] = []
    found: dict[tuple[str, str], _Asked] = {}
    for run in source.collection.runs:
        for label, lines, groups in _models(source, run, notes):
            study = str(run.manifest["study"])
            alike = digest([[line for _, line in lines], groups])
            asked = found.setdefault((study, alike), _Asked(study, [], lines, groups))
            asked.models.append(label)
    if not found:
        raise UsageError(f"Nothing is left that lm-evaluation-harness could ask: {'; '.join(notes)}.")
    files: dict[str, bytes] = {"utils.py": UTILS.read_bytes()}
    tops = []
    for (study, _), asked in found.items():
        alone = sum(one.study == study for one in found.values()) == 1
        top = f"biaskit_{slug(study)}" + ("" if alone else f"_{slug(asked.models[0])}")
        files |= _tasks(top, asked)
        tops.append(top)
    notes.append(
        f"lm_eval run --include_path FOLDER --tasks {','.join(tops)} --model hf --model_args pretrained=…"
    )
    return ExportFiles(files, f"{tops[0]}.yaml", tuple(notes))


# --- from a run to lines ----------------------------------------------------------------------------------


def _models(
    source: Source, run: StoredRun, notes: list[str]
) -> Iterator[tuple[str, _Lines, tuple[str, ...]]]:
    """Each model of a run with its cells as lines; what cannot be asked is left out with a note."""
    if run.engine != "probe":
        raise UsageError(
            f"{run.path} is a run of texts, and --to lm-eval makes tasks of a probe's cells: name one."
        )
    design = design_of(run)
    if design.study.word_boundary == "word":
        raise UsageError(
            f"{run.path} asks for the end of each word (word_boundary = word), which lm-evaluation-harness"
            " cannot: probe once more with --set word_boundary=token."
        )
    stored = _Stored(source, run)
    for label, entry in run.manifest["models"].items():
        form = entry["prompt_form"]
        if form != "raw" and entry["where"] != "local":
            notes.append(f"{label} was asked with messages that its server puts together: no tasks for it")
            continue
        lines = list(_lines(label, form, design, stored))
        if missing := design.n_cells - len(lines):
            notes.append(f"{label}: {count(missing, 'cell')} of a chat form without an answer left out")
        if (how := estimator_of(entry)) != "exact":
            notes.append(f"{label} answered by {how}; the harness asks for every log-probability")
        if lines:
            yield label, lines, _metric_names(design.groups)


class _Stored:
    """What the rows of a run add to its design: rendered chat prompts, and words with their tokens."""

    def __init__(self, source: Source, run: StoredRun) -> None:
        self.prompts: dict[Cell, str] = {}
        self.words: dict[tuple[str, str, int], Sequence[Json]] = {}
        for cell, row in rows_of_cells(source, run):
            if row["estimator"] != "sampling":  # whose rows hold words without their space
                self.words.setdefault(_wording(cell), row["expressions"])
            if cell.prompt_form != "raw":
                self.prompts[cell] = row["prompt"]


def _wording(cell: Cell) -> tuple[str, str, int]:
    return cell.model, cell.bias_type, cell.template_id


def _lines(label: str, form: PromptForm, design: ProbeDesign, stored: _Stored) -> Iterator[tuple[Cell, Json]]:
    """Each cell of a model with its line, in study order: jobs run fastest."""
    names = dict(zip(design.groups, _metric_names(design.groups), strict=True))
    for cell, asked, expressions in cells(design, label, form):
        prompt = asked.text if form == "raw" else stored.prompts.get(cell)
        if prompt is None:
            continue
        words = stored.words.get(_wording(cell)) or [
            {"group": e.group, "text": text}
            for e, text in forms_of(ScoreRequest("", asked, expressions), prompt)
        ]
        bare = prompt.rstrip()
        space = prompt[len(bare) :]
        choices = [space + word["text"] for word in words]
        yield (
            cell,
            {
                "template_id": cell.template_id,
                "job": cell.job,
                "prompt": bare,
                "choices": [space, *choices] if space else choices,
                "boundary": bool(space),
                "group_of": [names[word["group"]] for word in words],
                "longer_of": extensions_of(words, design.study.word_boundary),
            },
        )


def _metric_names(groups: Sequence[str]) -> tuple[str, ...]:
    """Groups as the harness's metrics are called: a comma would end the name, a bar the table's column."""
    names: list[str] = []
    for group in groups:
        plain = re.sub(r"[^\w.+-]+", "-", group).strip("-") or "group"
        others = (f"{plain}-{number}" for number in itertools.count(2))
        names.append(next(name for name in itertools.chain([plain], others) if name not in names))
    return tuple(names)


# --- from lines to files ------------------------------------------------------------------------------------


def _tasks(top: str, asked: _Asked) -> dict[str, bytes]:
    """Files of one set of tasks, by name: lines, tasks, and the groups above them."""
    lines: dict[str, list[Json]] = {}
    kinds: dict[str, list[str]] = {}
    for cell, line in asked.lines:
        kind = f"{top}_{cell.bias_type}"
        name = f"{kind}_{slug(cell.job_group)}{_arm(cell)}"
        if name not in lines:
            kinds.setdefault(kind, []).append(name)
        lines.setdefault(name, []).append(line)
    files = {f"{top}.yaml": _group(top, list(kinds))}
    for kind, names in kinds.items():
        files[f"{kind}.yaml"] = _group(kind, names)
    for name, own in lines.items():
        files[f"{name}.jsonl"] = "".join(f"{json.dumps(line)}\n" for line in own).encode("ascii")
        files[f"{name}.yaml"] = _task(name, asked.groups)
    return files


def _arm(cell: Cell) -> str:
    said = "" if cell.instruction_id == NO_INSTRUCTION else f"_instruction-{cell.instruction_id}"
    return said + ("" if cell.setting == "plain" else f"_{cell.setting}")


def _group(name: str, members: Sequence[str]) -> bytes:
    listed = "".join(f"  - {_quoted(member)}\n" for member in members)
    return f"group: {_quoted(name)}\ntask:\n{listed}metadata:\n  version: 1.0\n".encode()


def _task(name: str, groups: Sequence[str]) -> bytes:
    metrics = [*(f"{group}_share" for group in groups), "coverage", *(f"{group}_mass" for group in groups)]
    # A share is neither better nor worse: `null` leaves the harness's arrow out.
    shown = "".join(
        f"  - metric: {_quoted(metric)}\n"
        "    aggregation: !function utils.crossed_mean\n"
        "    higher_is_better: null\n"
        for metric in metrics
    )
    settings: Mapping[str, str] = {
        "task": _quoted(name),
        "custom_dataset": "!function utils.cells",
        "dataset_kwargs": f"{{file: {_quoted(f'{name}.jsonl')}}}",
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "prompt",
        "doc_to_choice": "choices",
        "doc_to_target": "0",
        "target_delimiter": '""',
        "num_fewshot": "0",
        "process_results": "!function utils.process_results",
    }
    head = "".join(f"{key}: {value}\n" for key, value in settings.items())
    return f"{head}metric_list:\n{shown}metadata:\n  version: 1.0\n".encode()


def _quoted(name: str) -> str:
    """A name of letters, digits, dots, hyphens and underscores as YAML."""
    return f'"{name}"'
