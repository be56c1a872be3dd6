"""An endpoint in use: its event loop, client and controller, from the first request to `close`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from biaskit.models.api.controller import Controller
from biaskit.models.api.endpoint import Endpoint
from biaskit.models.api.meter import Meter
from biaskit.models.api.offline import OfflineController
from biaskit.models.api.options import ApiOptions
from biaskit.models.api.prices import find_price
from biaskit.models.api.stream import LoopThread
from biaskit.models.api.wire import Client
from biaskit.models.options import Account

AT_HAND = 256  # jobs to begin ahead of the reader where no server is asked: nothing is waited for


class Connection(LoopThread):
    """Everything between a model of an API and the network; opened at its first use."""

    def __init__(self, endpoint: Endpoint, options: ApiOptions, account: Account = Account()) -> None:
        super().__init__()
        self.endpoint = endpoint
        self.options = options
        self.price = options.price or find_price(endpoint.host.name, endpoint.model)
        if options.offline is not None and options.price is None and self.price and self.price.input:
            self.price = None  # the table has prices of single requests, not of batches
        # A question about abilities is not worth minutes of patience, and a server still works on one
        # that timed out.
        attempts = min(3, options.policy.attempts)
        self._policy = replace(
            options.policy, at_once=4, attempts=attempts, attempts_at_answers=2, attempts_in_time=1
        )
        self._meter = Meter(self.price, options.max_cost, account, purse=options.purse)
        self._controller: Controller | OfflineController | None = None

    @property
    def controller(self) -> Controller | OfflineController:
        """Controller of the server, or of what replaces it."""
        if self._controller is None and self.options.offline is not None:
            self._controller = OfflineController(self.options.offline.exchange, self.endpoint)
        elif self._controller is None:
            client = Client(self.endpoint, self.options.transport)
            self._controller = Controller(
                client, self._meter, self._policy, self.options.note, self.endpoint.clean
            )
        return self._controller

    @property
    def ahead(self) -> int:
        """Jobs to begin before their answers are read."""
        return AT_HAND if self.options.offline is not None else 2 * self._policy.at_once + 4

    def begin_with(self, requests: int) -> None:
        """Set how many requests run at once, now that the server's speed is known."""
        self._policy = replace(self.options.policy, at_once=min(self.options.policy.at_once, requests))
        if isinstance(self._controller, Controller):
            self._controller.begin_again(self._policy)

    def used(self) -> Mapping[str, float | None]:
        """Return the counts for usage.json."""
        return self._meter.used(billed_by_others=self.options.offline is not None)

    def close(self) -> None:
        """Close the connections and the loop."""
        if isinstance(self._controller, Controller):
            self.run(self._controller.client.close())
        self._controller = None
        super().close()
