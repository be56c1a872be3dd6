"""What a folder held before a start, so that one that comes to nothing leaves it so."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from biaskit.errors import RunError
from biaskit.files import write_atomically
from biaskit.runs.manifest import MANIFEST
from biaskit.runs.store import LOCK, ROWS_FILES
from biaskit.runs.usage import USAGE, any_spent


@dataclass(frozen=True, slots=True)
class Before:
    """The state of a run's folder ahead of a start: which folders and files there were, and the manifest."""

    run: Path
    absent: tuple[Path, ...]  # folders that the start makes, the run's own first
    files: frozenset[str]
    manifest: bytes | None

    @classmethod
    def of(cls, run: Path, engine: str) -> Before:
        """Look at a folder that is there, or is still to be made."""
        absent = tuple(path for path in (run, *run.parents) if not path.exists())
        own = (MANIFEST, USAGE, LOCK, ROWS_FILES[engine])
        files = frozenset(name for name in own if (run / name).exists())
        manifest = (run / MANIFEST).read_bytes() if MANIFEST in files else None
        return cls(run, absent, files, manifest)

    def restore(self, engine: str) -> None:
        """Take back what a start wrote that stored no row; what it spent stays written down.

        The caller holds the run's lock and has stored nothing.
        """
        rows = self.run / ROWS_FILES[engine]
        with contextlib.suppress(OSError, RunError):  # what ended the start is the error to tell
            if USAGE not in self.files and any_spent(self.run):
                return
            if self.manifest is not None and (self.run / MANIFEST).read_bytes() != self.manifest:
                write_atomically(self.run / MANIFEST, self.manifest)
            if rows.is_file() and rows.stat().st_size:
                return
            for name in {MANIFEST, USAGE, rows.name, LOCK} - self.files:
                (self.run / name).unlink(missing_ok=True)

    def remove_folders(self) -> None:
        """Remove the folders that the start made, as far as they are empty."""
        with contextlib.suppress(OSError):
            for path in self.absent:
                path.rmdir()
