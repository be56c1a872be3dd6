"""A model in the caller's memory as if it were a checked folder; whatever happens, it is left as it was."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch

from biaskit.common.provenance import digest
from biaskit.models.huggingface.folder import TOKENIZER_FILES, ModelFolder
from biaskit.models.huggingface.loading import BYTES_PER_NUMBER, foreign_code
from biaskit.models.options import LoadedModel

_CHANGE_NO_NUMBER = {
    *("_name_or_path", "transformers_version", "use_cache", "dtype", "architectures", "pad_token_id"),
    *("output_hidden_states", "output_attentions"),
    *("training", "gradient_checkpointing", "max_seq_len_cached"),  # of modules
}
_OF_ADAPTERS = ("active_adapters", "disable_adapters", "merged_adapters", "scaling")
_FOLDERS: WeakKeyDictionary[LoadedModel, ModelFolder] = WeakKeyDictionary()
"""Of the models that a call was lent: their weights stay as they are until it ends."""


def object_folder(loaded: LoadedModel) -> ModelFolder:
    """Describe a model in memory, with digests of its tensors and tokenizer. Raises `ModelError`."""
    with foreign_code(f"{loaded.label} is not a loaded causal model with its tokenizer"):
        return _FOLDERS.get(loaded) or _FOLDERS.setdefault(loaded, _described(loaded))


def _described(loaded: LoadedModel) -> ModelFolder:
    model = loaded.model
    if hasattr(model, "get_base_model"):  # of peft: the layers of the model inside it hold the adapters
        model = model.get_base_model()
    config = json.loads(model.config.to_json_string(use_diff=False))
    kept = {name: value for name, value in config.items() if name not in _CHANGE_NO_NUMBER}
    total = hashlib.sha256(digest(kept).encode())
    for name, module in model.named_modules():
        total.update(f"{name}\0{_state_of(module)}\n".encode())
    tensors = {**model.state_dict(), **dict(model.named_buffers())}  # also buffers that are not saved
    for name, tensor in sorted(tensors.items()):  # one at a time: no copy of the whole model
        total.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\n".encode())
        total.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    tokenizer = copy.deepcopy(loaded.tokenizer)  # to encode a text sets its padding
    numbers = {str(p.dtype).removeprefix("torch.") for p in model.parameters() if p.is_floating_point()}
    if not (known := [name for name in BYTES_PER_NUMBER if name in numbers]):
        raise ValueError(f"{', '.join(sorted(numbers))} is not one of {', '.join(BYTES_PER_NUMBER)}")
    own = getattr(model, "generation_config", None)
    generation = own and own.to_dict()
    n_parameters = sum(p.numel() for p in model.parameters())
    return ModelFolder(
        path=Path(loaded.label),
        gguf_file=None,
        n_parameters=n_parameters,
        weights_digest=total.hexdigest(),
        tokenizer_digest=_digest_of_tokenizer(tokenizer),
        stored_dtype=known[-1],  # the coarsest says how exact a number can be
        generation=generation,
        loaded=LoadedModel(loaded.label, model, tokenizer),
    )


def _state_of(module: torch.nn.Module) -> str:
    """Describe what a module computes by, beside its tensors."""
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, int | float) and not name.startswith("_") and name not in _CHANGE_NO_NUMBER
    }
    values = [getattr(module, name, None) for name in _OF_ADAPTERS]
    adapters = [value for value in values if not callable(value)]
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    foreign = [hook for hook in hooks if getattr(hook, "__name__", "") != "make_inputs_require_grads"]
    replaced = "forward" in vars(module) and "_original_forward" not in vars(module)
    # What a hook does cannot be read: such a model is another one in every call.
    once = secrets.token_hex() if foreign or replaced else ""
    return json.dumps([type(module).__name__, own, adapters, once], default=str, sort_keys=True)


def _digest_of_tokenizer(tokenizer: Any) -> str:
    """Digest the files that a tokenizer would be saved as; how it last padded or cut is not in them."""
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.no_truncation()
    with tempfile.TemporaryDirectory() as name:
        tokenizer.save_pretrained(name)
        files = [file for file in (Path(name, entry) for entry in TOKENIZER_FILES) if file.exists()]
        listed = (f"{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n" for file in files)
        return hashlib.sha256("".join(listed).encode()).hexdigest()  # that of the saved folder


@contextlib.contextmanager
def kept(models: Iterable[LoadedModel]) -> Iterator[None]:
    """Hold models in evaluation mode, and afterwards put back what every module held."""
    modules = [module for loaded in models for module in loaded.model.modules()]
    devices = {tensor.device.type for module in modules for tensor in module.parameters(recurse=False)}
    # Buffers too: a rotary embedding may make its own anew.
    before = [(module, dict(vars(module)), dict(module._buffers)) for module in modules]
    try:
        for module in modules:
            module.training = False
            # accelerate wraps the forward of a model that trains in mixed precision: its logits are rounded.
            if "_original_forward" in vars(module):
                vars(module).pop("forward", None)
        with contextlib.ExitStack() as stack:
            for device in filter(torch.amp.is_autocast_available, devices):  # a caller's would round
                stack.enter_context(torch.autocast(device, enabled=False))
            yield
    finally:
        for module, own, buffers in before:
            vars(module).update(own)
            module._buffers.update(buffers)
