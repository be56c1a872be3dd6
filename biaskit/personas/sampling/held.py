"""Stored texts beside the series of today: whose gender each has, where they stand, whether they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biaskit.personas.sampling.design import DrawSeries, PersonasDesign
from biaskit.personas.sampling.drawn import Drawn, Scope, scope_of
from biaskit.personas.texts.association import associate_answer
from biaskit.personas.texts.documents import why_not
from biaskit.runs.prompts import SamePrompts
from biaskit.runs.rows import lines_under
from biaskit.runs.store import NAMES_MODEL, ModelSpans, Reading, read_rows, rows_file


@dataclass(slots=True)
class StoredTexts:
    """What is known of a run's stored texts; the texts themselves are not kept."""

    genders: dict[str, str | None] = field(default_factory=dict)  # key → associated gender
    drawn: Drawn = field(default_factory=Drawn)
    spans: ModelSpans = field(default_factory=lambda: ModelSpans(NAMES_MODEL["personas"]))  # by label


def stored_texts(run: Path, design: PersonasDesign, *, skip_bad: bool) -> StoredTexts:
    """Look at every stored text once, whichever model's it is.

    A row that is left out as unfit is nobody's text, and its draw is not asked again: of two rows with one
    key the first counts, so an answer would be paid for at every start and never read.
    """
    path, found, reading = rows_file(run, "personas"), StoredTexts(), Reading()
    if not path.exists():
        return found
    for row in read_rows(path, skip_bad=skip_bad, reading=reading):
        if why := why_not(row):
            reading.refuse(path, why, skip_bad=skip_bad)
            found.genders[row["key"]] = None
            continue
        of_text = associate_answer(row["text"], row["finish_reason"], honorifics=design.study.honorifics)
        found.genders[row["key"]] = of_text.gender
        found.drawn.add(row)
        found.spans.add(row, reading.start, reading.good_end)
    return found


@dataclass(frozen=True, slots=True)
class OwnRows:
    """How a model's own rows are told from those of others: by their keys.

    No column says it: a label may have been another model's before, and a model may have had another label.
    """

    labels: tuple[str, ...]  # under which they most likely stand: the model's, and others it has had
    series_of: Mapping[Scope, DrawSeries]
    keys_of: Callable[[DrawSeries], Callable[[int], str]]
    """From a series to the keys of its draws."""

    def keys_in(self, drawn: Drawn) -> Iterator[str]:
        """The key that each draw of some rows has, or would have, for this model."""
        return drawn.keys(self.series_of, self.keys_of)

    def hold(self, run: Path, stored: StoredTexts, same: SamePrompts, *, skip_bad: bool) -> None:
        """Hold them against the model's prompts. Raises `ModelError` where one is another.

        Those under its labels are read where they lie; all are gone through only where some are elsewhere.
        """
        path = rows_file(run, "personas")
        own = {key for key in self.keys_in(stored.drawn) if key in stored.genders}
        for label in self.labels:
            own -= self._held(stored.spans.rows(path, label, skip_bad=skip_bad), same)
            if not own:
                break
        else:
            self._held(read_rows(path, skip_bad=skip_bad, wanted=lines_under(own)), same)
        same.check()

    def _held(self, rows: Iterable[Mapping[str, Any]], same: SamePrompts) -> set[str]:
        """The keys of those rows that are the model's, each held."""
        held: set[str] = set()
        for row in rows:
            with suppress(LookupError, TypeError):  # not asked here, or no label where one belongs
                series = self.series_of[scope_of(row)]
                if self.keys_of(series)(row["draw"]) == row["key"]:
                    same.holds(row, series.prompt)
                    held.add(row["key"])
        return held
