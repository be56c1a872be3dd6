"""A model card's section and an audit's zip: numbers of the tables, foreign text inert, the same bytes."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fakes.tiny_gguf import write_tiny_gguf
from needs import require_torch

import biaskit as bk
from biaskit.common.foreign import fenced, markdown
from biaskit.common.wording import percent
from biaskit.errors import UsageError
from biaskit.tables.schema import SCHEMAS
from biaskit.workflow.evidence import zipped

HOSTILE = "[m](x)|<b>`&amp;*"


@pytest.fixture
def run(quick_folder: Path) -> Path:
    lines = [
        {"contains": "nurse", "log_probs": {" She": -0.5, " He": -1.5}},
        {"log_probs": {" He": -0.4, " She": -1.8, " They": -2.5}},
    ]
    Path("m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    chosen = {"jobs": "nurse,secretary,plumber,carpenter", "templates": "1-3", "out": "run"}
    return bk.probe(f"{HOSTILE}=scripted:m.jsonl", watcher=bk.Silent(), **chosen).path


def export(run: Path, to: str, **more: object) -> bytes:
    return bk.export(run, to=to, watcher=bk.Silent(), **more).path.read_bytes()


def inside(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name.removeprefix("evidence/"): archive.read(name) for name in archive.namelist()}


def test_the_card_has_the_numbers_of_the_tables(run: Path) -> None:
    card = export(run, "card").decode("utf-8")
    groups = bk.load(run, watcher=bk.Silent()).groups
    for row in groups[groups["gender"] == "female"].to_dict("records"):
        assert f"{percent(row['share'])} %" in card
        assert f"{percent(row['coverage'])} %" in card
    assert "clear difference" in card
    assert "biaskit verify RUN" in card
    assert "A share that differs from parity is not wrong" in card


def test_foreign_text_is_only_text_on_the_card(run: Path) -> None:
    card = export(run, "card").decode("utf-8")
    outside = "".join(card.split("```")[::2])
    assert "[m](" not in outside.replace("\\[", "")
    assert "<b>" not in outside.replace("\\<", "")
    assert markdown(HOSTILE) in outside
    table = [line for line in card.splitlines() if line.startswith("|")]
    assert 1 == len({line.replace("\\|", "").count("|") for line in table})


def test_a_fence_cannot_be_closed_from_inside() -> None:
    fence = fenced("a\n````\nb").split("\n")[0]
    assert "`````" == fence


def test_evidence_is_the_same_twice_and_its_sums_hold(run: Path) -> None:
    first = export(run, "evidence")
    assert first == export(run, "evidence")
    files = inside(first)
    sums = dict(reversed(line.split("  ")) for line in files.pop("SHA256SUMS").decode().splitlines())
    assert {name: hashlib.sha256(content).hexdigest() for name, content in files.items()} == sums
    for name in ("page.html", "card.md", "versions.json", "README.md"):
        assert files[name]
    assert (run / "tables" / "probe_groups.csv").read_bytes() == files["results/run-1/probe_groups.csv"]
    stored = json.loads(files["protocol/run-1.json"])["files"]["probe.jsonl"]
    assert hashlib.sha256((run / "probe.jsonl").read_bytes()).hexdigest() == stored


def test_a_gguf_is_known_by_name_digest_and_licence(quick_folder: Path) -> None:
    require_torch()
    for name in ("one", "two"):
        Path(name).mkdir()
        write_tiny_gguf(Path(name) / "m[1].gguf", seed=len(name), licence="apache-2.0")
    chosen: dict[str, Any] = {"jobs": "nurse,plumber", "templates": "1", "watcher": bk.Silent()}
    with pytest.raises(UsageError, match=r"Two models are called 'm\[1\]': give one of them a label"):
        bk.probe("gguf:one/m[1].gguf", "gguf:two/m[1].gguf", out="run", **chosen)
    run = bk.probe("gguf:one/m[1].gguf", out="run", **chosen).path
    digest = hashlib.sha256(Path("one/m[1].gguf").read_bytes()).hexdigest()
    known = {"file": "m[1].gguf", "file_sha256": digest, "general.name": "tiny"}
    known |= {"general.license": "apache-2.0"}
    line = markdown(f"file m[1].gguf, SHA-256 {digest}, named tiny, licence apache-2.0")
    assert line in export(run, "card").decode("utf-8")
    files = inside(export(run, "evidence"))
    assert line in files["card.md"].decode("utf-8")
    assert known.items() <= json.loads(files["protocol/run-1.json"])["models"]["m[1]"]["details"].items()
    # Verified as any run: the file may have moved, and one model needs no label.
    Path("one/m[1].gguf").rename("moved.gguf")
    checks = bk.verify(run, model="gguf:moved.gguf", watcher=bk.Silent()).checks
    assert ["agrees"] == [check.outcome for check in checks if check.name == "model"]
    examined = bk.doctor("gguf:moved.gguf")
    assert "moved" == examined.label
    assert {**known, "file": "moved.gguf"}.items() <= dict(examined.document().tables[0].rows).items()


def test_evidence_says_whether_there_is_a_verification(run: Path) -> None:
    before = inside(export(run, "evidence"))
    assert "Not verified yet" in before["README.md"].decode()
    bk.verify(run, seed=1, watcher=bk.Silent())
    after = inside(export(run, "evidence"))
    assert (run / "verification.json").read_bytes() == after["verification/run-1.json"]
    assert "Verified on" in after["card.md"].decode()


def test_the_crosswalk_names_files_and_columns_that_an_export_has(run: Path) -> None:
    files = inside(export(run, "evidence"))
    rows = list(csv.DictReader(io.StringIO(files["crosswalk.csv"].decode())))
    assert 30 == len(rows)
    assert ["form", "field", "file", "column"] == list(rows[0])
    known = {f"results/*/{name}.csv": table.says.keys() for name, table in SCHEMAS.items()}
    known["results/*/analysis.json"] = json.loads(files["results/run-1/analysis.json"]).keys()
    known["protocol/*.json"] = json.loads(files["protocol/run-1.json"]).keys()
    known["protocol/prompts.json"] = json.loads(files["protocol/prompts.json"])[0].keys()
    known["card.md"] = set(re.findall("^### (.*)$", files["card.md"].decode(), re.M))
    filled = [row for row in rows if row["file"]]
    assert 29 == len(filled)
    assert [] == [row for row in filled if row["column"] not in known[row["file"]]]


def test_a_zip_follows_from_its_files_alone() -> None:
    assert zipped({"b": b"1", "a": b"2"}) == zipped({"a": b"2", "b": b"1"})
