"""Model folders of strangers: mutated in every file, each is scored or refused in one line (issue 13)."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli
from fakes.tiny_gguf import write_tiny_gguf
from fakes.tiny_models import (
    CHAT_TEMPLATE,
    SHORT,
    Tiny,
    answers,
    expressions,
    raw_requests,
    scorer_for,
    values,
)

from biaskit.errors import BiaskitError, ModelError
from biaskit.models.huggingface import folder as module
from biaskit.models.huggingface.folder import check_folder, check_gguf, file_digest
from biaskit.models.huggingface.generator import TransformersGenerator
from biaskit.models.options import LocalOptions

Models = Callable[..., Tiny]
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 3, 10**200, 1e308, "x", "", [], {}, [1], [None], {"a": []}, "x" * 1_000_000),
    *("\u202e\x1b[2J", [[[[[]]]]], 2**63, 0.5, "0", {"eos_token_id": 10**9}, -(10**30), ["x"] * 10_000),
)
JSON = ("config.json", "tokenizer_config.json", "generation_config.json", "tokenizer.json")


@pytest.fixture
def folder(tiny: Models, tmp_path: Path) -> Path:
    return Path(
        shutil.copytree(tiny("llama", "bpe-bos", chat_template=CHAT_TEMPLATE).folder, tmp_path / "model")
    )


def places(data: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    """Every (container, key) of nested JSON; of long lists the first few."""
    if depth > 6 or not isinstance(data, dict | list):
        return []
    keys = list(data) if isinstance(data, dict) else range(min(len(data), 5))
    found = [(data, key) for key in list(keys)[:60]]
    return found + [place for key in list(keys)[:60] for place in places(data[key], depth + 1)]


def mutate(folder: Path, seed: int) -> str:
    """Change one thing in a model folder, as the seed says; what it was."""
    draw = random.Random(seed)
    if seed % 3:
        name = draw.choice([name for name in JSON if (folder / name).exists()])
        data = json.loads((folder / name).read_text("utf-8"))
        container, key = draw.choice(places(data))
        value = draw.choice(ODD)
        container[key] = value
        (folder / name).write_text(json.dumps(data), "utf-8")
        return f"{name}: {key} = {str(value)[:30]!r}"
    victim = folder / draw.choice(sorted(path.name for path in folder.iterdir()))
    how = draw.choice(sorted(REPLACED))
    content = victim.read_bytes()
    victim.unlink()
    REPLACED[how](victim, content, draw)
    return f"{victim.name} {how}"


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def _changed(content: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(content) or 1)
    return content[:place] + draw.randbytes(8) + content[place + 8 :]


REPLACED: dict[str, Callable[[Path, bytes, random.Random], object]] = {
    "missing": lambda path, content, draw: None,
    "pipe": lambda path, content, draw: os.mkfifo(path),
    "loop": lambda path, content, draw: path.symlink_to(path.name),
    "zero": lambda path, content, draw: path.symlink_to("/dev/zero"),
    "dangling": lambda path, content, draw: path.symlink_to("nowhere"),
    "folder": lambda path, content, draw: path.mkdir(),
    "empty": lambda path, content, draw: path.write_bytes(b""),
    "huge": lambda path, content, draw: _sparse(path, 5 * 2**30),
    "cut": lambda path, content, draw: path.write_bytes(content[: draw.randrange(len(content) or 1)]),
    "noise": lambda path, content, draw: path.write_bytes(draw.randbytes(5000)),
    "bytes": lambda path, content, draw: path.write_bytes(_changed(content, draw)),
    "brackets": lambda path, content, draw: path.write_bytes(b"[" * 300_000),
    "utf-16": lambda path, content, draw: path.write_bytes(content.decode("latin-1").encode("utf-16")),
}


def look(folder: Path) -> dict[tuple[str, str], float]:
    return values(answers(scorer_for(folder), raw_requests([SHORT], expressions("He", "She"))))


@pytest.mark.parametrize(
    "seed", [*range(40), *(pytest.param(n, marks=pytest.mark.slow) for n in range(40, 200))]
)
def test_a_mutated_folder_is_refused_in_a_line_or_scored(tiny: Models, folder: Path, seed: int) -> None:
    before = look(tiny("llama", "bpe-bos", chat_template=CHAT_TEMPLATE).folder)
    what = mutate(folder, seed)
    started = time.monotonic()
    after: dict[tuple[str, str], float] | None
    try:
        after = look(folder)
    except BiaskitError as error:
        after, said = None, str(error)
    if after is None:
        assert len(said) < 1500, what
        assert "\n" not in said, what
        assert "\x1b" not in said, what
    else:
        assert after.keys() == before.keys(), what  # another model, soundly scored
    assert time.monotonic() - started < 20, what


@pytest.mark.parametrize("change", ["pipe", "loop", "zero", "huge", "folder"])
@pytest.mark.parametrize("name", ["config.json", "chat_template.jinja", "generation_config.json"])
def test_what_is_no_regular_file_is_not_read(folder: Path, name: str, change: str) -> None:
    content = (folder / name).read_bytes() if (folder / name).exists() else b"{}"
    (folder / name).unlink(missing_ok=True)
    REPLACED[change](folder / name, content, random.Random(1))
    with pytest.raises(ModelError) as caught:
        look(folder)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_command_over_a_spoilt_folder(folder: Path, console: Cli, tmp_path: Path) -> None:
    (folder / "tokenizer_config.json").unlink()
    os.mkfifo(folder / "tokenizer_config.json")
    said = console("probe", f"hf:{folder}", "--jobs", "nurse", "--out", tmp_path / "run", "--yes")
    assert said.code in (1, 3)
    assert "Traceback" not in said.err
    assert "no regular file" in said.err


def test_a_command_over_a_template_that_does_not_end(folder: Path, console: Cli, tmp_path: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ 10**(10**8) }}")
    started = time.monotonic()
    usual = ("probe", f"hf:{folder}", "--jobs", "nurse", "--out", tmp_path / "run", "--yes")
    said = console(*usual, "--prompt-form", "chat-continue")
    assert 1 == said.code
    assert "did not end within 1 s" in said.err
    assert "Traceback" not in said.err
    assert time.monotonic() - started < 20


# --- one key, two inputs ---------------------------------------------------------------------------------


def test_an_adapter_beside_a_model_is_refused(folder: Path) -> None:
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(ModelError, match="a model and an adapter beside it"):
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


def test_weights_replaced_at_equal_size_and_time_get_another_digest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "model.safetensors"
    header = module.read_safetensors_header(file)
    first = file.stat().st_size - max(tensor["data_offsets"][1] for tensor in header.values())
    # Not even the inode's own time tells, as on a file system that has none.
    monkeypatch.setattr(module, "_times", lambda status: "the same")
    monkeypatch.setattr(module, "WHOLE", 0)
    before, content, status = file_digest(file), file.read_bytes(), file.stat()
    for tensor in header.values():
        start, stop = (first + place for place in tensor["data_offsets"])
        file.write_bytes(content[:start] + bytes(255 - b for b in content[start:stop]) + content[stop:])
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert before != file_digest(file)
    file.write_bytes(content)
    assert before == file_digest(file)


def test_one_changed_number_is_seen_by_the_inodes_time(folder: Path) -> None:
    file = folder / "model.safetensors"
    before, content, status = file_digest(file), bytearray(file.read_bytes()), file.stat()
    content[-301] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert before != file_digest(file)


# --- GGUF ------------------------------------------------------------------------------------------------


def gguf(path: Path, *keys: bytes, tensors: bytes = b"", n_tensors: int = 0, pad: int = 0) -> Path:
    head = b"GGUF" + struct.pack("<IQQ", 3, n_tensors, len(keys))
    path.write_bytes(head + b"".join(keys) + tensors)
    if pad:
        with path.open("ab") as file:
            file.truncate(pad)
    return path


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def array(kind: int, n: int, content: bytes = b"") -> bytes:
    return text(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, kind, n) + content


TENSOR = text(b"w") + struct.pack("<I", 2)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda path: gguf(path, array(4, 30_000_000), pad=2**27), "30000000 entries"),
        (lambda path: gguf(path, array(8, 30_000_000), pad=2**28), "30000000 entries"),
        (lambda path: gguf(path, array(8, 2**63)), "entries"),
        (lambda path: gguf(path, array(9, 3)), "arrays of arrays"),
        (lambda path: gguf(path, text(b"a") + struct.pack("<I", 77)), "unknown type"),
        (lambda path: gguf(path, text(b"a") + struct.pack("<IQ", 8, 2**62)), "a text claims"),
        (lambda path: gguf(path, n_tensors=10**12), "tensors"),
        (lambda path: gguf(path, tensors=TENSOR + struct.pack("<QQ", 2**60, 2**60), n_tensors=1), "numbers"),
        (lambda path: gguf(path, tensors=text(b"w") + struct.pack("<I", 2**31), n_tensors=1), "dimensions"),
        (lambda path: gguf(path, array(8, 5, text(b"a"))), "corrupt"),
        (lambda path: path.write_bytes(b"GGUF") and path, "corrupt"),
        (lambda path: path.write_bytes(b"GGUF" + struct.pack("<IQQ", 99, 0, 0)) and path, "version"),
    ],
)  # fmt: skip
def test_a_gguf_that_claims_too_much_is_refused_before_a_library_reads_it(
    tmp_path: Path, made: Callable[[Path], Path], said: str
) -> None:
    started = time.monotonic()
    with pytest.raises(ModelError) as caught:
        check_gguf(made(tmp_path / "m.gguf"))
    assert said in str(caught.value)
    assert time.monotonic() - started < 2
