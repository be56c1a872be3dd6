"""A model in the caller's memory as if it were a checked folder; whatever happens, it is left as it was."""

from __future__ import annotations

import contextlib
import copy
import dis
import hashlib
import json
import re
import secrets
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from copyreg import dispatch_table
from functools import lru_cache
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.nn.modules import module as of_torch
from transformers import PreTrainedConfig
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from biaskit.common.foreign import visible
from biaskit.common.provenance import digest
from biaskit.models.huggingface.adapters import inside
from biaskit.models.huggingface.folder import TOKENIZER_FILES, ModelFolder
from biaskit.models.huggingface.loading import BYTES_PER_NUMBER, foreign_code
from biaskit.models.options import LoadedModel

_CHANGE_NO_NUMBER = {
    *("_name_or_path", "transformers_version", "use_cache", "dtype", "architectures", "pad_token_id"),
    *("output_hidden_states", "output_attentions"),
    # Of modules: what torch keeps of each (tensors, modules and hooks are read by themselves) and
    *vars(torch.nn.Module()),
    *("gradient_checkpointing", "_gradient_checkpointing_func", "max_seq_len_cached", "_is_hf_initialized"),
    *("_require_grads_hook", "_require_grads_hooks", "_original_forward", "forward"),
    *("generation_config", "name_or_path", "warnings_issued", "peft_config", "_caches", "_dora_cache"),
}
_WRAPPERS = (MethodType, staticmethod, classmethod, property, type(lru_cache(len)))
_SLOTS = (MemberDescriptorType, GetSetDescriptorType)
_PACKAGES = re.compile(
    rf"<string>|<frozen |{re.escape(sysconfig.get_path('stdlib'))}|.*[/\\](site|dist)-packages[/\\]"
)
_FOLDERS: WeakKeyDictionary[LoadedModel, ModelFolder] = WeakKeyDictionary()
"""Of the models that a call was lent: their weights stay as they are until it ends."""


def object_folder(loaded: LoadedModel) -> ModelFolder:
    """Describe a model in memory, with digests of its tensors and tokenizer. Raises `ModelError`."""
    with foreign_code(f"{loaded.label} is not a loaded causal model with its tokenizer"):
        return _FOLDERS.get(loaded) or _FOLDERS.setdefault(loaded, _described(loaded))


def _described(loaded: LoadedModel) -> ModelFolder:
    model = inside(loaded.model, loaded.label)  # its layers hold the adapters
    parts = (*model.named_parameters(), *model.named_buffers(), *model.named_modules())
    elsewhere, total, unread = {id(part): name for name, part in parts}, hashlib.sha256(), ""
    for name, module in model.named_modules():
        try:
            state = _state_of(module, elsewhere)
        except Exception as error:  # what is kept there says in its own way that it cannot be copied
            state = secrets.token_hex()
            unread = unread or f"{name or type(module).__name__} ({visible(str(error), longest=80)})"
        total.update(f"{name}\0{state}\n".encode())
    tensors = {**model.state_dict(), **dict(model.named_buffers())}  # also buffers that are not saved
    for name, tensor in sorted(tensors.items()):  # one at a time: no copy of the whole model
        total.update(f"{name}\0{_digest_of_tensor(tensor)}\n".encode())
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
        unread=unread,
        loaded=LoadedModel(loaded.label, loaded.model, tokenizer),
    )


def _state_of(module: torch.nn.Module, known: dict[int, str]) -> str:
    """Digest what a module computes by, beside its tensors. Raises any error for what cannot be read."""
    of_all = (of_torch._global_forward_hooks, of_torch._global_forward_pre_hooks)
    hooks = map(dict.values, (module._forward_hooks, module._forward_pre_hooks, *of_all))
    for hook in chain.from_iterable(hooks):
        if getattr(hook, "__name__", "") != "make_inputs_require_grads":
            raise ValueError("a hook")
    if "forward" in vars(module):
        raise ValueError("a forward of its own")
    own = {name: value for name, value in sorted(vars(module).items()) if name not in _CHANGE_NO_NUMBER}
    return _digest_of([type(module), own], known)


def _digest_of(value: Any, known: dict[int, str]) -> str:
    """Digest a value and all that it holds. Raises any error for what cannot be taken apart.

    `known`: id → name of the model's own modules and tensors, and of functions and classes already read.
    """
    kind, name, parts = type(value), "", list[Any]()
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, torch.Tensor):
        return _digest_of_tensor(value)
    if isinstance(value, PreTrainedConfig):
        config = json.loads(value.to_json_string(use_diff=False))
        name = digest({name: entry for name, entry in config.items() if name not in _CHANGE_NO_NUMBER})
        attention = ALL_ATTENTION_FUNCTIONS.get(value._attn_implementation)
        parts = [attention] if isinstance(attention, FunctionType) and not _installed(attention) else []
    elif kind in (set, frozenset):
        return digest([kind.__name__, *sorted(_digest_of(entry, known) for entry in value)])
    elif isinstance(value, ModuleType | type | FunctionType):
        known[id(value)] = name = f"{_module_of(value)} {getattr(value, '__qualname__', '')}"
        # An installed package's name says enough, but not of what its functions have made.
        if isinstance(value, type) or "<" in name or not _installed(value):
            parts = _written(value)
    elif isinstance(value, CodeType):
        parts = [value.co_code, value.co_names, value.co_consts]
    elif isinstance(value, _WRAPPERS):  # which reduce to a name
        parts = [getattr(value, held, None) for held in ("__func__", "__self__", "__wrapped__", "fget")]
    elif kind in (dict, list, tuple):
        parts = value.items() if kind is dict else value
    elif value is None or kind in (bool, int, float, complex, str, bytes):
        name = repr(value)
    else:  # as `copy` and `pickle` take it apart
        taken: Any = dispatch_table[kind](value) if kind in dispatch_table else value.__reduce_ex__(4)
        name, taken = (taken, ()) if isinstance(taken, str) else ("", taken)
        parts = [list(part) if isinstance(part, Iterator) else part for part in taken]
    return digest([kind.__name__, name, *(_digest_of(part, known) for part in parts)])


def _module_of(value: Any) -> str:
    return getattr(value, "__module__", None) or str(value.__name__)


def _installed(value: Any) -> bool:
    """Return whether a module, class or function is of an installed package, and was written there."""
    package, files = _module_of(value).split(".")[0], []
    if package not in sys.stdlib_module_names:
        files.append(getattr(sys.modules.get(package), "__file__", None) or "")
    if isinstance(value, FunctionType):  # `functools.wraps` gives one of the user's another's name
        files.append(value.__code__.co_filename)
    return all(_PACKAGES.match(file) for file in files)


def _written(value: Any) -> list[Any]:
    """List the code of a function or class, and what it reads elsewhere. Raises any error for a module."""
    read: dict[str, Any] = {}
    if not isinstance(value, type):
        codes = [value.__code__]
        for code in codes:
            for step in dis.get_instructions(code):
                if step.opname == "LOAD_GLOBAL" and step.argval in value.__globals__:
                    read[step.argval] = value.__globals__[step.argval]
                elif isinstance(step.argval, CodeType):  # of a function inside
                    codes.append(step.argval)
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return [value.__code__, value.__defaults__, value.__kwdefaults__, vars(value), cells, read]
    installed = _installed(value)
    beside = vars(sys.modules[value.__module__]) if installed else {}
    for name, part in (*beside.items(), *vars(value).items()):
        if isinstance(part, FunctionType):
            own = not installed or not _installed(part)  # a tool may have put its own in
        else:
            own = not (installed or name.startswith("__") or name == "_abc_impl" or isinstance(part, _SLOTS))
        if own:
            read[name] = part
    return [value.__bases__, read]


def _digest_of_tensor(tensor: torch.Tensor) -> str:
    total = hashlib.sha256(f"{tensor.dtype}\0{tuple(tensor.shape)}\n".encode())
    total.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def _digest_of_tokenizer(tokenizer: Any) -> str:
    """Digest the files that a tokenizer would be saved as; how it last padded or cut is not in them."""
    if backend := getattr(tokenizer, "backend_tokenizer", None):  # None: written in Python
        backend.no_padding()
        backend.no_truncation()
    with tempfile.TemporaryDirectory() as name:
        tokenizer.save_pretrained(name)
        left = {str(file.relative_to(name)): file for file in Path(name).rglob("*") if file.is_file()}
        total = hashlib.sha256()  # that of the saved folder
        for entry in (*TOKENIZER_FILES, *sorted(left)):
            if file := left.pop(entry, None):
                total.update(f"{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return total.hexdigest()


@contextlib.contextmanager
def kept(models: Sequence[LoadedModel]) -> Iterator[None]:
    """Hold models in evaluation mode, and afterwards put back what every module held."""
    modules = [module for loaded in models for module in loaded.model.modules()]
    devices = {tensor.device.type for module in modules for tensor in module.parameters(recurse=False)}
    # Buffers too: a rotary embedding may make its own anew.
    before = [(module, dict(vars(module)), dict(module._buffers)) for module in modules]
    try:
        for module in modules:
            module.training = False
        for loaded in models:
            # accelerate wraps the forward of a model that trains in mixed precision: its logits are rounded.
            if "_original_forward" in vars(loaded.model):
                vars(loaded.model).pop("forward", None)
        with contextlib.ExitStack() as stack:
            for device in filter(torch.amp.is_autocast_available, devices):  # a caller's would round
                stack.enter_context(torch.autocast(device, enabled=False))
            yield
    finally:
        for module, own, buffers in before:
            vars(module).update(own)
            module._buffers.update(buffers)
