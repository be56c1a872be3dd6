"""How pairs are asked: a scorer of whole sentences, pairs without a row, from a row back to its request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from biaskit.common.plain import attributes
from biaskit.errors import ModelError
from biaskit.measures.pairs.design import FORMAT, PairsDesign
from biaskit.models.base import ContinuationScorer
from biaskit.models.entry import ModelEntry
from biaskit.models.options import ScoringOptions
from biaskit.models.spec import open_scorer
from biaskit.records import PromptFormat, Scored, ScoreRequest
from biaskit.runs.manifest import Manifest
from biaskit.runs.score_rows import fault as fault
from biaskit.runs.score_rows import row_of
from biaskit.runs.score_work import ScoreWork, as_asked, score_models
from biaskit.runs.session import Outcome, Session
from biaskit.runs.start import Open
from biaskit.runs.store import StoredRows, count_rows, rows_file

Json = dict[str, Any]
_SCOPE = ("item", "language", "stereotype", "direction")
"""Columns of a row that say which pair it is of."""


class PairWork(ScoreWork[None]):
    """One model's pairs: a request for each."""

    measurement = "pairs"

    def __init__(
        self, design: PairsDesign, scorer: ContinuationScorer, stored: StoredRows[None], session: Session[Any]
    ) -> None:
        fingerprint, estimator = scorer.identity.fingerprint, scorer.estimator_for(FORMAT).in_key()
        super().__init__(scorer, FORMAT, stored, design.requests(fingerprint, estimator, session.shard))
        self._pairs = [design.pairs[place] for place in session.shard.places(len(design.pairs))]

    @cached_property
    def _place_of(self) -> dict[str, int]:
        return {request.key: place for place, request in enumerate(self.requests)}

    def named(self, key: str) -> str:
        """Name the pair of a request."""
        return named(attributes(self._pairs[self._place_of[key]], _SCOPE))

    def row(self, answer: Scored) -> Json:
        """Make the row of pairs.jsonl for an answer."""
        place = self._place_of[answer.key]
        scope = {"model": self.label, **attributes(self._pairs[place], _SCOPE), "prompt_format": FORMAT}
        return row_of(answer, scope, self.requests[place].prompt, self.estimator)


def open_model(
    design: PairsDesign, spec: str, *, asked_as: ModelEntry | None = None, **how: Any
) -> ContinuationScorer:
    """Open a scorer; `asked_as`: a model's entry in a manifest, whose estimator is to be used again."""
    sentences = chain.from_iterable(pair.sentences.values() for pair in design.pairs)
    estimator = as_asked(asked_as) if asked_as else {"estimator": design.study.estimator}
    return open_scorer(
        spec, scoring=ScoringOptions(**estimator, longest=max(map(len, sentences)), next_tokens=0), **how
    )


def ask(design: PairsDesign, session: Session[ContinuationScorer]) -> Outcome:
    """Score every pair that has no row yet and store it; the same call goes on where it stopped."""
    stored: StoredRows[None] = StoredRows(lambda _: None, None)
    for note in design.notes:
        session.watcher.note(note)

    def formats_of(scorers: Mapping[str, ContinuationScorer]) -> dict[str, PromptFormat]:
        formats: dict[str, PromptFormat] = {}
        for label, scorer in scorers.items():
            try:
                scorer.estimator_for(FORMAT)
                formats[label] = FORMAT
            except ModelError as error:
                session.leave_out(label, ModelError(f"{label}: {error}"))
        return formats

    def work_of(scorer: ContinuationScorer, _: PromptFormat) -> PairWork:
        return PairWork(design, scorer, stored, session)

    return score_models(design, session, stored, formats_of, work_of)


def finder(
    manifest: Manifest, design: PairsDesign
) -> Callable[[Mapping[str, Any]], tuple[str, ScoreRequest] | None]:
    """From a stored row to the model and the request that it answers; None where the run has no such pair."""
    asked: dict[str, tuple[str, ScoreRequest]] = {}
    for label, entry in manifest.models.items():
        for request in design.requests(entry.fingerprint, entry.estimator_key):
            asked.setdefault(request.key, (label, request))
    return lambda row: asked.get(row["key"])


def named(row: Mapping[str, Any]) -> str:
    """Name what a row answers, for a message."""
    return f"pair {row['item']!r} {row['language']}".strip()


def what_is_open(run: Path, manifest: Manifest, design: PairsDesign, *, skip_bad: bool = False) -> Open:
    """Count the pairs of a stored run, over all its models, that lack a row."""
    stored: StoredRows[None] = StoredRows(lambda _: None, None)
    stored.read(rows_file(run, "pairs"), skip_bad=skip_bad)
    left = 0
    for entry in manifest.models.values():
        requests = design.requests(entry.fingerprint, entry.estimator_key, manifest.shard)
        left += sum(request.key not in stored.values for request in requests)
    return Open(left)


def progress(run: Path, manifest: Manifest, design: PairsDesign) -> tuple[int, int]:
    """Count the pairs that have a row, and those that a run plans."""
    planned = len(manifest.shard.places(len(design.pairs))) * len(manifest.models)
    return count_rows(rows_file(run, "pairs")), planned
