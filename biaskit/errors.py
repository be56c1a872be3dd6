"""Every error that biaskit raises for a reason the user can act on."""

from __future__ import annotations

from collections.abc import Iterable

COST_CAP = "--max-cost"
"""Begins the message of an `AskingStopped` that more money would undo."""


class BiaskitError(Exception):
    """Says what the user can act on: what is wrong, where, and what to do.

    A command shows the message in one line and ends with `exit_code`.

    >>> try:
    ...     bk.load("nowhere")
    ... except bk.BiaskitError as error:
    ...     print(error)
    There is no folder nowhere. `biaskit runs` lists the runs of this folder.
    """

    exit_code = 1
    request_key = ""  # of the request that a model refused, where it was one (`models.base.naming`)


class UsageError(BiaskitError):
    """A user asked for something that does not exist or does not fit together."""

    exit_code = 2


class StudyError(UsageError):
    """A study file, one of its keys, or an option that sets one is wrong."""


class CorpusError(UsageError):
    """A list of items, templates, debiasing prompts or target words is wrong."""


class ModelError(BiaskitError):
    """A model cannot be found, loaded or trusted."""


class MissingExtraError(ModelError):
    """A package that an extra brings is missing; the message ends in the install line."""


class TokenizationError(ModelError):
    """A prompt and a target word do not meet at a token boundary of this model."""


class AskingStopped(ModelError):
    """A model is not asked any further though cells are missing; what is stored is analysed (exit 3 or 5)."""


class RunError(BiaskitError):
    """A run directory cannot be read, written or continued."""


class TableError(BiaskitError):
    """A public table does not have the columns or values its contract promises."""


class Interrupted(BiaskitError):
    """A user stopped the run; the message says what is kept and how to go on."""

    exit_code = 130


def nearest(word: object, known: Iterable[str]) -> str:
    """Return `" Did you mean 'x'?"`, or the empty string when nothing known is near."""
    from difflib import get_close_matches

    near = get_close_matches(str(word), list(map(str, known)), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""
