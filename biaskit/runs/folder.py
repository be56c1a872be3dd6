"""Which folder a run may lie in: a new one, an empty one, or one of biaskit's own; never somebody else's.

A run of ours is known by its manifest. Rows, tables or a page without one are somebody else's, or of a run
that lost its manifest: neither is written to.
"""

from __future__ import annotations

from pathlib import Path

from biaskit.common.files import check_folder, refuse_link
from biaskit.errors import RunError
from biaskit.runs.manifest import MANIFEST, read_manifest
from biaskit.runs.store import LOCK, ROWS_FILES
from biaskit.runs.usage import USAGE

FOLDERS = ("tables", "figures", "latex")
PAGE, NOTES = "report.html", "notes.txt"
ROWS = tuple(name for rows in ROWS_FILES.values() for name in (rows, f"{rows}.gz"))


def check_run_folder(run: Path) -> None:
    """Refuse a folder that biaskit must not write a run to, before anything is read, asked or written there.

    Raises `RunError` for a path that is no folder, for rows, tables or a page without our manifest, for a
    manifest that is not ours, and for links and folders in the place of a run's files.
    """
    try:
        if not run.exists():
            refuse_link(run)  # a link that leads nowhere
        elif not run.is_dir():
            raise RunError(f"{run} is not a folder: choose another --out.")
        for name in FOLDERS:
            check_folder(run / name)
        for path in (run / name for name in (MANIFEST, *ROWS, USAGE, LOCK, PAGE, NOTES)):
            refuse_link(path)
            if path.exists() and not path.is_file():
                raise RunError(f"{path} is not a file: move it away, or choose another --out.")
        if (run / MANIFEST).exists():
            read_manifest(run)
            return
        for path in (run / name for name in (*ROWS, *FOLDERS, PAGE)):
            # Empty ones are what a start that was killed early leaves.
            if path.exists() and (any(path.iterdir()) if path.is_dir() else path.stat().st_size):
                raise RunError(
                    f"{path} exists, but {run} has no {MANIFEST}: it is not a run, or lost its manifest."
                    " Choose another --out."
                )
    except OSError as error:
        raise RunError(
            f"{run} cannot be used as a run's folder: {error.strerror or error}. Choose another --out."
        ) from error
