"""What a study asks: its lists, read and chosen from; as the manifest holds them, signs them, unites them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from biaskit.common.plain import attributes
from biaskit.corpora.loaders import (
    BIAS_TYPES,
    load_dialogue,
    load_items,
    load_target_word_sets,
    load_templates,
    render_forms,
)
from biaskit.corpora.sources import source_digest
from biaskit.errors import RunError, StudyError, TableError, nearest
from biaskit.measures.probe.study import ProbeStudy
from biaskit.models.entry import ModelEntry
from biaskit.records import BiasType, Context, DebiasingPrompt, Dialogue, Item, TargetWord, Template
from biaskit.runs.collection import StoredRun, differ
from biaskit.runs.designs import describe_lists, lists_of_templates, read_study, sign_design
from biaskit.runs.manifest import StoredLists
from biaskit.runs.merge import united
from biaskit.study.config import choose_debiasing_prompts, parts_of, select
from biaskit.tables.io import check_group_names

MOST_PROMPTS = 10_000_000
_STORED = ("slot", "items", "templates", "debiasing_prompts", "contexts", "dialogue", "groups", "sources")
_OF_PROMPTS = ("debiasing_place", "debiasing_position", "system_prompt", "thinking", "articles")


@dataclass(frozen=True, slots=True)
class ProbeDesign:
    """A study with its lists read and its choices made: everything that each model is asked."""

    study: ProbeStudy
    slot: str
    items: tuple[Item, ...]
    templates: tuple[Template, ...]
    debiasing_prompts: tuple[DebiasingPrompt | None, ...]  # None: no debiasing prompt (id 0)
    contexts: tuple[Context, ...]
    dialogue: Dialogue | None
    target_words: dict[tuple[BiasType, int], tuple[TargetWord, ...]]  # by (bias type, template id)
    groups: tuple[str, ...]
    contrast: tuple[str, str]
    sources: dict[str, str]  # every list that was read → its SHA-256

    @property
    def n_prompts(self) -> int:
        """Cells per model."""
        return len(self.templates) * len(self.items) * len(self.debiasing_prompts) * len(self.contexts)

    @property
    def longest(self) -> int:
        """Characters of the longest target word."""
        words = chain.from_iterable(self.target_words.values())
        return max(len(word.text) for word in words)

    @property
    def completes(self) -> bool:
        """Whether some prompts are a text to be completed, which is no question to a chat model."""
        return not all(template.question for template in self.templates)

    @property
    def frames(self) -> dict[str, dict[int, str]]:
        """Bias type → template → its frame; templates of one frame count as one."""
        frame_of: dict[str, dict[int, str]] = {}
        for template in self.templates:
            if template.frame:
                frame_of.setdefault(template.bias_type, {})[template.id] = template.frame
        return frame_of

    @property
    def levels(self) -> dict[str, tuple[int, ...]]:
        """Level of abstraction → ids of those of its debiasing prompts that are run, in order."""
        ids_of: dict[str, list[int]] = {}
        for debiasing in self.debiasing_prompts:
            if debiasing is not None and debiasing.level:
                ids_of.setdefault(debiasing.level, []).append(debiasing.id)
        return {level: tuple(ids) for level, ids in ids_of.items()}

    def describe(self) -> dict[str, Any]:
        """Describe everything that was asked, with items, templates and target words in full."""
        sets, set_of_template = _sets_of(self)
        return describe_lists(
            self,
            **lists_of_templates(self, self.items),
            contexts=list(self.contexts),
            dialogue=asdict(self.dialogue) if self.dialogue else None,
            target_word_sets=sets,
            target_words_of_template=set_of_template,
            groups=list(self.groups),
            contrast=list(self.contrast),
        )

    def question(self) -> dict[str, Any]:
        """List what must agree for two commands to share one folder: what changes a cell's key."""
        study = self.study
        asked: dict[str, Any] = {"study": study.name, "slot": self.slot}
        asked |= attributes(study, _OF_PROMPTS)
        if study.articles == "grammatical":
            asked["article of"] = {item.name: item.article for item in self.items}
        texts: dict[str, Any] = {}
        for template in self.templates:
            name = f"{template.bias_type} template {template.id}"
            texts[name] = [template.question, template.opening]
            if template.frame:
                asked.setdefault("frame of", {})[name] = template.frame
        texts |= {f"debiasing prompt {i.id}": i.text for i in self.debiasing_prompts if i is not None}
        if self.dialogue:
            texts["dialogue"] = asdict(self.dialogue)
        sets, set_of_template = _sets_of(self)
        target_words = {name: sets[number] for name, number in set_of_template.items()}
        asked |= {"word_boundary": study.word_boundary, "groups": list(self.groups)}
        return asked | {"texts": texts, "target_words": target_words}

    def sign(self, models: Mapping[str, ModelEntry]) -> str:
        """Write the line that stands under every table: each choice that changes one of its numbers."""
        study = self.study
        drawn = any(entry.samples is not None for entry in models.values())
        continued = filter(None, (entry.continuations for entry in models.values()))
        lengths = {texts.estimator.max_new_tokens for texts in continued}
        shown = {"estimator": ",".join(sorted({entry.estimator_name for entry in models.values()}))}
        shown["max_samples_per_prompt"] = str(study.max_samples_per_prompt) if drawn else ""
        shown["continuations"] = ",".join(sorted(f"{n} tokens" for n in lengths))
        shown |= attributes(study, ("word_boundary", "on_prefix", "articles", "interval"))
        shown |= {"seed": str(study.seed), "contrast": "-".join(self.contrast)}
        return sign_design(study, models, self.describe()["digest"], shown)


def resolve(study: ProbeStudy) -> ProbeDesign:
    """Read and check what the study names, and choose from it."""
    items = load_items(study.jobs.source)
    items = tuple(select(study.jobs.select, [i.name for i in items], range(1, len(items) + 1), items, "jobs"))
    listed = load_templates(study.templates.source)
    slot = study.templates.slot or listed.slot
    for template in listed.templates:
        if slot not in (asked := template.question or template.opening):
            raise StudyError(
                f"{template.bias_type} template {template.id} has no {slot}: {asked!r}."
                " Set templates.slot to the slot it has."
            )
    # Ids count within a bias type, and an id that one type has need not be in the other.
    of_types = [template for template in listed.templates if study.bias_type in (template.bias_type, "both")]
    of_types.sort(key=lambda template: BIAS_TYPES.index(template.bias_type))
    ids = sorted({template.id for template in of_types})
    chosen = set(select(study.templates.select, [], ids, ids, "templates"))
    templates = tuple(template for template in of_types if template.id in chosen)
    if not items or not templates:
        raise StudyError(f"{study.name}: no {'jobs' if not items else 'templates'} are left.")
    contexts: tuple[Context, ...] = ("plain", "dialogue") if study.context == "both" else (study.context,)
    target_words, groups = _choose_target_words(study, templates)
    sources = [study.jobs.source, study.templates.source, study.target_words.source]
    prompts, dialogue = study.debiasing_prompts, None
    # 0, no debiasing prompt, is always there: what a range from 0 chooses begins at 1.
    numbers = [f"1-{part[2:]}" if part.startswith("0-") else part for part in parts_of(prompts.select)]
    how = "give a file, as in --debiasing-prompts mine.txt"
    debiasing_prompts = choose_debiasing_prompts(study.name, prompts.source, numbers, how)
    if prompts.source is not None and prompts.select != "none":
        sources.append(prompts.source)
    if "dialogue" in contexts:
        sources.append(study.dialogue)
        dialogue = load_dialogue(study.dialogue)
    contrast, digests = choose_contrast(study, groups), {source: source_digest(source) for source in sources}
    design = ProbeDesign(
        *(study, slot, items, templates, debiasing_prompts, contexts, dialogue),
        *(target_words, groups, contrast, digests),
    )
    try:  # before the run: afterwards its rows would be paid for
        check_group_names("probe", groups, contrast, study.target_words.source)
    except TableError as error:
        raise StudyError(str(error)) from error
    if design.n_prompts > MOST_PROMPTS:
        raise StudyError(
            f"{design.n_prompts:,} prompts are more than {MOST_PROMPTS:,}: choose fewer jobs or templates."
        )
    return design


def _choose_target_words(
    study: ProbeStudy, templates: tuple[Template, ...]
) -> tuple[dict[tuple[BiasType, int], tuple[TargetWord, ...]], tuple[str, ...]]:
    """Find each template's target words, and the groups that all of them name."""
    sets = load_target_word_sets(study.target_words.source)
    only_set = next(iter(sets)) if len(sets) == 1 else None
    target_words_of, groups = {}, None
    forms: dict[str, tuple[TargetWord, ...]] = {}  # made once for all templates of a set
    for template in templates:
        of_type = getattr(study.target_words, template.bias_type)
        # The template's own set, else its bias type's, else the set called like the bias type.
        candidates = [*filter(None, (template.target_words, of_type, template.bias_type))]
        found = next(filter(sets.__contains__, candidates), candidates[0])
        name = study.target_words.every or only_set or found
        if name not in sets:
            raise StudyError(
                f"{template.bias_type} template {template.id} needs the target words {name!r}, which are not"
                f" in {study.target_words.source}.{nearest(name, sets)} It has {', '.join(sets)}."
            )
        if name not in forms:
            forms[name] = render_forms(sets[name])
        names = tuple(group for group, _ in sets[name].groups)
        if groups is not None and names != groups:
            raise StudyError(
                f"All target words of a study need the same groups in the same order: {name} has"
                f" {', '.join(names)}, another set has {', '.join(groups)}."
            )
        groups = names
        target_words_of[(template.bias_type, template.id)] = forms[name]
    return target_words_of, groups or ()


def choose_contrast(study: ProbeStudy, groups: tuple[str, ...]) -> tuple[str, str]:
    """Choose the two groups that are contrasted: the study's, else female and male, else the first two."""
    if study.contrast is None:
        return ("female", "male") if {"female", "male"} <= set(groups) else (groups[0], groups[1])
    for name in study.contrast:
        if name not in groups:
            raise StudyError(
                f"contrast names {name!r}; the groups are {', '.join(groups)}.{nearest(name, groups)}"
            )
    if study.contrast[0] == study.contrast[1]:
        raise StudyError(f"contrast names {study.contrast[0]!r} twice.")
    return study.contrast


# --- in the manifest of a run ----------------------------------------------------------------------


class Stored(StoredLists):
    """A study of the prober, as its manifest holds it under `resolved`."""

    contexts: tuple[Literal["plain", "dialogue"], ...]
    dialogue: Dialogue | None
    target_word_sets: list[Annotated[list[tuple[str, str]], Field(min_length=1)]]  # (group, text)
    target_words_of_template: dict[
        Annotated[str, Field(pattern=r"^(explicit|implicit):\d+$")], Annotated[int, Field(ge=0)]
    ]
    groups: Annotated[tuple[str, ...], Field(min_length=2)]
    contrast: tuple[str, ...]

    @model_validator(mode="after")
    def _each_template_has_its_target_words(self) -> Stored:
        for template in self.templates:
            number = self.target_words_of_template.get(f"{template.bias_type}:{template.id}", -1)
            if not 0 <= number < len(self.target_word_sets):
                raise ValueError(f"{template.bias_type} template {template.id} has no target words")
        return self


def read(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> ProbeDesign:
    """Read the design that a manifest describes; `overrides` may set analysis keys only."""
    stored, study = Stored.model_validate(resolved), cast("ProbeStudy", read_study(resolved, overrides))
    sets = []
    for pairs in stored.target_word_sets:
        sets.append(tuple(TargetWord(*pair) for pair in pairs))
    target_words = {}
    for template in stored.templates:
        number = stored.target_words_of_template[f"{template.bias_type}:{template.id}"]
        target_words[template.bias_type, template.id] = sets[number]
    contrast = choose_contrast(study, stored.groups)
    lists = attributes(stored, _STORED)
    return ProbeDesign(study=study, target_words=target_words, contrast=contrast, **lists)


def _sets_of(design: ProbeDesign) -> tuple[list[list[list[str]]], dict[str, int]]:
    """List each different set of target words once, and number the set of each template."""
    number_of: dict[tuple[TargetWord, ...], int] = {}
    by_identity: dict[int, int] = {}  # templates share a set, and its hash takes long
    number_of_template: dict[str, int] = {}
    for (bias_type, template_id), target_words in design.target_words.items():
        if id(target_words) not in by_identity:
            by_identity[id(target_words)] = number_of.setdefault(target_words, len(number_of))
        number_of_template[f"{bias_type}:{template_id}"] = by_identity[id(target_words)]
    return list(map(pairs_of, number_of)), number_of_template


def pairs_of(target_words: Iterable[TargetWord]) -> list[list[str]]:
    """Write target words as manifests and keys hold them."""
    return [[word.group, word.text] for word in target_words]


def unite(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Make one design of two of the same study: what either asked, in the first's order."""
    group_of = {item["name"]: item["group"] for item in first["items"]}
    for item in second["items"]:
        if group_of.get(item["name"], item["group"]) != item["group"]:
            raise RunError(
                f"The runs put the job {item['name']!r} into two groups, {group_of[item['name']]!r} and"
                f" {item['group']!r}: they cannot be merged."
            )
    merged = united(first, second, "items", "templates", "debiasing_prompts", "contexts", "target_word_sets")
    merged["templates"].sort(key=lambda t: (t["bias_type"], t["id"]))
    merged["debiasing_prompts"].sort(key=lambda i: i["id"] if i else 0)
    merged["dialogue"] = first["dialogue"] or second["dialogue"]
    sets = merged["target_word_sets"]
    set_of_template = {
        name: sets.index(second["target_word_sets"][k])
        for name, k in second["target_words_of_template"].items()
    }
    merged["target_words_of_template"] = {**set_of_template, **first["target_words_of_template"]}
    merged["sources"] = {**second["sources"], **first["sources"]}
    return merged


def one_part(run: StoredRun, other: StoredRun) -> bool:
    """Tell whether two runs of one study ask the same: groups, templates, target words."""
    same_groups = run.manifest.resolved["groups"] == other.manifest.resolved["groups"]
    return same_groups and not any(differ(run, other, name) for name in ("texts", "target_words"))
