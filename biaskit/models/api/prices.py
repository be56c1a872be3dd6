"""Prices of tokens of API models, in a list with the page and the day of each; unknown is None."""

from __future__ import annotations

import re
from dataclasses import dataclass

from biaskit.corpora.rows import SourceLayout, read_list
from biaskit.corpora.sources import Filled, Label, ListEntry, Text, shown
from biaskit.errors import UsageError
from biaskit.models.api.endpoint import is_loopback

PRICES = "corpus:prices/prices.toml"  # users set a price with --price, not in a file of their own
_HIGHEST = 1e6  # USD per million: a whole dollar for a token
_LEAST = 1e-3  # below it a number is what one token costs, not a million; the cheapest known is 0.02


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float

    def cost(self, prompt_tokens: int, new_tokens: int) -> float:
        """Return the USD for so many tokens of prompts and of answers; thoughts count as answers."""
        return (self.input * prompt_tokens + self.output * new_tokens) / 1_000_000


class _Entry(ListEntry):
    host: Filled  # as in a URL, in lower case
    model: Label
    input: float
    output: float
    source: Filled
    date: Filled
    note: Text = ""


LAYOUT = SourceLayout("prices", "price", _Entry)


def find_price(host: str, model: str) -> Price | None:
    """Return the price of exactly this model at this host: 0 on loopback, None if unknown, no guess."""
    host = host.lower()
    if is_loopback(host):
        return Price(0.0, 0.0)
    for _, entry in read_list(PRICES, LAYOUT).entries:
        if (entry.host, entry.model) == (host, model):
            return Price(entry.input, entry.output)
    return None


def parse_price(text: str) -> Price:
    """Parse `--price IN,OUT`: USD per million tokens, `0,0` is free. Raises `UsageError` for another text."""
    parts = [part.strip() for part in text.split(",")]
    # Stricter than float(): no sign, no nan, no inf, no 1_000, no digits of other scripts.
    numbers = [part for part in parts if re.fullmatch(r"[0-9]+\.?[0-9]*|\.[0-9]+", part)]
    amounts = list(map(float, numbers))
    if len(numbers) != 2 or len(parts) != 2:
        why = ": write the USD per million tokens as IN,OUT, such as 0.15,0.60; 0,0 is free."
    elif max(amounts) > _HIGHEST:
        why = f": no million tokens cost over {_HIGHEST:,.0f} USD. Check the numbers."
    elif any(0 < amount < _LEAST for amount in amounts):
        why = " looks like a price per token. Give the USD per million tokens, such as 0.15,0.60."
    else:
        return Price(*amounts)
    raise UsageError(f"--price {shown(text)}{why}")
