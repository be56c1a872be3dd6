"""What the local scorer refuses, what it survives, and what it says about folders that hold no model."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from fakes.tiny_models import (
    CHAT_TEMPLATE,
    CHAT_TEMPLATE_WITHOUT_SYSTEM,
    LONG,
    POSITIONS,
    SHORT,
    TOKENIZERS,
    TOLERANCE,
    TURNS,
    Oracle,
    Tiny,
    answers,
    build_model,
    build_tokenizer,
    largest_error,
    raw_requests,
    scorer_for,
    target_words,
    values,
)
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from biaskit.errors import BiaskitError, ModelError, TokenizationError
from biaskit.models.huggingface.folder import check_folder
from biaskit.models.huggingface.head import OutputHead
from biaskit.models.huggingface.rendering import Renderer
from biaskit.models.huggingface.scorer import HEAD_TOLERANCE, TransformersScorer
from biaskit.records import Failed, Prompt, Scored, ScoreRequest, TargetWord, Turn

Models = Callable[..., Tiny]
Weights = dict[str, torch.Tensor]
WORDS = target_words("He", "She", "Nonbinary")


@pytest.fixture
def folder(tiny: Models, tmp_path: Path) -> Path:
    """A copy of a saved Llama, to be spoilt."""
    return Path(shutil.copytree(tiny("llama", "bpe-bos").folder, tmp_path / "model"))


def reconfigure(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def change_weights(folder: Path, change: Callable[[Weights], object]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def one(prompt: Prompt | str, *asked: TargetWord) -> list[ScoreRequest]:
    """A single request whose key an error must carry."""
    return [ScoreRequest("the key", Prompt(prompt) if isinstance(prompt, str) else prompt, asked or WORDS)]


def refused(folder: Path, requests: Sequence[ScoreRequest], kind: type[BiaskitError], **options: Any) -> str:
    """What planning says when it refuses."""
    scorer = scorer_for(folder, **options)
    with pytest.raises(kind) as caught:
        scorer.plan_scores(requests)
    return str(caught.value)


def scored(folder: Path, requests: Sequence[ScoreRequest], **options: Any) -> dict[tuple[str, str], float]:
    return values(answers(scorer_for(folder, **options), requests))


# --- the output head --------------------------------------------------------------------------------

HEADS = [
    ("cohere", "scale", 1.0, "CohereForCausalLM"),
    ("granite", "scale", 1.0, "GraniteForCausalLM"),
    ("gemma2", "softcap", None, "Gemma2ForCausalLM"),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("architecture", "name", "value", "called"), HEADS)
def test_a_head_that_is_not_understood_stops_with_the_architectures_name(
    tiny: Models,
    monkeypatch: pytest.MonkeyPatch,
    architecture: str,
    name: str,
    value: float | None,
    called: str,
    dtype: str,
) -> None:
    build = OutputHead.__init__

    def forgetful(self: OutputHead, model: Any) -> None:
        build(self, model)
        setattr(self, name, value)

    monkeypatch.setattr(OutputHead, "__init__", forgetful)
    scorer = scorer_for(tiny(architecture, "bpe").folder, dtype=dtype)
    made = scorer.plan_scores(raw_requests([SHORT], WORDS))
    with pytest.raises(ModelError, match=f"head of {called} is not understood"):
        next(iter(scorer.score(made.batches)))


def test_the_head_in_bfloat16_stays_within_its_tolerance(tiny: Models) -> None:
    for architecture in ("gpt2", "gemma2", "cohere"):
        model = tiny(architecture, "bpe")
        requests = raw_requests([*LONG[:3], SHORT], WORDS)
        found = answers(
            scorer_for(model.folder, dtype="bfloat16", batch_size=1, share_prefixes=False), requests
        )
        own = transformers.AutoModelForCausalLM.from_pretrained(model.folder, dtype=torch.bfloat16).eval()
        from_head = 0.0
        for request in requests:
            answer = found[request.key]
            assert isinstance(answer, Scored)
            ids = torch.tensor([model.oracle.encode(request.prompt.text)])
            with torch.inference_mode():
                theirs = own(input_ids=ids).logits[0, -1].float().log_softmax(-1)
            for number in answer.log_probs:
                if number.token_ids is not None and 1 == len(number.token_ids):
                    from_head = max(from_head, abs(number.high - float(theirs[number.token_ids[0]])))
        assert 0 < from_head < HEAD_TOLERANCE["bfloat16"]
        assert 0.5 > largest_error(found, requests, model.oracle)


# --- numbers that are none ----------------------------------------------------------------------------


def test_logits_that_are_not_finite_fail_every_request_with_a_reason(folder: Path) -> None:
    change_weights(folder, lambda w: w["model.layers.1.mlp.down_proj.weight"].fill_(math.nan))
    found = answers(scorer_for(folder, batch_size=2), raw_requests([*LONG, SHORT], WORDS))
    for answer in found.values():
        assert isinstance(answer, Failed)
        assert "not finite" in answer.reason


def test_a_prompt_that_fails_takes_no_other_of_its_batch_with_it(tiny: Models, folder: Path) -> None:
    model = tiny("llama", "bpe-bos")
    sick = set(model.oracle.encode(LONG[3])) - {i for text in LONG[:3] for i in model.oracle.encode(text)}
    rows = torch.tensor(sorted(sick))
    change_weights(folder, lambda w: w["model.embed_tokens.weight"].index_fill_(0, rows, math.nan))
    requests = raw_requests(LONG[:4], WORDS)
    found = answers(scorer_for(folder, batch_size=4), requests)
    assert [False, False, False, True] == [isinstance(found[r.key], Failed) for r in requests]
    healthy = {r.key: found[r.key] for r in requests[:3]}
    assert TOLERANCE > largest_error(healthy, requests[:3], model.oracle)


def test_a_word_that_cannot_follow_is_impossible_and_nothing_failed(tiny: Models, tmp_path: Path) -> None:
    model = tiny("phi", "bpe-bos")
    never = model.oracle.encode(f"{SHORT} She")[len(model.oracle.encode(SHORT))]
    folder = Path(shutil.copytree(model.folder, tmp_path / "model"))
    change_weights(folder, lambda w: w["lm_head.bias"][never].fill_(-math.inf))
    found = scored(folder, raw_requests([SHORT], WORDS))
    assert [False, True, False] == [value == -math.inf for value in found.values()]


# --- prompts and target words ----------------------------------------------------------------------------


SILENT = CHAT_TEMPLATE.replace("for m in messages", "for m in messages if m['role'] != 'system'")
ONE_TURN = "{% if messages | length > 1 %}{{ raise_exception('one turn only') }}{% endif %}" + CHAT_TEMPLATE
BRIEF = Prompt("Picture a nurse.", "chat-prefill", system="Be brief.")
TURN = Prompt("Picture a nurse.", "chat-prefill", turns=(Turn("How far?", "An hour."),))
TWICE = (TargetWord("male", "He"), TargetWord("female", "He"))


@pytest.mark.parametrize(
    ("tokenizer", "template", "prompt", "asked", "kind", "said"),
    [
        ("bytes", None, "a" * POSITIONS, WORDS, ModelError, f"the model has {POSITIONS} positions"),
        ("bpe", None, f"{SHORT} ", WORDS, TokenizationError, "ends in white space"),
        ("bpe", None, f"{SHORT}\u00a0", WORDS, TokenizationError, "ends in white space"),
        ("bpe", None, "nurse \ud800", WORDS, TokenizationError, "lone surrogate"),
        ("bpe", None, "", WORDS, TokenizationError, "nothing to condition on"),
        ("bpe", None, SHORT, (), TokenizationError, "at least one"),
        ("bpe", None, SHORT, TWICE, TokenizationError, r"' He' \(male\) and ' He' \(female\)"),
        ("bpe-bos", CHAT_TEMPLATE_WITHOUT_SYSTEM, BRIEF, WORDS, ModelError, "takes no system role"),
        ("bpe-bos", SILENT, BRIEF, WORDS, ModelError, "takes no system role"),
        ("bpe-bos", ONE_TURN, TURN, WORDS, ModelError, "one turn only"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_the_plan_with_its_key(
    tiny: Models,
    tokenizer: str,
    template: str | None,
    prompt: str | Prompt,
    asked: tuple[TargetWord, ...],
    kind: type[BiaskitError],
    said: str,
) -> None:
    folder = tiny("gpt2" if template is None else "gemma2", tokenizer, chat_template=template).folder
    prompt = Prompt(prompt) if isinstance(prompt, str) else prompt
    request = ScoreRequest("the key", prompt, asked)
    with pytest.raises(kind, match=said) as caught:
        scorer_for(folder).plan_scores([*raw_requests([SHORT], WORDS), request])
    assert said.startswith("the model has") or "the key" == caught.value.request_key


def test_the_last_position_can_be_used(tiny: Models) -> None:
    # BOS, 636 letters, " ", "H" and "e", of which the last is read and never put in.
    for architecture in ("gpt2", "opt", "mistral"):
        model = tiny(architecture, "bytes")
        requests = raw_requests(["a" * (POSITIONS - 3)], target_words("He"))
        assert TOLERANCE > largest_error(answers(scorer_for(model.folder), requests), requests, model.oracle)
        refused(model.folder, raw_requests(["a" * (POSITIONS - 2)], target_words("He")), ModelError)


def test_a_target_word_that_begins_another_groups_is_named_and_refused_if_asked(tiny: Models) -> None:
    asked = (TargetWord("male", "He"), TargetWord("female", "Her"))
    said = refused(tiny("llama", "bytes").folder, one(SHORT, *asked), TokenizationError, on_prefix="refuse")
    assert "' He' (male) begins ' Her' (female)" in said
    notes = scorer_for(tiny("llama", "bytes").folder).plan_scores(one(SHORT, *asked)).notes
    assert ("' He' (male) begins ' Her' (female): ' He' counts without it",) == notes


ODD_TEXTS = (
    "A nurse", "", " ", "<s>A nurse</s>", "é\u0301 \u200d", "she\n\nhe", "A" * 3000, "<|im_end|>", "日本語 x"
)  # fmt: skip


@pytest.mark.parametrize("name", TOKENIZERS)
def test_many_texts_at_once_have_the_ids_of_each_alone(name: str) -> None:
    tokenizer = build_tokenizer(name, chat_template=CHAT_TEMPLATE)
    # What a tokenizer.json may hold, and what a call sets aside.
    tokenizer.backend_tokenizer.enable_truncation(max_length=7)
    tokenizer.backend_tokenizer.enable_padding(length=20)
    renderer = Renderer(tokenizer)
    texts = ODD_TEXTS * 2
    tokenizer.backend_tokenizer.enable_truncation(max_length=7)
    found = [ids[len(renderer.lead) :] for ids in renderer.encode(texts)]
    alone = [tuple(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts]
    assert [
        a[len(renderer.lead) :] if a[: len(renderer.lead)] == renderer.lead else a for a in alone
    ] == found
    assert max(map(len, found)) > 20


def spanning_tokenizer() -> PreTrainedTokenizerFast:
    """Every byte a token, and ": " one too: it holds a prompt's last character and a target word's space."""
    made = json.loads(build_tokenizer("bytes").backend_tokenizer.to_str())
    made["model"]["vocab"][":Ġ"] = len(build_tokenizer("bytes"))
    made["model"]["merges"] = [[":", "Ġ"]]
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(made)), bos_token="<s>")


def test_a_token_that_spans_the_boundary_is_refused_with_the_target_word(
    own_cache: Path, tmp_path: Path
) -> None:
    tokenizer = spanning_tokenizer()
    build_model("llama", build_tokenizer("bytes")).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    said = refused(tmp_path, one(SHORT), TokenizationError)
    assert "' He'" in said
    assert "token boundary" in said
    scorer_for(tmp_path).plan_scores(one("Q: I met a nurse.\nA: The nurse said that"))


def test_an_empty_prompt_needs_a_bos(tiny: Models) -> None:
    model = tiny("llama", "bpe-bos")
    requests = raw_requests([""], WORDS)
    assert TOLERANCE > largest_error(answers(scorer_for(model.folder), requests), requests, model.oracle)


# --- chat templates ------------------------------------------------------------------------------------


def test_a_model_without_a_template_takes_raw_prompts_only(tiny: Models) -> None:
    assert ("raw",) == scorer_for(tiny("llama", "bpe").folder).identity.formats
    chat = tiny("llama", "bpe", chat_template=CHAT_TEMPLATE)
    assert ("raw", "chat-prefill", "chat-continue") == scorer_for(chat.folder).identity.formats


# --- the stream of answers -------------------------------------------------------------------------------


class Cramped(TransformersScorer):
    """A device that holds two rows."""

    def _score_rows(self, rows: Sequence[Any], cache: Any) -> list[Scored | Failed]:
        if 2 < len(rows):
            raise torch.OutOfMemoryError
        return super()._score_rows(rows, cache)


def test_out_of_memory_halves_the_batch_and_answers_every_request_once(tiny: Models) -> None:
    model = tiny("mistral", "bytes")
    requests = raw_requests(
        [f"{text} {end}." for text in LONG[:2] for end in ("it", "so", "no", "on")], WORDS
    )
    scorer = scorer_for(model.folder, Cramped, batch_size=8)
    found = answers(scorer, requests)
    assert TOLERANCE > largest_error(found, requests, model.oracle)
    assert 2 == scorer.batch_size


def test_the_warm_up_changes_no_number_and_is_not_computed_twice(
    tiny: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = raw_requests(LONG, WORDS)
    expected = scored(tiny("gemma2", "bpe").folder, requests, batch_size=2)
    scorer = scorer_for(tiny("gemma2", "bpe").folder, batch_size=2)
    batches = scorer.plan_scores(requests).batches
    seconds = scorer.estimate_seconds(batches)
    assert seconds is not None
    assert 0 < seconds < 60
    computed: list[Any] = []
    exact = TransformersScorer._score_rows

    def counting(self: TransformersScorer, rows: Sequence[Any], cache: Any) -> list[Scored | Failed]:
        computed.extend(rows)
        return exact(self, rows, cache)

    monkeypatch.setattr(TransformersScorer, "_score_rows", counting)
    found = {answer.key: answer for group in scorer.score(batches) for answer in group}
    assert expected == values(found)
    assert len(requests) - len(batches[0]) == len(computed)


def test_the_fingerprint_follows_weights_tokenizer_and_dtype(tiny: Models, folder: Path) -> None:
    before = scorer_for(folder).identity.fingerprint
    assert before == scorer_for(tiny("llama", "bpe-bos").folder).identity.fingerprint
    assert before != scorer_for(folder, dtype="bfloat16").identity.fingerprint
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    templated = scorer_for(folder).identity.fingerprint
    change_weights(folder, lambda w: w["lm_head.weight"][0].add_(1.0))
    assert 3 == len({before, templated, scorer_for(folder).identity.fingerprint})


# --- folders ----------------------------------------------------------------------------------------------


def complaint(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        check_folder(folder)
    return str(caught.value)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: shutil.rmtree(path), "no such model folder"),
        (lambda path: (path / "config.json").unlink(), "no config.json"),
        (lambda path: (path / "config.json").rename(path / "adapter_config.json"), "has an adapter"),
        (lambda path: (path / "model.safetensors").unlink(), "no weights found"),
        (lambda path: (path / "model.safetensors").rename(path / "model.pt"), "pickled weights"),
        (lambda path: (path / "model.safetensors").rename(path / "pytorch_model.bin"), "pickled weights"),
        (lambda path: reconfigure(path, is_encoder_decoder=True), "encoder-decoder"),
    ],
)
def test_a_folder_without_a_causal_models_files_says_so(
    folder: Path, spoil: Callable[[Path], object], said: str
) -> None:
    spoil(folder)
    assert said in complaint(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:5],
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: content.replace(b"data_offsets", b"data-offsets", 1),
        lambda content: content.replace(b'"shape":[', b'"shape":[7,', 1),
    ],
)
def test_truncated_and_corrupt_weights_are_an_error(folder: Path, change: Callable[[bytes], bytes]) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(change(file.read_bytes()))
    assert "model.safetensors is truncated or corrupt" in complaint(folder)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: reconfigure(path, intermediate_size=48), "weights"),
        (lambda path: reconfigure(path, num_hidden_layers=3), r"lack 9 tensors .*, first model\.layers\.2\."),
        (
            lambda path: change_weights(path, lambda w: w.pop("model.layers.1.mlp.up_proj.weight")),
            r"lack 1 tensors .*, first model\.layers\.1\.mlp\.up_proj",
        ),
        (lambda path: change_weights(path, lambda w: w.pop("lm_head.weight")), "weights"),
    ],
)
def test_weights_other_than_configured_are_an_error(
    folder: Path, spoil: Callable[[Path], object], said: str
) -> None:
    spoil(folder)
    scorer = scorer_for(folder)
    batches = scorer.plan_scores(raw_requests([SHORT], WORDS)).batches
    with pytest.raises(ModelError, match=said):
        list(scorer.score(batches))


def test_a_missing_part_of_the_weights_is_named(folder: Path) -> None:
    parts = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    names = [*load_file(folder / "model.safetensors")]
    (folder / "model.safetensors").rename(folder / parts[0])
    index = {"weight_map": {name: parts[i % 2] for i, name in enumerate(names)}, "metadata": {}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    scorer = scorer_for(folder)
    batches = scorer.plan_scores(raw_requests([SHORT], WORDS)).batches
    with pytest.raises(ModelError, match=parts[1]):
        list(scorer.score(batches))


@pytest.mark.parametrize(
    ("config", "architectures"),
    [
        ("BertConfig", ["BertForMaskedLM"]),
        ("BertConfig", ["BertModel"]),
        ("RobertaConfig", ["RobertaForSequenceClassification"]),
        ("ViTConfig", ["ViTModel"]),
    ],
)
def test_a_model_that_only_encodes_is_no_causal_language_model(
    folder: Path, config: str, architectures: list[str]
) -> None:
    made: Any = getattr(transformers, config)(num_hidden_layers=2, hidden_size=32, num_attention_heads=4)
    if hasattr(made, "vocab_size"):
        made.vocab_size = 64
    made.architectures = architectures
    made.save_pretrained(folder)
    with pytest.raises(ModelError, match="not a causal language model") as caught:
        scorer_for(folder)
    assert architectures[0] in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_link_out_of_the_folder_is_refused(folder: Path, name: str) -> None:
    outside = folder.parent / "outside"
    (folder / name).rename(outside)
    (folder / name).symlink_to(outside)
    assert f"{name} is a symbolic link out of the model folder" in complaint(folder)
    assert check_folder(folder, allow_links=True).n_parameters  # the hub's cache is made of links


# --- what these tests found once, and what keeps it found ----------------------------------------------


def test_large_logits_in_bfloat16_are_no_unknown_head(tiny: Models, tmp_path: Path) -> None:
    # GPT-2's logits are near -100, where its own 16-bit head rounds to steps of 0.5.
    folder = Path(shutil.copytree(tiny("phi", "bpe").folder, tmp_path / "model"))
    change_weights(folder, lambda w: w["lm_head.bias"].fill_(-200.0))
    answers(scorer_for(folder, dtype="bfloat16"), raw_requests([*LONG, SHORT], WORDS))


_SIZE = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_ROPE = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 4, "long_factor": [4.0] * 4}
ODD_ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "takes a cache and ignores it": ("OpenAIGPTConfig", {"n_embd": 32, "n_layer": 2, "n_head": 4}),
    "state space": (
        "RwkvConfig",
        {"hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32},
    ),
    # The shared beginning is shorter than 50 tokens, the prompts are longer.
    "rotary factors change with the length": (
        "Phi3Config",
        {
            **_SIZE,
            "max_position_embeddings": POSITIONS,
            "original_max_position_embeddings": 50,
            "rope_parameters": {**_ROPE, "original_max_position_embeddings": 50},
            "pad_token_id": 0,
        },
    ),
    "chunked attention, experts": (
        "Llama4TextConfig",
        {
            **_SIZE,
            "intermediate_size_mlp": 64,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "num_local_experts": 2,
            "attention_chunk_size": 8,
            "no_rope_layers": [1, 0],
            "pad_token_id": 0,
        },
    ),
    "a layer before the output embeddings": (
        "ModernBertDecoderConfig",
        {**_SIZE, "num_hidden_layers": 3, "local_attention": 8, "pad_token_id": 0},
    ),
}


@pytest.mark.parametrize("name", ODD_ARCHITECTURES)
def test_an_odd_architecture_is_right_or_refused(
    own_cache: Path, one_thread: None, tmp_path: Path, name: str
) -> None:
    config, options = ODD_ARCHITECTURES[name]
    tokenizer = build_tokenizer("bpe-bos")
    torch.manual_seed(0)
    model: Any = transformers.AutoModelForCausalLM.from_config(
        getattr(transformers, config)(vocab_size=len(tokenizer), **options)
    )
    if config != "Llama4TextConfig":
        with torch.no_grad():
            for weight in model.parameters():
                if 2 == weight.dim():
                    weight.normal_(0, 0.2)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    requests = raw_requests([*LONG, SHORT], WORDS)
    try:
        found = answers(scorer_for(tmp_path, batch_size=2), requests)
    except ModelError:
        assert "rotary" not in name
        assert "chunked" not in name
        assert "layer" not in name
        return
    assert TOLERANCE > largest_error(found, requests, Oracle(tmp_path))


@pytest.mark.parametrize(("prompt", "word"), [(SHORT, "He<|user|>"), ("<|user|>nurse", "He")])
def test_a_token_that_the_weights_do_not_know_is_an_error(
    own_cache: Path, tmp_path: Path, prompt: str, word: str
) -> None:
    tokenizer = build_tokenizer("bpe-bos")
    model = build_model("llama", tokenizer)
    model.resize_token_embeddings(len(tokenizer) - len(TURNS))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="do not match"):
        answers(scorer_for(tmp_path), raw_requests([prompt], target_words(word)))
