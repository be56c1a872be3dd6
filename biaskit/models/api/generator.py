"""Texts from an API: each sample once, whatever the server does (methods/texts#samples)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from biaskit.common.sequences import cut
from biaskit.errors import AskingStopped, ModelError
from biaskit.models.api.abilities import Abilities
from biaskit.models.api.answers import answered, choices
from biaskit.models.api.api_model import ApiModel
from biaskit.models.api.connection import Connection
from biaskit.models.api.trouble import Blocked, GaveUp, Refused
from biaskit.models.api.wire import Call, Reply
from biaskit.models.base import answered_now
from biaskit.models.thoughts import parted
from biaskit.records import Answered, Failed, Plan, Prompt, PromptFormat, Sample, SampleRequest, Sampling

CHOICES, SHORT_CHOICES, SHORT = 8, 20, 32
"""Most texts of one request, SHORT_CHOICES if of at most SHORT tokens: a lost answer loses all of them."""
LONG = 120  # characters from which equal texts of one answer are one sample sent twice


class ApiGenerator(ApiModel):
    """A model behind an OpenAI-compatible server as a `TextGenerator`."""

    def __init__(
        self,
        connection: Connection,
        abilities: Abilities,
        formats: tuple[PromptFormat, ...],
        batch_size: int | None,
    ) -> None:
        super().__init__(connection, abilities, formats)
        self._chosen = batch_size
        self._usual = CHOICES
        self._most = abilities.choices  # lowered if the server refuses so many
        self._asked_of_file: set[str] = set()  # keys of samples: a file has no second answer

    @property
    def batch_size(self) -> int:
        """Texts asked for in one request of the last plan: a resumed run must ask for as many."""
        return min(self._most, self._chosen or self._usual)

    def plan_samples(self, requests: Sequence[SampleRequest]) -> Plan[SampleRequest]:
        """Put as many samples of a prompt into a request as the server gives, cut alike whatever is there."""
        if requests:
            short = all(request.sampling.max_new_tokens <= SHORT for request in requests)
            self._usual = SHORT_CHOICES if short else CHOICES
        size = self.batch_size
        together: dict[tuple[Prompt, Sampling, int], list[SampleRequest]] = {}
        for request in sorted(requests, key=lambda request: request.number):
            group = (request.prompt, request.sampling, request.number // size)
            together.setdefault(group, []).append(request)
        batches = tuple(batch for listed in together.values() for batch in cut(listed, size))
        for _, sampling, _ in together:
            for name, value in (("temperature", sampling.temperature), ("top_p", sampling.top_p)):
                if name in self.abilities.refused and value != 1.0:
                    raise ModelError(
                        f"{self.identity.label} takes no {name}: its server answers it with an error. Set"
                        f" {name} to 1 (its default), or choose another model."
                    )
        tokens_of = {prompt: self._prompt_tokens(prompt) for prompt, _, _ in together}
        prompt_tokens = sum(tokens_of[batch[0].prompt] for batch in batches)
        new_tokens = sum(self._new_tokens(batch[0].sampling) * len(batch) for batch in batches)
        return self._plan(batches, len(batches), prompt_tokens, new_tokens)

    def _new_tokens(self, sampling: Sampling) -> int:
        room = self.connection.options.thought_tokens if self.abilities.reasoning else 0
        return max(sampling.max_new_tokens + room, self.abilities.fewest_tokens)

    def estimate_seconds(self, n_new_tokens: int) -> float | None:
        """Return None: how many requests a server bears at once shows only when it is asked."""
        return None if n_new_tokens else 0.0

    def generate(self, batches: Iterable[Sequence[SampleRequest]]) -> Iterator[Sequence[Sample | Failed]]:
        """Answer batches in whatever order their answers come."""
        return self.connection.stream(batches, self._sample, self.connection.ahead)

    async def _sample(self, batch: Sequence[SampleRequest]) -> list[Sample | Failed]:
        """Answer one batch; ask again for choices that the server left out, as many at a time as came."""
        if self.connection.options.offline is not None:
            if not self._asked_of_file.isdisjoint(keys := [request.key for request in batch]):
                return [Failed(key, "no answer was handed in") for key in keys]
            self._asked_of_file.update(keys)
        missing, done, most = list(batch), list[Sample | Failed](), len(batch)
        while missing:
            samples = missing[: min(most, self._most)]
            try:
                read = partial(self._read, batch=samples)
                answers = await self.connection.controller.ask(self._question(samples), read)
            except Blocked as block:  # the prompt, so all of its samples
                by = block.by or self.abilities.answered_by or self.connection.endpoint.model
                rendered, origin = self.rendered(batch[0].prompt), answered_now(by, None, None)
                taken = Sample("", rendered, "", "filter", origin, seeded=False)
                answers = [replace(taken, key=sample.key) for sample in samples]
            except (GaveUp, Refused, AskingStopped) as trouble:
                if isinstance(trouble, AskingStopped) and not done:
                    raise  # else keep the answers that came before the stop
                if isinstance(trouble, Refused) and len(samples) > 1:
                    unnamed = trouble.parameter is None and trouble.status in (400, 422)
                    if trouble.parameter == "n" or unnamed:  # it may answer when asked for fewer
                        most = len(samples) // 2
                        continue
                return [*done, *(Failed(request.key, str(trouble)) for request in missing)]
            if most < len(batch) and not done:
                self._most = min(self._most, most)  # the others need not find out for themselves
            answered_keys = {answer.key for answer in answers}
            done += answers
            missing = [request for request in missing if request.key not in answered_keys]
            most = min(most, len(answers))
        return done

    def _question(self, batch: Sequence[SampleRequest]) -> Call:
        """Build the request for some samples of one prompt."""
        first, n = batch[0], len(batch)
        sampling = first.sampling
        settings = {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": first.seed}
        name = f"{first.row}.{first.number}" if first.row else first.key
        if n > 1:
            settings["n"] = n
            name += f"x{n}"
        return self.call(first.prompt, self._new_tokens(sampling), settings, name=name, n=n)

    def _read(self, reply: Reply, batch: Sequence[SampleRequest]) -> list[Sample]:
        listed = choices(reply, len(batch))
        alone, origin, rendered = len(batch) == 1, answered(reply), self.rendered(batch[0].prompt)
        seeded = alone and "seed" not in self.abilities.refused
        samples: list[Sample] = []
        seen: set[str] = set()
        for choice in listed:
            if not alone and len(choice.text) >= LONG and choice.text in seen:
                continue  # the same text twice: this sample is asked for again, alone if need be
            seen.add(choice.text)
            prompt_tokens = None if samples else origin.prompt_tokens  # counted once, with the first text
            by = Answered(origin.by, origin.at, prompt_tokens, origin.new_tokens if alone else None)
            sample = parted(Sample(batch[choice.index].key, rendered, choice.text, choice.finish, by, seeded))
            if choice.thought or (not choice.text and choice.finish == "length"):  # parted, or kept back
                sample = replace(sample, raw="\n\n".join(filter(None, (choice.thought, choice.text))))
            samples.append(sample)
        return samples
