"""Requests for a batch service and its answers: the run of a live server, and every way to be no answer."""

from __future__ import annotations

import gzip
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes.api_cases import CANNED, MODEL
from fakes.api_server import ApiServer, Behaviour
from fakes.command import Cli, Said
from fakes.run_files import csv_tables as tables
from fakes.run_files import one_line
from fakes.run_files import rows_by_key as rows

import biaskit as bk

Json = dict[str, Any]
PROBE = ("--jobs", "nurse,plumber", "--templates", "1-2", "--set", "k=5", "--no-reuse", "--yes")
PERSONAS = (
    *("--occupations", "nurse,cook", "--per-gender", "3", "--max-samples", "12", "--max-new-tokens", "24"),
    *("--set", "permutations=19", "--set", "srb_seeds=1", "--set", "clusters=false", "--no-reuse", "--yes"),
)


@pytest.fixture(autouse=True)
def folder(quick_folder: Path) -> Path:
    return quick_folder


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(MODEL, Behaviour(canned=CANNED)) as started:
        yield started


def answered(server: ApiServer, line: Json) -> Json:
    """What a plain script makes of a request."""
    request = urllib.request.Request(
        server.url.removesuffix("/v1") + line["url"],
        json.dumps(line["body"]).encode(),
        {"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as response:
            status, body = response.status, json.load(response)
    except urllib.error.HTTPError as error:
        status, body = error.code, json.load(error)
    return {
        "id": "batch_req_1",
        "custom_id": line["custom_id"],
        "response": {"status_code": status, "request_id": "1", "body": body},
        "error": None,
    }


def read(name: str) -> list[Json]:
    return [json.loads(line) for line in Path(name).read_text("ascii").splitlines()]


def write(name: str, lines: Sequence[Json | str]) -> str:
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines)
    Path(name).write_text(text, encoding="utf-8")
    return name


def spec(server: ApiServer) -> str:
    return f"m=api:toy@{server.url}"


def shown(said: Said) -> str:
    return " ".join((said.err + said.out).split())


def written(
    cli: Cli, server: ApiServer, *more: str, out: str = "batch", kind_name: str = "probe"
) -> list[Json]:
    """The requests of a new run."""
    common = PROBE if kind_name == "probe" else PERSONAS
    said = cli(kind_name, spec(server), *common, "--out", out, "--write-requests", "requests.jsonl", *more)
    assert 0 == said.code, said.err
    return read("requests.jsonl")


TOP_K = ("--estimator", "top-k", "--prompt-format", "raw")

# --- the run of a live server -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "prompt_format", "more"),
    [
        ("sampling", "chat-continue", ()),
        ("sampling", "raw", ("--batch-size", "1")),
        ("top-k", "raw", ()),
        ("top-k", "chat-continue", ()),
        ("echo", "raw", ()),
    ],
)
def test_batches_of_requests_give_the_rows_and_tables_of_a_live_run(
    cli: Cli, server: ApiServer, estimator: str, prompt_format: str, more: Sequence[str]
) -> None:
    how = ("--estimator", estimator, "--prompt-format", prompt_format, *more)
    assert 0 == cli("probe", spec(server), *PROBE, *how, "--out", "live").code
    for _ in range(15):
        asked_before = server.stats()["requests"]
        said = cli("probe", spec(server), *PROBE, *how, "--out", "batch", "--write-requests", "r.jsonl")
        assert 0 == said.code, said.err
        assert asked_before == server.stats()["requests"], "something was asked"
        if "no request is left to write" in shown(said):
            break
        assert not Path("batch/tables").exists()
        lines = read("r.jsonl")
        assert len(lines) == len({line["custom_id"] for line in lines})
        answers = write("a.jsonl", [answered(server, line) for line in lines])
        assert 0 == cli("import", "batch", answers).code
    else:
        pytest.fail("it never ends")
    assert rows("live") == rows("batch")
    assert 0 == cli("analyze", "batch").code
    assert tables("live") == tables("batch")


def test_texts_give_the_rows_and_tables_of_a_live_run(cli: Cli, server: ApiServer) -> None:
    how = ("--batch-size", "1")
    assert 0 == cli("personas", spec(server), *PERSONAS, *how, "--out", "live").code
    for _ in range(6):  # one batch, or more where the toy model happens to write of people
        lines = written(cli, server, *how, kind_name="personas")
        # The key of the row itself.
        assert {line["custom_id"] for line in lines} <= rows("live", "personas.jsonl").keys()
        answers = write("a.jsonl", [answered(server, line) for line in lines])
        if "all requests are answered" in shown(cli("import", "batch", answers)).lower():
            break
    assert rows("live", "personas.jsonl") == rows("batch", "personas.jsonl")
    assert 0 == cli("analyze", "batch").code
    assert tables("live") == tables("batch")


# --- what is written ----------------------------------------------------------------------------------------


def test_the_lines_are_those_of_openai_s_batches(cli: Cli, server: ApiServer) -> None:
    lines = written(cli, server)
    assert {("custom_id", "method", "url", "body")} == {tuple(line) for line in lines}
    assert {("POST", "/v1/chat/completions")} == {(line["method"], line["url"]) for line in lines}
    assert {"toy"} == {line["body"]["model"] for line in lines}
    assert {10} == {line["body"]["n"] for line in lines}
    manifest = json.loads(Path("batch/manifest.json").read_text())
    assert manifest["models"]["m"]["abilities"]["assumed"]
    assert not Path("batch/tables").exists()
    assert not Path("batch/probe.jsonl").read_bytes()


def test_openai_needs_no_key_and_gets_no_parameter_that_it_does_not_know(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    said = cli("probe", "openai:gpt-4o-mini-2024-07-18", *PROBE, "--out", "o", "--write-requests", "r.jsonl")
    assert 0 == said.code, said.err
    assert "cost unknown" in said.err
    assert "assumed: /v1/chat/completions, sampling" in shown(said)
    known = {"model", "messages", "max_completion_tokens", "temperature", "top_p", "seed", "n"}
    assert [known] * len(read("r.jsonl")) == [set(line["body"]) for line in read("r.jsonl")]


@pytest.mark.parametrize(
    ("models", "more", "said"),
    [
        (("scripted:m.jsonl",), (), "is for API models"),
        (("a=api:x@http://h/v1", "b=api:y@http://h/v1"), (), "takes one model, not 2"),
        (("api:x@http://h/v1",), ("--max-cost", "2", "--price", "1,1"), "--max-cost limits what"),
        (("api:x@http://h/v1",), ("--estimator", "selected-ids"), "token ids need a running server"),
        (("api:x@http://h/v1",), ("--estimator", "echo", "--prompt-format", "chat-continue"), "echo is not"),
        (("api:x@http://h/v1",), ("--write-requests", "r.txt"), "let it end in .jsonl"),
        (("api:x@http://h/v1",), ("--write-requests", "mine.jsonl"), "exists and is not a file of requests"),
        (("api:x@http://h/v1",), ("--write-requests", "folder.jsonl"), "is not a file"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_one_line(
    cli: Cli, models: Sequence[str], more: Sequence[str], said: str
) -> None:
    write("m.jsonl", [{"log_probs": {" She": -0.5}}])
    write("mine.jsonl", [{"custom_id": "1"}])
    Path("folder.jsonl").mkdir()
    done = cli("probe", *models, *PROBE, "--out", "x", "--write-requests", "r.jsonl", *more)
    assert done.code in (1, 2)
    assert said in one_line(done)
    assert [{"custom_id": "1"}] == read("mine.jsonl")
    assert not Path("r.jsonl").exists()


# --- answers of many services -------------------------------------------------------------------------------


def vllm(line: Json) -> Json:
    return {**line, "id": "vllm-1", "response": {**line["response"], "request_id": "vllm-batch-1"}}


SHAPES: dict[str, Callable[[Json], Any]] = {
    "openai": lambda line: line,
    "vllm run-batch": vllm,
    "answer beside custom_id": lambda line: {"custom_id": line["custom_id"], **line["response"]["body"]},
    "answer as response": lambda line: {"custom_id": line["custom_id"], "response": line["response"]["body"]},
    "answer as text": lambda line: {
        "custom_id": line["custom_id"],
        "response": {"status_code": 200, "body": json.dumps(line["response"]["body"])},
    },
    "ray http": lambda line: {"custom_id": line["custom_id"], "http_response": line["response"]["body"]},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_answers_is_read(cli: Cli, server: ApiServer, shape: str) -> None:
    lines = written(cli, server, *TOP_K)
    answers = [SHAPES[shape](answered(server, line)) for line in lines]
    said = cli("import", "batch", write("a.jsonl", answers))
    assert 0 == said.code, shown(said)
    assert "8 lines read: 8 rows added to batch, 0 answers stored before." in shown(said)
    assert 8 == len(rows("batch"))


def test_a_row_of_rays_processors_is_an_answer_whose_end_follows_from_its_tokens(
    cli: Cli, server: ApiServer
) -> None:
    how = ("--estimator", "sampling", "--prompt-format", "chat-continue", "--batch-size", "1")
    rays, expected = [], []
    for line in written(cli, server, *how):
        body = answered(server, line)["response"]["body"]
        [choice], counted = body["choices"], body["usage"]["completion_tokens"]
        # A text that ends with its last token counts as cut: nobody can tell.
        expected.append("length" if counted >= line["body"]["max_tokens"] else choice["finish_reason"])
        ray = {"generated_text": choice["message"]["content"], "num_generated_tokens": counted}
        rays.append({"custom_id": line["custom_id"], **ray})
    said = cli("import", "batch", write("a.jsonl", rays))
    assert 0 == said.code, shown(said)
    assert "8 rows added to batch" in shown(said)
    found = [finish for row in rows("batch").values() for _, finish in row["answers"]]
    assert sorted(expected) == sorted(found)


def test_compressed_answers_in_several_files(cli: Cli, server: ApiServer) -> None:
    lines = [answered(server, line) for line in written(cli, server, *TOP_K)]
    Path("a.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(x) + "\n" for x in lines[:5]).encode()))
    assert 0 == cli("import", "batch", "a.jsonl.gz", write("b.jsonl", lines[5:])).code
    assert 8 == len(rows("batch"))


# --- what is no answer --------------------------------------------------------------------------------------


def imported(cli: Cli, answers: Sequence[Json | str]) -> Said:
    return cli("import", "batch", write("a.jsonl", answers))


@pytest.fixture
def lines(cli: Cli, server: ApiServer) -> list[Json]:
    """The answers to eight requests, all sound."""
    return [answered(server, line) for line in written(cli, server, *TOP_K)]


def test_importing_again_changes_nothing(cli: Cli, lines: list[Json]) -> None:
    assert 0 == imported(cli, lines).code
    before = Path("batch/probe.jsonl").read_bytes()
    said = imported(cli, lines)
    assert 0 == said.code
    assert "0 rows added to batch, 8 answers stored before. All requests are answered" in shown(said)
    assert before == Path("batch/probe.jsonl").read_bytes()


def body_with(line: Json, **values: Any) -> Json:
    response = line["response"]
    return {**line, "response": {**response, "body": {**response["body"], **values}}}


def lying(line: Json) -> Json:
    """A list with a probability above 1."""
    changed = json.loads(json.dumps(line))
    block = changed["response"]["body"]["choices"][0]["logprobs"]["top_logprobs"][0]
    block[next(iter(block))] = 0.5
    return changed  # type: ignore[no-any-return]


FAULTS: dict[str, tuple[Callable[[Json], Any], str]] = {
    "lies": (lying, "1 line not used, a log-probability above 0: a.jsonl, line 1"),
    "status": (
        lambda x: {**x, "response": {"status_code": 429, "body": {"error": {"message": "slow down"}}}},
        "1 line not used, 429: slow down: a.jsonl, line 1",
    ),
    "openai error": (
        lambda x: {**x, "response": None, "error": {"code": "batch_expired", "message": "too late"}},
        "1 line not used, 400: too late: a.jsonl, line 1",
    ),
    "vllm error": (
        lambda x: {**x, "response": {"status_code": 400, "body": None}, "error": "no such url"},
        "1 line not used, 400: no such url: a.jsonl, line 1",
    ),
    "no choices": (lambda x: body_with(x, choices=[]), "the answer has no choices"),
    "no model": (lambda x: body_with(x, model=None), "the answer names no model"),
    "another model": (
        lambda x: body_with(x, model="toy-2"),
        "another model answered, 'toy-2'; the others are of toy: a.jsonl, line 1",
    ),
    "no list": (
        lambda x: body_with(x, choices=[{"index": 0, "text": " a", "finish_reason": "stop"}]),
        "no log-probabilities",
    ),
    "cut": (lambda x: json.dumps(x)[:90], "1 line not used, no JSON: a.jsonl, line 1"),
    "list": (lambda _: [1], "1 line not used, no object"),
    "no id": (lambda x: {**x, "custom_id": None}, "1 line not used, no custom_id"),
    "nothing": (lambda x: {"custom_id": x["custom_id"]}, "1 line not used, no answer in it"),
    "a request": (
        lambda x: {"custom_id": x["custom_id"], "method": "POST", "url": "/v1/completions", "body": {}},
        "1 line not used, a request, not an answer",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_answer_is_named_counted_and_asked_again(
    cli: Cli, server: ApiServer, lines: list[Json], fault: str
) -> None:
    change, told = FAULTS[fault]
    said = imported(cli, [change(lines[0]), *lines[1:]])
    assert 3 == said.code
    assert told in shown(said)
    assert "8 lines read: 7 rows added to batch" in shown(said)
    assert "1 prompt still open" in shown(said)
    assert 7 == len(rows("batch"))
    # It alone is written again, and its sound answer completes the run.
    [again] = written(cli, server, *TOP_K)
    assert lines[0]["custom_id"] == again["custom_id"]
    assert 0 == imported(cli, [lines[0]]).code
    assert 8 == len(rows("batch"))


def test_a_file_that_ends_in_the_middle_of_a_line(cli: Cli, lines: list[Json]) -> None:
    whole = "".join(json.dumps(line) + "\n" for line in lines)
    for name, content in (
        ("a.jsonl", whole.encode()[:-40]),
        ("b.jsonl.gz", gzip.compress(whole.encode())[:-40]),
    ):
        Path(name).write_bytes(content)
        said = cli("import", "batch", name)
        assert 3 == said.code
        assert f"1 line not used, cut off: {name}, " in shown(said)
        assert 6 <= len(rows("batch")) < 8 or name.endswith("gz")


def test_answers_to_nothing_are_named(cli: Cli, lines: list[Json]) -> None:
    strange = [{**lines[0], "custom_id": name} for name in ("x", "f" * 32)]
    said = imported(cli, [*strange, *lines])
    assert 3 == said.code
    assert f"2 answers to no request of this run (custom_id x; {'f' * 32})" in shown(said)
    assert 8 == len(rows("batch"))


def test_of_two_answers_the_first_good_one_counts(cli: Cli, lines: list[Json]) -> None:
    failed = {**lines[0], "response": {"status_code": 500, "body": {"error": "no"}}}
    said = imported(cli, [failed, *lines, lying(lines[1])])
    assert 0 == said.code
    assert 8 == len(rows("batch"))


def test_answers_of_another_model_than_the_stored_rows(cli: Cli, lines: list[Json]) -> None:
    assert 0 == imported(cli, lines[:1]).code
    other = [body_with(line, model="toy-2") for line in lines[1:]]
    said = imported(cli, other)
    assert 3 == said.code
    assert "7 lines not used, another model answered, 'toy-2'; the others are of toy" in shown(said)
    assert 1 == len(rows("batch"))
    assert 0 == cli("import", "batch", "a.jsonl", "--accept-model-change").code
    assert 8 == len(rows("batch"))
    assert "m is a mixture" in shown(cli("analyze", "batch"))


def test_fewer_texts_than_asked_for_are_no_cell(cli: Cli, server: ApiServer) -> None:
    asked = [answered(server, line) for line in written(cli, server)]
    short = [body_with(line, choices=line["response"]["body"]["choices"][:4]) for line in asked]
    said = cli("import", "batch", write("a.jsonl", short))
    assert 3 == said.code
    assert "8 lines not used, fewer texts than requested" in shown(said)
    assert not rows("batch")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("batch", "none.jsonl"), 2, "none.jsonl"),
        (("batch", "empty.jsonl"), 2, "has no answers"),
        (("nowhere", "a.jsonl"), 1, "no folder nowhere"),
        (("scripted", "a.jsonl"), 1, "has no API model"),
    ],
)
def test_what_cannot_be_imported_is_one_line(
    cli: Cli, lines: list[Json], arguments: Sequence[str], code: int, said: str
) -> None:
    write("a.jsonl", lines)
    Path("empty.jsonl").write_text("\n")
    write("m.jsonl", [{"log_probs": {" She": -0.5}}])
    cli("probe", "scripted:m.jsonl", "--jobs", "nurse", "--templates", "1", "--out", "scripted")
    done = cli("import", *arguments)
    assert code == done.code
    assert said in one_line(done)


def test_python_imports_too(lines: list[Json]) -> None:
    broken = [lying(lines[0]), *lines[1:], {**lines[0], "custom_id": "x"}]
    made = bk.import_answers("batch", write("a.jsonl", broken), watcher=bk.Silent())
    assert (7, 0, 1, ("x",)) == (made.added, made.stored, made.left, made.unknown)
    assert {"a log-probability above 0": 1} == made.refused
    assert not made.complete
