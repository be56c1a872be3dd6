"""Run folders that something has changed: one line of error, what was paid for is kept, valid rows count."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.command import Cli

from biaskit.runs.rows import NoRow, read_row
from fuzz.common import (
    ODD,
    SEED,
    TIMES,
    check_said,
    places,
    put,
    snapshot,
    standing_in,
)

pytestmark = pytest.mark.usefixtures("no_waiting")

ROW_FILES = ("probe.jsonl", "personas.jsonl")
OfBytes = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Case:
    """One change of one file, and the command that meets it."""

    file: str
    change: str
    command: str
    seed: int


def _insert(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.randbytes(rng.choice((1, 7, 300))) + data[place:]


def _flip(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(max(1, len(data)))
    return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]


def _lines(change: Callable[[list[bytes], random.Random], list[bytes]]) -> OfBytes:
    return lambda data, rng: b"".join(change(data.splitlines(keepends=True), rng))


def _odd_value(data: bytes, rng: random.Random) -> bytes:
    """Another value somewhere inside one JSON object: the whole file, or one of its lines."""
    lines = data.splitlines() or [b""]
    whole = data.startswith(b"{\n") or len(lines) == 1
    place = rng.randrange(len(lines))
    try:
        value = json.loads(data if whole else lines[place])
    except ValueError:
        return _flip(data, rng)
    changed = json.dumps(put(value, rng.choice(list(places(value))), rng.choice(ODD))).encode()
    return changed if whole else b"\n".join([*lines[:place], changed, *lines[place + 1 :], b""])


CHANGES: Mapping[str, OfBytes] = {
    "cut": lambda data, rng: data[: rng.randrange(len(data) + 1)],
    "flip": _flip,
    "insert": _insert,
    "empty": lambda data, rng: b"",
    "swap": _lines(lambda lines, rng: rng.sample(lines, len(lines))),
    "twice": _lines(lambda lines, rng: [*lines, *rng.choices(lines, k=2)] if lines else lines),
    "fewer": _lines(lambda lines, rng: [line for line in lines if rng.random() < 0.7]),
    "odd value": _odd_value,
    "nan": lambda data, rng: data.replace(b"-", b"NaN,", 1),
    "mark": lambda data, rng: b"\xef\xbb\xbf" + data,
    "utf-16": lambda data, rng: data.decode("utf-8", "replace").encode("utf-16"),
    "gzip": lambda data, rng: gzip.compress(data),
    "array": lambda data, rng: b"[" + b",".join(data.splitlines()) + b"]",
    "commas": lambda data, rng: data.replace(b"\n", b",\n"),
    "crlf": lambda data, rng: data.replace(b"\n", b"\r\n"),
    "zeros": lambda data, rng: data + b"\0" * rng.choice((1, 4096)),
}
"""Changes of a file's bytes."""
PLACES = ("gone", "folder", "link")
"""Changes of what stands in a file's place."""
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "analyze": ("analyze", "RUN"),
    "skip": ("analyze", "RUN", "--set", "skip_bad_lines=true"),
    "report": ("report", "RUN", "--out", "page.html"),
    "compare": ("compare", "RUN", "OTHER", "--out", "comparison"),
    "cite": ("cite", "RUN"),
    "runs": ("runs",),
}
"""RUN is the changed folder, OTHER an untouched one of the same measurement."""


def apply(case: Case, run: Path, outside: Path) -> None:
    """Change a file of a run; `outside` is a folder that no command has to do with."""
    path, rng = run / case.file, random.Random(case.seed)
    data = path.read_bytes()
    if case.change in CHANGES:
        path.write_bytes(CHANGES[case.change](data, rng))
        return
    path.unlink()
    if case.change == "folder":
        path.mkdir()
    elif case.change == "link":
        (outside / path.name).write_bytes(data)
        path.symlink_to(outside / path.name)


def cases(run: Path, n: int, seed: object) -> list[Case]:
    """n cases of a run's files, the same for the same seed."""
    files = sorted(
        str(path.relative_to(run)) for path in run.rglob("*") if path.is_file() and path.name != ".lock"
    )
    # Rows and manifest are what is paid for; tables can be made again.
    paid = [name for name in files if name in (*ROW_FILES, "manifest.json")]
    rng = random.Random(f"{seed} {SEED}")
    found = []
    for _ in range(n):
        file = rng.choice([*files, *5 * paid])
        changes = [*CHANGES, *PLACES] if file in paid else [*CHANGES, "gone", "link"]
        found.append(Case(file, rng.choice(changes), rng.choice(list(COMMANDS)), rng.randrange(2**31)))
    return found


def check(case: Case, run: Path, home: Path, cli: Cli) -> None:
    """Change a copy of a run, call the command, and hold what came of it against the oracle."""
    changed, other = home / "biaskit-runs/changed", home / "biaskit-runs/other"
    with standing_in(home):
        for folder in ("outside", "biaskit-runs"):
            (home / folder).mkdir()
        shutil.copytree(run, changed)
        shutil.copytree(run, other)
        apply(case, changed, home / "outside")
        paid = {path.name: data for path, data in snapshot(changed).items() if path.name in ROW_FILES}
        before = snapshot(home / "outside")
        names = {"RUN": str(changed), "OTHER": str(other)}
        said = cli(*(names.get(word, word) for word in COMMANDS[case.command]))
    check_said(said, case)
    assert before == snapshot(home / "outside"), case
    for name, data in paid.items():
        cut = b"".join(path.read_bytes() for path in sorted(changed.glob(f"{name}.cut-*")))
        now = (changed / name).read_bytes()
        assert (now + cut).startswith(data) or (data.startswith(now) and data in now + cut), case
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
        valid.append(line.removeprefix(b"\xef\xbb\xbf") + b"\n")
    (clean / case.file).write_bytes(b"".join(valid))
    said = cli("analyze", str(clean), "--set", "skip_bad_lines=true")
    assert said.code == 0, (case, said.err)
    tables = [
        {path.name: path.read_bytes() for path in sorted((folder / "tables").glob("*.csv"))}
        for folder in (changed, clean)
    ]
    assert tables[0] == tables[1], case


# --- the tests ------------------------------------------------------------------------------------------


@pytest.fixture
def runs(stored_probe: Path, stored_personas: Path) -> dict[str, Path]:
    return {"probe": stored_probe, "personas": stored_personas}


@pytest.mark.parametrize("kind_name", ["probe", "personas"])
def test_changed_folders(kind_name: str, runs: dict[str, Path], console: Cli, tmp_path: Path) -> None:
    for case in cases(runs[kind_name], 12 * TIMES, seed=kind_name):
        check(case, runs[kind_name], tmp_path / "home", console)


@pytest.mark.parametrize("change", [*CHANGES, *PLACES])
def test_every_change_of_a_row_file(change: str, runs: dict[str, Path], console: Cli, tmp_path: Path) -> None:
    check(Case("probe.jsonl", change, "analyze", 5), runs["probe"], tmp_path / "home", console)


def test_the_oracle_sees_a_row_file_that_is_cut(runs: dict[str, Path], console: Cli, tmp_path: Path) -> None:
    def cutting(*arguments: str) -> object:
        for path in Path("biaskit-runs").glob("changed/probe.jsonl"):
            path.write_bytes(path.read_bytes()[:10])
        return console(*arguments)

    with pytest.raises(AssertionError):
        check(Case("probe.jsonl", "commas", "cite", 5), runs["probe"], tmp_path / "home", cutting)  # type: ignore[arg-type]


@pytest.mark.nightly
@pytest.mark.parametrize("kind_name", ["probe", "personas", "compare"])
@pytest.mark.parametrize("odd", [0.5, -1, True, None, "x", [], {}, ["x"]], ids=repr)
def test_every_place_of_a_manifest(
    kind_name: str, odd: object, runs: dict[str, Path], console: Cli, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    if kind_name == "compare":
        assert not console("compare", *map(str, runs.values()), "--out", str(run)).code
    else:
        shutil.copytree(runs[kind_name], run)
    manifest = json.loads((run / "manifest.json").read_bytes())
    command = (
        ("report", str(run), "--out", str(tmp_path / "page.html"))
        if kind_name == "compare"
        else ("analyze", str(run))
    )
    for place in places(manifest):
        if place[-1:] and isinstance(place[-1], int) and place[-1]:
            continue  # the first entry of a list stands for the others
        (run / "manifest.json").write_text(json.dumps(put(manifest, place, odd)))
        check_said(console(*command), (place, odd))
