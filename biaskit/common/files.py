"""Finds shipped data in a wheel or a checkout, and is the one writer of whole files.

What is written stands beside its place first, is synced and then renamed: a reader sees the old file or the
new one. Two rules hold for every place (SECURITY.md): nothing is written through a link, and a file that
biaskit did not write is never replaced.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import tempfile
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock

from biaskit.common.inputs import Inputs, digest_of_file
from biaskit.errors import RunError, UsageError

_HERE = Path(__file__).resolve().parents[1]

FILES = "files"  # in the record of a set: name → SHA-256 of the file as it was written
SUM = "sum"  # in the record of a set: SHA-256 of all else that stands in it
LOCKED_S = 30.0
"""How long another process may hold a folder before its lock is passed over; it writes for milliseconds."""
_RECORD = Inputs(RunError, most=64 * 2**20)
_IN_PLACE = Inputs(RunError, most=2**30, remedy="Choose another --out.")
_TEMPORARY, _JOURNAL = "tmp", "set"


def data_dir(name: str) -> Path:
    """Find `corpora` or `configs`: inside the installed package, else beside it in a checkout."""
    packaged = _HERE / "_data" / name
    return packaged if packaged.is_dir() else _HERE.parent / name


def toml_beside(module: str) -> dict[str, Any]:
    """Read the TOML file of a module's name that lies beside it, from its `__file__`."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text("utf-8"))


def cache_dir() -> Path:
    """Find the cache: in `$XDG_CACHE_HOME`, else in `~/.cache`. Raises `UsageError` without a home."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "biaskit"
    try:
        return Path.home() / ".cache" / "biaskit"
    except RuntimeError:
        raise UsageError(
            "This user has no home folder: set XDG_CACHE_HOME to a writable folder with 2 GB of free space."
        ) from None


# --- what may be written where -------------------------------------------------------------------------


def may_write(folder: Path) -> bool:
    """Tell whether this user can put files into a folder that is there."""
    return os.access(folder, os.W_OK | os.X_OK)


def refuse_link(path: Path) -> None:
    """Refuse a link, which would lead a write to somebody else's file. Raises `RunError`."""
    if path.is_symlink():
        raise RunError(
            f"{path} is a symbolic link, and biaskit writes through none: remove it, or choose another --out."
        )


def check_folder(path: Path) -> None:
    """Refuse a place of a folder that is a link or anything but a folder. Raises `RunError`."""
    refuse_link(path)
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is not a folder: move it away, or choose another --out.")


def check_replaceable(
    path: Path, what: str, suffixes: Collection[str], is_ours: Callable[[bytes], bool]
) -> None:
    """Refuse to replace a file, named by a user or in a run, unless it is of the same kind and ours.

    `what`: the kind of file in words, such as "page"; `suffixes`: what its name may end in, so that no typing
    error names another kind. Raises `RunError` where the file is another one, a link or a folder.
    """
    if path.suffix.lower() not in suffixes:
        raise RunError(f"{path} is no name for a {what}: let it end in {' or '.join(suffixes)}.")
    check_file(path)
    try:
        path.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise refusal(f"{path} cannot be written", error) from error
    if not is_ours(_IN_PLACE.content(path)):
        raise RunError(f"{path} exists and is not a {what} written by biaskit: choose another --out.")


def check_file(path: Path) -> None:
    """Refuse a place of a file that is a link or anything but a file. Raises `RunError`."""
    refuse_link(path)
    if path.exists() and not path.is_file():
        raise RunError(f"{path} is not a file: move it away, or choose another --out.")


def refusal(fault: str, error: OSError) -> RunError:
    """Make the error of a place that the system refuses: what cannot be done there, and why."""
    return RunError(f"{fault}: {error.strerror or error}. Choose another --out.")


# --- one file ------------------------------------------------------------------------------------------


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside `path`, fsync, rename: a reader sees the old file or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    check_file(path)
    with _written(path, content) as temporary:
        temporary.replace(path)
    sync_directory(path.parent)


def write_or_refuse(path: Path, content: bytes) -> None:
    """Do what `write_atomically` does for a place that a user named. Raises `RunError`."""
    try:
        write_atomically(path, content)
    except OSError as error:
        raise refusal(f"{path} cannot be written", error) from error


@contextlib.contextmanager
def streamed(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes its place at the end, whole or not at all, unless empty. Raises `RunError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_file(path)
        with _temporary(path) as (temporary, file):
            yield file
            if file.tell():
                _finish(temporary, file)
                temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise refusal(f"{path} cannot be written", error) from error


@contextlib.contextmanager
def _written(path: Path, content: bytes, kind: str = _TEMPORARY) -> Iterator[Path]:
    """Write content, synced, to a temporary file beside its place; gone at the end unless it was renamed."""
    with _temporary(path, kind) as (temporary, file):
        file.write(content)
        _finish(temporary, file)
        yield temporary


@contextlib.contextmanager
def _temporary(path: Path, kind: str = _TEMPORARY) -> Iterator[tuple[Path, BinaryIO]]:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.biaskit-", suffix=f".{kind}")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield temporary, file
    finally:
        temporary.unlink(missing_ok=True)


def remove_abandoned(folder: Path, *names: str) -> None:
    """Remove what killed processes left beside these files, or all; another writer would lose its own."""
    for name in names or ("*",):
        pattern = glob.escape(name[:40]) if names else name
        for path in folder.glob(f".{pattern}.biaskit-????????.{_TEMPORARY}"):
            with contextlib.suppress(OSError):  # somebody else's
                path.unlink()


def _finish(temporary: Path, file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()  # some systems rename no open file
    # mkstemp makes files for the owner alone; a result is as readable as any other file.
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o666 & ~mask)


def sync_directory(path: Path) -> None:
    """Make a rename durable; some file systems cannot, and then it is as durable as they are."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# --- several files that belong together ------------------------------------------------------------------


def write_set(
    folder: Path,
    files: Mapping[str, bytes],
    record: str,
    about: Mapping[str, object],
    *,
    gone: Collection[str] = (),
) -> list[str]:
    """Put files of one folder in place together, with a record that names each by its digest.

    All are written and synced beside their places before the first is renamed, and the record comes last:
    after a kill at any moment `read_together` finds the old set, the new one, or files that do not fit.

    `files`: name → content; `about`: what else the record, a JSON file, holds; `gone`: names that are removed
    unless they are among the files.

    Returns a note for each file that somebody else changed or put there: none is replaced, each is kept as
    `NAME.changed-N`. Raises `RunError` for links, `OSError` where nothing can be written.
    """
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*files, record):
        check_file(folder / name)
    with _locked(folder) as alone, contextlib.ExitStack() as stack:
        # A set that a kill interrupted has its record beside its place still: its files are ours too.
        journals = sorted(folder.glob(f".*.biaskit-????????.{_JOURNAL}"))
        last = read_record(folder / record) or {}
        records = (last, *map(read_record, journals))
        ours = {sha256 for written in records for sha256 in files_of(written or {}).values()}
        digests = {name: d for name, d in files_of(last).items() if name not in {*files, *gone}}
        digests |= {name: digest_of(content) for name, content in files.items()}
        temporaries = {
            name: stack.enter_context(_written(folder / name, content)) for name, content in files.items()
        }
        journal = _written(folder / record, _as_record({**about, FILES: digests}), _JOURNAL)
        next_record = stack.enter_context(journal)
        notes = []
        for name in (*files, *(name for name in gone if name not in files)):
            target = folder / name
            if os.path.lexists(target):
                if digest_of_file(target) not in {*ours, digests.get(name)}:
                    notes.append(_keep(target))
                elif name not in files:
                    target.unlink()
            if name in files:
                temporaries[name].replace(target)
        sync_directory(folder)
        if (folder / record).exists() and not is_intact(last):
            notes.append(_keep(folder / record))
        next_record.replace(folder / record)
        sync_directory(folder)
        if alone:  # what is left here is of processes that were killed
            remove_abandoned(folder)
            for path in journals:
                path.unlink(missing_ok=True)
    return notes


def _keep(path: Path) -> str:
    """Move a file aside under the first free NAME.changed-N; returns the note that says so."""
    n = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.changed-{n}")):
        n += 1
    path.rename(aside)
    return f"{path} was edited and is kept as {aside.name}"


def _as_record(content: Mapping[str, object]) -> bytes:
    signed = {**content, SUM: _sum(content)}
    return (json.dumps(signed, indent=1, sort_keys=True) + "\n").encode("ascii")


def _sum(content: Mapping[str, object]) -> str:
    # Through JSON once, so that tuples and numbers of the writer are as the reader finds them.
    rest = {name: value for name, value in content.items() if name != SUM}
    return digest_of(json.dumps(json.loads(json.dumps(rest)), sort_keys=True).encode("ascii"))


def read_record(path: Path) -> dict[str, object] | None:
    """Read a record; None where there is none that can be read."""
    try:
        content = _RECORD.json(path)
    except RunError:
        return None
    return content if isinstance(content, dict) else None


def files_of(record: Mapping[str, object]) -> dict[str, str]:
    """Map name to digest, as a record names the files of its set."""
    files = record.get(FILES)
    return {str(name): str(digest) for name, digest in files.items()} if isinstance(files, dict) else {}


def is_intact(record: Mapping[str, object]) -> bool:
    """Tell whether a record is as biaskit wrote it."""
    return record.get(SUM) == _sum(record)


def read_together(folder: Path, names: Collection[str]) -> dict[str, bytes | None]:
    """Read files of one folder as they are at one moment: name → content, None where it is not there."""
    with _locked(folder):
        return {name: (folder / name).read_bytes() if (folder / name).is_file() else None for name in names}


def digest_of(content: bytes) -> str:
    """Compute the SHA-256 of content, by which a record names a file."""
    return hashlib.sha256(content).hexdigest()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold a folder for the moment of a write or a reading; whether that was possible.

    Where it is not (a folder that others own, a file system without locks) digests alone tell a mixture.
    """
    lock = FileLock(folder.with_name(f".{folder.name}.lock"), fallback_to_soft=False)
    with contextlib.ExitStack() as stack:
        if may_write(folder.parent):
            with contextlib.suppress(OSError):
                stack.enter_context(lock.acquire(timeout=LOCKED_S, poll_interval=0.005))
        yield lock.is_locked
