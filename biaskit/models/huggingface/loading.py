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

from biaskit.common.foreign import visible
from biaskit.common.inputs import expanded
from biaskit.errors import MissingExtraError, ModelError
from biaskit.models.huggingface.folder import ModelFolder, check_folder

BYTES_PER_NUMBER = {"float32": 4, "bfloat16": 2, "float16": 2}
INSTALL_LOCAL = 'pip install "biaskit[local]" (in a checkout: pip install -c .ci/constraints.txt ".[local]")'

MODEL_FILES = ["*.json", "*.safetensors", "*.model", "*.jinja", "merges.txt", "vocab.txt"]


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
    if name.startswith((".", "/", "~")) or Path(name).is_dir():
        return check_folder(expanded(name))
    require_transformers()
    from huggingface_hub import errors, snapshot_download

    repository, _, revision = name.partition("@")
    if repository.count("/") != 1 or not all(repository.split("/")):
        raise ModelError(f"hf:{name}: neither a folder nor a name like ORG/NAME[@revision].")
    reasons = {  # a gated repository is also one that is not found
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
        snapshot = snapshot_download(repository, revision=revision or None, allow_patterns=MODEL_FILES)
    except (errors.HfHubHTTPError, OSError, ValueError) as error:
        why = next((text for kind, text in reasons.items() if isinstance(error, kind)), None)
        raise ModelError(
            f"hf:{name}" + (why or f" cannot be fetched: {str(error).splitlines()[0]}")
        ) from error
    return check_folder(Path(snapshot), allow_links=True)


def free_memory() -> int:
    """Bytes that can still be taken: of the machine, or of what a container or a batch system allows."""
    import psutil

    free = int(psutil.virtual_memory().available)
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError, KeyError):  # no group, or one without a limit
        limit, taken = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        stated = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        cached = int(stated["inactive_file"])  # the kernel gives it back
        free = min(free, max(0, limit - taken + cached))
    return free


def place(
    folder: ModelFolder, device: str, dtype: str, *, purpose: Literal["scoring", "generation"] = "scoring"
) -> Placement:
    """Resolve `auto`, and refuse what will not fit before anything is loaded.

    On a CPU the prober takes float32, or a bfloat16 body (with its float32 head) where float32 does
    not fit; elsewhere, and for generation, the checkpoint's own type, but float32 on a CPU that has no
    instructions for it. Weights that were dequantised are stored in float32 and are bfloat16 by right.
    """
    import torch

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
    """Whether this CPU multiplies numbers of a type itself: without, texts take three times as long."""
    import torch

    capabilities = getattr(torch.cpu, "get_capabilities", None)
    short = {"bfloat16": "bf16", "float16": "fp16"}.get(dtype)
    if short is None or capabilities is None:  # an older torch does not tell
        return True
    return any(has is True and short in name for name, has in capabilities().items())


def _needed(folder: ModelFolder, dtype: str) -> int:
    """Weights, and a tenth more for caches and head slices at the smallest batch."""
    return int(1.1 * folder.n_parameters * BYTES_PER_NUMBER.get(dtype, 4)) + 200_000_000


def _from_pretrained(kind: str, folder: ModelFolder, failed: str, **options: Any) -> Any:
    """What a class of transformers makes of the folder's own files, or one line that says why not."""
    transformers = require_transformers()
    if folder.gguf_file:
        options["gguf_file"] = folder.gguf_file
    with quiet():
        try:
            # Left open, transformers asks on stdin whether to run the folder's own code.
            return getattr(transformers, kind).from_pretrained(
                folder.path, local_files_only=True, trust_remote_code=False, **options
            )
        except Exception as error:  # transformers raises many kinds; the user can act on one line.
            # Only the first line of why: other libraries' messages run over pages.
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            why = visible(lines[0], longest=300) if lines else type(error).__name__
            if "ignore_mismatched_sizes" in str(error):
                why = (
                    "their shapes are not those that config.json asks for. Save or download the model again."
                )
            raise ModelError(f"{folder.path / (folder.gguf_file or '')}: {failed}: {why}") from error


def load_tokenizer(folder: ModelFolder) -> Any:
    """The folder's tokenizer."""
    return _from_pretrained("AutoTokenizer", folder, "its tokenizer cannot be loaded")


def load_config(folder: ModelFolder) -> Any:
    """The configuration object; refuses what is no causal language model."""
    config = _from_pretrained("AutoConfig", folder, "its configuration is not understood")
    known = require_transformers().models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    causal = {name for entry in known.values() for name in ((entry,) if isinstance(entry, str) else entry)}
    stated = getattr(config, "architectures", None) or []
    generates = any(name in causal or name.endswith("ForConditionalGeneration") for name in stated)
    if not known.get(config.model_type) or (stated and not generates):
        what = ", ".join(stated) or config.model_type
        raise ModelError(
            f"{folder.path} ({what}) is not a causal language model: it cannot say what follows a prompt."
        )
    return config


def load_model(folder: ModelFolder, placement: Placement) -> Any:
    """The causal model in evaluation mode, on its device."""
    mapped = placement.device == "map"
    more = {"device_map": "auto"} if mapped else {}
    model = load_weights("AutoModelForCausalLM", folder, placement.dtype, **more)
    return model if mapped else model.to(placement.device)


def load_weights(
    kind: str,
    folder: ModelFolder,
    dtype: str,
    *,
    what: str = "model",
    spare: str | None = None,
    **options: Any,
) -> Any:
    """The folder's weights in evaluation mode; tensors whose name begins with `spare` may be missing."""
    import torch

    if not folder.gguf_file:
        options["use_safetensors"] = True
    options |= {"dtype": getattr(torch, dtype), "output_loading_info": True}
    try:
        model, loaded = _from_pretrained(kind, folder, "its weights cannot be loaded", **options)
    except ModelError as error:
        if not isinstance(error.__cause__, ImportError):
            raise
        raise MissingExtraError(
            f"{folder.path} needs a package: {error.__cause__}. {INSTALL_LOCAL}"
        ) from error
    # transformers draws what a file lacks at random, and says so only in its log.
    lacking = sorted(key for key in map(str, loaded["missing_keys"]) if not (spare and key.startswith(spare)))
    if lacking:
        raise ModelError(
            f"{folder.path}: its weights lack {len(lacking)} tensors that config.json asks for, first"
            f" {lacking[0]}. Save or download the {what} again."
        )
    return model.eval()


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
