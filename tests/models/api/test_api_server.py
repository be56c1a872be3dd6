"""The test server is honest by default, and lies and fails exactly as told (issue 5)."""

from __future__ import annotations

import contextlib
import email.utils
import gc
import http.client
import itertools
import json
import math
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from fakes.api_server import (
    AFTER_GENERATION,
    BEFORE_GENERATION,
    FAULTS,
    FINAL,
    GENERATION,
    LIES,
    SLOW,
    TRANSIENT,
    UNLISTED,
    ApiProcess,
    ApiServer,
    Behaviour,
    Fault,
    Faults,
    Lie,
    Lies,
    choice_seed,
)
from fakes.toy_model import (
    ASSISTANT,
    BOS,
    BYTE_VOCABULARY,
    DEFAULT_VOCABULARY,
    END,
    EOS,
    UNKNOWN,
    USER,
    ToyModel,
)
from hypothesis import given
from hypothesis import strategies as st
from places import TESTS

MODEL = ToyModel()
BYTES = ToyModel(vocabulary=BYTE_VOCABULARY)
NURSE, PLUMBER = "I recently met a nurse.", "I recently met a plumber."
COMPLETIONS, CHAT = GENERATION
HELLO = [{"role": "user", "content": "Who is she?"}]


@dataclass(frozen=True)
class Got:
    """An answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def choices(self) -> list[dict[str, Any]]:
        assert self.status == 200, self.content
        return self.json["choices"]


def ask(
    server: ApiServer | ApiProcess,
    path: str,
    body: Any = None,
    *,
    key: str = "",
    timeout: float = 5,
    **more: Any,
) -> Got:
    """One request on a connection of its own; a body without a model gets the server's."""
    host = server.url.removeprefix("http://").removesuffix("/v1")
    with contextlib.closing(http.client.HTTPConnection(host, timeout=timeout)) as connection:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        if body is None and not more:
            connection.request("GET", path, headers=headers)
        else:
            content = json.dumps({"model": "toy", **(body or {}), **more})
            connection.request("POST", path, content, {"content-type": "application/json", **headers})
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return Got(answer.status, told, answer.read())


@contextlib.contextmanager
def serving(
    model: ToyModel = MODEL, *, faults: Faults | None = None, **behaviour: Any
) -> Iterator[ApiServer]:
    with ApiServer(model, Behaviour(**behaviour), faults=faults) as server:
        yield server


@contextlib.contextmanager
def waiting_client(server: ApiServer, path: str = COMPLETIONS, **body: Any) -> Iterator[socket.socket]:
    """A client that has sent a request and reads nothing yet."""
    content = json.dumps({"model": "toy", "prompt": NURSE, "messages": HELLO, **body}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n\r\n".encode()
    with socket.create_connection((server.host, server.port), timeout=5) as client:
        client.sendall(head + content)
        yield client


def eventually(true: Any, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def most_probable(model: ToyModel, ids: list[int], k: int) -> list[tuple[str, float]]:
    row = model.next_log_probs(ids)
    order = sorted(range(len(row)), key=lambda token: -row[token])[:k]
    return [(model.vocabulary[token], float(row[token])) for token in order]


# --- the toy model ------------------------------------------------------------------------------------


def test_every_context_has_a_distribution_that_sums_to_one() -> None:
    for text in ("", NURSE, PLUMBER, MODEL.render_chat(HELLO)):
        row = MODEL.next_log_probs(MODEL.prompt_ids(text))
        assert row.shape == (len(DEFAULT_VOCABULARY),)
        assert math.isclose(np.exp(row).sum(), 1.0, abs_tol=1e-12)
        assert row.max() <= 0


def test_the_numbers_are_the_same_on_every_machine() -> None:
    # Computed with this model on 22 November; a change means that the toy model became another one.
    assert MODEL.continuation_log_prob(NURSE, " She") == pytest.approx(-5.908273072348726, abs=1e-9)
    assert MODEL.continuation_log_prob(NURSE, " Nonbinary") == pytest.approx(-7.000912005080502, abs=1e-9)
    new, finish = MODEL.sample(MODEL.prompt_ids(NURSE), 12, seed=5)
    assert (MODEL.decode(new), finish) == (" they that the good job good", "stop")


def test_a_continuation_is_teacher_forced() -> None:
    ids = MODEL.prompt_ids(NURSE)
    first, second, third = MODEL.encode(" Non-binary")
    assert [MODEL.vocabulary[token] for token in (first, second, third)] == [" Non", "-", "binary"]
    by_hand = (
        MODEL.next_log_probs(ids)[first]
        + MODEL.next_log_probs([*ids, first])[second]
        + MODEL.next_log_probs([*ids, first, second])[third]
    )
    assert math.isclose(MODEL.continuation_log_prob(NURSE, " Non-binary"), by_hand)
    assert not math.isclose(MODEL.continuation_log_prob(NURSE, " Non-binary", bos=False), by_hand)


def test_a_continuation_may_not_change_the_tokens_of_its_prompt() -> None:
    with pytest.raises(AssertionError, match="changes the tokens"):
        MODEL.continuation_log_prob("S", "he")


def test_the_whole_history_matters() -> None:
    """Two prompts with the same last tokens differ: an answer to the wrong prompt is a wrong number."""
    one, two = MODEL.prompt_ids("A nurse is here."), MODEL.prompt_ids("A plumber is here.")
    assert one[-4:] == two[-4:]
    assert np.abs(MODEL.next_log_probs(one) - MODEL.next_log_probs(two)).max() > 0.1


def test_gender_words_have_mass_after_a_prompt() -> None:
    words = (" He", " She", " They", " he", " she", " they", " Male", " Man", " man", " Non", " Fem")
    for text in (NURSE, PLUMBER, "Q: Who? A:"):
        masses = [math.exp(MODEL.continuation_log_prob(text, word)) for word in words]
        assert sum(masses) > 0.1
        assert min(masses) < 0.1  # and they are not all alike


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_ascii_survives_the_tokenizer(text: str) -> None:
    for model in (MODEL, BYTES):
        assert model.decode(model.encode(text)) == text


def test_what_is_not_ascii_becomes_the_unknown_token() -> None:
    assert MODEL.decode(MODEL.encode("né—e")) == f"n{UNKNOWN}{UNKNOWN}e"


def test_vocabularies_with_prefixes() -> None:
    assert len(MODEL.encode(" Her")) == 1
    he, her = BYTES.encode(" He"), BYTES.encode(" Her")
    assert her[: len(he)] == he


def test_draws_follow_the_probabilities() -> None:
    ids = MODEL.prompt_ids(NURSE)
    drawn = Counter(MODEL.sample(ids, 1, seed=number)[0][0] for number in range(4000))
    probabilities = np.exp(MODEL.next_log_probs(ids))
    for token in np.argsort(-probabilities)[:8]:
        p = probabilities[token]
        assert abs(drawn[int(token)] / 4000 - p) < 5 * math.sqrt(p * (1 - p) / 4000)


def test_a_draw_depends_on_its_seed_and_prompt_alone() -> None:
    ids = MODEL.prompt_ids(NURSE)
    alone = MODEL.sample(ids, 30, seed=11)
    MODEL.sample(MODEL.prompt_ids(PLUMBER), 30, seed=12)
    assert ToyModel().sample(ids, 30, seed=11) == alone
    assert ToyModel(seed=2).sample(ids, 30, seed=11) != alone


def test_temperature_zero_and_a_small_nucleus_take_the_most_probable() -> None:
    ids = MODEL.prompt_ids(NURSE)
    best = int(MODEL.next_log_probs(ids).argmax())
    assert MODEL.sample(ids, 1, seed=1, temperature=0)[0] == [best]
    assert {MODEL.sample(ids, 1, seed=s, top_p=0.01)[0][0] for s in range(50)} == {best}
    assert len({MODEL.sample(ids, 1, seed=s, temperature=2)[0][0] for s in range(50)}) > 5


def test_chat_text_has_its_markers() -> None:
    talk = [*HELLO, {"role": "assistant", "content": "It is"}]
    assert MODEL.render_chat(HELLO) == f"{USER}Who is she?{END}{ASSISTANT}"
    assert MODEL.render_chat(talk, continue_final=True) == f"{USER}Who is she?{END}{ASSISTANT}It is"
    assert MODEL.render_chat(talk).endswith(f"It is{END}{ASSISTANT}")
    assert MODEL.vocabulary[MODEL.encode(MODEL.render_chat(HELLO))[-1]] == ASSISTANT


# --- honest log-probabilities -------------------------------------------------------------------------


def echoed(server: ApiServer, text: str, **more: Any) -> dict[str, Any]:
    (choice,) = ask(server, COMPLETIONS, prompt=text, echo=True, logprobs=1, max_tokens=1, **more).choices
    assert choice["text"].startswith(text)
    return choice["logprobs"]


@pytest.mark.parametrize("continuation", [" She", " Them", " Non-binary", " Female"])
def test_echo_gives_the_teacher_forced_probability(continuation: str) -> None:
    with serving() as server:
        told = echoed(server, NURSE + continuation)
    n = len(MODEL.encode(continuation))
    assert "".join(told["tokens"][: -1 or None][-n:]) == continuation
    total = math.fsum(told["token_logprobs"][-n - 1 : -1])
    assert math.isclose(total, MODEL.continuation_log_prob(NURSE, continuation), abs_tol=1e-12)
    assert told["text_offset"][-n - 1] == len(NURSE)
    assert told["top_logprobs"][0] is None
    assert told["token_logprobs"][0] is None


def test_echo_shows_or_hides_the_bos() -> None:
    ids = MODEL.prompt_ids(NURSE)
    texts = [MODEL.vocabulary[token] for token in ids]
    first = float(MODEL.next_log_probs(ids[:1])[ids[1]])
    with serving() as server:
        hidden = echoed(server, NURSE)
        server.behaviour.first_echo = "value"
        valued = echoed(server, NURSE)
        server.behaviour.bos = "shown"
        shown = echoed(server, NURSE)
        server.behaviour.bos = "none"
        none = echoed(server, NURSE)
    assert hidden["tokens"][:-1] == valued["tokens"][:-1] == texts[1:]
    assert valued["token_logprobs"][0] == first
    assert (shown["tokens"][0], shown["token_logprobs"][:2]) == (BOS, [None, first])
    assert none["tokens"][:-1] == texts[1:]
    assert none["token_logprobs"][0] is None
    assert none["token_logprobs"][-2] != hidden["token_logprobs"][-2]  # a BOS matters


def test_echo_without_new_tokens() -> None:
    with serving() as server:
        got = ask(server, COMPLETIONS, prompt=NURSE, echo=True, logprobs=0, max_tokens=0).json
    (choice,) = got["choices"]
    assert (choice["text"], choice["finish_reason"]) == (NURSE, "length")
    assert len(choice["logprobs"]["tokens"]) == len(MODEL.encode(NURSE))
    assert got["usage"]["completion_tokens"] == 0


def test_ways_to_get_echo_wrong() -> None:
    body = {"prompt": NURSE + " She", "echo": True, "logprobs": 1, "max_tokens": 1, "seed": 3}
    with serving() as server:
        right = ask(server, COMPLETIONS, body).choices[0]
        server.behaviour.echo = "ignored"
        ignored = ask(server, COMPLETIONS, body).choices[0]
        server.behaviour.echo = "text-only"
        text_only = ask(server, COMPLETIONS, body).choices[0]
        server.behaviour.echo = "strips-space"
        stripped = ask(server, COMPLETIONS, body).choices[0]
        server.behaviour.echo = "off-by-one"
        shifted = ask(server, COMPLETIONS, body).choices[0]
        server.behaviour.echo = "rejected"
        assert ask(server, COMPLETIONS, body).status == 400
        server.behaviour.echo = "pair-rejected"
        assert ask(server, COMPLETIONS, body).status == 400
        assert ask(server, COMPLETIONS, body, logprobs=None).choices[0]["text"] == right["text"]
    assert right["text"] == NURSE + " She" + ignored["text"]
    assert len(ignored["logprobs"]["tokens"]) == 1
    assert text_only["text"] == right["text"]
    assert len(text_only["logprobs"]["tokens"]) == 1
    assert " She" in right["logprobs"]["tokens"]
    assert "She" in stripped["logprobs"]["tokens"]
    assert stripped["logprobs"]["token_logprobs"] == right["logprobs"]["token_logprobs"]
    assert shifted["logprobs"]["token_logprobs"][:-1] == right["logprobs"]["token_logprobs"][1:]


@pytest.mark.parametrize("k", [1, 5, 20])
def test_lists_hold_the_k_most_probable(k: int) -> None:
    with serving() as server:
        legacy = ask(server, COMPLETIONS, prompt=NURSE, logprobs=k, max_tokens=1).choices[0]["logprobs"]
        chat = ask(server, CHAT, messages=HELLO, logprobs=True, top_logprobs=k, max_tokens=1).choices[0]
    assert list(legacy["top_logprobs"][0].items()) == most_probable(MODEL, MODEL.prompt_ids(NURSE), k)
    (entry,) = chat["logprobs"]["content"]
    told = [(one["token"], one["logprob"]) for one in entry["top_logprobs"]]
    ids = MODEL.prompt_ids(MODEL.render_chat(HELLO))
    assert told == most_probable(MODEL, ids, k)
    row = MODEL.next_log_probs(ids)
    assert entry["logprob"] == row[MODEL.ids[entry["token"]]]
    assert bytes(entry["bytes"]).decode() == entry["token"]


def test_every_position_is_conditioned_on_what_was_drawn() -> None:
    with serving() as server:
        (choice,) = ask(server, COMPLETIONS, prompt=NURSE, logprobs=2, max_tokens=8, seed=4).choices
    told, ids = choice["logprobs"], MODEL.prompt_ids(NURSE)
    new = [MODEL.ids[text] for text in told["tokens"]]
    assert told["token_logprobs"] == MODEL.token_log_probs(ids + new, len(ids))
    for at, top in enumerate(told["top_logprobs"]):
        assert list(top.items()) == most_probable(MODEL, ids + new[:at], 2)


def outside_the_list(k: int) -> int:
    """A seed whose first token is not among the k most probable after NURSE."""
    ids = MODEL.prompt_ids(NURSE)
    best = {text for text, _ in most_probable(MODEL, ids, k)}
    return next(
        seed
        for seed in range(1000)
        if MODEL.decode(MODEL.sample(ids, 1, choice_seed(seed, 0))[0] or [MODEL.eos_id]) not in best
    )


def test_a_sampled_token_outside_the_list() -> None:
    seed = outside_the_list(3)
    body = {"prompt": NURSE, "logprobs": 3, "max_tokens": 1, "seed": seed}
    with serving() as server:
        (plain,) = ask(server, COMPLETIONS, body).choices
        server.behaviour.extra_entry = True
        (extra,) = ask(server, COMPLETIONS, body).choices
        server.behaviour.minus_9999 = "sampled"
        (unlisted,) = ask(server, COMPLETIONS, body).choices
        server.behaviour.minus_9999 = "padding"
        (padded,) = ask(server, COMPLETIONS, body, logprobs=10).choices
    token = plain["logprobs"]["tokens"][0]
    assert len(plain["logprobs"]["top_logprobs"][0]) == 3
    value = plain["logprobs"]["token_logprobs"][0]
    assert extra["logprobs"]["top_logprobs"][0] == {**plain["logprobs"]["top_logprobs"][0], token: value}
    assert unlisted["logprobs"]["token_logprobs"] == [UNLISTED]
    assert unlisted["logprobs"]["top_logprobs"][0][token] == UNLISTED
    values = list(padded["logprobs"]["top_logprobs"][0].values())
    assert values[3:10] == [UNLISTED] * 7
    assert max(values[:3]) <= 0
    assert min(values[:3]) > -100


def test_log_probabilities_after_temperature() -> None:
    body = {"prompt": NURSE, "logprobs": 5, "max_tokens": 1, "temperature": 2, "seed": 1}
    with serving() as server:
        before = ask(server, COMPLETIONS, body).choices[0]["logprobs"]["top_logprobs"][0]
        server.behaviour.temperature_affects_logprobs = True
        after = ask(server, COMPLETIONS, body).choices[0]["logprobs"]["top_logprobs"][0]
        neutral = ask(server, COMPLETIONS, body, temperature=1).choices[0]["logprobs"]["top_logprobs"][0]
    row = MODEL.next_log_probs(MODEL.prompt_ids(NURSE))
    norm = math.log(np.exp(row / 2).sum())
    assert before == neutral == dict(most_probable(MODEL, MODEL.prompt_ids(NURSE), 5))
    assert after == pytest.approx({text: value / 2 - norm for text, value in before.items()})


def test_a_cap_on_the_list() -> None:
    def status_and_entries(k: int) -> tuple[int, int | None]:
        got = ask(server, CHAT, messages=HELLO, logprobs=True, top_logprobs=k, max_tokens=1)
        told = got.json["choices"][0]["logprobs"] if got.status == 200 else None
        return got.status, told and len(told["content"][0]["top_logprobs"])

    with serving(top_k=5) as server:
        assert [status_and_entries(5), status_and_entries(6)] == [(200, 5), (400, None)]
        server.behaviour.over_top_k = "capped"
        assert status_and_entries(20) == (200, 5)
        server.behaviour.over_top_k = "null"
        assert status_and_entries(20) == (200, None)
        server.behaviour.top_k = 0
        assert status_and_entries(1) == (200, None)
        server.behaviour.over_top_k = "rejected"
        assert status_and_entries(1) == (400, None)


def test_the_end_token_in_the_log_probabilities() -> None:
    ids = MODEL.prompt_ids(NURSE)
    seed = next(s for s in range(2000) if MODEL.sample(ids, 3, choice_seed(s, 0))[1] == "stop")
    body = {"prompt": NURSE, "logprobs": 0, "max_tokens": 3, "seed": seed}
    with serving() as server:
        (shown,) = ask(server, COMPLETIONS, body).choices
        server.behaviour.eos_in_logprobs = False
        (hidden,) = ask(server, COMPLETIONS, body).choices
    assert shown["finish_reason"] == "stop"
    assert shown["logprobs"]["tokens"] == [*hidden["logprobs"]["tokens"], EOS]
    assert "".join(hidden["logprobs"]["tokens"]) == shown["text"]


# --- chosen token ids, prompts as ids -----------------------------------------------------------------


def test_selected_ids_are_the_tree_of_an_expression() -> None:
    """One call per node gives the values of its children; their product is the teacher-forced one."""
    non, dash, binary = MODEL.encode(" Non-binary")
    asked = {"max_tokens": 1, "logprobs": 1, "return_tokens_as_token_ids": True}
    total, ids = 0.0, MODEL.prompt_ids(NURSE)
    with serving(token_id_logprobs=True) as server:
        for token in (non, dash, binary):
            wanted = [token, MODEL.ids["She"]]
            (choice,) = ask(server, COMPLETIONS, asked, prompt=ids, logprob_token_ids=wanted).choices
            top, sampled = choice["logprobs"]["top_logprobs"][0], choice["logprobs"]["tokens"][0]
            assert set(top) == {sampled, *(f"token_id:{one}" for one in wanted)}
            total += top[f"token_id:{token}"]
            ids = [*ids, token]
    assert math.isclose(total, MODEL.continuation_log_prob(NURSE, " Non-binary"), abs_tol=1e-12)


def test_selected_ids_in_a_chat() -> None:
    wanted = MODEL.encode("SheHeThey")
    body = {"messages": HELLO, "logprobs": True, "top_logprobs": 1, "max_tokens": 1, "seed": 2}
    with serving(token_id_logprobs=True) as server:
        (entry,) = ask(server, CHAT, body, logprob_token_ids=wanted).choices[0]["logprobs"]["content"]
        server.behaviour.token_id_logprobs = False
        (plain,) = ask(server, CHAT, body, logprob_token_ids=wanted).choices[0]["logprobs"]["content"]
        server.behaviour.strict = True
        assert ask(server, CHAT, body, logprob_token_ids=wanted).status == 400
    row = MODEL.next_log_probs(MODEL.prompt_ids(MODEL.render_chat(HELLO)))
    told = {one["token"]: one["logprob"] for one in entry["top_logprobs"]}
    assert told == {entry["token"]: entry["logprob"], **{t: row[MODEL.ids[t]] for t in ("She", "He", "They")}}
    assert len(plain["top_logprobs"]) == 1  # ignored without a word


@pytest.mark.parametrize(
    "more",
    [
        {"logprob_token_ids": list(range(129)), "logprobs": 1},
        {"logprob_token_ids": [10**6], "logprobs": 1},
        {"logprob_token_ids": [5]},
        {"logprob_token_ids": [5], "logprobs": 1, "max_tokens": 0, "echo": True},
    ],
)
def test_selected_ids_that_vllm_refuses(more: dict[str, Any]) -> None:
    with serving(token_id_logprobs=True) as server:
        assert ask(server, COMPLETIONS, more, prompt=NURSE).status == 400


def test_tokenize() -> None:
    ids = MODEL.prompt_ids(NURSE)
    talk = [*HELLO, {"role": "assistant", "content": "It is"}]
    with serving(token_id_logprobs=True) as server:
        assert ask(server, "/tokenize", prompt=NURSE).json == {
            "tokens": ids,
            "count": len(ids),
            "max_model_len": 4096,
        }
        bare = ask(server, "/tokenize", prompt=NURSE, add_special_tokens=False).json["tokens"]
        more = {"add_generation_prompt": False, "continue_final_message": True}
        chat = ask(server, "/tokenize", messages=talk, **more).json["tokens"]
        server.behaviour.token_id_logprobs = False
        assert ask(server, "/tokenize", prompt=NURSE).status == 404
    assert bare == ids[1:]
    assert chat == MODEL.prompt_ids(MODEL.render_chat(talk, continue_final=True))


def test_a_prompt_as_ids_is_the_same_prompt() -> None:
    body = {"logprobs": 3, "max_tokens": 4, "seed": 1}
    with serving() as server:
        text, ids, without_bos = (
            ask(server, COMPLETIONS, body, prompt=prompt).choices[0]["logprobs"]
            for prompt in (NURSE, MODEL.prompt_ids(NURSE), MODEL.encode(NURSE))
        )
        assert ask(server, COMPLETIONS, prompt=[10**6]).status == 400
    assert text == ids
    assert without_bos != text  # no BOS is added to ids


# --- honest texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GENERATION)
def test_choices_are_draws_with_seeds_of_their_own(path: str) -> None:
    with serving() as server:
        got = ask(server, path, prompt=NURSE, messages=HELLO, n=5, max_tokens=20, seed=8).json
    ids = MODEL.prompt_ids(NURSE if path == COMPLETIONS else MODEL.render_chat(HELLO))
    drawn = [MODEL.sample(ids, 20, choice_seed(8, index)) for index in range(5)]
    texts = [one["text"] if path == COMPLETIONS else one["message"]["content"] for one in got["choices"]]
    assert texts == [MODEL.decode(new) for new, _ in drawn]
    assert [one["finish_reason"] for one in got["choices"]] == [finish for _, finish in drawn]
    assert {finish for _, finish in drawn} == {"stop", "length"}
    assert [one["index"] for one in got["choices"]] == [0, 1, 2, 3, 4]
    new_tokens = sum(len(new) + (finish == "stop") for new, finish in drawn)
    assert got["usage"] == {
        "prompt_tokens": len(ids),
        "completion_tokens": new_tokens,
        "total_tokens": len(ids) + new_tokens,
    }


def test_seeds() -> None:
    body = {"prompt": NURSE, "max_tokens": 20}

    def text(**more: Any) -> str:
        return ask(server, COMPLETIONS, body, **more).choices[0]["text"]

    with serving() as server:
        assert text(seed=1) == text(seed=1) != text(seed=2)
        assert text() != text()
        server.behaviour.seeds = "ignored"
        assert text(seed=1) != text(seed=1)
        server.behaviour.seeds = "content"
        assert text() == text() != text(prompt=PLUMBER)
        assert text(seed=1) != text(seed=2)


def test_several_prompts_in_one_request() -> None:
    with serving() as server:
        both = ask(server, COMPLETIONS, prompt=[NURSE, PLUMBER], n=2, max_tokens=5, seed=3).choices
    assert [one["index"] for one in both] == [0, 1, 2, 3]
    third = MODEL.sample(MODEL.prompt_ids(PLUMBER), 5, choice_seed(3, 2))[0]
    assert both[2]["text"] == MODEL.decode(third)


def test_a_stop_text_ends_the_answer() -> None:
    body = {"prompt": NURSE, "max_tokens": 9, "seed": 8}
    with serving() as server:
        (whole,) = ask(server, COMPLETIONS, body).choices
        stop = MODEL.vocabulary[MODEL.encode(whole["text"])[3]]
        cut = ask(server, COMPLETIONS, body, stop=[stop]).json
    before, found, _ = whole["text"].partition(stop)
    assert found
    assert before
    assert (cut["choices"][0]["text"], cut["choices"][0]["finish_reason"]) == (before, "stop")
    assert cut["usage"]["completion_tokens"] < len(MODEL.encode(whole["text"]))


def test_a_canned_answer() -> None:
    with serving(canned={"two plus two is": " She said"}) as server:
        body = {"prompt": "Now two plus two is", "max_tokens": 1, "logprobs": 0}
        one, two = (ask(server, COMPLETIONS, body, seed=seed).choices[0] for seed in (1, 2))
        assert ask(server, COMPLETIONS, body, prompt=NURSE).choices[0]["text"] != " She"
    assert one["text"] == two["text"] == " She"
    expected = MODEL.continuation_log_prob("Now two plus two is", " She")
    assert one["logprobs"]["token_logprobs"] == [pytest.approx(expected)]


def test_a_trailing_assistant_message() -> None:
    talk = [*HELLO, {"role": "assistant", "content": "I think"}]
    vllm = {"add_generation_prompt": False, "continue_final_message": True}

    def prompt_tokens(**more: Any) -> int:
        return ask(server, CHAT, messages=talk, max_tokens=1, **more).json["usage"]["prompt_tokens"]

    continued = len(MODEL.prompt_ids(MODEL.render_chat(talk, continue_final=True)))
    new_turn = len(MODEL.prompt_ids(MODEL.render_chat(talk)))
    assert new_turn == continued + 2
    with serving() as server:
        assert prompt_tokens() == continued
        server.behaviour.prefill = "new-turn"
        assert prompt_tokens() == prompt_tokens(**vllm) == new_turn
        server.behaviour.prefill = "asked"
        assert [prompt_tokens(), prompt_tokens(**vllm)] == [new_turn, continued]
        server.behaviour.prefill = "rejected"
        assert ask(server, CHAT, messages=talk).status == 400
        assert ask(server, CHAT, messages=HELLO, max_tokens=1).status == 200


def test_reasoning_uses_up_the_limit() -> None:
    body = {"messages": HELLO, "seed": 1}
    with serving(reasoning=8) as server:
        long = ask(server, CHAT, body, max_completion_tokens=12).json
        short = ask(server, CHAT, body, max_completion_tokens=5).json
        server.behaviour.reasoning_inline = True
        inline = ask(server, CHAT, body, max_completion_tokens=12).json
    message = long["choices"][0]["message"]
    assert message["content"]
    assert long["usage"]["completion_tokens_details"] == {"reasoning_tokens": 8}
    assert (short["choices"][0]["message"]["content"], short["choices"][0]["finish_reason"]) == ("", "length")
    assert short["usage"]["completion_tokens"] == 5
    thought = f"<think>{message['reasoning_content']}</think>"
    assert inline["choices"][0]["message"]["content"] == thought + message["content"]


# --- what a server refuses or leaves out --------------------------------------------------------------


def test_fewer_choices_and_tokens_than_asked() -> None:
    with serving(n_cap=1, token_cap=3) as server:
        got = ask(server, CHAT, messages=HELLO, n=4, max_tokens=50, seed=6).json
    assert len(got["choices"]) == 1
    assert got["usage"]["completion_tokens"] <= 3


@pytest.mark.parametrize(
    ("parameter", "value", "code"),
    [
        ("max_tokens", 5, "unsupported_parameter"),
        ("temperature", 0, "unsupported_value"),
        ("n", 2, "unsupported_parameter"),
        ("seed", 2, "unsupported_parameter"),
    ],
)
def test_rejected_parameters(parameter: str, value: int, code: str) -> None:
    with serving(rejects={parameter}) as server:
        got = ask(server, CHAT, messages=HELLO, **{parameter: value})
        assert ask(server, CHAT, messages=HELLO, max_completion_tokens=5, temperature=1).status == 200
        assert server.new_tokens == server.requests[1].new_tokens  # what is refused costs nothing
    error = got.json["error"]
    assert (got.status, error["param"], error["code"]) == (400, parameter, code)
    assert error["message"].startswith(f"Unsupported {'value' if value == 0 else 'parameter'}: '{parameter}'")


def test_ignored_parameters() -> None:
    with serving(ignores={"n", "max_tokens", "logprobs", "seed"}) as server:
        body = {"prompt": NURSE, "n": 3, "max_tokens": 1, "logprobs": 2, "seed": 1}
        (one,) = ask(server, COMPLETIONS, body).choices
        (two,) = ask(server, COMPLETIONS, body).choices
    assert one["logprobs"] is None
    assert one["text"] != two["text"]
    assert len(MODEL.encode(one["text"] + two["text"])) > 2


@pytest.mark.parametrize(
    "body",
    [
        {"n": 0},
        {"n": 1.5},
        {"temperature": 3},
        {"temperature": "hot"},
        {"max_tokens": -1},
        {"logprobs": -1},
        {"stream": True},
        {"prompt": 5},
        {"top_p": True},
    ],
)
def test_malformed_parameters(body: dict[str, Any]) -> None:
    with serving() as server:
        assert ask(server, COMPLETIONS, {"prompt": NURSE, **body}).status == 400


def test_routes_that_are_missing() -> None:
    with serving(completions=False) as server:
        assert ask(server, COMPLETIONS, prompt=NURSE).status == 404
        assert ask(server, CHAT, messages=HELLO, max_tokens=1).status == 200
        server.behaviour.completions, server.behaviour.chat = True, False
        assert ask(server, CHAT, messages=HELLO).status == 404
        assert ask(server, "/v1/models").status == 200
        server.behaviour.models_list = False
        assert ask(server, "/v1/models").status == 404
        assert ask(server, "/v1/elsewhere").status == 404


def test_a_system_message_may_be_refused() -> None:
    talk = [{"role": "system", "content": "Be fair."}, *HELLO]
    with serving() as server:
        assert ask(server, CHAT, messages=talk, max_tokens=1).status == 200
        server.behaviour.takes_system = False
        assert ask(server, CHAT, messages=talk, max_tokens=1).status == 400
        assert ask(server, CHAT, messages=HELLO, max_tokens=1).status == 200


def test_the_context_is_finite() -> None:
    room = 30 - len(MODEL.prompt_ids(NURSE))
    with serving(context=30) as server:
        assert ask(server, COMPLETIONS, prompt=NURSE, max_tokens=room).status == 200
        got = ask(server, COMPLETIONS, prompt=NURSE, max_tokens=room + 1)
        assert ask(server, CHAT, messages=HELLO).json["usage"]["total_tokens"] <= 30
    assert (got.status, got.json["error"]["code"]) == (400, "context_length_exceeded")


def test_model_names() -> None:
    with serving() as server:
        assert [one["id"] for one in ask(server, "/v1/models").json["data"]] == ["toy"]
        assert ask(server, COMPLETIONS, prompt=NURSE, model="gone").json["error"]["code"] == "model_not_found"
        server.behaviour.served_models = ["other", "toy-mini"]  # without the one that answers
        assert [one["id"] for one in ask(server, "/v1/models").json["data"]] == ["other", "toy-mini"]
        assert ask(server, COMPLETIONS, prompt=NURSE).json["model"] == "toy"
        server.behaviour.answers_as = "toy-2024-08-06"
        assert ask(server, COMPLETIONS, prompt=NURSE).json["model"] == "toy-2024-08-06"


def test_the_model_drifts_after_some_calls() -> None:
    with serving(drift_after=2, system_fingerprint=["fp_a", "fp_b"]) as server:
        answers = [ask(server, COMPLETIONS, prompt=NURSE, max_tokens=1).json for _ in range(4)]
    assert [one["model"] for one in answers] == ["toy", "toy", "toy-2", "toy-2"]
    assert {one["system_fingerprint"] for one in answers} == {"fp_a", "fp_b"}


def test_ids_of_answers() -> None:
    def ids() -> list[str | None]:
        return [ask(server, COMPLETIONS, prompt=NURSE, max_tokens=1).json.get("id") for _ in range(4)]

    with serving() as server:
        assert len(set(ids())) == 4
        server.behaviour.ids = "constant"
        assert len(set(ids())) == 1
        server.behaviour.ids = "repeated"
        assert max(Counter(ids()).values()) == 2
        server.behaviour.ids = "missing"
        assert ids() == [None] * 4


def test_usage_may_be_missing_or_wrong() -> None:
    with serving() as server:
        server.behaviour.usage = "missing"
        assert "usage" not in ask(server, COMPLETIONS, prompt=NURSE).json
        server.behaviour.usage = "null"
        assert ask(server, COMPLETIONS, prompt=NURSE).json["usage"] is None
        server.behaviour.usage = "zero"
        assert set(ask(server, COMPLETIONS, prompt=NURSE).json["usage"].values()) == {0}


def test_a_wrong_key_is_repeated_in_the_answer() -> None:
    with serving(requires_key="sk-right") as server:
        assert ask(server, "/v1/models", key="sk-right").status == 200
        got = ask(server, COMPLETIONS, prompt=NURSE, key="sk-wrong-1234")
        assert got.status == 401
        assert b"sk-wrong-1234" in got.content
        assert ask(server, "/v1/models").status == 401
        assert server.requests[1].headers["authorization"] == "Bearer sk-wrong-1234"


# --- time ---------------------------------------------------------------------------------------------


def test_latency() -> None:
    with serving(latency_s=0.1) as server:
        began = time.monotonic()
        assert ask(server, COMPLETIONS, prompt=NURSE).status == 200
        assert time.monotonic() - began >= 0.1
        began = time.monotonic()
        assert ask(server, COMPLETIONS, prompt=NURSE, temperature=9).status == 400
        request = server.requests[1]
        assert request.answered is not None
        assert request.answered - request.received < 0.1  # a refusal takes no time


def test_requests_are_worked_on_together_or_in_their_turn() -> None:
    for slots, least in ((None, 0.05), (1, 0.2)):
        with serving(latency_s=0.05, slots=slots) as server, contextlib.ExitStack() as clients:
            for _ in range(4):
                clients.enter_context(waiting_client(server))
            eventually(lambda: server.answered[200] == 4)
            ends = sorted(one.answered or 0.0 for one in server.requests)
            starts = sorted(one.received for one in server.requests)
        assert ends[-1] - starts[0] >= least
        gaps = [later - earlier for earlier, later in itertools.pairwise(ends)]
        assert (min(gaps) >= 0.045) == (slots == 1)


def test_one_request_too_many() -> None:
    with serving(latency_s=60, refuses_above=2) as server:
        with waiting_client(server), waiting_client(server):
            eventually(lambda: server.in_flight == 2)
            assert ask(server, COMPLETIONS, prompt=NURSE).status == 429
        eventually(lambda: server.in_flight == 0)
        assert (server.in_flight_most, server.answered) == (3, {429: 1})


def test_a_client_that_leaves_early() -> None:
    with serving(latency_s=60) as server:
        with waiting_client(server):
            eventually(lambda: server.in_flight == 1)
        eventually(lambda: server.in_flight == 0)
        assert server.stats()["aborted"] == 1
        assert server.requests[0].new_tokens > 0  # it is billed all the same


def test_more_tokens_take_longer() -> None:
    with serving(latency_per_token_s=0.02, latency_jitter=0.2) as server:
        ask(server, COMPLETIONS, prompt=NURSE, max_tokens=10, seed=8)
        request = server.requests[0]
        assert request.answered is not None
        assert request.answered - request.received >= 0.8 * 0.02 * request.new_tokens
        assert request.new_tokens > 3


def test_zero_tokens_may_mean_no_end() -> None:
    with serving(max_tokens_0_hangs=True) as server:
        with pytest.raises(TimeoutError):
            ask(server, COMPLETIONS, prompt=NURSE, max_tokens=0, timeout=0.2)
        assert ask(server, COMPLETIONS, prompt=NURSE, max_tokens=1).status == 200
        eventually(lambda: server.aborted == 1)


# --- what the server tells the test -------------------------------------------------------------------


def test_requests_are_recorded() -> None:
    with serving() as server:
        ask(server, "/v1/models")
        ask(server, COMPLETIONS, prompt=NURSE, max_tokens=2, key="k")
        ask(server, COMPLETIONS, prompt=NURSE, temperature=9)
        listed, made, refused = server.requests
    assert [one.number for one in server.requests] == [1, 2, 3]
    assert (listed.path, listed.method, listed.body) == ("/v1/models", "GET", None)
    assert made.body == {"model": "toy", "prompt": NURSE, "max_tokens": 2}
    assert made.headers["content-type"] == "application/json"
    assert made.answered is not None
    assert made.received <= made.answered <= time.monotonic()
    assert (made.status, made.outcome, made.prompt_tokens) == (200, "honest", len(MODEL.prompt_ids(NURSE)))
    assert (refused.status, refused.outcome, refused.prompt_tokens) == (400, "refused", 0)
    assert (server.calls, server.number) == (2, 3)
    assert server.answered == {200: 2, 400: 1}


@pytest.mark.parametrize("kind", FAULTS)
def test_the_bill_counts_all_that_was_generated(kind: str) -> None:
    """An answer that is lost on the way was generated and is paid for; a refusal costs nothing."""
    with serving() as server:
        server.script(lambda number, path, body: Fault(kind, pause_s=0) if number == 1 else None)
        with waiting_client(server, n=2, max_tokens=3, seed=1) as client:
            client.recv(1) if kind != "stall" else eventually(lambda: server.new_tokens)
        eventually(lambda: server.in_flight == 0)
        lost = (server.prompt_tokens, server.new_tokens)
        ask(server, COMPLETIONS, prompt=NURSE, n=2, max_tokens=3, seed=1)
        whole = (server.prompt_tokens - lost[0], server.new_tokens - lost[1])
        assert server.cost(2.0, 8.0) == (server.prompt_tokens * 2.0 + server.new_tokens * 8.0) / 1e6
    assert whole[1] > 2
    assert lost == (whole if kind in AFTER_GENERATION else (0, 0))


# --- faults on the wire -------------------------------------------------------------------------------


def faulty(kind: str, **more: Any) -> ApiServer:
    server = ApiServer(MODEL)
    server.script(lambda number, path, body: Fault(kind, **more))
    return server


RETRY_AFTER = {"429": "0.05", "429-hours": "7200", "429-negative": "-5", "429-nonsense": "in a while"}
STATUS = {
    **{kind: int(kind[:3]) for kind in BEFORE_GENERATION if kind[:3].isdigit()},
    "redirect": 307,
}


@pytest.mark.parametrize("kind", BEFORE_GENERATION)
def test_faults_before_generation(kind: str) -> None:
    with faulty(kind) as server:
        got = ask(server, COMPLETIONS, prompt=NURSE, key="sk-secret")
        assert (server.prompt_tokens, server.new_tokens) == (0, 0)
        assert server.requests[0].outcome == kind
    assert got.status == STATUS[kind]
    assert got.headers.get("retry-after") == RETRY_AFTER.get(kind) or kind in ("429-date", "429-past", "503")
    html = kind in ("502", "200-html")
    assert got.content.startswith(b"<html>") == html
    if kind in ("401", "403", "500-rude"):
        assert b"sk-secret" in got.content
    if kind == "200-error":
        assert "choices" not in got.json
        assert got.json["error"]["message"]


def test_what_else_such_faults_say() -> None:
    with faulty("429-past") as server:
        past = email.utils.parsedate_to_datetime(ask(server, CHAT, messages=HELLO).headers["retry-after"])
    with faulty("429-date") as server:
        soon = email.utils.parsedate_to_datetime(ask(server, CHAT, messages=HELLO).headers["retry-after"])
    assert past.timestamp() < time.time() - 3000
    assert abs(soon.timestamp() - time.time()) < 3
    with faulty("429-ms") as server:
        assert ask(server, CHAT, messages=HELLO).headers["retry-after-ms"] == "30"
    with faulty("429-quota") as server:
        assert ask(server, CHAT, messages=HELLO).json["error"]["code"] == "insufficient_quota"
    with faulty("redirect", location="http://127.0.0.1:1/v1/x") as server:
        assert ask(server, CHAT, messages=HELLO).headers["location"] == "http://127.0.0.1:1/v1/x"
    with faulty("500-rude") as server:
        message = ask(server, CHAT, messages=HELLO, key="sk-secret").json["error"]["message"]
    assert len(message) > 5000
    assert "\x1b" in message
    assert message.startswith("sk-secret")
    assert message.endswith("sk-secret")


def read_to_the_end(client: socket.socket) -> bytes:
    content = b""
    with contextlib.suppress(ConnectionResetError):
        while more := client.recv(65536):
            content += more
    return content


def split(content: bytes) -> tuple[dict[str, str], bytes]:
    head, _, body = content.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}, body


def test_a_stall_lasts_as_long_as_the_client_stays() -> None:
    with faulty("stall") as server:
        with waiting_client(server) as client:
            client.settimeout(0.1)
            with pytest.raises(TimeoutError):
                client.recv(1)
            assert server.in_flight == 1
        eventually(lambda: server.in_flight == 0)
        (request,) = server.requests
        assert request.answered is None
        assert request.aborted is not None
        assert request.new_tokens > 0


def test_a_trickle_is_complete_in_the_end() -> None:
    with faulty("trickle", pause_s=0.001) as server, waiting_client(server) as client:
        first = client.recv(65536)
        began, content = time.monotonic(), b""
        headers, body = split(first)
        while len(body) < int(headers["content-length"]):
            content = client.recv(65536)
            body += content
        assert time.monotonic() - began > 0.2
        assert json.loads(body)["choices"]


@pytest.mark.parametrize("kind", ["endless", "endless-fast"])
def test_an_endless_body(kind: str) -> None:
    with faulty(kind, pause_s=0.001) as server:
        with waiting_client(server) as client:
            content = b""
            while len(content) < (10_000_000 if kind == "endless-fast" else 1500):
                content += client.recv(1 << 20)
            assert split(content)[0]["transfer-encoding"] == "chunked"
            assert b"0\r\n\r\n" not in content
        eventually(lambda: server.in_flight == 0)
        assert server.requests[0].answered is None


def test_an_endless_body_waits_for_its_reader() -> None:
    with faulty("endless-fast") as server, waiting_client(server):
        time.sleep(0.2)
        (connection,) = server._connections
        assert 0 < connection.transport.get_write_buffer_size() < 1_000_000


def test_a_reset_in_mid_body() -> None:
    with faulty("reset") as server, waiting_client(server) as client:
        content = b""
        with pytest.raises(ConnectionResetError):  # RST: not the FIN of an orderly end
            while more := client.recv(65536):
                content += more
        headers, body = split(content)
        assert 0 < len(body) < int(headers["content-length"])
        assert server.new_tokens > 0


def test_json_cut_short_with_a_right_length() -> None:
    with faulty("truncated-json") as server:
        got = ask(server, COMPLETIONS, prompt=NURSE)
    assert int(got.headers["content-length"]) == len(got.content)
    with pytest.raises(ValueError):
        json.loads(got.content)


def test_a_body_shorter_than_its_length() -> None:
    with faulty("truncated-body") as server, waiting_client(server) as client:
        headers, body = split(read_to_the_end(client))
        assert 0 < len(body) < int(headers["content-length"])


def test_a_connection_closed_without_an_answer() -> None:
    with faulty("closed") as server, waiting_client(server) as client:
        assert client.recv(1) == b""
        assert server.new_tokens > 0


def test_compressed_nonsense() -> None:
    with faulty("gzip") as server:
        assert ask(server, COMPLETIONS, prompt=NURSE).headers["content-encoding"] == "gzip"


def test_faults_come_by_request_number() -> None:
    faults = Faults(rate=0.2, seed=4)
    hit = [faults.of(number) for number in range(1, 5001)]
    kinds = Counter(fault.kind for fault in hit if fault)
    assert abs(sum(kinds.values()) / 5000 - 0.2) < 0.03
    assert set(kinds) == set(TRANSIENT)
    assert hit == [Faults(rate=0.2, seed=4).of(number) for number in range(1, 5001)]
    assert hit != [Faults(rate=0.2, seed=5).of(number) for number in range(1, 5001)]
    assert set(TRANSIENT) | set(FINAL) | set(SLOW) == set(FAULTS)
    assert set(BEFORE_GENERATION) | set(AFTER_GENERATION) == set(FAULTS)


def test_faults_at_numbers_and_an_expired_key() -> None:
    faults = Faults(at={2: "500"}, expired_from=4, rate=0.0)
    with serving(faults=faults) as server:
        statuses = [ask(server, COMPLETIONS, prompt=NURSE).status for _ in range(5)]
        assert statuses == [200, 500, 200, 401, 401]
        assert ask(server, "/v1/models").status == 200
    with serving(faults=Faults(rate=1, kinds=["503"], until=2, everywhere=True)) as server:
        assert [ask(server, "/v1/models").status for _ in range(3)] == [503, 503, 200]


def test_unknown_kinds_are_refused_at_once() -> None:
    with pytest.raises(AssertionError, match="no fault 'oops'"):
        Fault("oops")
    with pytest.raises(AssertionError, match="no lie 'oops'"):
        Lie("oops")


# --- lies ---------------------------------------------------------------------------------------------


def honest_and_lied(path: str, kind: str, n: int = 3) -> tuple[dict[str, Any], Any]:
    """The answers to one request, as an honest server gives it and with a lie."""
    body = {"prompt": NURSE, "messages": HELLO, "n": n, "max_tokens": 6}
    body |= {"logprobs": 3} if path == COMPLETIONS else {"logprobs": True, "top_logprobs": 3}
    answers = []
    for lies in (None, Lies([kind])):
        with serving(lies=lies) as server:
            ask(server, path, body, seed=5)
            got = ask(server, path, body, seed=6)
            assert got.status == 200
            assert server.requests[-1].outcome == ("honest" if lies is None else kind)
            answers.append(got.json)
    return answers[0], answers[1]


def log_probs_of(answer: dict[str, Any]) -> list[Any]:
    """Every log-probability of an answer in either form."""
    values: list[Any] = []
    for choice in answer["choices"]:
        told = choice["logprobs"]
        for entry in told.get("content", ()):
            values += [entry["logprob"], *(one["logprob"] for one in entry["top_logprobs"])]
        values += told.get("token_logprobs", ())
        values += [value for top in told.get("top_logprobs", ()) for value in top.values()]
    return values


def text_of(choice: dict[str, Any]) -> Any:
    return choice["message"]["content"] if "message" in choice else choice["text"]


both_forms = pytest.mark.parametrize("path", GENERATION)


@both_forms
@pytest.mark.parametrize("kind", LIES)
def test_every_lie_changes_the_answer(path: str, kind: str) -> None:
    honest, lied = honest_and_lied(path, kind)
    if isinstance(lied, dict):
        lied = {**lied, "created": honest["created"]}
    same = (kind == "equal-texts" and path == COMPLETIONS) or kind == "other-ids"  # no ids were asked
    assert (lied == honest) == same


@both_forms
def test_lies_about_choices(path: str) -> None:
    def lied(kind: str, n: int = 3) -> Any:
        honest, answer = honest_and_lied(path, kind, n)
        assert len(honest["choices"]) == n
        return honest["choices"], answer["choices"]

    honest, fewer = lied("fewer-choices")
    assert fewer == honest[:2]
    honest, more = lied("more-choices")
    assert (more[:3], more[3]["index"]) == (honest, 3)
    assert lied("empty-choices")[1] == []
    assert isinstance(lied("choices-not-list")[1], dict)
    assert lied("choices-null")[1] is None
    assert lied("choice-null")[1] == [None] * 3
    assert [one["index"] for one in lied("duplicated-index")[1]] == [0, 0, 0]
    assert [one["index"] for one in lied("duplicated-index", 1)[1]] == [0, 0]
    honest, twice = lied("duplicated-choice")
    assert [one["index"] for one in twice] == [0, 1, 2]
    assert text_of(twice[1]) == text_of(honest[0]) != text_of(honest[1])
    honest, reordered = lied("reordered-choices")
    assert reordered == honest[::-1]
    assert [one["index"] for one in lied("wrong-index")[1]] == [7, 8, 9]


@both_forms
def test_lies_about_texts_and_finish_reasons(path: str) -> None:
    def lied(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
        honest, answer = honest_and_lied(path, kind)
        return honest["choices"][0], answer["choices"][0]

    assert lied("finish-null")[1]["finish_reason"] is None
    assert lied("finish-unknown")[1]["finish_reason"] not in ("stop", "length", "content_filter")
    honest, filtered = lied("content-filter")
    assert filtered["finish_reason"] == "content_filter"
    assert text_of(filtered) == text_of(honest)[: len(text_of(honest)) // 2]
    assert text_of(lied("text-null")[1]) is None
    refusal = lied("refusal")[1]
    assert text_of(refusal) is None
    assert "sorry" in (refusal["message"] if path == CHAT else refusal)["refusal"]
    assert text_of(lied("text-empty")[1]) == ""
    assert text_of(lied("text-not-string")[1]) == 42
    assert {"text", "message"}.isdisjoint(lied("text-missing")[1])
    assert text_of(lied("lone-surrogate")[1]).startswith("\ud800")
    assert text_of(lied("control-characters")[1]).startswith("\0\x1b[31m\u2028")
    assert len(text_of(lied("huge-text")[1])) > 1_000_000


@both_forms
def test_lies_about_log_probabilities(path: str) -> None:
    def values(kind: str) -> list[Any]:
        return log_probs_of(honest_and_lied(path, kind)[1])

    assert max(log_probs_of(honest_and_lied(path, "other-model")[0])) <= 0
    assert honest_and_lied(path, "logprobs-null")[1]["choices"][0]["logprobs"] is None
    assert "logprobs" not in honest_and_lied(path, "logprobs-missing")[1]["choices"][0]
    assert set(values("logprobs-values-null")) == {None}
    assert min(values("logprobs-positive")) > 0
    assert all(map(math.isnan, values("logprobs-nan")))
    assert set(values("logprobs-infinite")) == {-math.inf}
    assert all(isinstance(value, str) for value in values("logprobs-text"))
    assert set(values("logprobs-zero")) == {0.0}
    assert values("logprobs-sum").count(-0.1) > 9


def test_log_probabilities_of_more_than_everything() -> None:
    _, lied = honest_and_lied(CHAT, "logprobs-sum")
    top = lied["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    assert sum(math.exp(one["logprob"]) for one in top) > 1
    _, lied = honest_and_lied(COMPLETIONS, "logprobs-sum")
    assert sum(map(math.exp, lied["choices"][0]["logprobs"]["top_logprobs"][0].values())) > 1


def test_another_tokenisation_than_asked() -> None:
    """Boundaries move, by turns to even and to odd places; sum and text stay what they were."""
    with serving() as server:
        honest = echoed(server, NURSE + " She", seed=1)
        server.script(lambda number, path, body: "other-tokenisation")
        even, odd = (echoed(server, NURSE + " She", seed=1) for _ in range(2))
    assert len(NURSE) in honest["text_offset"]
    assert (len(NURSE) in even["text_offset"]) != (len(NURSE) in odd["text_offset"])
    for lied in (even, odd):
        assert "".join(lied["tokens"]) == "".join(honest["tokens"])
        assert math.isclose(sum(lied["token_logprobs"][1:]), sum(honest["token_logprobs"][1:]))
        assert len({len(values) for values in lied.values()}) == 1


def test_tokens_spelled_with_the_signs_of_the_vocabulary() -> None:
    _, lied = honest_and_lied(COMPLETIONS, "other-spelling")
    assert any(token.startswith("\u0120") for token in lied["choices"][0]["logprobs"]["tokens"])
    assert not any(" " in token for token in lied["choices"][0]["logprobs"]["tokens"])


def test_lists_of_different_lengths_and_tokens_of_equal_text() -> None:
    _, lied = honest_and_lied(COMPLETIONS, "unequal-lists")
    lists = lied["choices"][0]["logprobs"]
    assert len(lists["tokens"]) == len(lists["token_logprobs"]) + 1
    _, lied = honest_and_lied(CHAT, "equal-texts")
    first, second, _ = lied["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    assert first["token"] == second["token"]
    assert first["logprob"] != second["logprob"]


@both_forms
def test_lies_about_the_whole_answer(path: str) -> None:
    honest, other = honest_and_lied(path, "other-model")
    assert (honest["model"], other["model"]) == ("toy", "somebody-else")
    assert other["choices"] == honest["choices"]
    assert "model" not in honest_and_lied(path, "model-missing")[1]
    assert isinstance(honest_and_lied(path, "not-an-object")[1], list)
    assert honest_and_lied(path, "null")[1] is None
    assert min(honest_and_lied(path, "usage-negative")[1]["usage"].values()) < 0
    assert min(honest_and_lied(path, "usage-huge")[1]["usage"].values()) > 10**9


def test_an_answer_given_before() -> None:
    with serving() as server:
        first = ask(server, COMPLETIONS, prompt=NURSE, max_tokens=8)
        server.script(lambda number, path, body: Lie("replayed"))
        second = ask(server, COMPLETIONS, prompt=PLUMBER, max_tokens=8)
    assert second.content == first.content


def test_not_a_number_is_written_as_such() -> None:
    with serving(lies=Lies(["logprobs-nan"])) as server:
        got = ask(server, COMPLETIONS, prompt=NURSE, logprobs=1, max_tokens=1)
        server.behaviour.lies = Lies(["lone-surrogate"])
        surrogate = ask(server, COMPLETIONS, prompt=NURSE)
    assert b"NaN" in got.content
    assert rb"\ud800" in surrogate.content


def test_lies_at_numbers_and_by_rate() -> None:
    with serving(lies=Lies([], at={2: "empty-choices"})) as server:
        counts = [len(ask(server, COMPLETIONS, prompt=NURSE).choices) for _ in range(3)]
    assert counts == [1, 0, 1]
    lies = Lies(["text-null", "refusal"], rate=0.3)
    told = Counter(lie.kind for lie in map(lies.of, range(3000)) if lie)
    assert set(told) == {"text-null", "refusal"}
    assert abs(sum(told.values()) / 3000 - 0.3) < 0.04


# --- HTTP, and the end --------------------------------------------------------------------------------


def test_one_connection_serves_many_requests_however_they_are_cut() -> None:
    content = json.dumps({"model": "toy", "prompt": NURSE, "max_tokens": 1}).encode()
    request = f"POST {COMPLETIONS} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n".encode()
    request += content
    with serving() as server, socket.create_connection((server.host, server.port), timeout=5) as client:
        for piece in (request[:7], request[7:100], request[100:] + request, request[:-1], request[-1:]):
            client.sendall(piece)
            time.sleep(0.01)
        eventually(lambda: server.answered[200] == 3)
        assert len(server.requests) == 3
        received = b""
        while received.count(b'"object"') < 3:  # the third answer may still be under way
            piece = client.recv(1 << 20)
            assert piece, received
            received += piece
        assert received.count(b"HTTP/1.1 200 OK\r\n") == 3


def test_connections_may_be_closed_after_each_answer() -> None:
    with serving(keep_alive=False) as server, waiting_client(server) as client:
        headers, body = split(read_to_the_end(client))
        assert headers["connection"] == "close"
        assert json.loads(body)["choices"]


@pytest.mark.parametrize("kind", [None, "stall", "endless", "endless-fast", "trickle"])
def test_the_end_is_quick_whoever_waits(kind: str | None) -> None:
    with contextlib.ExitStack() as clients:
        with serving(latency_s=60) if kind is None else faulty(kind, pause_s=0.01) as server:
            for _ in range(5):
                clients.enter_context(waiting_client(server))
            idle = clients.enter_context(socket.create_connection((server.host, server.port)))
            eventually(lambda: server.calls == 5)
            began = time.monotonic()
        assert time.monotonic() - began < 2
        assert idle.recv(1) == b""
        assert all(one.aborted is not None for one in server.requests)
        assert not any(thread.name == "api-server" for thread in threading.enumerate())
        server.close()  # again: nothing happens


def test_clients_that_come_as_the_server_closes_are_let_go() -> None:
    """Some are accepted, some not, some half: all see the end, and no socket is left (ResourceWarning)."""
    for number in range(100):
        with contextlib.ExitStack() as clients:
            with serving() as server:
                address = (server.host, server.port)
                arrived = [clients.enter_context(socket.create_connection(address, 5)) for _ in range(3)]
                time.sleep(0.0002 * (number % 4))
            for client in arrived:
                with contextlib.suppress(ConnectionResetError):
                    assert client.recv(1) == b""
    gc.collect()


def test_a_bug_of_the_server_is_no_answer() -> None:
    with pytest.raises(AssertionError, match="has a bug"), serving() as server:
        server.script(lambda number, path, body: 1 / 0)  # type: ignore[arg-type, return-value]
        assert ask(server, COMPLETIONS, prompt=NURSE).status == 500


def test_a_port_that_is_taken() -> None:
    with serving() as server, pytest.raises(OSError), ApiServer(MODEL, port=server.port):
        pass


@pytest.mark.process
def test_a_process_of_its_own() -> None:
    """The same numbers, counts by /stats, and an end with the process that started it."""
    fields = {"top_k": 3, "rejects": ["seed"]}
    with ApiProcess("--latency", "0.05", behaviour=fields, faults={"at": {"2": "500"}}) as server:
        began = time.monotonic()
        told = ask(server, COMPLETIONS, prompt=NURSE, logprobs=3, max_tokens=1).choices[0]["logprobs"]
        assert time.monotonic() - began >= 0.05
        assert dict(most_probable(MODEL, MODEL.prompt_ids(NURSE), 3)) == told["top_logprobs"][0]
        assert ask(server, COMPLETIONS, prompt=NURSE).status == 500
        assert ask(server, COMPLETIONS, prompt=NURSE, seed=1).status == 400
        stats = server.stats()
        assert (stats["calls"], stats["in_flight_most"], stats["new_tokens"]) == (3, 1, 1)
        assert stats["answered"] == {"200": 1, "500": 1, "400": 1}
        assert stats["outcomes"] == {"honest": 1, "500": 1, "refused": 1}


@pytest.mark.process
def test_the_process_ends_when_its_starter_does() -> None:
    script = TESTS / "fakes/api_server.py"
    pipe = subprocess.PIPE
    command = [sys.executable, str(script), "--until-stdin-closes", "--lies", '{"kinds": ["text-null"]}']
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (0, "", "")
