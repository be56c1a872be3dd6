"""Adapters over their base: equal to the merged folder, and what does not fit is refused in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from fakes.tiny_models import (
    SHORT,
    Oracle,
    answers,
    build_model,
    build_tokenizer,
    largest_error,
    raw_requests,
    save_model,
    target_words,
)
from safetensors.torch import load_file, save_file

import biaskit as bk
from biaskit.errors import MissingExtraError, ModelError
from biaskit.models.huggingface.adapters import find_adapted, split_adapter
from biaskit.models.huggingface.loading import quiet
from biaskit.models.huggingface.objects import object_folder
from biaskit.models.huggingface.scorer import TransformersScorer
from biaskit.models.spec import open_scorer

peft = pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore:.*(fan_in_fan_out|is_gradient_checkpointing):Warning")
SMALL: dict[str, Any] = {"jobs": "nurse,plumber,maid,pilot", "templates": "1-2", "watcher": bk.Silent()}


def lora(base: Path, target: Path, architecture: str = "llama", **options: Any) -> Any:
    """A LoRA of random weights, saved over a base in `base`; the model with it."""
    tokenizer = build_tokenizer("bpe")
    torch.manual_seed(5)
    chosen = {"r": 2, "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM", **options}
    model = peft.get_peft_model(build_model(architecture, tokenizer), peft.LoraConfig(**chosen))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_" in name:
                weight.normal_(std=0.5)
    model.save_pretrained(target)
    return model


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return save_model(tmp_path / "base", "llama", "bpe")


def log_probs(path: Path, label: str) -> dict[tuple[str, ...], float]:
    rows = [json.loads(line) for line in (path / "probe.jsonl").read_text().splitlines()]
    models = json.loads((path / "manifest.json").read_text())["models"]
    assert [label] == list(models)
    return {(r["prompt"], e["group"], e["text"]): e["log_prob"] for r in rows for e in r["target_words"]}


def test_an_adapter_gives_the_numbers_of_the_merged_folder_and_paired_tests(base: Path) -> None:
    model = lora(base, base.parent / "lora")
    loaded = bk.probe(bk.model("tuned", model, build_tokenizer("bpe")), **SMALL, out="object")
    model.merge_and_unload().save_pretrained("merged")
    build_tokenizer("bpe").save_pretrained("merged")
    adapted = bk.probe("tuned=hf:base+lora", **SMALL, out="adapted")
    merged, before = bk.probe("tuned=hf:merged", **SMALL, out="m"), bk.probe("hf:base", **SMALL, out="b")
    expected, found = log_probs(merged.path, "tuned"), log_probs(adapted.path, "tuned")
    assert set(expected) == set(found)
    assert 1e-5 > max(abs(found[key] - expected[key]) for key in expected)
    from_object = log_probs(loaded.path, "tuned")
    assert 1e-5 > max(abs(from_object[key] - expected[key]) for key in expected)
    alone = log_probs(before.path, "hf:base")
    assert 0.1 < max(abs(alone[key] - expected[key]) for key in expected)
    both = bk.probe("before=hf:base", "after=hf:base+lora", **SMALL)
    between = both.tests[both.tests["family"].str.contains("models")]
    assert len(between)
    assert {"before", "after"} == {*between["model_a"], *between["model_b"]}
    details = json.loads((adapted.path / "manifest.json").read_text())["models"]["tuned"]["details"]
    own = json.loads((before.path / "manifest.json").read_text())["models"]["hf:base"]["details"]
    assert details["weights"].startswith(f"{own['weights']}+")
    weights = load_file("lora/adapter_model.safetensors")
    save_file({name: tensor * 1.001 for name, tensor in weights.items()}, "lora/adapter_model.safetensors")
    fingerprint = json.loads((adapted.path / "manifest.json").read_text())["models"]["tuned"]["fingerprint"]
    assert fingerprint != open_scorer("hf:base+lora", label="x").identity.fingerprint


def test_a_plus_in_the_name_of_a_folder_is_a_plus(base: Path) -> None:
    base.rename(base.with_name("a+b"))
    assert split_adapter("a+b") is None
    assert ("a+b", "lora") == split_adapter("a+b+lora")
    lora(base, base.with_name("c+d"))
    assert ("a+b", "c+d") == split_adapter("a+b+c+d")
    assert ("ORG/NAME@main", "OTHER/NAME") == split_adapter("ORG/NAME@main+OTHER/NAME")
    assert split_adapter("ORG/NAME") is None
    assert "+" not in open_scorer("hf:a+b", label="x").identity.details["weights"]
    assert "+" in open_scorer("hf:a+b+c+d", label="x").identity.details["weights"]


# --- what an adapter computes -----------------------------------------------------------------------------

Q, LORA = ["q_proj"], {"r": 4, "lora_alpha": 16}
COMPUTES: dict[str, Any] = {
    "LoRA": {"target_modules": Q},
    "LoRA, head": {"target_modules": [*Q, "lm_head"]},
    "LoRA, embedding": {"target_modules": [*Q, "embed_tokens"]},
    "LoRA, both": {"target_modules": ["embed_tokens", "lm_head"]},
    "rsLoRA, head": {"target_modules": [*Q, "lm_head"], "use_rslora": True, "rank_pattern": {"lm_head": 7}},
    "DoRA, head": {"target_modules": [*Q, "lm_head"], "use_dora": True},
    "DoRA, embedding": {"target_modules": [*Q, "embed_tokens"], "use_dora": True},
    "PiSSA": {"target_modules": ["q_proj", "v_proj"], "init_lora_weights": "pissa"},
    "bias, head": {"target_modules": [*Q, "lm_head"], "lora_bias": True},
    "modules_to_save, head": {"target_modules": Q, "modules_to_save": ["lm_head"]},
    "modules_to_save, embedding": {"target_modules": Q, "modules_to_save": ["embed_tokens"]},
    "modules_to_save, tied": {
        "target_modules": Q,
        "modules_to_save": ["lm_head"],
        "ensure_weight_tying": True,
    },
    "trainable tokens": {"target_modules": Q, "trainable_token_indices": [*range(40, 90)]},
    "trainable tokens, head": {"target_modules": Q, "trainable_token_indices": {"lm_head": [*range(40, 90)]}},
}
DAILY = [("LoRA, head", True), ("LoRA, embedding", True), ("DoRA, head", False), ("bias, head", False)]


def made(base: Path, config: Any, *, tied: bool = False) -> Any:
    """An adapter of random weights in the folder `adapter`, its base in `base`: as peft opens both again."""
    model = build_model("llama", build_tokenizer("bpe"))
    if tied:
        model.lm_head.weight, model.config.tie_word_embeddings = model.model.embed_tokens.weight, True
    model.save_pretrained(base)
    torch.manual_seed(3)
    with quiet(), torch.no_grad():
        adapted = peft.get_peft_model(model, config)
        for weight in adapted.parameters():
            if weight.requires_grad:
                weight += 0.2 * torch.randn_like(weight)
        adapted.save_pretrained("adapter")
        opened = transformers.AutoModelForCausalLM.from_pretrained(base)
        assert tied == (opened.lm_head.weight is opened.model.embed_tokens.weight)
        return peft.PeftModel.from_pretrained(opened, "adapter").eval()


def scorers(model: Any) -> dict[str, Any]:
    """Of a folder of base and adapter, and of the model in memory."""
    lent = object_folder(bk.model("m", model, build_tokenizer("bpe")))
    return {
        "folder": TransformersScorer(find_adapted("./base", "./adapter"), label="m", spec="hf:./base"),
        "memory": TransformersScorer(lent, label="m", spec="object:m"),
    }


@pytest.mark.parametrize(
    ("kind", "tied"),
    [
        pytest.param(kind, tied, marks=() if (kind, tied) in DAILY else pytest.mark.nightly)
        for tied in (True, False)
        for kind in COMPUTES
    ],
)
def test_an_adapter_is_measured_as_peft_computes_it(kind: str, tied: bool, base: Path) -> None:
    """Origin: the unmerged PeftModel's own forward, one text after another."""
    truth = made(base, peft.LoraConfig(**LORA, **COMPUTES[kind], task_type="CAUSAL_LM"), tied=tied)
    oracle = Oracle(base)
    requests = raw_requests([SHORT, "The plumber said that"], target_words("He", "She", "Nonbinary"))
    without = [oracle.log_prob(SHORT, f" {word.text}") for word in requests[0].target_words]
    oracle.model, oracle._seen = truth, {}
    assert 0.1 < max(
        abs(oracle.log_prob(SHORT, f" {word.text}") - value)
        for word, value in zip(requests[0].target_words, without, strict=True)
    )
    for place, scorer in scorers(truth).items():
        off = largest_error(answers(scorer, requests), requests, oracle)
        print(f"{kind} | {'tied' if tied else 'untied'} | {place} | {off:.2g}")
        assert 1e-4 > off, place


PROMPTED: dict[str, Any] = {
    "LORA": lambda: peft.LoraConfig(
        target_modules=["q_proj"], alora_invocation_tokens=[40, 41], task_type="CAUSAL_LM"
    ),
    "PROMPT_TUNING": lambda: peft.PromptTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"),
    "P_TUNING": lambda: peft.PromptEncoderConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"),
    "PREFIX_TUNING": lambda: peft.PrefixTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"),
    "POLY": lambda: peft.PolyConfig(target_modules=["q_proj"], r=4, n_tasks=2, task_type="CAUSAL_LM"),
}


@pytest.mark.parametrize("kind", PROMPTED)
def test_an_adapter_that_depends_on_the_prompt_is_refused_in_a_folder_and_in_memory(
    kind: str, base: Path
) -> None:
    held = bk.model("m", made(base, PROMPTED[kind]()), build_tokenizer("bpe"))
    for model in ("m=hf:base+adapter", held):
        with pytest.raises(ModelError) as refused:
            bk.probe(model, **SMALL)
        assert f"its adapter ({kind}) depends on the prompt" in str(refused.value), str(refused.value)
        assert "\n" not in str(refused.value)


def test_an_adapter_of_the_head_gets_texts_as_in_a_model_or_the_way_out_is_named(base: Path) -> None:
    """ADAMSS takes a batch of texts alone; Lily's change of a head is no linear map."""
    requests = raw_requests([SHORT], target_words("He", "She"))
    config = {"target_modules": ["q_proj", "lm_head"], "task_type": "CAUSAL_LM"}
    oracle = Oracle(save_model(base.with_name("plain"), "llama", "bpe"))
    oracle.model = made(base, peft.AdamssConfig(**config))
    for scorer in scorers(oracle.model).values():
        assert 1e-4 > largest_error(answers(scorer, requests), requests, oracle)
    for scorer in scorers(made(base, peft.LilyConfig(**config))).values():
        with pytest.raises(ModelError, match="Merge its adapter, or leave the head out of it") as refused:
            answers(scorer, requests)
        assert "report" not in str(refused.value)


def test_what_a_peft_model_does_around_its_layers_is_refused(base: Path) -> None:
    kinds = [
        peft.LoraConfig(**LORA, target_modules=Q),
        peft.PveraConfig(target_modules=Q, sample_at_inference=True),
    ]
    for kind in kinds:
        kind.task_type = "CAUSAL_LM"
        model = made(base, kind)
        if kind is kinds[0]:
            model.register_forward_hook(lambda module, args, out: type(out)(logits=2 * out.logits))
        with pytest.raises(ModelError, match="gives other numbers than the layers inside it"):
            bk.probe(bk.model("m", model, build_tokenizer("bpe")), **SMALL)


def test_an_adapter_that_depends_on_the_prompt_may_lie_beside_the_one_that_is_used(base: Path) -> None:
    model = made(base, peft.LoraConfig(target_modules=["q_proj"], task_type="CAUSAL_LM"))
    model.add_adapter("asked", PROMPTED["LORA"]())
    assert bk.probe(bk.model("m", model, build_tokenizer("bpe")), **SMALL).complete


def changed(path: Path, **entries: Any) -> None:
    file = path / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))


def without_a_tensor(path: Path) -> None:
    weights = load_file(path / "adapter_model.safetensors")
    save_file(dict(list(weights.items())[1:]), path / "adapter_model.safetensors")


def with_another(path: Path) -> None:
    weights = load_file(path / "adapter_model.safetensors")
    more = {name.replace("layers.0", "layers.7"): tensor.clone() for name, tensor in weights.items()}
    save_file({**weights, **more}, path / "adapter_model.safetensors")


def pickled(path: Path) -> None:
    (path / "adapter_model.safetensors").unlink()
    torch.save({}, path / "adapter_model.bin")


REFUSED = [
    (pickled, "in safetensors: it has no adapter_model.safetensors"),
    (lambda path: changed(path, task_type="SEQ_CLS"), "is an adapter for SEQ_CLS"),
    (lambda path: changed(path, target_modules=["no_such"]), "does not fit its base model"),
    (lambda path: changed(path, r=3), "size mismatch"),
    (lambda path: changed(path, peft_type="NO_SUCH"), "does not fit its base model"),
    (without_a_tensor, "tensors do not match"),
    (with_another, "tensors do not match"),
    (lambda path: (path / "adapter_config.json").unlink(), "is not a peft adapter"),
    (lambda path: (path / "adapter_model.safetensors").write_bytes(b"x" * 50), "Safetensor"),
    (lambda path: path.rename(path.with_name("gone")), "neither a folder nor a name"),
]


@pytest.mark.parametrize(("break_it", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_does_not_fit_is_refused_in_one_line(break_it: Any, said: str, base: Path) -> None:
    lora(base, base.parent / "lora")
    break_it(base.parent / "lora")
    with pytest.raises(ModelError) as refused:
        bk.probe("hf:base+lora", **SMALL)
    assert said in str(refused.value), str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_adapter_of_another_architecture_does_not_fit(base: Path) -> None:
    lora(base, base.parent / "lora", "gpt2", target_modules=["c_attn"])
    with pytest.raises(ModelError, match="does not fit its base model"):
        bk.probe("hf:base+lora", **SMALL)


@pytest.mark.parametrize("spec", ["hf:base+", "hf:+lora"])
def test_half_of_an_adapters_spec_is_refused(spec: str, base: Path) -> None:
    with pytest.raises(bk.BiaskitError, match=r"write a model with an adapter as hf:BASE\+ADAPTER"):
        bk.probe(spec, jobs="nurse", watcher=bk.Silent())


def test_a_folder_with_an_adapter_names_the_format(base: Path) -> None:
    lora(base, base.parent / "lora")
    with pytest.raises(ModelError, match=r"has an adapter: hf:BASE\+lora measures"):
        bk.probe("hf:lora", **SMALL)


def test_without_peft_the_extra_is_named(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lora(base, base.parent / "lora")
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtraError, match=r'pip install "biaskit\[peft\]"'):
        bk.probe("hf:base+lora", **SMALL)
