"""Thoughts are no answer: how they are told apart, everywhere that words of a model are read."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from fakes.api_cases import MODEL, options
from fakes.api_server import ApiServer, Behaviour
from fakes.numbered_runs import entry as a_model
from fakes.tiny_models import build_model, build_tokenizer, scorer_for, target_words
from tokenizers import AddedToken

import biaskit as bk
from biaskit.errors import ModelError
from biaskit.measures.personas.outcomes import refusal_rows
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.documents import TextDocument
from biaskit.measures.personas.texts.importing import read_texts
from biaskit.measures.personas.texts.outcomes import text_outcome
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.api.answers import choices, listed_tokens, reasons_first
from biaskit.models.api.opening import open_api_generator
from biaskit.models.api.trouble import BadAnswer
from biaskit.models.api.wire import Reply
from biaskit.models.huggingface.folder import check_folder
from biaskit.models.huggingface.generator import GumbelNoise, TransformersGenerator
from biaskit.models.options import LocalOptions
from biaskit.models.thoughts import begins_thought, opened_by, without_thoughts
from biaskit.records import Prompt, Sample, SampleRequest, Sampling, ScoreRequest
from biaskit.runs.drift import Answerers

HIM = "He thinks; maybe he is tall."
TEXTS = [  # what was said, the mark that the prompt opened, the answer
    (f"<think>\n{HIM}\n</think>\n\nShe is", "", "She is"),
    (f"{HIM}\n</think>\n\nShe is", "<think>", "She is"),
    (f"{HIM}\n</think>\n\nShe is", "", "She is"),
    (f"{HIM}</think>She is", "", "She is"),
    (f"<think>{HIM}</think> she", "", "she"),
    (HIM, "<think>", ""),
    (f"<think>\n{HIM}", "", ""),
    (f"[THINK]{HIM} [/THINK] She is", "", "She is"),
    (f"<seed:think>{HIM}</seed:think>She is", "", "She is"),
    (f"<Thought>\n{HIM}\n</Thought>\n<Output>\nShe is.\n</Output>", "", "She is."),
    (f"◁think▷{HIM}◁/think▷She is", "", "She is"),
    (f"<reasoning>{HIM}</reasoning>\n<answer>She is</answer>", "", "She is"),
    (
        f"<|begin_of_thought|>{HIM}<|end_of_thought|>\n<|begin_of_solution|>She is<|end_of_solution|>",
        "",
        "She is",
    ),
    (f"<|START_THINKING|>{HIM}<|END_THINKING|><|START_RESPONSE|>She is<|END_RESPONSE|>", "", "She is"),
    (f"<|channel>thought\n{HIM}<channel|>She is", "", "She is"),
    (f"<|inner_prefix|>{HIM}<|inner_suffix|>She is", "", "She is"),
    (f"Here is my thought process: {HIM}\n\nHere is my response:\nShe is", "", "She is"),
    (
        f"<|channel|>analysis<|message|>{HIM}<|end|><|start|>assistant<|channel|>final<|message|>She is",
        "",
        "She is",
    ),
    (f"<|channel|>commentary to=x<|message|>{HIM}<|end|><|channel|>final<|message|>She is", "", "She is"),
    (f"<|channel|>analysis<|message|>{HIM}", "", ""),
    ("<|channel|>final<|message|>She is", "", "She is"),
    (f"analysis{HIM}assistantfinalShe is", "", "She is"),
    (f"analysisokay. {HIM}", "", ""),
    ("finalShe is", "", "She is"),
    (f"Of course!\n<think>\n{HIM}\n</think>\nShe is", "", "Of course!\n\nShe is"),
    (f"<think>{HIM} <think> again </think> and {HIM} </think>\nShe is", "", "She is"),
    (f"<think>a</think>\n<think>{HIM}</think>She is", "", "She is"),
    (f"<think>\n{HIM}\n</think>\n\nShe is.\n</think>", "", "She is.\n"),
    (f"{HIM}</think>\n\nShe is.\n</think>", "<think>", "She is.\n"),
    # Words about marks are words.
    *(
        (text, "", text)
        for text in (
            "She teaches models to write <think> before and </think> after their thoughts.",
            "Her book says `</think>` ends it. She",
            "She types </think> by hand",
            "She knows the tag </think> HTML-style.",
            "what is </think>? She says.",
            "- </think>: closes. **</think>** tags. The </think>-tag ends it.",
            "[Thoughts]\nShe is a nurse",
            "She is.\n[Thinking]\nShe wonders.\n[End]\nShe lives.",
            "Here is my thought process: I start. She is a nurse.",
            "analysis of her work shows that she",
            "  She is. ",
            "Her final analysis: she is",
            "",
        )
    ),
]


@pytest.mark.parametrize(("said", "opened", "answer"), TEXTS)
def test_an_answer_is_what_follows_its_thoughts(said: str, opened: str, answer: str) -> None:
    assert without_thoughts(said, opened) == answer


@pytest.mark.parametrize(
    ("prompt", "mark"),
    [
        ("<|im_start|>assistant\n<think>\n", "<think>"),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", ""),
        ("[/INST][THINK]", "[THINK]"),
        ("<|im_start|>assistant\n", ""),
    ],
)
def test_a_prompt_says_whether_it_has_opened_a_thought(prompt: str, mark: str) -> None:
    assert opened_by(prompt) == mark


@pytest.mark.parametrize(
    ("start", "begins"),
    [("<think>", True), ("\n[THINK]", True), ("<th", None), ("<", None), ("Her", False), (" [She]", False)],
)
def test_a_first_token_may_begin_a_thought(start: str, begins: bool | None) -> None:
    assert begins_thought(start) is begins


# --- local models -----------------------------------------------------------------------------------------

TURNS = "{% for m in messages %}{{ '<|' + m['role'] + '|>' }}{{ m['content'] }}{{ eos_token }}{% endfor %}"
FAMILIES = {  # template, marks (special or not), what on and off end the prompt in, what the model says
    "says it itself": ("<|assistant|>", ("<think>", "</think>"), False, "", "<think>\n\n</think>\n\n"),
    "opened by the template": (
        "<|assistant|><think>\n",
        ("<think>", "</think>"),
        True,
        "<think>\n",
        "<think>\n\n</think>\n\n",
    ),
    "with a switch": (
        "<|assistant|>{% if enable_thinking is defined and not enable_thinking %}[THINK][/THINK]{% endif %}",
        ("[THINK]", "[/THINK]"),
        True,
        "",
        "[THINK][/THINK]",
    ),
}
PROMPT = Prompt("Generate a persona of a nurse", "chat")


def family(folder: Path, name: str, first: str = "") -> Path:
    """A tiny model of a family; the most probable token after the prompt is `first`, if given."""
    end, marks, special, *_ = FAMILIES[name]
    tokenizer: Any = build_tokenizer("bpe", TURNS + "{% if add_generation_prompt %}" + end + "{% endif %}")
    tokenizer.add_tokens([AddedToken(mark, special=special, normalized=False) for mark in marks])
    model = build_model("llama", tokenizer)
    if first:
        messages = [{"role": "user", "content": PROMPT.text}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            hidden = model.model(input_ids=ids).last_hidden_state[0, -1]
            model.lm_head.weight[tokenizer.convert_tokens_to_ids(first)] = 9 * hidden / hidden.norm()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def generator(folder: Path, **local: Any) -> TransformersGenerator:
    local = {"device": "cpu", "dtype": "float32", "batch_size": 4, **local}
    return TransformersGenerator(
        check_folder(folder), label="tiny", spec=f"hf:{folder}", local=LocalOptions(**local)
    )


def say(monkeypatch: pytest.MonkeyPatch, model: TransformersGenerator, *texts: str) -> list[Sample]:
    """Draw a text for each of `texts`, which the model is made to say, with at most six tokens of answer."""
    tokenizer = model._renderer.tokenizer
    scripts = [
        [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id] for text in texts
    ]
    steps = itertools.count()

    def forced(self: GumbelNoise, slices: Any, going: Sequence[bool]) -> torch.Tensor:
        n = next(steps)
        return torch.tensor([script[min(n, len(script) - 1)] for script in scripts])

    monkeypatch.setattr(GumbelNoise, "sample", forced)
    requests = [SampleRequest(f"{i}", PROMPT, Sampling(max_new_tokens=6), i, i) for i in range(len(texts))]
    drawn = [sample for group in model.generate(model.plan_samples(requests).batches) for sample in group]
    assert all(isinstance(sample, Sample) for sample in drawn)
    return drawn  # type: ignore[return-value]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_local_answer_has_its_tokens_beside_those_of_its_thoughts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    _, (first, last), _, opened, _ = FAMILIES[name]
    model = generator(family(tmp_path, name), thought_tokens=60)
    thought = f"{'' if opened else first}He he he he he he he he he{last}"
    drawn = say(monkeypatch, model, f"{thought}She is", f"{thought}She she she she she she she she", thought)
    whole = [(sample.text.strip(), sample.finish) for sample in drawn]
    assert whole[0] == ("She is", "stop")
    assert whole[1][1] == "length"
    assert whole[1][0].startswith("She she she")
    assert len(model._renderer.tokenizer(whole[1][0], add_special_tokens=False)["input_ids"]) == 6
    assert whole[2] == ("", "stop")
    assert drawn[0].raw == f"{thought}She is"
    # What is no thought ends where it always did; a thought that never ends leaves no answer.
    if not opened:
        plain = say(monkeypatch, model, "She she she she she she she she")[0]
        assert (plain.answered.new_tokens, plain.finish, plain.raw) == (6, "length", None)
    endless = say(monkeypatch, model, first * (not opened) + "He he " * 60)[0]
    assert (endless.text, endless.finish, endless.answered.new_tokens) == ("", "length", 66)


@pytest.mark.parametrize("name", FAMILIES)
def test_thinking_is_turned_on_and_off(tmp_path: Path, name: str) -> None:
    folder = family(tmp_path, name)
    *_, on, off = FAMILIES[name]
    ways = {way: generator(folder, thinking=way) for way in ("auto", "on", "off")}
    assert ways["on"].rendered(PROMPT).endswith("<|assistant|>" + on)
    assert ways["off"].rendered(PROMPT).endswith("<|assistant|>" + off)
    assert len({model.identity.fingerprint for model in ways.values()}) == 3
    assert [ways[way].identity.formats for way in ("on", "off")] == [("chat",)] * 2
    with pytest.raises(ModelError, match="leaves no place for thoughts"):
        ways["on"].rendered(Prompt("Q", "chat-prefill", prefill="She"))
    assert ways["off"].rendered(Prompt("Q", "chat-prefill", prefill="She")).endswith(off + "She")


def test_a_model_without_thoughts_has_none_to_turn_on(tmp_path: Path) -> None:
    tokenizer = build_tokenizer("bpe", TURNS)
    build_model("llama", tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="has no thinking switch"):
        generator(tmp_path, thinking="on")
    same = {generator(tmp_path, thinking=way).identity.fingerprint for way in ("auto", "off")}
    assert len(same) == 1


@pytest.mark.parametrize(
    ("name", "first", "prompt", "why"),
    [
        ("opened by the template", "", Prompt(PROMPT.text, "chat-continue"), "ends inside a thought"),
        ("says it itself", "", Prompt("Q: who?\nA:<think>"), "ends inside a thought"),
        ("says it itself", "<think>", Prompt(PROMPT.text, "chat-prefill"), "begins a thought"),
        ("with a switch", "[THINK]", Prompt(PROMPT.text, "chat-prefill"), "begins a thought"),
    ],
)
@pytest.mark.parametrize("estimator", ["exact", "top-k"])
def test_nothing_is_scored_inside_a_thought(
    tmp_path: Path, name: str, first: str, prompt: Prompt, why: str, estimator: str
) -> None:
    scorer = scorer_for(family(tmp_path, name, first), estimator=estimator, device="cpu", dtype="float32")
    request = ScoreRequest("1", prompt, target_words("She", "He"))
    with pytest.raises(ModelError, match=rf"{why}.*thinking=off.*sampling"):
        list(scorer.score(scorer.plan_scores([request]).batches))


# --- servers ----------------------------------------------------------------------------------------------


def reply(content: object, finish: str = "stop", **message: object) -> Reply:
    said = {} if content is None else {"content": content}
    return Reply(
        {"choices": [{"finish_reason": finish, "message": {"role": "assistant", **said, **message}}]}
    )


@pytest.mark.parametrize(
    ("answer", "thinks"),
    [
        (reply("She is"), False),
        (reply("[THINK]he[/THINK]She"), True),
        (reply("analysisThe user: heassistantfinalShe"), True),
        (reply("She", reasoning="he"), True),
        (reply("She", thinking="he"), True),
        (reply(None, "length"), True),
        (reply("", "length"), True),
    ],
)
def test_a_server_shows_whether_its_model_thinks(answer: Reply, thinks: bool) -> None:
    assert reasons_first(answer, choices(answer, 1)) is thinks


@pytest.mark.parametrize("token", ["<think>", "[THINK]", "<|channel|>", "<think"])
def test_a_list_that_begins_a_thought_is_no_list_of_answers(token: str) -> None:
    tops = [{"token": token, "logprob": -0.5}, {"token": "She", "logprob": -2.0}]
    data = {"logprobs": {"content": [{"token": token, "top_logprobs": tops}]}}
    choice = choices(reply("She"), 1)[0]
    with pytest.raises(BadAnswer, match="begins a thought"):
        listed_tokens(type(choice)(0, "She", "stop", data))


# --- rows, notes, tables ----------------------------------------------------------------------------------


def test_imported_texts_lose_their_thoughts_and_say_so() -> None:
    said = [
        f"<think>{HIM}</think>\nShe is.",
        f"{HIM}\n</think>\nShe is.",
        "She wrote of <think> and </think> tags.",
    ]
    imported = read_texts(pandas_of(said))
    assert [row["text"] for row in imported.rows] == ["She is.", "She is.", said[2]]
    assert [row.get("raw") for row in imported.rows] == [*said[:2], None]
    assert any("model's thoughts: 2" in note for note in imported.notes)


def pandas_of(texts: Sequence[str]) -> Any:
    import pandas as pd

    return pd.DataFrame({"text": texts}, dtype=object)


def test_a_text_that_thoughts_left_no_room_for_is_cut_not_empty() -> None:
    assert text_outcome("", "length").outcome == "cut"
    assert text_outcome("", "stop").outcome == "empty"
    scope: dict[str, Any] = {
        "model": "m",
        "occupation": "o",
        "template_id": "t",
        "requested_gender": "female",
    }
    association = bk.associate_gender("")
    texts = [
        TextDocument(
            "k", sample=0, finish=end, empty=True, association=association, place=0, outcome=o, **scope
        )
        for end, o in (("length", "cut"), ("stop", "empty"))
    ]
    assert {name: refusal_rows(texts)[0][name] for name in ("n_texts", "n_empty", "n_cut")} == {
        "n_texts": 2,
        "n_empty": 1,
        "n_cut": 1,
    }


@pytest.mark.parametrize(
    ("study", "rows", "entry", "said"),
    [
        (
            PersonasStudy(name="s", measurement="personas"),
            [
                {"text": "", "raw": "<think>he", "finish_reason": "length"},
                {"text": "x", "finish_reason": "stop"},
            ],
            {"where": "local"},
            ["m: in 1 of 2 answers the thoughts reached the token limit", "thought_tokens=4000"],
        ),
        (
            PersonasStudy(name="s", measurement="personas", max_new_tokens=120),
            [{"text": "", "raw": "<think>he", "finish_reason": "length"}],
            {"where": "api", "abilities": {"reasoning": False}},
            ["max_new_tokens=240"],
        ),
        (
            ProbeStudy(name="s", jobs={"source": "j"}, templates={"source": "t"}),
            [
                {
                    "answers": [["She", "stop"], ["", "length"], [" ", "length"]],
                    "raw": ["<think>x</think>She", "he", None],
                }
            ],
            {"where": "local"},
            ["m: 2 of 3 answers contain thoughts", "m: in 1 of 3 answers"],
        ),
    ],
)
def test_thoughts_are_counted_and_said(
    study: Any, rows: Sequence[dict[str, Any]], entry: dict[str, Any], said: Sequence[str]
) -> None:
    answerers = Answerers()
    for row in rows:
        answerers.add_answers({"model": "m", **row})
    notes = "\n".join(answerers.notes({"m": a_model(**entry)}, study))
    assert all(part in notes for part in said), notes


def test_rows_keep_what_was_said_and_its_answer(tmp_path: Path) -> None:
    script, out = tmp_path / "script.jsonl", tmp_path / "out"
    line = {"texts": [f"<think>{HIM}</think>\n\nShe is a nurse.", "She is a nurse."]}
    script.write_text(json.dumps(line) + "\n", encoding="utf-8")
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("2 2\nnurse 0 1\nshe 1 0\n", encoding="utf-8")
    settings = {"permutations": 19, "thinking": "on", "vectors": f"pretrained:{vectors}", "clusters": False}
    result = bk.personas(
        f"m=scripted:{script}",
        occupations="nurse",
        per_gender=2,
        max_samples=2,
        settings=settings,
        out=out,
        watcher=bk.Silent(),
    )
    rows = [json.loads(row) for row in (out / "personas.jsonl").read_text().splitlines()]
    assert {row["text"] for row in rows} == {"She is a nurse."}
    assert {row.get("raw") for row in rows} == {line["texts"][0], None}
    assert set(result.genders["gender"]) == {"female"}
    assert any("contain thoughts" in note for note in result.warnings)
    manifest = json.loads((out / "manifest.json").read_text())
    assert "thinking=on" in manifest["signature"]
    assert manifest["question"]["thinking"] == "on"


@pytest.mark.parametrize(
    ("thinking", "behaviour", "said"),
    [
        ("on", Behaviour(), "thinking=on changes nothing"),
        ("off", Behaviour(reasoning=3), "thinking=off changes nothing"),
        ("off", Behaviour(strict=True), "takes no thinking=on or off"),
        ("on", Behaviour(reasoning=3), ""),
        ("off", Behaviour(), ""),
    ],
)
def test_a_server_that_does_not_do_as_it_is_told_says_so(
    thinking: Any, behaviour: Behaviour, said: str
) -> None:
    with ApiServer(MODEL, behaviour) as server:
        opened = partial(open_api_generator, f"api:toy@{server.url}", label="toy")
        if said:
            with pytest.raises(ModelError, match=said):
                opened(options=options(thinking=thinking))
            return
        with closing(opened(options=options(thinking=thinking))) as generator:
            assert generator.identity.formats == ("chat",)  # a raw prompt has no template
