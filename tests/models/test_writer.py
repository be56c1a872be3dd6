"""`bk.writer`: a callable as a model, beside the contract of every backend (`api/test_api_contract.py`)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from fakes.api_cases import samples
from fakes.personas_runs import write_vectors
from fakes.run_files import rows

import biaskit as bk
from biaskit.errors import AskingStopped, Interrupted, ModelError, UsageError
from biaskit.models.api.endpoint import reason_of
from biaskit.models.writer import AT_ONCE, FAILED_IN_A_ROW
from biaskit.records import Failed, Prompt, Sample, Turn

CHEAP = {"clusters": False, "srb_seeds": "1", "permutations": 19, "vectors": "pretrained:v.txt"}
OPENING = "Continue the following text with its next word. Answer with that word only."


def personas(fn: Callable[..., Any], out: str = "texts", **how: Any) -> bk.PersonasResult:
    """Eighteen texts with a gender in the prompt, and six without at least."""
    named = {name: how.pop(name) for name in ("version", "batch_size") if name in how}
    asked: dict[str, Any] = {"occupations": "nurse", "per_gender": 3, "settings": CHEAP, "out": out}
    return bk.personas(bk.writer("mine", fn, **named), **asked, watcher=bk.Silent(), **how)


class Says:
    """Women and men in turn, in texts of their own; it keeps the batches that it got."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def __call__(self, prompts: list[str]) -> list[str]:
        self.batches.append(list(prompts))
        n = len(self.batches)
        return [f"{'She' if i % 2 else 'He'} is a nurse and kind, {n} {i}." for i, _ in enumerate(prompts)]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_vectors(Path("v.txt"))


# --- a run of each measurement ------------------------------------------------------------------------------


def test_texts_become_rows_and_are_asked_once() -> None:
    fn = Says()
    result = personas(fn, batch_size=5)
    stored = rows("texts", "personas.jsonl")
    assert result.complete
    said = Counter(prompt for batch in fn.batches for prompt in batch)
    assert said == Counter(row["prompt"] for row in stored)
    assert all(1 <= len(batch) <= 5 for batch in fn.batches)
    assert {(None, "writer:mine", "chat", "stop")} == {
        (row["seed"], row["answered_by"], row["prompt_format"], row["finish_reason"]) for row in stored
    }
    n = len(fn.batches)
    personas(fn)
    assert n == len(fn.batches)
    used = json.loads(Path("texts/usage.json").read_text())["mine"]
    assert (n, None, len(stored)) == (used["calls"], used["cost"], used["rows"])


def test_a_probe_draws_from_it_in_full_batches() -> None:
    fn = Says()
    asked: dict[str, Any] = {"jobs": "nurse,plumber", "templates": "1-2", "bias_type": "implicit"}
    result = bk.probe(bk.writer("mine", fn), **asked, samples=6, watcher=bk.Silent(), out="cells")
    assert {"sampling"} == set(result.prompts["estimator"])
    assert {0.5} == set(result.prompts["female_share"])
    assert [16, 8] == [len(batch) for batch in fn.batches]
    cell = rows("cells")[0]
    assert re.fullmatch(rf"{OPENING}\n\nQ: [^\n]+\nA: \S[^\n]+\S", cell["prompt"])
    assert cell["prompt"] in fn.batches[0]
    assert "callable=mine" in result.analysis()["signature"]


def test_a_callable_that_rarely_answers_is_sent_to_no_command() -> None:
    said = cycle(["She", *["Well"] * 18])
    model = bk.writer("mine", lambda prompts: [next(said) for _ in prompts])
    result = bk.probe(model, jobs="nurse,plumber", templates="1", watcher=bk.Silent())
    assert any("weak evidence" in warning for warning in result.warnings)
    assert not any("doctor" in warning for warning in result.warnings)


def test_a_plan_calls_nothing() -> None:
    fn = Says()
    personas(fn, dry_run=True)
    bk.probe(bk.writer("mine", fn), jobs="nurse", dry_run=True, watcher=bk.Silent())
    assert [] == fn.batches
    assert not Path("texts").exists()


def test_name_and_version_are_the_model() -> None:
    first, second, third = Says(), Says(), Says()
    personas(first)
    personas(second)
    assert [] == second.batches
    result = personas(third, version="2")
    assert len(first.batches) == len(third.batches)
    assert any("has changed" in warning for warning in result.warnings)


def test_thoughts_are_parted() -> None:
    personas(lambda prompts: ["<think>A man?</think>\nShe is kind."] * len(prompts))
    assert {"She is kind."} == {row["text"] for row in rows("texts", "personas.jsonl")}


# --- what goes wrong -------------------------------------------------------------------------------------


async def raises_later(prompts: list[str]) -> list[str]:
    await asyncio.sleep(0)
    raise RuntimeError("not\nnow")


async def cancels(prompts: list[str]) -> list[str]:
    raise asyncio.CancelledError("of its own")


def raises(prompts: list[str]) -> list[str]:
    raise ValueError(f"bad key {os.environ['ACME_API_KEY']}\nof yours")


BROKEN: dict[str, tuple[Callable[..., Any], str]] = {
    "raises": (raises, "fn raised ValueError: bad key [key] of yours"),
    "exits": (lambda prompts: sys.exit("no key"), "fn raised SystemExit: no key"),
    "raises later": (raises_later, "fn raised RuntimeError: not now"),
    "raises later, wrapped": (lambda prompts: raises_later(prompts), "fn raised RuntimeError: not now"),
    "cancels": (cancels, "fn raised CancelledError: of its own"),
    "takes no prompts": (lambda: ["She"], "fn raised TypeError: <lambda>() takes 0 positional"),
    "fewer": (lambda prompts: ["She"] * 3, "fn returned list: 3 texts for 4"),
    "more": (lambda prompts: ["She"] * 5, "fn returned list: 5 texts for 4"),
    "none at all": (lambda prompts: [], "fn returned list: 0 texts for 4"),
    "nothing": (lambda prompts: None, "fn returned NoneType: not a list of texts"),
    "one text": (lambda prompts: "four", "fn returned str: not a list of texts"),
    "a table": (dict.fromkeys, "fn returned dict: not a list of texts"),
    "no texts": (lambda prompts: [None] * 4, "fn gave NoneType for a text"),
    "numbers": (lambda prompts: [1] * 4, "fn gave int for a text"),
}


def test_a_switch_of_tokenizers_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    assert "a false start with [key]" == reason_of(ValueError("a false start with s3cret"))


@pytest.mark.parametrize(("fn", "said"), BROKEN.values(), ids=BROKEN)
def test_what_a_callable_does_wrong_is_named_for_each_of_its_prompts(
    fn: Callable[..., Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "acme-s3cret-value")
    backend = bk.writer("mine", fn, batch_size=4)
    requests = samples(4)
    answers = [answer for group in backend.generate([requests]) for answer in group]
    assert [request.key for request in requests] == [answer.key for answer in answers]
    for answer in answers:
        assert isinstance(answer, Failed)
        assert answer.reason.startswith(said)
        assert "\n" not in answer.reason
    backend.close()


def test_texts_that_are_missing_leave_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    fn = Says()

    def now_and_then(prompts: list[str]) -> Sequence[str | None]:
        texts = fn(prompts)
        if len(fn.batches) == 2:
            raise ConnectionError("away")
        return [None if i == 1 else text for i, text in enumerate(texts)]

    result = personas(now_and_then, batch_size=4)
    stored = rows("texts", "personas.jsonl")
    assert not result.complete
    assert {"fn gave NoneType for a text"} == set(result.failed["mine"])  # the lost batch was asked once more
    assert any("texts failed (fn gave NoneType for a text)" in warning for warning in result.warnings)
    assert "Traceback" not in capsys.readouterr().err
    again = personas(Says())
    assert again.complete
    assert stored == rows("texts", "personas.jsonl")[: len(stored)]


def test_calls_in_a_row_without_a_text_stop_the_model_and_one_text_between_them_does_not() -> None:
    n = 0

    def fn(prompts: list[str]) -> list[str | None]:
        nonlocal n
        n += 1
        if n % FAILED_IN_A_ROW and n < 3 * FAILED_IN_A_ROW:
            raise TimeoutError
        return ["She", *[None] * (len(prompts) - 1)]

    requests = samples(400)
    backend = bk.writer("mine", fn, batch_size=4)
    answers = [answer for group in backend.generate([requests]) for answer in group]
    assert 100 == n
    assert len(requests) == len(answers)
    assert 3 < sum(isinstance(answer, Sample) for answer in answers) < 100
    result = personas(lambda prompts: 1 / 0, batch_size=2)
    said = f"{FAILED_IN_A_ROW} calls in a row gave no text (fn raised ZeroDivisionError: division by zero)"
    assert {"mine": said} == result.failed_models
    with pytest.raises(AskingStopped, match="calls in a row"):
        list(bk.writer("mine", cancels, batch_size=1).generate([requests]))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("", Says()), "takes a name"),
        (("a\ud800", Says()), "takes a name"),
        (("mine", "fn"), "a callable"),
        ((3, Says()), "give a text"),
        (("mine", Says(), {"version": 3}), "give a text"),
        (("mine", Says(), {"batch_size": 0}), "batch_size is 0"),
        (("mine", Says(), {"version": "\n"}), "takes a name"),
    ],
    ids=["no name", "half a character", "no callable", "no text", "a number", "no calls", "a line break"],
)
def test_what_is_no_writer_is_one_line(arguments: Any, said: str) -> None:
    name, fn, *more = arguments
    with pytest.raises(UsageError, match=said) as told:
        bk.writer(name, fn, **(more[0] if more else {}))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"estimator": "top-k"}, "gives only texts"),
        ({"prompt_format": "raw"}, "takes no prompt format raw"),
        ({"system_prompt": "Be kind."}, "takes no system prompt"),
        ({"max_cost": 1.0}, "the cost of a callable is unknown"),
        ({"settings": {"thinking": "on"}}, "leave out thinking"),
        ({"write_requests": "q.jsonl"}, "is for API models"),
    ],
    ids=str,
)
def test_what_a_callable_cannot_keep_is_refused(how: dict[str, Any], said: str) -> None:
    fn = Says()
    with pytest.raises(bk.BiaskitError, match=said) as told:
        bk.probe(bk.writer("mine", fn), jobs="nurse", **how, watcher=bk.Silent())
    assert "\n" not in str(told.value)
    assert [] == fn.batches


def test_a_prompt_that_is_no_single_text_is_refused() -> None:
    backend = bk.writer("mine", Says())
    assert "Who?" == backend.rendered(Prompt("Who?", "chat"))
    for prompt in (
        Prompt("Who?", "chat", system="Be kind."),
        Prompt("Who?", "chat", preamble="You are a nurse."),
        Prompt("Who?", "chat", turns=(Turn("Hello", "Hi"),)),
        Prompt(" \n", "chat"),
    ):
        with pytest.raises(ModelError, match="gets one text"):
            backend.rendered(prompt)


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="Two models"):
        bk.probe(bk.writer("demo", Says()), "demo", jobs="nurse")


# --- stopped, and gone on with ---------------------------------------------------------------------------


def test_ctrl_c_keeps_what_is_there() -> None:
    fn = Says()

    def interrupted(prompts: list[str]) -> list[str]:
        if len(fn.batches) == 3:
            raise KeyboardInterrupt
        return fn(prompts)

    with pytest.raises(Interrupted, match="12 finished rows are kept"):
        personas(interrupted, batch_size=4)
    before = rows("texts", "personas.jsonl")
    assert personas(fn, batch_size=4).complete
    stored = rows("texts", "personas.jsonl")
    assert before == stored[:12]
    assert len(stored) == sum(map(len, fn.batches))


def test_ctrl_c_cancels_what_an_async_callable_does() -> None:
    begun, ended = [], []

    async def fn(prompts: list[str]) -> list[str]:
        begun.append(prompts)
        if len(begun) > 1:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(prompts)
        return ["She"] * len(prompts)

    backend = bk.writer("mine", fn, batch_size=2)
    groups = backend.generate([samples(40)])
    assert 2 == len(next(groups))
    groups.close()  # type: ignore[attr-defined]
    assert len(begun) - 1 == len(ended) == AT_ONCE - 1
    backend.close()


def test_an_async_callable_has_some_batches_in_hand() -> None:
    now, most = 0, 0

    async def fn(prompts: list[str]) -> list[str]:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return [f"{prompt} She" for prompt in prompts]

    backend = bk.writer("mine", fn, batch_size=2)
    requests = samples(40)
    answers = {answer.key: answer for group in backend.generate([requests]) for answer in group}
    assert AT_ONCE == most
    assert all(answers[r.key].text == f"{r.prompt.text} She" for r in requests)  # type: ignore[union-attr]
    backend.close()


# --- and afterwards --------------------------------------------------------------------------------------


def test_verify_says_that_a_callable_cannot_be_asked_again(console: Any) -> None:
    result = personas(Says())
    checks = {check.name: check for check in bk.verify(result, watcher=bk.Silent()).checks}
    assert "agrees" == checks["rows"].outcome == checks["tables"].outcome
    said = "a callable cannot be queried from a command"
    assert ("not-checked", said) == (checks["texts"].outcome, checks["texts"].text)
    printed = console("verify", "texts")  # without a question: nothing of anybody is opened
    assert 3 == printed.code
    assert "a callable cannot be queried from a command" in " ".join(printed.out.split())
    cells = bk.probe(bk.writer("mine", Says()), jobs="nurse", templates="1", watcher=bk.Silent())
    assert said == bk.verify(cells, watcher=bk.Silent()).checks[-1].text


@pytest.mark.parametrize("command", ["probe", "personas", "doctor"])
def test_a_command_cannot_ask_a_callable(command: str, console: Any) -> None:
    asked = console(command, "writer:mine")
    assert 1 == asked.code
    assert "works only from Python" in asked.err
    assert 1 == asked.err.strip().count("\n") + 1
