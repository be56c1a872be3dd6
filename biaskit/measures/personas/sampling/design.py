"""What a study asks: series of draws, prompts, keys, seeds (methods/texts#persona-prompts)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from biaskit.common.inputs import expanded
from biaskit.common.provenance import ROW_FORMAT, canonical_json, key_of_json
from biaskit.corpora.loaders import english_counts, load_items, load_templates
from biaskit.corpora.prompts import PersonaPrompt, fill, load_persona_prompts, raw_text
from biaskit.corpora.sources import SHIPPED, source_digest
from biaskit.errors import ModelError, StudyError
from biaskit.measures.personas.sampling.rounds import Filling
from biaskit.records import (
    NO_INSTRUCTION,
    Instruction,
    Item,
    ModelIdentity,
    Prompt,
    PromptForm,
    Sampling,
    Template,
)
from biaskit.runs.shards import Shard
from biaskit.study.config import choose_instructions, parts_of, select
from biaskit.study.keys import PersonasStudy

GENERATION_VERSION = 1  # raised when the same request would get another text from the same model
MOST_DRAWS = 10_000_000
_NO_SOURCE = "set debiasing_prompts.source to a file"


@dataclass(frozen=True, slots=True)
class PersonasDesign:
    """A study with its lists read and its choices made: all that is asked, whatever the model."""

    study: PersonasStudy
    occupations: tuple[Item, ...]
    prompts: tuple[PersonaPrompt, ...]  # task persona: each name in its forms
    templates: tuple[Template, ...]  # task continuation
    slot: str
    instructions: tuple[Instruction | None, ...]  # None: no instruction (id 0)
    sources: dict[str, str]  # every list that was read → its SHA-256

    @property
    def template_ids(self) -> tuple[str, ...]:
        """What `template_id` holds, in study order."""
        if self.templates:
            return tuple(str(template.id) for template in self.templates)
        return tuple(dict.fromkeys(prompt.name for prompt in self.prompts))

    @property
    def sampling(self) -> Sampling:
        """How tokens are drawn."""
        return Sampling(self.study.temperature, self.study.top_p, self.study.max_new_tokens)


@dataclass(frozen=True, slots=True)
class DrawSeries:
    """Draws of one prompt: an occupation, a template and, where the prompt names it, a gender."""

    occupation: str
    template_id: str
    specified_gender: str | None
    prompt: Prompt
    instruction_id: int | None = None  # continuations only
    setting: str | None = None

    def scope(self) -> dict[str, Any]:
        """Return the columns of a row that say which series it belongs to."""
        of_continuations = ("instruction_id", "setting") if self.instruction_id is not None else ()
        names = ("occupation", "template_id", "specified_gender", *of_continuations)
        return {name: getattr(self, name) for name in names}


def resolve_design(study: PersonasStudy) -> PersonasDesign:
    """Read what the study names, choose from it, and check that it fits together."""
    listed = load_items(study.occupations.source)
    names = [item.name for item in listed]
    items = select(study.occupations.select, names, range(1, len(listed) + 1), listed, "occupations")
    read = [study.occupations.source, study.templates.source]
    prompts: tuple[PersonaPrompt, ...] = ()
    templates: tuple[Template, ...] = ()
    slot = ""
    if study.task == "persona":
        prompts = _choose_prompts(study)
        if study.debiasing_prompts.select != "none":
            raise StudyError(f"{study.name}: debiasing_prompts need task = continuation.")
    else:
        loaded = load_templates(study.templates.source)
        slot, templates = loaded.slot, _choose_templates(study, loaded.templates)
        read += [study.debiasing_prompts.source] if study.debiasing_prompts.source is not None else []
    if not items or not (prompts or templates):
        raise StudyError(f"{study.name}: no {'templates' if items else 'occupations'} are left.")
    _check_files(study)
    design = PersonasDesign(
        study=study,
        occupations=tuple(items),
        prompts=prompts,
        templates=templates,
        slot=slot,
        instructions=choose_instructions(study, parts_of(study.debiasing_prompts.select), _NO_SOURCE),
        sources={source: source_digest(source) for source in read},
    )
    n_open, n_specified = n_series(design)
    most = n_open * Filling.from_study(study).most + n_specified * study.per_gender
    if most > MOST_DRAWS:
        raise StudyError(f"{most:,} texts are more than {MOST_DRAWS:,}: lower max_samples or per_gender.")
    return design


def _check_files(study: PersonasStudy) -> None:
    """Look for the files and corpora that only the analysis reads, before a night's sampling."""
    paths = [value.partition(":")[2] for value in (study.vectors, study.cluster_vectors) if ":" in value]
    for path in [*paths, study.drop_words, study.categories]:
        if path and not path.startswith(SHIPPED) and not expanded(path).exists():
            raise StudyError(f"There is no file {path}. Check the path.")
    if study.english_prior == "nltk":
        english_counts("nltk")


def _choose_prompts(study: PersonasStudy) -> tuple[PersonaPrompt, ...]:
    """Choose the prompts in the study's wording, each with its completion form where it has one."""
    listed = load_persona_prompts(study.templates.source)
    names = list(dict.fromkeys(prompt.name for prompt in listed))
    chosen = set(select(study.templates.select, names, range(1, len(names) + 1), names, "templates"))
    prompts = tuple(p for p in listed if p.name in chosen and p.wording in (None, study.wording))
    if missing := [name for name in names if name in chosen and not any(p.name == name for p in prompts)]:
        raise StudyError(f"{study.templates.source} has no {study.wording} wording of {', '.join(missing)}.")
    return prompts


def _choose_templates(study: PersonasStudy, templates: tuple[Template, ...]) -> tuple[Template, ...]:
    """Choose task prompts that open an answer; ids are positions in the file, as the paper numbers them."""
    numbered = [
        Template(number, t.bias_type, t.question, t.opening, t.expressions)
        for number, t in enumerate(templates, start=1)
        if t.opening
    ]
    ids = [template.id for template in numbered]
    return tuple(select(study.templates.select, [], ids, numbered, "templates"))


def part_of(design: PersonasDesign, shard: Shard) -> PersonasDesign:
    """Keep the shard's occupations with all their prompts: Algorithm 5 decides over whole series."""
    return replace(design, occupations=shard.among(design.occupations))


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
    for template, instruction, item in product(design.templates, design.instructions, design.occupations):
        parts = (template.question, template.opening)
        question, opening = (fill(text, item, design.slot, articles) for text in parts)
        preface, number = (instruction.text, instruction.id) if instruction else ("", NO_INSTRUCTION)
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
            "series": series.scope(),
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


def n_series(design: PersonasDesign) -> tuple[int, int]:
    """Count the series that name no gender, and those that name one."""
    n = len(design.occupations) * len(design.template_ids) * len(design.instructions)
    return n, 0 if design.templates else n * len(design.study.specified)
