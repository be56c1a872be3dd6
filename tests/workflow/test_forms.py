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
from biaskit.probe.design import build_prompt, resolve_design
from biaskit.study.config import load_probe_study
from biaskit.workflow.forms import FormsResult, _places

Models = Callable[..., Tiny]


@pytest.fixture
def chat(tiny: Models) -> Tiny:
    return tiny("gemma2", "bpe-bos", chat_template=CHAT_TEMPLATE)


def ways(found: FormsResult, bias_type: str = "explicit") -> dict[tuple[str, bool], dict[str, Any]]:
    return {(row["prompt_form"], row["one_word"]): row for row in found.rows if row["bias_type"] == bias_type}


def test_every_way_is_asked_and_the_best_stands_first(chat: Tiny) -> None:
    found = bk.forms(f"hf:{chat.folder}", cells=2)
    forms = ("raw", "chat-prefill", "chat-continue")
    assert {(form, one_word) for form in forms for one_word in (False, True)} == ways(found).keys()
    for bias_type in ("explicit", "implicit"):
        best = max(ways(found, bias_type).values(), key=lambda row: row["coverage"])
        shown = next(row for row in found.document().tables[0].rows if row[0] == bias_type)
        assert (best["prompt_form"], "one word" if best["one_word"] else "as it is") == shown[1:3]


def test_coverage_is_that_of_plain_forwards(chat: Tiny) -> None:
    found = bk.forms(f"hf:{chat.folder}", cells=2)
    design = resolve_design(load_probe_study("occugender", {}))
    coverage = []
    for place in _places(design, 2):
        template, item = design.templates[place // len(design.items)], design.items[place % len(design.items)]
        if template.bias_type == "explicit":
            prompt = build_prompt(design, template, item, None, "plain", "raw").text
            texts = {e.text for e in design.expressions["explicit", template.id]}
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
    design = resolve_design(load_probe_study("occugender", {}))
    n_jobs = len(design.items)
    chosen = _places(design, 20)
    assert 40 == len(chosen) == len(set(chosen))
    explicit = [p for p in chosen if design.templates[p // n_jobs].bias_type == "explicit"]
    assert 20 == len({p // n_jobs for p in explicit}) == len({p % n_jobs for p in explicit})
    assert {10} == set(Counter(design.items[p % n_jobs].group for p in explicit).values())
    one = resolve_design(load_probe_study("occugender", {"jobs.select": "nurse", "templates.select": "1-2"}))
    assert 4 == len(_places(one, 20))


def test_a_server_is_asked_once_for_leave_and_yes_gives_it(console: Cli) -> None:
    with ApiServer() as server:
        asked = ("doctor", f"api:toy@{server.url}", "--forms", "--cells", "1")
        refused = console(*asked)
        assert 2 == refused.code
        examined = server.calls
        assert "prompts go to api:toy@" in refused.err
        assert "--yes" in refused.err
        done = console(*asked, "--yes", "--format", "json")
        assert 0 == done.code, done.err
        assert server.calls > 2 * examined
    rows = json.loads(done.out)["rows"]
    assert rows
    assert all(row["estimator"] in ("echo", "selected-ids", "top-k") for row in rows)


# --- what a run says ----------------------------------------------------------------------------------------

SMALL: dict[str, Any] = {"jobs": "nurse", "templates": "1"}


class Notes(bk.Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize(("there", "said"), [(0.5, True), (0.004, True), (0.0035, False), (0.0005, False)])
def test_a_chat_model_asked_raw_hears_of_a_better_form(
    there: float, said: bool, chat: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coverage = {"raw": 0.002, "chat-prefill": there, "chat-continue": 0.001}
    rows = [{"prompt_form": form, "coverage": value} for form, value in coverage.items()]
    monkeypatch.setattr(import_module("biaskit.workflow.forms"), "coverage_by_form", lambda *_: iter(rows))
    watcher = Notes()
    bk.probe(f"m=hf:{chat.folder}", **SMALL, out=tmp_path / "run", watcher=watcher)
    found = [note for note in watcher.notes if "--prompt-form chat-prefill asks so" in note]
    assert said == bool(found)
    again = Notes()
    bk.probe(f"m=hf:{chat.folder}", **SMALL, out=tmp_path / "run", watcher=again)
    assert [] == again.notes  # it was said when the run began


def test_looking_changes_no_number(chat: Tiny, tmp_path: Path) -> None:
    chosen = bk.probe(
        f"m=hf:{chat.folder}", **SMALL, prompt_form="raw", out=tmp_path / "a", watcher=bk.Silent()
    )
    looked = bk.probe(f"m=hf:{chat.folder}", **SMALL, out=tmp_path / "b", watcher=bk.Silent())
    assert (chosen.path / "tables/probe_cells.csv").read_bytes() == (
        looked.path / "tables/probe_cells.csv"
    ).read_bytes()
