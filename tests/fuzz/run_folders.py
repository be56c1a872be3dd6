"""Run folders that something has changed, what is done with them, and what must hold.

The oracle: a documented exit code; one line of error and no traceback; what was there before is there still,
byte for byte or longer; numbers are those of the rows that are valid.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes.command import Cli

from biaskit.runs.rows import NoRow, read_row
from fuzz.oracle import check_said, snapshot, standing_in

ROW_FILES = ("probe.jsonl", "generations.jsonl")
ODD: Sequence[Any] = (
    *(
        None,
        True,
        False,
        -1,
        0,
        3,
        1e308,
        -1e-308,
        2**70,
        0.5,
        "",
        "x",
        "=1+1",
        "\u202eabc",
        "a\nb",
        "é" * 300,
    ),
    *([], {}, [[]], {"": {}}, [None] * 50, {"a": [1]}),
)
"""What may stand where a value of another kind was."""


@dataclass(frozen=True)
class Case:
    """One change of one file, and the command that meets it."""

    file: str
    change: str
    command: str
    seed: int


# --- changes ------------------------------------------------------------------------------------------


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _flip(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(max(1, len(data)))
    return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]


def _insert(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.randbytes(rng.choice((1, 7, 300))) + data[place:]


OfBytes = Callable[[bytes, random.Random], bytes]


def _lines(change: Callable[[list[bytes], random.Random], list[bytes]]) -> OfBytes:
    return lambda data, rng: b"".join(change(data.splitlines(keepends=True), rng))


def _swapped(lines: list[bytes], rng: random.Random) -> list[bytes]:
    return rng.sample(lines, len(lines))


def _twice(lines: list[bytes], rng: random.Random) -> list[bytes]:
    return [*lines, *rng.choices(lines, k=2)] if lines else lines


def _fewer(lines: list[bytes], rng: random.Random) -> list[bytes]:
    return [line for line in lines if rng.random() < 0.7]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inside for place in _places(one, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of nested lists and tables with another value at one place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


def _odd_value(data: bytes, rng: random.Random) -> bytes:
    """Another value somewhere inside one JSON object: the whole file, or one of its lines."""
    try:
        return json.dumps(_changed(json.loads(data), rng)).encode()
    except (ValueError, RecursionError):
        lines = data.splitlines()
        place = rng.randrange(max(1, len(lines)))
        try:
            lines[place] = json.dumps(_changed(json.loads(lines[place]), rng)).encode()
        except (ValueError, IndexError, RecursionError):
            return _flip(data, rng)
        return b"\n".join(lines) + b"\n"


def _changed(value: Any, rng: random.Random) -> Any:
    return put(value, rng.choice(_places(value)), rng.choice(ODD))


def _deep(data: bytes, rng: random.Random) -> bytes:
    depth = rng.choice((1_000, 200_000))
    return b'{"key":' + b"[" * depth + b"]" * depth + b"}\n"


def _digits(data: bytes, rng: random.Random) -> bytes:
    return data.replace(b":1", b":" + b"1" * 5_000, rng.choice((1, 3)))


CHANGES: Mapping[str, OfBytes] = {
    "cut": _cut,
    "flip": _flip,
    "insert": _insert,
    "empty": lambda data, rng: b"",
    "swap": _lines(_swapped),
    "twice": _lines(_twice),
    "fewer": _lines(_fewer),
    "odd value": _odd_value,
    "deep": _deep,
    "digits": _digits,
    "nan": lambda data, rng: data.replace(b"-", b"NaN,", 1),
    "mark": lambda data, rng: b"\xef\xbb\xbf" + data,
    "utf-16": lambda data, rng: data.decode("utf-8", "replace").encode("utf-16"),
    "gzip": lambda data, rng: gzip.compress(data),
    "array": lambda data, rng: b"[" + b",".join(data.splitlines()) + b"]",
    "commas": lambda data, rng: data.replace(b"\n", b",\n"),
    "crlf": lambda data, rng: data.replace(b"\n", b"\r\n"),
    "zeros": lambda data, rng: data + b"\0" * rng.choice((1, 4096)),
    "pretty": lambda data, rng: b"\n".join(_pretty(line) for line in data.splitlines()),
}
"""Changes of a file's bytes."""
PLACES = ("gone", "folder", "link")
"""Changes of what stands in a file's place."""


def _pretty(line: bytes) -> bytes:
    try:
        return json.dumps(json.loads(line), indent=2).encode()
    except (ValueError, RecursionError):
        return line


def apply(case: Case, run: Path, outside: Path) -> None:
    """Change a file of a run; `outside` is a folder that no command has to do with."""
    path, rng = run / case.file, random.Random(case.seed)
    data = path.read_bytes()
    if case.change == "gone":
        path.unlink()
    elif case.change == "folder":
        path.unlink()
        path.mkdir()
    elif case.change == "link":
        (outside / path.name).write_bytes(data)
        path.unlink()
        path.symlink_to(outside / path.name)
    else:
        path.write_bytes(CHANGES[case.change](data, rng))


# --- commands and cases -----------------------------------------------------------------------------------

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "analyze": ("analyze", "RUN"),
    "skip": ("analyze", "RUN", "--set", "skip_bad_lines=true"),
    "report": ("report", "RUN", "--out", "page.html"),
    "compare": ("compare", "RUN", "OTHER", "--out", "comparison"),
    "cite": ("cite", "RUN"),
    "runs": ("runs",),
}
"""RUN is the changed folder, OTHER an untouched one of the same engine."""


def cases(run: Path, n: int, seed: int) -> list[Case]:
    """n cases of a run's files, the same for the same seed."""
    files = sorted(
        str(path.relative_to(run)) for path in run.rglob("*") if path.is_file() and path.name != ".lock"
    )
    # Rows and manifest are what is paid for; tables can be made again.
    weighted = [name for name in files for _ in range(6 if name in (*ROW_FILES, "manifest.json") else 1)]
    rng = random.Random(seed)
    changes, commands = [*CHANGES, *PLACES], list(COMMANDS)
    return [
        Case(rng.choice(weighted), rng.choice(changes), rng.choice(commands), rng.randrange(2**31))
        for _ in range(n)
    ]


# --- the oracle -----------------------------------------------------------------------------------------


def check(case: Case, run: Path, home: Path, cli: Cli) -> None:
    """Change a copy of a run, call the command, and hold what came of it against the oracle."""
    changed, other = home / "biaskit-runs/changed", home / "biaskit-runs/other"
    with standing_in(home):
        for folder in ("outside", "biaskit-runs"):
            (home / folder).mkdir()
        shutil.copytree(run, changed)
        shutil.copytree(run, other)
        apply(case, changed, home / "outside")
        paid = {name: data for path, data in snapshot(changed).items() if (name := path.name) in ROW_FILES}
        before = snapshot(home / "outside")
        names = {"RUN": str(changed), "OTHER": str(other)}
        said = cli(*(names.get(word, word) for word in COMMANDS[case.command]))
    check_said(said, case)
    assert before == snapshot(home / "outside"), case
    for name, data in paid.items():
        kept = (changed / name).read_bytes() + b"".join(
            path.read_bytes() for path in sorted(changed.glob(f"{name}.cut-*"))
        )
        assert kept.startswith(data) or (data.startswith((changed / name).read_bytes()) and data in kept), (
            case
        )
    if said.code == 0 and case.file in ROW_FILES and case.command in ("analyze", "skip"):
        _numbers_of_valid_rows(case, changed, home, cli)


def _numbers_of_valid_rows(case: Case, changed: Path, home: Path, cli: Cli) -> None:
    """The tables are those of a file that holds the valid rows alone."""
    clean = home / "biaskit-runs/clean"
    clean.mkdir()
    (clean / "manifest.json").write_bytes((changed / "manifest.json").read_bytes())
    valid = []
    for line in (changed / case.file).read_bytes().split(b"\n"):
        try:
            read_row(line)
        except NoRow:
            continue
        valid.append(line.removeprefix(b"\xef\xbb\xbf"))
    (clean / case.file).write_bytes(b"".join(line + b"\n" for line in valid))
    said = cli("analyze", str(clean), "--set", "skip_bad_lines=true")
    assert said.code == 0, (case, said.err)
    tables = [
        {path.name: path.read_bytes() for path in sorted((folder / "tables").glob("*.csv"))}
        for folder in (changed, clean)
    ]
    assert tables[0] == tables[1], case
