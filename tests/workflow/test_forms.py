"""Which question reaches a model: every way is asked, the best is named, none is chosen."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from fakes.api_server import ApiServer
from fakes.command import Cli
from fakes.tiny_models import CHAT_TEMPLATE, CHAT_TEMPLATE_WITHOUT_SYSTEM, Tiny

import biaskit as bk
from biaskit.probe.design import build_prompt, resolve_design
from biaskit.probe.ways import only, some_cells
from biaskit.study.config import load_probe_study
from biaskit.workflow.forms import OWN, FormsResult

Models = Callable[..., Tiny]


@pytest.fixture
def chat(tiny: Models) -> Tiny:
    return tiny("gemma2", "bpe-bos", chat_template=CHAT_TEMPLATE)


def ways(found: FormsResult, bias_type: str = "explicit") -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (row["prompt_form"], row["one_word"]): row
        for row in found.rows
        if (row["bias_type"], row["expressions"]) == (bias_type, OWN)
    }


def test_every_way_is_asked_and_the_best_is_named(chat: Tiny) -> None:
    found = bk.forms(f"hf:{chat.folder}", cells=2)
    asked = ways(found)
    assert {
        *(("raw", ""), ("raw", "prompt"), ("chat-prefill", ""), ("chat-prefill", "prompt")),
        *(("chat-prefill", "system"), ("chat-continue", ""), ("chat-continue", "prompt")),
        ("chat-continue", "system"),
    } == asked.keys()
    for bias_type in ("explicit", "implicit"):
        best = found.best(bias_type)
        assert best is not None
        assert best["coverage"] == max(row["coverage"] for row in ways(found, bias_type).values())
        assert f"--prompt-form {best['prompt_form']}" in found.command(best)
    assert all(0 <= row[name] <= 1 for row in asked.values() for name in ("listed", "unknown", "declines"))
    assert {"mattern-explicit", "pronoun-subject"} <= {row["expressions"] for row in found.rows}


def test_coverage_is_that_of_plain_forwards(chat: Tiny) -> None:
    found = bk.forms(f"hf:{chat.folder}", cells=2)
    design = resolve_design(load_probe_study("occugender", {}))
    coverage = []
    for template, item in some_cells(design, 2):
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
    assert pytest.approx(sum(coverage) / 2, rel=1e-3) == ways(found)["raw", ""]["coverage"]


def test_a_model_without_a_system_role_or_template_has_fewer_ways(tiny: Models) -> None:
    plain = bk.forms(f"hf:{tiny('gemma2', 'bpe-bos').folder}", cells=1)
    assert {("raw", ""), ("raw", "prompt")} == ways(plain).keys()
    silent = tiny("gemma2", "bpe-bos", chat_template=CHAT_TEMPLATE_WITHOUT_SYSTEM)
    assert {"", "prompt"} == {place for _, place in ways(bk.forms(f"hf:{silent.folder}", cells=1))}


def test_cells_are_spread_over_templates_jobs_and_groups() -> None:
    design = resolve_design(load_probe_study("occugender", {}))
    chosen = some_cells(design, 20)
    assert 40 == len(chosen) == len({(t.bias_type, t.id, item.name) for t, item in chosen})
    explicit = [(t, item) for t, item in chosen if t.bias_type == "explicit"]
    assert 20 == len({t.id for t, _ in explicit}) == len({item.name for _, item in explicit})
    assert {10} == {
        sum(item.group == g for _, item in explicit) for g in {item.group for _, item in explicit}
    }
    one = resolve_design(load_probe_study("occugender", {"jobs.select": "nurse", "templates.select": "1-2"}))
    assert 4 == len(some_cells(one, 20))


def test_a_row_by_some_of_its_words_is_that_of_a_study_of_these() -> None:
    row = {
        "expressions": [
            {"group": "a", "text": " He"},
            {"group": "a", "text": "She"},
            {"group": "b", "text": " X"},
        ],
        "counts": {" He": 1, "She": 2, " X": 3},
    }
    kept = only(row, {"She": "f", "X": "d"})
    assert [("f", "She"), ("d", " X")] == [(e["group"], e["text"]) for e in kept["expressions"]]
    assert {"She": 2, " X": 3} == kept["counts"]


def test_the_command_prints_them(chat: Tiny, console: Cli) -> None:
    said = console("doctor", f"hf:{chat.folder}", "--forms", "--cells", "1")
    assert 0 == said.code
    assert "how much each way to ask reaches" in " ".join(said.out.split())
    assert "biaskit probe hf:" in " ".join(said.out.split())
    told = json.loads(
        console("doctor", f"hf:{chat.folder}", "--forms", "--cells", "1", "--format", "json").out
    )
    assert {"explicit", "implicit"} == told["best"].keys()


def test_a_server_is_asked_once_for_leave_and_yes_gives_it(console: Cli) -> None:
    with ApiServer() as server:
        asked = ("doctor", f"api:toy@{server.url}", "--forms", "--cells", "1")
        refused = console(*asked)
        assert 2 == refused.code
        examined = server.calls
        assert f"prompts go to api:toy@{server.url} in " in refused.err
        assert "--yes" in refused.err
        done = console(*asked, "--yes", "--format", "json")
        assert 0 == done.code, done.err
        assert server.calls > 2 * examined
    rows = [row for row in json.loads(done.out)["rows"] if row["expressions"] == OWN]
    assert rows
    assert all(row["estimator"] in ("echo", "selected-ids", "top-k") for row in rows)
    assert all(row["n_texts"] == 4 for row in rows)


def test_the_announced_calls_are_those_that_are_made(console: Cli) -> None:
    with ApiServer() as server:
        asked = ("doctor", f"api:toy@{server.url}", "--forms", "--cells", "1")
        said = console(*asked).err
        examined, chosen = server.calls, _choices(server)
        calls = int(said.split(" calls")[0].split(" in ")[-1].replace(",", ""))
        n_texts = int(said.split(" short texts")[0].split(" and ")[-1].replace(",", ""))
        console(*asked, "--yes")
        drawn = _choices(server) - 3 * chosen  # once to be refused, then for probabilities and for texts
    assert server.calls - 3 * examined <= calls + n_texts
    assert drawn >= n_texts  # several of one prompt share a call


def _choices(server: ApiServer) -> int:
    """Texts and lists that were asked for."""
    return sum((one.body or {}).get("n") or 1 for one in server.requests if one.generates)


def test_a_scripted_model_has_nothing_to_look_for(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"log_probs": {" She": -1.0}}\n', "ascii")
    with pytest.raises(bk.BiaskitError, match="nothing to look for"):
        bk.forms(f"scripted:{tmp_path / 'm.jsonl'}")


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
    monkeypatch.setattr(
        import_module("biaskit.probe.ways"), "_coverage_by_form", lambda *_: iter(coverage.items())
    )
    watcher = Notes()
    bk.probe(f"m=hf:{chat.folder}", **SMALL, out=tmp_path / "run", watcher=watcher)
    found = [note for note in watcher.notes if "--prompt-form chat-prefill asks so" in note]
    assert said == bool(found)
    again = Notes()
    bk.probe(f"m=hf:{chat.folder}", **SMALL, out=tmp_path / "run", watcher=again)
    assert [] == again.notes  # it was said when the run began


def test_a_form_that_was_chosen_is_not_questioned(
    chat: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(import_module("biaskit.workflow.probe"), "better_form", never)
    bk.probe(f"hf:{chat.folder}", **SMALL, prompt_form="raw", out=tmp_path / "run", watcher=bk.Silent())


def test_looking_changes_no_number(chat: Tiny, tmp_path: Path) -> None:
    chosen = bk.probe(
        f"m=hf:{chat.folder}", **SMALL, prompt_form="raw", out=tmp_path / "a", watcher=bk.Silent()
    )
    looked = bk.probe(f"m=hf:{chat.folder}", **SMALL, out=tmp_path / "b", watcher=bk.Silent())
    assert (chosen.path / "tables/probe_cells.csv").read_bytes() == (
        looked.path / "tables/probe_cells.csv"
    ).read_bytes()


def test_a_run_under_a_tenth_ends_with_the_command(tiny: Models, tmp_path: Path) -> None:
    folder = tiny("gemma2", "bpe-bos").folder
    run = bk.probe(f"m=hf:{folder}", **SMALL, out=tmp_path / "run", watcher=bk.Silent())
    low = {bias_type: own["coverage"].mean() < 0.1 for bias_type, own in run.cells.groupby("bias_type")}
    notes = [note for note in run.warnings if f"`biaskit doctor hf:{folder} --forms`" in note]
    assert any(low.values()) == bool(notes)
    for bias_type, is_low in low.items():
        assert is_low == any(f"of {bias_type} prompts" in note for note in notes)
