"""A model folder, checked before anything large is built from it. Needs neither torch nor transformers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biaskit.errors import ModelError
from biaskit.files import cache_dir, write_atomically

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
)


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder (or one GGUF file in it) that passed the checks, and what identifies it."""

    path: Path
    gguf_file: str | None
    config: Mapping[str, Any]  # config.json as it stands; empty for GGUF
    n_parameters: int
    weights_digest: str
    tokenizer_digest: str
    stored_dtype: str
    dequantised: bool = False  # from GGUF: stored wider than it was published


def check_folder(path: Path, *, allow_links: bool = False) -> ModelFolder:
    """Check a folder of safetensors: config, headers, sizes, links.

    `allow_links` is for the hub's cache, whose snapshots are links into its own blobs.
    """
    if not path.is_dir():
        raise ModelError(f"{path}: no such model folder. Give hf:ORG/NAME, or hf:PATH to a saved model.")
    names = {entry.name for entry in path.iterdir()}
    if "config.json" not in names:
        if "adapter_config.json" in names:
            raise ModelError(
                f"{path} holds an adapter, not a model. Merge it into its base model and save that folder."
            )
        raise ModelError(f"{path} is not a model folder: it has no config.json.")
    if not allow_links:
        _refuse_links_outside(path)
    config = read_config(path / "config.json")
    weights = sorted(path.glob("*.safetensors"))
    if not weights:
        pickled = any(name.endswith((".bin", ".pt", ".pth", ".ckpt")) for name in names)
        raise ModelError(
            f"{path}: {'pickled weights are not loaded' if pickled else 'no weights found'}."
            " Only safetensors and GGUF are read: save the model with save_pretrained()."
        )
    _check_index(path, {w.name for w in weights})
    tensors = [tensor for file in weights for tensor in read_safetensors_header(file).values()]
    held: Counter[str] = Counter()  # numbers of each type
    for tensor in tensors:
        held[tensor["dtype"]] += math.prod(tensor["shape"])
    _check_sizes(path, config, len(tensors), held.total())
    most = max(held, key=lambda name: (held[name], name), default="F32")
    return ModelFolder(
        path=path,
        gguf_file=None,
        config=config,
        n_parameters=held.total(),
        weights_digest=_combined([path / "config.json", *weights]),
        tokenizer_digest=_combined([path / name for name in TOKENIZER_FILES if name in names]),
        stored_dtype={"F32": "float32", "BF16": "bfloat16", "F16": "float16"}.get(most, most.lower()),
    )


def check_gguf(path: Path) -> ModelFolder:
    """Check that a file is GGUF; its tokenizer and sizes are inside it."""
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Give gguf:PATH to one .gguf file.")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"{path} is no GGUF file: it does not begin with 'GGUF'.")
    digest = _combined([path])
    # Quantised files hold half a byte and more per weight; two weights a byte is the most there can be.
    return ModelFolder(
        path.parent, path.name, {}, 2 * path.stat().st_size, digest, digest, "gguf", dequantised=True
    )


def read_config(path: Path) -> dict[str, Any]:
    """config.json as a mapping; refuses what can never be scored, before any class is built from it."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read as JSON: {error}. Download the model again.") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} is not a model configuration: it holds a {type(config).__name__}.")
    if config.get("is_encoder_decoder"):
        raise ModelError(f"{path.parent}: an encoder-decoder model. biaskit scores causal language models.")
    return config


def read_safetensors_header(path: Path) -> dict[str, dict[str, Any]]:
    """Name → {dtype, shape, data_offsets}; the file must be exactly as long as its header says."""
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(size - 8, 100_000_000):
                raise ValueError(f"its header claims {length} bytes in a file of {size}")
            header: dict[str, dict[str, Any]] = json.loads(file.read(length))
        header.pop("__metadata__", None)
        for name, tensor in header.items():
            if not isinstance(tensor["dtype"], str) or not all(
                type(n) is int and n >= 0 for n in tensor["shape"]
            ):
                raise ValueError(f"its entry for {name[:60]!r} has no dtype and shape")
        end = max((tensor["data_offsets"][1] for tensor in header.values()), default=0)
        if 8 + length + end != size:
            raise ValueError(f"it is {size} bytes long and should be {8 + length + end}")
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ModelError(
            f"{path} is truncated or corrupt: {error}. Download or save the weights again."
        ) from error
    return header


def _check_index(path: Path, present: set[str]) -> None:
    index = path / "model.safetensors.index.json"
    if not index.exists():
        return
    try:
        named = list(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        if not all(isinstance(name, str) for name in named):
            raise TypeError("its weight_map names no files")
        wanted = set(named)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise ModelError(f"{index} cannot be read: {error}. Download the model again.") from error
    if missing := sorted(wanted - present):
        raise ModelError(
            f"{path}: {len(missing)} of {len(wanted)} weight files are missing, first {missing[0]}."
            " Download the model again."
        )


def _check_sizes(path: Path, config: Mapping[str, Any], n_tensors: int, n_elements: int) -> None:
    """A config that claims more than its weights hold would be built at random, or never end building."""
    text = config.get("text_config")
    text = text if isinstance(text, dict) else config
    for name in ("num_hidden_layers", "n_layer", "n_layers", "num_layers"):
        layers = text.get(name)
        if isinstance(layers, int) and not 0 < layers <= n_tensors:
            raise ModelError(
                f"{path}/config.json claims {layers} layers ({name}), its weight files hold {n_tensors}"
                " tensors: this is not the configuration of these weights."
            )
    vocabulary, width = text.get("vocab_size"), text.get("hidden_size") or text.get("n_embd")
    if isinstance(vocabulary, int) and isinstance(width, int):
        narrowest = min(width, int(text.get("word_embed_proj_dim") or text.get("embedding_size") or width))
        if vocabulary * narrowest > n_elements:
            raise ModelError(
                f"{path}/config.json claims a vocabulary of {vocabulary} x {narrowest}, its weight files"
                f" hold {n_elements} numbers: this is not the configuration of these weights."
            )


def _refuse_links_outside(path: Path) -> None:
    inside = path.resolve()
    for entry in path.iterdir():
        if entry.is_symlink() and not entry.resolve().is_relative_to(inside):
            raise ModelError(f"{entry} is a symbolic link out of the model folder; copy the file instead.")


def _combined(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file_digest(file)}\n".encode())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, kept by path, size and modification time (0.8 s per GB the first time)."""
    status = path.stat()
    stamp = f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}"
    name = hashlib.sha256(stamp.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    kept = cache_dir() / "digests" / name
    try:
        text = kept.read_text(encoding="ascii")
        if len(text) == 64:
            return text
    except (OSError, ValueError):
        pass
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with contextlib.suppress(OSError):  # A read-only cache only costs the time to hash again.
        write_atomically(kept, digest.encode("ascii"))
    return digest
