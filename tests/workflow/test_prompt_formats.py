"""Which question reaches a model: every way is asked, the best stands first, none is chosen."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from fakes.api_server import ApiServer
from fakes.command import Cli
from fakes.tiny_models import CHAT_TEMPLATE, Tiny

import biaskit as bk
from biaskit.exchange.card import card
from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.prompt_formats import DEBIASING_PROMPTS, PromptFormatsResult, _places
from biaskit.measures.probe.prompts import build_prompt, cell_at
from biaskit.measures.probe.study import ProbeStudy
from biaskit.report.findings import cannot_show
from biaskit.report.stored import stored_content
from biaskit.runs.manifest import read_manifest
from biaskit.study.config import load_as

Models = Callable[..., Tiny]


@pytest.fixture
def chat(tiny: Models) -> Tiny:
    return tiny("gemma2", "bpe-bos", chat_template=CHAT_TEMPLATE)


def ways(found: PromptFormatsResult, bias_type: str = "explicit") -> dict[tuple[str, bool], dict[str, Any]]:
    return {
        (row["prompt_format"], row["one_word"]): row for row in found.rows if row["bias_type"] == bias_type
    }


def test_every_way_is_asked_and_the_best_stands_first(chat: Tiny) -> None:
    found = bk.prompt_formats(f"hf:{chat.folder}", prompts=2)
    formats = ("raw", "chat-prefill", "chat-continue")
    assert {(prompt_format, one_word) for prompt_format in formats for one_word in (False, True)} == ways(
        found
    ).keys()
    for bias_type in ("explicit", "implicit"):
        best = max(ways(found, bias_type).values(), key=lambda row: row["coverage"])
        shown = next(row for row in found.document().tables[0].rows if row[0] == bias_type)
        assert (best["prompt_format"], "one word" if best["one_word"] else "as is") == shown[1:3]


def test_coverage_is_that_of_plain_forwards(chat: Tiny) -> None:
    found = bk.prompt_formats(f"hf:{chat.folder}", prompts=2)
    design = resolve(load_as(ProbeStudy, "occugender", {}))
    coverage = []
    for place in _places(design, 2):
        template = design.templates[place // len(design.items)]
        if template.bias_type == "explicit":
            prompt = build_prompt(design, cell_at(design, place, "m", "raw")).text
            texts = {e.text for e in design.target_words["explicit", template.id]}
            logs = {text: chat.oracle.log_prob(prompt, " " + text) for text in texts}
            tokens = {text: chat.oracle.encode(f"{prompt} {text}") for text in texts}
            own = {
                text: math.exp(log)
                - sum(
                    math.exp(logs[other])
                    for other in texts
                    if tokens[other] != tokens[text] and tokens[other][: len(tokens[text])] == tokens[text]
                )
                for text, log in logs.items()
            }
            coverage.append(sum(own.values()))
    assert 2 == len(coverage)
    assert pytest.approx(sum(coverage) / 2, rel=1e-3) == ways(found)["raw", False]["coverage"]


def test_cells_are_spread_over_templates_jobs_and_groups() -> None:
    design = resolve(load_as(ProbeStudy, "occugender", {}))
    n_jobs = len(design.items)
    chosen = _places(design, 20)
    assert 40 == len(chosen) == len(set(chosen))
    explicit = [p for p in chosen if design.templates[p // n_jobs].bias_type == "explicit"]
    assert 20 == len({p // n_jobs for p in explicit}) == len({p % n_jobs for p in explicit})
    assert {10} == set(Counter(design.items[p % n_jobs].group for p in explicit).values())
    one = resolve(load_as(ProbeStudy, "occugender", {"jobs.select": "nurse", "templates.select": "1-2"}))
    assert 4 == len(_places(one, 20))


def test_a_server_is_asked_once_for_leave_and_yes_gives_it(console: Cli) -> None:
    with ApiServer() as server:
        asked = ("doctor", f"api:toy@{server.url}", "--prompt-formats", "--prompts", "1")
        refused = console(*asked)
        assert 2 == refused.code
        examined = server.calls
        assert "prompts will be sent to api:toy@" in refused.err
        assert "--yes" in refused.err
        done = console(*asked, "--yes", "--format", "json")
        assert 0 == done.code, done.err
        assert server.calls > 2 * examined
    rows = json.loads(done.out)["rows"]
    assert rows
    assert all(row["estimator"] in ("echo", "selected-ids", "top-k") for row in rows)


@pytest.mark.parametrize(
    ("ways_asked", "said"),
    [
        ([("raw", False, 0.25, 0.02), ("chat-prefill", False, 0.27, 0.03)], "is raw: `"),
        ([("raw", False, 0.23, 0.02), ("chat-prefill", False, 0.27, 0.03)], "is chat-prefill: `"),
        ([("raw", False, 0.25, 0.02), ("chat-prefill", True, 0.27, 0.03)], "is raw: `"),
        ([("raw", True, 0.27, 0.03), ("chat-prefill", False, 0.25, 0.02)], "is chat-prefill: `"),
        ([("raw", True, 0.4, 0.03), ("chat-prefill", False, 0.2, 0.02)], "is raw, one word: `"),
        ([("raw", False, 0.09, 0.02), ("chat-prefill", False, None, None)], "no format reaches 10 %"),
    ],
)
def test_the_simplest_way_within_the_noise_is_named_and_none_where_all_are_weak(
    ways_asked: list[tuple[str, bool, float | None, float | None]], said: str
) -> None:
    names = ("prompt_format", "one_word", "coverage", "se")
    usual = {"bias_type": "implicit", "estimator": "exact", "n_prompts": 20, "reason": ""}
    rows = tuple({**usual, **dict(zip(names, way, strict=True))} for way in ways_asked)
    (note,) = PromptFormatsResult("m", "hf:m", rows).document().notes
    assert said in note
    assert ("--estimator sampling" in note) is ("no format" in said)
    assert ("--debiasing-prompts corpus:forms/debiasing-prompts.toml" in note) is ("one word" in said)


def test_the_command_for_one_word_is_one_that_runs(chat: Tiny, tmp_path: Path) -> None:
    run = bk.probe(
        f"m=hf:{chat.folder}",
        **SMALL,
        debiasing_prompts=DEBIASING_PROMPTS,
        out=tmp_path / "run",
        watcher=bk.Silent(),
    )
    assert {0, 1} == {*run.groups["debiasing_id"]}


# --- what a run says ----------------------------------------------------------------------------------------

SMALL: dict[str, Any] = {"jobs": "nurse", "templates": "1"}


class Notes(bk.Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize(
    ("here", "there", "said"),
    [
        (0.002, 0.5, True),
        (0.13, 0.27, True),
        (0.13, 0.25, False),
        (0.002, 0.09, False),
        (0.002, 0.0005, False),
    ],
)
def test_a_chat_model_hears_of_a_better_format_for_each_bias_type(
    here: float, there: float, said: bool, chat: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What explicit prompts gain or lose does not hide what implicit ones gain.
    reach = {
        "explicit": {"raw": 0.001, "chat-prefill": 0.9, "chat-continue": 0.001},
        "implicit": {"raw": there, "chat-prefill": here, "chat-continue": 0.001},
    }
    rows = [
        {"bias_type": bias_type, "prompt_format": prompt_format, "coverage": value}
        for bias_type, held in reach.items()
        for prompt_format, value in held.items()
    ]
    monkeypatch.setattr(
        import_module("biaskit.measures.probe.prompt_formats"), "coverage_by_format", lambda *_: iter(rows)
    )
    watcher = Notes()
    asked: dict[str, Any] = {**SMALL, "out": tmp_path / "run"}
    planned = bk.probe(f"m=hf:{chat.folder}", **asked, dry_run=True, watcher=watcher)
    run = bk.probe(f"m=hf:{chat.folder}", **asked, watcher=watcher)
    assert [] == watcher.notes  # nothing among the progress: it is said under the tables
    for warnings in (planned.warnings, run.warnings):
        chosen = [note for note in warnings if "m is a chat model and was queried as one" in note]
        better = [note for note in warnings if 'bias_type="implicit", prompt_format="raw"' in note]
        assert (1, said) == (len(chosen), bool(better))
    assert reach == read_manifest(run.path).models["m"].reach
    again = bk.probe(f"m=hf:{chat.folder}", **asked, watcher=watcher)
    assert run.warnings == again.warnings == bk.load(run.path).warnings


def test_the_advice_stands_under_the_tables_and_a_dry_run_writes_none_of_it(
    chat: Tiny, console: Cli, quick_folder: Path
) -> None:
    asked = ("probe", f"m=hf:{chat.folder}", "--jobs", "nurse", "--templates", "1", "--out", "run")
    planned = console(*asked, "--dry-run")
    assert planned.err.index("prompts, 0 stored") < planned.err.index("m is a chat model")
    assert not Path("run").exists()
    made = console(*asked, "--verbose")
    assert "chat model" not in made.err
    assert made.out.index("Model ") < made.out.index("m is a chat model")


def test_looking_changes_no_number_and_loads_no_second_model(
    chat: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, loaded = import_module("biaskit.models.huggingface.local_model"), []
    load = module.load_model
    monkeypatch.setattr(module, "load_model", lambda *given: loaded.append(given) or load(*given))
    chosen = bk.probe(
        f"m=hf:{chat.folder}", **SMALL, prompt_format="chat-prefill", out=tmp_path / "a", watcher=bk.Silent()
    )
    looked = bk.probe(f"m=hf:{chat.folder}", **SMALL, out=tmp_path / "b", watcher=bk.Silent())
    assert 2 == len(loaded)
    entries = [read_manifest(run.path).models["m"] for run in (chosen, looked)]
    assert entries[0].batch_size == entries[1].batch_size
    assert [False, True] == [bool(entry.reach) for entry in entries]
    assert (chosen.path / "tables/probe_prompts.csv").read_bytes() == (
        looked.path / "tables/probe_prompts.csv"
    ).read_bytes()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"prompt_format": "chat-prefill"}, True),
        ({"prompt_format": "raw"}, False),
        ({"prompt_format": "chat-prefill", "system_prompt": "Be brief."}, False),
    ],
)
def test_a_templates_own_system_prompt_is_said_where_it_was_in_force(
    asked: dict[str, str], said: bool, tiny: Models, tmp_path: Path
) -> None:
    own = "{% if messages[0]['role'] != 'system' %}<|system|>You are Tiny, a *helper*.</s>{% endif %}"
    model = tiny("gemma2", "bpe-bos", chat_template=CHAT_TEMPLATE.replace("{% for", own + "{% for", 1))
    spec = f"hf:{model.folder}"
    run = bk.probe(f"m={spec}", **SMALL, **asked, out=tmp_path / "run", watcher=bk.Silent())
    details = read_manifest(run.path).models["m"].details
    assert "You are Tiny, a *helper*." == details["own_system_prompt"]
    content = stored_content(run.path)
    limits = [limit for limit in cannot_show(content) if "You are Tiny" in limit]
    assert [said] == [bool(limits)]
    assert said == ("You are Tiny, a \\*helper\\*" in card(content))
    assert any("“You are Tiny" in note for note in bk.doctor(spec).document().notes)
