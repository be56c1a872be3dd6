"""How decisions are asked: prompts without a row, and from a row back to its request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import contains
from pathlib import Path
from typing import Any

from biaskit.errors import ModelError
from biaskit.measures.decisions.design import DecisionsDesign
from biaskit.measures.decisions.power import plan_sentence
from biaskit.models.base import ContinuationScorer
from biaskit.models.entry import ModelEntry
from biaskit.models.options import ScoringOptions
from biaskit.models.spec import is_api, open_scorer
from biaskit.records import PROBE_FORMATS, PromptFormat, Scored, ScoreRequest
from biaskit.runs.manifest import Manifest
from biaskit.runs.sample_batches import OpenCells, SampleBatches
from biaskit.runs.score_rows import fault as fault
from biaskit.runs.score_rows import row_of
from biaskit.runs.score_work import BatchWork, as_asked, matched_samples, prompts_begun, score_models
from biaskit.runs.session import Outcome, Session
from biaskit.runs.start import Open
from biaskit.runs.store import StoredRows, rows_file

CHAT_FIRST: tuple[PromptFormat, ...] = ("chat-prefill", "raw", "chat-continue")


class DecisionWork(BatchWork):
    """One model's decisions: a request for each prompt, or one for each batch of samples."""

    measurement = "decisions"

    def __init__(
        self,
        design: DecisionsDesign,
        scorer: ContinuationScorer,
        prompt_format: PromptFormat,
        stored: StoredRows[int],
        session: Session[Any],
    ) -> None:
        estimator = scorer.estimator_for(prompt_format)
        planned = design.requests(scorer.identity.fingerprint, estimator.in_key(), prompt_format)
        own = [planned[place] for place in session.shard.places(len(planned))]
        self.asked = {request.key: asked for asked, request in own}
        requests, most = [request for _, request in own], design.study.max_samples_per_prompt
        super().__init__(scorer, prompt_format, stored, requests, most)
        self.design = design

    def named(self, key: str) -> str:
        """Name the case and the person of a request."""
        return named(self.asked[key].scope) if key in self.asked else ""

    def shows(self, session: Session[Any]) -> str:
        """Say which gap the plan could show."""
        return plan_sentence(self.design, self.estimator.name, self.estimator.samples, len(session.models))

    def row(self, answer: Scored) -> dict[str, Any]:
        """Make the row of decisions.jsonl for an answer."""
        key, number = self._open.place(answer.key)
        asked = self.asked[key]
        scope = {"model": self.label, **asked.scope, "prompt_format": self.prompt_format}
        return row_of(answer, scope, asked.prompt(self.prompt_format), self.estimator, number) | {
            "first": key
        }


def open_model(
    design: DecisionsDesign, spec: str, *, asked_as: ModelEntry | None = None, **how: Any
) -> ContinuationScorer:
    """Open a scorer; `asked_as`: a model's entry in a manifest, whose estimator is to be used again."""
    study, words = design.study, [text for q in design.questions for _, text in q.answers]
    chosen: dict[str, Any] = {"estimator": study.estimator, "k": study.k, "samples": study.samples}
    if any(question.score for question in design.questions) and not is_api(spec):
        chosen["word_boundary"] = "word" if study.estimator != "top-k" else "token"  # "1" begins "10"
    if asked_as is not None:
        chosen |= as_asked(asked_as)
    scoring = ScoringOptions(**chosen, longest=max(map(len, words)))
    return open_scorer(spec, scoring=scoring, **how)


def ask(design: DecisionsDesign, session: Session[ContinuationScorer]) -> Outcome:
    """Score every prompt that has no row yet and store it; the same call goes on where it stopped."""
    stored: StoredRows[int] = StoredRows(matched_samples, 0)

    def formats_of(scorers: Mapping[str, ContinuationScorer]) -> dict[str, PromptFormat]:
        return _formats(design, session, scorers)

    def work_of(scorer: ContinuationScorer, prompt_format: PromptFormat) -> DecisionWork:
        return DecisionWork(design, scorer, prompt_format, stored, session)

    return score_models(design, session, stored, formats_of, work_of)


def _formats(
    design: DecisionsDesign, session: Session[ContinuationScorer], scorers: Mapping[str, ContinuationScorer]
) -> dict[str, PromptFormat]:
    """Choose the first format that all models take, else each model's own first; chat before raw."""
    stated, tunings = design.study.prompt_format, {scorer.identity.tuning for scorer in scorers.values()}
    usable: Sequence[PromptFormat] = PROBE_FORMATS if "base" in tunings else CHAT_FIRST
    if stated != "auto":
        usable = (stated,)
    takes: dict[str, list[PromptFormat]] = {}
    for label, scorer in scorers.items():
        if formats := [name for name in usable if name in scorer.identity.formats]:
            takes[label] = formats
        else:
            session.leave_out(label, ModelError(f"{label} takes no prompt format {stated}: use another."))
    common = [name for name in usable if all(map(contains, takes.values(), repeat(name)))]
    return {label: (common or formats)[0] for label, formats in takes.items()}


def finder(
    manifest: Manifest, design: DecisionsDesign
) -> Callable[[Mapping[str, Any]], tuple[str, ScoreRequest] | None] | None:
    """From a stored row to the model and the request that it answers; None of decisions at hand."""
    asked: dict[str, tuple[str, ScoreRequest, SampleBatches]] = {}
    for label, entry in manifest.models.items() if not manifest.imported else ():
        for _, request in design.planned(entry):
            asked.setdefault(request.key, (label, request, design.batches(entry)))

    def find(row: Mapping[str, Any]) -> tuple[str, ScoreRequest] | None:
        if row.get("first") not in asked:
            return None
        label, request, batches = asked[row["first"]]
        return label, batches.request(request, int(row.get("batch", 0)))

    return None if manifest.imported else find


def named(row: Mapping[str, Any]) -> str:
    """Name what a row answers, for a message."""
    return f"{row['question']} ({row['template_id']}), {row['case']}, {row['person']}"


def what_is_open(run: Path, manifest: Manifest, design: DecisionsDesign, *, skip_bad: bool = False) -> Open:
    """Count the prompts of a stored run, over all its models, that lack a row or a batch of samples."""
    stored = StoredRows(matched_samples, 0).read(rows_file(run, "decisions"), skip_bad=skip_bad)
    left = 0
    for entry in manifest.models.values():
        planned = design.planned(entry)
        own = [planned[place][1] for place in manifest.shard.places(len(planned))]
        left += OpenCells(own, design.batches(entry), stored.values).n_left
    return Open(left)


def progress(run: Path, manifest: Manifest, design: DecisionsDesign) -> tuple[int, int]:
    """Count the prompts of a run that were begun, and those that it plans; of a log its rows."""
    begun = prompts_begun(rows_file(run, "decisions"))
    planned = len(manifest.shard.places(len(design.asked))) * len(manifest.models)
    return begun, planned if manifest.imported is None else begun
