"""What an endpoint can do, measured once and stored with the run (methods/estimators#estimators)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from biaskit.errors import ModelError
from biaskit.models.counting import tokens_for
from biaskit.models.options import ScoringOptions
from biaskit.records import PROBE_FORMATS, Estimator, EstimatorName, PromptFormat

LADDER: tuple[EstimatorName, ...] = ("selected-ids", "echo", "top-k", "sampling")
"""Estimators from the strongest to the weakest; the first that the endpoint passes is used."""

CONTINUED: Mapping[str, bool] = {"add_generation_prompt": False, "continue_final_message": True}
"""Fields that tell a server to continue the last message, where `prefill` is "flagged"."""

NEUTRAL: Mapping[str, tuple[float, ...]] = {
    "top_k": (-1, 0),
    "min_p": (0.0,),
    "repeat_penalty": (1.0,),
    "repetition_penalty": (1.0,),
}
"""Sampling settings beyond the OpenAI API, with the values that switch them off: servers have their own
defaults (a top_k of 40, a penalty of 1.1), and samples under those are not samples from the model."""

MOST = 64  # requests in flight
QUEUE_S = 8.0  # seconds in which a server can answer the requests that are ahead of a new one


@dataclass(frozen=True, slots=True)
class AbilityFinding:
    """A question to the endpoint and its result."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Abilities:
    """The findings of `doctor`; plain values, so that a manifest can hold them."""

    answered_by: str = ""  # the model name that the server returned
    completions: bool = False
    chat: bool = False
    chat_limit: str = "max_tokens"  # field of a chat that limits new tokens
    refused: tuple[str, ...] = ()  # parameters that it answers with an error
    # `NEUTRAL` as it takes them, and what makes it draw:
    neutral: Mapping[str, Any] = field(default_factory=dict)
    spelling: Mapping[str, bool] = field(default_factory=dict)  # what makes it list texts, not token ids
    fewest_tokens: int = 1  # new tokens that it lets a request be limited to
    samples: bool = True  # whether another seed gives another text at all
    choices: int = 1  # texts that come back for one request
    takes_system: bool = False
    prefill: str = "no"  # a trailing assistant message: no, plain (continued as it is), flagged (with fields)
    reasoning: bool = False  # it thinks before it answers
    completions_k: int = 0  # most listed tokens, as measured
    chat_k: int = 0
    echo: bool = False
    selected_ids: bool = False
    scale: str = "unknown"  # log-probabilities before or after temperature
    bytes_per_token: float = 3.0
    overhead: int = 16  # tokens that a chat template adds
    latency: float = 1.0  # seconds of a short request
    echo_latency: float = 0.0  # seconds of one echo; 9 if the server sorts its vocabulary in Python
    parallel: float = 1.0  # speed-up of four requests at once over one after another
    scored: bool = False  # whether the questions about probabilities were put
    assumed: bool = False  # nobody was asked: a file of requests was written (`offline.py`)
    findings: tuple[AbilityFinding, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)  # estimator or format → why not

    def as_json(self) -> dict[str, Any]:
        """Return the values for a manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Abilities:
        """Read the values of a manifest."""
        findings = tuple(AbilityFinding(**finding) for finding in stored["findings"])
        return cls(**{**stored, "refused": tuple(stored["refused"]), "findings": findings})

    def open_formats(self) -> tuple[PromptFormat, ...]:
        """Return the formats in which the endpoint can be asked for a text."""
        if not self.samples:
            return ()
        return (*(("chat",) if self.chat else ()), *(("completion", "raw") if self.completions else ()))

    def scored_formats(self, forced: str) -> tuple[PromptFormat, ...]:
        """Return the formats in which it can be asked for a probability, by the forced estimator if any."""
        return tuple(name for name in PROBE_FORMATS if self.estimators(name, forced))

    def estimators(self, prompt_format: PromptFormat, forced: str = "auto") -> tuple[EstimatorName, ...]:
        """Return the estimators that it passes in a prompt format, the strongest first."""
        able: dict[EstimatorName, bool] = {}
        ladder = LADDER
        if prompt_format == "sentence":  # one call for a sentence, where selected ids take one for each token
            able = {"echo": self.echo, "selected-ids": self.selected_ids}
            ladder = LADDER[::-1]
        elif prompt_format == "raw":
            able = {
                "selected-ids": self.selected_ids,
                "echo": self.echo,
                "top-k": self.completions_k > 0 and not self.reasoning,
                "sampling": self.completions and self.samples,
            }
        elif prompt_format in PROBE_FORMATS:
            begun = prompt_format == "chat-prefill"
            usable = self.chat and (not begun or self.prefill != "no")
            able = {
                "top-k": usable and self.chat_k > 0 and not self.reasoning,
                "sampling": usable and self.samples and not (self.reasoning and begun),
            }
        return tuple(name for name in ladder if able.get(name) and forced in ("auto", name))

    def estimator(self, prompt_format: PromptFormat, scoring: ScoringOptions) -> Estimator:
        """Return the strongest estimator in a format. Raises `ModelError` with the reason if it has none."""
        forced = scoring.estimator
        names = self.estimators(prompt_format, forced)
        if not names:
            raise ModelError(self._why_not(prompt_format, forced))
        if names[0] == "top-k":
            most = self.completions_k if prompt_format == "raw" else self.chat_k
            return Estimator("top-k", k=min(scoring.k, most))
        if names[0] == "sampling":
            most = max(tokens_for(scoring.longest), self.fewest_tokens)
            return Estimator("sampling", samples=scoring.samples, max_new_tokens=most)
        return Estimator(names[0])

    def _why_not(self, prompt_format: PromptFormat, forced: str) -> str:
        """Say why no estimator is possible in a format, and what is possible instead."""
        problem = forced if prompt_format == "raw" else f"{forced}, chat"
        if prompt_format == "sentence":
            problem = "echo"
        why = self.problems.get(problem) or self.problems.get(prompt_format)
        why = why or "the endpoint does not offer it"
        wanted = "no estimator is possible" if forced == "auto" else f"{forced} is not possible"
        able = {other: ", ".join(self.estimators(other)) for other in PROBE_FORMATS}
        listed = "; ".join(f"{other}: {names}" for other, names in sorted(able.items()) if names)
        instead = f"It supports {listed}." if listed else "`biaskit doctor` shows what it supports."
        return f"{wanted} in prompt format {prompt_format} ({why}). {instead}"

    def tokens(self, text: str) -> int:
        """Estimate the tokens of a text from what the endpoint counted before."""
        return math.ceil(len(text.encode("utf-8", "replace")) / max(0.5, self.bytes_per_token)) + 1

    def at_once(self, *, echo: bool = False, texts: bool = False) -> int:
        """Return how many requests to keep in flight: as many as the server answers in `QUEUE_S`.

        A slow server would let later ones time out, and keep working on answers that nobody waits for. Even
        one whose processor is full of prompts writes several texts side by side: `texts` assumes four.
        """
        latency = self._latency(echo=echo)
        return max(1, min(MOST, int(QUEUE_S * (4.0 if texts else self.parallel) / max(1e-3, latency))))

    def seconds(self, calls: int, *, echo: bool = False) -> float:
        """Estimate the seconds of so many short calls, or echoes."""
        return calls * self._latency(echo=echo) / max(1.0, self.parallel)

    def _latency(self, *, echo: bool) -> float:
        return max(self.latency, self.echo_latency) if echo else self.latency


def tokens_most(text: str) -> int:
    """Return more tokens than a text can have: no tokenizer makes a token of less than a byte."""
    return len(text.encode("utf-8", "replace")) + 8
