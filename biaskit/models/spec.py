"""From a model spec such as `demo`, `hf:ORG/NAME` or `api:NAME@URL` to a model."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.common.inputs import expanded
from biaskit.common.wording import short
from biaskit.corpora.rows import SourceLayout, read_list
from biaskit.corpora.sources import Filled, ListEntry
from biaskit.errors import ModelError, UsageError, nearest
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.base import ContinuationScorer, TextGenerator
from biaskit.models.entry import ModelEntry
from biaskit.models.options import LENT, Account, LocalOptions, ScoringOptions

if TYPE_CHECKING:
    from biaskit.models.api.options import ApiOptions
    from biaskit.models.huggingface.folder import ModelFolder

DEMOS = ("demo", "demo-base")  # whole specs
KINDS = (*DEMOS, "hf", "gguf", "openai", "api", "inspect", "scripted", "writer", "object")
API = ("openai", "api")
HOSTED, ON_HUB = ("gpt-3", "gpt-4", "gpt-5", "chatgpt", "o1", "o3", "o4"), ("gpt2", "distilgpt2", "bert-")
"""How names begin that newcomers give without saying where the model is."""
TEXTS_ALONE = {"inspect": "queried through Inspect", "writer": "a callable"}  # they give no probabilities


class KnownModel(ListEntry):
    """A model of a paper: what its label stands for, the variable of its key, and how it was asked."""

    label: Filled
    spec: Filled
    api_key_env: Filled
    paper: Filled
    note: Filled


def list_known() -> tuple[KnownModel, ...]:
    """Return the models that the papers asked, in the order of their list."""
    layout = SourceLayout("models", "model", KnownModel)
    return tuple(model for _, model in read_list("corpus:models/papers.toml", layout).entries)


def find_known(name: str) -> KnownModel | None:
    """Return the model of exactly this label; None for any other name."""
    return next((model for model in list_known() if model.label == name), None)


def split_label(text: str) -> tuple[str, str]:
    """Split `LABEL=SPEC` into (label, spec).

    Without a label it is the spec without its secrets, of a GGUF file its name without folder and ending.
    """
    if any("\ud800" <= sign <= "\udfff" for sign in text):  # bytes of a shell that are no UTF-8
        raise UsageError(f"{hide_urls(text)!a}: a model's label and spec are UTF-8 text.")
    label, equals, spec = text.partition("=")
    if equals and ":" not in label:  # hf:./a=b is a path
        if not label or not spec:
            raise UsageError(f"{hide_urls(text)!r}: write a model as LABEL=SPEC or SPEC.")
        return label, spec
    if text.startswith("gguf:") and (name := Path(text.partition(":")[2]).name.removesuffix(".gguf")):
        return name, text
    return hide_urls(text), text


def open_scorer(
    spec: str,
    *,
    label: str,
    local: LocalOptions = LocalOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    api: ApiOptions | None = None,
    known: ModelEntry | None = None,
    account: Account = Account(),
) -> ContinuationScorer:
    """Open a spec as a scorer, checked, its weights not loaded; `known`: its entry in the run's manifest."""
    kind, name = _kind(spec)
    how: Any = {"label": label, "known": known, "account": account}
    if kind in API:
        from biaskit.models.api.opening import open_api_scorer

        how |= {"options": _api_options(spec, label, api), "batch_size": local.batch_size}
        return open_api_scorer(f"{kind}:{name}", scoring=scoring, **how)
    if kind in TEXTS_ALONE and scoring.estimator not in ("auto", "sampling"):
        raise ModelError(f"{label} is {TEXTS_ALONE[kind]}, which gives only texts: --estimator sampling.")
    if scoring.estimator == "sampling" or kind in TEXTS_ALONE:
        from biaskit.models.counting import SampledScorer

        # Samples come from the distribution that the exact scorer reads.
        as_scored = replace(local, dtype="float32") if local.dtype == "auto" and kind != "object" else local
        generator = open_generator(spec, local=as_scored, api=api, **how)
        return SampledScorer(
            generator, samples=scoring.samples, longest=scoring.longest, new_tokens=scoring.new_tokens
        )
    if kind == "scripted":
        from biaskit.models.scripted import ScriptedScorer

        return ScriptedScorer.from_file(name, label=label, spec=spec, batch_size=local.batch_size)
    folder = _find_local(kind, name)
    from biaskit.models.huggingface.scorer import TransformersScorer

    return TransformersScorer(folder, label=label, spec=spec, local=local, scoring=scoring)


def open_generator(
    spec: str,
    *,
    label: str,
    local: LocalOptions = LocalOptions(),
    api: ApiOptions | None = None,
    known: ModelEntry | None = None,
    account: Account = Account(),
) -> TextGenerator:
    """Open the model behind a spec as a generator; arguments as for `open_scorer`."""
    kind, name = _kind(spec)
    if kind in TEXTS_ALONE and api is not None and api.thinking != "auto":
        raise UsageError(f"{label} is {TEXTS_ALONE[kind]}, which has no thinking switch: leave out thinking.")
    if kind == "scripted":
        from biaskit.models.scripted import ScriptedGenerator

        return ScriptedGenerator.from_file(name, label=label, spec=spec, batch_size=local.batch_size)
    if kind == "writer":
        if name not in LENT.get():
            raise ModelError(f"{label} is a callable, which works only from Python: use bk.writer.")
        if api is not None and api.max_cost is not None:
            raise UsageError(f"{label}: the cost of a callable is unknown, so --max-cost cannot be enforced.")
        held: TextGenerator = replace(LENT.get()[name])
        return held
    if kind == "inspect":
        from biaskit.models.inspect_model import open_inspect

        return open_inspect(name, label=label, options=_api_options(spec, label, api), account=account)
    if kind in API:
        from biaskit.models.api.opening import open_api_generator

        how: Any = {"label": label, "known": known, "account": account, "batch_size": local.batch_size}
        return open_api_generator(f"{kind}:{name}", options=_api_options(spec, label, api), **how)
    folder = _find_local(kind, name)
    from biaskit.models.huggingface.generator import TransformersGenerator

    return TransformersGenerator(folder, label=label, spec=spec, local=local)


def full_spec(spec: str) -> str:
    """Return the spec behind a ready-made model's label; any other spec unchanged."""
    model = find_known(spec)
    return model.spec if model else spec


def is_api(spec: str) -> bool:
    """Return whether a spec names a model behind a server."""
    return _kind(spec)[0] in API


def may_sample(spec: str) -> bool:
    """Tell whether `auto` may come to samples: of a model behind a server, or that gives only texts."""
    return full_spec(spec).partition(":")[0] in {*API, *TEXTS_ALONE}


def _api_options(spec: str, label: str, options: ApiOptions | None) -> ApiOptions:
    """Return the command's options; for a ready-made model, with the name of its key's variable."""
    from biaskit.models.api.options import ApiOptions

    options = options or ApiOptions()
    model = find_known(spec)
    return replace(options, keys={label: model.api_key_env, **options.keys}) if model else options


def _kind(spec: str) -> tuple[str, str]:
    """Split a spec into its kind and the rest. Raises `UsageError` if it names no model at all."""
    if "\0" in spec or any(len(part.encode("utf-8", "surrogatepass")) > 255 for part in spec.split("/")):
        raise UsageError(f"{short(repr(hide_urls(spec)))} is not a model: no file or model has such a name.")
    kind, _, name = full_spec(spec).partition(":")
    if spec in DEMOS or (kind in KINDS and kind not in DEMOS):
        return kind, name
    file_kind = {".jsonl": "scripted:", ".gguf": "gguf:"}.get(Path(spec).suffix.lower())
    file_kind = file_kind or ("hf:" if Path(spec).is_dir() else None)
    hint = f" Did you mean {file_kind}{spec}?" if file_kind else nearest(kind, KINDS)
    if not hint or kind == spec:  # a bare name is rather a model's than a slip in ours
        hosted = spec.lower().startswith(HOSTED)
        place = "hf:" if "/" in spec or spec.lower().startswith(ON_HUB) else "openai:" * hosted
        hint = f" Did you mean {place}{spec}?" if place else hint
    raise UsageError(
        f"{hide_urls(spec)!r} is not a model.{hint} Give demo, demo-base, hf:ORG/NAME, hf:PATH, gguf:PATH,"
        " openai:NAME, api:NAME@URL, inspect:PROVIDER/NAME or scripted:FILE."
    )


def weights_in_memory(spec: str) -> str:
    """Return the digest of a lent model's weights; "" for one that cannot be asked, which is named later."""
    with contextlib.suppress(ModelError):
        return _find_local(*_kind(spec)).weights_digest
    return ""


def _find_local(kind: str, name: str) -> ModelFolder:
    """Return the checked folder of a local model; torch is asked for before a large file is touched."""
    if kind == "object":
        if name not in LENT.get():
            raise ModelError(
                f"{name} was a model in the memory of the program that measured it, which no command opens:"
                f" save it and give hf:PATH, or in Python bk.model({name!r}, model, tokenizer)."
            )
        from biaskit.models.huggingface.objects import object_folder

        return object_folder(LENT.get()[name])
    from biaskit.models.huggingface.folder import check_gguf
    from biaskit.models.huggingface.loading import find_folder, require_transformers

    if kind in DEMOS:
        from biaskit.models.huggingface.demo import find_demo

        return find_demo(kind)
    if name.startswith((".", "/", "~")) and not expanded(name).exists():
        raise ModelError(f"{kind}:{name}: nothing is there. Check the path, or give hf:ORG/NAME of the hub.")
    require_transformers()
    if kind == "hf":
        from biaskit.models.huggingface.adapters import find_adapted, split_adapter

        return find_adapted(*parts) if (parts := split_adapter(name)) else find_folder(name)
    return check_gguf(expanded(name))
