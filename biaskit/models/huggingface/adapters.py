"""Adapters of peft, beside the weights of their base: `hf:BASE+ADAPTER`, or in a model in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import biaskit.models.huggingface.folder as files
from biaskit.common.inputs import expanded
from biaskit.errors import MissingExtraError, ModelError, UsageError
from biaskit.models.huggingface.loading import find_folder, foreign_code, quiet
from biaskit.models.token_trie import TokenIds

WEIGHTS = "adapter_model.safetensors"
INSTALL_PEFT = 'pip install "biaskit[peft]" (in a checkout: pip install -c .ci/constraints.txt ".[peft]")'


def split_adapter(name: str) -> tuple[str, str] | None:
    """Split BASE+ADAPTER; None for a name without `+`, or where a folder is called so."""
    if "+" not in name or expanded(name).is_dir():
        return None
    if name.startswith("+") or name.endswith("+"):
        raise UsageError(f"hf:{name}: write a model with an adapter as hf:BASE+ADAPTER.")
    places = [i for i, sign in enumerate(name) if sign == "+"]
    # A folder may have a + in its name; names of the hub have none.
    at = next((i for i in places if expanded(name[i + 1 :]).is_dir()), places[-1])
    return name[:at], name[at + 1 :]


def find_adapted(base: str, adapter: str) -> files.ModelFolder:
    """Find the folders of a base model and of an adapter of it. Raises `ModelError`."""
    try:
        import peft  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"Adapters need peft, which is not installed: {INSTALL_PEFT}") from error
    folder: files.ModelFolder = find_folder(base)
    path = find_folder(adapter, _check_adapter, [files.ADAPTER, WEIGHTS])
    both = f"{folder.weights_digest}+{files.combined([path / files.ADAPTER, path / WEIGHTS])}"
    return replace(folder, adapter=path, weights_digest=both)


def _check_adapter(path: Path, allow_links: bool = False) -> Path:
    names = files.check_entries(path, allow_links, adapters=True) if path.is_dir() else ()
    if lacking := [name for name in (files.ADAPTER, WEIGHTS) if name not in names]:
        raise ModelError(f"{path} is not a peft adapter in safetensors: it has no {lacking[0]}.")
    task = files.read_object(path / files.ADAPTER).get("task_type")
    if task not in (None, "CAUSAL_LM"):
        raise ModelError(f"{path} is an adapter for {task}, not for a causal language model (CAUSAL_LM).")
    return path


def add_adapter(model: Any, path: Path) -> Any:
    """Return the model with an adapter, not merged. Raises `ModelError` if it does not fit."""
    import peft

    # Merging would change a tied embedding together with the head, and cannot keep every bias.
    with quiet(), foreign_code(f"{path} does not fit its base model"):
        _refuse_prompted([peft.PeftConfig.from_pretrained(str(path))], path)
        adapted = peft.PeftModel.from_pretrained(model, path, local_files_only=True)
        # peft only warns of tensors that find no place, and of places that find no tensor.
        loaded = adapted.load_adapter(path, "default", local_files_only=True)
        if astray := sorted({*loaded.missing_keys, *loaded.unexpected_keys}):
            raise ValueError(f"{len(astray)} tensors do not match, first {astray[0]}")
        return adapted.eval()


def _refuse_prompted(configs: Sequence[Any], name: Any) -> None:
    for config in configs:
        asks = config.is_prompt_learning or getattr(config, "alora_invocation_tokens", None)
        if asks or config.peft_type in ("XLORA", "POLY", "SHADOW"):
            raise ModelError(
                f"{name}: its adapter ({config.peft_type.value}) depends on the prompt, which biaskit does"
                " not measure. Give an adapter that changes weights alone, such as LoRA."
            )


def inside(model: Any, name: Any, ids: TokenIds = ()) -> Any:
    """Return the model inside a `PeftModel`, whose layers apply the adapters; any other model as it is.

    Raises `ModelError` for an adapter that depends on the prompt, or if the `PeftModel`'s own forward of
    `ids` says something else.
    """
    configs, active = getattr(model, "peft_config", None) or {}, getattr(model, "active_adapters", None)
    names = active if isinstance(active, list) else []
    used = [configs[adapter] for adapter in names if adapter in configs] or [*configs.values()]
    _refuse_prompted(used, name)
    if not hasattr(model, "get_base_model"):
        return model
    inner = model.get_base_model()
    if ids:
        rows = inner.get_input_embeddings().weight.shape[0]  # an id beyond them is refused later
        tokens = torch.tensor([ids], device=inner.device).clamp(max=rows - 1)
        with torch.inference_mode():
            whole, alone = (one(input_ids=tokens).logits for one in (model, inner))
        if not torch.allclose(whole, alone, atol=1e-4, rtol=1e-3, equal_nan=True):
            raise ModelError(
                f"{name}: its PeftModel gives other numbers than the layers inside it (a hook, a forward of"
                " its own, or chance). Take that away, or merge the adapter."
            )
    return inner
