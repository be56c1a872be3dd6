"""Series of samples of one prompt each: their prompts, keys and seeds (methods/texts#persona-prompts)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import chain, product
from typing import Any

from biaskit.common.plain import attributes
from biaskit.common.provenance import ROW_FORMAT, canonical_json, first_named, key_of_json
from biaskit.corpora.prompts import fill, raw_text
from biaskit.errors import ModelError, StudyError
from biaskit.measures.personas.design import GENERATION_VERSION, PersonasDesign
from biaskit.measures.personas.study import PersonasStudy
from biaskit.records import NO_DEBIASING, ModelIdentity, Prompt, PromptFormat


@dataclass(frozen=True, slots=True)
class SampleSeries:
    """Samples of one prompt: an occupation, a template and, where the prompt names it, a gender."""

    occupation: str
    template_id: str
    requested_gender: str | None
    prompt: Prompt
    debiasing_id: int | None = None  # continuations only
    context: str | None = None

    def scope(self) -> dict[str, Any]:
        """Return the columns of a row that say which series it belongs to."""
        names = ["occupation", "template_id", "requested_gender"]
        if self.debiasing_id is not None:
            names += ["debiasing_id", "context"]
        return attributes(self, names)


def format_for(study: PersonasStudy, identity: ModelIdentity) -> PromptFormat:
    """Choose a prompt format; `auto`: chat for instruct models, completion for base ones; raw: continuations.

    Raises `ModelError` or `StudyError` where the model or the format has no place for what is asked.
    """
    prompt_format: PromptFormat = (
        "completion" if identity.tuning == "base" or "chat" not in identity.formats else "chat"
    )
    if study.task == "continuation":
        prompt_format = "raw"
    elif study.prompt_format != "auto":
        prompt_format = study.prompt_format
    if prompt_format not in identity.formats:
        raise ModelError(
            f"{identity.label} has no prompt format {prompt_format}, only {', '.join(identity.formats)}."
        )
    if study.system_prompt and prompt_format != "chat":
        raise StudyError(
            f"A {prompt_format} prompt has no system role: leave out the system prompt, or use"
            " --prompt-format chat."
        )
    if study.system_prompt and not identity.takes_system:
        raise ModelError(f"{identity.label} has no system role: leave out the system prompt.")
    return prompt_format


def series_of_design(design: PersonasDesign, prompt_format: PromptFormat) -> tuple[SampleSeries, ...]:
    """List every series in study order: first those without a gender in the prompt, then those with one."""
    study, requested = design.study, design.study.requested
    series = []
    if design.templates:
        chosen = product(design.templates, design.debiasing_prompts, design.occupations)
        for template, debiasing, item in chosen:
            parts = (template.question, template.opening)
            question, opening = (fill(text, item, design.slot, study.articles) for text in parts)
            preface, number = (debiasing.text, debiasing.id) if debiasing else ("", NO_DEBIASING)
            asked = Prompt(raw_text(question, opening, preface, None, "in-question"), prompt_format)
            series.append(SampleSeries(item.name, str(template.id), None, asked, number, "plain"))
        return tuple(series)
    # `raw` is the chat format's text without a template.
    wanted = "completion" if prompt_format == "completion" else "chat"
    of_format = {prompt.name: prompt for prompt in design.prompts if prompt.prompt_format == wanted}
    if without := [name for name in design.template_ids if name not in of_format]:
        raise StudyError(
            f"{study.templates.source} has no {wanted} format of {without[0]!r}: add one, or choose another"
            " --prompt-format."
        )
    prompts = [of_format[name] for name in design.template_ids]
    system = study.system_prompt if prompt_format == "chat" else None
    if requested and (lacking := [p.name for p in prompts if p.requested is None]):
        raise StudyError(
            f"The prompt {lacking[0]!r} has no text that names a gender: write `requested` into it, or set"
            " requested to []."
        )
    genders: list[tuple[str | None, ...]] = [(None,), requested]
    for item, prompt, gender in chain(*(product(design.occupations, prompts, some) for some in genders)):
        text = prompt.text(item, gender, study.articles)
        series.append(SampleSeries(item.name, prompt.name, gender, Prompt(text, prompt_format, system)))
    return tuple(series)


def sample_keys(series: SampleSeries, fingerprint: str, design: PersonasDesign) -> Callable[[int], str]:
    """Map a sample's number to its key, the digest of all its text depends on (methods/index#keys)."""
    # What all samples of the series share is written out once.
    shared = canonical_json(
        {
            "row_format": ROW_FORMAT,
            "generation": GENERATION_VERSION,
            "model": fingerprint,
            "series": first_named(series.scope()),
            "prompt": first_named(asdict(series.prompt)),
            "sampling": asdict(design.sampling),
            "seed": design.study.seed,
        }
    )
    # Canonical JSON sorts by name, and "draw" comes before every other name.
    return lambda sample: key_of_json(f'{{"draw":{sample},{shared[1:]}')


def seed_of(study_seed: int, key: str) -> int:
    """Take 31 bits of SHA-256 of (study seed, key)."""
    return int.from_bytes(hashlib.sha256(f"[{study_seed},{key}]".encode("ascii")).digest()[:4], "big") >> 1
