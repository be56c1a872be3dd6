"""What a loaded or loadable local model is: the identity that stands in manifests and keys."""

from __future__ import annotations

from typing import Any

from biaskit.models.huggingface.folder import ModelFolder
from biaskit.models.huggingface.loading import Placement
from biaskit.models.huggingface.rendering import Renderer
from biaskit.provenance import digest
from biaskit.records import ModelIdentity, PromptForm


def identify(
    folder: ModelFolder,
    config: Any,
    renderer: Renderer,
    placement: Placement,
    *,
    label: str,
    spec: str,
    forms: tuple[PromptForm, ...],
) -> ModelIdentity:
    """The fingerprint covers weights, tokenizer and dtype: whatever a number can depend on."""
    parts = {
        "weights": folder.weights_digest,
        "tokenizer": folder.tokenizer_digest,
        "dtype": placement.dtype,
    }
    return ModelIdentity(
        label=label,
        spec=spec,
        fingerprint=digest(parts),
        tuning="instruct" if renderer.has_template else "base",
        where="local",
        forms=forms,
        takes_system=renderer.takes_system,
        details={
            **parts,
            "architecture": ", ".join(getattr(config, "architectures", None) or []) or config.model_type,
            "device": placement.device,
            "revision": folder.path.name if folder.path.parent.name == "snapshots" else "",
        },
    )
