"""The ways to ask one model: which there are, and what is asked in each (methods/reliability#ways)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from operator import attrgetter
from typing import TypeVar

from biaskit.common.plain import group_by
from biaskit.corpora.loaders import load_items, load_templates
from biaskit.measures.probe.design import ProbeDesign
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.entry import ModelEntry, Way
from biaskit.records import OWN_SYSTEM, PROBE_FORMATS, ModelIdentity, PromptFormat, TargetWord, Template

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
    for prompt_format in filter(identity.formats.__contains__, PROBE_FORMATS):
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
    return [OWN, *map("paraphrase {}".format, range(1, N_PARAPHRASES + 1))]


def reduced(design: ProbeDesign, way: Way) -> ProbeDesign:
    """Cut a design to what is asked in one way: ten jobs of a group, five templates of a bias type."""
    items, templates = list(load_items(CONTROL_ITEMS)) if way.wording == CONTROLS else [], list[Template]()
    for members in group_by(() if items else design.items, attrgetter("group")).values():
        items += _spread(members, N_JOBS)
    for bias_type, chosen in group_by(design.templates, attrgetter("bias_type")).items():
        if way.wording not in (OWN, CONTROLS):
            number = int(way.wording.rpartition(" ")[2])  # of the scenario: "paraphrase 2"
            of_type = group_by(load_templates(PARAPHRASES).templates, attrgetter("bias_type"))[bias_type]
            scenario = list(group_by(of_type, attrgetter("frame")).values())[number - 1]
            # Ids that no template of a study has.
            chosen = [replace(each, id=1_000 * number + each.id, frame=None) for each in scenario]
        templates += _spread(chosen, N_TEMPLATES)
    target_words = {}
    for template in templates:
        name = template.bias_type, template.id
        target_words[name] = design.target_words.get(name) or first_words(design)[template.bias_type]
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


def first_words(design: ProbeDesign) -> dict[str, tuple[TargetWord, ...]]:
    """Map each bias type to the target words of its first template, which its paraphrases take."""
    words_of: dict[str, tuple[TargetWord, ...]] = {}
    for (bias_type, _), words in design.target_words.items():
        words_of.setdefault(bias_type, words)
    return words_of


def _spread(entries: list[T], most: int) -> list[T]:
    """Pick at most so many entries, evenly over the list."""
    n = len(entries)
    return [entries[i * n // most] for i in range(most)] if n > most else entries
