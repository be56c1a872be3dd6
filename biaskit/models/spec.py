"""From a model spec such as `demo`, `hf:ORG/NAME` or `api:NAME@URL` to a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from biaskit.errors import ModelError, UsageError, nearest
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.base import ContinuationScorer, TextGenerator
from biaskit.models.known import find_known

if TYPE_CHECKING:
    from biaskit.models.api.options import ApiOptions

KINDS = ("demo", "hf", "gguf", "openai", "api", "scripted")
API = ("openai", "api")
NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """How models run: nothing here is part of a key but the dtype, through the fingerprint."""

    device: str = "auto"
    dtype: str = "auto"
    batch_size: int | None = None  # None: auto
    word_boundary: str = "token"
    on_prefix: str = "exclusive"


@dataclass(frozen=True, slots=True)
class Asking:
    """Which estimator a probability is obtained by, and its settings (docs/methods.md#estimators)."""

    estimator: str = "auto"
    k: int = 20
    draws: int = 10
    longest: int = 14  # characters of the longest expression


def split_label(text: str) -> tuple[str, str]:
    """`LABEL=SPEC` → (label, spec); without a label the spec is its own, without what must not be shown."""
    label, equals, spec = text.partition("=")
    if equals and ":" not in label:  # hf:./a=b is a path
        if not label or not spec:
            raise UsageError(f"{hide_urls(text)!r}: write a model as LABEL=SPEC or SPEC.")
        return label, spec
    return hide_urls(text), text


def open_scorer(
    spec: str,
    *,
    label: str,
    options: LocalOptions,
    asking: Asking = Asking(),
    api: ApiOptions | None = None,
    earlier: Mapping[str, Any] = NOTHING,
) -> ContinuationScorer:
    """The model behind a spec as a scorer: found and checked; its weights load when it is first asked.

    A forced estimator binds API models; a local one stays exact unless it is top-k or sampling.
    """
    kind, name = _kind(spec)
    if kind == "scripted":
        from biaskit.models.scripted import ScriptedScorer

        return ScriptedScorer.from_file(name, label=label, spec=spec, batch_size=options.batch_size)
    if kind in API:
        from biaskit.models.api.opening import open_api_scorer

        return open_api_scorer(
            f"{kind}:{name}",
            label=label,
            options=_api_options(spec, label, api),
            earlier=earlier,
            estimator=asking.estimator,
            k=asking.k,
            draws=asking.draws,
            longest=asking.longest,
            batch_size=options.batch_size,
        )
    if asking.estimator == "sampling":
        from biaskit.models.counting import SampledScorer

        # The draws come from the numbers that the exact scorer would use.
        exact = LocalOptions(options.device, _scoring_dtype(options.dtype), options.batch_size)
        generator = open_generator(spec, label=label, options=exact)
        return SampledScorer(generator, draws=asking.draws, longest=asking.longest)
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
            top_k=asking.k if asking.estimator == "top-k" else None,
        ),
    )


def _scoring_dtype(dtype: str) -> str:
    return "float32" if dtype == "auto" else dtype


def open_generator(
    spec: str,
    *,
    label: str,
    options: LocalOptions,
    api: ApiOptions | None = None,
    earlier: Mapping[str, Any] = NOTHING,
) -> TextGenerator:
    """The model behind a spec as a generator: found and checked; its weights load when it is first asked."""
    kind, name = _kind(spec)
    if kind == "scripted":
        from biaskit.models.scripted import ScriptedGenerator

        return ScriptedGenerator.from_file(name, label=label, spec=spec, batch_size=options.batch_size)
    if kind in API:
        from biaskit.models.api.opening import open_api_generator

        return open_api_generator(
            f"{kind}:{name}",
            label=label,
            options=_api_options(spec, label, api),
            earlier=earlier,
            batch_size=options.batch_size,
        )
    folder = _find_local(kind, name)
    from biaskit.models.huggingface.generator import GenerationOptions, TransformersGenerator

    return TransformersGenerator(
        folder,
        label=label,
        spec=spec,
        options=GenerationOptions(options.device, options.dtype, options.batch_size),
    )


def full_spec(spec: str) -> str:
    """A ready-made model's own spec; any other as it is."""
    known = find_known(spec)
    return known.spec if known else spec


def is_api(spec: str) -> bool:
    """Whether a spec names a model behind a server."""
    return _kind(spec)[0] in API


def _api_options(spec: str, label: str, given: ApiOptions | None) -> ApiOptions:
    """The command's options; a ready-made model brings the name of its key's variable along."""
    from biaskit.models.api.options import ApiOptions

    options = given or ApiOptions()
    known = find_known(spec)
    if known is not None and known.api_key_env:
        return replace(options, keys={label: known.api_key_env, **options.keys})
    return options


def _kind(spec: str) -> tuple[str, str]:
    kind, _, name = full_spec(spec).partition(":")
    if spec == "demo" or (kind in KINDS and kind != "demo"):
        return kind, name
    hint = nearest(kind, KINDS) or (f" For a model of the hub write hf:{spec}." if "/" in spec else "")
    raise ModelError(
        f"{hide_urls(spec)!r} is no model.{hint} Give demo, hf:ORG/NAME, hf:PATH, gguf:PATH, openai:NAME,"
        " api:NAME@URL or scripted:FILE."
    )


def _find_local(kind: str, name: str) -> Any:
    """The checked folder of a local model; torch is asked for before a large file is touched."""
    from biaskit.models.huggingface.loading import find_folder, find_gguf, require_transformers

    if kind == "demo":
        from biaskit.models.huggingface.demo import find_demo, require_demo

        require_demo()
    require_transformers()
    return find_demo() if kind == "demo" else find_folder(name) if kind == "hf" else find_gguf(name)
