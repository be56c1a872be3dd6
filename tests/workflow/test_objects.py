"""Models that the caller holds: the same numbers as from a folder, and nothing of them is changed."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import hashlib
import json
import sys
import threading
import types
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from fakes.run_files import log_probs
from fakes.tiny_models import CHAT_TEMPLATE, build_model, build_tokenizer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama import modeling_llama

import biaskit as bk
from biaskit.measures.personas.vectors import training

FEW: dict[str, Any] = {
    "occupations": "1",
    "per_gender": 1,
    "max_samples": 2,
    "max_new_tokens": 6,
    "settings": {"srb_seeds": "1", "clusters": False, "permutations": 19},
}
SMALL: dict[str, Any] = {"jobs": "nurse,plumber", "templates": "1-2", "watcher": bk.Silent()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training, "TRAINING_TOKENS", 1)  # else a minute a seed
    return tmp_path


def tiny(architecture: str = "gpt2", template: str | None = None) -> tuple[Any, Any]:
    """A model in training: GPT-2 drops a tenth of its activations then; one block is frozen in evaluation."""
    tokenizer = build_tokenizer("bpe", template)
    model = build_model(architecture, tokenizer).train()
    model.base_model.get_submodule(
        next(n for n, _ in model.base_model.named_modules() if n.endswith(".1"))
    ).eval()
    next(model.parameters()).requires_grad_(False)
    model.generation_config.repetition_penalty = 1.7
    return model, tokenizer


def drawn(model: Any, tokenizer: Any) -> list[int]:
    """Tokens that the caller samples, with dropout where modules are in training."""
    torch.manual_seed(3)
    ids = tokenizer("Q: I met a nurse.", return_tensors="pt")["input_ids"]
    return [int(i) for i in model.generate(ids, do_sample=True, max_new_tokens=20, min_new_tokens=20)[0]]


def state_of(model: Any, tokenizer: Any) -> dict[str, Any]:
    """Everything of a caller's objects that a call could change."""
    return {
        "bytes": {n: hashlib.sha256(t.numpy().tobytes()).hexdigest() for n, t in model.state_dict().items()},
        "buffers": {
            n: (id(b), hashlib.sha256(b.numpy().tobytes()).hexdigest()) for n, b in model.named_buffers()
        },
        "modes": {name: module.training for name, module in model.named_modules()},
        "grad": {name: (p.requires_grad, p.dtype, p.device) for name, p in model.named_parameters()},
        "own": {name: sorted(vars(module)) for name, module in model.named_modules()},
        "hooks": [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()],
        "settings": (id(model.generation_config), model.generation_config.to_dict(), model.config.to_dict()),
        "tokenizer": tokenizer.backend_tokenizer.to_str(),
        "random": torch.random.get_rng_state().tolist(),
    }


def test_an_object_gives_the_numbers_of_its_saved_folder(folder: Path) -> None:
    model, tokenizer = tiny()
    model.save_pretrained(folder / "saved")
    tokenizer.save_pretrained(folder / "saved")
    result = bk.probe(model, bk.model("mine", model, tokenizer), tokenizer=tokenizer, **SMALL)
    assert {"GPT2LMHeadModel", "mine"} == set(result.groups["model"])
    saved = bk.probe("mine=hf:saved", **SMALL)
    expected, found = log_probs(saved.path), log_probs(result.path)
    assert set(expected) == set(found)
    assert 1e-5 > max(abs(found[key] - expected[key]) for key in expected)
    assert " | unsaved objects=GPT2LMHeadModel,mine | " in result.analysis()["signature"]
    assert "unsaved" not in saved.analysis()["signature"]
    entries = [json.loads((r.path / "manifest.json").read_text())["models"]["mine"] for r in (result, saved)]
    assert ["object:mine", "hf:saved"] == [entry["spec"] for entry in entries]
    assert entries[0]["details"]["tokenizer"] == entries[1]["details"]["tokenizer"]


@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_nothing_of_a_callers_model_is_changed(architecture: str, folder: Path) -> None:
    model, tokenizer = tiny(architecture, CHAT_TEMPLATE)
    tokens = drawn(model, tokenizer)
    tokenizer(["a", "longer text"], truncation=True, max_length=3)  # as a Trainer leaves it
    before = state_of(model, tokenizer)
    mine = bk.model("mine", model, tokenizer)
    bk.probe(mine, **SMALL, continuations=2)
    bk.probe(mine, **SMALL, prompt_format="chat-prefill", out="chat")
    bk.probe(mine, **SMALL, estimator="sampling", samples=2, max_samples_per_prompt=2, out="drawn")
    bk.personas(mine, **FEW, watcher=bk.Silent())
    assert before == state_of(model, tokenizer)
    assert tokens == drawn(model, tokenizer)


class Stops(bk.Silent):
    """A watcher that interrupts once answers come."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def progress(self, *_: Any) -> None:
        raise self.error("now")


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_nor_is_it_when_the_run_breaks(error: type[BaseException], folder: Path) -> None:
    model, tokenizer = tiny("llama")
    before = state_of(model, tokenizer)
    mine, watcher = bk.model("mine", model, tokenizer), Stops(error)
    with pytest.raises((bk.BiaskitError, error)):
        bk.probe(mine, **{**SMALL, "watcher": watcher})
    with pytest.raises((bk.BiaskitError, error)):
        bk.personas(mine, **FEW, watcher=watcher)
    assert before == state_of(model, tokenizer)


def test_the_forward_that_mixed_precision_wraps_is_set_aside(folder: Path) -> None:
    model, tokenizer = tiny("llama")
    model._original_forward = model.forward
    wrapped = torch.autocast("cpu", torch.bfloat16)(model.forward)
    model.forward = wrapped
    bk.probe(bk.model("mine", model, tokenizer), **SMALL, out="wrapped")
    assert model.forward is wrapped
    del model.forward, model._original_forward
    result = bk.probe(bk.model("mine", model, tokenizer), **SMALL, out="plain", settings={"seed": 2})
    assert log_probs(Path("wrapped")) == log_probs(result.path)


def test_a_run_goes_on_with_the_same_object_and_not_with_changed_weights(folder: Path) -> None:
    model, tokenizer = tiny()
    first = bk.probe(bk.model("mine", model, tokenizer), **SMALL)
    rows = (first.path / "probe.jsonl").read_bytes()
    tokenizer(["a", "longer text"], truncation=True, max_length=3)
    model.eval()
    again = bk.probe(bk.model("mine", model, tokenizer), **SMALL)
    assert first.path == again.path
    assert rows == (again.path / "probe.jsonl").read_bytes()
    with torch.no_grad():
        model.transformer.h[1].mlp.c_fc.bias[-1] += 1e-3
    changed = bk.probe(bk.model("mine", model, tokenizer), **SMALL)
    assert first.path != changed.path
    mixed = bk.probe(bk.model("mine", model, tokenizer), **SMALL, out=first.path)
    assert any("has changed" in warning for warning in mixed.warnings)
    assert 2 * rows.count(b"\n") == (first.path / "probe.jsonl").read_bytes().count(b"\n")
    tokenizer.chat_template = CHAT_TEMPLATE
    other = bk.probe(bk.model("mine", model, tokenizer), **SMALL, prompt_format="raw", out="templated")
    fingerprints = [
        json.loads((r.path / "manifest.json").read_text())["models"]["mine"]["fingerprint"]
        for r in (changed, other)
    ]
    assert 2 == len(set(fingerprints))


def test_a_run_of_an_object_is_verified_with_the_object_and_compared_without(folder: Path) -> None:
    model, tokenizer = tiny()
    mine = bk.model("mine", model, tokenizer)
    result = bk.probe(mine, **SMALL, out="a")
    alone = bk.verify(result, watcher=bk.Silent())
    assert "not-checked" == alone.outcome
    said = next(check.text for check in alone.checks if "model" == check.name)
    assert "mine was a model in the memory of the program that measured it" in said
    assert "agrees" == bk.verify(result, model=mine, watcher=bk.Silent()).outcome
    with torch.no_grad():
        model.lm_head.weight += 0.2 * torch.randn_like(model.lm_head.weight)
    assert "differs" == bk.verify(result, model=mine, watcher=bk.Silent()).outcome
    after = bk.probe(bk.model("after", model, tokenizer), **SMALL, out="b")
    compared = bk.compare(result, after)
    assert compared.complete


def test_a_command_says_that_an_object_is_gone(folder: Path, console: Any) -> None:
    done = console("probe", "object:mine", "--jobs", "nurse", "--templates", "1")
    assert done.code
    assert "mine was a model in the memory of the program" in done.err
    assert 1 == done.err.strip().count("\n") + 1


def test_what_is_no_model_is_refused_in_one_line(folder: Path) -> None:
    model, tokenizer = tiny()
    bert = transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=500, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
        )
    )
    mine = bk.model("mine", model, tokenizer)
    refused = [
        (lambda: bk.probe(model, **SMALL), "with a NoneType"),
        (lambda: bk.probe("demo", tokenizer=tokenizer, **SMALL), "no such model is given"),
        (lambda: bk.probe(mine, mine, **SMALL), "Two models are called 'mine'"),
        (lambda: bk.model("a=b", model, tokenizer), "without ="),
        (lambda: bk.model("=b", model, tokenizer), "without ="),
        (lambda: bk.model("-b", model, tokenizer), "spreadsheet"),
        (lambda: bk.model("mine", torch.nn.DataParallel(model), tokenizer), "model.module"),
        (lambda: bk.model("mine", model, "tokenizer"), "its tokenizer"),
        (lambda: bk.probe(bk.model("bert", bert, tokenizer), **SMALL), "not a causal language model"),
        (
            lambda: bk.probe(mine, dtype="bfloat16", **SMALL),
            "float32 on cpu, but this call or the run needs bfloat16 on auto",
        ),
        (lambda: bk.probe(mine, device="cuda", **SMALL), "needs auto on cuda"),
        (lambda: bk.probe(bk.model("wide", model.double(), tokenizer), **SMALL), "float64 is not one of"),
        (lambda: bk.probe(bk.model("meta", model.to("meta"), tokenizer), **SMALL), "meta"),
    ]
    for call, said in refused:
        with pytest.raises(bk.BiaskitError) as error:
            call()
        assert said in str(error.value), str(error.value)
        assert "\n" not in str(error.value)


# --- which model it is ------------------------------------------------------------------------------------


def adapted(model: Any) -> Any:
    peft = pytest.importorskip("peft", reason="the extra peft is not installed")
    torch.manual_seed(1)
    targets = ["q_proj", "lm_head"]
    return peft.get_peft_model(model, peft.LoraConfig(target_modules=targets, init_lora_weights=False))


def steer(module: Any, args: Any, output: Any) -> Any:
    return output * 1.5


def replaced(model: Any) -> None:
    mlp = model.model.layers[0].mlp
    mlp.forward = lambda x, forward=mlp.forward: 2 * forward(x)


CHANGES: dict[str, tuple[Any, Any]] = {
    "a hook": (None, lambda m: m.model.layers[0].register_forward_hook(steer)),
    "a forward of its own": (None, replaced),
    "a number of a module": (None, lambda m: setattr(m.model.layers[0].self_attn, "scaling", 0.9)),
    "a buffer that is not saved": (None, lambda m: m.model.rotary_emb.inv_freq.mul_(0.1)),
    "an adapter's scale": (adapted, lambda m: [x.scale_layer(0.1) for x in layers_of(m)]),
    "an adapter that is off": (adapted, lambda m: m.base_model.disable_adapter_layers()),
}
"""What changes numbers and no tensor that would be saved."""


def layers_of(model: Any) -> list[Any]:
    return [module for module in model.modules() if hasattr(module, "scale_layer")]


def fingerprint(model: Any, tokenizer: Any) -> str:
    from biaskit.models.huggingface.objects import object_folder

    return object_folder(bk.model("mine", model, tokenizer)).weights_digest


peft_warns = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft 0.21


class Mode(enum.Enum):
    OFF = 0
    FLIP = 1


@dataclasses.dataclass
class Control:
    """As a steering library keeps it."""

    vector: torch.Tensor
    operator: Any = dataclasses.field(default=lambda current, control: current + control)


class Plain:
    """An object with an attribute."""

    values: list[int]


def times(factor: float) -> Any:
    return lambda x: factor * x


class Steered(torch.nn.Module):
    """A layer whose output is changed by what `held` says."""

    strength = 1.0
    power = property(lambda self: 1.0)
    added = staticmethod(lambda: 1.0)

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer, self.held, self._kept = layer, None, torch.ones(3)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        change = self.held if isinstance(self.held, torch.Tensor) else 0.0
        return self.layer(*args, **kwargs) + change

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("layer"), name)


def steered() -> tuple[Any, Any]:
    model, tokenizer = tiny("llama")
    model.model.layers[1] = Steered(model.model.layers[1])
    return model, tokenizer


def plain(values: list[int]) -> Plain:
    held = Plain()
    held.values = values
    return held


HELD: dict[str, tuple[Any, Any]] = {
    "a tensor": (lambda: torch.ones(2), lambda x: x.mul_(2)),
    "nested containers": (lambda: {"a": [{"b": (1, torch.ones(2))}]}, lambda x: x["a"][0]["b"][1].mul_(2)),
    "a set": (lambda: {"a", "b", 3}, lambda x: x.add("c")),
    "numbers of numpy": (lambda: np.ones(3), lambda x: x.fill(2)),
    "a deque": (lambda: collections.deque([1]), lambda x: x.append(2)),
    "a dataclass": (lambda: Control(torch.ones(2)), lambda x: x.vector.mul_(2)),
    "a function of a dataclass": (
        lambda: Control(torch.ones(2)),
        lambda x: setattr(x, "operator", lambda current, control: current - control),
    ),
    "a closure": (lambda: [times(2)], lambda x: x.__setitem__(0, times(3))),
    "an object": (lambda: plain([1]), lambda x: x.values.append(2)),
    "a mode": (lambda: {"mode": Mode.OFF}, lambda x: x.update(mode=Mode.FLIP)),
    "a text": (lambda: ["off"], lambda x: x.__setitem__(0, "flip")),
    "a module in a list": (lambda: [torch.nn.Linear(2, 2)], lambda x: torch.nn.init.ones_(x[0].weight)),
}


@pytest.mark.parametrize("held", HELD)
def test_what_a_module_holds_tells_which_model_it_is(held: str) -> None:
    make, alter = HELD[held]
    model, tokenizer = steered()
    layer = model.model.layers[1]
    layer.held = make()
    before = fingerprint(model, tokenizer)
    assert before == fingerprint(model, tokenizer)
    alter(layer.held)
    assert before != fingerprint(model, tokenizer)


def test_so_do_private_names_and_the_class_and_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = steered()
    layer = model.model.layers[1]
    seen = [fingerprint(model, tokenizer)]
    layer._kept.mul_(2)
    seen.append(fingerprint(model, tokenizer))
    layer.layer.added = {1: torch.ones(2)}  # by a tool, to a layer of transformers
    seen.append(fingerprint(model, tokenizer))
    monkeypatch.setattr(Steered, "strength", 2.0)
    seen.append(fingerprint(model, tokenizer))
    monkeypatch.setattr(Steered, "forward", lambda self, *args, **kwargs: -self.layer(*args, **kwargs))
    seen.append(fingerprint(model, tokenizer))
    assert len(seen) == len(set(seen))


SCALE = 1.0


def scaled(x: Any) -> Any:
    return [lambda y: y * SCALE][0](x)


def marked(x: Any) -> Any:
    return x * marked.scale  # type: ignore[attr-defined]


def named_as(other: Any, factor: float) -> Any:
    """A function that `functools.wraps` calls by another's name."""
    return functools.wraps(other)(lambda x: factor * x)


def first(self: Any, x: Any) -> Any:
    return x


def second(self: Any, x: Any) -> Any:
    return -x


second.__name__ = "first"


def before(layer: Any) -> None:
    layer.method = types.MethodType(first, layer)
    layer.function, layer.marked, layer.wrapped = scaled, marked, named_as(torch.nn.Linear.forward, 2)
    layer.cached = functools.lru_cache(functools.partial(first, None))
    layer.steps = {"scale": 1, "add": 2}
    marked.scale = 1  # type: ignore[attr-defined]


REWRITTEN: dict[str, Any] = {
    "a method of the same name": lambda layer, patch: setattr(
        layer, "method", types.MethodType(second, layer)
    ),
    "a global of a function inside": lambda layer, patch: patch.setitem(globals(), "SCALE", 2.0),
    "an attribute of a function": lambda layer, patch: setattr(marked, "scale", 2),
    "a name that is another's": lambda layer, patch: setattr(
        layer, "wrapped", named_as(torch.nn.Linear.forward, 3)
    ),
    "what is cached": lambda layer, patch: setattr(
        layer, "cached", functools.lru_cache(functools.partial(second, None))
    ),
    "the order of steps": lambda layer, patch: setattr(layer, "steps", {"add": 2, "scale": 1}),
    "a property": lambda layer, patch: patch.setattr(Steered, "power", property(lambda self: 2.0)),
    "a static method": lambda layer, patch: patch.setattr(Steered, "added", staticmethod(lambda: 2.0)),
    "transformers' own class": lambda layer, patch: patch.setattr(modeling_llama.LlamaMLP, "forward", second),
    "a function beside it": lambda layer, patch: patch.setattr(modeling_llama, "rotate_half", scaled),
    "an attention": lambda layer, patch: ALL_ATTENTION_FUNCTIONS.register("mine", second),
    "where a class lies": lambda layer, patch: setattr(layer, "held", tool("Tool", 2)()),
}


def tool(name: str, value: int) -> Any:
    """A class of a module in the user's folder `my-packages`."""
    module = types.ModuleType("steering_tool")
    module.__file__ = "/home/me/my-packages/steering_tool.py"
    sys.modules["steering_tool"] = module
    return type(name, (), {"__module__": "steering_tool", "value": value})


@pytest.mark.parametrize("change", REWRITTEN)
def test_code_that_is_written_anew_is_another_model(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = steered()
    monkeypatch.setitem(sys.modules, "steering_tool", None)
    ALL_ATTENTION_FUNCTIONS.register("mine", first)
    model.set_attn_implementation("mine")
    layer = model.model.layers[1]
    layer.held = tool("Tool", 1)()
    before(layer)
    seen = fingerprint(model, tokenizer)
    assert seen == fingerprint(model, tokenizer)
    REWRITTEN[change](layer, monkeypatch)
    assert seen != fingerprint(model, tokenizer)


def test_a_layer_whose_own_forward_is_kept_beside_it_is_measured_as_it_is(folder: Path) -> None:
    """The names are those of accelerate, which wraps a whole model and no layer."""
    model, tokenizer = tiny("llama")
    expected = log_probs(bk.probe(bk.model("mine", model, tokenizer), **SMALL, out="a").path)
    replaced(model)
    mlp = model.model.layers[0].mlp
    mlp._original_forward = type(mlp).forward.__get__(mlp)
    result = bk.probe(bk.model("mine", model, tokenizer), **SMALL, out="a")
    assert any("a forward of its own" in note for note in result.warnings)
    found = log_probs(result.path)
    assert 1e-3 < max(abs(found[key] - expected[key]) for key in found)


def looped() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


UNREADABLE: dict[str, Any] = {
    "a generator": lambda: (i for i in range(3)),
    "a lock": threading.Lock,
    "a weak reference": lambda: weakref.ref(Plain),
    "a loop": looped,
}


@pytest.mark.parametrize("held", UNREADABLE)
def test_what_cannot_be_read_makes_the_model_new_in_each_call_and_a_note_says_so(
    held: str, folder: Path
) -> None:
    model, tokenizer = steered()
    model.model.layers[1].held = UNREADABLE[held]()
    results = [bk.probe(bk.model("mine", model, tokenizer), **SMALL, out="a") for _ in range(2)]
    rows = [json.loads(row) for row in (results[0].path / "probe.jsonl").read_text().splitlines()]
    assert 2 == len({row["answered_by"] for row in rows})
    assert any("mine has changed" in note for note in results[1].warnings)
    for result in results:
        assert any("mine: what model.layers.1 (" in note for note in result.warnings), result.warnings


def test_a_model_whose_steering_changed_is_measured_anew(folder: Path) -> None:
    """Origin: the plain forward of the changed model (N08)."""
    model, tokenizer = steered()
    before = bk.probe(bk.model("mine", model, tokenizer), **SMALL, out="a")
    old = log_probs(before.path)
    torch.manual_seed(9)
    model.model.layers[1].held = 2 * torch.randn(model.config.hidden_size)
    result = bk.probe(bk.model("mine", model, tokenizer), **SMALL, out="a")
    found = log_probs(result.path)
    row = json.loads((result.path / "probe.jsonl").read_text().splitlines()[-1])
    word = row["target_words"][0]
    prompt, both = (tokenizer(text)["input_ids"] for text in (row["prompt"], row["prompt"] + word["text"]))
    with torch.no_grad():
        logits = model.eval()(input_ids=torch.tensor([both])).logits[0].double().log_softmax(-1)
    expected = sum(float(logits[i - 1, both[i]]) for i in range(len(prompt), len(both)))
    assert expected == pytest.approx(word["log_prob"], abs=1e-4)
    assert 0.1 < max(abs(found[key] - old[key]) for key in old)


def test_a_tokenizer_written_in_python_works_as_in_a_folder(folder: Path) -> None:
    tokenizer = transformers.ByT5Tokenizer(extra_ids=0)
    model = build_model("llama", build_tokenizer("bytes"))
    model.resize_token_embeddings(len(tokenizer))
    model.save_pretrained("bytes")
    tokenizer.save_pretrained("bytes")
    runs = [bk.probe(m, **SMALL) for m in ("mine=hf:bytes", bk.model("mine", model, tokenizer))]
    expected, found = (log_probs(run.path) for run in runs)
    assert expected == pytest.approx(found, abs=1e-5)
    entries = [json.loads((run.path / "manifest.json").read_text())["models"]["mine"] for run in runs]
    assert entries[0]["details"]["tokenizer"] == entries[1]["details"]["tokenizer"]
    drawn = bk.probe(bk.model("mine", model, tokenizer), **SMALL, estimator="sampling", samples=2, out="s")
    assert drawn.complete


@peft_warns
@pytest.mark.parametrize("change", CHANGES)
def test_a_model_that_computes_otherwise_has_another_fingerprint(change: str) -> None:
    dress, alter = CHANGES[change]
    model, tokenizer = tiny("llama")
    model = dress(model) if dress else model
    before = fingerprint(model, tokenizer)
    model.activation_checkpointing_enable()
    model.enable_input_require_grads()
    model.eval()
    assert before == fingerprint(model, tokenizer), "these change no number"
    alter(model)
    assert before != fingerprint(model, tokenizer)


def test_a_steered_model_and_a_plain_one_share_no_answer(folder: Path) -> None:
    model, tokenizer = tiny("llama")
    plain, _ = tiny("llama")
    model.model.layers[0].register_forward_hook(steer)
    result = bk.probe(bk.model("steered", model, tokenizer), bk.model("plain", plain, tokenizer), **SMALL)
    shares = result.groups.pivot_table("share", ["bias_type", "job_group", "gender"], "model")
    assert (shares["steered"] != shares["plain"]).all()


@peft_warns
def test_an_adapter_of_the_output_head_is_scored(folder: Path) -> None:
    model, tokenizer = tiny("llama")
    held = bk.probe(bk.model("mine", adapted(model), tokenizer), **SMALL)
    model, _ = tiny("llama")
    merged = bk.probe(bk.model("mine", adapted(model).merge_and_unload(), tokenizer), **SMALL)
    found, expected = (log_probs(run.path) for run in (held, merged))
    assert expected == pytest.approx(found, abs=1e-4)


class Own(transformers.LlamaForCausalLM):
    """A class of the caller's, whose name transformers does not know."""


def test_subclasses_compiled_models_and_autocast_change_nothing(folder: Path) -> None:
    model, tokenizer = tiny("llama")
    expected = log_probs(bk.probe(bk.model("mine", model, tokenizer), **SMALL).path)
    compiled = torch.compile(model)
    with torch.autocast("cpu", torch.bfloat16):
        result = bk.probe(bk.model("compiled", compiled, tokenizer), **SMALL, reuse=False, out="compiled")
    assert expected == pytest.approx(log_probs(result.path), abs=1e-5)
    model.__class__ = Own
    assert bk.probe(bk.model("own", model, tokenizer), **SMALL).complete
