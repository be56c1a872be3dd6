"""What doctor finds out: of servers of every kind under one name, in a few calls, in bounded time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from fakes.api_cases import (
    CANNED,
    MODEL,
    ONE_BY_ONE,
    QUICK,
    cells,
    generate,
    generating,
    is_right,
    options,
    samples,
    score,
)
from fakes.api_server import LIES, ApiServer, Behaviour

from biaskit.errors import ModelError
from biaskit.models.api import checks, text_checks, wire
from biaskit.models.api.abilities import Abilities
from biaskit.models.api.opening import open_api_generator, open_api_scorer
from biaskit.models.api.scorer import ApiScorer
from biaskit.models.entry import ModelEntry
from biaskit.models.options import ScoringOptions
from biaskit.records import PromptFormat, Sample, Scored

FORMATS: tuple[PromptFormat, ...] = ("raw", "chat-prefill", "chat-continue")
ALL, LISTED, TEXTS = ("echo", "top-k", "sampling"), ("top-k", "sampling"), ("sampling",)


@dataclass(frozen=True)
class Shape:
    """A kind of server: what it does, and what must be found out about it."""

    behaviour: dict[str, Any]
    raw: tuple[str, ...] = ALL
    prefill: tuple[str, ...] = ()
    continued: tuple[str, ...] = LISTED
    known: dict[str, Any] = field(default_factory=dict)  # fields of Abilities
    said: tuple[str, ...] = ()  # target words that the findings or problems match


TOLD = {"generation_config": '{"do_sample": true, "top_k": 0}'}
NEUTRAL = {"top_k": -1, "min_p": 0.0, "repeat_penalty": 1.0, "repetition_penalty": 1.0}

GREEDY = {
    "draws nothing": Shape(
        {"greedy": "always", "n_cap": 1},
        raw=("echo", "top-k"),
        continued=("top-k",),
        known={"samples": False, "neutral": NEUTRAL},
        said=("three seeds at temperature 1 give the same text: it always returns the most probable tokens",),
    ),
    "gives one text twice": Shape(
        {"greedy": "always"}, ("echo", "top-k"), (), ("top-k",), {"samples": False}
    ),
}
"""Servers that are asked for no texts."""

SHAPES = {
    "samples only when told to": Shape(
        {"greedy": "unless told", "n_cap": 1},
        known={"samples": True, "neutral": {**NEUTRAL, **TOLD}},
        said=("only if set in generation_config",),
    ),
    "a base model": Shape(
        {"chat_template": False},
        ALL,
        (),
        (),
        {"refused": (), "neutral": NEUTRAL, "choices": 20, "chat": False},
        ("default chat template is no longer allowed",),
    ),
    "behind a gateway": Shape({"wraps_errors": True}, known={"neutral": {**NEUTRAL, "top_k": 0}}),
    "plain": Shape(
        {},
        known={"completions": True, "chat": True, "choices": 20, "takes_system": True}
        | {"chat_limit": "max_tokens", "refused": (), "scale": "before", "completions_k": 20, "chat_k": 20}
        | {"neutral": {"top_k": -1, "min_p": 0.0, "repeat_penalty": 1.0, "repetition_penalty": 1.0}},
        said=("model list: names the model", "2 of 2 choices", "twice the same within 0"),
    ),
    "vLLM": Shape(
        {"token_id_logprobs": True, "prefill": "asked", "canned": CANNED},
        raw=("selected-ids", *ALL),
        prefill=LISTED,
        known={"selected_ids": True, "prefill": "flagged"},
        said=("selected token ids: yes", r"continued \(flagged\)"),
    ),
    "OpenAI, chat only": Shape(
        {"completions": False, "strict": True, "rejects": {"max_tokens"}, "top_k": 5, "prefill": "new-turn"},
        raw=(),
        known={"chat_limit": "max_completion_tokens", "chat_k": 5, "neutral": {}}
        | {"refused": ("min_p", "repeat_penalty", "repetition_penalty", "top_k")},
        said=("wants max_completion_tokens", "/completions: no .404", "a new turn begins"),
    ),
    "vLLM that names tokens by ids": Shape(
        {"token_ids": "unless told"},
        known={"spelling": {"return_tokens_as_token_ids": False}, "completions_k": 20, "chat_k": 20},
        said=("listed tokens: texts only if asked, else token ids",),
    ),
    "token ids whatever it is told": Shape(
        {"token_ids": "always"},
        raw=TEXTS,
        continued=TEXTS,
        known={"spelling": {}, "completions_k": 0, "chat_k": 0},
        said=(r"listed tokens, chat: none .it lists token ids such as token_id:\d+, not texts",),
    ),
    "token ids, and it knows no such field": Shape(
        {"token_ids": "always", "rejects": {"return_tokens_as_token_ids"}},
        raw=TEXTS,
        continued=TEXTS,
        said=("listed tokens, chat: none .it lists token ids",),
    ),
    "before the Responses API": Shape(  # which has no echo
        {"fewest_tokens": 16, "completions": False, "rejects": {"max_tokens"}},
        raw=(),
        known={"fewest_tokens": 16, "chat_k": 20, "chat_limit": "max_completion_tokens"},
        said=("fewest new tokens: 16",),
    ),
    "the same with completions": Shape({"fewest_tokens": 16}, known={"fewest_tokens": 16}),
    "the last of a list has no value": Shape(
        {"lies": "logprobs-last-null"}, known={"completions_k": 19, "chat_k": 19}
    ),
    "llama.cpp": Shape(
        {"echo": "ignored", "n_cap": 1, "canned": CANNED, "system_fingerprint": None},
        raw=LISTED,
        prefill=LISTED,
        known={"choices": 1, "prefill": "plain"},
        said=("1 of 2 choices come back", "echo: no .the prompt was not echoed", r"continued \(plain\)"),
    ),
    "echo is off by one": Shape({"echo": "off-by-one"}, raw=LISTED, said=("echo: not believed",)),
    "echo strips spaces": Shape({"echo": "strips-space"}, raw=LISTED, said=("echo: no",)),
    "echo of text alone": Shape({"echo": "text-only"}, raw=LISTED, said=("the prompt was not echoed",)),
    "echo refused": Shape({"echo": "rejected"}, raw=LISTED, said=("'echo' is not supported",)),
    "echo refused with lists": Shape({"echo": "pair-rejected"}, raw=LISTED, said=("'echo' is not",)),
    "first token has a value": Shape({"first_echo": "value"}),
    "BOS is shown": Shape({"bos": "shown"}),
    "no BOS": Shape({"bos": "none"}),
    "no lists": Shape(
        {"top_k": 0, "echo": "rejected"},
        raw=TEXTS,
        continued=TEXTS,
        said=("listed tokens, chat: none .400", "listed tokens, completions: none .400"),
    ),
    "lists are null": Shape(
        {"top_k": 0, "over_top_k": "null", "echo": "ignored"},
        raw=TEXTS,
        continued=TEXTS,
        said=("listed tokens, chat: none .no log-probabilities",),
    ),
    # One token says too little of the spaces before tokens.
    "lists of one": Shape({"top_k": 1}, raw=TEXTS, known={"completions_k": 0, "chat_k": 1}),
    "lists cut short": Shape(
        {"top_k": 5, "over_top_k": "capped"},
        known={"completions_k": 5, "chat_k": 5},
        said=("completions: 5,",),
    ),
    "lists with one more": Shape({"top_k": 5, "extra_entry": True}, known={"completions_k": 5, "chat_k": 5}),
    "lists filled up at -9999": Shape({"minus_9999": "padding"}, known={"completions_k": 3, "chat_k": 3}),
    "sampled token at -9999": Shape({"minus_9999": "sampled"}, known={"completions_k": 20, "chat_k": 20}),
    "lists after temperature": Shape(
        {"temperature_affects_logprobs": True}, known={"scale": "after"}, said=("after temperature",)
    ),
    "temperature of 1 only": Shape({"rejects": {"temperature"}}, known={"scale": "unknown", "refused": ()}),
    "hidden thoughts": Shape(
        {"completions": False, "reasoning": 10, "rejects": {"temperature", "top_p"}, "strict": True},
        raw=(),
        continued=TEXTS,
        known={"reasoning": True, "chat_k": 0},
        said=("thinks before it answers: yes", "the model thinks first"),
    ),
    "shown thoughts": Shape(
        {"completions": False, "reasoning": 10, "reasoning_inline": True},
        raw=(),
        continued=TEXTS,
        known={"reasoning": True},
    ),
    "shown thoughts in parts": Shape(
        {"completions": False, "reasoning": 50, "reasoning_inline": True, "usage": "missing"}
        | {"lies": "text-in-parts"},
        raw=(),
        continued=TEXTS,
        known={"reasoning": True},
    ),
    "thoughts in parts of their own": Shape(
        {"completions": False, "lies": "thoughts-in-parts"},
        raw=(),
        continued=TEXTS,
        known={"reasoning": True},
    ),
    "llama-server": Shape(
        {"echo": "ignored", "lies": "list-as-in-a-chat"}, raw=LISTED, known={"completions_k": 20}
    ),
    "lists of entries": Shape({"echo": "ignored", "lies": "list-of-entries"}, raw=LISTED),
    "no usage": Shape({"usage": "missing"}, known={"takes_system": True}, said=("token counts: none",)),
    "usage is null": Shape({"usage": "null"}, known={"takes_system": True}, said=("token counts: none",)),
    "usage is zero": Shape({"usage": "zero"}, known={"takes_system": True}, said=("token counts: none",)),
    "another model list": Shape(
        {"served_models": ["other", "\x1b[2Jyet"]}, said=("does not name the model; it lists other, .2Jyet",)
    ),
    "no model list": Shape({"models_list": False}, said=("model list: none .404",)),
    "another name": Shape(
        {"answers_as": "toy-7b-v3"}, known={"answered_by": "toy-7b-v3"}, said=("answers as: toy-7b-v3",)
    ),
    "no system role": Shape({"takes_system": False}, known={"takes_system": False}, said=("role: refused",)),
    "the system role is dropped": Shape(
        {"takes_system": "dropped"}, known={"takes_system": False}, said=("role: silently dropped",)
    ),
    "one choice only": Shape(
        {"rejects": {"n"}}, known={"choices": 1, "refused": ("n",)}, said=("one choice at a time; refuses n",)
    ),
    "no seed": Shape({"rejects": {"seed"}}, known={"refused": ("seed",), "choices": 20}),
    "no chat": Shape({"chat": False}, continued=(), said=("/chat/completions: no .404",)),
    "0 means unlimited": Shape({"max_tokens_0_hangs": True}),
    "beginnings are refused": Shape({"prefill": "rejected"}, known={"prefill": "no"}),
}


@contextmanager
def measured(server: ApiServer, **more: Any) -> Iterator[ApiScorer]:
    """A scorer of a server about which nothing is known."""
    scorer = open_api_scorer(
        f"api:toy@{server.url}", label="toy", options=options(**more), scoring=ScoringOptions(longest=10)
    )
    try:
        yield scorer
    finally:
        scorer.close()


def everything_said(found: Abilities) -> str:
    findings = [f"{finding.question}: {finding.answer}" for finding in found.findings]
    return "\n".join([*findings, *(f"{what}: {why}" for what, why in found.problems.items())])


# --- each kind of server -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES | GREEDY)
def test_what_is_found_and_that_it_is_right(name: str) -> None:
    """The strongest estimator of each format is then asked for real: right or no number at all."""
    shape = (SHAPES | GREEDY)[name]
    behaviour = Behaviour(**shape.behaviour)
    with ApiServer(MODEL, behaviour) as server, measured(server, policy=ONE_BY_ONE) as scorer:
        found = scorer.abilities
        estimators = tuple(found.estimators(prompt_format) for prompt_format in FORMATS)
        assert (shape.raw, shape.prefill, shape.continued) == estimators
        assert shape.known == {name: getattr(found, name) for name in shape.known}
        for text in shape.said:
            assert re.search(text, everything_said(found)), everything_said(found)
        assert everything_said(found).replace("\n", "").isprintable()
        assert server.calls < (36 if name in GREEDY else 30)  # of which four more for each path
        assert not any((r.body or {}).get("max_tokens") == 0 for r in server.requests)
        for prompt_format in FORMATS if name in SHAPES and behaviour.bos != "none" else ():
            if not scorer.abilities.estimators(prompt_format):
                with pytest.raises(ModelError) as refused:
                    scorer.estimator_for(prompt_format)
                assert str(refused.value).startswith(
                    f"no estimator is possible in prompt format {prompt_format} ("
                )
                assert "\n" not in str(refused.value)
                continue
            estimator = scorer.estimator_for(prompt_format)
            for request, answer in zip(
                cells(2, prompt_format), score(scorer, cells(2, prompt_format)), strict=True
            ):
                assert isinstance(answer, Scored), answer
                assert answer.estimator == estimator.name == scorer.abilities.estimators(prompt_format)[0]
                if estimator.name == "sampling":
                    assert 10 == answer.samples
                else:
                    assert is_right(answer, request, k=estimator.k)


def test_a_system_message_in_place_of_the_templates_own_is_taken() -> None:
    """It may be shorter than the default one: a prompt with it then has fewer tokens than one without."""
    behaviour = Behaviour(default_system=2 * f"{text_checks.SYSTEM} ")
    with ApiServer(MODEL, behaviour) as server, measured(server) as scorer:
        assert scorer.abilities.takes_system
        assert "system role: supported" in everything_said(scorer.abilities)


# --- what is kept --------------------------------------------------------------------------------------


def test_what_was_found_is_kept_with_the_run() -> None:
    with ApiServer(MODEL) as server:
        with measured(server) as scorer:
            kept = ModelEntry.of(scorer.identity, "raw")
            found = scorer.abilities
        n = server.number
        spec = f"api:toy@{server.url}"
        for opened in (open_api_scorer, open_api_generator):
            again = opened(spec, label="toy", options=options(), known=kept)
            assert found == again.abilities
            again.close()
        assert n == server.number
        # Of a generator it is not known how it gives probabilities; of another endpoint nothing is.
        for known in (
            kept.model_copy(update={"abilities": {**kept.abilities, "scored": False}}),
            kept.model_copy(update={"fingerprint": "x"}),
        ):
            open_api_scorer(spec, label="toy", options=options(), known=known).close()
            assert n < server.number
            n = server.number


# --- time ----------------------------------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time limits of a fraction of a second."""
    for asking in (checks, text_checks):
        monkeypatch.setattr(asking, "QUESTION_S", 0.3)
    monkeypatch.setattr(checks, "ECHO_S", 0.3)
    monkeypatch.setattr(wire, "CONNECT_S", 0.1)


HANGING = {
    "model list": (lambda path, body: path.endswith("/models"), {}),
    "chat": (lambda path, body: path.endswith("/chat/completions"), {"chat": False}),
    "completions": (lambda path, body: path == "/v1/completions", {"completions": False}),
    "system role": (
        lambda path, body: "system" in str(body and body.get("messages")),
        {"takes_system": False},
    ),
    "lists": (lambda path, body: bool(body and body.get("logprobs")), {"completions_k": 0, "echo": False}),
    "echo": (lambda path, body: bool(body and body.get("echo")), {"echo": False, "completions_k": 20}),
    "tokens": (lambda path, body: path == "/tokenize", {"selected_ids": False, "echo": True}),
    "ids": (lambda path, body: "logprob_token_ids" in (body or {}), {"selected_ids": False, "echo": True}),
    "beginnings": (lambda path, body: "assistant" in str(body and body.get("messages")), {"prefill": "no"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HANGING)
def test_a_question_that_hangs_is_given_up(name: str, short: None) -> None:
    hangs, known = HANGING[name]
    shape = {"token_id_logprobs": True, "canned": CANNED}
    with ApiServer(MODEL, Behaviour(**shape)) as server:
        server.script(lambda number, path, body: "stall" if hangs(path, body) else None)
        started = time.monotonic()
        with measured(server) as scorer:
            assert known == {name: getattr(scorer.abilities, name) for name in known}
            assert scorer.abilities.estimators("chat-continue" if name != "chat" else "raw")
        assert time.monotonic() - started < 15
        # Six questions with lists at most, three times each: not as often as a sample.
        assert server.outcomes["stall"] <= 18


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("401", "the server refuses further requests (401: Incorrect API key provided"),
        ("404", "answers neither completions nor chat"),
        ("500", "answers neither completions nor chat"),
        ("200-html", "answers neither completions nor chat"),
        ("redirect", "is not followed"),
        ("429-hours", "the server asks to wait 2.0 h"),
    ],
)
def test_a_server_that_cannot_be_used_is_refused_with_the_reason(kind: str, said: str) -> None:
    with ApiServer(MODEL) as server:
        server.script(lambda number, path, body: kind)
        with pytest.raises(ModelError, match=re.escape(said)) as error:
            open_api_scorer(f"api:toy@{server.url}", label="toy", options=options())
        assert str(error.value).startswith(f"toy at {server.url}")
        assert "\n" not in str(error.value)


def test_there_is_no_server() -> None:
    with ApiServer(MODEL) as server:
        url = server.url
    started = time.monotonic()
    with pytest.raises(
        ModelError, match=r"no server responds .* Is it running\? Is the address right"
    ) as error:
        open_api_generator(f"api:toy@{url}", label="toy", options=options())
    assert str(error.value).endswith("?")
    assert time.monotonic() - started < 5


# --- lies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lie", sorted(LIES))
def test_whatever_doctor_believes_of_a_liar_gives_no_wrong_number(lie: str) -> None:
    """Every answer lies, to doctor too: what is claimed is asked for real."""
    shape = {"token_id_logprobs": True, "canned": CANNED, "lies": lie}
    with ApiServer(MODEL, Behaviour(**shape)) as server, ExitStack() as stack:
        try:
            scorer = stack.enter_context(measured(server, policy=replace(QUICK, at_once=4)))
        except ModelError:
            assert not lie.startswith("logprobs")  # such a server still gives texts
            return
        for prompt_format in FORMATS:
            for name in scorer.abilities.estimators(prompt_format):
                if name != "sampling":
                    check(ApiScorer(scorer.connection, scorer.abilities, ScoringOptions(name)), prompt_format)


def check(scorer: ApiScorer, prompt_format: PromptFormat) -> None:
    estimator = scorer.estimator_for(prompt_format)
    requests = {request.key: request for request in cells(2, prompt_format)}
    for answer in score(scorer, list(requests.values())):
        if isinstance(answer, Scored):
            assert is_right(answer, requests[answer.key], k=estimator.k)
        else:
            assert answer.reason


def without_spaces(payload: Any, telling: Any) -> Any:
    for choice in payload["choices"]:
        for one in (choice["logprobs"] or {}).get("top_logprobs") or ():
            for text in list(one or ()):
                one[text.strip()] = one.pop(text)
    return payload


def with_noise(payload: Any, telling: Any) -> Any:
    """Every answer is of another model: numbers that differ from call to call."""
    for choice in payload["choices"]:
        for one in (choice["logprobs"] or {}).get("top_logprobs") or ():
            for text in one or ():
                one[text] -= 1.0 + telling.number % 7
    return payload


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (without_spaces, "no listed token begins with a space: the server strips it"),
        (with_noise, "the same prompt sent twice gives values that differ by"),
    ],
)
def test_lists_that_do_not_stand_for_tokens_are_refused(
    monkeypatch: pytest.MonkeyPatch, lie: Any, said: str
) -> None:
    monkeypatch.setitem(LIES, "own", lie)
    with ApiServer(MODEL, Behaviour(chat=False, lies="own")) as server, measured(server) as scorer:
        # Nothing is left to check an echo against, so that is not believed either.
        assert TEXTS == scorer.abilities.estimators("raw")
        assert said in everything_said(scorer.abilities)
        assert "there is no list of probable tokens to check it against" in everything_said(scorer.abilities)


@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("lie", ["early", "late"])
def test_an_echo_that_is_off_by_one_is_never_believed(
    monkeypatch: pytest.MonkeyPatch, lie: str, seed: int
) -> None:
    """By chance the value beside a token may be near its own, so that a tolerance alone would let it pass."""

    def moved(payload: Any, telling: Any) -> Any:
        for choice in payload["choices"]:
            if choice["logprobs"] and telling.asked.echo:
                values = choice["logprobs"]["token_logprobs"]
                early, late = [*values[1:], values[-1]], [None, *values[:-1]]
                choice["logprobs"]["token_logprobs"] = early if lie == "early" else late
        return payload

    monkeypatch.setitem(LIES, "moved", moved)
    monkeypatch.setattr(checks, "CROSS_CHECK", 10.0)  # as if it always were near
    model = type(MODEL)(seed=seed)
    with ApiServer(model, Behaviour(chat=False, lies="moved")) as server, measured(server) as scorer:
        assert not scorer.abilities.echo
        assert "is off by one token" in everything_said(scorer.abilities)
    with ApiServer(model, Behaviour(chat=False)) as server, measured(server) as scorer:
        assert scorer.abilities.echo


# --- texts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hidden thoughts", "shown thoughts", "shown thoughts in parts"])
def test_thoughts_are_no_part_of_a_text(name: str) -> None:
    shape = SHAPES[name].behaviour
    with (
        ApiServer(MODEL, Behaviour(**shape)) as server,
        generating(server, shape=shape, batch_size=1) as generator,
    ):
        assert generator.abilities.reasoning
        answers = generate(generator, samples(12, tokens=20))
    texts = [answer.text for answer in answers if isinstance(answer, Sample)]
    assert 12 == len(texts)
    assert any(texts)
    assert not any("think>" in text for text in texts)
    # The answer gets its tokens beside those of the thoughts.
    limit = "max_completion_tokens" if "max_completion_tokens" in server.requests[0].body else "max_tokens"
    assert {2020} == {received.body[limit] for received in server.requests}


def test_a_server_that_draws_nothing_is_asked_for_no_texts() -> None:
    with (
        ApiServer(MODEL, Behaviour(canned=CANNED, greedy="always")) as server,
        pytest.raises(ModelError, match="toy cannot sample texts: three seeds at temperature 1"),
    ):
        open_api_generator(f"api:toy@{server.url}", label="toy", options=options())
