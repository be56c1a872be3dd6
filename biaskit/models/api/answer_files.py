"""Answers that somebody else got to the requests of a batch file, read by the very readers of live answers.

Lines may be those of OpenAI's output and error files, of vLLM's run-batch, of Ray's processors, or an
answer with `custom_id` beside it. What is wrong with a line is said with its place; none is half used.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from biaskit.errors import UsageError
from biaskit.inputs import Inputs, parse_json, unpacked
from biaskit.models.api.endpoint import Endpoint, clean
from biaskit.models.api.offline import row_of_name
from biaskit.models.api.trouble import BadAnswer, GaveUp, Trouble
from biaskit.models.api.wire import Call, Reply, inside, read_reply

T = TypeVar("T")
MOST_NAMED = 3
"""Lines that a message names by their place."""
_FILES = Inputs(UsageError, most=0)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an answer file, as far as it was looked at."""

    where: str
    status: int
    content: bytes  # JSON: what a server would have sent
    engine: Mapping[str, Any] | None = None  # a row of Ray's engine processor, which is no server's answer


@dataclass(slots=True)
class AnswerFiles:
    """An exchange that has the answers of some files; each is read when it is asked for.

    Attributes:
        broken: what was wrong with lines that could not be taken up, reason → places.
        refused: identifier → why its answer is none, with its place.
    """

    names: frozenset[str] = frozenset()  # which models' answers count; empty: all of one name
    any_model: bool = False  # answers of several models may be mixed
    n_lines: int = 0
    n_twice: int = 0
    n_unsaid: int = 0  # answers that do not say which model gave them
    n_short: int = 0  # answers with fewer texts than were asked for
    broken: dict[str, list[str]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    _lines: dict[str, Line] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Sequence[Path]) -> AnswerFiles:
        """Take up the lines of some files. Raises `UsageError` where one cannot be opened or has no line."""
        found = cls()
        for path in paths:
            before = found.n_lines
            for place, line in _lines_of(path, found):
                found.n_lines += 1
                found._take(f"{path}, line {place}", line)
            if found.n_lines == before and not found.broken:
                raise UsageError(f"{path} holds no answer: it is empty.")
        return found

    def _take(self, where: str, line: bytes) -> None:
        try:
            row = parse_json(line)
        except ValueError:
            why = "cut off" if not line.endswith(b"\n") else "no JSON"
            return self.broken.setdefault(why, []).append(where)
        taken = _taken(row, where)
        if isinstance(taken, str):
            return self.broken.setdefault(taken, []).append(where)
        identifier, answer = taken
        known = self._lines.get(identifier)
        self.n_twice += known is not None
        if known is None or (known.status != 200 and answer.status == 200):  # the first that is one
            self._lines[identifier] = answer
        return None

    @property
    def identifiers(self) -> Collection[str]:
        """Of every answer there is."""
        return self._lines.keys()

    def choose_names(self, known: Collection[str]) -> None:
        """Which model's answers count: those of stored rows, else those of most lines."""
        counted = Counter(name for line in self._lines.values() if (name := _model_of(line)))
        most = [name for name, _ in counted.most_common(1)]
        self.names = frozenset(known or most)

    def rows(self) -> set[str]:
        """Keys of the rows that the answers are for."""
        return {row_of_name(identifier) for identifier in self._lines}

    def ask(self, call: Call, read: Callable[[Reply], T], endpoint: Endpoint) -> T:
        """The answer of a line, through `read`. Raises `GaveUp` where there is none that can be believed."""
        identifier = call.name
        line = self._lines.get(identifier)
        if line is None:
            raise GaveUp("no answer was handed in")
        try:
            reply = read_reply(endpoint, line.status, self._content(line, call))
            self._check_model(reply)
            found = read(reply)
        except Trouble as trouble:
            self.refused[identifier] = f"{trouble} ({line.where})"
            raise GaveUp(str(trouble)) from None
        self.read.add(identifier)
        self.n_short += call.choices > 1 and len(inside(reply.data, "choices") or ()) < call.choices
        self.refused.pop(identifier, None)
        return found

    def _content(self, line: Line, call: Call) -> bytes:
        if line.engine is None:
            return line.content
        self.n_unsaid += "model" not in line.engine
        return _as_answer(line.engine, call)

    def _check_model(self, reply: Reply) -> None:
        name = reply.data.get("model")
        if self.any_model or not self.names or not isinstance(name, str):
            return
        if name not in self.names:
            raise BadAnswer(f"another model answered, {name!r}; the others are of {', '.join(self.names)}")


def _lines_of(path: Path, found: AnswerFiles) -> Iterator[tuple[int, bytes]]:
    place = 0
    with _FILES.saying(str(path)):
        try:
            with unpacked(path) as file:
                for place, line in enumerate(file, start=1):
                    if line.strip():
                        yield place, line
        except (EOFError, zlib.error):  # the end of a compressed file is missing: what came before it counts
            found.broken.setdefault("cut off", []).append(f"{path}, after line {place}")


def _taken(row: object, where: str) -> tuple[str, Line] | str:
    """Identifier and answer of a line, in any of the shapes that services write; else what it lacks."""
    if not isinstance(row, Mapping):
        return "no object"
    identifier = row.get("custom_id")
    if not isinstance(identifier, str) or not identifier:
        return "no custom_id"
    if "method" in row and "response" not in row:
        return "a request, not an answer"
    if isinstance(row.get("generated_text"), str):
        return identifier, Line(where, 200, b"", row)
    status, body = _answer_of(row)
    error = row.get("error")
    if error and not inside(body, "choices"):
        # The reason may stand beside an answer or in its place.
        told = body if isinstance(body, Mapping) and body.get("error") else {"error": error}
        return identifier, Line(where, status if status != 200 else 400, json.dumps(told).encode())
    if not isinstance(body, Mapping):
        return "no answer in it"
    return identifier, Line(where, status, json.dumps(body).encode())


def _answer_of(row: Mapping[str, Any]) -> tuple[int, object]:
    """Status and body of an answer."""
    response = row.get("response", row.get("http_response"))
    if isinstance(response, Mapping) and "body" in response:
        status = response.get("status_code")
        return (status if type(status) is int else 200), _parsed(response["body"])
    if response is not None:
        return 200, _parsed(response)
    if "choices" in row:
        return 200, row
    return 200, _parsed(row.get("body"))


def _parsed(body: object) -> object:
    """An answer; some services hand it on as text."""
    if not isinstance(body, str):
        return body
    try:
        return parse_json(body)
    except ValueError:
        return None


def _model_of(line: Line) -> str | None:
    if line.status != 200:
        return None
    name = line.engine.get("model") if line.engine is not None else json.loads(line.content).get("model")
    return clean(name) if isinstance(name, str) and name.strip() else None


def _as_answer(row: Mapping[str, Any], call: Call) -> bytes:
    """A row of Ray's engine processor as a server's answer: it stops by itself or at its most tokens."""
    n, text = row.get("num_generated_tokens"), row["generated_text"]
    asked = dict(call.body or {})
    finish = row.get("finish_reason")
    if finish is None and type(n) is int:
        finish = "length" if n >= call.new_tokens_most else "stop"
    said = {"message": {"role": "assistant", "content": text}} if "messages" in asked else {"text": text}
    answer = {
        "model": row.get("model", asked.get("model")),
        "choices": [{"index": 0, "finish_reason": finish, **said}],
        "usage": {"prompt_tokens": row.get("num_input_tokens"), "completion_tokens": n},
    }
    return json.dumps(answer).encode()
