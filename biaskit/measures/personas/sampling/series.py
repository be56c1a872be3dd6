"""Series of draws of one prompt each: their prompts, keys and seeds (methods/texts#persona-prompts)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from biaskit.common.provenance import ROW_FORMAT, canonical_json, first_named, key_of_json
from biaskit.corpora.prompts import fill, raw_text
from biaskit.errors import ModelError, StudyError
from biaskit.measures.personas.design import GENERATION_VERSION, PersonasDesign
from biaskit.measures.personas.study import PersonasStudy
from biaskit.records import NO_DEBIASING, ModelIdentity, Prompt, PromptForm


@dataclass(frozen=True, slots=True)
class DrawSeries:
    """Draws of one prompt: an occupation, a template and, where the prompt names it, a gender."""

    occupation: str
    template_id: str
    specified_gender: str | None
    prompt: Prompt
    debiasing_id: int | None = None  # continuations only
    context: str | None = None

    def scope(self) -> dict[str, Any]:
        """Return the columns of a row that say which series it belongs to."""
        of_continuations = ("debiasing_id", "context") if self.debiasing_id is not None else ()
        names = ("occupation", "template_id", "specified_gender", *of_continuations)
        return {name: getattr(self, name) for name in names}


def form_for(study: PersonasStudy, identity: ModelIdentity) -> PromptForm:
    """Choose a prompt form; `auto`: chat for instruct models, completion for base ones; raw: continuations.

    Raises `ModelError` or `StudyError` where the model or the form has no place for what is asked.
    """
    form: PromptForm = "completion" if identity.tuning == "base" or "chat" not in identity.forms else "chat"
    if study.task == "continuation":
        form = "raw"
    elif study.prompt_format != "auto":
        form = study.prompt_format
    if form not in identity.forms:
        raise ModelError(f"{identity.label} has no prompt format {form}, only {', '.join(identity.forms)}.")
    if study.system_prompt and form != "chat":
        raise StudyError(
            f"A {form} prompt has no system role: leave out the system prompt, or use --prompt-format chat."
        )
    if study.system_prompt and not identity.takes_system:
        raise ModelError(f"{identity.label} has no system role: leave out the system prompt.")
    return form


def series_of_design(design: PersonasDesign, form: PromptForm) -> tuple[DrawSeries, ...]:
    """List every series in study order: first those without a gender in the prompt, then those with one."""
    if design.templates:
        return tuple(_continuations(design, form))
    study, specified = design.study, design.study.specified
    # `raw` is the chat form's text without a template.
    wanted = "completion" if form == "completion" else "chat"
    of_form = {prompt.name: prompt for prompt in design.prompts if prompt.form == wanted}
    if without := [name for name in design.template_ids if name not in of_form]:
        raise StudyError(
            f"{study.templates.source} has no {wanted} format of {without[0]!r}: add one, or choose another"
            " --prompt-format."
        )
    prompts = [of_form[name] for name in design.template_ids]
    system = study.system_prompt if form == "chat" else None
    if specified and (lacking := [p.name for p in prompts if p.specified is None]):
        raise StudyError(
            f"The prompt {lacking[0]!r} has no text that names a gender: write `specified` into it, or set"
            " specified to []."
        )
    return tuple(
        DrawSeries(
            item.name, prompt.name, gender, Prompt(prompt.text(item, gender, study.articles), form, system)
        )
        for genders in ((None,), specified)
        for item, prompt, gender in product(design.occupations, prompts, genders)
    )


def _continuations(design: PersonasDesign, form: PromptForm) -> Iterator[DrawSeries]:
    articles = design.study.articles
    for template, debiasing, item in product(design.templates, design.debiasing_prompts, design.occupations):
        parts = (template.question, template.opening)
        question, opening = (fill(text, item, design.slot, articles) for text in parts)
        preface, number = (debiasing.text, debiasing.id) if debiasing else ("", NO_DEBIASING)
        text = raw_text(question, opening, preface, None, "in-question")
        yield DrawSeries(item.name, str(template.id), None, Prompt(text, form), number, "plain")


def draw_keys(series: DrawSeries, fingerprint: str, design: PersonasDesign) -> Callable[[int], str]:
    """Map a draw's number to its key, the digest of all its text depends on (methods/index#keys)."""
    # What all draws of the series share is written out once.
    shared = canonical_json(
        {
            "row_format": ROW_FORMAT,
            "generation": GENERATION_VERSION,
            "model": fingerprint,
            "series": first_named(series.scope()),
            "prompt": asdict(series.prompt),
            "sampling": asdict(design.sampling),
            "seed": design.study.seed,
        }
    )
    # Canonical JSON sorts by name, and "draw" comes before every other name.
    return lambda draw: key_of_json(f'{{"draw":{draw},{shared[1:]}')


def seed_of(study_seed: int, key: str) -> int:
    """Take 31 bits of SHA-256 of (study seed, key)."""
    return int.from_bytes(hashlib.sha256(f"[{study_seed},{key}]".encode("ascii")).digest()[:4], "big") >> 1
