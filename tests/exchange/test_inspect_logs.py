"""Runs as logs of Inspect and back: every table the same to the byte, and what breaks a log is one line."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.api_cases import CANNED, MODEL
from fakes.api_server import ApiServer, Behaviour
from fakes.personas_runs import NAMED, OPEN, script_of, write_vectors

import biaskit as bk
from biaskit.errors import BiaskitError
from biaskit.exchange.inspect_import import is_log
from biaskit.runs.manifest import read_manifest
from biaskit.workflow.logged import are_logs, import_log

pytestmark = pytest.mark.slow  # importing inspect_ai takes seconds

HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(1)</script>",
    "[x](javascript:alert(1)) ![x](http://127.0.0.1:9/p.png)",
    "attachment://0123456789abcdef",
    "\x1b[31m\u202e$(rm -rf /)\n\n# {{7*7}}",
    "\ud800 half a character",
)
QUIET: dict[str, Any] = {"watcher": bk.Silent()}


def script(path: Path, *lines: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    return f"scripted:{path}"


def tables(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((run / "tables").glob("*.csv"))}


def exported(run: Path) -> list[Path]:
    return list(bk.export(run, to="inspect", **QUIET).files)


def comes_back(run: Path, new: Path) -> bk.ProbeResult | bk.PersonasResult:
    """Every log of a run imported: the same tables and the same rows."""
    again = import_log(new, *exported(run), **QUIET)
    assert tables(run)
    assert tables(run) == tables(new)
    for rows in run.glob("*.jsonl"):
        assert rows.read_bytes() == (new / rows.name).read_bytes()
    return again  # type: ignore[return-value]


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models whose probabilities are stated, both bias types."""
    home = tmp_path_factory.mktemp("exact")
    one = script(home / "a.jsonl", {"log_probs": {" He": -1.2, " She": -1.5, " They": -3.0, " Male": -2.0}})
    two = script(
        home / "b.jsonl",
        {"contains": "nurse", "log_probs": {" She": -0.6, " He": -3.5, " Female": -2.0}},
        {"log_probs": {" She": -2.2, " He": -0.9, " Male": -2.0}},
    )
    asked = {"jobs": "1-3,21-23", "templates": "1-3", **QUIET}
    return bk.probe(f"one={one}", f"../two <b>={two}", out=home / "run", **asked).path


@pytest.fixture(scope="module")
def log(exact: Path) -> Path:
    return exported(exact)[0]


def test_exact_runs_of_several_models_come_back(exact: Path, tmp_path: Path) -> None:
    assert 4 == len(exported(exact))
    comes_back(exact, tmp_path / "new")


def test_a_log_alone_is_a_run_of_what_it_holds(exact: Path, log: Path, tmp_path: Path) -> None:
    result = import_log(tmp_path / "new", log, **QUIET)
    assert "inspect" == read_manifest(tmp_path / "new")["recorded"]  # no other run takes its rows over
    assert {"one"} == set(result.table("probe_groups")["model"])
    assert {"explicit"} == set(result.table("probe_groups")["bias_type"])
    assert any("../two <b>" in note for note in result.warnings)
    assert any("also asked implicit prompts" in note for note in result.warnings)
    of_run = bk.load(exact, **QUIET).groups  # type: ignore[attr-defined]
    same = of_run[(of_run["model"] == "one") & (of_run["bias_type"] == "explicit")].reset_index(drop=True)
    assert same.equals(result.table("probe_groups"))
    assert not (tmp_path / "x").exists()


def test_exporting_again_gives_the_same_bytes(exact: Path, tmp_path: Path) -> None:
    first = {path.name: path.read_bytes() for path in exported(exact)}
    shutil.rmtree(exact / "exports")
    assert first == {path.name: path.read_bytes() for path in exported(exact)}
    assert all(name.isascii() and "/" not in name and "<" not in name for name in first)


def test_inspects_own_reader_sees_cells_scores_and_intervals(exact: Path, log: Path) -> None:
    from inspect_ai.log import read_eval_log

    whole, head = read_eval_log(str(log)), read_eval_log(str(log), header_only=True)
    assert "success" == whole.status == head.status
    assert head.samples is None
    assert whole.samples is not None
    assert 18 == len(whole.samples) == head.results.total_samples  # type: ignore[union-attr]
    groups = bk.load(exact, **QUIET).groups  # type: ignore[attr-defined]
    rows = groups[(groups["model"] == "one") & (groups["bias_type"] == "explicit")]
    scores = {score.name: score for score in head.results.scores}  # type: ignore[union-attr]
    for row in rows.to_dict("records"):
        metric = scores[f"{row['gender']} share"].metrics[f"{row['gender']} share in {row['job_group']}"]
        assert row["share"] == metric.value
        assert (row["ci_low"], row["ci_high"]) == (metric.metadata["ci_low"], metric.metadata["ci_high"])  # type: ignore[index]
    cells = bk.load(exact, **QUIET).cells  # type: ignore[attr-defined]
    cell = cells[(cells["model"] == "one") & (cells["bias_type"] == "explicit")].iloc[0]
    sample = whole.samples[0]
    assert cell["job"] == sample.metadata["job"]
    value = sample.scores["biaskit"].value  # type: ignore[index]
    assert (cell["female_share"], cell["coverage"]) == (value["female share"], value["coverage"])  # type: ignore[index,call-overload]


def test_draws_of_several_rounds_and_hostile_texts_come_back(tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    texts = [*HOSTILE, "She said", "He did", "They"]
    model = script(tmp_path / "m.jsonl", {"texts": texts, "log_probs": {}})
    asked = {"estimator": "sampling", "draws": 4, "max_draws_per_cell": 12, "bias_type": "implicit"}
    run = bk.probe(model, jobs="1-2,21-22", templates="1-2", out=tmp_path / "run", **asked, **QUIET).path
    assert any(row["round"] for row in map(json.loads, (run / "probe.jsonl").read_text().splitlines()))
    comes_back(run, tmp_path / "new")
    said = {
        choice.message.text
        for sample in read_eval_log(str(exported(run)[0])).samples or ()
        for choice in sample.output.choices
    }
    assert set(HOSTILE[:4]) <= said


def test_continuations_come_back(tmp_path: Path) -> None:
    model = script(
        tmp_path / "m.jsonl", {"texts": ["Female.", "Male", "I cannot say."], "log_probs": {" He": -1}}
    )
    asked = {"jobs": "1-2,21-22", "templates": "1-2", "bias_type": "explicit", "continuations": 5}
    run = bk.probe(model, **asked, out=tmp_path / "run", **QUIET).path
    assert (run / "continuations.jsonl").is_file()
    comes_back(run, tmp_path / "new")


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(MODEL, Behaviour(canned=CANNED)) as started:
        yield started


def test_lists_of_a_server_come_back(server: ApiServer, tmp_path: Path) -> None:
    asked = {"jobs": "1-2,21-22", "templates": "1-2", "estimator": "top-k", "prompt_form": "raw"}
    run = bk.probe(f"m=api:toy@{server.url}", **asked, out=tmp_path / "run", **QUIET).path
    comes_back(run, tmp_path / "new")


def test_texts_come_back(tmp_path: Path) -> None:
    model = script_of(tmp_path / "m.jsonl", OPEN, NAMED)
    quick = {"vectors": write_vectors(tmp_path / "v.txt"), "permutations": 19, "clusters": False}
    asked = {"study": "gasp-pilot", "occupations": "nurse,cook", "per_gender": 4, "settings": quick}
    run = bk.personas(model, **asked, out=tmp_path / "run", **QUIET).path
    comes_back(run, tmp_path / "new")


# --- logs that are none ----------------------------------------------------------------------------------


def rewritten(log: Path, path: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """A log with other members; None leaves one out."""
    import inspect_ai.log  # noqa: F401, for zstandard in zipfile

    with zipfile.ZipFile(log) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            if (content := change(member.filename, old.read(member))) is not None:
                new.writestr(member.filename, content)
    return path


def in_header(change: Callable[[dict[str, Any]], object]) -> Callable[[str, bytes], bytes]:
    def apply(name: str, content: bytes) -> bytes:
        if name != "header.json":
            return content
        header = json.loads(content)
        change(header)
        return json.dumps(header).encode()

    return apply


def in_samples(change: Callable[[dict[str, Any]], object]) -> Callable[[str, bytes], bytes]:
    def apply(name: str, content: bytes) -> bytes:
        if not name.startswith("samples/"):
            return content
        sample = json.loads(content)
        change(sample)
        return json.dumps(sample).encode()

    return apply


def mark(header: dict[str, Any]) -> dict[str, Any]:
    return header["eval"]["metadata"]["biaskit"]  # type: ignore[no-any-return]


def row_of(sample: dict[str, Any]) -> dict[str, Any]:
    return sample["metadata"]["biaskit"]["rows"][0]  # type: ignore[no-any-return]


def set_manifest(**values: Any) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        mark(header)["manifest"] = json.dumps({**json.loads(mark(header)["manifest"]), **values})

    return change


BROKEN: list[tuple[Callable[[str, bytes], bytes | None], str]] = [
    (in_header(lambda h: h["eval"].pop("metadata")), "log of another task"),
    (in_header(lambda h: h["eval"]["metadata"].update(biaskit=[1])), "log of another task"),
    (in_header(lambda h: mark(h).update(format=9)), "newer biaskit"),
    (in_header(lambda h: mark(h).update(format=True)), "newer biaskit"),
    (in_header(lambda h: mark(h).update(manifest="{" * 5000)), "its manifest cannot be read"),
    (in_header(lambda h: mark(h).update(manifest='{"engine": NaN}')), "its manifest cannot be read"),
    (in_header(lambda h: mark(h).update(manifest="[]")), "its manifest is no run's"),
    (in_header(set_manifest(engine="gate")), "its manifest is no run's"),
    (in_header(set_manifest(models=7)), "its manifest is no run's"),
    (in_header(set_manifest(resolved={"study": 3})), "resolved.study"),
    (in_header(lambda h: mark(h).update(model="nobody")), "its model is not in its manifest"),
    (in_header(lambda h: mark(h).update(model=["one"])), "its model is not in its manifest"),
    (in_header(lambda h: mark(h).update(bias_type=["explicit"])), "its bias type cannot be read"),
    (in_header(lambda h: mark(h).update(choices="7")), "its choices cannot be read"),
    (in_header(lambda h: mark(h).update(choices='{"jobs": "all"}')), "changes what was asked"),
    (in_header(lambda h: h.update(status="done")), "no log that Inspect can read"),
    (in_header(lambda h: h.pop("eval")), "no log that Inspect can read"),
    (lambda name, content: None if name == "header.json" or "start" in name else content, "a zip archive"),
    (lambda name, content: b"{" if name.startswith("samples/") else content, "no log that Inspect can read"),
    (lambda name, content: b"[" * 100_000 if "samples/" in name else content, "no log that Inspect can read"),
    (in_samples(lambda s: row_of(s).update(row=row_of(s)["row"].replace("-1.2", "-1.3"))), "checksum"),
    (in_samples(lambda s: row_of(s).update(row="{}")), "a row is no row of biaskit"),
    (in_samples(lambda s: row_of(s).update(row='{"key":"a"}')), "no checksum"),
    (in_samples(lambda s: row_of(s).update(file="../../etc/passwd")), "its rows cannot be read"),
    (in_samples(lambda s: row_of(s).update(at="1")), "its rows cannot be read"),
    (in_samples(lambda s: s["metadata"]["biaskit"].update(rows=None)), "its rows cannot be read"),
    (in_samples(lambda s: s["metadata"].pop("biaskit")), "holds no answer"),
    (in_samples(lambda s: s.update(epoch=2)), "holds no answer"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), BROKEN)
def test_a_broken_log_is_one_line_and_leaves_nothing(
    log: Path, tmp_path: Path, change: Callable[[str, bytes], bytes | None], said: str
) -> None:
    path = rewritten(log, tmp_path / "broken.eval", change)
    with pytest.raises(BiaskitError) as told:
        import_log(tmp_path / "new", path, **QUIET)
    assert said in str(told.value)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 600
    assert not (tmp_path / "new").exists()


def bomb() -> bytes:
    """A megabyte that unpacks to two thousand."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed,
        packed.open("header.json", "w", force_zip64=True) as member,
    ):
        for _ in range(1100):
            member.write(bytes(2**20))
    return made.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lambda log: log[: len(log) // 2], "is broken"),
        (lambda log: log[:4], "is broken"),
        (lambda log: log[: len(log) - 40] + bytes(40), "is broken"),
        (lambda log: bomb(), "unpacks to more than"),
        (lambda log: b'{"version": 2, "status": "success"}', "no log that Inspect can read"),
        (lambda log: b'{"version": 2, "status": "success", "eval": ', "no log that Inspect can read"),
    ],
)
def test_a_file_that_is_no_log_is_one_line(
    log: Path, tmp_path: Path, content: Callable[[bytes], bytes], said: str
) -> None:
    path = tmp_path / "x.eval"
    path.write_bytes(content(log.read_bytes()))
    assert are_logs([path])
    with pytest.raises(BiaskitError, match=said) as told:
        import_log(tmp_path / "new", path, **QUIET)
    assert "\n" not in str(told.value)


def test_a_log_as_json_is_a_log(exact: Path, log: Path, tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log, write_eval_log

    write_eval_log(read_eval_log(str(log)), str(tmp_path / "log.json"))
    assert is_log(tmp_path / "log.json")
    one, two = tmp_path / "one", tmp_path / "two"
    import_log(one, tmp_path / "log.json", **QUIET)
    import_log(two, log, **QUIET)
    assert tables(one) == tables(two)


def test_answers_of_a_batch_service_are_no_logs(tmp_path: Path, log: Path) -> None:
    answers = tmp_path / "a.jsonl"
    answers.write_text('{"custom_id": "x", "response": {"status_code": 200}}\n')
    assert not are_logs([answers])
    with pytest.raises(BiaskitError, match="Some of the files are logs"):
        are_logs([answers, log])


def test_a_folder_with_something_in_it_stays_as_it_is(exact: Path, log: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").write_text("mine")
    with pytest.raises(BiaskitError, match="is there already"):
        import_log(tmp_path / "new", log, **QUIET)
    assert ["mine"] == [path.name for path in (tmp_path / "new").iterdir()]


def test_logs_of_two_questions_are_two_runs(log: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "m.jsonl", {"log_probs": {" He": -1.2, " She": -1.5}})
    other = bk.probe(model, jobs="1-2,21-22", templates="1-2", out=tmp_path / "run", **QUIET).path
    with pytest.raises(BiaskitError, match="of two questions"):
        import_log(tmp_path / "new", log, *exported(other), **QUIET)


def test_without_the_package_is_one_line(exact: Path, log: Path, tmp_path: Path, monkeypatch: Any) -> None:
    import biaskit.exchange.source as source

    def missing(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(source, "import_module", missing)
    with pytest.raises(BiaskitError, match=r"pip install 'biaskit\[inspect\]'"):
        bk.export(exact, to="inspect", **QUIET)
    with pytest.raises(BiaskitError, match=r"pip install 'biaskit\[inspect\]'"):
        import_log(tmp_path / "new", log, **QUIET)
