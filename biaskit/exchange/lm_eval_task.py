"""A run's prompts as tasks of lm-evaluation-harness: a folder for its `--include_path`.

What lm_eval 0.4.13 does to a task (its `api/task.py`, `api/model.py`) decides the form. `doc_to_text` that
names a column gives its text as it is, anything else goes through Jinja. `target_delimiter` stands before
every choice, so it is empty and each choice brings its own space. White space at the end of a prompt is moved
into every choice, so chat prompts hand theirs over in the open (`process_results` in `lm_eval_utils.py`). A
model gets the BOS that its tokenizer gives plain text, as ours does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from biaskit.errors import UsageError
from biaskit.exchange.source import ExportFiles, Source
from biaskit.measurement import measurement, measurements
from biaskit.models.conversation import forms_of
from biaskit.models.token_trie import shortest_extensions
from biaskit.records import ScoreRequest
from biaskit.runs.collection import StoredRun
from biaskit.runs.store import slug

UTILS = Path(__file__).with_name("lm_eval_utils.py")
"""What the tasks call: goes into the folder as it is, and imports nothing of ours."""
_TASK = Template(Path(__file__).with_suffix(".yaml").read_text("ascii"))


class Asked(NamedTuple):
    """What one model was asked."""

    label: str
    lines: dict[str, list[dict[str, Any]]]  # task, without the name of its study → its cells
    groups: Sequence[str]


def line_of(
    number: int,
    item: str,
    request: ScoreRequest,
    prompt: str | None = None,
    words: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Make a cell of a task: a prompt, and the words that may follow it, each with its space.

    `prompt` and `words`: as a row holds them, if there is one, with the words' tokens.
    """
    prompt = request.prompt.text if prompt is None else prompt
    if words is None:
        words = [{"group": e.group, "text": text} for e, text in forms_of(request, prompt)]
    bare = prompt.rstrip()
    space = prompt[len(bare) :]
    choices = [space + word["text"] for word in words]
    line = {"template_id": number, "job": item, "prompt": bare}
    line |= {"choices": [space, *choices] if space else choices, "boundary": bool(space)}
    return line | {"group_of": [word["group"] for word in words], "longer_of": _longer_of(words)}


def _longer_of(words: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Find for each word the places of those whose tokens go on from its own; none without tokens."""
    for key in ("token_ids", "tokens"):  # a server that tells no ids tells the tokens' texts, or nothing
        tokens: list[tuple[Any, ...]] = [tuple(word.get(key) or ()) for word in words]
        if all(tokens):
            return shortest_extensions(tokens)
    return [[] for _ in words]


def as_lm_eval(source: Source) -> ExportFiles:
    """Make tasks of what every model was asked, and for each study their group.

    Models that were asked the same texts in the same words share their tasks. Raises `UsageError` for runs of
    texts and for cells that the harness cannot ask.
    """
    source.takes_only()
    notes: list[str] = []
    suites: list[tuple[str, Asked]] = []  # the name of a study, and what was asked
    for run in source.collection.runs:
        study = run.study
        for asked in _asked(run, notes):
            how = run.manifest.models[asked.label].estimator_name
            if how != "exact":
                notes.append(f"{asked.label} was measured by {how}; the harness needs every log-probability")
            if not any((study, *asked[1:]) == (other, *same[1:]) for other, same in suites):
                suites.append((study, asked))
    if not suites:
        raise UsageError(f"lm-evaluation-harness cannot run any of these prompts: {'; '.join(notes)}.")
    studies = [study for study, _ in suites]
    files: dict[str, bytes] = {"utils.py": UTILS.read_bytes()}
    tops = []
    for study, asked in suites:
        top = f"biaskit_{slug(study)}"
        if studies.count(study) > 1:
            top += f"_{slug(asked.label)}"
        files |= _suite(top, asked)
        tops.append(top)
    notes.append(
        f"lm_eval run --include_path FOLDER --tasks {','.join(tops)} --model hf --model_args pretrained=…"
    )
    return ExportFiles(files, f"{tops[0]}.yaml", tuple(notes))


def _asked(run: StoredRun, notes: list[str]) -> Iterator[Asked]:
    """Ask the kind of a run for its tasks. Raises `UsageError` where it has none."""
    kind = measurement(run.measurement)
    if kind.file("lm_eval") is None:
        able = " or ".join(f"biaskit {other.name}" for other in measurements() if other.file("lm_eval"))
        what = f"{run.path} is a run of {kind.unit}s"
        raise UsageError(f"{what}, and --to lm-eval needs a run of {able}: name one.")
    yield from kind.tasks(run, notes)


def _suite(top: str, asked: Asked) -> dict[str, bytes]:
    listed = "".join(f'  - "{top}_{name}"\n' for name in asked.lines)
    files = {f"{top}.yaml": f'group: "{top}"\ntask:\n{listed}metadata:\n  version: 1.0\n'.encode()}
    metrics: list[str] = []
    for group in asked.groups:  # a comma would end a metric's name, a bar its column
        plain = re.sub(r"[^\w.+-]+", "-", group).strip("-") or "group"
        metrics.append(plain if plain not in metrics else f"{plain}-{len(metrics) + 1}")
    metric_of = dict(zip(asked.groups, metrics, strict=True))
    for name, lines in asked.lines.items():
        content = ""
        for line in lines:
            group_of = [metric_of[group] for group in line["group_of"]]
            content += f"{json.dumps({**line, 'group_of': group_of})}\n"
        files[f"{top}_{name}.jsonl"] = content.encode("ascii")
        files[f"{top}_{name}.yaml"] = _task(f"{top}_{name}", metrics)
    return files


def _task(name: str, groups: Sequence[str]) -> bytes:
    metrics = [*(f"{group}_share" for group in groups), "coverage", *(f"{group}_mass" for group in groups)]
    # A share is neither better nor worse: `null` leaves the harness's arrow out.
    shown = "".join(
        f'  - metric: "{metric}"\n    aggregation: !function utils.crossed_mean\n    higher_is_better: null\n'
        for metric in metrics
    )
    return _TASK.substitute(name=name, metrics=shown).encode()
