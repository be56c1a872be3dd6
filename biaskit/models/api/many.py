"""Several prompts in one call: each choice is judged for itself, and asked again alone where it is bad."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from biaskit.models.api.answers import AnswerChoice, Replays, answered, choices, read_choice
from biaskit.models.api.controller import Controller, GaveUp
from biaskit.models.api.trouble import BadAnswer, Refused
from biaskit.models.api.wire import Call, Reply, inside
from biaskit.records import Answered

Item = TypeVar("Item")
T = TypeVar("T")
Trouble = BadAnswer | GaveUp | Refused
"""Why one prompt has no answer; the others of its call have theirs."""
TROUBLE = (BadAnswer, GaveUp, Refused)


async def ask_many(
    controller: Controller,
    items: Sequence[Item],
    call: Callable[[Sequence[Item]], Call],
    read: Callable[[AnswerChoice, Item, bool], T],
    *,
    replays: Replays,
    size: Callable[[T, Item], int],
    patience: float = 0.0,
    seconds: float | None = None,
) -> list[tuple[T, Answered] | Trouble]:
    """An answer, or why there is none, for each item, from one call of as many prompts as there are items.

    `read` is told whether the call has several prompts. A choice that is missing, stands there twice or is
    not what `read` can believe fails for its own item, which is asked again alone. A call that is refused,
    or has no answer after all attempts, is asked again in halves: it may be one prompt, or their number.
    `size`: tokens of a prompt, which are its part of a bill of several. A call has the time of its kind, at
    least `patience`, or exactly `seconds`. Raises `AskingStopped`.
    """
    if not items:
        return []

    async def asking(some: Sequence[Item]) -> list[tuple[T, Answered] | Trouble]:
        return await ask_many(
            *(controller, some, call, read), replays=replays, size=size, patience=patience, seconds=seconds
        )

    reading = partial(_read, items=items, read=read, replays=replays, size=size)
    try:
        whole = call(items)
        found = await controller.ask(whole, reading, seconds=seconds or max(patience, whole.seconds))
    except (GaveUp, Refused) as trouble:
        if len(items) == 1 or (isinstance(trouble, GaveUp) and not trouble.reached):
            return [trouble for _ in items]
        middle = len(items) // 2
        halves = await gather_all([asking(items[:middle]), asking(items[middle:])])
        return [one for half in halves for one in half]
    bad = [place for place, one in enumerate(found) if isinstance(one, BadAnswer)]
    again = await gather_all([asking([items[place]]) for place in bad])
    for place, [answer] in zip(bad, again, strict=True):
        found[place] = answer
    return found


def _read(
    reply: Reply,
    items: Sequence[Item],
    read: Callable[[AnswerChoice, Item, bool], T],
    replays: Replays,
    size: Callable[[T, Item], int],
) -> list[tuple[T, Answered] | Trouble]:
    """What each choice says. Raises `BadAnswer` where none can be believed: then the call is repeated."""
    alone = len(items) == 1
    who = answered(reply)
    found: list[tuple[T, Answered] | Trouble] = []
    trouble: BadAnswer | None = None
    for place, item in enumerate(items):
        try:
            choice = choices(reply, 1)[0] if alone else _choice_at(reply, place)
            beside = inside(reply.data, "prompt", place)  # so Together echoes
            choice = replace(choice, prompt=beside if isinstance(beside, Mapping) else None)
            value = read(choice, item, not alone)
            billed = not alone and who.prompt_tokens is not None
            own = replace(who, prompt_tokens=size(value, item), new_tokens=1) if billed else who
            found.append((value, own))
        except BadAnswer as bad:
            found.append(trouble := bad)
    good = {place: one[0] for place, one in enumerate(found) if isinstance(one, tuple)}
    if not good and trouble is not None:
        raise trouble
    replays.check(reply, repr([items[place] for place in good]), [repr(one) for one in good.values()])
    return found


def _choice_at(reply: Reply, place: int) -> AnswerChoice:
    """The one choice that says it is the answer to the prompt at `place`."""
    listed = reply.data.get("choices")
    if not isinstance(listed, list) or not listed:
        raise BadAnswer("the answer has no choices")
    named = [data for data in listed if isinstance(data, Mapping) and data.get("index") == place]
    if not named:
        raise BadAnswer("the answer to one of the prompts is missing")
    if len(named) > 1:
        raise BadAnswer("two choices with the number of one prompt")
    return read_choice(place, named[0])


async def gather_all(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Every result in order; where one fails, the others are not waited for."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        raise
