"""What a GGUF file says that transformers does not read: honoured, or the file is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from biaskit.common.foreign import visible
from biaskit.errors import ModelError

FREQUENCIES = "rope_freqs.weight"
FACTORS = "rope_frequency_factors"
"""Name in the configuration of the numbers by which the frequencies of positions are divided."""
_CHANGES = re.compile(
    "alibi|clamp|causal|eps|factor|freq|func|gating|groups?|key_length|multiplier|residual|rope|scal|sink"
    "|softcap|temperature|value_length|window"
)
"""What names of metadata hold that change the computation; sizes and layouts show in the tensors' shapes."""
_MEANS = {
    "freq_base": "theta|base_freq",
    "length|dimension_count": "head_dim",
    "eps": "eps",
    "softcap": "softcap",
    "window": "window",
    "scal|multiplier|factor": "scal|multiplier|factor",
}
"""Words of a name here → of those of transformers that may state the same number."""


@lru_cache(maxsize=1)
def _reader(path: Path, *_stamp: int) -> Any:
    from gguf.gguf_reader import GGUFReader

    return GGUFReader(path)


def read_gguf(path: str | Path) -> Any:
    """Open a GGUF file by its own library, once: half a minute for 262,000 tokens. Raises `ModelError`."""
    try:
        stat = Path(path).stat()
        return _reader(Path(path), stat.st_mtime_ns, stat.st_size)
    except Exception as error:  # a damaged file fails in many ways
        raise ModelError(f"{path} cannot be read as GGUF: {str(error)[:200]}. Download it again.") from error


@contextmanager
def transformers_reading_once() -> Iterator[None]:
    """Have transformers take the file as it was opened here, and show no bar of its own.

    It opens the file anew for a configuration, a tokenizer and the weights, and makes one map of names for
    each of a model's hundreds of modules. Its bar heeds no switch, and tqdm's own is read before we run.
    """
    from transformers import modeling_gguf_pytorch_utils as reading

    gguf: Any = import_module("gguf")
    own, names, bar = gguf.GGUFReader, gguf.get_tensor_name_map, reading.tqdm
    gguf.GGUFReader, reading.tqdm = read_gguf, partial(bar, disable=True)
    gguf.get_tensor_name_map = lru_cache(names)
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map, reading.tqdm = own, names, bar


forget_gguf = _reader.cache_clear
"""Give the memory of an opened file back: some 700 MB for 262,000 tokens."""


def stated_by(path: Path) -> dict[str, str]:
    """Return the name and the licence of a model as far as its file states them."""
    fields = read_gguf(path).fields
    texts = {
        key: bytes(fields[key].parts[-1]) for key in ("general.name", "general.license") if key in fields
    }
    return {key: visible(text.decode("utf-8", "replace"), longest=200) for key, text in texts.items()}


def complete_config(path: Path, config: Any) -> None:
    """Write into a configuration what transformers left out of the file's metadata.

    Scaled positions (linear, yarn, a factor per frequency) and biases. Raises `ModelError` naming the first
    other key that would change the computation.
    """
    from transformers.integrations.ggml import GGUF_CONFIG_MAPPING

    reader = read_gguf(path)
    prefix = str(reader.fields["general.architecture"].contents()) + "."
    told = {k.removeprefix(prefix): f.contents() for k, f in reader.fields.items() if k.startswith(prefix)}
    names = (prefix[:-1], config.model_type, config.model_type.removesuffix("_text"))
    known: dict[str, Any] = next(
        (GGUF_CONFIG_MAPPING[name] for name in names if name in GGUF_CONFIG_MAPPING), {}
    )
    scaling = {k: v for k, v in told.items() if k.startswith(("rope.scaling.", "rope.scale_linear"))}
    parts = getattr(config, "rope_parameters", None) or {}
    if rope := _rope(path, scaling):
        (parts.get("full_attention") or parts).update(rope)  # sliding layers keep their positions
    stated = list(_numbers(config.to_dict()))
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    stated += [("head_dim", head), ("head_dim", head * parts.get("partial_rotary_factor", 1.0))]
    window = None if known.get("attention.sliding_window") else told.pop("attention.sliding_window", None)
    if window and hasattr(config, "sliding_window"):
        config.sliding_window = int(window)
    elif window:  # within it the model is as without
        config.max_position_embeddings = min(config.max_position_embeddings, int(window))
    for key, value in told.items():
        if known.get(key) is None and key not in scaling and _CHANGES.search(key):
            words = next((means for word, means in _MEANS.items() if re.search(word, key)), "nothing else")
            same = False
            if isinstance(value, int | float):
                numbers = [x for name, x in stated if re.search(words, name)]
                same = any(math.isclose(value, x, rel_tol=1e-5) for x in numbers)
            if not same and not _is_neutral(key, value):
                raise _unread(path, key, value)
    if (eot := reader.fields.get("tokenizer.ggml.eot_token_id")) is not None:
        config.eos_token_id = [config.eos_token_id, int(eot.contents())]
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    for kind, name in (("attention_bias", "attn_q.bias"), ("mlp_bias", "ffn_down.bias")):
        if hasattr(config, kind) and any(tensor.endswith(name) for tensor in tensors):
            setattr(config, kind, True)
    if FREQUENCIES in tensors:
        setattr(config, FACTORS, tensors[FREQUENCIES].data.astype(float).tolist())


def _rope(path: Path, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what scales positions, in transformers' names."""
    said = {key.rpartition(".")[2].removeprefix("yarn_"): value for key, value in told.items()}
    kind, factor = said.pop("type", "linear"), said.pop("factor", said.pop("scale_linear", None))
    original = said.pop("original_context_length", None)
    betas = [(name, float(said.pop(name))) for name in ("beta_fast", "beta_slow") if name in said]
    said.pop("finetuned", None)
    for key, value in said.items():
        if not _is_neutral(key, value):
            raise _unread(path, f"rope.scaling.{key}", value)
    if kind == "none" or factor in (None, 0.0, 1.0):
        return {}
    scaled = {"rope_type": kind, "factor": float(factor)}
    if kind == "linear":
        return scaled
    if kind == "yarn" and original:
        return {**scaled, "original_max_position_embeddings": int(original), **dict(betas)}
    raise _unread(path, "rope.scaling.type", kind)


def _unread(path: Path, key: str, value: Any) -> ModelError:
    return ModelError(
        f"{path}: {key} = {value!r} in its metadata changes what the model computes, and transformers does"
        " not read it. Take the model as a folder of safetensors: hf:ORG/NAME."
    )


def _is_neutral(key: str, value: Any) -> bool:
    """Return whether a value leaves the computation as it is without it."""
    if key.endswith("causal"):
        return bool(value)
    scales = re.search("scal|factor|multiplier|log_mul", key) is not None
    return value in (None, False, 0, "", []) or (scales and value == 1)


def _numbers(config: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield every number of a configuration with its name, those inside others too."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _numbers(value)
        elif isinstance(value, int | float):
            yield str(name), value


def check_all_read(path: Path, model: Any) -> None:
    """Refuse a file with more numbers than the model took. Raises `ModelError` naming a tensor."""
    from transformers.modeling_gguf_pytorch_utils import (
        TENSOR_PROCESSORS,
        TensorProcessor,
        get_gguf_hf_weights_map,
    )

    tensors = {t.name: int(t.n_elements) for t in read_gguf(path).tensors if t.name != FREQUENCIES}
    if model.get_output_embeddings().weight is model.get_input_embeddings().weight:
        tensors.pop("output.weight", None)
    taken = {p.data_ptr(): p.numel() for p in model.state_dict().values()}
    if sum(tensors.values()) <= sum(taken.values()):
        return
    processor = TENSOR_PROCESSORS.get(model.config.model_type, TensorProcessor)(config={})
    mapped = get_gguf_hf_weights_map(model, processor)
    unread = [name for name in tensors if name not in mapped] or ["of an unknown name"]
    raise ModelError(
        f"{path}: {len(unread)} of its tensors are read by nothing, first {unread[0]}: the model would be"
        " another than the file's. Take it as a folder of safetensors: hf:ORG/NAME."
    )
