"""LiteLLM's proxy, as companies put it before everything: found in its own environment, started, killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Self

from fakes.real_server import free_port

STARTS_WITHIN_S = 240.0
KEY = "sk-" + 4 * "0123456789abcdef"
"""It does not start without one."""


def find_litellm() -> Path | None:
    """Its command: BIASKIT_LITELLM names the environment, or `.ci/nightly` made it."""
    root = Path(__file__).resolve().parents[2]
    named = os.environ.get("BIASKIT_LITELLM")
    place = Path(named) if named else root / ".servers" / "litellm"
    return found if (found := place / "bin" / "litellm").exists() else None


class LiteLlmProxy:
    """A proxy that hands the model `toy` on to another server; in `folder` lie its settings and its log."""

    def __init__(self, command: Path, upstream: str, folder: Path) -> None:
        self.port, self.log = free_port(), folder / "litellm.log"
        there = {"model": "text-completion-openai/toy", "api_base": upstream, "api_key": "none"}
        settings = {"model_list": [{"model_name": "toy", "litellm_params": there}]}
        (folder / "litellm.yaml").write_text(json.dumps(settings))  # JSON is YAML
        keep = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        keep |= {
            "LITELLM_MASTER_KEY": KEY,
            "HOME": str(folder),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_TELEMETRY": "False",
        }
        with self.log.open("wb") as file:
            self._process = subprocess.Popen(
                [str(command), "--config", "litellm.yaml", "--host", "127.0.0.1", "--port", str(self.port)],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=keep,
                cwd=folder,
                start_new_session=True,
            )

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        until = time.monotonic() + STARTS_WITHIN_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                self.__exit__()
                raise RuntimeError(f"LiteLLM did not start:\n{self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.5)
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=30)

    def _answers(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self.port}/health/liveliness"
            with urllib.request.urlopen(url, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
