"""Prompts of stored rows beside today's: rows that answer another prompt than a model now gets are named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from biaskit.errors import BiaskitError, ModelError
from biaskit.foreign import visible
from biaskit.models.base import Model
from biaskit.records import Prompt
from biaskit.runs.store import read_rows, rows_file

Row = Mapping[str, Any]

_PLACE = (
    *("bias_type", "template_id", "job", "occupation", "specified_gender"),
    *("instruction_id", "setting", "prompt_form"),
)
_NAMED = 3


class EarlierPrompts:
    """What a model was asked before it became another one, by what was asked.

    Its rows are not used, since their keys hold the model that it was; a chat template that says something
    else, or another date, shows in the prompts.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._before: dict[tuple[object, ...], set[int]] = {}
        self._changed: dict[str, None] = {}  # in order, each once
        self._readable = True

    def add(self, row: Row) -> None:
        """A stored row under the model's label."""
        if self._readable and isinstance(row.get("prompt"), str):
            try:
                self._before.setdefault(_place(row), set()).add(hash(row["prompt"]))
            except TypeError:
                self.give_up()

    def give_up(self) -> None:
        """Compare nothing: what cannot be read is said by whoever needs the rows."""
        self._readable, self._before = False, {}

    def compare(self, rows: Iterable[Row]) -> None:
        """Hold new rows of the model against those."""
        for row in rows:
            before = self._before.get(_place(row))
            if before and hash(row["prompt"]) not in before:
                self._changed[_named(row)] = None

    def notes(self) -> list[str]:
        """A sentence where a prompt is another one."""
        if not self._changed:
            return []
        named = _listed(self._changed)
        return [visible(f"{self._label}: earlier rows that answer other prompts than today's: {named}.")]


def earlier_prompts(run: Path, engine: str, labels: Iterable[str]) -> dict[str, EarlierPrompts]:
    """Those of each of these labels; the rows are read once, however many labels there are."""
    found = {label: EarlierPrompts(label) for label in labels}
    file = rows_file(run, engine)
    try:
        for row in read_rows(file, skip_bad=True) if found and file.is_file() else ():
            label = row.get("model")
            if isinstance(label, str) and label in found:
                found[label].add(row)
    except (BiaskitError, OSError):
        for earlier in found.values():
            earlier.give_up()
    return found


class SamePrompts:
    """Rows under a key of today whose prompt, as it was sent, must be the one that the model gets today.

    A key holds a prompt before it goes through a chat template. Whatever renders that, a library of another
    version above all, may make something else of it under the same key.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._label = model.identity.label
        self._others: dict[str, dict[str, None]] = {}  # where they stand → what they asked

    def holds(self, row: Row, prompt: Prompt, where: str = "") -> bool:
        """Whether a row answers today's prompt; one that does not is kept in mind. Raises `ModelError`."""
        if row.get("prompt") == self._model.rendered(prompt):
            return True
        self._others.setdefault(where, {})[_named(row)] = None
        return False

    def check(self) -> None:
        """Raise `ModelError` where a run's own rows answer other prompts: new ones would be mixed in."""
        if own := self._others.get(""):
            raise ModelError(
                visible(
                    f"{self._label}: stored rows answer other prompts than the model gets today, though model"
                    f" and study are the same: {_listed(own)}. Its chat template comes out otherwise (another"
                    " version of a library?). Restore that, or ask in a new folder by --out."
                )
            )

    def notes(self) -> list[str]:
        """A sentence for each other run that has such rows: they are not taken over."""
        return [
            visible(
                f"{self._label}: rows of {where} answer other prompts than today's and were not taken over:"
                f" {_listed(asked)}."
            )
            for where, asked in self._others.items()
            if where
        ]


def _listed(asked: Mapping[str, None]) -> str:
    more = f"; and {len(asked) - _NAMED} more" if len(asked) > _NAMED else ""
    return "; ".join([*asked][:_NAMED]) + more


def _place(row: Row) -> tuple[object, ...]:
    return tuple(row.get(name) for name in _PLACE)


def _named(row: Row) -> str:
    """What a row asked, as a person finds it."""
    template = " ".join(str(part) for part in (row.get("bias_type"), "template", row["template_id"]) if part)
    asked = [template, str(row.get("job", row.get("occupation")))]
    asked += [str(row["specified_gender"])] if row.get("specified_gender") else []
    asked += [f"instruction {row['instruction_id']}"] if row.get("instruction_id") else []
    asked += [str(row["setting"])] if row.get("setting") not in (None, "plain") else []
    return ", ".join(asked)
