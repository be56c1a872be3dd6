"""The cells of the full product of templates, jobs, debiasing prompts and contexts, with their keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from biaskit.common.provenance import ROW_FORMAT, SCORING_VERSION, first_named, key_of
from biaskit.corpora.prompts import fill, join, raw_text
from biaskit.measures.probe.design import ProbeDesign, pairs_of
from biaskit.measures.probe.study import ProbeStudy
from biaskit.records import (
    NO_DEBIASING,
    DebiasingPrompt,
    Item,
    Prompt,
    PromptCell,
    PromptFormat,
    TargetWord,
    Template,
    as_record,
)

CELL = ("bias_type", "template_id", "job", "debiasing_id", "context", "prompt_format")
"""The columns of a row that name a cell of one model."""

Placed = tuple[PromptCell, Template, DebiasingPrompt | None, Item]
"""A cell, and the entries of the study's lists that its prompt is made of."""


def cell_at(design: ProbeDesign, place: int, model: str, prompt_format: PromptFormat) -> Placed:
    """Make the cell at a place of the product, from 0; jobs run fastest, templates slowest."""
    place, job = divmod(place, len(design.items))
    place, number = divmod(place, len(design.debiasing_prompts))
    place, context = divmod(place, len(design.contexts))
    template, debiasing, item = design.templates[place], design.debiasing_prompts[number], design.items[job]
    debiasing_id = NO_DEBIASING if debiasing is None else debiasing.id
    cell = PromptCell(
        model=model,
        bias_type=template.bias_type,
        template_id=template.id,
        job=item.name,
        job_group=item.group,
        workforce_share=item.workforce_share,
        debiasing_id=debiasing_id,
        context=design.contexts[context],
        prompt_format=prompt_format,
        rating=item.rating,
    )
    return cell, template, debiasing, item


def scope_of_cell(cell: PromptCell) -> dict[str, Any]:
    """Give the columns of a row that say which cell it answers."""
    scope = as_record(cell)
    del scope["workforce_share"], scope["rating"]
    return scope


def product(design: ProbeDesign, model: str, prompt_format: PromptFormat) -> Iterator[Placed]:
    """Yield every cell of one model in study order, with what its prompt is made of."""
    return (cell_at(design, place, model, prompt_format) for place in range(design.n_prompts))


def cells(
    design: ProbeDesign, model: str, prompt_format: PromptFormat
) -> Iterator[tuple[PromptCell, Prompt, tuple[TargetWord, ...]]]:
    """Yield every cell of one model in study order, with its prompt and target words."""
    for placed in product(design, model, prompt_format):
        cell = placed[0]
        yield cell, build_prompt(design, placed), design.target_words[cell.bias_type, cell.template_id]


def build_prompt(design: ProbeDesign, placed: Placed) -> Prompt:
    """Build a cell's prompt (raw: methods/prompts#exact-strings; chat: methods/prompts#prompt-formats)."""
    (cell, template, debiasing, item), study = placed, design.study
    question = fill(template.question, item, design.slot, study.articles)
    opening = fill(template.opening, item, design.slot, study.articles)
    debiasing_text = debiasing.text if debiasing else ""
    system = study.system_prompt or ""
    if study.debiasing_position == "system" and debiasing_text:
        system, debiasing_text = "\n".join(filter(None, (system, debiasing_text))), ""
    dialogue = design.dialogue if cell.context == "dialogue" else None
    if cell.prompt_format == "chat-prefill":
        between = " " if study.debiasing_place == "in-question" else "\n"
        return Prompt(
            text=question if dialogue else join(debiasing_text, question, between),
            prompt_format=cell.prompt_format,
            system=system or None,
            preamble=join(dialogue.opening_line, debiasing_text, " ") if dialogue else None,
            turns=dialogue.turns if dialogue else (),
            prefill=opening,
        )
    text = raw_text(question, opening, debiasing_text, dialogue, study.debiasing_place)
    return Prompt(text=text, prompt_format=cell.prompt_format, system=system or None)


def cell_key(
    cell: PromptCell,
    prompt: Prompt,
    target_words: tuple[TargetWord, ...],
    fingerprint: str,
    study: ProbeStudy,
    estimator: object = "exact",
) -> str:
    """Make a row's key: all that the cell's log-probabilities depend on, no more (methods/index#keys)."""
    facts = _model_in_key(fingerprint, study, estimator)
    facts["cell"] = [cell.bias_type, cell.template_id, cell.job, cell.debiasing_id, cell.context]
    facts["prompt"] = first_named(as_record(prompt))
    facts["expressions"] = pairs_of(target_words)
    return key_of(facts)


def model_key(fingerprint: str, study: ProbeStudy, estimator: object = "exact") -> str:
    """Make the key of what all rows of a model share: rows with one `model_key` differ by cell alone.

    That holds inside a folder, where a second prompt for the same cell is refused (`question`).
    """
    return key_of(_model_in_key(fingerprint, study, estimator))


def _model_in_key(fingerprint: str, study: ProbeStudy, estimator: object) -> dict[str, object]:
    return {
        "row_format": ROW_FORMAT,
        "scoring": SCORING_VERSION,
        "model": fingerprint,
        "word_boundary": study.word_boundary,
        "estimator": first_named(estimator) if isinstance(estimator, Mapping) else estimator,
    }
