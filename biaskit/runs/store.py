"""A run on disk: append-only rows in the order they came, lock, resume (reference/run-folder)."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from filelock import BaseFileLock, FileLock, Timeout

from biaskit.common.files import refusal, remove_abandoned, sync_directory, write_atomically
from biaskit.common.inputs import Inputs, expanded, unpacked
from biaskit.common.provenance import digest
from biaskit.errors import RunError
from biaskit.measurement import measurements
from biaskit.runs.drift import model_of
from biaskit.runs.manifest import MANIFEST, is_comparison
from biaskit.runs.rows import NoRow, is_unfinished, read_row, row_line
from biaskit.runs.usage import USAGE

V = TypeVar("V")
DEFAULT_PARENT = Path("biaskit-runs")
ROWS_AT_ONCE = 2_000  # rows of one write and one fsync, where many are at hand
LOCK = ".lock"
_ROWS = Inputs(RunError, most=0, remedy="Restore it from a backup.")


def plain_name(label: str) -> str:
    """Make a file name of a label, for every system: letters, digits, dot, dash; labels may share one."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", label).strip("-.")[:60].rstrip("-.") or "x"
    reserved = re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", plain)
    return f"x-{plain}" if reserved else plain


def slug(label: str) -> str:
    """Make a file name of a label, with a digest where labels could collide."""
    plain = plain_name(label)
    return plain if plain == label == plain.lower() else f"{plain}-{digest(label)[:8]}"


def list_runs(parent: Path = DEFAULT_PARENT) -> list[Path]:
    """List the run folders below `parent`, the one written last at the end."""

    def last_write(run: Path) -> float:
        files = [run / name for name in (*rows_names(), MANIFEST)]
        return max((file.stat().st_mtime for file in files if file.exists()), default=0.0)

    runs = [path.parent for path in parent.glob(f"*/{MANIFEST}")]
    return sorted(runs, key=lambda run: (last_write(run), run.name))


def rows_names() -> Iterator[str]:
    """Name the files of rows that a run may have, those beside the main one included."""
    for kind in measurements():
        yield from (f"{name}.jsonl" for name in (kind.name, *kind.beside))


def rows_file(run: Path, kind_name: str) -> Path:
    """Find a run's rows: the plain file, or a compressed one put in its place."""
    plain = run / f"{kind_name}.jsonl"
    packed = plain.with_name(f"{plain.name}.gz")
    return packed if packed.exists() and not plain.exists() else plain


def find_run(named: str | None) -> Path:
    """Find the run that a command means: the path named, or the newest run in this folder."""
    if named is None:
        runs = [path for path in list_runs() if not is_comparison(path)]
        if not runs:
            raise RunError(f"There is no run in {DEFAULT_PARENT}/ yet: give a run's path, or make one.")
        return runs[-1]
    path = expanded(named)
    if not (path / MANIFEST).is_file():
        if not path.exists():
            raise RunError(f"There is no folder {path}. `biaskit runs` lists the runs of this folder.")
        raise RunError(
            f"{path} is not a run: it has no {MANIFEST}. `biaskit runs` lists the runs of this folder."
        )
    return path


# --- rows --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Reading:
    """What reading a row file noticed, filled while it is read."""

    line: int = 0  # of the row at hand
    n_rows: int = 0
    n_twice: int = 0
    n_skipped: int = 0
    n_unfit: int = 0  # rows left out that do not fit their study
    cut_bytes: int = 0  # of an unfinished tail
    good_end: int = 0  # where the last whole line ends
    lacks_line_feed: bool = False  # whether only that is missing of the last line
    notes: list[str] = field(default_factory=list)

    def refuse(self, path: Path, why: str, *, skip_bad: bool) -> None:
        """Refuse the row at hand as not fitting its study: raise `RunError`, or leave it out and count it."""
        if not skip_bad:
            raise RunError(
                f"{path}, line {self.line}: {why}. Restore the file, or leave such rows out with"
                " --set skip_bad_lines=true."
            )
        self.n_unfit += 1


def read_rows(
    path: Path, *, skip_bad: bool = False, reading: Reading | None = None
) -> Iterator[dict[str, Any]]:
    """Yield every row of a file; of two with one key the first.

    An unfinished end, which is what a killed writer leaves, is left out with a note. Any other line that is
    no row, or was changed, is a `RunError` with its number, or left out with `skip_bad`.
    """
    reading = Reading() if reading is None else reading
    seen: set[str] = set()
    for reading.line, line in _lines(path):
        row, ends = None, line.endswith(b"\n")
        try:
            row = read_row(line)
        except NoRow as error:
            if not ends and line.strip() and is_unfinished(line):
                reading.cut_bytes = len(line)
                break
            if line.strip():  # else an editor's empty line
                if not skip_bad:
                    raise RunError(_refused(path, reading, str(error))) from None
                reading.n_skipped += 1
        reading.good_end += len(line)
        reading.lacks_line_feed = not ends
        if row is None:
            continue
        reading.n_rows += 1
        if row["key"] in seen:
            reading.n_twice += 1
            continue
        seen.add(row["key"])
        yield row
    if reading.cut_bytes:
        reading.notes.append(f"{path.name}: an unfinished end of {reading.cut_bytes} bytes was left out")
    if reading.n_skipped:
        reading.notes.append(f"{path.name}: lines left out as no rows or changed: {reading.n_skipped}")
    if reading.n_unfit:
        reading.notes.append(f"{path.name}: rows left out as not fitting the study: {reading.n_unfit}")
    if reading.n_twice:
        reading.notes.append(f"{path.name}: duplicate rows, of which the first counts: {reading.n_twice}")


def _refused(path: Path, reading: Reading, why: str) -> str:
    if reading.n_rows or "checksum" in why:
        return (
            f"{path}, line {reading.line}: it {why}. Restore the file, or leave such lines out with"
            " --set skip_bad_lines=true."
        )
    return f"{path} is not a row file of biaskit. Restore it, or choose another --out. Nothing was changed."


def count_rows(path: Path) -> int:
    """Count the rows of a file; none where there is no file."""
    return sum(1 for _ in read_rows(path, skip_bad=True)) if path.is_file() else 0


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    # Split at "\n" alone: text may hold other line ends, such as U+2028, inside a row.
    with _ROWS.saying(str(path)), unpacked(path) as file:
        yield from enumerate(file, start=1)


@dataclass(slots=True)
class StoredRows(Generic[V]):
    """What the rows of a file come to, by key; the rows themselves are not held."""

    value_of: Callable[[Mapping[str, Any]], V]
    """What a measurement counts in a row. Raises `NoRow` for a row that is not of this measurement."""
    nothing: V  # the value of a row that does not fit: it counts for nothing, but its key is in use
    values: dict[str, V] = field(default_factory=dict)
    unfit: set[str] = field(default_factory=set)
    prompts: dict[str, int] = field(default_factory=dict)  # hash of each prompt as it was sent
    answered_by: dict[str, str] = field(default_factory=dict)  # name of the model that answered

    def add(self, row: Mapping[str, Any], path: Path, reading: Reading, *, skip_bad: bool) -> None:
        """Take in a row. Raises `RunError` where it does not fit, unless `skip_bad`."""
        key = row["key"]
        self.prompts[key] = hash(str(row.get("prompt")))
        self.answered_by[key] = model_of(str(row.get("answered_by")))
        try:
            self.values[key] = self.value_of(row)
        except NoRow as error:
            reading.refuse(path, str(error), skip_bad=skip_bad)
            self.values[key] = self.nothing
            self.unfit.add(key)

    def read(self, path: Path, *, skip_bad: bool) -> StoredRows[V]:
        """Take in a whole file, where there is one. Raises `RunError`."""
        reading = Reading()
        for row in read_rows(path, skip_bad=skip_bad, reading=reading) if path.is_file() else ():
            self.add(row, path, reading, skip_bad=skip_bad)
        return self


@dataclass(eq=False)
class RowWriter:
    """The writer of a run's rows, which holds the run's lock while it is open."""

    run: Path
    measurement: str
    lock: str = "os"
    skip_bad: bool = False
    stored: StoredRows[Any] | None = None  # takes in the rows that are there already
    keys: set[str] = field(default_factory=set, init=False)
    answered: dict[str, set[str]] = field(default_factory=dict, init=False)  # label → who answered its rows
    reading: Reading = field(default_factory=Reading, init=False)

    def __post_init__(self) -> None:
        self.path = self.run / f"{self.measurement}.jsonl"
        self._lock = FileLock(self.run / LOCK, fallback_to_soft=False) if self.lock == "os" else None

    def __enter__(self) -> RowWriter:
        try:
            self.run.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refusal(f"{self.run} cannot be made", error) from error
        if rows_file(self.run, self.measurement) != self.path:
            raise RunError(
                f"{self.path}.gz is compressed: unpack it (gunzip) to add rows, or choose another --out."
            )
        with contextlib.ExitStack() as held:
            if self._lock is not None:
                self._take_lock(self._lock)
                held.callback(self._lock.release)
                remove_abandoned(self.run, MANIFEST, USAGE)
            self._open(held)
            self._held = held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _take_lock(self, lock: BaseFileLock) -> None:
        note = self.run / LOCK
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            holder = ""
            with contextlib.suppress(OSError, UnicodeDecodeError):
                holder = note.read_text(encoding="utf-8").strip()
            raise RunError(
                f"{self.run} is being written by another process{f' ({holder})' if holder else ''}."
                " Wait for it, or choose another --out."
            ) from error
        except (OSError, NotImplementedError) as error:
            not_writable = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC)
            if isinstance(error, OSError) and error.errno in not_writable:
                raise refusal(f"{self.run} cannot be written", error) from error
            raise RunError(
                f"{self.run} cannot be locked ({error}). If this file system has no locks and no other"
                " process writes there, use --set lock=none."
            ) from error
        now = datetime.now(UTC).isoformat(timespec="seconds")
        # For the message above only: the lock is the operating system's and dies with the process.
        with contextlib.suppress(OSError):
            note.write_text(f"process {os.getpid()} on {socket.gethostname()} since {now}", encoding="utf-8")

    def _open(self, held: contextlib.ExitStack) -> None:
        try:
            if self.path.exists():
                for row in read_rows(self.path, skip_bad=self.skip_bad, reading=self.reading):
                    self._remember(row)
                    if self.stored is not None:
                        self.stored.add(row, self.path, self.reading, skip_bad=self.skip_bad)
            if self.reading.cut_bytes:
                self._keep_what_is_cut()
            # One write per append: an unbuffered descriptor in append mode never tears a line apart.
            self._file = held.enter_context(self.path.open("ab", buffering=0))
            if self.reading.cut_bytes:
                self._file.truncate(self.reading.good_end)
            if self.reading.lacks_line_feed:
                self._file.write(b"\n")
            sync_directory(self.run)
        except OSError as error:
            raise refusal(f"{self.path} cannot be opened", error) from error

    def _keep_what_is_cut(self) -> None:
        """Put an unfinished end beside the file, as .cut-1, .cut-2, …, before it is cut."""
        with self.path.open("rb") as file:
            file.seek(self.reading.good_end)
            end = file.read()
        names = (self.path.with_name(f"{self.path.name}.cut-{i}") for i in count(1))
        beside = next(name for name in names if not name.exists())
        write_atomically(beside, end)
        cut_off = f"was cut off and is kept in {beside.name}"
        self.reading.notes[:] = [note.replace("was left out", cut_off) for note in self.reading.notes]

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows in one piece and make them durable: the first of each key, if none is stored."""
        fresh: dict[str, Mapping[str, Any]] = {}
        for row in rows:
            if row["key"] not in self.keys:
                fresh.setdefault(row["key"], row)
        if not fresh:
            return
        content = b"".join(f"{row_line(row)}\n".encode("ascii") for row in fresh.values())
        descriptor = self._file.fileno()
        self._check_still_there(descriptor)
        end = os.fstat(descriptor).st_size
        try:
            if self._file.write(content) != len(content):
                raise OSError(errno.ENOSPC, "No space left on device")
            os.fsync(descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):  # The next start cuts off what this cannot.
                os.ftruncate(descriptor, end)  # back to the last whole row
            raise RunError(
                f"{self.path} cannot be written: {error.strerror or error}. All finished rows are kept;"
                " free some space and rerun the command."
            ) from error
        for row in fresh.values():
            self._remember(row)

    def append_all(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write a stream of rows that are at hand already, many at once."""
        source = iter(rows)
        while piece := list(islice(source, ROWS_AT_ONCE)):
            self.append(piece)

    def _remember(self, row: Mapping[str, Any]) -> None:
        self.keys.add(str(row["key"]))
        if isinstance(label := row.get("model"), str) and isinstance(by := row.get("answered_by"), str):
            self.answered.setdefault(label, set()).add(by)

    def _check_still_there(self, descriptor: int) -> None:
        """Refuse to write to a deleted file, which would take rows silently. Raises `RunError`."""
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), self.path.stat()):
                return
        raise RunError(
            f"{self.path} was removed or replaced during the run. Rerun the command to start over."
        )
