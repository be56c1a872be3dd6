"""A real vLLM server on this machine's CPU: found in its own environment, started, recorded, killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Self

from fakes.real_server import free_port

STARTS_WITHIN_S = 420.0
"""Ready after 50 s on an idle machine."""


def find_vllm() -> Path | None:
    """The Python of an environment with vLLM: BIASKIT_VLLM names it, or `.ci/nightly` made it."""
    root = Path(__file__).resolve().parents[2]
    named = os.environ.get("BIASKIT_VLLM")
    places = [Path(named)] if named else [root / ".servers" / "vllm"]
    return next((place / "bin" / "python" for place in places if (place / "bin" / "python").exists()), None)


class VllmServer:
    """`vllm.entrypoints.openai.api_server` with one model, in float32."""

    def __init__(self, python: Path, model: Path, log: Path, *options: str, port: int | None = None) -> None:
        self.port, self.log = port or free_port(), log
        home = log.parent / "home"
        home.mkdir(exist_ok=True)
        settings = ("--dtype", "float32", "--max-model-len", "512", "--enforce-eager")
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "HF_HUB_OFFLINE": "1",
            "HOME": str(home),
        }
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [
                    *(str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)),
                    *("--served-model-name", "real", "--host", "127.0.0.1", "--port", str(self.port)),
                    *(*settings, *options),
                ],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=log.parent,
                start_new_session=True,  # its engine is a process of its own, and ends with it
            )

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        until = time.monotonic() + STARTS_WITHIN_S
        try:
            while not self._answers():
                if self._process.poll() is not None or time.monotonic() > until:
                    said = self.log.read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"vLLM did not start (exit {self._process.poll()}):\n{said}")
                time.sleep(0.5)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(ProcessLookupError):  # killed before
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=30)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/version", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def calls(self) -> Counter[str]:
        """Path → requests that it answered, from its own log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return Counter(line.split('"')[1].split()[1] for line in lines if '"POST ' in line)
