"""Whether a server draws at all: one that takes a temperature may give its likeliest text all the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

TOLD: Mapping[str, str] = {"generation_config": '{"do_sample": true, "top_k": 0}'}
"""What tells `transformers serve` to draw; else a model's generation_config.json decides, and few say so."""
LONG = 40
"""Characters from which one text after several seeds is no chance."""

Ask = Callable[[int, Mapping[str, str]], Awaitable[str | Exception]]
"""The text for a seed at temperature 1, with more settings."""


async def how_it_draws(first: Sequence[str], ask: Ask) -> tuple[Mapping[str, str] | None, str] | None:
    """None where nothing is wrong; else what makes it draw (empty: nothing, None: unknown) and what was seen.

    `first`: texts that were given to seed 1. Three seeds that give one long text are no draws.
    """
    if len(set(first)) != 1 or len(first[0]) <= LONG:
        return None

    async def text(seed: int, more: Mapping[str, str]) -> str | Exception:
        found = await ask(seed, more)
        return found if isinstance(found, str) else await ask(seed, more)  # it may have been busy

    for seed in (2, 3):
        if isinstance(found := await text(seed, {}), Exception):
            return None, f"not known: {found}"
        if found != first[0]:
            return None
    told = [await text(seed, TOLD) for seed in (1, 2)]
    seen = "three seeds at temperature 1 give one text"
    if all(isinstance(text, str) for text in told) and told[0] != told[1]:
        return TOLD, f"only when told to in generation_config: else {seen}"
    return {}, f"{seen}: it takes the most probable tokens whatever is asked"
