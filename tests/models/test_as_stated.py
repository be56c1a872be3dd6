"""A file is the model it says it is; words are the words; an end is an end; a failure is one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes.tiny_gguf import HEADS, LAYERS, WIDTH, write_tiny_gguf
from fakes.tiny_models import (
    CHAT_TEMPLATE,
    SHORT,
    Tiny,
    answers,
    raw_requests,
    scorer_for,
)
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from biaskit.errors import ModelError, TokenizationError
from biaskit.models.huggingface.folder import check_gguf
from biaskit.models.huggingface.generator import TransformersGenerator
from biaskit.models.huggingface.loading import Placement, load_config, load_model
from biaskit.records import Scored, TargetWord

Models = Callable[..., Tiny]
IDS = torch.tensor([[1, *range(3, 200)]])
LINEAR = {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 64}
FACTORS = np.array([1.0, 1.5, 4.0, 8.0])
"""Of the frequencies of a head: half its width."""
BIASES = {
    f"blk.{layer}.{name}.bias": np.random.default_rng(layer).normal(0.0, 0.5, WIDTH)
    for layer in range(LAYERS)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output")
}


def same_weights(plain: Path, rope: Mapping[str, Any], *, biased: bool, factors: bool) -> Any:
    """The model that a file states, built from the weights of the plain one by transformers alone."""
    model = AutoModelForCausalLM.from_pretrained(plain.parent, gguf_file=plain.name, dtype=torch.float32)
    config = model.config
    config.rope_parameters = {**config.rope_parameters, **rope}
    config.attention_bias = biased
    other = type(model)(config).eval()
    weights = dict(model.state_dict())
    for name, values in BIASES.items() if biased else ():
        _, layer, there, _ = name.split(".")
        here = {"attn_q": "q_proj", "attn_k": "k_proj", "attn_v": "v_proj", "attn_output": "o_proj"}[there]
        if there in ("attn_q", "attn_k"):  # files hold the halves of a head's rows by turns
            values = values.reshape(HEADS, -1, 2).swapaxes(1, 2).reshape(-1)
        weights[f"model.layers.{layer}.self_attn.{here}.bias"] = torch.tensor(values, dtype=torch.float32)
    other.load_state_dict(weights)
    if factors:
        other.model.rotary_emb.inv_freq /= torch.tensor(FACTORS, dtype=torch.float32)
    return other


@pytest.mark.parametrize(
    ("keys", "more", "rope"),
    [
        ({}, {}, {}),
        (LINEAR, {}, {"rope_type": "linear", "factor": 4.0}),
        ({"rope.scale_linear": 4.0}, {}, {"rope_type": "linear", "factor": 4.0}),
        (YARN, {}, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}),
        ({}, {"rope_freqs.weight": FACTORS}, {}),
        ({}, BIASES, {}),
        ({"rope.scaling.type": "none", "logit_scale": 1.0, "attention.key_length": WIDTH // HEADS}, {}, {}),
    ],
    ids=["plain", "linear", "linear of old", "yarn", "per frequency", "biases", "neutral"],
)
def test_a_gguf_file_is_the_model_it_says_it_is(
    tmp_path: Path, keys: dict[str, Any], more: dict[str, np.ndarray], rope: dict[str, Any]
) -> None:
    plain, stated = tmp_path / "plain.gguf", tmp_path / "stated.gguf"
    write_tiny_gguf(plain)
    write_tiny_gguf(stated, keys=keys, more=more)
    loaded = load_model(check_gguf(stated), Placement("cpu", "float32"))
    expected = same_weights(plain, rope, biased=more is BIASES, factors="rope_freqs.weight" in more)
    with torch.no_grad():
        found, right, other = (
            m(input_ids=IDS).logits
            for m in (loaded, expected, same_weights(plain, {}, biased=False, factors=False))
        )
    assert float((found - right).abs().max()) < 1e-5
    changes = bool(rope or more)
    assert (float((found - other).abs().max()) > 0.1) == changes  # the check can fail


@pytest.mark.parametrize(
    ("keys", "more", "said"),
    [
        ({"rope.scaling.type": "longrope", "rope.scaling.factor": 4.0}, {}, "rope.scaling.type = 'longrope'"),
        (LINEAR | {"rope.scaling.attn_factor": 0.5}, {}, "rope.scaling.attn_factor = 0.5"),
        ({"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}, {}, "rope.scaling.type = 'yarn'"),
        ({"logit_scale": 0.5}, {}, "logit_scale = 0.5"),
        ({"attention.causal": False}, {}, "attention.causal = False"),
        ({"final_logit_softcapping": 30.0}, {}, "final_logit_softcapping = 30.0"),
        ({"attention.key_length": 2 * WIDTH}, {}, "attention.key_length"),
        ({}, {"blk.0.attn_q_norm.weight": np.ones(8)}, "blk.0.attn_q_norm.weight"),
        ({}, {"blk.1.ffn_gate.bias": np.ones(64)}, "blk.1.ffn_gate.bias"),
    ],
)
def test_what_nothing_reads_refuses_the_file(
    tmp_path: Path, keys: dict[str, Any], more: dict[str, np.ndarray], said: str
) -> None:
    write_tiny_gguf(tmp_path / "m.gguf", keys=keys, more=more)
    with pytest.raises(ModelError, match="hf:ORG/NAME") as refused:
        load_model(check_gguf(tmp_path / "m.gguf"), Placement("cpu", "float32"))
    assert said in str(refused.value)


def test_prompts_stay_within_a_window_that_the_architecture_does_not_know(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "m.gguf", keys={"attention.sliding_window": 128})
    assert 128 == load_config(check_gguf(tmp_path / "m.gguf")).max_position_embeddings


def test_tensors_that_a_folder_s_config_leaves_out_refuse_it(tiny: Models, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny("llama", "bpe-bos").folder, tmp_path / "model"))
    weights = load_file(folder / "model.safetensors")
    of_layer = "model.layers.0.self_attn.q_proj"
    own = {
        f"{of_layer}.bias": torch.ones(weights[f"{of_layer}.weight"].shape[0]),
        "vision_tower.x": torch.ones(2),
    }
    save_file({**weights, **own}, folder / "model.safetensors", {"format": "pt"})
    scorer = scorer_for(folder)
    with pytest.raises(
        ModelError, match=r"never reads 1 of its tensors, first model\.layers\.0\.self_attn\.q_proj\.bias"
    ):
        answers(scorer, raw_requests([SHORT], (TargetWord("any", "He"),)))


# --- words -----------------------------------------------------------------------------------------------


def changed(tiny: Models, tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A model whose tokenizer.json was changed."""
    folder = Path(shutil.copytree(tiny("llama", "bpe-bos").folder, tmp_path / "model"))
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")
    return folder


def lower(tokenizer: dict[str, Any]) -> None:
    tokenizer["normalizer"] = {"type": "Lowercase"}


HE = (TargetWord("male", "He"), TargetWord("male", "he"), TargetWord("female", "She"))


def test_words_that_coincide_count_once_and_are_named(tiny: Models, tmp_path: Path) -> None:
    scorer = scorer_for(changed(tiny, tmp_path, lower))
    plan = scorer.plan_scores(raw_requests([SHORT], HE))
    assert "this model's tokenizer writes ' He' as ' he'" in plan.notes
    (found,) = answers(scorer, raw_requests([SHORT], HE)).values()
    assert isinstance(found, Scored)
    assert [(one.group, one.text) for one in found.log_probs] == [("male", " He"), ("female", " She")]
    assert found.left_out == (("male", " he"),)


def test_a_word_of_two_groups_is_refused(tiny: Models, tmp_path: Path) -> None:
    scorer = scorer_for(changed(tiny, tmp_path, lower))
    with pytest.raises(TokenizationError, match="are the same tokens"):
        scorer.plan_scores(raw_requests([SHORT], (TargetWord("male", "He"), TargetWord("female", "he"))))


@pytest.mark.parametrize("alone", [True, False])
def test_a_word_that_cannot_be_written(tiny: Models, tmp_path: Path, alone: bool) -> None:
    def forget_letters(tokenizer: dict[str, Any]) -> None:
        model = tokenizer["model"]
        model["unk_token"] = "<unk>"
        kept = {piece: i for piece, i in model["vocab"].items() if "z" not in piece}
        model["vocab"] = kept
        model["merges"] = [m for m in model["merges"] if "z" not in "".join(m)]

    folder = changed(tiny, tmp_path, forget_letters)
    config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "unk_token": "<unk>"}), "utf-8")
    scorer = scorer_for(folder)
    asked = (TargetWord("diverse", "ze"), TargetWord("male", "He"), TargetWord("female", "She"))
    asked += () if alone else (TargetWord("diverse", "They"),)
    if alone:
        with pytest.raises(
            TokenizationError, match="cannot write ' ze', nor any other target word of 'diverse'"
        ):
            scorer.plan_scores(raw_requests([SHORT], asked))
    else:
        plan = scorer.plan_scores(raw_requests([SHORT], asked))
        assert "this model's tokenizer cannot write ' ze': it is left out" in plan.notes


# --- ends and failures -----------------------------------------------------------------------------------

ENDS_TURNS = (
    "{% for m in messages %}<|user|>{{ m.content }}<|assistant|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|user|>{% endif %}"
)


def generator(folder: Path) -> TransformersGenerator:
    from biaskit.models.huggingface.folder import check_folder

    return TransformersGenerator(check_folder(folder), label="m", spec=f"hf:{folder}")


@pytest.mark.parametrize("template", [CHAT_TEMPLATE, ENDS_TURNS])
def test_what_ends_a_turn_in_the_template_ends_a_text(tiny: Models, tmp_path: Path, template: str) -> None:
    folder = Path(shutil.copytree(tiny("llama", "bpe-bos", chat_template=template).folder, tmp_path / "m"))
    made = generator(folder)
    tokenizer = made._renderer.tokenizer
    after = tokenizer.apply_chat_template(
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "Q7"}], tokenize=False
    ).rpartition("Q7")[2]
    first = tokenizer(after.lstrip(), add_special_tokens=False)["input_ids"][:1]
    special = [i for i in first if i in tokenizer.all_special_ids]
    assert list(made._renderer.turn_ends()) == special
    made._load()
    assert {*special, tokenizer.eos_token_id} <= set(made._ends)
    if special and special[0] != tokenizer.eos_token_id:
        assert str(special[0]) in made.identity.details["ends"]


@pytest.mark.parametrize(
    "error", [NotImplementedError("no kernel\nfor this"), KeyError("x"), AssertionError()]
)
def test_a_forward_that_fails_is_one_line(
    tiny: Models, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    scorer = scorer_for(tiny("llama", "bpe-bos").folder)
    requests = raw_requests([SHORT], HE[:1] + HE[2:])
    plan = scorer.plan_scores(requests)
    scorer._load()

    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(type(scorer._model.base_model), "forward", fails)
    with pytest.raises(ModelError, match="tiny: the model's own forward fails") as refused:
        list(scorer.score(plan.batches))
    assert "\n" not in str(refused.value)
    assert type(error).__name__ in str(refused.value)
