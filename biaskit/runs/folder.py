"""Which folder a run may lie in: a new one, an empty one, or one of biaskit's own; never somebody else's.

What tells a run of ours is its manifest. Rows, tables or a page without one are a stranger's, or a run that
lost its manifest: neither is written to.
"""

from __future__ import annotations

from pathlib import Path

from biaskit.errors import RunError
from biaskit.files import check_folder, refuse_link
from biaskit.runs.manifest import MANIFEST, read_manifest
from biaskit.runs.store import ROWS_FILES
from biaskit.runs.usage import USAGE, read_usage

FOLDERS = ("tables", "figures", "latex")
PAGE = "report.html"
LOCK = ".lock"
LOCK_NOTE = b"process "
"""What the note in a lock file begins with."""
ROWS = tuple(name for rows in ROWS_FILES.values() for name in (rows, f"{rows}.gz"))


def check_run_folder(run: Path) -> None:
    """Refuse a folder that biaskit must not write a run to, before anything is read, asked or written there.

    Raises `RunError` for what is no folder, for rows, tables or a page without our manifest, for a manifest
    that is not ours, and for links and folders in the place of a run's files.
    """
    if str(run) == "-":
        raise RunError("--out - is no folder: a run is a folder of files. Give it a name.")
    try:
        _check(run)
    except OSError as error:
        raise RunError(
            f"{run} cannot be used as a run's folder: {error.strerror or error}. Choose another --out."
        ) from error


def _check(run: Path) -> None:
    if not run.exists():
        refuse_link(run)  # one that leads nowhere
        above = next((parent for parent in run.parents if parent.exists()), None)
        if above is not None and not above.is_dir():
            raise RunError(f"{run} cannot be made: {above} is no folder. Choose another --out.")
        return
    if not run.is_dir():
        raise RunError(f"{run} is no folder: choose another --out.")
    if run.name in FOLDERS and (run.parent / MANIFEST).is_file():
        raise RunError(f"{run} is a part of the run {run.parent}: choose another --out.")
    for name in FOLDERS:
        check_folder(run / name)
    for name in (MANIFEST, *ROWS, USAGE, LOCK, PAGE):
        path = run / name
        refuse_link(path)
        if path.exists() and not path.is_file():
            raise RunError(f"{path} is no file: move it away, or choose another --out.")
    for name in (*ROWS, LOCK):
        if (run / name).is_file() and (run / name).stat().st_nlink > 1:
            raise RunError(
                f"{run / name} has a second name elsewhere (a hard link), whose rows would change with it:"
                " copy the run, or choose another --out."
            )
    if (run / MANIFEST).exists():
        read_manifest(run)
    else:
        _refuse_foreign(run)


def _refuse_foreign(run: Path) -> None:
    """A folder without a manifest: what a start that was killed early leaves is ours, all else is not."""
    for name in (*ROWS, *FOLDERS, USAGE, LOCK, PAGE):
        path = run / name
        if path.exists() and not _is_beginning(run, path):
            raise RunError(
                f"{path} is there and {run} has no {MANIFEST}: it is no run, or lost its manifest,"
                " and stays as it is. Choose another --out."
            )


def _is_beginning(run: Path, path: Path) -> bool:
    """Whether a start that was killed before its manifest was written may have left this."""
    if path.is_dir():
        return not any(path.iterdir())
    if path.name == LOCK:
        return not path.stat().st_size or path.read_bytes().startswith(LOCK_NOTE)
    if path.name == USAGE:
        try:
            return all("promised" in line for line in read_usage(run).values())
        except RunError:
            return False
    return path.name in ROWS and not path.stat().st_size
