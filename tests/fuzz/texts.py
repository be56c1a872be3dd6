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

from fakes.command import Cli
from fakes.personas_runs import write_vectors

from fuzz.base_runs import probe_run
from fuzz.oracle import check_kept, check_said, snapshot, standing_in
from fuzz.run_folders import CHANGES, OfBytes

# --- changes of a file that is text -------------------------------------------------------------------


def _replaced(old: str, new: str, times: int = -1) -> OfBytes:
    return lambda data, rng: data.replace(old.encode(), new.encode(), times)


def _first_line(change: Callable[[bytes, random.Random], bytes]) -> OfBytes:
    def act(data: bytes, rng: random.Random) -> bytes:
        first, feed, rest = data.partition(b"\n")
        return change(first, rng) + feed + rest

    return act


def _column(change: Callable[[list[bytes], random.Random], list[bytes]]) -> OfBytes:
    def act(first: bytes, rng: random.Random) -> bytes:
        return b",".join(change(first.split(b","), rng))

    return _first_line(act)


def _value(data: bytes, rng: random.Random) -> bytes:
    """Another value somewhere in a line: between separators, or a word."""
    mark = rng.choice((b",", b"\t", b" ", b'"'))
    parts = data.split(mark)
    parts[rng.randrange(len(parts))] = rng.choice(VALUES).encode("utf-8", "surrogatepass")
    return mark.join(parts)


VALUES = (
    *(
        "",
        " ",
        "NA",
        "null",
        "None",
        "nan",
        "=1+1",
        "\u200b=1+1",
        "-1",
        "@x",
        '"',
        '""',
        "'",
        "\\",
    ),
    *(
        "\u202eabc",
        "a\u2028b",
        "\ud800",
        "é" * 3_000,
        "all",
        "model",
        "share",
        "coverage",
        "1e999",
        "0x10",
        "1,5",
    ),
    *(
        "true",
        "[]",
        "{}",
        "[[x]]",
        "{{ x }}",
        "%s",
        "\x1b[31m",
        "[JOB]",
        "../x",
        "\r",
        "\n",
        "female",
        "W",
        "ß",
    ),
)
TEXT_CHANGES: Mapping[str, OfBytes] = {
    **CHANGES,
    "semicolons": _replaced(",", ";"),
    "tabs": _replaced(",", "\t"),
    "pipes": _replaced(",", "|"),
    "no quotes": _replaced('"', ""),
    "single quotes": _replaced('"', "'"),
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
    "column renamed": _column(lambda names, rng: [b"other", *names[1:]]),
    "column twice": _column(lambda names, rng: [*names[:-1], names[0]]),
    "columns turned": _column(lambda names, rng: names[::-1]),
    "column more": _column(lambda names, rng: [*names, b"more"]),
    "column fewer": _column(lambda names, rng: names[:-1]),
    "column in capitals": _column(lambda names, rng: [name.upper() for name in names]),
    "spaces in the header": _column(lambda names, rng: [b" " + name + b" " for name in names]),
    "long": lambda data, rng: data + data.splitlines()[-1] * 500 + b"\n" if data else data,
    "many": lambda data, rng: data + b"".join(data.splitlines(keepends=True)[1:]) * 5,
    "packed twice": lambda data, rng: gzip.compress(gzip.compress(data)),
}
"""Changes of a file's bytes; those of CSV make other damage elsewhere."""
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


CHEAP = ("--set", "permutations=19", "--set", "clusters=false")
ANALYZE = (
    *(
        "analyze",
        "--texts",
        "FILE",
        "--gender-col",
        "gender",
        "--occupation-col",
        "job",
        "--model-col",
        "model",
    ),
    *(*CHEAP, "--out", "out"),
)
VECTORS = ("--vectors", "pretrained:vectors.txt")
PLAIN = ("analyze", "--texts", "plain.csv", "--occupation-col", "job", *CHEAP, "--out", "out")
PROBE = ("probe", "m=scripted:m.jsonl", "--out", "out")
ONE = ("--jobs", "nurse", "--templates", "1")
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
EXPRESSIONS = b'[groups]\nfemale = ["She", "Her"]\nmale = ["He", "Him"]\n'
DIALOGUE = b'opening_line = "Hello."\n[[turn]]\nquestion = "Who?"\nanswer = "Nobody."\n'
PROMPTS = b"""occupation_slot = "[X]"
gender_slot = "[GENDER]"
[[prompt]]
name = "bio"
form = "chat"
open = "Write about a [X]."
specified = "Write about a [X] who is a [GENDER]."
female = "woman"
male = "man"
nonbinary = "non-binary person"
"""


@dataclass(frozen=True)
class Input:
    """A file as it should be, its name, and the command that reads it as FILE."""

    name: str
    content: Callable[[], bytes]
    words: tuple[str, ...]


def _script() -> bytes:
    texts = [f"{'She' if i % 2 else 'He'} is a nurse of {i} patient people." for i in range(9)]
    return _lines(
        [{"contains": "nurse", "log_probs": {" She": -0.5}}, {"log_probs": {" He": -1.0}, "texts": texts}]
    )


def _vectors() -> bytes:
    path = Path("vectors.txt")
    write_vectors(path)
    return path.read_bytes()


INPUTS: Mapping[str, Input] = {
    **{
        f"texts {name}": Input(f"mine.{name}", content, (*ANALYZE, *VECTORS))
        for name, content in (
            ("csv", lambda: _table(",")),
            ("tsv", lambda: _table("\t")),
            ("jsonl", lambda: _lines(TEXTS)),
            ("ndjson", lambda: _lines(TEXTS)),
            ("parquet", _parquet),
            ("csv.gz", lambda: gzip.compress(_table(","), mtime=0)),
            ("jsonl.gz", lambda: gzip.compress(_lines(TEXTS), mtime=0)),
        )
    },
    "texts of windows": Input(
        "mine.csv",
        lambda: _table(";").replace("—".encode(), b"\x97"),
        (*ANALYZE, *VECTORS, "--encoding", "cp1252"),
    ),
    "jobs csv": Input("jobs.csv", lambda: JOBS, (*PROBE, "--jobs", "./FILE", "--templates", "1")),
    "jobs txt": Input(
        "jobs.txt", lambda: b"nurse\nplumber\n", (*PROBE, "--jobs", "./FILE", "--templates", "1")
    ),
    "jobs toml": Input(
        "jobs.toml",
        lambda: b'[[item]]\nitem = "nurse"\ngroup = "a"\nshare = 0.9\n',
        (*PROBE, "--jobs", "./FILE", "--templates", "1"),
    ),
    "templates toml": Input(
        "t.toml", lambda: TEMPLATES, (*PROBE, "--jobs", "nurse", "--templates", "./FILE")
    ),
    "templates txt": Input(
        "t.txt",
        lambda: b"Who is a [JOB]?\nTalk about a [JOB].\tI met a [JOB].\n",
        (*PROBE, "--jobs", "nurse", "--templates", "./FILE"),
    ),
    "expressions": Input(
        "e.toml",
        lambda: EXPRESSIONS,
        (*PROBE, *ONE, "--set", "expressions.source=./FILE", "--set", "expressions.every=e"),
    ),
    "instructions": Input(
        "i.txt",
        lambda: b"Be fair.\nBe just.\n",
        (*PROBE, *ONE, "--set", "instructions.source=./FILE", "--set", "instructions.select=all"),
    ),
    "dialogue": Input(
        "d.toml", lambda: DIALOGUE, (*PROBE, *ONE, "--set", "setting=dialogue", "--set", "dialogue=./FILE")
    ),
    "system prompt": Input("s.txt", lambda: b"Be brief.\n", (*PROBE, *ONE, "--system-prompt", "FILE")),
    "script": Input("x.jsonl", _script, ("probe", "x=scripted:FILE", *ONE, "--out", "out")),
    "script of texts": Input(
        "x.jsonl",
        _script,
        (
            "personas",
            "x=scripted:FILE",
            "--occupations",
            "nurse",
            "--per-gender",
            "2",
            "--max-draws",
            "4",
            "--set",
            "vectors=pretrained:vectors.txt",
            *CHEAP,
            "--yes",
            "--out",
            "out",
        ),
    ),
    "occupations": Input("o.csv", lambda: JOBS, (*PERSONAS, "--occupations", "./FILE")),
    "prompts": Input(
        "p.toml", lambda: PROMPTS, (*PERSONAS, "--occupations", "nurse", "--set", "templates.source=./FILE")
    ),
    "study": Input(
        "s.toml",
        lambda: (
            b'name = "s"\n[jobs]\nsource = "corpus:occugender/jobs.csv"\nselect = "1"\n'
            b'[templates]\nsource = "corpus:occugender/templates.toml"\nselect = "1"\n'
            b'[expressions]\nexplicit = "occugender-explicit"\nimplicit = "pronoun-subject"\n'
        ),
        (*PROBE, "--study", "./FILE"),
    ),
    "aliases": Input(
        "a.csv",
        lambda: b"nurse,nurses\nplumber,plumbers\n",
        ("compare", "run", "other", "--aliases", "FILE", "--out", "out"),
    ),
    "vectors": Input("v.txt", _vectors, (*PLAIN, "--vectors", "pretrained:FILE")),
    "vectors packed": Input(
        "v.gz", lambda: gzip.compress(_vectors(), mtime=0), (*PLAIN, "--vectors", "pretrained:FILE")
    ),
    "words to drop": Input(
        "w.txt", lambda: b"nurse\nwarm\n", (*PLAIN, *VECTORS, "--set", "drop_words=./FILE")
    ),
    "categories": Input(
        "c.csv", lambda: b"word,category\nwarm,a\nnurse,b\n", (*PLAIN, *VECTORS, "--set", "categories=./FILE")
    ),
}


@dataclass(frozen=True)
class Case:
    """Changes of one input, in turn, and what its name ends in beside its ending."""

    file: str
    changes: tuple[str, ...]
    suffix: str
    seed: int


def cases(n: int, seed: int) -> list[Case]:
    """n cases, the same for the same seed."""
    rng = random.Random(seed)
    return [
        Case(
            rng.choice(list(INPUTS)),
            tuple(rng.choice(list(TEXT_CHANGES)) for _ in range(rng.choice((0, 1, 1, 1, 2, 3)))),
            rng.choice(SUFFIXES),
            rng.randrange(2**31),
        )
        for _ in range(n)
    ]


# --- the command and the oracle -----------------------------------------------------------------------


def check(case: Case, home: Path, call: Cli) -> None:
    """Write the changed file, call the command that reads it, hold what came of it against the oracle."""
    given, rng = INPUTS[case.file], random.Random(case.seed)
    with standing_in(home):
        _surroundings(home, case)
        content = given.content()
        packed = given.name.endswith(".gz") and rng.random() < 0.5  # what is inside is changed
        content = gzip.decompress(content) if packed else content
        for change in case.changes:
            content = TEXT_CHANGES[change](content, rng)
        path = home / f"{given.name}{case.suffix}"
        path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
        before = snapshot(home)
        said = call(*(word.replace("FILE", path.name) for word in given.words))
        check_said(said, case)
        check_kept(before, case)
        if said.code == 2:
            assert not (home / "out/manifest.json").exists(), (case, "a command that was wrong left a run")
        if said.code == 0 and case.file.startswith("texts "):
            _check_texts(case, path, home, call)


def _surroundings(home: Path, case: Case) -> None:
    (home / "m.jsonl").write_bytes(_script())
    write_vectors(home / "vectors.txt")
    (home / "plain.csv").write_bytes(_table(","))
    if case.file == "aliases":
        base = home.parent / "base-of-texts"
        if not base.exists():
            base.mkdir()
            probe_run(base)
        for name in ("run", "other"):
            shutil.copytree(base / "probe", home / name)


def _check_texts(case: Case, path: Path, home: Path, call: Cli) -> None:
    """What was stored is what another reader finds, and the tables are those of a clean file of it."""
    rows = [json.loads(line) for line in (home / "out/generations.jsonl").read_text("ascii").splitlines()]
    records = _records(path, case)
    assert [row["text"] for row in rows] == [record["text"] for record in records], (case, "other texts")
    assert [row["occupation"] for row in rows] == [str(record["job"]) for record in records], case
    (home / "clean").mkdir()
    clean = home / "clean" / "mine.jsonl"
    kept = [{name: record.get(name) for name in TEXTS[0]} for record in records]
    clean.write_text("".join(json.dumps(record) + "\n" for record in kept), "ascii")
    words = [word.replace("FILE", str(clean)) for word in (*ANALYZE, *VECTORS)]
    said = call(*["again" if word == "out" else word for word in words])
    assert said.code == 0, (case, said.err)
    assert _tables(home / "out") == _tables(home / "again"), (case, "other tables than those of a clean file")


def _tables(run: Path) -> dict[str, list[dict[str, str]]]:
    """Every table of a run but for the columns that name lines of its file."""
    found = {}
    for path in (run / "tables").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            found[path.name] = [
                {name: value for name, value in row.items() if name not in ("key", "draw")}
                for row in csv.DictReader(file)
            ]
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
