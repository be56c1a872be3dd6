"""What a local model is, read off a run's manifest and held against the folder; needs no torch."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from biaskit.models.huggingface.folder import ModelFolder
from biaskit.models.options import LocalOptions
from biaskit.provenance import digest
from biaskit.records import ModelIdentity, PromptForm

Purpose = Literal["scoring", "generation"]
FORMS: Mapping[tuple[Purpose, bool], tuple[PromptForm, ...]] = {
    ("scoring", False): ("raw",),
    ("scoring", True): ("raw", "chat-prefill", "chat-continue"),
    ("generation", False): ("raw", "completion"),
    ("generation", True): ("chat", "raw", "completion"),
}
"""(what a model is opened for, whether it has a chat template) → the prompt forms it takes, best first."""
NO_PARTS = frozenset({"architecture", "device", "revision"})
"""Details on which no number depends; all others are in the fingerprint."""


def revision_of(folder: ModelFolder) -> str:
    """The commit of a folder in the hub's cache, else empty."""
    return folder.path.name if folder.path.parent.name == "snapshots" else ""


@functools.cache
def rendering_versions() -> str:
    """Whatever turns a conversation into a prompt, with its version."""
    found = []
    for name in ("transformers", "jinja2", "biaskit"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} ?")
    return ", ".join(found)


def identity_in(
    known: Mapping[str, Any],
    folder: ModelFolder,
    *,
    label: str,
    spec: str,
    local: LocalOptions,
    purpose: Purpose,
) -> ModelIdentity | None:
    """The identity that a manifest's entry states, where the folder is still the one that it speaks of.

    None where anything could have come out otherwise since: other files, options, or versions of what renders
    a chat template; then the model must be opened to be known.
    """
    details = known.get("details")
    if not isinstance(details, Mapping) or known.get("where") != "local":
        return None
    if not all(isinstance(name, str) and isinstance(value, str) for name, value in details.items()):
        return None
    parts = {name: value for name, value in details.items() if name not in NO_PARTS}
    has_template = known.get("tuning") == "instruct"
    wanted: dict[str, set[Any]] = {
        "weights": {folder.weights_digest},
        "tokenizer": {folder.tokenizer_digest},
        "dtype": {parts.get("dtype", "")} if local.dtype == "auto" else {local.dtype},
        "device": {details.get("device", "")} if local.device == "auto" else {local.device},
    }
    if "template_date" in parts:
        wanted["template_date"] = {local.template_date}
    rendering = known.get("rendering") or {}
    if has_template and rendering.get("versions") != rendering_versions():
        return None
    as_before = all(details.get(name) in values for name, values in wanted.items())
    if not as_before or digest(parts) != known.get("fingerprint"):
        return None
    return ModelIdentity(
        label=label,
        spec=spec,
        fingerprint=str(known["fingerprint"]),
        tuning="instruct" if has_template else "base",
        where="local",
        forms=FORMS[purpose, has_template],
        takes_system=has_template and bool(rendering.get("system_role")),
        details={**details, "revision": revision_of(folder)},
    )
