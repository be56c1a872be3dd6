"""A callable `list[str] -> list[str]` as a model that writes texts (howto/models#writers)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, ClassVar

from biaskit.arguments import TEXT, checked
from biaskit.common.provenance import digest
from biaskit.common.sequences import cut
from biaskit.common.wording import count
from biaskit.errors import AskingStopped, ModelError, UsageError
from biaskit.models.api.endpoint import reason_of
from biaskit.models.api.stream import LoopThread
from biaskit.models.base import answered_now
from biaskit.models.conversation import messages_of
from biaskit.models.thoughts import parted
from biaskit.records import Failed, ModelIdentity, Plan, Prompt, Sample, SampleRequest

AT_ONCE = 4  # batches that an async callable has in hand
FAILED_IN_A_ROW = 5  # batches without one text between them: what the callable asks is gone


@checked(name=TEXT, version=TEXT)
def writer(
    name: str,
    fn: Callable[[list[str]], Sequence[str | None] | Awaitable[Sequence[str | None]]],
    *,
    version: str = "",
    batch_size: int = 16,
) -> Writer:
    """Make a callable a model for `bk.personas`, and for `bk.probe` by sampling.

    >>> bk.writer("mine", lambda prompts: ["She is kind."] * len(prompts))
    Writer(label='mine', version='', batch_size=16)

    Args:
        name: its name in tables; a callable of the same name and version continues the same rows.
        fn: gets a list of prompts and returns a list with a text, or None, for each; may be async.
        version: says which state of the callable it is.
        batch_size: the most prompts of one call.

    Returns what takes the place of a spec. Raises `UsageError` for a name with = or : or /, or no callable.
    """
    if not name or {"=", ":", "/"} & {*name} or not (name + version).isprintable() or not callable(fn):
        raise UsageError("bk.writer takes a name without = and : and /, and a callable of a list of prompts.")
    return Writer(name, fn, version, batch_size)


@dataclass
class Writer:
    """A callable as a `TextGenerator`; a call takes it in place of a spec and works with a copy."""

    label: str
    fn: Callable[[list[str]], Any] = field(repr=False)
    version: str
    batch_size: int
    whole_batches: ClassVar[bool] = False
    _thread: LoopThread = field(init=False, repr=False, default_factory=LoopThread)
    _calls: int = field(init=False, repr=False, default=0)
    _failed_in_a_row: int = field(init=False, repr=False, default=0)

    @property
    def identity(self) -> ModelIdentity:
        """Identity by name and version: nothing of the callable is stored."""
        details = {"architecture": "callable", "name": self.label, "version": self.version}
        how: Any = {"tuning": "unknown", "where": "callable", "formats": ("chat",), "takes_system": False}
        return ModelIdentity(self.label, f"writer:{self.label}", digest(details), **how, details=details)

    def rendered(self, prompt: Prompt) -> str:
        """Render a prompt as what a user would type."""
        if prompt.system or prompt.preamble or prompt.turns or not prompt.text.strip():
            raise ModelError("a callable gets one text: no system prompt, no earlier turns, no empty prompt")
        return messages_of(prompt, takes_system=False)[0]["content"]

    def used(self) -> Mapping[str, float | None]:
        """Return the calls of this start; nobody knows what they cost."""
        return {"calls": self._calls, "cost": None} if self._calls else {}

    def close(self) -> None:
        """End the loop in which an async callable runs."""
        self._thread.close()

    def plan_samples(self, requests: Sequence[SampleRequest]) -> Plan[SampleRequest]:
        """Cut the batches in the order of the requests; tokens are estimated from lengths."""
        prompt_tokens = sum(len(self.rendered(request.prompt)) // 4 for request in requests)
        new_tokens = sum(request.sampling.max_new_tokens for request in requests)
        batches = cut(requests, self.batch_size)
        return Plan(batches, len(batches), prompt_tokens, new_tokens_max=new_tokens, cost_max=None)

    def estimate_seconds(self, n_new_tokens: int) -> float | None:
        """Return None: nobody knows how fast a callable is."""
        return None if n_new_tokens else 0.0

    def generate(self, batches: Iterable[Sequence[SampleRequest]]) -> Iterator[Sequence[Sample | Failed]]:
        """Answer batches as they come, some at once where the callable is async."""
        # Cut anew: a sampled cell hands over its own samples alone, and a call takes those of several cells.
        waiting = chain.from_iterable(batches)
        full = iter(lambda: tuple(islice(waiting, self.batch_size)), ())
        if any(map(inspect.iscoroutinefunction, (self.fn, type(self.fn).__call__))):
            yield from self._thread.stream(full, self._awaited, AT_ONCE)
        for batch in full:  # in the caller's thread, so that Ctrl-C reaches the callable
            texts = self._call(batch)
            later = inspect.isawaitable(texts)
            yield self._thread.run(self._awaited(batch, texts)) if later else self._drawn(batch, texts)

    def _call(self, batch: Sequence[SampleRequest]) -> object:
        self._calls += 1
        try:
            return self.fn([self.rendered(request.prompt) for request in batch])
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            return error

    async def _awaited(self, batch: Sequence[SampleRequest], texts: Any = None) -> list[Sample | Failed]:
        texts = texts or self._call(batch)
        try:
            texts = await texts if inspect.isawaitable(texts) else texts
        # A callable that cancels itself is answered too: its reader would wait for ever.
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            texts = error
        return self._drawn(batch, texts)

    def _drawn(self, batch: Sequence[SampleRequest], texts: object) -> list[Sample | Failed]:
        """Take what came of a call: a text for each prompt, or why there is none."""
        why, given = "", texts if isinstance(texts, list | tuple) else ()
        if isinstance(texts, BaseException):
            why = f"fn raised {type(texts).__name__}: {reason_of(texts)}"
        elif len(given) != len(batch):  # which prompts they answer nobody knows
            what = "not a list of texts" if given == () else f"{count(len(given), 'text')} for {len(batch)}"
            why = f"fn returned {type(texts).__name__}: {what}"
        answers, answered = list[Sample | Failed](), answered_now(self.identity.spec, None, None)
        for request, text in zip(batch, [None] * len(batch) if why else given, strict=True):
            if isinstance(text, str):  # not told the seed, so no row claims that it was used
                rendered = self.rendered(request.prompt)
                answers.append(parted(Sample(request.key, rendered, str(text), "stop", answered, False)))
            else:
                answers.append(Failed(request.key, why or f"fn gave {type(text).__name__} for a text"))
        failed = [answer.reason for answer in answers if isinstance(answer, Failed)]
        self._failed_in_a_row = self._failed_in_a_row + 1 if len(failed) == len(batch) else 0
        if self._failed_in_a_row >= FAILED_IN_A_ROW:
            raise AskingStopped(f"{FAILED_IN_A_ROW} calls in a row gave no text ({failed[0]})")
        return answers
