"""Puts some forty cheap questions to an endpoint, and believes nothing that was not measured."""

from __future__ import annotations

from dataclasses import replace

from biaskit.errors import AskingStopped, ModelError
from biaskit.models.api.capabilities import Capabilities
from biaskit.models.api.connection import Connection
from biaskit.models.api.controller import Controller, GaveUp
from biaskit.models.api.door_checks import DoorChecks
from biaskit.models.api.probability_checks import ProbabilityChecks
from biaskit.models.api.questions import CHATS, COMPLETIONS
from biaskit.models.api.silent_checks import SilentChecks
from biaskit.models.api.trouble import Refused


def measure(connection: Connection, *, scores: bool) -> Capabilities:
    """What an endpoint can do for texts and, with `scores`, for probabilities.

    Raises `ModelError` where it does not answer, refuses the key, or answers with nothing usable.
    """
    where = f"{connection.endpoint.label} at {connection.endpoint.hosts[0].shown}"
    questions = CapabilityChecks(connection)
    try:
        found = connection.run(lambda controller: questions.put(controller, scores=scores))
    except (AskingStopped, GaveUp, Refused) as error:
        said = str(error)
        raise ModelError(f"{where}: {said}{'' if said.endswith('?') else '.'}") from None
    if not found.completions and not found.chat:
        why = "; ".join(f"{name}: {text}" for name, text in found.problems.items())
        raise ModelError(f"{where} answers neither way ({why}).")
    return found


class CapabilityChecks(DoorChecks, SilentChecks, ProbabilityChecks):
    """The questions in their order; each writes into `found` what it learnt."""

    async def put(self, controller: Controller, *, scores: bool) -> Capabilities:
        """Ask everything that is needed."""
        self.controller = controller
        await self._model_list()
        await self._software()
        await self._door(CHATS)
        await self._door(COMPLETIONS)
        await self._draws()
        if self.found.chat:
            await self._system_role()
        if self.found.completions or self.found.chat:
            path = COMPLETIONS if self.found.completions else CHATS
            await self._sizes(path)
            await self._speed(path)
            await self._texts_apart()
        if scores and self.found.completions:
            listing = await self._listing(COMPLETIONS)
            await self._selected(listing)
            await self._echo(listing)
            await self._several_prompts(listing)
            await self._mixed(listing)
            if listing:
                await self._penalties(listing)
                await self._prefix_cache()
        if scores and self.found.chat:
            await self._prefill()
            await self._listing(CHATS)
        self.found = replace(
            self.found,
            refused=tuple(sorted(set().union(*self.refused.values()))),
            neutral=dict(self.neutral),
            unique_ids=len(self.ids) > 1 and all(len(asked) == 1 for asked in self.ids.values()),
            scored=scores,
        )
        if self.neutral:
            shown = ", ".join(f"{name} {value}" for name, value in self.neutral.items())
            self.learn("settings of the server's own, switched off", shown)
        if self.found.answered_by and self.found.answered_by != self.model:
            self.learn("answers as", self.found.answered_by)
        return self.found
