"""Answers that somebody else obtained to the requests of a batch file, read as live answers are.

Lines may be those of OpenAI's output and error files, of vLLM's run-batch, of Ray's processors, or an
answer with `custom_id` beside it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from biaskit.common.inputs import Inputs, unpacked
from biaskit.errors import UsageError
from biaskit.models.api.endpoint import Endpoint, clean
from biaskit.models.api.trouble import BadAnswer, Blocked, GaveUp, Trouble
from biaskit.models.api.wire import Call, Json, Reply, answer_json, inside, read_reply

T = TypeVar("T")
_FILES = Inputs(UsageError, most=0)


@dataclass(frozen=True, slots=True)
class Line:
    """An answer in a file, and its place there."""

    where: str
    status: int
    body: Json

    @property
    def model(self) -> str | None:
        """Model that gave the answer; None if the answer names none."""
        name = self.body.get("model")
        return clean(name) if isinstance(name, str) and name.strip() else None


@dataclass(slots=True)
class AnswerFiles:
    """An exchange that answers from files."""

    lines: dict[str, Line] = field(default_factory=dict)  # by identifier; the first with status 200 counts
    names: frozenset[str] = frozenset()  # models whose answers count; empty: all
    n_lines: int = 0
    problems: dict[str, dict[str, None]] = field(default_factory=dict)  # why an answer is not used → places
    asked_for: set[str] = field(default_factory=set)  # identifiers

    @classmethod
    def read(cls, paths: Sequence[Path]) -> AnswerFiles:
        """Read the lines of some files. Raises `UsageError` if one cannot be opened or has no line."""
        files = cls()
        for path in paths:
            before, number = files.n_lines, 0
            with _FILES.saying(str(path)):
                try:
                    with unpacked(path) as lines:
                        for number, line in enumerate(lines, start=1):
                            if line.strip():
                                files._take(f"{path}, line {number}", line)
                except (EOFError, zlib.error):  # what came before the missing end counts
                    files.refuse("cut off", f"{path}, after line {number}")
            if files.n_lines == before and not files.problems:
                raise UsageError(f"{path} has no answers: it is empty.")
        return files

    def _take(self, where: str, line: bytes) -> None:
        self.n_lines += 1
        try:
            identifier, answer = _answer_of(answer_json(line), where)
        except BadAnswer as trouble:
            self.refuse(str(trouble), where)
        except ValueError:
            self.refuse("no JSON" if line.endswith(b"\n") else "cut off", where)
        else:
            earlier = self.lines.setdefault(identifier, answer)
            if earlier.status != 200 and answer.status == 200:
                self.lines[identifier] = answer

    def refuse(self, why: str, where: str) -> None:
        """Note why a line is not used."""
        self.problems.setdefault(why, {})[where] = None

    def ask(self, call: Call, read: Callable[[Reply], T], endpoint: Endpoint) -> T:
        """Read the answer to a call with `read`. Raises `GaveUp` if there is none that can be believed."""
        line = self.lines.get(call.name)
        if line is None:
            raise GaveUp("no answer was handed in")
        self.asked_for.add(call.name)
        try:
            body = _as_served(line.body, call) if "generated_text" in line.body else line.body
            reply = read_reply(endpoint, line.status, json.dumps(body).encode())
            if self.names and line.model not in (None, *self.names):
                others = ", ".join(self.names)
                raise BadAnswer(f"another model answered, {line.model!r}; the others are of {others}")
            answer = read(reply)
        except Blocked as block:
            block.by = line.model or next(iter(self.names), "")
            raise
        except Trouble as trouble:
            self.refuse(str(trouble), line.where)
            raise GaveUp(str(trouble)) from None
        if len(inside(reply.data, "choices") or ()) < call.choices:
            self.refuse("fewer texts than requested (--batch-size 1 requests one at a time)", line.where)
        return answer


def _answer_of(row: object, where: str) -> tuple[str, Line]:
    """Return identifier and answer of a line, in any shape that services write. Raises `BadAnswer`."""
    if not isinstance(row, Mapping):
        raise BadAnswer("no object")
    identifier = row.get("custom_id")
    if not isinstance(identifier, str) or not identifier:
        raise BadAnswer("no custom_id")
    response = row.get("response", row.get("http_response"))
    if "method" in row and response is None:
        raise BadAnswer("a request, not an answer")
    status, body = 200, row if "choices" in row or "generated_text" in row else response
    if isinstance(response, Mapping) and "body" in response:
        stated = response.get("status_code")
        status, body = stated if type(stated) is int else 200, response["body"]
    if isinstance(body, str):  # some services pass it on as text
        body = answer_json(body)
    error = row.get("error")
    if error and not inside(body, "choices"):  # the reason may stand beside an answer or in its place
        body = body if isinstance(body, Mapping) and body.get("error") else {"error": error}
        status = status if status != 200 else 400
    if not isinstance(body, Mapping):
        raise BadAnswer("no answer in it")
    return identifier, Line(where, status, body)


def _as_served(row: Json, call: Call) -> dict[str, Any]:
    """Turn a row of Ray's processor into a server's answer, whose finish follows from its token count."""
    n, text = row.get("num_generated_tokens"), row["generated_text"]
    request = call.body or {}
    finish = row.get("finish_reason")
    if finish is None and type(n) is int:
        finish = "length" if n >= call.new_tokens_most else "stop"
    content = {"message": {"role": "assistant", "content": text}} if "messages" in request else {"text": text}
    return {
        "model": row.get("model", request.get("model")),
        "choices": [{"index": 0, "finish_reason": finish, **content}],
        "usage": {"prompt_tokens": row.get("num_input_tokens"), "completion_tokens": n},
    }
