"""What does a model say next, listed or not? The most probable tokens after the prompts, over many cells.

See docs/methods.md#next-tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from biaskit.common.foreign import visible
from biaskit.probe.contrasts import arm_of
from biaskit.probe.shares.cells import own_masses
from biaskit.records import Cell
from biaskit.report.next_tokens import EVERY_GROUP
from biaskit.stats.arms import Arm
from biaskit.stats.contrasts import Row

SHOWN = 20
"""Tokens of a group in the table; those that begin a listed word come on top."""
ROUNDING = 1e-5
"""Part of a token's probability within which its listed words are all of it: rows hold six decimals."""
UNIT = 2.0**-60
"""Sums are of whole numbers of it: the same whatever order the rows lie in."""
UNSEEN = "a listed word may go on from this token: top-k does not see how far"


@dataclass(frozen=True, slots=True)
class NextToken:
    """One token after one prompt."""

    text: str
    probability: float
    beyond: float | None  # of it, what is no listed word; None: not known
    begins: frozenset[str]  # gender groups of the listed words that begin with it


@dataclass(frozen=True, slots=True)
class NextTokens:
    """The most probable tokens after one prompt, and how probable one can be that is not among them."""

    tokens: tuple[NextToken, ...]
    unlisted: float


def next_tokens(row: Mapping[str, Any], word_boundary: str) -> NextTokens | None:
    """What a stored row says of the tokens after its prompt; None where it keeps none."""
    if row.get("listed_next"):
        tokens = tuple(_exact(row, word_boundary))
    elif row["estimator"] == "top-k" and row["listed"][""]:
        tokens = tuple(_of_list(row))
    else:
        return None
    rest = max(0.0, 1.0 - math.fsum(one.probability for one in tokens))
    return NextTokens(tokens, min(rest, min(one.probability for one in tokens)))


def _exact(row: Mapping[str, Any], word_boundary: str) -> Iterator[NextToken]:
    """Every listed word's tokens and mass are known: what is left of a token is no listed word."""
    peak, own = own_masses(row["expressions"], word_boundary)
    through: dict[int | None, list[float]] = {}
    groups: dict[int | None, set[str]] = {}
    for expression, mass in zip(row["expressions"], own, strict=True):
        first = (expression.get("token_ids") or [None])[0]
        through.setdefault(first, []).append(mass * math.exp(peak) if mass else 0.0)
        groups.setdefault(first, set()).add(expression["group"])
    for text, log_prob, token in row["listed_next"]:
        probability = math.exp(log_prob)
        beyond = probability - math.fsum(through.get(token, ()))
        beyond = beyond if beyond > ROUNDING * probability else 0.0
        yield NextToken(text, probability, beyond, frozenset(groups.get(token, ())))


def _of_list(row: Mapping[str, Any]) -> Iterator[NextToken]:
    """A server's list: a token that is a whole listed word is nothing else; of a beginning nobody knows."""
    whole: dict[str, set[str]] = {}
    begun: dict[str, set[str]] = {}
    for expression in row["expressions"]:
        tokens = expression.get("tokens") or [expression["text"]]
        (whole if len(tokens) == 1 else begun).setdefault(tokens[0], set()).add(expression["group"])
    for text, log_prob in row["listed"][""]:
        probability = math.exp(log_prob)
        begins = frozenset(whole.get(text, set()) | begun.get(text, set()))
        beyond = 0.0 if text in whole else None if text in begun else probability
        yield NextToken(text, probability, beyond, begins)


@dataclass(slots=True)
class _Sum:
    """A token over cells, in units of `UNIT`."""

    probability: int = 0
    beyond: int | None = 0
    unlisted: int = 0  # what it could have been at most in these cells, had it not been listed
    n: int = 0
    begins: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Group:
    """The cells of a job group in a block."""

    n_cells: int = 0
    unlisted: int = 0
    tokens: dict[str, _Sum] = field(default_factory=dict)

    def add(self, said: NextTokens) -> None:
        self.n_cells += 1
        unlisted = round(said.unlisted / UNIT)
        self.unlisted += unlisted
        for token in said.tokens:
            total = self.tokens.setdefault(token.text, _Sum())
            total.n += 1
            total.probability += round(token.probability / UNIT)
            total.unlisted += unlisted
            total.begins |= token.begins
            if token.beyond is None or total.beyond is None:
                total.beyond = None
            else:
                total.beyond += round(token.beyond / UNIT)

    def rows(self) -> Iterator[Row]:
        n = self.n_cells
        ranked = sorted(self.tokens.items(), key=lambda item: (-item[1].probability, item[0]))
        for rank, (text, total) in enumerate(ranked, 1):
            if rank > SHOWN and not total.begins:
                continue
            yield {
                "rank": rank,
                "token": as_shown(text),
                "probability": total.probability * UNIT / n,
                # In the other cells it is no more probable than the last that is listed there.
                "probability_high": (total.probability + self.unlisted - total.unlisted) * UNIT / n,
                "beyond": None if total.beyond is None else total.beyond * UNIT / n,
                "n_cells": total.n,
                "n_cells_kept": n,
                "listed_group": " ".join(sorted(total.begins)),
                "reason": UNSEEN if total.beyond is None else "",
            }


class SaidNext:
    """The tokens after the prompts of a run, cell by cell; memory grows with tokens, not with cells."""

    def __init__(self) -> None:
        self._blocks: dict[Arm, tuple[str, dict[str, _Group]]] = {}  # its estimator, its job groups

    def add(self, cell: Cell, row: Mapping[str, Any], word_boundary: str) -> None:
        """Take in the row of a cell, if it keeps tokens."""
        said = next_tokens(row, word_boundary)
        if said is None:
            return
        _, groups = self._blocks.setdefault(arm_of(cell), (str(row["estimator"]), {}))
        for name in (cell.job_group, EVERY_GROUP):
            groups.setdefault(name, _Group()).add(said)

    def rows(self, cells: Sequence[Cell]) -> list[Row]:
        """Rows of probe_next.csv, of each block all cells first, then its job groups.

        `cells`: every cell in study order, which is the order of blocks and groups.
        """
        names = dict.fromkeys([EVERY_GROUP, *(cell.job_group for cell in cells)])
        made = []
        for arm in dict.fromkeys(map(arm_of, cells)):
            estimator, groups = self._blocks.get(arm, ("", {}))
            for name in (name for name in names if name in groups):
                scope = {**arm._asdict(), "estimator": estimator, "job_group": name}
                made += [{**scope, **row} for row in groups[name].rows()]
        return made


def as_shown(text: str) -> str:
    r"""A token in a table: in quotes, so that spaces are seen and nothing runs; \n for a line feed."""
    return '"' + visible(text.replace("\\", "\\\\"), joiners=False, longest=60) + '"'
