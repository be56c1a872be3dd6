"""A run on disk: manifest, append-only rows, lock, resume (docs/reading.md#run-folder).

Rows lie in whatever order they came; a study finds those that it needs.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import socket
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from biaskit.errors import RunError
from biaskit.files import sync_directory, write_atomically
from biaskit.inputs import Inputs, expanded, unpacked
from biaskit.provenance import digest
from biaskit.runs.manifest import MANIFEST, is_comparison
from biaskit.runs.rows import NoRow, is_unfinished, looks_like, read_row, row_line

DEFAULT_PARENT = Path("biaskit-runs")
ROWS_AT_ONCE = 2_000
"""Rows that are at hand in one write and one fsync."""
LOCK = ".lock"
_ROWS = Inputs(RunError, most=0, remedy="Restore it from a backup.")
NAMES_MODEL = {"personas": "model"}
"""The column by which rows of an engine are found for a model, where it is no `model_key`."""
ROWS_FILES = {"probe": "probe.jsonl", "personas": "generations.jsonl", "continuations": "continuations.jsonl"}


def run_folder(engine: str, study: str, asked: object, out: str | Path | None = None) -> Path:
    """The folder named, else `biaskit-runs/<engine>-<study>-<8 hex>`, which the same question finds again."""
    return DEFAULT_PARENT / f"{engine}-{slug(study)}-{digest(asked)[:8]}" if out is None else expanded(out)


def slug(label: str) -> str:
    """A file name for any label: letters, digits, dot, dash; a digest tells apart what that would merge."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", label).strip("-.")[:60]
    reserved = re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", plain) is not None
    if plain == label and plain == plain.lower() and plain and not reserved:
        return plain
    return f"{'x-' if reserved else ''}{plain or 'x'}-{digest(label)[:8]}"


def list_runs(parent: Path = DEFAULT_PARENT) -> list[Path]:
    """Run folders below `parent`, newest last written last."""
    found = [path.parent for path in parent.glob(f"*/{MANIFEST}")]
    return sorted(found, key=lambda path: (_last_write(path), path.name))


def _last_write(path: Path) -> float:
    times = [
        (path / name).stat().st_mtime for name in (*ROWS_FILES.values(), MANIFEST) if (path / name).exists()
    ]
    return max(times, default=0.0)


def rows_file(run: Path, engine: str) -> Path:
    """Where a run's rows are: the plain file, or a compressed one put in its place."""
    plain = run / ROWS_FILES[engine]
    packed = plain.with_name(f"{plain.name}.gz")
    return packed if packed.exists() and not plain.exists() else plain


def find_run(given: str | None) -> Path:
    """The run a command means: the path given, or the newest run of an engine in this folder."""
    if given is None:
        runs = [path for path in list_runs() if not is_comparison(path)]
        if not runs:
            raise RunError(f"There is no run in {DEFAULT_PARENT}/ yet: give a run's path, or make one.")
        return runs[-1]
    path = expanded(given)
    if not (path / MANIFEST).is_file():
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
    n_unsummed: int = 0  # rows without a checksum
    n_unfit: int = 0  # rows left out because they do not fit their study
    cut_bytes: int = 0  # of an unfinished tail
    start: int = 0  # the byte where the row at hand begins
    good_end: int = 0  # where the last whole line ends
    notes: list[str] = field(default_factory=list)

    def refuse(self, path: Path, why: str, *, skip_bad: bool) -> None:
        """The row at hand does not fit its study: an error with its line, or left out and counted."""
        if not skip_bad:
            raise RunError(
                f"{path}, line {self.line}: {why}. Restore the file, or leave such rows out with"
                " --set skip_bad_lines=true."
            )
        self.n_unfit += 1


Span = tuple[int, int]
"""The bytes of a row file from which to which, whole lines."""


def read_rows(
    path: Path,
    *,
    skip_bad: bool = False,
    reading: Reading | None = None,
    span: Span | None = None,
    wanted: Callable[[bytes], bool] = bool,
) -> Iterator[dict[str, Any]]:
    """Every row of a file, or of a part of it, as a stream; the first of two with one key.

    Lines that are not `wanted` are passed by, whatever they hold.

    An unfinished end, which is what a killed writer leaves, is left out with a note. Any other line that is
    no row, or is not what was written, is a `RunError` with its number, unless `skip_bad`.
    """
    reading = Reading() if reading is None else reading
    seen: set[str] = set()
    for reading.line, line in _lines(path, span):
        reading.start = reading.good_end
        if not wanted(line):
            reading.good_end += len(line)
            continue
        try:
            row, summed = read_row(line)
        except NoRow as error:
            if not line.strip():  # an editor's empty line
                reading.good_end += len(line)
                continue
            if not line.endswith(b"\n") and is_unfinished(line):
                reading.cut_bytes = len(line)
                break
            if not skip_bad:
                raise RunError(_refused(path, reading, line, str(error))) from None
            reading.n_skipped += 1
            reading.good_end += len(line)
            continue
        reading.good_end += len(line)
        reading.n_rows += 1
        reading.n_unsummed += not summed
        if row["key"] in seen:
            reading.n_twice += 1
            continue
        seen.add(row["key"])
        yield row
    reading.notes += _notes(path.name, reading)


def _refused(path: Path, reading: Reading, line: bytes, why: str) -> str:
    if reading.n_rows or "checksum" in why:
        return (
            f"{path}, line {reading.line}: it {why}. Restore the file, or leave such lines out with"
            " --set skip_bad_lines=true."
        )
    return (
        f"{path} is no row file of biaskit: it looks like {looks_like(line)}. Restore it, or choose another"
        " --out; nothing was changed."
    )


def _notes(name: str, reading: Reading) -> Iterator[str]:
    if reading.cut_bytes:
        yield f"{name}: an unfinished end of {reading.cut_bytes} bytes was left out"
    if reading.n_skipped:
        yield f"{name}: lines left out as no rows or changed: {reading.n_skipped}"
    if reading.n_unfit:
        yield f"{name}: rows left out as not fitting the study: {reading.n_unfit}"
    if reading.n_twice:
        yield f"{name}: rows that stand there twice, of which the first counts: {reading.n_twice}"
    if reading.n_unsummed:
        n = (
            "no row has"
            if reading.n_unsummed == reading.n_rows
            else f"{reading.n_unsummed:,} rows do not have"
        )
        yield f"{name}: {n} a checksum, so changes would not be noticed (an older biaskit wrote none)"


def count_rows(path: Path) -> int:
    """How many rows a file holds; none where there is no file."""
    return sum(1 for _ in read_rows(path, skip_bad=True)) if path.is_file() else 0


def _lines(path: Path, span: Span | None = None) -> Iterator[tuple[int, bytes]]:
    # By "\n" alone: text may hold other line ends, such as U+2028, inside a row.
    place, end = span or (0, math.inf)
    with _ROWS.saying(str(path)), unpacked(path, start=place) as file:
        for number, line in enumerate(file, start=1):
            yield number, line
            place += len(line)
            if place >= end:  # a last line may have got its line feed later
                return


class ModelSpans:
    """Where the rows of each model lie in a row file.

    A run of many models holds the rows of each against its prompts; reading all of them for each model took
    most of the time of a run of 40. A run that grew by jobs, or whose models each failed somewhere, has rows
    of a model in several places: from its first to its last would be nearly all rows again.
    """

    def __init__(self, column: str = "model_key") -> None:
        """`column`: what names the model in a row."""
        self._column = column
        self._of: dict[str, array[int]] = {}  # start, end, start, end, … of rows without others between

    def add(self, row: Mapping[str, Any], start: int, end: int) -> None:
        """A row that lies between these bytes; one of before rows held a `model_key` is nobody's."""
        if isinstance(model := row.get(self._column), str):
            bounds = self._of.setdefault(model, array("Q"))
            if bounds and bounds[-1] == start:
                bounds[-1] = end
            else:
                bounds.extend((start, end))

    def rows(self, path: Path, model: str, *, skip_bad: bool) -> Iterator[dict[str, Any]]:
        """The rows of a model, as a stream."""
        bounds = self._of.get(model, array("Q"))
        for span in zip(bounds[::2], bounds[1::2], strict=True):
            found = read_rows(path, skip_bad=skip_bad, span=span)
            yield from (row for row in found if row.get(self._column) == model)


class RowWriter:
    """The one writer of a run's rows; holds the run's lock while it is open."""

    def __init__(self, run: Path, engine: str, *, lock: str = "os", skip_bad: bool = False) -> None:
        self.run = run
        self.engine = engine
        self.path = run / ROWS_FILES[engine]
        self.reading = Reading()
        self._skip_bad = skip_bad
        self._lock = FileLock(run / LOCK, fallback_to_soft=False) if lock == "os" else None
        self._file: BinaryIO | None = None
        self.keys: set[str] = set()
        self.answered: dict[str, set[str]] = {}  # model label → who answered its stored rows
        self.spans = ModelSpans(NAMES_MODEL.get(engine, "model_key"))

    def __enter__(self) -> RowWriter:
        try:
            self.run.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"{self.run} cannot be made: {error.strerror or error}. Choose another --out."
            ) from error
        if rows_file(self.run, self.engine) != self.path:
            raise RunError(
                f"{self.path}.gz is compressed: unpack it (gunzip) to add rows, or choose another --out."
            )
        self._take_lock()
        try:
            self._open()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
        self._release()

    def _take_lock(self) -> None:
        if self._lock is None:
            return
        note = self.run / LOCK
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            try:
                holder = note.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                holder = ""
            raise RunError(
                f"{self.run} is being written by another process{f' ({holder})' if holder else ''}."
                " Wait for it, or choose another --out."
            ) from error
        except (OSError, NotImplementedError) as error:
            number = getattr(error, "errno", None)
            if number in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC):
                raise RunError(
                    f"{self.run} cannot be written: {os.strerror(number)}. Choose another --out."
                ) from error
            raise RunError(
                f"{self.run} cannot be locked ({error}). If this file system has no locks and no other"
                " process writes there, use --set lock=none."
            ) from error
        now = datetime.now(UTC).isoformat(timespec="seconds")
        # For the message above only; the lock itself is the operating system's and dies with the process.
        with contextlib.suppress(OSError):
            note.write_text(f"process {os.getpid()} on {socket.gethostname()} since {now}", encoding="utf-8")

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _open(self) -> None:
        try:
            if self.path.exists():
                for row in read_rows(self.path, skip_bad=self._skip_bad, reading=self.reading):
                    self._remember(row, self.reading.start, self.reading.good_end)
            if self.reading.cut_bytes:
                self._keep_what_is_cut()
            # One write per append: an unbuffered descriptor in append mode never tears a line apart.
            self._file = self.path.open("ab", buffering=0)
            if self.reading.cut_bytes:
                self._file.truncate(self.reading.good_end)
            self._finish_last_line()
            sync_directory(self.run)
        except OSError as error:
            raise RunError(
                f"{self.path} cannot be opened: {error.strerror or error}. Choose another --out."
            ) from error

    def _keep_what_is_cut(self) -> None:
        """Put an unfinished end beside the file, as .cut-1, .cut-2, …, before it is cut."""
        with self.path.open("rb") as file:
            file.seek(self.reading.good_end)
            end = file.read()
        names = (self.path.with_name(f"{self.path.name}.cut-{i}") for i in count(1))
        kept = next(name for name in names if not name.exists())
        write_atomically(kept, end)
        said = f"was cut off and is kept in {kept.name}"
        self.reading.notes[:] = [note.replace("was left out", said) for note in self.reading.notes]

    def _finish_last_line(self) -> None:
        """A whole last row may lack its line feed alone."""
        assert self._file is not None
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if not size:
                return
            file.seek(size - 1)
            if file.read(1) != b"\n":
                self._file.write(b"\n")

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows in one piece and make them durable; of each key the first alone, none stored before."""
        first: dict[str, Mapping[str, Any]] = {}
        for row in rows:
            if row["key"] not in self.keys:
                first.setdefault(row["key"], row)
        if not (fresh := list(first.values())):
            return
        lines = [f"{row_line(row)}\n".encode("ascii") for row in fresh]
        content = b"".join(lines)
        assert self._file is not None
        descriptor = self._file.fileno()
        self._check_still_there(descriptor)
        end = os.fstat(descriptor).st_size
        try:
            written = self._file.write(content)
            if written != len(content):
                raise OSError(28, "No space left on device")
            os.fsync(descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):  # The next start cuts off what this cannot.
                os.ftruncate(descriptor, end)  # back to the last whole row
            raise RunError(
                f"{self.path} cannot be written: {error.strerror or error}. All finished rows are kept;"
                " make room and give the same command again."
            ) from error
        for row, line in zip(fresh, lines, strict=True):
            self._remember(row, end, end + len(line))
            end += len(line)

    def append_all(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write many rows that are at hand already, as a stream."""
        source = iter(rows)
        while piece := list(islice(source, ROWS_AT_ONCE)):
            self.append(piece)

    def _remember(self, row: Mapping[str, Any], start: int, end: int) -> None:
        self.spans.add(row, start, end)
        self.keys.add(str(row["key"]))
        if isinstance(label := row.get("model"), str) and isinstance(by := row.get("answered_by"), str):
            self.answered.setdefault(label, set()).add(by)

    def _check_still_there(self, descriptor: int) -> None:
        """A deleted folder would take rows silently: the open file lives on without a name."""
        try:
            same = os.path.samestat(os.fstat(descriptor), self.path.stat())
        except OSError:
            same = False
        if not same:
            raise RunError(
                f"{self.path} was removed or replaced during the run. Give the command again to start anew."
            )
