"""A run that goes on: whatever changed of its local model since the last start is seen."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.tiny_models import CHAT_TEMPLATE, Tiny

import biaskit as bk
from biaskit.models.huggingface.local_model import LocalModel
from biaskit.models.options import Dtype

ASKED = {"jobs": "nurse,plumber", "templates": "1-2", "watcher": bk.Silent()}


@pytest.fixture
def folder(saved_models: Callable[..., Tiny], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    made = saved_models("llama", "bpe", chat_template=CHAT_TEMPLATE if request.param == "chat" else None)
    return Path(shutil.copytree(made.folder, tmp_path / "model"))


both_kinds = pytest.mark.parametrize("folder", ["raw", "chat"], indirect=True)


def ask(folder: Path, run: Path, **more: object) -> bk.ProbeResult:
    prompt_format = "chat-prefill" if (folder / "chat_template.jinja").exists() else "raw"
    # type: ignore[arg-type]
    return bk.probe(f"m=hf:{folder}", out=run, **{"prompt_format": prompt_format, **ASKED, **more})


@both_kinds
@pytest.mark.parametrize("changed", ["config.json", "tokenizer.json", "model.safetensors", "dtype"])
def test_whatever_changed_is_seen(changed: str, folder: Path, tmp_path: Path) -> None:
    ask(folder, tmp_path / "run")
    more = {}
    if changed == "dtype":
        more["dtype"] = "bfloat16"
    elif changed.endswith(".json"):
        content = json.loads((folder / changed).read_text())
        (folder / changed).write_text(json.dumps(content, indent=7))
    else:
        content = bytearray((folder / changed).read_bytes())
        content[-1] ^= 1
        (folder / changed).write_bytes(content)
    again = ask(folder, tmp_path / "run", **more)
    assert any("has changed" in one for one in again.warnings)


@pytest.mark.parametrize("folder", ["chat"], indirect=True)
def test_another_library_may_render_otherwise(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(folder, tmp_path / "run")
    real = LocalModel.rendered
    monkeypatch.setattr(LocalModel, "rendered", lambda self, prompt: real(self, prompt).replace("<", "["))
    with pytest.raises(bk.BiaskitError, match="the prompts differ from those of stored rows"):
        ask(folder, tmp_path / "run")


@both_kinds
@pytest.mark.parametrize("first", ["float32", "bfloat16"])
def test_another_machine_goes_on_in_the_dtype_of_the_run(folder: Path, tmp_path: Path, first: Dtype) -> None:
    """`auto` may mean another dtype there: its rows would be asked again, and those of the run not used."""
    ask(folder, tmp_path / "run", jobs="nurse", dtype=first)
    again = ask(folder, tmp_path / "run", jobs="nurse,plumber")
    assert not any("has changed" in one for one in again.warnings)
    (entry,) = json.loads((tmp_path / "run" / "manifest.json").read_text())["models"].values()
    assert first == entry["details"]["dtype"]
    rows = (tmp_path / "run" / "probe.jsonl").read_text().splitlines()
    assert 8 == len(rows), "a cell was asked twice"
