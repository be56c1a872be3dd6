"""A model folder, checked before anything large is built from it, and the digests of its content."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biaskit.common.files import cache_dir, write_atomically
from biaskit.common.inputs import Inputs, digest_of_file
from biaskit.errors import BiaskitError, ModelError
from biaskit.models.options import LoadedModel

TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.json", "vocab.txt", "merges.txt"),
    *("chat_template.jinja", "chat_template.json"),
)
STORED_TYPES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
ADAPTER, GENERATION = "adapter_config.json", "generation_config.json"
BESIDE_GGUF = frozenset({ADAPTER, GENERATION, "config.json", *TOKENIZER_FILES})
READ_WHOLE = (".json", ".jinja", ".txt", ".model")
MOST_BYTES = 256 * 2**20
"""Largest size of a file that is read as a whole: several times that of the largest known one."""
SIDECAR = Inputs(ModelError, most=MOST_BYTES, remedy="Download the model again.")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder (or one GGUF file in it) that passed the checks, and its digests."""

    path: Path
    gguf_file: str | None
    n_parameters: int
    weights_digest: str
    tokenizer_digest: str
    stored_dtype: str
    generation: Mapping[str, Any] | None = None  # generation_config.json; None: there is none
    dequantised: bool = False  # from GGUF: stored in a wider type than it was published in
    loaded: LoadedModel | None = None  # in memory: nothing is read from `path`, which is its label
    unread: str = ""  # in memory: what no digest tells from another
    adapter: Path | None = None  # of peft, beside the weights


def check_folder(path: Path, *, allow_links: bool = False) -> ModelFolder:
    """Check a folder of safetensors; `allow_links`: for the hub's cache, whose snapshots are links."""
    if not path.is_dir():
        raise ModelError(f"{path}: no such model folder. Give hf:ORG/NAME, or hf:PATH to a saved model.")
    names = check_entries(path, allow_links=allow_links)
    if "config.json" not in names:
        raise ModelError(f"{path} is not a model folder: it has no config.json.")
    if read_object(path / "config.json").get("is_encoder_decoder"):
        raise ModelError(f"{path}: an encoder-decoder model. biaskit scores causal language models.")
    weights = sorted(path.glob("*.safetensors"))
    if not weights:
        pickled = any(name.endswith((".bin", ".pt", ".pth", ".ckpt")) for name in names)
        raise ModelError(
            f"{path}: {'pickled weights are not loaded' if pickled else 'no weights found'}."
            " Only safetensors and GGUF are read: save the model with save_pretrained()."
        )
    numbers: Counter[str] = Counter()
    for file in weights:
        numbers += _numbers_by_type(file)
    main_type = max(numbers, key=lambda name: (numbers[name], name), default="F32")
    tokenizer = [path / name for name in TOKENIZER_FILES if name in names]
    return ModelFolder(
        path=path,
        gguf_file=None,
        n_parameters=numbers.total(),
        weights_digest=combined([path / "config.json", *weights]),
        tokenizer_digest=combined(tokenizer),
        stored_dtype=STORED_TYPES.get(main_type, main_type.lower()),
        generation=_generation_of(path, names),
    )


def check_gguf(path: Path) -> ModelFolder:
    """Check that a file is GGUF; its tokenizer and sizes are inside it."""
    if not path.is_file():
        raise ModelError(f"{path}: no such file. Give gguf:PATH to one .gguf file.")
    with SIDECAR.saying(str(path)), path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"{path} is not a GGUF file: it does not begin with 'GGUF'.")
    # transformers reads other files of the folder too.
    names = check_entries(path.parent, only=BESIDE_GGUF)
    with SIDECAR.saying(str(path)):
        digest = file_digest(path)  # of the content alone: a renamed file is the same model
    return ModelFolder(
        path=path.parent,
        gguf_file=path.name,
        # Quantised files hold at least half a byte per weight: at most two weights a byte.
        n_parameters=2 * path.stat().st_size,
        weights_digest=digest,
        tokenizer_digest=digest,
        stored_dtype="gguf",
        generation=_generation_of(path.parent, names),
        dequantised=True,
    )


def _generation_of(path: Path, names: set[str]) -> dict[str, Any] | None:
    return read_object(path / GENERATION) if GENERATION in names else None


def _numbers_by_type(path: Path) -> Counter[str]:
    """Count the numbers of each type in a safetensors file, whose library checks header and length."""
    from safetensors import SafetensorError, safe_open

    numbers: Counter[str] = Counter()
    try:
        with safe_open(path, framework="np") as file:
            for name in file.keys():  # noqa: SIM118  (no mapping)
                tensor = file.get_slice(name)
                numbers[tensor.get_dtype()] += math.prod(tensor.get_shape())
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"{path} is truncated or corrupt: {error}. Download or save the weights again."
        ) from error
    return numbers


def check_entries(
    path: Path, allow_links: bool = False, *, only: frozenset[str] | None = None, adapters: bool = False
) -> set[str]:
    """Return the names of a model folder's files. Raises `ModelError` for a link out of it or a huge file.

    Also for an adapter, unless `adapters`: transformers loads it where peft is installed, and only there.
    `only`: the names to check; None: all.
    """
    names = set()
    for entry in path.iterdir():
        if entry.is_dir() or (only is not None and entry.name not in only):
            continue
        names.add(entry.name)
        if not entry.is_file():
            raise ModelError(f"{entry} is a pipe, a device or a broken link, not a regular file. Remove it.")
        if not allow_links and not entry.resolve().is_relative_to(path.resolve()):
            raise ModelError(f"{entry} is a symbolic link out of the model folder; copy the file instead.")
        size = entry.stat().st_size
        if entry.suffix in READ_WHOLE and size > MOST_BYTES:
            raise ModelError(
                f"{entry} has {size:,} bytes, more than any file of its kind. Download the model again."
            )
    if ADAPTER in names and not adapters:
        raise ModelError(
            f"{path} has an adapter: hf:BASE+{path} measures its base model with it. To measure the model"
            f" in this folder alone, move {ADAPTER} out."
        )
    return names


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object of a model folder. Raises `ModelError` if the file holds anything else."""
    content = SIDECAR.json(path)
    if not isinstance(content, dict):
        raise ModelError(f"{path} is not a model configuration: it is a {type(content).__name__}.")
    return content


def combined(files: list[Path]) -> str:
    """Digest the names and contents of files."""
    digest = hashlib.sha256()
    for file in files:
        with SIDECAR.saying(str(file)):
            digest.update(f"{file.name}\0{file_digest(file)}\n".encode())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, cached by path, size and both times (else 0.8 s per GB and start)."""
    status = path.stat()
    # The inode's change time cannot be set: a copy that preserves size and modification time still differs.
    stamp = f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}"
    name = hashlib.sha256(stamp.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    cached = cache_dir() / "digests" / name
    with contextlib.suppress(OSError, ValueError):
        if len(digest := cached.read_text("ascii")) == 64:
            return digest
    digest = digest_of_file(path)
    # Without a cache that can be written, the next start hashes again.
    with contextlib.suppress(OSError, BiaskitError):
        write_atomically(cached, digest.encode("ascii"))
    return digest
