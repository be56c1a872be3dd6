"""A run whose rows are all there opens no model; whatever changed since is seen all the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.personas_runs import write_vectors
from fakes.tiny_models import CHAT_TEMPLATE, Tiny

import biaskit as bk
from biaskit.models import spec as specs
from biaskit.models.huggingface import loading, remembered
from biaskit.models.huggingface.loading import Placement
from biaskit.models.huggingface.local_model import LocalModel
from biaskit.models.options import Dtype

ASKED = {"jobs": "nurse,plumber", "templates": "1-2", "watcher": bk.Silent()}
PERSONAS = {
    "max_new_tokens": 4,
    "per_gender": 1,
    "max_draws": 2,
    "occupations": "nurse",
    "watcher": bk.Silent(),
}


@pytest.fixture
def folder(saved_models: Callable[..., Tiny], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    made = saved_models("llama", "bpe", chat_template=CHAT_TEMPLATE if request.param == "chat" else None)
    return Path(shutil.copytree(made.folder, tmp_path / "model"))


both_kinds = pytest.mark.parametrize("folder", ["raw", "chat"], indirect=True)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Labels of the models whose tokenizer was loaded."""
    found: list[str] = []
    real = LocalModel._open

    def noted(self: LocalModel, *args: object, **more: object) -> None:
        found.append(str(more["label"]))
        real(self, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalModel, "_open", noted)
    return found


def ask(folder: Path, run: Path, **more: object) -> bk.ProbeResult:
    form = "chat-prefill" if (folder / "chat_template.jinja").exists() else "raw"
    return bk.probe(f"m=hf:{folder}", out=run, **{"prompt_form": form, **ASKED, **more})  # type: ignore[arg-type]


@both_kinds
def test_a_finished_run_is_not_opened_again(folder: Path, tmp_path: Path, opened: list[str]) -> None:
    first = ask(folder, tmp_path / "run")
    tables = {path.name: path.read_bytes() for path in (first.path / "tables").iterdir()}
    manifest = json.loads((first.path / "manifest.json").read_text())
    assert ["m"] == opened
    again = ask(folder, tmp_path / "run")
    assert ["m"] == opened
    assert tables == {path.name: path.read_bytes() for path in (again.path / "tables").iterdir()}
    assert manifest["models"] == json.loads((again.path / "manifest.json").read_text())["models"]
    ask(folder, tmp_path / "run", templates="1-3")  # something is to be asked
    assert ["m", "m"] == opened


@both_kinds
def test_so_are_texts(folder: Path, tmp_path: Path, opened: list[str]) -> None:
    run, vectors = tmp_path / "run", write_vectors(tmp_path / "vectors.txt")
    for _ in range(2):
        more = {**PERSONAS, "settings": {"vectors": vectors, "clusters": False}}
        bk.personas(f"m=hf:{folder}", out=run, **more)  # type: ignore[arg-type]
    assert ["m"] == opened


@both_kinds
@pytest.mark.parametrize("changed", ["config.json", "tokenizer.json", "model.safetensors", "dtype"])
def test_whatever_changed_is_seen(changed: str, folder: Path, tmp_path: Path, opened: list[str]) -> None:
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
    assert ["m", "m"] == opened
    assert any("is not the model it was" in one for one in again.warnings)


@pytest.mark.parametrize("folder", ["chat"], indirect=True)
def test_another_library_may_render_otherwise(
    folder: Path, tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are held against what it makes of the prompts; a failure leaves no trust behind."""
    ask(folder, tmp_path / "run")
    monkeypatch.setattr(remembered, "rendering_versions", lambda: "transformers 99")
    monkeypatch.setattr(
        "biaskit.models.huggingface.local_model.rendering_versions", lambda: "transformers 99"
    )
    real = LocalModel.rendered
    with monkeypatch.context() as other:
        other.setattr(LocalModel, "rendered", lambda self, prompt: real(self, prompt).replace("<", "["))
        for _ in range(2):
            with pytest.raises(bk.BiaskitError, match="stored rows answer other prompts"):
                ask(folder, tmp_path / "run")
    assert ["m"] * 3 == opened
    ask(folder, tmp_path / "run")
    ask(folder, tmp_path / "run")
    assert ["m"] * 4 == opened


@both_kinds
def test_a_manifest_that_somebody_wrote_is_not_believed(
    folder: Path, tmp_path: Path, opened: list[str]
) -> None:
    ask(folder, tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    content = json.loads(path.read_text())
    content["models"]["m"]["fingerprint"] = "f" * 64
    path.write_text(json.dumps(content))
    assert any("is not the model it was" in one for one in ask(folder, tmp_path / "run").warnings)
    assert ["m", "m"] == opened


@both_kinds
def test_one_that_opens_otherwise_than_it_is_remembered_says_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(folder, tmp_path / "run")
    known = json.loads((tmp_path / "run" / "manifest.json").read_text())["models"]["m"]
    model = specs.open_scorer(f"hf:{folder}", label="m", known=known)
    short = lambda *_, **__: Placement("cpu", "bfloat16")  # noqa: E731  # memory would not do for float32
    monkeypatch.setattr("biaskit.models.huggingface.local_model.place", short)
    with pytest.raises(bk.BiaskitError, match="state --dtype float32"):
        model.plan_scores([])


@both_kinds
@pytest.mark.parametrize("first", ["float32", "bfloat16"])
def test_another_machine_goes_on_in_the_dtype_of_the_run(folder: Path, tmp_path: Path, first: Dtype) -> None:
    """`auto` may mean another dtype there: its rows would be asked again, and those of the run not used."""
    ask(folder, tmp_path / "run", jobs="nurse", dtype=first)
    again = ask(folder, tmp_path / "run", jobs="nurse,plumber")
    assert not any("is not the model it was" in one for one in again.warnings)
    (entry,) = json.loads((tmp_path / "run" / "manifest.json").read_text())["models"].values()
    assert first == entry["details"]["dtype"]
    rows = (tmp_path / "run" / "probe.jsonl").read_text().splitlines()
    assert 8 == len(rows), "a cell was asked twice"


@pytest.mark.process
@pytest.mark.parametrize("folder", ["raw"], indirect=True)
def test_neither_torch_nor_a_tokenizer_is_loaded(folder: Path, tmp_path: Path) -> None:
    ask(folder, tmp_path / "run")
    asked = f"'m=hf:{folder}', prompt_form='raw', jobs='nurse,plumber', templates='1-2'"
    script = (
        "import sys, biaskit as bk\n"
        f"bk.probe({asked}, out={str(tmp_path / 'run')!r}, watcher=bk.Silent())\n"
        "print(sorted({'torch', 'transformers', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
        timeout=120,
    )
    assert "[]" == done.stdout.strip()


def test_what_is_missing_is_said_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(bk.BiaskitError, match="torch is not installed: pip install"):
        loading.find_transformers()
