"""An adapter of peft over a base model: `hf:BASE+ADAPTER`, merged into the base's weights in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from biaskit.common.foreign import visible
from biaskit.common.inputs import expanded
from biaskit.errors import MissingExtraError, ModelError
from biaskit.models.huggingface.folder import (
    ADAPTER,
    ADAPTER_WEIGHTS,
    ModelFolder,
    check_entries,
    combined,
    numbers_by_type,
    read_object,
)
from biaskit.models.huggingface.loading import find_folder, is_path, quiet, snapshot

INSTALL_PEFT = 'pip install "biaskit[peft]" (in a checkout: pip install -c .ci/constraints.txt ".[peft]")'


def split_adapter(name: str) -> tuple[str, str] | None:
    """Split BASE+ADAPTER; None for a name without `+`, or with one that stands in a folder's own name."""
    if "+" not in name or expanded(name).is_dir():
        return None
    places = [i for i, sign in enumerate(name) if sign == "+"]
    # A folder may have a + in its name; names of the hub have none.
    known = (i for i in places if expanded(name[i + 1 :]).is_dir())
    at = next(known, places[-1])
    return name[:at], name[at + 1 :]


def find_adapted(base: str, adapter: str) -> ModelFolder:
    """Find the folders of a base model and of an adapter of it. Raises `ModelError`."""
    try:
        import peft  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"Adapters need peft, which is not installed: {INSTALL_PEFT}") from error
    if not base or not adapter:
        raise ModelError(f"hf:{base}+{adapter}: write hf:BASE+ADAPTER, two folders or names of the hub.")
    folder, own = find_folder(base), is_path(adapter)
    path = expanded(adapter) if own else snapshot(adapter, [ADAPTER, "adapter_model.*"])
    if not path.is_dir():
        raise ModelError(f"{path}: no such folder of an adapter.")
    names = check_entries(path, allow_links=not own, adapters=True)
    if ADAPTER not in names:
        raise ModelError(f"{path} is no adapter of peft: it has no {ADAPTER}.")
    if ADAPTER_WEIGHTS not in names:
        pickled = any(name.endswith(".bin") for name in names)
        what = "a pickled adapter is not loaded" if pickled else f"it has no {ADAPTER_WEIGHTS}"
        raise ModelError(f"{path}: {what}. Save it with save_pretrained(), as safetensors.")
    task = read_object(path / ADAPTER).get("task_type")
    if task not in (None, "CAUSAL_LM"):
        raise ModelError(f"{path} is an adapter for {task}, not for a causal language model (CAUSAL_LM).")
    numbers = numbers_by_type(path / ADAPTER_WEIGHTS).total()
    return replace(
        folder,
        adapter=path,
        adapter_digest=combined([path / ADAPTER, path / ADAPTER_WEIGHTS]),
        n_parameters=folder.n_parameters + numbers,
    )


def merge_adapter(model: Any, path: Path) -> Any:
    """Return the model with an adapter's changes in its weights. Raises `ModelError` if it does not fit."""
    import peft

    # What peft would fetch from elsewhere is not asked for: the configuration stands in the folder.
    try:
        with quiet():
            adapted = peft.PeftModel.from_pretrained(model, path, local_files_only=True)
            # peft only warns of tensors that find no place, and of places that find no tensor.
            loaded = adapted.load_adapter(path, "default", local_files_only=True)
            if astray := sorted({*loaded.missing_keys, *loaded.unexpected_keys}):
                raise ValueError(f"{len(astray)} tensors do not match, first {astray[0]}")
            return adapted.merge_and_unload().eval()
    except Exception as error:  # peft raises many kinds, with messages of several lines
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        why = visible((lines[1:2] or lines or [type(error).__name__])[0], longest=300)
        raise ModelError(f"{path} does not fit its base model, or cannot be merged into it: {why}") from error
