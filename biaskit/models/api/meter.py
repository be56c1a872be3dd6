"""What was asked and what it cost: every request reserves its highest cost before it is sent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from biaskit.errors import AskingStopped
from biaskit.models.api.prices import Price
from biaskit.models.options import Account


@dataclass(slots=True)
class Spending:
    """Counts of one model, in this start and before it; USD."""

    calls: int = 0
    retries: int = 0  # of the calls, those that repeated one
    prompt_tokens: int = 0
    new_tokens: int = 0
    cost: float = 0.0  # as the server's own counts give it
    cost_unsure: float = 0.0  # of requests whose answer was lost: they may have been billed


@dataclass(slots=True)
class Purse:
    """What all models of a run have spent together, below its cap; USD, lost answers included."""

    before: float = 0.0  # in earlier starts
    now: float = 0.0  # in this one, with what is put aside for requests that are out


class Meter:
    """Adds up, and keeps the sum of what is spent and what is still out below the cap.

    Lives in one event loop. `price` None: unknown, and then there can be no cap. The account's promise tells
    what a killed process may have spent.
    """

    STEPS = 50
    """Parts of the cap that are promised at a time: each is a write to the disk, and a kill may lose one."""

    def __init__(
        self,
        price: Price | None,
        cap: float | None,
        account: Account = Account(),
        *,
        purse: Purse | None = None,
    ) -> None:
        self.price = price
        self.cap = cap
        self.spending = Spending()
        self._purse = purse or Purse()
        self._purse.before = max(self._purse.before, account.spent)
        self._promise = account.promise
        self._promised = 0.0
        self._reserved = 0.0
        self._out = 0  # requests; a sum of amounts need not come back to exactly 0
        self._given_back = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def committed(self) -> float:
        """The most that may have been spent so far, of earlier starts and other models too."""
        return self._purse.before + self._purse.now

    async def reserve(self, prompt_tokens: int, new_tokens: int) -> float:
        """Put a request's highest cost aside; waits for refunds, and stops where none can come."""
        most = self.price.cost(prompt_tokens, new_tokens) if self.price else 0.0
        while self.cap is not None and self.committed + most > self.cap:
            if not self._out:
                raise AskingStopped(
                    f"--max-cost {self.cap:g} USD: {self.committed:.4f} are spent and the next request may"
                    f" cost {most:.4f}. Raise --max-cost and give the same command again to go on"
                )
            if self._loop is not asyncio.get_running_loop():  # an event belongs to one loop
                self._loop, self._given_back = asyncio.get_running_loop(), asyncio.Event()
            self._given_back.clear()
            await self._given_back.wait()
        self._out += 1
        self._reserved += most
        self._purse.now += most
        own = self.spending.cost + self.spending.cost_unsure + self._reserved
        if self.cap is not None and self._promise is not None and own > self._promised:
            self._promised = min(own + self.cap / self.STEPS, own + self.cap - self.committed)
            self._promise(self._promised)
        return most

    def settle(self, reserved: float, used: tuple[int, int] | None, *, billed: bool) -> None:
        """Replace a reservation by what the server says, or keep it where an answer was lost."""
        self._out -= 1
        self._reserved -= reserved
        self._purse.now -= reserved
        if used is not None:
            cost = self.price.cost(*used) if self.price else 0.0
            self.spending.prompt_tokens += used[0]
            self.spending.new_tokens += used[1]
            self.spending.cost += cost
            self._purse.now += cost
        elif billed:
            self.spending.cost_unsure += reserved
            self._purse.now += reserved
        self._given_back.set()
