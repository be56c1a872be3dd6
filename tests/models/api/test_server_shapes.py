"""Answers by their shape: texts in parts, lists anywhere, blocks by any name, two tokens of one text."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fakes.api_cases import (
    MODEL,
    ONE_BY_ONE,
    Ask,
    cells,
    generate,
    generating,
    probe,
    samples,
    score,
    scoring,
)
from fakes.api_server import LIES, ApiServer, Behaviour

from biaskit.models.api.answer_files import AnswerFiles
from biaskit.models.api.answers import AnswerChoice, choices, listed_tokens, may_hide, reasons_first
from biaskit.models.api.endpoint import open_endpoint
from biaskit.models.api.scorer import bound_form
from biaskit.models.api.text_checks import LEAST
from biaskit.models.api.trouble import BadAnswer, Blocked, Refused
from biaskit.models.api.wire import Call, Reply, answer_json, read_reply
from biaskit.records import Failed, PromptCell, Sample, Scored, TargetWord
from biaskit.runs.shares.cells import MAY_HIDE, cell_shares
from biaskit.runs.shares.top_k import Sought, bound_masses

# --- texts ---------------------------------------------------------------------------------------------

SHE_IS, A_NURSE = {"type": "text", "text": "She is"}, {"type": "text", "text": " a nurse."}
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "He or she?"}]}
REASONS = {"type": "reasoning", "text": "He or she?"}
PICTURE = {"type": "image_url", "image_url": {"url": "data:,"}}
NO = {"type": "refusal", "refusal": "No."}
THINKS = {"reasoning_content": "Hm"}


def said(content: Any, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {"message": {"content": content, **more}, "finish_reason": finish}


TEXTS = {
    "a plain text": ({"text": "She", "finish_reason": "eos"}, "She", "stop"),
    "capitals": ({"text": "She", "finish_reason": "STOP"}, "She", "stop"),
    "two parts": (said([SHE_IS, A_NURSE]), "She is a nurse.", "stop"),
    "a thought and a text": (said([THOUGHT, SHE_IS]), "She is", "stop"),
    "a reason with a text": (said([REASONS, SHE_IS, A_NURSE]), "She is a nurse.", "stop"),
    "a picture": (said([SHE_IS, PICTURE]), "She is", "stop"),
    "the responses' type": (said([{"type": "output_text", "text": "She"}]), "She", "stop"),
    "no type": (said([{"text": "She"}]), "She", "stop"),
    "strings": (said(["She", " is"]), "She is", "stop"),
    "a thought alone": (said([THOUGHT], "length"), "", "length"),
    "a refusal in a part": (said([NO]), "No.", "refusal"),
    "a refusal beside": (said(None, None, refusal="No."), "No.", "refusal"),
    "an empty refusal": (said("", refusal=""), "", "stop"),
    "nothing at all": (said(None), "", "stop"),
    "no part": (said([]), "", "stop"),
    "nothing, completed": ({"text": None, "finish_reason": "stop"}, "", "stop"),
    "all tokens in thoughts": (said(None, "length", **THINKS), "", "length"),
    "a limit without a word": ({"message": {"role": "assistant"}, "finish_reason": "length"}, "", "length"),
    "filtered in the middle": (said("She w", "content_filter"), "She w", "filter"),
    "a gateway's other name": (said("", "stop") | {"native_finish_reason": "SAFETY"}, "", "filter"),
    **{
        name: ({"message": {"role": "assistant"}, "finish_reason": name}, "", "filter")
        for name in (
            *("PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "SAFETY", "RECITATION", "IMAGE_SAFETY"),
            *("content_filter", "content_filter: PROHIBITED_CONTENT", "FinishReason.SAFETY", "blocked"),
            *("guardrail_intervened", "content_filtered", "ERROR_TOXIC", "sensitive", "MODEL_ARMOR"),
        )
    },
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_is_read_in_every_shape(case: str) -> None:
    choice, text, finish = TEXTS[case]
    (found,) = choices(Reply({"choices": [choice]}), 1)
    assert (text, finish) == (found.text, found.finish)
    shown = case in ("a thought and a text", "a reason with a text")
    assert bool(found.thought) == (shown or case in ("a thought alone", "all tokens in thoughts"))
    assert reasons_first(Reply({}), [found]) == (shown or bool(found.thought) or finish == "length")


@pytest.mark.parametrize("parts", [[None], [{"type": "text"}], [{"type": "text", "text": None}]])
def test_a_part_that_does_not_say_what_it_is(parts: list[Any]) -> None:
    with pytest.raises(BadAnswer, match="list of parts"):
        choices(Reply({"choices": [said(parts)]}), 1)


# --- blocks --------------------------------------------------------------------------------------------

AZURE = {
    "message": "The response was filtered, as the prompt triggered Azure's content management policy.",
    "code": "content_filter",
    "param": "prompt",
    "innererror": {"code": "ResponsibleAIPolicyViolation"},
}


def wrapped(raw: Any) -> dict[str, Any]:
    """What a provider answered, inside an aggregator's error, as in vectorize-io/hindsight#58."""
    raw = raw if isinstance(raw, str) else json.dumps(raw)
    metadata = {"raw": raw, "provider_name": "Azure"}
    return {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}


BLOCKS = {
    "Azure": (400, {"error": AZURE}),
    "through LiteLLM": (400, {"error": {"message": f"AzureException - {AZURE['message']}", "code": "400"}}),
    "OpenAI": (400, {"error": {"message": "No.", "code": "content_policy_violation"}}),
    "Alibaba": (400, {"error": {"message": "Inappropriate content.", "code": "data_inspection_failed"}}),
    "Moonshot": (400, {"error": {"message": "high risk", "type": "content_filter"}}),
    "OpenRouter": (403, {"error": {"message": "Your input was flagged for violence", "code": 403}}),
    "in place of an answer": (200, {"error": {"message": "No.", "code": "PROHIBITED_CONTENT"}}),
    "DeepSeek": (400, {"error": {"message": "Content Exists Risk"}}),
    "xAI": (403, {"error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}),
    "inside OpenRouter's": (400, wrapped({"error": AZURE})),
    "inside OpenRouter's, as words": (400, wrapped("Output blocked by content filtering policy")),
    "OpenRouter's moderation": (403, {"error": {"message": "No", "metadata": {"flagged_input": "a man"}}}),
    "LiteLLM's fields": (
        *(400, {"error": {"message": "No.", "code": "400", "provider_specific_fields": AZURE}}),
    ),
    "OpenAI's usage policy": (
        *(400, {"error": {"message": "flagged as potentially violating our usage policy."}}),
    ),
    "a guardrail": (400, {"error": {"message": "Violated guardrail policy"}}),
    "Zhipu": (400, {"error": {"code": "1301", "message": "..."}}),
    "Aliyun": (400, {"error": {"code": "data_inspection_failed", "message": "..."}}),
}
OTHERS = {
    "another error inside OpenRouter's": (400, wrapped({"error": {"message": "no", "code": "no_model"}})),
    "a key": (401, {"error": {"message": "no key", "code": "content_filter"}}),
    "an account": (403, {"error": {"message": "Your account was flagged.", "code": "forbidden"}}),
    "a parameter": (400, {"error": {"message": "Unknown parameter 'top_k'.", "param": "top_k"}}),
    "a length": (400, {"error": {"message": "The prompt is too long.", "code": "context_length_exceeded"}}),
    "a network": (403, {"error": {"message": "Access denied.", "code": "RequestDisallowedByPolicy"}}),
    "a page": (403, "<html>The request is blocked.</html>"),
    "a network's page": (403, {"error": {"message": "Content is blocked by your network administrator"}}),
    "an echoed prompt": (400, {"error": {"message": "too long: a safety systems engineer is"}}),
    "another": (422, {"error": {"message": "cannot read 'content moderation specialist'"}}),
    **{code: (400, {"error": {"message": "no", "code": code}}) for code in ("ip_blocked", "data_policy")},
    "safetensors": (400, {"error": {"message": "no", "code": "SafetensorError"}}),
}


@pytest.mark.parametrize("case", BLOCKS | OTHERS)
def test_an_error_that_is_a_block(case: str) -> None:
    status, body = (BLOCKS | OTHERS)[case]
    endpoint = open_endpoint("api:toy@http://127.0.0.1/v1", label="toy", keys={}, endpoint_name="toy")
    with pytest.raises(Exception) as error:
        read_reply(endpoint, status, (body if isinstance(body, str) else json.dumps(body)).encode())
    assert (case in BLOCKS) == isinstance(error.value, Blocked)


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [], "promptFeedback": {"blockReason": "SAFETY"}, "model": "toy"},
        {"choices": None, "prompt_feedback": {"block_reason": "BLOCKLIST"}, "model": "toy"},
        {"choices": [], "model": "toy"}
        | {"prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": True}}}]},
    ],
)
def test_a_prompt_that_was_blocked_has_no_choices(answer: dict[str, Any]) -> None:
    with pytest.raises(Blocked) as block:
        choices(Reply(answer), 1)
    assert "toy" == block.value.by
    with pytest.raises(BadAnswer, match="no choices"):
        choices(Reply({"choices": [], "prompt_filter_results": [{"hate": {"filtered": False}}]}), 1)


@pytest.mark.parametrize("how", ["400-filter", "blocked", "prompt-blocked"])
@pytest.mark.parametrize("n", [1, 4])
def test_a_block_is_an_outcome_and_asked_once(how: str, n: int) -> None:
    """Of one occupation, by error, reason or an answer without choices; the others have their texts."""
    with ApiServer(MODEL) as server, generating(server, policy=ONE_BY_ONE, batch_size=n) as generator:
        server.script(lambda number, path, body: how if "plumber" in str(body) else None)
        asked = samples(4, prompts=3)
        answers = {answer.key: answer for answer in generate(generator, asked)}
        assert len(asked) // n == server.calls
        assert 0 == generator.used()["retries"]
    for request in asked:
        answer = answers[request.key]
        assert isinstance(answer, Sample)
        assert (answer.finish == "filter") == ("plumber" in request.prompt.text)
        assert answer.answered.by.split(" | ")[0] == "toy"  # no other model, which would end the run
        assert answer.text or "plumber" in request.prompt.text


@pytest.mark.parametrize("how", ["400-filter", "prompt-blocked", "silent"])
def test_a_blocked_cell_fails_with_the_reason_and_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def silent(payload: Any, telling: Any) -> Any:
        return LIES["blocked"](LIES["logprobs-null"](payload, telling), telling)

    monkeypatch.setitem(LIES, "silent", silent)
    with ApiServer(MODEL) as server, scoring(server, "top-k", policy=ONE_BY_ONE) as scorer:
        server.script(lambda number, path, body: how if "plumber" in str(body) else None)
        answers = score(scorer, cells(2))
        assert 2 == server.calls
    assert [Scored, Failed] == [type(answer) for answer in answers]
    assert "filter" in answers[1].reason


@pytest.fixture
def folder(quick_folder: Path) -> Path:
    return quick_folder


FOUR = ("--bias-type", "implicit", "--jobs", "nurse,plumber", "--templates", "1-2")


@pytest.mark.parametrize(
    ("estimator", "code", "note"),
    [
        (
            "top-k",
            3,
            r"toy: 2 prompts failed \(blocked by the server's content filter \(400: The prompt",
        ),
        ("sampling", 0, r"toy: a content filter took 200 of 2\d\d answers"),  # at most 100 a prompt
    ],
)
def test_a_block_is_said_as_what_it_is(cli: Ask, estimator: str, code: int, note: str) -> None:
    """Nothing that the command could do about it; a sample that was taken names nobody."""
    with ApiServer(MODEL) as server:
        server.script(lambda number, path, body: "400-filter" if "plumber" in str(body) else None)
        said = cli(*probe(server, *FOUR, "--estimator", estimator))
    assert code == said.code, said.err
    assert re.search(note, said.notes)
    assert "rerun the command" not in said.notes
    assert ("it would be blocked again" in said.notes) == (code == 3)


def test_a_text_that_azure_took_without_saying_so_is_filtered() -> None:
    """Beside its filter's word the reason is that of a text."""
    taken: dict[str, Any] = {"content_filter_results": {"hate": {"filtered": True, "severity": "medium"}}}
    for reason in ("stop", None):
        answer = {"message": {"content": ""}, "finish_reason": reason, **taken}
        assert ["filter"] == [choice.finish for choice in choices(Reply({"choices": [answer]}), 1)]
    answer |= {"message": {"content": "She is."}, "finish_reason": "stop"}
    assert ["stop"] == [choice.finish for choice in choices(Reply({"choices": [answer]}), 1)]


WORDS = {
    # The words of OpenAI, of pydantic, of Alibaba, of JSON schema.
    "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1.": 16,
    "[{'loc': ['body', 'max_tokens'], 'msg': 'Input should be greater than or equal to 16'}]": 16,
    "Range of max_tokens should be [16, 8192]": 16,
    "1 is less than the minimum of 16 - 'max_tokens'": 16,
    "max_completion_tokens must be at least 8": 8,
    "max_tokens must be between 16 and 4096": 16,
    "the supported range of max_output_tokens is from 16 (inclusive) to 65537": 16,
    "The minimum value for max_tokens is 16": 16,
    "max_tokens: 1 is below the minimum allowed value 16": 16,
    "max_tokens should be no less than 16": 16,
    "max_tokens must be less than or equal to 8192": 0,
    "max_tokens is too large: 100000. This model supports at most 4096 completion tokens": 0,
    "'logprobs' must be at least 1": 0,
}


@pytest.mark.parametrize("error", WORDS)
def test_the_fewest_tokens_that_an_error_names(error: str) -> None:
    least = LEAST.match(error)
    assert WORDS[error] == (int(least[1]) if least else 0)


def test_a_batch_service_that_blocks_one_request_gives_an_outcome(tmp_path: Path) -> None:
    """The line of an error names no model: it is that of the other answers."""
    line = {"custom_id": "a", "response": {"status_code": 400, "body": {"error": AZURE}}, "error": None}
    (tmp_path / "answers.jsonl").write_text(json.dumps(line) + "\n")
    files = AnswerFiles.read([tmp_path / "answers.jsonl"])
    files.names = frozenset(["toy-1"])
    endpoint = open_endpoint("api:toy@http://127.0.0.1/v1", label="toy", keys={}, endpoint_name="toy")
    with pytest.raises(Blocked) as block:
        files.ask(Call("chat/completions", {}, name="a"), lambda reply: reply, endpoint)
    assert ("toy-1", {}) == (block.value.by, files.problems)


# --- lists ---------------------------------------------------------------------------------------------

HALF, THIRD = math.log(0.5), math.log(0.3)
ENTRIES = [{"token": " She", "logprob": HALF}, {"token": " He", "logprob": THIRD}]
NAMED = {" She": HALF, " He": THIRD}
LISTS: dict[str, dict[str, Any]] = {
    "a chat": {"content": [{"token": " I", "logprob": -3.0, "top_logprobs": ENTRIES}]},
    "a chat with dictionaries": {"content": [{"token": " I", "top_logprobs": NAMED}], "top_logprobs": None},
    "completions": {"content": None, "tokens": [" I"], "top_logprobs": [NAMED, {" is": -0.1}]},
    "one dictionary": {"tokens": [" I"], "top_logprobs": NAMED},
    "entries for each place": {
        "tokens": [" I"],
        "top_logprobs": [ENTRIES, [{"token": " is", "logprob": -0.1}]],
    },
    "entries of the first place": {"tokens": [" I"], "top_logprobs": ENTRIES},
}


@pytest.mark.parametrize("case", LISTS)
def test_a_list_is_found_in_every_shape(case: str) -> None:
    choice = AnswerChoice(0, " I", "length", {"logprobs": LISTS[case]})
    assert ((" She", HALF), (" He", THIRD)) == listed_tokens(choice, k=2)
    assert not may_hide(choice, 2)
    assert may_hide(choice, 3) == ("dictionar" in case or case == "completions")


@pytest.mark.parametrize("block", [{}, {"content": []}, {"top_logprobs": []}, {"content": [{"token": "a"}]}])
def test_no_list_in_any_shape(block: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer, match="no list"):
        listed_tokens(AnswerChoice(0, "", "stop", {"logprobs": block}))


def test_a_blocked_answer_has_no_list_and_is_not_asked_again() -> None:
    with pytest.raises(Refused, match="filter"):
        listed_tokens(AnswerChoice(0, "", "filter", {"logprobs": None}))


# --- two tokens of one text ----------------------------------------------------------------------------

GROUPS = ("male", "female", "diverse")
CELL = PromptCell("toy", "implicit", 1, "nurse", "female-dominated", None, 0, "plain", "raw")
WORLD = [(" woman", 0.2), (" man", 0.15), (" woman", 0.1), (" He", 0.05), (" I", 0.05), (" Fem", 0.04)]
"""The most probable tokens after every prompt; what is left has 0.41, " Fem" begins " Female"."""


class Named(str):
    """A name that equals itself alone, so that one object of JSON can hold it twice."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


TELLINGS = {
    "both": lambda world: {Named(text): math.log(p) for text, p in world},
    "the last": lambda world: {text: math.log(p) for text, p in world},
    "the first": lambda world: {text: math.log(p) for text, p in reversed(world)},
}


@pytest.mark.parametrize("telling", TELLINGS)
def test_bounds_hold_both_tokens_of_one_text(telling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(payload: Any, _: Any) -> Any:
        for choice in payload["choices"]:
            choice["logprobs"]["top_logprobs"] = [TELLINGS[telling](WORLD)]
        return payload

    monkeypatch.setitem(LIES, "world", told)
    with (
        ApiServer(MODEL, Behaviour(lies="world")) as server,
        scoring(server, "top-k", policy=ONE_BY_ONE, k=len(WORLD)) as scorer,
    ):
        [answer] = score(scorer, cells(1))
    assert isinstance(answer, Scored)
    assert answer.listed is not None
    assert answer.may_hide == (telling != "both")
    sought = [Sought(e.group, e.text) for e in answer.log_probs]
    bounds = bound_masses(answer.listed, len(WORLD), sought, GROUPS, may_hide=answer.may_hide)
    assert bounds.point[1] == pytest.approx({"both": 0.1, "the last": 0.1, "the first": 0.2}[telling])
    of_woman = next(e for e in answer.log_probs if e.text == " woman")
    for mass in (0.2, 0.1, 0.3):  # whichever is the target word's token, or both
        assert bounds.low(["female"]) - 1e-9 <= mass <= bounds.high(["female"]) + 1e-9
        assert (of_woman.low or -math.inf) <= math.log(mass) + 1e-9
        assert mass == 0.3 or math.log(mass) <= (of_woman.high or 0.0) + 1e-9
    row = {"estimator": "top-k", "k": 6, "listed": answer.listed, "may_hide": answer.may_hide}
    row |= {"target_words": [{"group": e.group, "text": e.text} for e in answer.log_probs]}
    assert (MAY_HIDE if answer.may_hide else None) == cell_shares(CELL, row, GROUPS).reason


def test_no_bound_misses_where_a_dictionary_keeps_one_of_two_tokens() -> None:
    """Random vocabularies with tokens of equal text; a dictionary keeps the first or the last of them."""
    hidden = 0
    for seed in range(400):
        random = Random(seed)
        texts = [random.choice(["a", "b", "ab", "c", "d", "e"]) for _ in range(random.randint(3, 9))]
        weights = [random.gammavariate(0.6, 1) + 1e-9 for _ in texts]
        probabilities = [weight / math.fsum(weights) for weight in weights]
        order = sorted(range(len(texts)), key=lambda i: -probabilities[i])
        k = random.randint(1, len(texts))
        top = order[:k] if random.random() < 0.5 else order[k - 1 :: -1]
        kept = {texts[i]: i for i in top}
        if any(texts[i] in kept for i in order[k:]):
            continue  # one of two is less probable than the list: no reader can know of it
        block = {"tokens": [""], "top_logprobs": [{t: math.log(probabilities[i]) for t, i in kept.items()}]}
        choice = AnswerChoice(0, "", "length", {"logprobs": block})
        listing = listed_tokens(choice, k=k)
        hides = may_hide(choice, k)
        hidden += hides
        sought = [Sought("female", "a"), Sought("male", "b"), Sought("diverse", "c")]
        found = bound_masses({"": listing}, k, sought, GROUPS, may_hide=hides)
        for tokens in itertools.product(*([i for i, t in enumerate(texts) if t == e.text] for e in sought)):
            mass = {e.group: probabilities[i] for e, i in zip(sought, tokens, strict=True)}
            for group in GROUPS:
                assert found.low([group]) - 1e-9 <= mass[group] <= found.high([group]) + 1e-9, seed
                low, high = found.share_ends(group)
                share = mass[group] / math.fsum(mass.values())
                assert (low or 0.0) - 1e-9 <= share <= (1.0 if high is None else high) + 1e-9, seed
    assert hidden > 30


def test_the_end_of_text_bounds_no_form() -> None:
    listing = (("", math.log(0.6)), (" He", math.log(0.3)), (" x", math.log(0.02)))
    of_they, of_foreign = (
        bound_form(TargetWord("diverse", text), text, listing, 3) for text in (" They", "él")
    )
    assert (None, math.log(0.02)) == (of_they.low, pytest.approx(of_they.high))
    assert math.log(0.62) == pytest.approx(of_foreign.high)  # it may begin with half a character


def test_an_object_that_names_a_token_twice_keeps_both() -> None:
    assert [{"token": "a", "logprob": -1}, {"token": "a", "logprob": -2.5}] == answer_json(
        '{"a": -1, "a": -2.5}'
    )
    assert {"id": "2", "n": 1} == answer_json(b'{"id": "1", "id": "2", "n": 1}')
    assert [{"token": "a", "logprob": -1}, {"token": "a", "logprob": None}] == answer_json(
        '{"a": -1, "a": null}'
    )
    assert {"a": -math.inf} == answer_json('{"a": -Infinity}')
    with pytest.raises(ValueError, match="Expecting value"):
        answer_json('{"a": }')
