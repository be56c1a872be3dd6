"""A run's cells as tasks of lm-evaluation-harness: a folder for its `--include_path`.

What the harness does to a task (read in lm_eval 0.4.13: `api/task.py`, `api/model.py`, `tasks/_yaml_loader.py`)
decides the form. `doc_to_text` that names a column gives its text as it is, anything else goes through Jinja.
`target_delimiter` stands before every choice, so it is empty and each choice brings its own space. White space
at the end of a prompt is moved into every choice, so chat prompts hand theirs over in the open
(`lm_eval_utils.process_results`). A model gets the BOS that its tokenizer gives plain text, as ours does.
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
from biaskit.exchange.source import ExportFiles, Source
from biaskit.models.conversation import forms_of
from biaskit.probe.design import ProbeDesign
from biaskit.probe.planned import PlannedCells
from biaskit.probe.shares.cells import extensions_of
from biaskit.probe.stored_design import read_design
from biaskit.provenance import digest
from biaskit.records import NO_INSTRUCTION, Cell, ScoreRequest
from biaskit.runs.collection import StoredRun
from biaskit.runs.store import slug
from biaskit.wording import count

UTILS = Path(__file__).with_name("lm_eval_utils.py")
"""What the tasks call: goes into the folder as it is, and imports nothing of ours."""
Json = dict[str, Any]
_Cells = list[tuple[Cell, Json]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one or several models were asked, as the harness is to ask it."""

    study: str
    models: list[str]
    cells: _Cells
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
        for label, cells, groups in _models(source, run, notes):
            study = str(run.manifest["study"])
            alike = digest([[line for _, line in cells], groups])
            asked = found.setdefault((study, alike), _Asked(study, [], cells, groups))
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
    notes.append(f"lm_eval run --include_path FOLDER --tasks {','.join(tops)} --model hf --model_args pretrained=…")
    return ExportFiles(files, f"{tops[0]}.yaml", tuple(notes))


# --- from a run to lines ----------------------------------------------------------------------------------


def _models(
    source: Source, run: StoredRun, notes: list[str]
) -> Iterator[tuple[str, _Cells, tuple[str, ...]]]:
    """Each model of a run with its cells as lines; what cannot be asked is left out with a note."""
    if run.engine != "probe":
        raise UsageError(
            f"{run.path} is a run of texts, and lm-eval tasks are made of the prober's cells: name such a run."
        )
    design = read_design(run.manifest["resolved"])
    if design.study.word_boundary == "word":
        raise UsageError(
            f"{run.path} asks for the end of each word (word_boundary = word), which lm-evaluation-harness"
            " cannot: probe once more with --set word_boundary=token."
        )
    for label in run.names.values():
        entry = run.manifest["models"][label]
        if entry["prompt_form"] != "raw" and entry["where"] != "local":
            notes.append(f"{label} was asked with messages that its server puts together: no tasks for it")
            continue
        planned = PlannedCells(
            design, label, entry["prompt_form"], entry["fingerprint"], entry.get("estimator", "exact")
        )
        cells = list(_lines(planned, design, _Stored(source, run, planned)))
        if missing := design.n_cells - len(cells):
            notes.append(f"{label}: {count(missing, 'cell')} of a chat form without an answer left out")
        if cells:
            yield label, cells, _metric_names(design.groups)
        if entry.get("estimator", "exact") != "exact":
            notes.append(
                f"{label} answered by another estimator than exact; the harness asks for every log-probability"
            )


class _Stored:
    """What the rows of a model add to its design: rendered chat prompts, and words with their tokens."""

    def __init__(self, source: Source, run: StoredRun, planned: PlannedCells) -> None:
        place_of = {request.key: place for place, request in enumerate(planned.requests)}
        self.prompts: dict[int, str] = {}
        self.words: dict[tuple[str, int], Sequence[Json]] = {}
        for row in source.rows(run):
            if (place := place_of.get(row["key"])) is None:
                continue
            cell = planned.cells[place]
            self.words.setdefault((cell.bias_type, cell.template_id), row["expressions"])
            if cell.prompt_form != "raw":
                self.prompts[place] = row["prompt"]


def _lines(planned: PlannedCells, design: ProbeDesign, stored: _Stored) -> Iterator[tuple[Cell, Json]]:
    names = dict(zip(design.groups, _metric_names(design.groups), strict=True))
    for place, (cell, request) in enumerate(zip(planned.cells, planned.requests, strict=True)):
        prompt = request.prompt.text if cell.prompt_form == "raw" else stored.prompts.get(place)
        if prompt is None:
            continue
        words = stored.words.get((cell.bias_type, cell.template_id)) or _as_listed(request, prompt)
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


def _as_listed(request: ScoreRequest, prompt: str) -> list[Json]:
    return [{"group": e.group, "text": text} for e, text in forms_of(request, prompt)]


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
    for cell, line in asked.cells:
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
