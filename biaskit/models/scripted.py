"""A deterministic model that answers from a script: for tests, examples, trying out a study."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from biaskit.common.inputs import Inputs, expanded
from biaskit.common.provenance import digest
from biaskit.common.sequences import cut
from biaskit.errors import ModelError
from biaskit.models.base import answered_now
from biaskit.models.thoughts import parted
from biaskit.records import (
    Answered,
    Estimator,
    Failed,
    Finish,
    LogProb,
    ModelIdentity,
    Plan,
    Prompt,
    PromptFormat,
    Sample,
    SampleRequest,
    Scored,
)

ELSE = math.log(1e-6)
"""Log-probability of a target word that a line does not list, if the line gives no "else"."""

_SCRIPT = Inputs(ModelError, most=1024 * 2**20, remedy="Write one object on a line.")

R = TypeVar("R")
_LogProb = Annotated[float, Field(le=0, allow_inf_nan=False)]


class _Line(BaseModel):
    model_config = ConfigDict(strict=True)

    contains: str = ""
    log_probs: dict[str, _LogProb] = {}
    other: _LogProb = Field(default=ELSE, alias="else")
    texts: list[str] = []
    finish: Finish = "stop"


class _Scripted:
    """The part that both doubles share: the lines, an identity made of them, nothing to load."""

    formats: tuple[PromptFormat, ...]
    _said: Callable[..., Any]  # request, line, rendered prompt, who answers → the answer; None: `silent`
    silent = "no line of the script answers this prompt"
    whole_batches = False

    def __init__(
        self, lines: Sequence[Mapping[str, Any]], *, label: str, spec: str, batch_size: int | None = None
    ) -> None:
        self._lines = list(lines)
        self.batch_size = batch_size or 16
        self.identity = ModelIdentity(
            label=label,
            spec=spec,
            fingerprint=digest(self._lines),
            tuning="unknown",
            where="scripted",
            formats=self.formats,
            takes_system=True,
            details={"architecture": "scripted"},
        )

    @classmethod
    def from_file(cls, name: str, *, label: str, spec: str, batch_size: int | None = None) -> Self:
        """Read a script: JSON Lines, one object a line."""
        path = expanded(name)
        text = _SCRIPT.text(path, f"scripted:{name}")
        lines = []
        for number, written in enumerate(text.split("\n"), start=1):
            if written.strip():
                where = f"{path}, line {number}"
                line = _SCRIPT.parsed_json(written, where)
                try:
                    _Line.model_validate(line)
                except ValidationError as error:
                    first = error.errors()[0]
                    place = ".".join(map(str, first["loc"]))
                    problem = f"{place}: {first['msg']}" if place else "it is not an object"
                    raise ModelError(
                        f"{where}: {problem}. Write an object such as"
                        ' {"contains": "nurse", "log_probs": {" She": -0.5}}.'
                    ) from None
                lines.append(line)
        if not lines:
            raise ModelError(f"{path} has no line to answer with.")
        return cls(lines, label=label, spec=spec, batch_size=batch_size)

    def plan(self, requests: Sequence[R]) -> Plan[R]:
        """Cut the batches in the order of the requests."""
        batches = cut(requests, self.batch_size)
        return Plan(batches, len(batches), prompt_tokens=0, new_tokens_max=0, cost_max=0.0)

    def answers(self, batches: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        """Answer one group per batch."""
        for batch in batches:
            yield [self._answer(request) for request in batch]

    def _answer(self, request: Any) -> Any:
        """Answer by the first line whose `contains` stands in the prompt."""
        rendered = self.rendered(request.prompt)
        line = next((line for line in self._lines if line.get("contains", "") in rendered), None)
        if line is not None and "fail" in line:
            return Failed(request.key, str(line["fail"]))
        by = answered_now(f"scripted {self.identity.fingerprint[:12]}", None, 0)
        said = None if line is None else self._said(request, line, rendered, by)
        return said or Failed(request.key, self.silent)

    def rendered(self, prompt: Prompt) -> str:
        """Render a prompt as the text in which a line's `contains` is looked for."""
        return rendered_plainly(prompt)

    def estimate_seconds(self, asked: object) -> float | None:  # noqa: ARG002
        """Return 0: a script answers at once."""
        return 0.0

    def used(self) -> Mapping[str, float | None]:
        """Return nothing: nothing is paid for."""
        return {}

    def close(self) -> None:
        """Do nothing: nothing is loaded."""


class ScriptedScorer(_Scripted):
    """Scores each prompt by the first line whose `contains` stands in it.

    A line is `{"contains": "nurse", "log_probs": {" She": -0.5}, "else": -9.0}`; a line with
    `"fail": "reason"` answers that request with `Failed`.
    """

    formats = ("raw", "chat-prefill", "chat-continue")

    def estimator_for(self, prompt_format: PromptFormat) -> Estimator:  # noqa: ARG002
        """Return `exact`: a script states the probability itself, whatever the format."""
        return Estimator("exact")

    plan_scores, score = _Scripted.plan, _Scripted.answers

    def _said(self, request: Any, line: Mapping[str, Any], rendered: str, by: Answered) -> Scored:
        listed, unlisted = line.get("log_probs", {}), line.get("else", ELSE)
        log_probs = []
        between = "" if request.prompt.prompt_format == "sentence" and not request.prompt.text else " "
        for target_word in request.target_words:
            text = between + target_word.text
            value = float(listed.get(text, unlisted))
            log_probs.append(LogProb(target_word.group, text, value, value))
        return Scored(request.key, rendered, "exact", tuple(log_probs), by)


class ScriptedGenerator(_Scripted):
    """Answers each prompt with a text of the first line whose `contains` stands in it.

    A line is `{"contains": "nurse", "texts": ["She ...", "He ..."]}`: sample i of a prompt takes text i
    modulo their number. `"finish"` sets the finish reason, `"fail": "reason"` answers with `Failed`.
    """

    formats = ("chat", "completion", "raw")
    silent = f"{_Scripted.silent} with texts"

    def plan_samples(self, requests: Sequence[SampleRequest]) -> Plan[SampleRequest]:
        """Cut the batches; each text may be as long as it is asked for."""
        return replace(self.plan(requests), new_tokens_max=sum(r.sampling.max_new_tokens for r in requests))

    generate = _Scripted.answers

    def _said(self, request: Any, line: Mapping[str, Any], rendered: str, by: Answered) -> Sample | None:
        if not (texts := line.get("texts")):
            return None
        text = str(texts[request.number % len(texts)])
        return parted(Sample(request.key, rendered, text, line.get("finish", "stop"), by))


def rendered_plainly(prompt: Prompt) -> str:
    """Render a prompt as text without any model's template."""
    if prompt.prompt_format in ("raw", "completion", "sentence"):
        return prompt.text
    lines = [text for text in (prompt.system, prompt.preamble) if text]
    for turn in prompt.turns:
        lines += [turn.question, turn.answer]
    return "\n".join([*lines, prompt.text, prompt.prefill]).rstrip("\n")
