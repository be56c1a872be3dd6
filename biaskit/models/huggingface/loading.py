"""From a checked folder to a tokenizer and a model on its device."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from biaskit.common.foreign import visible
from biaskit.common.inputs import expanded
from biaskit.errors import BiaskitError, MissingExtraError, ModelError
from biaskit.models.huggingface.folder import ModelFolder, check_folder
from biaskit.models.huggingface.gguf_file import (
    FACTORS,
    check_all_read,
    complete_config,
    forget_gguf,
    transformers_reading_once,
)
from biaskit.models.spec import ON_HUB

BYTES_PER_NUMBER = {"float32": 4, "bfloat16": 2, "float16": 2}
INSTALL_LOCAL = 'pip install "biaskit[local]" (in a checkout: pip install -c .ci/constraints.txt ".[local]")'

MODEL_FILES = ["*.json", "*.safetensors", "*.model", "*.jinja", "merges.txt", "vocab.txt"]
_UNUSED = re.compile(
    r"vision|visual|image|audio|multi_modal|inv_freq|masked_bias|attn(\.attention)?\.bias$|embed_positions"
    r"|(^|\.)(mtp|pooler|cls|score|v_head|value_head)\."
)
"""Tensors that say nothing of the next word: of other senses, tasks and heads, masks and tables made anew."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and in which precision a model runs."""

    device: str  # cpu, cuda, cuda:1, mps, or map (spread over all devices)
    dtype: str  # float32, bfloat16, float16


def require_transformers(*, silent: bool = True) -> Any:
    """Import transformers, silent or as it is. Raises `MissingExtraError` with a line to install it."""
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise MissingExtraError(
            f"Local models need torch and transformers, and {error.name} is not installed: {INSTALL_LOCAL}"
        ) from error
    if silent:
        transformers.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
    return transformers


def find_folder(name: str, check: Callable[..., Any] = check_folder, files: Any = MODEL_FILES) -> Any:
    """Find the folder of `hf:NAME`: a saved one, or ORG/NAME[@revision] of the hub (its cache first)."""
    if name.startswith((".", "/", "~")) or Path(name).is_dir():
        return check(expanded(name))
    require_transformers()
    from huggingface_hub import errors, snapshot_download

    repository, _, revision = name.partition("@")
    if repository.count("/") != 1 - repository.startswith(ON_HUB) or not all(repository.split("/")):
        raise ModelError(f"hf:{name}: neither a folder nor a name like ORG/NAME[@revision].")
    reasons = {  # in this order: a gated repository is also one that is not found
        errors.GatedRepoError: (
            " is gated: accept its terms on its page, then set HF_TOKEN to a token that may read it."
        ),
        errors.RevisionNotFoundError: f": the repository has no revision {revision!r}.",
        errors.RepositoryNotFoundError: (
            ": no such model on the hub (or it is private: set HF_TOKEN). Check the name."
        ),
        errors.LocalEntryNotFoundError: (
            " is not in the local cache and the hub cannot be reached. Connect once,"
            " or give a saved folder: hf:PATH."
        ),
    }
    try:
        snapshot = snapshot_download(repository, revision=revision or None, allow_patterns=files)
    except (errors.HfHubHTTPError, OSError, ValueError) as error:
        why = next((text for kind, text in reasons.items() if isinstance(error, kind)), None)
        why = why or f" cannot be fetched: {str(error).splitlines()[0]}"
        raise ModelError(f"hf:{name}{why}") from error
    return check(Path(snapshot), allow_links=True)


def free_memory() -> int:
    """Return the bytes of memory that are free, on the machine or within a container's limit."""
    import psutil

    free = int(psutil.virtual_memory().available)
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError, KeyError):  # no group, or one without a limit
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        cached = int(counts["inactive_file"])  # the kernel frees it at need
        free = min(free, max(0, limit - used + cached))
    return free


def place(
    folder: ModelFolder, device: str, dtype: str, *, purpose: Literal["scoring", "generation"] = "scoring"
) -> Placement:
    """Resolve `auto`. Raises `ModelError` if the model does not fit, before anything is loaded.

    Scoring on a CPU takes float32, or a bfloat16 body (with a float32 head) if float32 does not fit;
    elsewhere, and for generation, the checkpoint's own type, but float32 on a CPU that has no
    instructions for it. Weights from GGUF are stored as float32 and count as bfloat16.
    """
    import torch

    if folder.loaded is not None:
        there = Placement(str(folder.loaded.model.device), folder.stored_dtype)
        if device not in ("auto", there.device) or dtype not in ("auto", there.dtype):
            raise ModelError(
                f"{folder.path} is in memory as {there.dtype} on {there.device}, but this call or the run"
                f" needs {dtype} on {device}: choose another out."
            )
        return there
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    kind = device.split(":")[0]
    if kind not in ("cpu", "cuda", "mps", "map"):
        raise ModelError(f"Unknown device {device!r}: take auto, cpu, cuda, cuda:N, mps or map.")
    present: dict[str, Any] = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    if kind in present and not present[kind]():
        raise ModelError(f"This machine has no {kind} device that torch can use; take --device cpu.")
    available = free_memory() if kind == "cpu" else None
    if dtype == "auto":
        stored = folder.stored_dtype if folder.stored_dtype in BYTES_PER_NUMBER else "bfloat16"
        if purpose == "generation":
            dtype = "bfloat16" if folder.dequantised else stored
            dtype = "float32" if kind == "cpu" and not _computes(dtype) else dtype
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


def _computes(dtype: str) -> bool:
    """Return whether this CPU multiplies a type itself; if it does not, texts take three times as long."""
    import torch

    features = getattr(torch.cpu, "get_capabilities", None)
    short = {"bfloat16": "bf16", "float16": "fp16"}.get(dtype)
    if short is None or features is None:  # an older torch does not say
        return True
    return any(has is True and short in name for name, has in features().items())


def _needed(folder: ModelFolder, dtype: str) -> int:
    """Estimate bytes: the weights, and a tenth more for caches and head slices at the smallest batch."""
    return int(1.1 * folder.n_parameters * BYTES_PER_NUMBER.get(dtype, 4)) + 200_000_000


def _from_pretrained(kind: str, folder: ModelFolder, failure: str, **options: Any) -> Any:
    """Load a class of transformers from the folder's own files. Raises `ModelError` of one line."""
    if folder.loaded is not None:
        return folder.loaded.tokenizer if kind == "AutoTokenizer" else folder.loaded.model.config
    transformers = require_transformers()
    if folder.gguf_file:
        options["gguf_file"] = folder.gguf_file
    with quiet(), transformers_reading_once() if folder.gguf_file else contextlib.nullcontext():
        try:
            # By default transformers asks on stdin whether to run the folder's own code.
            return getattr(transformers, kind).from_pretrained(
                folder.path, local_files_only=True, trust_remote_code=False, **options
            )
        except Exception as error:  # transformers raises many kinds, with messages of several pages
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            why = visible(lines[0], longest=300) if lines else type(error).__name__
            if "ignore_mismatched_sizes" in str(error):
                why = "their shapes do not match config.json. Save or download the model again."
            raise ModelError(f"{folder.path / (folder.gguf_file or '')}: {failure}: {why}") from error


def load_tokenizer(folder: ModelFolder) -> Any:
    """Load the folder's tokenizer."""
    return _from_pretrained("AutoTokenizer", folder, "its tokenizer cannot be loaded")


def load_config(folder: ModelFolder) -> Any:
    """Load the configuration. Raises `ModelError` if it is not of a causal language model."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

    config = _from_pretrained("AutoConfig", folder, "its configuration is not understood")
    stated = getattr(config, "architectures", None) or []
    if folder.loaded is not None:
        from biaskit.models.huggingface.adapters import inside

        stated = [kind.__name__ for kind in type(inside(folder.loaded.model, folder.path)).__mro__]
    causal: set[str] = set()
    for entry in CAUSAL.values():
        causal.update([entry] if isinstance(entry, str) else entry)
    generates = any(name in causal or name.endswith("ForConditionalGeneration") for name in stated)
    encodes = getattr(config, "is_encoder_decoder", False)
    if encodes or not CAUSAL.get(config.model_type) or (stated and not generates):
        what = ", ".join(stated[:1]) or config.model_type
        raise ModelError(
            f"{folder.path} ({what}) is not a causal language model: it cannot continue a prompt."
        )
    if folder.gguf_file:
        complete_config(folder.path / folder.gguf_file, config)
    return config


def load_model(folder: ModelFolder, placement: Placement, config: Any = None) -> Any:
    """Load the causal model in evaluation mode on its device; `config`: of `load_config`, read if missing."""
    import torch

    if folder.loaded is not None:
        return folder.loaded.model
    options: dict[str, Any] = {"dtype": getattr(torch, placement.dtype), "output_loading_info": True}
    if placement.device == "map":
        options["device_map"] = "auto"
    if folder.gguf_file:
        options["config"] = config or load_config(folder)
    else:
        options["use_safetensors"] = True
    failure = "its weights cannot be loaded"
    try:
        model, loaded = _from_pretrained("AutoModelForCausalLM", folder, failure, **options)
    except ModelError as error:
        if not isinstance(error.__cause__, ImportError):
            raise
        raise MissingExtraError(
            f"{folder.path} needs a package: {error.__cause__}. {INSTALL_LOCAL}"
        ) from error
    # transformers fills missing tensors at random, and says so only in its log.
    if lacking := sorted(map(str, loaded["missing_keys"])):
        raise ModelError(
            f"{folder.path}: its weights lack {len(lacking)} tensors that config.json requires, first"
            f" {lacking[0]}. Save or download the model again."
        )
    if unread := sorted(name for name in loaded["unexpected_keys"] if not _UNUSED.search(name)):
        raise ModelError(
            f"{folder.path}: its architecture never reads {len(unread)} of its tensors, first {unread[0]}:"
            f" the model would differ from its file. Correct config.json, or remove them."
        )
    model.eval()
    if folder.adapter is not None:
        from biaskit.models.huggingface.adapters import add_adapter

        model = add_adapter(model, folder.adapter)
    if folder.gguf_file:
        check_all_read(folder.path / folder.gguf_file, model)
        forget_gguf()
    if factors := getattr(model.config.get_text_config(decoder=True), FACTORS, None):
        for name, frequencies in model.named_buffers():
            if name.endswith("inv_freq") and len(frequencies) == len(factors):
                frequencies /= frequencies.new_tensor(factors)
    return model if placement.device == "map" else model.to(placement.device)


def save_dequantised(folder: ModelFolder, target: Path) -> None:
    """Write a GGUF model as float32 safetensors with its tokenizer, so that the next start is quick."""
    import torch

    tokenizer = load_tokenizer(folder)
    model = load_model(folder, Placement("cpu", "float32"))
    # The loaded object is marked as quantised, which forbids saving; its weights are plain numbers.
    config = model.config.to_dict()
    config.pop("quantization_config", None)
    config.pop("gguf_file", None)
    with torch.device("meta"):  # without numbers of its own
        unmarked = type(model)(type(model.config).from_dict(config))
    unmarked.load_state_dict(model.state_dict(), assign=True)
    unmarked.tie_weights()
    with quiet():
        unmarked.save_pretrained(target)
        tokenizer.save_pretrained(target)
    config_file = target / "config.json"
    stated = json.loads(config_file.read_text(encoding="utf-8"))
    stated.pop("_name_or_path", None)
    config_file.write_text(json.dumps(stated, indent=2, sort_keys=True) + "\n", encoding="utf-8")


@contextlib.contextmanager
def foreign_code(failure: str) -> Iterator[None]:
    """Say in one line, after `failure`, whatever other people's code raises inside, or their files."""
    import torch

    try:
        yield
    except (BiaskitError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        why = visible(" ".join(f"{type(error).__name__}: {error}".split()), longest=300)
        raise ModelError(f"{failure} ({why}).") from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence other libraries' messages while they load, which would appear between our own lines."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)
