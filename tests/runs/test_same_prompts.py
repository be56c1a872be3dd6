"""One key, two prompts: a stored row whose prompt is rendered otherwise today is named, and not used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.personas_runs import write_vectors

import biaskit as bk
from biaskit.errors import ModelError
from biaskit.models import scripted

pytestmark = pytest.mark.reuse

LINE = {"contains": "", "log_probs": {" He": -1.0, " She": -2.0}, "texts": ["She is kind.", "He is kind."]}
TEXTS = {"clusters": False, "permutations": 19, "vectors": "pretrained:vectors.txt"}
SMALL = {"per_gender": 2, "max_samples": 4, "settings": TEXTS}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.jsonl").write_text(json.dumps(LINE) + "\n", "ascii")
    monkeypatch.chdir(tmp_path)
    write_vectors(Path("vectors.txt"))
    return tmp_path


def probe(jobs: str, **more: Any) -> bk.ProbeResult:
    asked = {"templates": "1", "prompt_format": "chat-prefill", "watcher": bk.Silent()}
    return bk.probe("m=scripted:m.jsonl", jobs=jobs, **asked, **more)


def personas(occupations: str, **more: Any) -> bk.PersonasResult:
    asked = {**SMALL, "watcher": bk.Silent()}
    return bk.personas("m=scripted:m.jsonl", occupations=occupations, **asked, **more)


def render_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another version of a template library might: the request is the same, what is sent is not."""
    before = scripted.rendered_plainly
    monkeypatch.setattr(scripted, "rendered_plainly", lambda prompt: f"<|new|>{before(prompt)}")


KIND_NAMES = [
    (probe, "probe.jsonl", "nurse", "explicit template 1, job 'nurse'"),
    (personas, "personas.jsonl", "nurse", "nurse"),
]


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(("ask", "rows", "one", "named"), KIND_NAMES)
def test_a_run_does_not_go_on_with_rows_that_answer_another_prompt(
    monkeypatch: pytest.MonkeyPatch, ask: Any, rows: str, one: str, named: str, dry_run: bool
) -> None:
    run = ask(one, out="run").path
    before = (run / rows).read_bytes()
    assert ask(one, out="run", dry_run=dry_run).path == run
    render_otherwise(monkeypatch)
    with pytest.raises(ModelError, match="the prompts differ from those of stored rows") as error:
        ask(one, out="run", dry_run=dry_run)
    assert named in str(error.value)
    assert "\n" not in str(error.value)
    assert before == (run / rows).read_bytes()


@pytest.mark.parametrize(("ask", "rows", "one", "named"), KIND_NAMES)
def test_rows_of_another_run_that_answer_another_prompt_are_not_taken_over(
    monkeypatch: pytest.MonkeyPatch, ask: Any, rows: str, one: str, named: str
) -> None:
    ask(one, out="runs/first")
    [plan] = ask(one, out="runs/second", dry_run=True).plans
    assert ("first",) == plan.taken_from
    render_otherwise(monkeypatch)
    made = ask(one, out="runs/second")
    assert [0] == [plan.n_taken for plan in made.plans]
    assert any("were not reused" in note for note in made.warnings)
    found = [json.loads(line)["prompt"] for line in (made.path / rows).read_text("ascii").splitlines()]
    assert found
    assert all(prompt.startswith("<|new|>") for prompt in found)


def test_other_models_of_a_run_go_on(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    run = probe("nurse", out="run").path
    (home / "n.jsonl").write_text(json.dumps({**LINE, "else": -9}) + "\n", "ascii")
    render_otherwise(monkeypatch)
    asked = {"templates": "1", "prompt_format": "chat-prefill", "watcher": bk.Silent()}
    made = bk.probe("m=scripted:m.jsonl", "n=scripted:n.jsonl", jobs="nurse", out="run", **asked)
    assert (run, ["m"]) == (made.path, [*made.failed_models])
    labels = [json.loads(line)["model"] for line in (run / "probe.jsonl").read_text("ascii").splitlines()]
    assert ["m", "m", "n", "n"] == labels


def test_sampled_texts_beside_the_cells_are_not_mixed_either(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"estimator": "sampling", "samples": 2, "continuations": 2}
    run = probe("nurse", out="run", **asked).path
    rows = (run / "continuations.jsonl").read_bytes()
    assert rows.count(b"\n") == 2
    (run / "probe.jsonl").rename(run / "elsewhere")
    render_otherwise(monkeypatch)
    made = probe("nurse", out="run", **asked)
    assert any("no continuations" in note and "prompts differ" in note for note in made.warnings)
    assert rows == (run / "continuations.jsonl").read_bytes()
