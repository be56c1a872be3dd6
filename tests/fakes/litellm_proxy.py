"""LiteLLM's proxy, as companies put it before everything: found in its own environment, started, killed."""

from __future__ import annotations

import json
import os
from pathlib import Path

from fakes.real_server import ServerProcess

STARTS_WITHIN_S = 240.0
KEY = "sk-" + 4 * "0123456789abcdef"
"""It does not start without one."""


def find_litellm() -> Path | None:
    """Its command: BIASKIT_LITELLM names the environment, or `.ci/nightly` made it."""
    root = Path(__file__).resolve().parents[2]
    named = os.environ.get("BIASKIT_LITELLM")
    place = Path(named) if named else root / ".servers" / "litellm"
    return found if (found := place / "bin" / "litellm").exists() else None


class LiteLlmProxy(ServerProcess):
    """A proxy that hands the model `toy` on to another server; in `folder` lie its settings and its log."""

    def __init__(self, command: Path, upstream: str, folder: Path) -> None:
        there = {"model": "text-completion-openai/toy", "api_base": upstream, "api_key": "none"}
        settings = {"model_list": [{"model_name": "toy", "litellm_params": there}]}
        (folder / "litellm.yaml").write_text(json.dumps(settings))  # JSON is YAML
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "LITELLM_MASTER_KEY": KEY,
            "HOME": str(folder),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_TELEMETRY": "False",
        }
        super().__init__(
            [str(command), "--config", "litellm.yaml"],
            folder / "litellm.log",
            environment,
            ready="/health/liveliness",
            within_s=STARTS_WITHIN_S,
        )
