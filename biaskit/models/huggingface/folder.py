"""A model folder, checked before anything large is built from it. Needs neither torch nor transformers."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biaskit.errors import BiaskitError, ModelError
from biaskit.files import cache_dir, write_atomically
from biaskit.foreign import visible
from biaskit.inputs import Inputs, digest_of_file, opened, parse_json
from biaskit.models.huggingface.gguf_header import check_gguf_header

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
ADAPTER, GENERATION = "adapter_config.json", "generation_config.json"
BESIDE_GGUF = frozenset({ADAPTER, GENERATION, "config.json", *TOKENIZER_FILES})
MOST_BYTES = {
    ".json": 256 * 2**20,
    ".jinja": 10 * 2**20,
    ".txt": 256 * 2**20,
    ".model": 256 * 2**20,
}
"""Suffix → what the largest known file of its kind has several times over."""
SIDECAR = Inputs(ModelError, most=MOST_BYTES[".json"], remedy="Download the model again.")
SIZES = frozenset(
    {
        *("vocab_size", "hidden_size", "n_embd", "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        *("max_position_embeddings", "embedding_size", "word_embed_proj_dim"),
    }
)
"""Keys of a config that are whole numbers wherever they stand."""
_KEPT = Inputs(ModelError, most=1000)
EVERYWHERE, PER_TENSOR, SAMPLE, WHOLE = 1024, 8, 256, 2**20
"""Pieces of a file and of each tensor that are read before a kept digest is believed, their bytes, and the
size up to which a file is read as a whole."""


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
    generation: Mapping[str, Any] | None = None  # generation_config.json; None: there is none
    dequantised: bool = False  # from GGUF: stored wider than it was published


def check_folder(path: Path, *, allow_links: bool = False) -> ModelFolder:
    """Check a folder of safetensors: config, headers, sizes, links.

    `allow_links` is for the hub's cache, whose snapshots are links into its own blobs.
    """
    if not path.is_dir():
        raise ModelError(f"{path}: no such model folder. Give hf:ORG/NAME, or hf:PATH to a saved model.")
    names = check_entries(path, allow_links=allow_links)
    if "config.json" not in names:
        if ADAPTER in names:
            raise ModelError(
                f"{path} holds an adapter, not a model. Merge it into its base model and save that folder."
            )
        raise ModelError(f"{path} is not a model folder: it has no config.json.")
    refuse_adapter(path, names)
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
    generation = path / GENERATION
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
        generation=read_object(generation) if generation.name in names else None,
    )


def check_gguf(path: Path) -> ModelFolder:
    """Check that a file is GGUF; its tokenizer and sizes are inside it."""
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Give gguf:PATH to one .gguf file.")
    with opened(path) as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"{path} is no GGUF file: it does not begin with 'GGUF'.")
    # transformers reads more of the folder than the one file.
    names = check_entries(path.parent, allow_links=False, only=BESIDE_GGUF)
    refuse_adapter(path.parent, names)
    generation = path.parent / GENERATION
    check_gguf_header(path)
    digest = _combined([path])
    # Quantised files hold half a byte and more per weight; two weights a byte is the most there can be.
    return ModelFolder(
        path.parent,
        path.name,
        {},
        2 * path.stat().st_size,
        digest,
        digest,
        "gguf",
        generation=read_object(generation) if generation.name in names else None,
        dequantised=True,
    )


def read_config(path: Path) -> dict[str, Any]:
    """config.json as a mapping; refuses what can never be scored, before any class is built from it."""
    config = read_object(path)
    _check_kinds(path, config)
    if config.get("is_encoder_decoder"):
        raise ModelError(f"{path.parent}: an encoder-decoder model. biaskit scores causal language models.")
    return config


def read_safetensors_header(path: Path) -> dict[str, dict[str, Any]]:
    """Name → {dtype, shape, data_offsets}; the file must be exactly as long as its header says."""
    size = path.stat().st_size
    try:
        with opened(path) as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(size - 8, 100_000_000):
                raise ValueError(f"its header claims {length} bytes in a file of {size}")
            header: dict[str, dict[str, Any]] = parse_json(file.read(length))
        header.pop("__metadata__", None)
        for name, tensor in header.items():
            if not isinstance(tensor["dtype"], str) or not all(
                type(n) is int and n >= 0 for n in tensor["shape"]
            ):
                raise ValueError(f"its entry for {name[:60]!r} has no dtype and shape")
            start, stop = tensor["data_offsets"]
            bits = _bits(tensor["dtype"])
            wanted = math.prod(tensor["shape"]) * bits if max(tensor["shape"], default=0) < 2**48 else -1
            if type(start) is not int or type(stop) is not int or not 0 <= start <= stop:
                raise ValueError(f"its entry for {name[:60]!r} has no place in the file")
            if wanted < 0 or (bits and wanted != 8 * (stop - start)):
                raise ValueError(f"the shape of {name[:60]!r} is not that of its {stop - start} bytes")
        end = max((tensor["data_offsets"][1] for tensor in header.values()), default=0)
        if 8 + length + end != size:
            raise ValueError(f"it is {size} bytes long and should be {8 + length + end}")
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ModelError(
            f"{path} is truncated or corrupt: {error}. Download or save the weights again."
        ) from error
    return header


def _check_index(path: Path, present: set[str]) -> None:
    index = path / "model.safetensors.index.json"
    if not index.exists():
        return
    try:
        named = list(SIDECAR.json(index)["weight_map"].values())
        if not all(isinstance(name, str) for name in named):
            raise TypeError("its weight_map names no files")
        wanted = set(named)
    except (KeyError, AttributeError, TypeError) as error:
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
        stated = text.get("word_embed_proj_dim") or text.get("embedding_size") or width
        narrowest = min(width, stated) if isinstance(stated, int) else width
        if vocabulary * narrowest > n_elements:
            raise ModelError(
                f"{path}/config.json claims a vocabulary of {vocabulary} x {narrowest}, its weight files"
                f" hold {n_elements} numbers: this is not the configuration of these weights."
            )


def check_entries(path: Path, *, allow_links: bool, only: frozenset[str] | None = None) -> set[str]:
    """The names in a model folder: regular files of bearable size and folders, no links out of it.

    A pipe or a device would be read for ever, a loop of links ends in an exception of the system's.
    `only`: names that are looked at.
    """
    inside, names = path.resolve(), set()
    for entry in path.iterdir():
        if only is not None and entry.name not in only:
            continue
        names.add(entry.name)
        try:
            target, status = entry.resolve(strict=True), entry.stat()
        except (OSError, RuntimeError) as error:
            what = "points nowhere or at itself" if entry.is_symlink() else "cannot be read"
            raise ModelError(f"{entry} {what}. Remove it, or copy the file in its place.") from error
        if not allow_links and entry.is_symlink() and not target.is_relative_to(inside):
            raise ModelError(f"{entry} is a symbolic link out of the model folder; copy the file instead.")
        if not os.access(entry, os.R_OK):
            raise ModelError(f"{entry} may not be read by this user. Change its permissions.")
        if stat.S_ISDIR(status.st_mode) and entry.suffix not in (*MOST_BYTES, ".safetensors"):
            continue
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(
                f"{entry} is no regular file but a folder, pipe or device. Remove it from the folder."
            )
        if entry.suffix in MOST_BYTES and status.st_size > MOST_BYTES[entry.suffix]:
            raise ModelError(
                f"{entry} has {status.st_size:,} bytes, more than any file of its kind. Download the model"
                " again."
            )
    return names


def refuse_adapter(path: Path, names: Collection[str]) -> None:
    """Refuse what transformers would load where peft is installed, and leave out where it is not."""
    if ADAPTER in names:
        raise ModelError(
            f"{path} holds a model and an adapter beside it. Merge them and save that folder, or move"
            f" {ADAPTER} out of it to measure the model alone."
        )


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object of a model folder. Raises `ModelError` where it is none."""
    content = SIDECAR.json(path)
    if not isinstance(content, dict):
        raise ModelError(f"{path} is not a model configuration: it holds a {type(content).__name__}.")
    return content


def has_template(folder: ModelFolder) -> bool:
    """Whether a folder seems to hold a chat template; for a GGUF file that is inside it and not known."""
    if (folder.path / "chat_template.jinja").exists():
        return True
    try:
        return b'"chat_template"' in SIDECAR.content(folder.path / "tokenizer_config.json")
    except ModelError:
        return False


def _check_kinds(path: Path, config: Mapping[str, Any]) -> None:
    """Types and sizes on which we, and the libraries, rely before anything is built."""
    stated = config.get("architectures")
    if stated is not None and not (isinstance(stated, list) and all(isinstance(n, str) for n in stated)):
        raise ModelError(f"{path}: architectures is no list of names. Download the model again.")
    for name in ("model_type", "text_config"):
        kind = dict if name == "text_config" else str
        if not isinstance(config.get(name), kind | None):
            raise ModelError(f"{path}: {name} is a {type(config[name]).__name__}. Download the model again.")
    for part in (config, config.get("text_config") or {}):
        for name, value in part.items():
            if name in SIZES and value is not None and not (type(value) is int and abs(value) < 2**31):
                shown = visible(str(value)[:40])
                raise ModelError(f"{path}: {name} is {shown}, which is no size. Download the model again.")


def _bits(dtype: str) -> int:
    """Of one number of a safetensors type, such as BF16 or F8_E4M3; 0 for a type of other measure."""
    found = re.fullmatch(r"(?:BF|F|I|U)(8|16|32|64)(?:_\w+)?", dtype)
    return 8 if dtype == "BOOL" else int(found[1]) if found else 0


def _combined(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file_digest(file)}\n".encode())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, kept beside what shows that it is still the same (0.8 s per GB the first time).

    Path, size and both times are not enough: a copy can carry them over. So the beginning, the end and
    samples of every tensor are read each time.
    """
    status = path.stat()
    stamp = f"{path.resolve()}\0{status.st_size}\0{_times(status)}".encode("utf-8", "surrogateescape")
    name = hashlib.sha256(stamp + _samples(path, status.st_size)).hexdigest()[:32]
    with contextlib.suppress(BiaskitError):
        kept = _KEPT.text(cache_dir() / "digests" / name)
        if len(kept) == 64:
            return kept
    digest = digest_of_file(path)
    # A read-only cache, or a user without a home, only costs the time to hash again.
    with contextlib.suppress(OSError, BiaskitError):
        write_atomically(cache_dir() / "digests" / name, digest.encode("ascii"))
    return digest


def _times(status: os.stat_result) -> str:
    """Of the content and of the inode: only the first can be set back."""
    return f"{status.st_mtime_ns}\0{status.st_ctime_ns}"


def _samples(path: Path, size: int) -> bytes:
    """A digest of a file's ends, of pieces all over it, and of pieces of every tensor of a safetensors."""
    if size <= WHOLE:
        return hashlib.sha256(path.read_bytes()).digest()
    wanted = {(size * i) // EVERYWHERE for i in range(EVERYWHERE)}
    head = min(size, 2**16)
    if path.suffix == ".safetensors":
        with contextlib.suppress(ModelError):
            header = read_safetensors_header(path)
            first = size - max((tensor["data_offsets"][1] for tensor in header.values()), default=0)
            head = first
            for tensor in header.values():
                start, stop = tensor["data_offsets"]
                wanted |= {first + start + (stop - start) * i // PER_TENSOR for i in range(PER_TENSOR)}
                wanted.add(first + max(start, stop - SAMPLE))
    digest = hashlib.sha256()
    with opened(path) as file:
        digest.update(file.read(head))
        for place in sorted(wanted):
            file.seek(place)
            digest.update(file.read(SAMPLE))
        file.seek(max(0, size - 2**16))
        digest.update(file.read())
    return digest.digest()
