"""A model in the caller's memory as if it were a checked folder; whatever happens, it is left as it was."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch

from biaskit.common.foreign import visible
from biaskit.common.provenance import digest
from biaskit.errors import BiaskitError, ModelError
from biaskit.models.huggingface.folder import TOKENIZER_FILES, ModelFolder
from biaskit.models.huggingface.loading import BYTES_PER_NUMBER
from biaskit.models.loaded import LoadedModel

PIECE = 1 << 24  # numbers that are digested at once
VOLATILE = ("_name_or_path", "transformers_version", "use_cache", "dtype", "torch_dtype", "architectures")
"""Entries of a configuration that change no number, or stand in the fingerprint already."""
_FOLDERS: WeakKeyDictionary[LoadedModel, ModelFolder] = WeakKeyDictionary()
"""Of the models that a call was lent: their weights stay as they are until it ends."""


def object_folder(loaded: LoadedModel) -> ModelFolder:
    """Describe a model in memory, with digests of its tensors and tokenizer. Raises `ModelError`.

    The tokenizer is copied, since to encode a text sets its padding; the model is not.
    """
    if loaded in _FOLDERS:
        return _FOLDERS[loaded]
    try:
        model, adapters = _without_adapters(loaded)
        tokenizer = copy.deepcopy(loaded.tokenizer)
        config = json.loads(model.config.to_json_string(use_diff=False))
        parts = {name: value for name, value in config.items() if name not in VOLATILE} | adapters
        numbers = {str(p.dtype).removeprefix("torch.") for p in model.parameters() if p.is_floating_point()}
        # The coarsest type says how exact a number can be.
        coarsest = next((name for name in reversed(BYTES_PER_NUMBER) if name in numbers), None)
        spread = len({*(getattr(model, "hf_device_map", None) or {}).values()}) > 1
        folder = ModelFolder(
            path=Path(loaded.label),
            gguf_file=None,
            config=config,
            n_parameters=sum(p.numel() for p in model.parameters()),
            weights_digest=_digest_of_tensors(model, digest(parts)),
            tokenizer_digest=_digest_of_tokenizer(tokenizer),
            stored_dtype=coarsest or "",
            generation=own.to_dict() if (own := getattr(model, "generation_config", None)) else None,
            loaded=LoadedModel(loaded.label, model, tokenizer),
            device="map" if spread else str(model.device),
        )
    except BiaskitError:
        raise
    except Exception as error:  # a caller's objects raise any kind
        why = visible(f"{type(error).__name__}: {error}".splitlines()[0], longest=300)
        raise ModelError(
            f"{loaded.label} cannot be read as a causal model of transformers with its tokenizer ({why})."
        ) from error
    if coarsest is None or config.get("is_encoder_decoder"):
        what = "is an encoder-decoder model" if coarsest else f"holds {', '.join(sorted(numbers))}"
        raise ModelError(
            f"{loaded.label} {what}: biaskit scores causal language models in {', '.join(BYTES_PER_NUMBER)}."
        )
    return _FOLDERS.setdefault(loaded, folder)


def _without_adapters(loaded: LoadedModel) -> tuple[Any, dict[str, Any]]:
    """Return the model inside a peft model, whose layers hold the adapters, and what peft knows of these."""
    model = loaded.model
    if not hasattr(model, "peft_config") or not hasattr(model, "get_base_model"):
        return model, {}
    adapters = {name: config.to_dict() for name, config in model.peft_config.items()}
    if any(config.is_prompt_learning for config in model.peft_config.values()):
        raise ModelError(f"{loaded.label}: an adapter that learns a prompt; biaskit measures weights.")
    status = model.get_model_status()
    how = [status.enabled, status.active_adapters, status.merged_adapters]
    return model.get_base_model(), {"adapters": json.loads(json.dumps([adapters, how], default=sorted))}


def _digest_of_tensors(model: Any, config: str) -> str:
    """Digest a model's state: names, types, shapes and bytes, a piece at a time."""
    total = hashlib.sha256(config.encode())
    for name, tensor in sorted(model.state_dict().items()):
        if not isinstance(tensor, torch.Tensor):  # what a layer adds to its state by itself
            total.update(f"{name}\0{tensor!r}\n".encode())
            continue
        if tensor.is_meta:
            raise ModelError(f"{name} is not in memory (offloaded or sharded): load the model whole.")
        total.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().reshape(-1)
        for start in range(0, len(flat), PIECE):
            piece = flat[start : start + PIECE]
            total.update(piece.cpu().contiguous().view(torch.uint8).numpy().data)
    return total.hexdigest()


def _digest_of_tokenizer(tokenizer: Any) -> str:
    """Digest the files that a tokenizer would be saved as; how it last padded or cut is not in them."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        backend.no_padding()
        backend.no_truncation()
    total = hashlib.sha256()
    with tempfile.TemporaryDirectory() as name:
        tokenizer.save_pretrained(name)
        for file in (Path(name, entry) for entry in TOKENIZER_FILES):
            if file.exists():
                total.update(f"{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


@contextlib.contextmanager
def in_evaluation(model: Any) -> Iterator[None]:
    """Put a caller's model into evaluation mode, and afterwards every module back into its own."""
    modules = list(model.modules())
    before = [(module, module.training, dict(module._buffers)) for module in modules]
    # accelerate wraps the forward of a model that trains in mixed precision: its logits would be rounded,
    # and no longer be those of its own hidden states.
    marks = {"forward", "_original_forward"}
    wrapped = [(module, vars(module).pop("forward")) for module in modules if marks <= {*vars(module)}]
    try:
        for module in modules:
            module.training = False
        yield
    finally:
        for module, training, buffers in before:
            module.training = training
            module._buffers.update(buffers)  # a rotary embedding may have made its own anew
        for module, forward in wrapped:
            module.forward = forward
