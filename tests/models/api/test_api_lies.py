"""What a server says that is not so: answered right, asked again, or failed with a reason; never believed."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from fakes import api_server
from fakes.api_cases import (
    MODEL,
    ONE_BY_ONE,
    TARGET_WORDS,
    cells,
    generate,
    generating,
    is_right,
    made,
    samples,
    score,
    scoring,
)
from fakes.api_server import GENERATION, LIES, ApiServer, Behaviour

from biaskit.errors import AskingStopped
from biaskit.models.api import generator as drawing
from biaskit.models.api.answers import AnswerChoice, choices, listed_tokens, log_probability, may_hide
from biaskit.models.api.echo import read_echo
from biaskit.models.api.generator import ApiGenerator
from biaskit.models.api.scorer import ApiScorer
from biaskit.models.api.trouble import BadAnswer, Refused
from biaskit.models.api.wire import Reply
from biaskit.models.matching import match
from biaskit.records import Failed, PromptFormat, Sample, Scored
from biaskit.runs.drift import Drift

# --- the ways to ask -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A measurement's way of asking, and the server that it needs."""

    estimator: str  # "" for texts
    prompt_format: PromptFormat
    shape: dict[str, Any] = field(default_factory=dict)
    n: int = 1  # texts in one request

    @property
    def reads_texts(self) -> bool:
        return self.estimator in ("", "sampling")

    @contextmanager
    def opened(self, server: ApiServer) -> Iterator[ApiScorer | ApiGenerator]:
        if self.estimator:
            with scoring(server, self.estimator, policy=ONE_BY_ONE, shape=self.shape) as scorer:
                yield scorer
        else:
            with generating(server, policy=ONE_BY_ONE, shape=self.shape, batch_size=self.n) as generator:
                yield generator

    def asked(self, backend: ApiScorer | ApiGenerator) -> tuple[list[Any], list[Any]]:
        """Requests and answers."""
        if isinstance(backend, ApiScorer):
            requests: list[Any] = list(cells(2, self.prompt_format))
            return requests, score(backend, requests)
        requests = list(samples(2 * self.n, prompts=2, prompt_format=self.prompt_format))
        return requests, generate(backend, requests)


WAYS = {
    "text": Way("", "chat"),
    "texts": Way("", "completion", n=2),
    "echo": Way("echo", "raw"),
    "ids": Way("selected-ids", "raw", {"token_id_logprobs": True}),
    "lists": Way("top-k", "raw"),
    "chat_lists": Way("top-k", "chat-continue"),
    "sampling": Way("sampling", "raw"),
}


def judged(answers: list[Any], requests: list[Any], server: ApiServer) -> str:
    """ "right", "as told" where texts are not the model's, or why there is none; a wrong number raises."""
    by_key = {request.key: request for request in requests}
    assert sorted(by_key) == sorted(answer.key for answer in answers), "not one answer for each request"
    texts = Counter(made(server))
    found = set()
    for answer in answers:
        if isinstance(answer, Failed):
            reason = re.split(r": [\[{]| \(", answer.reason)[0]
            found.add("not JSON" if reason == "no JSON object" else reason)
        elif isinstance(answer, Sample):
            texts[answer.prompt, answer.text] -= 1
            found.add("right" if texts[answer.prompt, answer.text] >= 0 else "as told")
        elif answer.estimator == "sampling":
            found.add("right" if counts_fit(answer, texts) else "as told")
        else:
            assert is_right(answer, by_key[answer.key], k=20), f"a wrong number: {answer}"
            found.add("right")
    return ", ".join(sorted(found - {"right"}) or ["right"])


def counts_fit(answer: Scored, texts: Counter[tuple[str, str]]) -> bool:
    """Whether the counts are those of the texts that the server made, or of ten among more."""
    assert answer.counts is not None
    assert answer.samples == 10
    own = [text for (prompt, text), n in texts.items() for _ in range(n) if prompt == answer.prompt]
    said = Counter(match(text, [e.text for e in TARGET_WORDS]) for text in own)
    if len(own) == 10:
        return all(n == said[text] for text, n in answer.counts.items())
    return 10 < len(own) and all(n <= said[text] for text, n in answer.counts.items())


def outcomes(way: Way, kinds: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Lie → what came of it where one answer told it, and where every answer did."""
    found = {}
    with ApiServer(MODEL, Behaviour(**way.shape)) as server, way.opened(server) as backend:
        for kind in kinds:
            came = []
            for lies in (only(server, kind), kind):
                server.requests.clear()
                server.behaviour.lies = lies
                before = backend.used()["retries"]
                requests, answers = way.asked(backend)
                verdict = judged(answers, requests, server)
                again = verdict == "right" and backend.used()["retries"] != before
                came.append(f"asked again, {verdict}" if again else verdict)
                server.script(None)
            found[kind] = (came[0], came[1])
    return found


def only(server: ApiServer, kind: str) -> None:
    """The second answer with tokens from now on lies."""
    generated = itertools.count(1)
    server.script(lambda number, path, body: kind if path in GENERATION and next(generated) == 2 else None)


# --- the table -----------------------------------------------------------------------------------------

Told = tuple[str, str]
"""What came of a lie where one answer told it, and where every answer did."""
RIGHT = ("right", "right")
TOLD = ("as told", "as told")  # a text is what the server says it is
NO_CHOICES, NO_NUMBER = "the answer has no choices", "none of the choices has a requested number"
UNLISTED = "a log-probability as of a token outside a list"
TWO_MODELS = "two models answered the calls of one prompt"


def again(reason: str) -> Told:
    return "asked again, right", reason


def told(every: Told, scored: Told | None = None, **own: Told) -> dict[str, Told]:
    """Way → what comes of a lie: in every way, in those without texts, in single ones."""
    outcomes = {name: every if scored is None or WAYS[name].reads_texts else scored for name in WAYS}
    return outcomes | own


TABLE = {
    "fewer-choices": told(again(NO_CHOICES), texts=("right", NO_CHOICES), sampling=("right", NO_CHOICES)),
    "more-choices": told(RIGHT),
    "empty-choices": told(again(NO_CHOICES)),
    "duplicated-index": told(RIGHT),
    "duplicated-choice": told(RIGHT, texts=TOLD),  # two short texts may be equal; long ones are asked again
    "missing-choice": told(RIGHT),
    "swapped-answers": told(RIGHT),
    "reordered-choices": told(RIGHT),
    "wrong-index": told(again(NO_NUMBER), sampling=("right", NO_NUMBER)),
    "finish-null": told(again("no finish reason: the text may not be whole")),
    "finish-unknown": told(again("the finish reason 'eos_token_found', which is none of a text")),
    "content-filter": told(TOLD, RIGHT),
    "text-null": told(TOLD, RIGHT),
    "refusal": told(TOLD, RIGHT),
    "text-empty": told(TOLD, RIGHT),
    "text-not-string": told(again("a choice without a text")),
    "text-in-parts": told(RIGHT),
    "part-not-text": told(RIGHT),
    "thoughts-in-parts": told(RIGHT),
    "limit-spent": told(TOLD, RIGHT),
    "blocked": told(TOLD, RIGHT),
    "prompt-blocked": told(TOLD, ("the server's filter blocked the prompt",) * 2),
    "text-missing": told(again("a choice without a text")),
    "lone-surrogate": told(TOLD, RIGHT),
    "control-characters": told(TOLD, RIGHT),
    "huge-text": told(TOLD, RIGHT, sampling=RIGHT),  # only its beginning is read
    "logprobs-null": told(
        RIGHT,
        again("no log-probabilities"),
        echo=again("no log-probabilities of the prompt came back"),
    ),
    "logprobs-missing": told(
        RIGHT,
        again("no log-probabilities"),
        echo=again("no log-probabilities of the prompt came back"),
    ),
    "logprobs-values-null": told(
        RIGHT,
        again("a log-probability that is not a number"),
        echo=again("every log-probability of the prompt is 0"),
        ids=again("the chosen token ids do not come back"),
    ),
    "logprobs-last-null": told(RIGHT, ids=again("the chosen token ids do not come back")),
    "logprobs-positive": told(RIGHT, again("a log-probability above 0")),
    "logprobs-nan": told(
        RIGHT, again("a log-probability that is not a number"), echo=again(UNLISTED), ids=again(UNLISTED)
    ),
    "logprobs-infinite": told(RIGHT, again("no listed token"), echo=again(UNLISTED), ids=again(UNLISTED)),
    "logprobs-text": told(RIGHT, again("a log-probability that is not a number")),
    "logprobs-zero": told(
        RIGHT,
        again("listed tokens with a total probability above 1"),
        echo=again("every log-probability of the prompt is 0"),
        ids=again("token ids with a total probability above 1"),
    ),
    "logprobs-sum": told(
        RIGHT,
        again("listed tokens with a total probability above 1"),
        echo=RIGHT,  # it changes the lists alone
        ids=again("token ids with a total probability above 1"),
    ),
    "other-tokenisation": told(RIGHT, echo=again("a token spans the end of the prompt before 'man'")),
    "other-spelling": told(
        RIGHT,
        echo=again("the echoed tokens do not spell the prompt"),
        lists=again("listed tokens as the vocabulary spells them, not as text"),
        chat_lists=again("a listed token whose bytes spell another text"),
    ),
    "unequal-lists": told(
        RIGHT,
        echo=again("tokens and log-probabilities that do not belong together"),
        chat_lists=again("no list of the most probable tokens"),
    ),
    "other-ids": told(RIGHT, ids=again("the chosen token ids do not come back")),
    "list-as-in-a-chat": told(
        RIGHT,
        echo=again("no log-probabilities of the prompt came back"),
        ids=again("no log-probabilities"),
    ),
    "list-of-entries": told(RIGHT, ids=again("no log-probabilities")),
    "list-of-one-place": told(RIGHT, ids=again("no log-probabilities")),
    "equal-texts": told(RIGHT, chat_lists=again("a listed token whose bytes spell another text")),
    # Its name stands in the row, and the measurement stops.
    "other-model": told(RIGHT, echo=(TWO_MODELS, "right"), ids=(TWO_MODELS, "right")),
    "model-missing": told(again("the answer names no model")),
    "not-an-object": told(again("not JSON")),
    "null": told(again("not JSON: null")),
    "usage-negative": told(RIGHT),
    "usage-huge": told(RIGHT),
    "usage-text": told(RIGHT),
}
"""Lie → way of asking → what comes of it."""


def test_every_lie_is_in_the_table() -> None:
    assert {*LIES} == {*TABLE}
    assert all(set(row) == set(WAYS) for row in TABLE.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_no_lie_becomes_a_number(name: str) -> None:
    assert {lie: row[name] for lie, row in TABLE.items()} == outcomes(WAYS[name], TABLE)


# --- choices -------------------------------------------------------------------------------------------


def many(server: ApiServer, n: int = 20, tokens: int = 12, **more: Any) -> list[Sample | Failed]:
    """Samples of one prompt, as many in a request as the server is thought to give."""
    with generating(server, **more) as generator:
        asked = samples(n, tokens=tokens)
        assert 1 == len(generator.plan_samples(asked).batches)
        answers = generate(generator, asked)
    assert "right" == judged(answers, asked, server)
    return answers


@pytest.mark.parametrize("cap", [1, 2, 3, 7, 19])
def test_a_server_that_gives_fewer_choices_is_asked_for_the_rest(cap: int) -> None:
    with ApiServer(MODEL, Behaviour(n_cap=cap)) as server:
        many(server)
        assert -(-20 // cap) == server.calls
        # After the first answer no more are asked for than come: a server may bill what it does not send.
        assert all(received.body.get("n", 1) <= cap for received in server.requests[1:])


@pytest.mark.parametrize("named", [True, False])
def test_a_server_that_refuses_so_many_choices_is_asked_for_fewer(
    monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    error = {"message": "n must be at most 8", "type": "invalid", "param": "n" if named else None}
    monkeypatch.setitem(api_server._REFUSALS, "400-n", api_server._status(400, {"error": error}))
    monkeypatch.setitem(api_server.FAULTS, "400-n", api_server._REFUSALS["400-n"])
    with ApiServer(MODEL) as server:
        server.script(lambda number, path, body: "400-n" if (body or {}).get("n", 1) > 8 else None)
        with generating(server, policy=ONE_BY_ONE) as generator:
            asked = samples(20, prompts=3, tokens=12)
            assert "right" == judged(generate(generator, asked), asked, server)
            # Found out by those that were under way; whoever comes later need not.
            assert {20: 3, 10: 3, 5: 12} == Counter(received.body["n"] for received in server.requests)
            server.requests.clear()
            generate(generator, asked)
        assert {5: 12} == Counter(received.body["n"] for received in server.requests)


def test_a_refusal_that_has_nothing_to_do_with_choices_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with ApiServer(MODEL) as server, generating(server, policy=ONE_BY_ONE) as generator:
        server.script(lambda number, path, body: "400")
        answers = generate(generator, samples(20, tokens=12))
        assert {"400: The prompt is too long."} == {
            answer.reason for answer in answers if isinstance(answer, Failed)
        }
        assert 20 == len(answers)
        assert [20, 10, 5, 2, None] == [received.body.get("n") for received in server.requests]


def test_a_long_text_given_twice_in_one_answer_is_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "LONG", 12)
    with ApiServer(MODEL, Behaviour(lies="duplicated-choice")) as server:
        asked = samples(4, prompts=6)
        with generating(server, policy=ONE_BY_ONE) as generator:
            answers = generate(generator, asked)
        assert sorted(request.key for request in asked) == sorted(answer.key for answer in answers)
        texts = Counter(
            answer.text for answer in answers if isinstance(answer, Sample) and len(answer.text) >= 12
        )
        assert {1} == set(texts.values())
        assert 12 < texts.total()
        assert 6 < server.calls


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        *((listed, NO_CHOICES) for listed in ([], {}, None, "She")),
        *((listed, "a choice that is not an object") for listed in ([None], ["She"])),
        *((listed, "no finish reason") for listed in ([{}], [{"text": "She"}])),
        ([{"text": "She", "finish_reason": "stop", "index": "0"}], "a choice without a number"),
        ([{"text": "She", "finish_reason": "stop", "index": True}], "a choice without a number"),
        ([{"text": "She", "finish_reason": "stop", "index": -1}], NO_NUMBER),
        ([{"text": "She", "finish_reason": "tool_calls"}], "the finish reason 'tool_calls'"),
        ([{"message": {"role": "assistant"}, "finish_reason": "stop"}], "a choice without a text"),
        ([{"message": "She", "finish_reason": "stop"}], "a choice without a text"),
    ],
)
def test_what_is_no_choice(listed: Any, why: str) -> None:
    with pytest.raises(BadAnswer, match=why):
        choices(Reply({"choices": listed}), 1)


# --- log-probabilities ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, "-1", [], {}, math.nan, math.inf, -math.inf),
        *(-9999, -9999.0, -1e300, -(10**400), 10**400, 0.01, 1, 5e-4),
    ],
)
def test_what_is_no_log_probability(value: Any) -> None:
    with pytest.raises(BadAnswer, match="log-probability"):
        log_probability(value)


@pytest.mark.parametrize(
    ("value", "read"), [(-1.5, -1.5), (0, 0.0), (-0.0, 0.0), (9e-5, 0.0), (-700, -700.0)]
)
def test_log_probabilities_as_servers_write_them(value: float, read: float) -> None:
    assert read == log_probability(value)


def listing(*entries: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    block = {"content": [{"token": "x", "logprob": -1.0, "top_logprobs": list(entries)}]}
    return listed_tokens(AnswerChoice(0, "x", "length", {"logprobs": block}))


def test_half_a_character_is_no_contradiction() -> None:
    """OpenAI writes the bytes of half a character as its text; others write U+FFFD, or tell no bytes."""
    found = listing(
        {"token": "\\xe2\\x80", "logprob": -1.0, "bytes": [226, 128]},
        {"token": "\ufffd", "logprob": -2.0, "bytes": [240, 159]},
        {"token": " She", "logprob": -3.0, "bytes": None},
        {"token": "He", "logprob": -4.0},
        {"token": "<|end|>", "logprob": -5.0, "bytes": []},
        {"token": "é", "logprob": -6.0, "bytes": list("é".encode())},
        {"token": "They", "logprob": -7.0, "bytes": ["84", None]},
    )
    assert [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0] == [value for _, value in found]


@pytest.mark.parametrize("value", [None, math.nan, -math.inf, "NaN", "-Infinity", -9999.0])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_token_without_a_value_is_left_out_and_the_others_stay(value: Any, place: int) -> None:
    """SGLang writes null for what is not finite (sglang#20323), servers in Python NaN, protobuf a word."""
    entries: list[dict[str, Any]] = [{"token": "She", "logprob": -0.7}, {"token": "He", "logprob": -1.2}]
    entries.insert(place, {"token": "It", "logprob": value})
    assert (("She", -0.7), ("He", -1.2)) == listing(*entries)
    block = {"content": [{"token": "x", "top_logprobs": entries}]}
    unknown = value not in (-math.inf, "-Infinity", -9999.0)
    # Before others it is not the least probable: nothing bounds it.
    hides = may_hide(AnswerChoice(0, "x", "length", {"logprobs": block}), 3)
    assert (unknown and place < 2) == hides


@pytest.mark.parametrize(
    "names", [("token_id:40", "token_id:7"), (" She", "token_id:7"), ("40", "7"), ("40",)]
)
def test_ids_of_tokens_are_no_texts(names: tuple[str, ...]) -> None:
    """vLLM with --return-tokens-as-token-ids; mlx_lm names tokens by bare numbers."""
    with pytest.raises(Refused, match=r"it lists token ids such as .*, not texts"):
        listing(*({"token": name, "logprob": -1.5} for name in names))


def test_a_study_whose_answers_are_numbers_is_no_list_of_ids() -> None:
    """ "How likely, from 1 to 5?": every listed token is a number."""
    listed = [{"token": str(number), "logprob": -1.7 - number / 10} for number in range(1, 6)]
    block = {"content": [{"token": "1", "top_logprobs": listed}]}
    found = listed_tokens(AnswerChoice(0, "1", "length", {"logprobs": block}), k=5)
    assert ["1", "2", "3", "4", "5"] == [token for token, _ in found]


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([], "no listed token"),
        ([{"token": "She", "logprob": -9999.0}], "no listed token"),
        ([{"token": None, "logprob": -1.0}], "without a text"),
        ([{"token": "She"}], "not a number"),
        ([{"token": "She", "logprob": {"logprob": -0.5, "rank": 1}}], "not a number"),  # vLLM's own
        ([{"token": "She", "logprob": -0.5}, {"token": "He", "logprob": -0.5}], "total probability above 1"),
        ([{"token": "She", "logprob": -1.0, "bytes": [72, 101]}], "spell another text"),
        ([{"token": "\u0120She", "logprob": -1.0}], "as the vocabulary spells them"),
        ([{"token": "\u2581She", "logprob": -1.0}], "as the vocabulary spells them"),
    ],
)
def test_lists_that_contradict_themselves(entries: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(BadAnswer, match=why):
        listing(*entries)


def test_a_value_of_minus_9999_in_an_echo_is_no_probability() -> None:
    """It stands for "not among the most probable": as a number the target word would be impossible."""
    block = {"tokens": ["A", " nurse", " She"], "token_logprobs": [None, -3.0, -9999.0]}
    choice = {"text": "", "finish_reason": "length", "logprobs": block}
    with pytest.raises(BadAnswer, match="outside a list"):
        read_echo(Reply({"choices": [choice]}), "A nurse", " She")
    assert -2.5 == read_echo(echoed([None, -3.0, -2.5]), "A nurse", " She").log_prob


def echoed(values: list[float | None]) -> Reply:
    block = {"tokens": ["A", " nurse", " She"], "token_logprobs": values}
    return Reply({"choices": [{"text": "", "finish_reason": "length", "logprobs": block}]})


@pytest.mark.parametrize("name", ["echo", "ids"])
def test_target_words_cannot_be_more_probable_together_than_everything(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Every single value may be true; that six that exclude one another are at 0.6 each is not."""

    def confident(value: float) -> float:
        return -0.5 if value < 0 else value

    def lie(payload: Any, telling: Any) -> Any:
        for choice in payload["choices"]:
            block = choice["logprobs"]
            block["token_logprobs"] = [value and confident(value) for value in block["token_logprobs"]]
            asked = telling.asked.selected
            block["top_logprobs"] = [{f"token_id:{token}": -0.5 / len(asked) - 1 for token in asked}]
            if len(asked) == 1:
                block["top_logprobs"] = [{f"token_id:{asked[0]}": -0.1}]
        return payload

    monkeypatch.setitem(LIES, "confident", lie)
    way = WAYS[name]
    with ApiServer(MODEL, Behaviour(**way.shape)) as server, way.opened(server) as backend:
        server.behaviour.lies = "confident"
        _, answers = way.asked(backend)
        reasons = {answer.reason.partition(" (")[0] for answer in answers if isinstance(answer, Failed)}
        what = "token ids" if name == "ids" else "target words"
        assert {f"{what} with a total probability above 1"} == reasons
        assert 2 == len(answers)


# --- who answered --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WAYS)
def test_a_model_that_changes_is_named_and_stops_the_measurement(name: str) -> None:
    way = WAYS[name]
    with ApiServer(MODEL, Behaviour(**way.shape)) as server, way.opened(server) as backend:
        drift = Drift(backend.identity, {"toy | fp_toy"}, accept=False)
        _, answers = way.asked(backend)
        drift.check(answers)
        server.behaviour.drift_after = server.calls
        _, answers = way.asked(backend)
        assert {"toy-2 | fp_toy"} == {answer.answered.by for answer in answers}
        with pytest.raises(AskingStopped, match="'toy-2'"):
            drift.check(answers)
