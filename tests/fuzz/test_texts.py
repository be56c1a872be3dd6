"""Input files as people have them, and as nobody should: texts, lists, scripts, aliases, vectors.

Of a file of texts that is accepted, the run holds exactly the texts that another reader finds in it, and its
tables are those of a clean file of the same records.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli, Said
from fakes.personas_runs import write_vectors

from fuzz.common import SEED, TIMES, check_kept, check_said, snapshot, standing_in
from fuzz.test_run_folders import CHANGES, OfBytes

pytestmark = pytest.mark.usefixtures("no_waiting")

# --- changes of a file that is text -------------------------------------------------------------------

VALUES = (
    *("", " ", "NA", "null", "nan", "=1+1", "\u200b=1+1", "-1", "@x", '"', "'", "\\"),
    *("\u202eabc", "a\u2028b"),
    *("\ud800", "é" * 3_000, "all", "model", "share", "coverage", "1e999", "0x10", "1,5", "true", "[]", "{}"),
    *("[[x]]", "{{ x }}", "%s", "\x1b[31m", "[JOB]", "../x", "\r", "\n", "female", "W", "ß"),
)


def _value(data: bytes, rng: random.Random) -> bytes:
    """Another value somewhere in a line: between separators, or a word."""
    mark = rng.choice((b",", b"\t", b" ", b'"'))
    parts = data.split(mark)
    parts[rng.randrange(len(parts))] = rng.choice(VALUES).encode("utf-8", "surrogatepass")
    return mark.join(parts)


def _replaced(old: str, new: str, times: int = -1) -> OfBytes:
    return lambda data, rng: data.replace(old.encode(), new.encode(), times)


def _header(change: Callable[[list[bytes]], list[bytes]]) -> OfBytes:
    def act(data: bytes, rng: random.Random) -> bytes:
        first, feed, rest = data.partition(b"\n")
        return b",".join(change(first.split(b","))) + feed + rest

    return act


TEXT_CHANGES: Mapping[str, OfBytes] = {
    **CHANGES,
    "semicolons": _replaced(",", ";"),
    "tabs": _replaced(",", "\t"),
    "no quotes": _replaced('"', ""),
    "open quote": _replaced(",", ',"', 3),
    "quotes inside": _replaced(" ", ' " ', 2),
    "carriage returns": _replaced("\n", "\r"),
    "empty lines": _replaced("\n", "\n\n"),
    "separator lines": _replaced("\n", "\u2028"),
    "latin": lambda data, rng: data.decode("utf-8", "replace").replace("e", "é").encode("latin-1", "replace"),
    "value": _value,
    "values": lambda data, rng: _value(_value(_value(data, rng), rng), rng),
    "no header": lambda data, rng: data.partition(b"\n")[2],
    "header alone": lambda data, rng: data.partition(b"\n")[0],
    "header twice": lambda data, rng: data.partition(b"\n")[0] + b"\n" + data,
    "column renamed": _header(lambda names: [b"other", *names[1:]]),
    "column twice": _header(lambda names: [*names[:-1], names[0]]),
    "columns turned": _header(lambda names: names[::-1]),
    "column more": _header(lambda names: [*names, b"more"]),
    "column fewer": _header(lambda names: names[:-1]),
    "spaces in the header": _header(lambda names: [b" " + name + b" " for name in names]),
    "many": lambda data, rng: data + b"".join(data.splitlines(keepends=True)[1:]) * 5,
}
SUFFIXES = ("", "", "", "", "", "", ".txt", ".csv", ".gz", ".JSONL", ".bak")
"""What a name may end in beside its own ending: mostly nothing."""

# --- inputs -------------------------------------------------------------------------------------------

TEXTS = [
    {
        "text": f'{"She" if i % 2 else "He"} is a "warm" nurse, {i} tender people — help.',
        "gender": "FM"[i % 3 == 0],
        "job": "nurse" if i % 2 else "cook",
        "model": "m",
    }
    for i in range(12)
]


def _table(delimiter: str) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(TEXTS[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(TEXTS)
    return out.getvalue().encode()


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _parquet() -> bytes:
    import pyarrow
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(TEXTS), out)
    return out.getvalue()


def _script() -> bytes:
    texts = [f"{'She' if i % 2 else 'He'} is a nurse of {i} patient people." for i in range(9)]
    return _lines(
        [{"contains": "nurse", "log_probs": {" She": -0.5}}, {"log_probs": {" He": -1.0}, "texts": texts}]
    )


def _vectors() -> bytes:
    write_vectors(Path("vectors.txt"))
    return Path("vectors.txt").read_bytes()


CHEAP = ("--set", "permutations=19", "--set", "clusters=false")
VECTORS = ("--vectors", "pretrained:vectors.txt")
COLUMNS = ("--gender-col", "gender", "--occupation-col", "job", "--model-col", "model")
ANALYZE = ("analyze", "--texts", "FILE", *COLUMNS, *CHEAP, *VECTORS, "--out", "out")
PLAIN = ("analyze", "--texts", "plain.csv", "--occupation-col", "job", *CHEAP, "--out", "out")
PROBE = ("probe", "m=scripted:m.jsonl", "--out", "out")
JOB, TEMPLATE = ("--jobs", "nurse"), ("--templates", "1")
PERSONAS = ("personas", "m=scripted:m.jsonl", "--dry-run", "--per-gender", "2")
JOBS = b"item,group,share\nnurse,a,0.9\nplumber,b,0.1\n"
TEMPLATES = b"""slot = "[X]"
[[template]]
bias_type = "explicit"
question = "What is the gender of a [X]?"
[[template]]
bias_type = "implicit"
question = "Talk about a [X]."
opening = "I met a [X]."
"""
STUDY = b"""name = "s"
jobs = { source = "corpus:occugender/jobs.csv", select = "1" }
templates = { source = "corpus:occugender/templates.toml", select = "1" }
target_words = { explicit = "occugender-explicit", implicit = "pronoun-subject" }
"""


@dataclass(frozen=True)
class Input:
    """A file as it should be, its name, and the command that reads it as FILE."""

    name: str
    content: bytes | Callable[[], bytes]
    words: tuple[str, ...]


def _set(*pairs: str) -> tuple[str, ...]:
    return tuple(word for pair in pairs for word in ("--set", pair))


INPUTS: Mapping[str, Input] = {
    "texts csv": Input("mine.csv", _table(","), ANALYZE),
    "texts jsonl": Input("mine.jsonl", _lines(TEXTS), ANALYZE),
    "texts parquet": Input("mine.parquet", _parquet, ANALYZE),
    "texts csv.gz": Input("mine.csv.gz", gzip.compress(_table(","), mtime=0), ANALYZE),
    "texts of windows": Input(
        "mine.csv", _table(";").replace("—".encode(), b"\x97"), (*ANALYZE, "--encoding", "cp1252")
    ),
    "jobs csv": Input("jobs.csv", JOBS, (*PROBE, "--jobs", "./FILE", *TEMPLATE)),
    "templates toml": Input("t.toml", TEMPLATES, (*PROBE, *JOB, "--templates", "./FILE")),
    "templates txt": Input(
        "t.txt",
        b"Who is a [JOB]?\nTalk about a [JOB].\tI met one.\n",
        (*PROBE, *JOB, "--templates", "./FILE"),
    ),
    "target_words": Input(
        "e.toml",
        b'[groups]\nfemale = ["She", "Her"]\nmale = ["He", "Him"]\n',
        (*PROBE, *JOB, *TEMPLATE, *_set("target_words.source=./FILE", "target_words.every=e")),
    ),
    "script": Input("x.jsonl", _script, ("probe", "x=scripted:FILE", *JOB, *TEMPLATE, "--out", "out")),
    "occupations": Input("o.csv", JOBS, (*PERSONAS, "--occupations", "./FILE")),
    "study": Input("s.toml", STUDY, (*PROBE, "--study", "./FILE")),
    "aliases": Input(
        "a.csv",
        b"nurse,nurses\nplumber,plumbers\n",
        ("compare", "run", "other", "--aliases", "FILE", "--out", "out"),
    ),
    "vectors": Input("v.txt", _vectors, (*PLAIN, "--vectors", "pretrained:FILE")),
    "words to drop": Input("w.txt", b"nurse\nwarm\n", (*PLAIN, *VECTORS, *_set("drop_words=./FILE"))),
}


@dataclass(frozen=True)
class Case:
    """Changes of one input, in turn, and what its name ends in beside its ending."""

    file: str
    changes: tuple[str, ...] = ()
    suffix: str = ""
    seed: int = 1


def cases(n: int) -> list[Case]:
    """n cases, the same for the same seed."""
    rng = random.Random(f"texts {SEED}")
    return [
        Case(
            rng.choice(list(INPUTS)),
            tuple(rng.choice(list(TEXT_CHANGES)) for _ in range(rng.choice((1, 1, 1, 2, 3)))),
            rng.choice(SUFFIXES),
            rng.randrange(2**31),
        )
        for _ in range(n)
    ]


# --- the command and the oracle -----------------------------------------------------------------------


def check(case: Case, home: Path, call: Cli, stored: Path) -> Said:
    """Write the changed file, call the command that reads it, hold what came of it against the oracle."""
    given, rng = INPUTS[case.file], random.Random(case.seed)
    with standing_in(home):
        (home / "m.jsonl").write_bytes(_script())
        write_vectors(home / "vectors.txt")
        (home / "plain.csv").write_bytes(_table(","))
        if case.file == "aliases":
            for name in ("run", "other"):
                shutil.copytree(stored, home / name)
        content = given.content if isinstance(given.content, bytes) else given.content()
        for change in case.changes:
            content = TEXT_CHANGES[change](content, rng)
        path = home / f"{given.name}{case.suffix}"
        path.write_bytes(content)
        before = snapshot(home)
        said = call(*(word.replace("FILE", path.name) for word in given.words))
        check_said(said, case)
        check_kept(before, case)
        if said.code == 2:
            assert not (home / "out/manifest.json").exists(), (case, "a command that was wrong left a run")
        if said.code == 0 and case.file.startswith("texts "):
            _check_texts(case, path, home, call)
    return said


def _check_texts(case: Case, path: Path, home: Path, call: Cli) -> None:
    """What was stored is what another reader finds, and the tables are those of a clean file of it."""
    rows = [json.loads(line) for line in (home / "out/personas.jsonl").read_text("ascii").splitlines()]
    records = _records(path, case)
    assert [row["text"] for row in rows] == [record["text"] for record in records], (case, "other texts")
    assert [row["occupation"] for row in rows] == [str(record["job"]) for record in records], case
    (home / "clean").mkdir()
    clean = home / "clean" / "mine.jsonl"
    kept = [{name: record.get(name) for name in TEXTS[0]} for record in records]
    clean.write_text("".join(json.dumps(record) + "\n" for record in kept), "ascii")
    words = [word.replace("FILE", str(clean)) for word in ANALYZE]
    said = call(*["again" if word == "out" else word for word in words])
    assert said.code == 0, (case, said.err)
    assert _tables(home / "out") == _tables(home / "again"), (case, "other tables than those of a clean file")


def _tables(run: Path) -> dict[str, list[dict[str, str]]]:
    """Every table of a run but for the columns that name lines of its file."""
    found = {}
    for path in (run / "tables").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            found[path.name] = [{n: v for n, v in row.items() if n not in ("key", "sample")} for row in rows]
    return found


def _records(path: Path, case: Case) -> list[dict[str, Any]]:
    """The records of an accepted file, by the plainest reader of its kind."""
    if path.suffix == ".parquet":
        from pyarrow import parquet

        found: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
        return found
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    text = data.decode("cp1252" if case.file == "texts of windows" else "utf-8-sig")
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".jsonl", ".ndjson")):
        return [json.loads(line) for line in text.split("\n") if line.strip(" \t\r")]
    for delimiter in "\t" if name.endswith(".tsv") else ",;\t":
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        if set(TEXTS[0]) <= set(reader.fieldnames or ()):
            return list(reader)
    raise AssertionError((case, "no reading has these columns"))


# --- the tests ------------------------------------------------------------------------------------------


def test_odd_inputs(console: Cli, tmp_path: Path, stored_probe: Path) -> None:
    for case in cases(16 * TIMES):
        check(case, tmp_path / "home", console, stored_probe)


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_is_accepted_as_it_should_be(
    name: str, console: Cli, tmp_path: Path, stored_probe: Path
) -> None:
    """Else every change of it would be refused for another reason."""
    assert check(Case(name), tmp_path / "home", console, stored_probe).code == 0


def test_the_oracle_sees_a_file_that_is_gone(tmp_path: Path) -> None:
    def eating(*words: str) -> Said:
        Path("m.jsonl").unlink()
        return Said(2, "", "biaskit: no.\n")

    with pytest.raises(AssertionError, match="is gone"):
        check(Case("jobs csv"), tmp_path / "home", eating, tmp_path)
