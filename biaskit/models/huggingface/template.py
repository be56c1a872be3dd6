"""A model's chat template: foreign code, rendered in a process that can be ended (`template_process.py`)."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from biaskit.errors import ModelError
from biaskit.foreign import visible
from biaskit.records import TEMPLATE_DATE

SECONDS = 1.0  # for one conversation
START_SECONDS = 30.0  # of the process, on a machine that is busy with other things
MOST_CHARACTERS = 1_000_000
"""Of a rendered prompt: no context holds more, and its tokens would fill the memory."""
MOST_TEMPLATE = 10_000_000  # characters of its source
CLOCK = "strftime_now"
_SCRIPT = Path(__file__).with_name("template_process.py")
_INHERITED = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Of the environment: what an interpreter may need to start, and no key."""


class TemplateRefused(Exception):
    """The template raised an exception of its own for a conversation; the message is foreign text."""


class ChatTemplate:
    """One chat template; its process starts with the first conversation, and is ended when it hangs."""

    def __init__(self, source: str, variables: Mapping[str, str], date: str = TEMPLATE_DATE) -> None:
        if len(source) > MOST_TEMPLATE:
            raise ModelError(
                f"the model's chat template is {len(source):,} characters long. Use another model."
            )
        self._given = {
            "template": source,
            "variables": dict(variables),
            "date": date,
            "most": MOST_CHARACTERS,
        }
        self.reads_clock = CLOCK in source  # a name that is not in the source cannot be reached by it
        self._process: _Process | None = None
        self._hung: str | None = None

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The conversation as this model reads it, up to where its answer begins.

        Raises `ModelError` where the template does not end in its time, `TemplateRefused` where it says no.
        """
        if self._hung:
            raise ModelError(self._hung)
        if self._process is None:
            self._process = (_waiting.pop() if _waiting else _Process()).begin(self._given)
        try:
            answer = self._process.exchange([dict(message) for message in messages], SECONDS)
        except BaseException:  # Ctrl-C: the answer that is still to come belongs to no question
            self.close()
            raise
        if answer is None:
            self.close()
            self._hung = (
                f"the model's chat template did not end within {SECONDS:g} s: it is broken or hostile."
                " Use --prompt-form raw, or another model."
            )
            raise ModelError(self._hung)
        if "text" not in answer:
            raise TemplateRefused(visible(answer.get("error", "it says nothing"), longest=300))
        return answer["text"]

    def close(self) -> None:
        """End its process; the next conversation starts another."""
        if self._process is not None:
            self._process.end()
            self._process = None


class _Process:
    """A running `template_process.py`; ended with its owner, at the latest when this program ends."""

    def __init__(self) -> None:
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        try:
            started = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", "-S", str(_SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        except OSError as error:
            raise ModelError(
                f"the process in which chat templates render cannot be started: {error.strerror or error}."
                " Use --prompt-form raw."
            ) from error
        self._stdin = started.stdin
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        # A thread reads: a pipe has no time limit that works on every system.
        threading.Thread(target=_read, args=(started.stdout, self._answers), daemon=True).start()
        self.end = weakref.finalize(self, _end, started)
        self._send(sys.path)

    def begin(self, given: Mapping[str, object]) -> _Process:
        """Tell it what to render, and wait until it can."""
        if self.exchange(given, START_SECONDS) is None:
            self.end()
            raise ModelError(
                "the process in which chat templates render did not start. Use --prompt-form raw."
            )
        return self

    def _send(self, content: object) -> None:
        assert self._stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it died: then no answer comes
            self._stdin.write(json.dumps(content).encode("ascii") + b"\n")
            self._stdin.flush()

    def exchange(self, content: object, seconds: float) -> dict[str, str] | None:
        """The answer to one line; None where there is none in time, or the process died of it."""
        self._send(content)
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            return None
        answer = json.loads(line) if line else None
        return answer if isinstance(answer, dict) else None


_waiting: list[_Process] = []


def start_early() -> None:
    """Start a process for the next template now: it is ready when the tokenizer is."""
    if not _waiting:
        with contextlib.suppress(ModelError):  # said when it is needed
            _waiting.append(_Process())


def _read(stdout: object, answers: queue.SimpleQueue[bytes]) -> None:
    for line in stdout:  # type: ignore[attr-defined]
        answers.put(line)
    answers.put(b"")  # it ended


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue
