"""The ways to ask one model: which there are, and what is asked in each (methods/reliability#ways)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeVar

from biaskit.corpora.loaders import load_items, load_templates
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.entry import ModelEntry, Way
from biaskit.records import OWN_SYSTEM, PROBE_FORMATS, ModelIdentity, PromptFormat, Template

T = TypeVar("T")
CONTROLS, CONTROL_ITEMS = "controls", "corpus:controls/items.csv"
"""What is asked of people without a job, in the run's own way, is called."""
N_JOBS, N_TEMPLATES, N_PARAPHRASES = 10, 5, 3
PARAPHRASES = "corpus:wording/templates.toml"
OWN = "study"
"""What the wording, or the system prompt, of the study is called."""


def ways_of(design: ProbeDesign, identity: ModelIdentity, own_format: PromptFormat) -> Iterator[Way]:
    """Yield every way to ask a model: each format that it takes, by its system prompts and the wordings.

    The last asks of control items in place of jobs, in the format and with the system prompt of the run.
    """
    formats = [prompt_format for prompt_format in PROBE_FORMATS if prompt_format in identity.formats]
    for prompt_format in formats:
        systems = [OWN] if design.study.system_prompt and prompt_format != "raw" else []
        systems.append("template" if prompt_format != "raw" and identity.details.get(OWN_SYSTEM) else "none")
        if prompt_format != "raw" and identity.takes_system:
            systems.append("empty")
        wordings = wordings_of(design)
        for system, wording in product(systems, wordings):
            yield Way(prompt_format=prompt_format, system_prompt=system, wording=wording)

        if prompt_format == own_format and len(wordings) > 1:
            yield Way(prompt_format=prompt_format, system_prompt=systems[0], wording=CONTROLS)


def is_main(way: Way, entry: ModelEntry, study: ProbeStudy) -> bool:
    """Tell whether a run asked a model in this way."""
    system = OWN if study.system_prompt else way.system_prompt
    as_asked = way.prompt_format == entry.prompt_format and way.system_prompt == system
    return as_asked and way.wording == OWN and way.system_prompt != "empty"


def wordings_of(design: ProbeDesign) -> list[str]:
    """List the study's own wording, then paraphrases where they ask the same: of jobs, in English words."""
    study = design.study
    english = study.target_words.source == ProbeStudy.model_fields["target_words"].default.source
    if not english or design.slot != "[JOB]" or study.templates.source == PARAPHRASES:
        return [OWN]
    return [OWN, *(f"paraphrase {number}" for number in range(1, N_PARAPHRASES + 1))]


def reduced(design: ProbeDesign, way: Way) -> ProbeDesign:
    """Cut a design to what is asked in one way: ten jobs of a group, five templates of a bias type."""
    items = list(load_items(CONTROL_ITEMS)) if way.wording == CONTROLS else []
    for group in dict.fromkeys(item.group for item in design.items if way.wording != CONTROLS):
        items += _spread([item for item in design.items if item.group == group], N_JOBS)
    templates: list[Template] = []
    for bias_type in dict.fromkeys(template.bias_type for template in design.templates):
        chosen = [template for template in design.templates if template.bias_type == bias_type]
        if way.wording not in (OWN, CONTROLS):
            chosen = _paraphrases(bias_type, int(way.wording.rpartition(" ")[2]))
        templates += [replace(template, frame=None) for template in _spread(chosen, N_TEMPLATES)]
    target_words = {}
    for template in templates:
        of_type = (words for (kind, _), words in design.target_words.items() if kind == template.bias_type)
        own_words = design.target_words.get((template.bias_type, template.id))
        target_words[template.bias_type, template.id] = own_words or next(of_type)
    system = design.study.system_prompt if way.system_prompt == OWN else None
    return replace(
        design,
        study=design.study.model_copy(update={"system_prompt": system}),
        items=tuple(items),
        templates=tuple(templates),
        debiasing_prompts=(None,),
        contexts=design.contexts[:1],
        target_words=target_words,
    )


def _paraphrases(bias_type: str, number: int) -> list[Template]:
    """List the templates of the nth scenario of a bias type, with ids that no template of a study has."""
    listed = [t for t in load_templates(PARAPHRASES).templates if t.bias_type == bias_type]
    frame = list(dict.fromkeys(template.frame for template in listed))[number - 1]
    return [replace(t, id=1_000 * number + t.id) for t in listed if t.frame == frame]


def _spread(entries: Sequence[T], most: int) -> list[T]:
    """Pick at most so many entries, evenly over the list."""
    n = len(entries)
    return [entries[i * n // most] for i in range(most)] if n > most else list(entries)
