"""Adapters over their base: equal to the merged folder, and what does not fit is refused in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fakes.tiny_models import build_model, build_tokenizer, save_model
from safetensors.torch import load_file, save_file

import biaskit as bk
from biaskit.errors import MissingExtraError, ModelError
from biaskit.models.huggingface.adapters import split_adapter
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
