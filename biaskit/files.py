"""Finds shipped data in a wheel or a checkout, and is the one writer of whole files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from biaskit.errors import RunError

_HERE = Path(__file__).resolve().parent


def data_dir(name: str) -> Path:
    """`corpora` or `configs`: inside the installed package, else beside it in a checkout."""
    packaged = _HERE / "_data" / name
    return packaged if packaged.is_dir() else _HERE.parent / name


def cache_dir() -> Path:
    """Where converted models are kept: `$XDG_CACHE_HOME/biaskit`, else `~/.cache/biaskit`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "biaskit"


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside `path`, fsync, rename: a reader sees the old file or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files for the owner alone; a result is as readable as any other file.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_or_refuse(path: Path, content: bytes) -> None:
    """`write_atomically` for a place that a user named. Raises `RunError`."""
    try:
        write_atomically(path, content)
    except OSError as error:
        raise RunError(
            f"{path} cannot be written: {error.strerror or error}. Choose another --out."
        ) from error


def sync_directory(path: Path) -> None:
    """Make a rename durable; some file systems cannot, and then it is as durable as they are."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
