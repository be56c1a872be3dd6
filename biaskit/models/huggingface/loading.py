"""From a checked folder to a tokenizer and a model on its device."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from biaskit.errors import MissingExtraError, ModelError
from biaskit.models.huggingface.folder import ModelFolder, check_folder, check_gguf, looks_like_path
from biaskit.models.huggingface.memory import free_memory

BYTES_PER_NUMBER = {"float32": 4, "bfloat16": 2, "float16": 2}
INSTALL_LOCAL = 'pip install "biaskit[local]" (in a checkout: pip install -c .ci/constraints.txt ".[local]")'


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and in which precision a model runs."""

    device: str  # cpu, cuda, cuda:1, mps, or map (spread over all devices)
    dtype: str  # float32, bfloat16, float16


def require_transformers() -> Any:
    """The transformers module, or the line that installs it."""
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise MissingExtraError(
            f"Local models need torch and transformers, and {error.name} is not installed: {INSTALL_LOCAL}"
        ) from error
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def find_folder(name: str) -> ModelFolder:
    """`hf:NAME`: a saved folder, or ORG/NAME[@revision] of the hub (its cache first)."""
    if looks_like_path(name):
        return check_folder(Path(name).expanduser())
    repository, _, revision = name.partition("@")
    if repository.count("/") != 1 or not all(repository.split("/")):
        raise ModelError(f"hf:{name}: neither a folder nor a name like ORG/NAME[@revision].")
    return check_folder(_fetch(repository, revision or None), allow_links=True)


def _fetch(repository: str, revision: str | None) -> Path:
    """The snapshot of a hub model in the hub's own cache; downloads what is missing."""
    require_transformers()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    wanted = ["*.json", "*.safetensors", "*.model", "*.jinja", "merges.txt", "vocab.txt"]
    where = f"hf:{repository}" + (f"@{revision}" if revision else "")
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=wanted))
    except GatedRepoError as error:
        raise ModelError(
            f"{where} is gated: accept its terms on its page, then set HF_TOKEN to a token that may read it."
        ) from error
    except RevisionNotFoundError as error:
        raise ModelError(f"{where}: the repository has no revision {revision!r}.") from error
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"{where}: no such model on the hub (or it is private: set HF_TOKEN). Check the name."
        ) from error
    except LocalEntryNotFoundError as error:
        raise ModelError(
            f"{where} is not in the local cache and the hub cannot be reached. Connect once,"
            " or give a saved folder: hf:PATH."
        ) from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise ModelError(f"{where} cannot be fetched: {str(error).splitlines()[0]}") from error


def find_gguf(name: str) -> ModelFolder:
    """`gguf:PATH`."""
    return check_gguf(Path(name).expanduser())


def place(
    folder: ModelFolder,
    device: str,
    dtype: str,
    *,
    purpose: Literal["scoring", "generation"] = "scoring",
    free: int | None = None,
) -> Placement:
    """Resolve `auto`, and refuse what will not fit before anything is loaded.

    On a CPU the prober takes float32, or a bfloat16 body (with its float32 head) where float32 does
    not fit; elsewhere, and for generation, the checkpoint's own type. Weights that were dequantised are
    stored in float32 and are bfloat16 by right.
    """
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    kind = device.split(":")[0]
    if kind not in ("cpu", "cuda", "mps", "map"):
        raise ModelError(f"Unknown device {device!r}: take auto, cpu, cuda, cuda:N, mps or map.")
    if (kind == "cuda" and not torch.cuda.is_available()) or (
        kind == "mps" and not torch.backends.mps.is_available()
    ):
        raise ModelError(f"This machine has no {kind} device that torch can use; take --device cpu.")
    available = (free_memory() if free is None else free) if kind == "cpu" else None
    if dtype == "auto":
        stored = folder.stored_dtype if folder.stored_dtype in BYTES_PER_NUMBER else "bfloat16"
        if purpose == "generation":
            dtype = "bfloat16" if folder.dequantised else stored
        else:
            dtype = "float32" if kind in ("cpu", "mps") else stored
        if available is not None and _needed(folder, "float32") > available:
            dtype = "bfloat16"
    if available is not None and _needed(folder, dtype) > available:
        smaller = "bfloat16" if _needed(folder, "bfloat16") <= available else None
        advice = f"--dtype {smaller} would fit." if smaller else "No dtype would fit: take a smaller model."
        raise ModelError(
            f"{folder.path.name} needs about {_needed(folder, dtype) / 1e9:.1f} GB in {dtype},"
            f" {available / 1e9:.1f} GB are free. {advice}"
        )
    return Placement(device, dtype)


def _needed(folder: ModelFolder, dtype: str) -> int:
    """Weights, and a tenth more for caches and head slices at the smallest batch."""
    return int(1.1 * folder.n_parameters * BYTES_PER_NUMBER.get(dtype, 4)) + 200_000_000


def load_tokenizer(folder: ModelFolder) -> Any:
    """The folder's tokenizer, from its own files only."""
    transformers = require_transformers()
    extra = {"gguf_file": folder.gguf_file} if folder.gguf_file else {}
    with quiet():
        try:
            # Left open, transformers asks on stdin whether to run the folder's own code.
            return transformers.AutoTokenizer.from_pretrained(
                folder.path, local_files_only=True, trust_remote_code=False, **extra
            )
        except Exception as error:  # transformers raises many kinds; the user can act on one line.
            raise ModelError(first_line(f"{folder.path}: its tokenizer cannot be loaded", error)) from error


def load_config(folder: ModelFolder) -> Any:
    """The configuration object; refuses what is no causal language model."""
    transformers = require_transformers()
    extra = {"gguf_file": folder.gguf_file} if folder.gguf_file else {}
    with quiet():
        try:
            config = transformers.AutoConfig.from_pretrained(
                folder.path, local_files_only=True, trust_remote_code=False, **extra
            )
        except Exception as error:
            raise ModelError(
                first_line(f"{folder.path}: its config.json is not understood", error)
            ) from error
    known = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    stated = getattr(config, "architectures", None) or []
    classes = known.get(config.model_type, ())
    classes = (classes,) if isinstance(classes, str) else classes
    if not classes or (stated and not _generates(stated, set(known.values()))):
        what = ", ".join(stated) or config.model_type
        raise ModelError(
            f"{folder.path} ({what}) is not a causal language model: it cannot say what follows a prompt."
        )
    return config


def _generates(stated: list[str], causal: set[Any]) -> bool:
    flat = {name for entry in causal for name in ((entry,) if isinstance(entry, str) else entry)}
    return any(name in flat or name.endswith("ForConditionalGeneration") for name in stated)


def load_model(folder: ModelFolder, placement: Placement) -> Any:
    """The model in evaluation mode, on its device."""
    transformers = require_transformers()
    import torch

    extra: dict[str, Any] = {"gguf_file": folder.gguf_file} if folder.gguf_file else {"use_safetensors": True}
    if placement.device == "map":
        extra["device_map"] = "auto"
    with quiet():
        try:
            model, loaded = transformers.AutoModelForCausalLM.from_pretrained(
                folder.path,
                local_files_only=True,
                trust_remote_code=False,
                dtype=getattr(torch, placement.dtype),
                output_loading_info=True,
                **extra,
            )
        except ImportError as error:
            raise MissingExtraError(f"{folder.path} needs a package: {error}. {INSTALL_LOCAL}") from error
        except Exception as error:
            raise ModelError(first_line(f"{folder.path}: its weights cannot be loaded", error)) from error
    # transformers draws what a file lacks at random, and says so only in its log.
    if lacking := sorted(map(str, loaded["missing_keys"])):
        raise ModelError(
            f"{folder.path}: its weights lack {len(lacking)} tensors that config.json asks for, first"
            f" {lacking[0]}. Save or download the model again."
        )
    return model.eval() if placement.device == "map" else model.to(placement.device).eval()


def save_dequantised(folder: ModelFolder, target: Path) -> None:
    """Write a GGUF model as float32 safetensors with its tokenizer, so that the next start is quick."""
    tokenizer = load_tokenizer(folder)
    model = load_model(folder, Placement("cpu", "float32"))
    # The loaded object carries a quantisation note that forbids saving; its weights are plain numbers.
    plain = model.config.to_dict()
    plain.pop("quantization_config", None)
    plain.pop("gguf_file", None)
    clean = type(model)(type(model.config).from_dict(plain))
    clean.load_state_dict(model.state_dict())
    with quiet():
        clean.save_pretrained(target)
        tokenizer.save_pretrained(target)
    config_file = target / "config.json"
    stated = json.loads(config_file.read_text(encoding="utf-8"))
    stated.pop("_name_or_path", None)
    config_file.write_text(json.dumps(stated, indent=2, sort_keys=True) + "\n", encoding="utf-8")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Loading chatter of other libraries does not belong between our own lines."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)


def first_line(what: str, error: Exception) -> str:
    """What failed, and the first line of why: other libraries' messages run over pages."""
    if "ignore_mismatched_sizes" in str(error):
        return (
            f"{what}: their shapes are not those that config.json asks for. Save or download the model again."
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{what}: {lines[0][:300] if lines else type(error).__name__}"
