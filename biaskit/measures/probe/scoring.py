"""One model's cells as questions, their batches and rows, and the prompt format of each model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biaskit.errors import ModelError, StudyError
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.power import plan_sentence
from biaskit.measures.probe.prompts import scope_of_cell
from biaskit.measures.probe.requests import PlannedCells
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.base import ContinuationScorer
from biaskit.records import PROBE_FORMATS, Failed, PromptFormat, Scored
from biaskit.runs.sample_batches import SampleBatches
from biaskit.runs.score_rows import row_of
from biaskit.runs.score_work import BatchWork
from biaskit.runs.session import Session
from biaskit.runs.shards import Shard
from biaskit.runs.store import StoredRows

Json = dict[str, Any]
CHAT_FIRST: tuple[PromptFormat, ...] = ("chat-prefill", "raw", "chat-continue")


class CellWork(BatchWork):
    """One model's cells: a request for each, or one for each batch of samples."""

    measurement = "probe"

    def __init__(
        self,
        design: ProbeDesign,
        scorer: ContinuationScorer,
        prompt_format: PromptFormat,
        stored: StoredRows[int],
        shard: Shard,
        sample_batches: SampleBatches | None = None,
    ) -> None:
        identity, estimator = scorer.identity, scorer.estimator_for(prompt_format)
        self.cells = PlannedCells(
            design, identity.label, prompt_format, identity.fingerprint, estimator.in_key(), shard
        )
        most = design.study.max_samples_per_prompt
        super().__init__(scorer, prompt_format, stored, self.cells.requests, most, sample_batches)
        self.design = design
        self._places: dict[str, int] = {}  # key of a cell → its place

    def named(self, key: str) -> str:
        """The template and the job of a request."""
        for cell, request in zip(self.cells.cells, self.cells.requests, strict=True):
            for number in range(self.sample_batches.most):
                if self.sample_batches.request(request, number).key == key:
                    return f"{cell.bias_type} template {cell.template_id}, job {cell.job!r}"
        return ""

    def shows(self, session: Session[Any]) -> str:
        """Say which difference between groups of jobs the plan could show."""
        return plan_sentence(
            *(self.design, self.estimator.name, self.estimator.samples),
            of_demo=self.model.identity.spec == "demo-base",
            n_models=len(session.models),
        )

    def answers(self, session: Session[Any]) -> Iterator[Sequence[Scored | Failed]]:
        """The planned batches, and the batches that follow from their answers."""
        self._places = {request.key: place for place, request in enumerate(self.cells.requests)}
        yield from super().answers(session)

    def row(self, answer: Scored) -> Json:
        """A row of probe.jsonl."""
        key, number = self._open.place(answer.key)
        place = self._places[key]
        cell, prompt = self.cells.cells[place], self.cells.prompts[place]
        return {
            **row_of(answer, scope_of_cell(cell), prompt, self.estimator, number),
            "model_key": self.cells.model_key,
        }


def choose_formats(
    design: ProbeDesign, session: Session[ContinuationScorer], scorers: Mapping[str, ContinuationScorer]
) -> dict[str, PromptFormat]:
    """`auto`: the first format that every model can take; where there is none, each model its own first."""
    study = design.study
    system = bool(study.system_prompt) or study.debiasing_position == "system"
    if system and study.prompt_format == "raw":
        raise StudyError(
            "A raw prompt has no system role: leave out the system prompt, or --prompt-format raw."
        )
    if design.completes and (system or study.prompt_format not in ("auto", "raw") or design.dialogue):
        raise StudyError(
            "A template without a question is completed as plain text: --prompt-format raw, without a system"
            " prompt or a dialogue."
        )
    tunings = {scorer.identity.tuning for scorer in scorers.values()}
    # Chat models are asked as people use them, where no base model is beside them (methods/prompts#formats).
    usable = list(CHAT_FIRST if "instruct" in tunings and "base" not in tunings else PROBE_FORMATS)
    if system:
        usable.remove("raw")
    stated = "raw" if design.completes else study.prompt_format
    usable = usable if stated == "auto" else [stated]
    takes: dict[str, list[PromptFormat]] = {}
    for label, scorer in scorers.items():
        formats = [name for name in usable if name in scorer.identity.formats]
        if formats and (scorer.identity.takes_system or not system):
            takes[label] = formats
        else:
            session.leave_out(label, _no_format(scorer, study, system=system))
    common = usable
    for formats in takes.values():
        common = [name for name in common if name in formats]
    if takes and not common:
        session.outcome.notes.append("Prompt formats differ between the models: no test between them.")
    chosen = {label: common[0] if common else formats[0] for label, formats in takes.items()}
    for label, prompt_format in list(chosen.items()):
        name = scorers[label].estimator_for(prompt_format).name
        if study.word_boundary == "word" and name not in ("exact", "sampling"):
            # The others give tokens: they do not say whether a word ends after them.
            error = ModelError(
                f"{label}: word_boundary = word is not possible by {name}. Use --estimator sampling, or"
                " word_boundary = token."
            )
            session.leave_out(label, error)
            del chosen[label]
    return chosen


def _no_format(scorer: ContinuationScorer, study: ProbeStudy, *, system: bool) -> ModelError:
    """Why a model can take none of the formats that are left."""
    label = scorer.identity.label
    if scorer.identity.where == "api" and not (system and scorer.identity.formats):
        try:
            scorer.estimator_for("raw" if study.prompt_format == "auto" else study.prompt_format)
        except ModelError as error:
            return ModelError(f"{label}: {error}")
    why = "system prompt" if system else f"prompt format {study.prompt_format}"
    return ModelError(f"{label} takes no {why}: its chat template has no place for it, or it has none.")
