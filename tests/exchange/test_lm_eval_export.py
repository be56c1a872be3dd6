"""`biaskit export --to lm-eval`: the harness itself runs the folder, and gets our numbers."""

from __future__ import annotations

import ast
import csv
import importlib.util
import json
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.personas_runs import write_texts
from fakes.run_files import table
from fakes.tiny_models import CHAT_TEMPLATE, Tiny
from needs import missing, require_demo_base, require_torch
from places import module_of

import biaskit as bk
from biaskit.exchange.lm_eval_task import UTILS

LOG_PROB, SHARE = 2e-4, 1e-4
NEW_LINE = CHAT_TEMPLATE.replace("'<|assistant|>'", "'<|assistant|>\\n'")
"""As the templates of Llama 3, Qwen and Gemma: what the answer follows is white space."""
Models = Callable[..., Tiny]
Json = dict[str, Any]


def export(run: Path, to: str = "lm-eval", **options: Any) -> Any:
    return bk.export(run, to=to, watcher=bk.Silent(), **options)


def lines(folder: Path) -> Iterator[tuple[str, Json]]:
    """(task, cell) of every cell of an exported folder."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text("ascii").splitlines():
            yield file.stem, json.loads(line)


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Json]:
    """The harness on a folder of tasks, without the network: results, and samples by task."""
    require_torch()
    if importlib.util.find_spec("lm_eval") is None:
        missing('lm-evaluation-harness is not installed: pip install "biaskit[lm-eval]"')
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def run(tasks: Path, model: Path, name: str, **more: Any) -> Json:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # theirs
            import lm_eval
            from lm_eval.models.huggingface import HFLM
            from lm_eval.tasks import TaskManager

            found: Json = lm_eval.simple_evaluate(
                # Its own softmax in float32 is off by 1e-4 a token over the vocabulary of Gemma 3.
                model=HFLM(
                    pretrained=str(model),
                    dtype="float32",
                    softmax_dtype="float64",
                    batch_size=4,
                    device="cpu",
                ),
                tasks=[name],
                task_manager=TaskManager(include_path=str(tasks), include_defaults=False),
                **more,
            )
        return found

    return run


def compare_cells(run: Path, found: Json) -> int:
    """Every sample of the harness against the run's row and its line of probe_prompts.csv; how many."""
    rows = {}
    for line in (run / "probe.jsonl").read_text("ascii").splitlines():
        row = json.loads(line)
        rows[row["prompt"]] = row
    names = ("bias_type", "template_id", "job", "debiasing_id", "context")
    cells = {tuple(cell[name] for name in names): cell for cell in table(run, "probe_prompts")}
    n = 0
    for samples in found["samples"].values():
        for sample in samples:
            prompt, boundary = sample["doc"]["prompt"], sample["doc"]["boundary"]
            space = sample["doc"]["choices"][0] if boundary else ""
            row = rows[prompt + space]
            answered = [log_prob for log_prob, _ in sample["filtered_resps"]]
            before = answered.pop(0) if boundary else 0.0
            for log_prob, target_word in zip(answered, row["target_words"], strict=True):
                assert pytest.approx(target_word["log_prob"], abs=LOG_PROB) == log_prob - before
            cell = cells[tuple(str(row[name]) for name in names)]
            for name in ("male_share", "female_share", "diverse_share", "male_mass", "coverage"):
                assert pytest.approx(float(cell[name]), abs=SHARE) == sample[name], (name, prompt)
            n += 1
    return n


def compare_groups(run: Path, found: Json, top: str) -> int:
    """Every mean of a whole task against probe_groups.csv; how many."""
    n = 0
    for row in table(run, "probe_groups"):
        arm = f"_debiasing-{row['debiasing_id']}" if row["debiasing_id"] != "0" else ""
        arm += "" if row["context"] == "plain" else f"_{row['context']}"
        own = found["results"][f"{top}_{row['bias_type']}_{row['job_group']}{arm}"]
        assert pytest.approx(float(row["share"]), abs=SHARE) == own[f"{row['gender']}_share,none"]
        assert pytest.approx(float(row["coverage"]), abs=SHARE) == own["coverage,none"]
        assert "N/A" == own["coverage_stderr,none"]
        n += 1
    return n


ASKED: dict[str, tuple[str, str, str | None, Json]] = {
    "debiasing prompts and dialogue": (
        *("llama", "bpe-bos", None),
        {"study": "mattern", "templates": "1-2", "debiasing_prompts": "0,2"},
    ),
    "words that begin others": ("llama", "bytes", None, {"templates": "1-2"}),
    "a mark put before the text": ("gemma2", "llama2", None, {"templates": "1"}),
    "chat": ("gpt2", "bpe", CHAT_TEMPLATE, {"templates": "1-2", "prompt_format": "chat-prefill"}),
    "chat, line feed before the answer": (
        *("llama", "bpe-bos", NEW_LINE),
        {"templates": "1-2", "prompt_format": "chat-continue", "system_prompt": "You answer in one word."},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ASKED)
def test_the_harness_gets_our_numbers(
    tiny: Models, tmp_path: Path, harness: Callable[..., Json], case: str
) -> None:
    architecture, tokenizer, template, asked = ASKED[case]
    folder = tiny(architecture, tokenizer, chat_template=template).folder
    run = tmp_path / "run"
    bk.probe(f"tiny=hf:{folder}", jobs="1-2,21-22", out=run, watcher=bk.Silent(), **asked)
    tasks = export(run).path.parent
    top = f"biaskit_{asked.get('study', 'occugender')}"
    if case == "words that begin others":
        assert any(any(line["longer_of"]) for _, line in lines(tasks))
    assert (case == "chat, line feed before the answer") == any(line["boundary"] for _, line in lines(tasks))
    found = harness(tasks, folder, top)
    assert len(table(run, "probe_prompts")) == compare_cells(run, found)
    assert compare_groups(run, found, top)


@pytest.mark.slow
@pytest.mark.real_model
def test_forty_prompts_of_the_demo_model(tmp_path: Path, harness: Callable[..., Json]) -> None:
    require_demo_base()
    from biaskit.models.huggingface.demo import find_demo

    run = tmp_path / "run"
    bk.probe("demo-base", jobs="1-5,21-25", templates="1-2", out=run, watcher=bk.Silent())
    found = harness(export(run).path.parent, find_demo("demo-base").path, "biaskit_occugender")
    assert 40 == compare_cells(run, found)
    assert 12 == compare_groups(run, found, "biaskit_occugender")


# --- without the harness ------------------------------------------------------------------------------------


HOSTILE = (
    "{{ 7 * 7 }} and {% raw %}a [JOB]{% endraw %} {# b #}",
    "'\"`: - [a, *b] &c !d |e >f %g @h #i [JOB]",
    "\u202ea [JOB] \u2028\u2029 \U0001f469\u200d\U0001f52c \xe9e\u0301.",
)


@pytest.fixture
def scripted(tmp_path: Path) -> str:
    model = tmp_path / "m.jsonl"
    words = {" He": -1.2, " She": -1.5, " They": -3.0, " Queen": -2.0, " King": -2.5}
    model.write_text(json.dumps({"log_probs": words}) + "\n")
    return f"scripted:{model}"


def probe(model: str, run: Path, **asked: Any) -> Path:
    return bk.probe(
        model, out=run, watcher=bk.Silent(), **{"jobs": "1-3,21-23", "templates": "1-3", **asked}
    ).path


@pytest.fixture
def hostile(scripted: str, tmp_path: Path) -> Path:
    templates = tmp_path / "templates.csv"
    with templates.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["bias_type", "question", "opening"])
        writer.writerows(["implicit", text, "A [JOB]."] for text in HOSTILE)
    return probe(scripted, tmp_path / "run", templates=str(templates))


@pytest.mark.slow
def test_foreign_text_reaches_the_model_as_it_is(
    hostile: Path, tiny: Models, harness: Callable[..., Json]
) -> None:
    made = export(hostile)
    found = harness(made.path.parent, tiny("gpt2", "bpe").folder, made.path.stem)
    asked = {sample["arguments"][0][0] for own in found["samples"].values() for sample in own}
    rows = [json.loads(line) for line in (hostile / "probe.jsonl").read_text("ascii").splitlines()]
    assert {row["prompt"] for row in rows} == asked
    assert any("{{ 7 * 7 }}" in prompt for prompt in asked)


def test_foreign_text_stands_in_lines_and_in_no_yaml(hostile: Path) -> None:
    made = export(hostile)
    rows = [json.loads(line) for line in (hostile / "probe.jsonl").read_text("ascii").splitlines()]
    assert {row["prompt"] for row in rows} == {line["prompt"] for _, line in lines(made.path.parent)}
    for file in made.path.parent.glob("*.yaml"):
        assert "7 * 7" not in file.read_text("ascii")


def test_a_folder_names_no_path_and_needs_nothing_of_ours(scripted: str, tmp_path: Path) -> None:
    made = export(probe(scripted, tmp_path / "run"))
    for file in made.files:
        assert str(tmp_path) not in file.read_text("utf-8")
    tree = ast.parse((made.path.parent / "utils.py").read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {"json", "math", "pathlib", "typing", "datasets"} == imported


def test_shares_have_their_digits_at_the_least_masses_and_nothing_is_nan() -> None:
    utils = module_of(UTILS)
    doc = {"boundary": False, "group_of": ["f", "m", "f"], "longer_of": [[2], [], []]}
    found = utils.process_results(doc, [(-740.0, False), (-740.0, False), (-741.0, False)])
    assert pytest.approx(0.5) == found["f_share"]
    assert 0.0 < found["f_mass"] < 1e-320
    for nothing in (-1000.0, -math.inf):
        none = utils.process_results(doc, [(nothing, False)] * 3)
        assert 0.0 == none["coverage"]
        assert math.isnan(none["f_share"])
    assert 0.25 == utils.crossed_mean([0.25, math.nan, 0.25])
    assert math.isnan(utils.crossed_mean([math.nan]))


def test_word_ends_cannot_be_asked(tmp_path: Path, tiny: Models) -> None:
    run = probe(f"t=hf:{tiny('gpt2', 'bpe').folder}", tmp_path / "run", settings={"word_boundary": "word"})
    with pytest.raises(bk.BiaskitError, match="word_boundary = word") as told:
        export(run)
    assert "\n" not in str(told.value)


def test_other_estimators_are_named(tmp_path: Path, tiny: Models) -> None:
    model = f"t=hf:{tiny('gpt2', 'bpe').folder}"
    made = export(probe(model, tmp_path / "run", estimator="sampling", jobs="1,21", templates="1", samples=2))
    assert "t was measured by sampling" in " ".join(made.notes)
    assert all(choice.startswith(" ") for _, line in lines(made.path.parent) for choice in line["choices"])


def test_runs_of_texts_are_refused_in_a_line(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "t.csv", [{"text": "She is a nurse.", "job": "nurse"}] * 4)
    run = bk.analyze_texts(
        texts, text="text", occupation="job", out=tmp_path / "run", watcher=bk.Silent()
    ).path
    with pytest.raises(bk.BiaskitError, match="is a run of texts") as told:
        export(run)
    assert "\n" not in str(told.value)
