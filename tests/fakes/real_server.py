"""llama-cpp-python's OpenAI-compatible server as a real peer: started, recorded, and its engine in-process.

It answers one request after another and keeps the last prompt's state, so its numbers depend a little on
what was asked before. `Recorder` stands before it and puts the requests in one order;
`Engine` is the same library without HTTP, and repeats them.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import numpy as np

STARTS_WITHIN_S = 120.0
THREADS = 1
"""More than one makes a machine that does something else take many times as long."""
SETTINGS: Mapping[str, Any] = {
    "logits_all": True,  # else it gives no log-probabilities
    "n_threads": THREADS,
    "n_threads_batch": THREADS,
    "verbose": False,
}


class ServerProcess:
    """A server of somebody else as a process: started on a free port, waited for, killed at the end."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        *,
        ready: str,
        within_s: float,
    ) -> None:
        self.port, self.log, self._ready, self._within_s = free_port(), log, ready, within_s
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--port", str(self.port)],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=log.parent,
                start_new_session=True,  # an engine may be a process of its own, and ends with it
            )

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        """Wait until it answers."""
        until = time.monotonic() + self._within_s
        try:
            while not self._answers():
                if self._process.poll() is not None or time.monotonic() > until:
                    said = self.log.read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"the server did not start (exit {self._process.poll()}):\n{said}")
                time.sleep(0.1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        """It may be busy for minutes with what nobody waits for: it is not asked to end."""
        with contextlib.suppress(ProcessLookupError):  # killed before
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=30)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self._ready}", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


class RealServer(ServerProcess):
    """`python -m llama_cpp.server` with one model."""

    def __init__(self, gguf: Path, log: Path, *, name: str, context: int) -> None:
        self.name = name
        settings = SETTINGS | {"model": gguf, "model_alias": name, "n_ctx": context}
        options = [str(part) for key, value in settings.items() for part in (f"--{key}", value)]
        quiet = {"OMP_NUM_THREADS": str(THREADS), "OPENBLAS_NUM_THREADS": str(THREADS)}
        command = [sys.executable, "-m", "llama_cpp.server", *options]
        super().__init__(command, log, os.environ | quiet, ready="/v1/models", within_s=STARTS_WITHIN_S)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


# --- what was asked, in its order -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, and how it was answered."""

    path: str
    body: Mapping[str, Any]
    status: int
    answer: Mapping[str, Any]
    seconds: float
    waiting: int  # requests that were here at once when it came, itself counted


class Recorder:
    """Stands before a server, lets one request through at a time, and remembers them in that order."""

    def __init__(self, server: RealServer) -> None:
        self.name = server.name
        self.asked: list[Asked] = []
        self._waiting = 0
        self._upstream, self._one = server.port, threading.Lock()
        self._count = threading.Lock()
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else an answer in two pieces takes 40 ms more

            def do_GET(self) -> None:
                recorder.forward(self)

            def do_POST(self) -> None:
                recorder.forward(self)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def spec(self) -> str:
        """The model as a user writes it."""
        return f"api:{self.name}@http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Recorder:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextlib.contextmanager
    def fresh(self) -> Iterator[list[Asked]]:
        """The requests made within the block."""
        start = len(self.asked)
        found: list[Asked] = []
        try:
            yield found
        finally:
            found += self.asked[start:]

    def forward(self, handler: BaseHTTPRequestHandler) -> None:
        """Pass one request on when its turn comes, and its answer back."""
        content = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        with self._count:
            self._waiting += 1
            waiting = self._waiting
        with self._one:
            started = time.perf_counter()
            connection = http.client.HTTPConnection("127.0.0.1", self._upstream)
            connection.request(
                handler.command, handler.path, content or None, {"content-type": "application/json"}
            )
            response = connection.getresponse()
            answer = response.read()
            connection.close()
            seconds = time.perf_counter() - started
            body, found = (json.loads(text) if text else {} for text in (content, answer))
            self.asked.append(Asked(handler.path, body, response.status, found, seconds, waiting))
        with self._count:
            self._waiting -= 1
        with contextlib.suppress(OSError):  # a client may have gone away meanwhile
            handler.send_response(response.status)
            handler.send_header("content-type", "application/json")
            handler.send_header("content-length", str(len(answer)))
            handler.end_headers()
            handler.wfile.write(answer)


# --- the same engine without a server ---------------------------------------------------------------------


class Engine:
    """The server's own library in this process, with the server's settings."""

    def __init__(self, gguf: Path, *, context: int) -> None:
        from llama_cpp.server.model import LlamaProxy
        from llama_cpp.server.settings import ModelSettings

        settings = SETTINGS | {"model": str(gguf), "n_ctx": context}
        self._llama = LlamaProxy.load_llama_from_model_settings(ModelSettings(**settings))
        self._n_prompt = 0  # tokens of the last prompt; behind them are those that were sampled

    def tokens(self, text: str) -> tuple[int, ...]:
        """Ids of a text as the server reads it, BOS included where the model has one."""
        begins = self._llama._model.add_bos_token()
        return tuple(self._llama.tokenize(text.encode(), add_bos=begins, special=True))

    def text(self, token: int) -> str:
        """A token as the server shows it."""
        return str(self._llama.detokenize([token]).decode("utf-8", errors="ignore"))

    def repeat(self, asked: Asked) -> None:
        """Do what the server did for a request that it answered, but for its sorting of log-probabilities."""
        from llama_cpp.server.types import CreateChatCompletionRequest, CreateCompletionRequest

        if asked.status != 200 or asked.path not in ("/v1/completions", "/v1/chat/completions"):
            return
        # Its defaults are not those of the library, and these it takes out itself (server/app.py).
        out = {"n", "best_of", "logit_bias_type", "user", "min_tokens", "echo", "logprobs", "top_logprobs"}
        if asked.path == "/v1/completions":
            body = CreateCompletionRequest(**asked.body).model_dump(exclude=out)
            done = self._llama.create_completion(**body)
        else:
            body = CreateChatCompletionRequest(**asked.body).model_dump(exclude=out)
            done = self._llama.create_chat_completion(**body)
        self._n_prompt = done["usage"]["prompt_tokens"]

    def read(self, n: int) -> list[float]:
        """Log-probabilities of the last `n` tokens of the repeated prompt, each after those before it."""
        ids = self.prompt_read()
        places = range(len(ids) - n, len(ids))
        return [float(_log_softmax(self._llama.scores[place - 1])[ids[place]]) for place in places]

    def next_log_probs(self) -> np.ndarray:
        """Of every token, after the repeated prompt."""
        return _log_softmax(self._llama.scores[self._n_prompt - 1])

    def prompt_read(self) -> tuple[int, ...]:
        """The repeated prompt, a chat as its template wrote it."""
        return tuple(int(token) for token in self._llama.input_ids[: self._n_prompt])

    def log_probs(
        self, before: Sequence[int], continuations: Sequence[Sequence[int]]
    ) -> dict[tuple[int, ...], float]:
        """Of whole continuations after a prompt, teacher-forced; a shared beginning is read once."""
        wanted = [tuple(c) for c in continuations]
        after: dict[tuple[int, ...], np.ndarray] = {}
        for beginning in sorted({c[:end] for c in wanted for end in range(len(c))}):
            next(self._llama.generate([*before, *beginning], temp=0.0))
            self._n_prompt = len(before) + len(beginning)
            after[beginning] = self.next_log_probs()
        return {c: math.fsum(after[c[:end]][c[end]] for end in range(len(c))) for c in wanted}

    def close(self) -> None:
        """Give the memory back."""
        self._llama.close()


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    wide = logits.astype(np.float64)
    wide -= wide.max()
    return wide - np.log(np.exp(wide).sum())
