"""The most probable tokens after the prompts, over many cells (methods/probabilities#next-tokens)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from biaskit.common.foreign import visible
from biaskit.measures.probe.contrasts import arm_of
from biaskit.records import ALL, PromptCell
from biaskit.runs.shares.cells import own_masses
from biaskit.stats.arms import Arm
from biaskit.tables.query import Row

SHOWN = 20
"""Tokens of a group in the table; those that begin a target word come on top."""
ROUNDING = 1e-5
"""The part of a token's probability that rounding may leave beyond its words: rows hold six decimals."""
UNIT = 2.0**-60
"""Probabilities are summed as whole multiples of it: the sum is the same in any order of the rows."""
UNSEEN = "a target word may go on from this token: top-k does not see how far"


@dataclass(frozen=True, slots=True)
class NextToken:
    """One token after one prompt."""

    text: str
    probability: float
    beyond: float | None  # the part of the probability that is no target word; None: not known
    begins: frozenset[str]  # gender groups of the target words that begin with it


@dataclass(frozen=True, slots=True)
class NextTokens:
    """The most probable tokens after one prompt, and how probable any other token can be."""

    tokens: tuple[NextToken, ...]
    unlisted: float


def next_tokens(row: Mapping[str, Any], word_boundary: str) -> NextTokens | None:
    """Read the tokens after a stored row's prompt; None where the row keeps none."""
    if row.get("listed_next"):
        tokens = tuple(_exact(row, word_boundary))
    elif row["estimator"] == "top-k" and row["listed"][""]:
        tokens = tuple(_of_list(row))
    else:
        return None
    probabilities = [token.probability for token in tokens]
    return NextTokens(tokens, min(max(0.0, 1.0 - math.fsum(probabilities)), *probabilities))


def _exact(row: Mapping[str, Any], word_boundary: str) -> Iterator[NextToken]:
    """Yield the tokens of a row with points: each word's mass is known, so the rest of a token is no word."""
    peak, masses = own_masses(row["target_words"], word_boundary)
    masses_of: dict[int | None, list[float]] = {}  # first token of a word → masses of the words
    groups: dict[int | None, set[str]] = {}
    for target_word, mass in zip(row["target_words"], masses, strict=True):
        first = (target_word.get("token_ids") or [None])[0]
        masses_of.setdefault(first, []).append(mass * math.exp(peak) if mass else 0.0)
        groups.setdefault(first, set()).add(target_word["group"])
    for text, log_prob, token in row["listed_next"]:
        probability = math.exp(log_prob)
        beyond = probability - math.fsum(masses_of.get(token, ()))
        beyond = beyond if beyond > ROUNDING * probability else 0.0
        yield NextToken(text, probability, beyond, frozenset(groups.get(token, ())))


def _of_list(row: Mapping[str, Any]) -> Iterator[NextToken]:
    """Yield tokens of a server's list: how far one that only begins a target word goes on is not known."""
    words: dict[str, set[str]] = {}  # token that is a whole target word → groups
    beginnings: dict[str, set[str]] = {}
    for target_word in row["target_words"]:
        tokens = target_word.get("tokens") or [target_word["text"]]
        (words if len(tokens) == 1 else beginnings).setdefault(tokens[0], set()).add(target_word["group"])
    for text, log_prob in row["listed"][""]:
        probability = math.exp(log_prob)
        begins = frozenset(words.get(text, set()) | beginnings.get(text, set()))
        beyond = None if text in beginnings else probability
        yield NextToken(text, probability, 0.0 if text in words else beyond, begins)


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

    n_prompts: int = 0
    unlisted: int = 0
    tokens: dict[str, _Sum] = field(default_factory=dict)

    def add(self, said: NextTokens) -> None:
        self.n_prompts += 1
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
        n = self.n_prompts
        ranked = sorted(self.tokens.items(), key=lambda item: (-item[1].probability, item[0]))
        for rank, (text, total) in enumerate(ranked, 1):
            if rank > SHOWN and not total.begins:
                continue
            # In the other cells it is no more probable than the last that is listed there.
            high = total.probability + self.unlisted - total.unlisted
            row = {"rank": rank, "token": as_shown(text), "probability": total.probability * UNIT / n}
            row |= {"probability_high": high * UNIT / n, "beyond": None, "n_prompts": total.n}
            row |= {"n_prompts_kept": n, "listed_group": " ".join(sorted(total.begins)), "reason": UNSEEN}
            if total.beyond is not None:
                row |= {"beyond": total.beyond * UNIT / n, "reason": ""}
            yield row


class SaidNext:
    """The tokens after the prompts of a run, cell by cell; memory grows with tokens, not with cells."""

    def __init__(self) -> None:
        self._blocks: dict[Arm, tuple[str, dict[str, _Group]]] = {}  # its estimator, its job groups

    def add(self, cell: PromptCell, row: Mapping[str, Any], word_boundary: str) -> None:
        """Take in the row of a cell, if it keeps tokens."""
        said = next_tokens(row, word_boundary)
        if said is None:
            return
        _, groups = self._blocks.setdefault(arm_of(cell), (str(row["estimator"]), {}))
        for name in (cell.job_group, ALL):
            groups.setdefault(name, _Group()).add(said)

    def rows(self, cells: Sequence[PromptCell]) -> list[Row]:
        """Make the rows of probe_next.csv, of a block all cells first; `cells`: every one in study order."""
        names = dict.fromkeys([ALL, *(cell.job_group for cell in cells)])
        rows: list[Row] = []
        for arm in dict.fromkeys(map(arm_of, cells)):
            estimator, groups = self._blocks.get(arm, ("", {}))
            for name in names:
                scope = {**arm._asdict(), "estimator": estimator, "job_group": name}
                if name in groups:
                    rows += [{**scope, **row} for row in groups[name].rows()]
        return rows


def as_shown(text: str) -> str:
    r"""Quote a token for a table, so that spaces are seen and no spreadsheet runs it; \n is a line feed."""
    return '"' + visible(text.replace("\\", "\\\\"), joiners=False, longest=60) + '"'
