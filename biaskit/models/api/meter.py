"""Counts and costs of requests: each reserves its highest cost before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from biaskit.errors import COST_CAP, AskingStopped
from biaskit.models.api.prices import Price
from biaskit.models.options import Account


@dataclass(slots=True)
class Spending:
    """Counts of one model in this start; costs in USD."""

    calls: int = 0
    retries: int = 0  # of the calls, those that repeated one
    prompt_tokens: int = 0
    new_tokens: int = 0
    cost: float = 0.0  # by the server's own counts
    cost_unsure: float = 0.0  # of requests whose answer was lost: they may have been billed


@dataclass(slots=True)
class Purse:
    """Spending of all models of a run together, kept below its cap; USD, lost answers included."""

    before: float = 0.0  # in earlier starts
    now: float = 0.0  # in this one, reservations of requests in flight included


class Meter:
    """Adds up costs, and keeps spending and reservations below the cap, in one event loop."""

    STEPS = 50
    """Parts of the cap, promised one at a time: each is a write to the disk, and a kill may lose one."""

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
        self._in_flight = 0  # requests; a sum of amounts need not return to exactly 0
        self._given_back = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def committed(self) -> float:
        """The most USD that may have been spent so far, earlier starts and other models included."""
        return self._purse.before + self._purse.now

    def used(self, *, billed_by_others: bool = False) -> Mapping[str, float | None]:
        """Return the counts for usage.json; the cost is None, never 0, if unknown or billed by others."""
        free = self.price is not None and not (self.price.input or self.price.output)
        if free or (self.price is not None and not billed_by_others):
            return asdict(self.spending)
        return {**asdict(self.spending), "cost": None, "cost_unsure": None}

    async def reserve(self, prompt_tokens: int, new_tokens: int) -> float:
        """Reserve a request's highest cost; waits for refunds. Raises `AskingStopped` if none can come."""
        most = self.price.cost(prompt_tokens, new_tokens) if self.price else 0.0
        while self.cap is not None and self.committed + most > self.cap:
            if not self._in_flight:
                raise AskingStopped(
                    f"{COST_CAP} {self.cap:g} USD: {self.committed:.4f} are spent and the next request may"
                    f" cost {most:.4f}. Raise --max-cost and give the same command again to go on"
                )
            if self._loop is not asyncio.get_running_loop():  # an event belongs to one loop
                self._loop, self._given_back = asyncio.get_running_loop(), asyncio.Event()
            self._given_back.clear()
            await self._given_back.wait()
        self._in_flight += 1
        self._reserved += most
        self._purse.now += most
        by_model = self.spending.cost + self.spending.cost_unsure + self._reserved
        if self.cap is not None and self._promise is not None and by_model > self._promised:
            self._promised = min(by_model + self.cap / self.STEPS, by_model + self.cap - self.committed)
            self._promise(self._promised)
        return most

    def settle(self, reserved: float, used: tuple[int, int] | None, *, billed: bool) -> None:
        """Replace a reservation by the server's counts, or keep it as `cost_unsure` if an answer was lost."""
        self._in_flight -= 1
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
