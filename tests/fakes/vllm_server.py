"""A real vLLM server on this machine's CPU: found in its own environment, started, recorded, killed."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from fakes.real_server import ServerProcess

STARTS_WITHIN_S = 420.0
"""Ready after 50 s on an idle machine."""


def find_vllm() -> Path | None:
    """The Python of an environment with vLLM: BIASKIT_VLLM names it, or `.ci/nightly` made it."""
    root = Path(__file__).resolve().parents[2]
    named = os.environ.get("BIASKIT_VLLM")
    places = [Path(named)] if named else [root / ".servers" / "vllm"]
    return next((place / "bin" / "python" for place in places if (place / "bin" / "python").exists()), None)


class VllmServer(ServerProcess):
    """`vllm.entrypoints.openai.api_server` with one model, in float32."""

    def __init__(self, python: Path, model: Path, log: Path) -> None:
        home = log.parent / "home"
        home.mkdir(exist_ok=True)
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "HF_HUB_OFFLINE": "1",
            "HOME": str(home),
        }
        command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
        command += ["--served-model-name", "real", "--dtype", "float32", "--max-model-len", "512"]
        command += ["--enforce-eager"]
        super().__init__(command, log, environment, ready="/version", within_s=STARTS_WITHIN_S)

    def calls(self) -> Counter[str]:
        """Path → requests that it answered, from its own log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return Counter(line.split('"')[1].split()[1] for line in lines if '"POST ' in line)
