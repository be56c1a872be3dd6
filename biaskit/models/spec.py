"""From a model spec such as `demo` or `hf:ORG/NAME` to a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from biaskit.errors import ModelError, UsageError, nearest
from biaskit.models.base import ContinuationScorer, TextGenerator

KINDS = ("demo", "hf", "gguf", "scripted")


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """How models run: nothing here is part of a key but the dtype, through the fingerprint."""

    device: str = "auto"
    dtype: str = "auto"
    batch_size: int | None = None  # None: auto
    word_boundary: str = "token"
    on_prefix: str = "exclusive"


def split_label(text: str) -> tuple[str, str]:
    """`LABEL=SPEC` → (label, spec); without a label the spec is its own."""
    label, equals, spec = text.partition("=")
    if equals and ":" not in label:  # hf:./a=b is a path
        if not label or not spec:
            raise UsageError(f"{text!r}: write a model as LABEL=SPEC or SPEC.")
        return label, spec
    return text, text


def open_scorer(spec: str, *, label: str, options: LocalOptions) -> ContinuationScorer:
    """The model behind a spec as a scorer: found and checked; its weights load when it is first asked."""
    kind, name = _kind(spec)
    if kind == "scripted":
        from biaskit.models.scripted import ScriptedScorer

        return ScriptedScorer.from_file(name, label=label, spec=spec, batch_size=options.batch_size)
    folder = _find_local(kind, name)
    from biaskit.models.huggingface.scorer import ScoringOptions, TransformersScorer

    return TransformersScorer(
        folder,
        label=label,
        spec=spec,
        options=ScoringOptions(
            device=options.device,
            dtype=options.dtype,
            batch_size=options.batch_size,
            word_boundary="word" if options.word_boundary == "word" else "token",
            on_prefix="refuse" if options.on_prefix == "refuse" else "exclusive",
        ),
    )


def open_generator(spec: str, *, label: str, options: LocalOptions) -> TextGenerator:
    """The model behind a spec as a generator: found and checked; its weights load when it is first asked."""
    kind, name = _kind(spec)
    if kind == "scripted":
        from biaskit.models.scripted import ScriptedGenerator

        return ScriptedGenerator.from_file(name, label=label, spec=spec, batch_size=options.batch_size)
    folder = _find_local(kind, name)
    from biaskit.models.huggingface.generator import GenerationOptions, TransformersGenerator

    return TransformersGenerator(
        folder,
        label=label,
        spec=spec,
        options=GenerationOptions(options.device, options.dtype, options.batch_size),
    )


def _kind(spec: str) -> tuple[str, str]:
    kind, _, name = spec.partition(":")
    if spec == "demo" or kind in ("hf", "gguf", "scripted"):
        return kind, name
    if kind in ("openai", "api"):
        raise ModelError(f"{spec}: API models are not part of this version yet.")
    hint = nearest(kind, KINDS) or (f" For a model of the hub write hf:{spec}." if "/" in spec else "")
    raise ModelError(
        f"{spec!r} is no model.{hint} Give demo, hf:ORG/NAME, hf:PATH, gguf:PATH or scripted:FILE."
    )


def _find_local(kind: str, name: str) -> Any:
    """The checked folder of a local model; torch is asked for before a large file is touched."""
    from biaskit.models.huggingface.loading import find_folder, find_gguf, require_transformers

    if kind == "demo":
        from biaskit.models.huggingface.demo import find_demo, require_demo

        require_demo()
    require_transformers()
    return find_demo() if kind == "demo" else find_folder(name) if kind == "hf" else find_gguf(name)
