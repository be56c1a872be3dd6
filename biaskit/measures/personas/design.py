"""What a study asks: its lists, read and chosen from; as the manifest holds them, signs them, unites them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from pydantic import JsonValue

from biaskit.common.inputs import expanded
from biaskit.common.plain import attributes
from biaskit.common.provenance import digest
from biaskit.corpora.languages import AUTO, ENGLISH
from biaskit.corpora.loaders import english_counts, load_items, load_templates
from biaskit.corpora.prompts import PersonaPrompt, load_persona_prompts
from biaskit.corpora.sources import SHIPPED, source_digest
from biaskit.errors import RunError, StudyError
from biaskit.measures.personas.sampling.filling import Filling
from biaskit.measures.personas.study import PersonasStudy
from biaskit.models.entry import ModelEntry
from biaskit.records import DebiasingPrompt, Item, Sampling, Template
from biaskit.runs.designs import describe_lists, lists_of_templates, read_study, sign_design
from biaskit.runs.manifest import StoredLists
from biaskit.runs.merge import united
from biaskit.runs.shards import Shard
from biaskit.study.config import choose_debiasing_prompts, parts_of, select

GENERATION_VERSION = 1  # raised when the same request would get another text from the same model
MOST_SAMPLES = 10_000_000
_STORED = ("prompts", "templates", "slot", "debiasing_prompts", "sources")
_NO_SOURCE = "set debiasing_prompts.source to a file"


@dataclass(frozen=True, slots=True)
class PersonasDesign:
    """A study with its lists read and its choices made: all that is asked, whatever the model."""

    study: PersonasStudy
    occupations: tuple[Item, ...]
    prompts: tuple[PersonaPrompt, ...]  # task persona: each name in its formats
    templates: tuple[Template, ...]  # task continuation
    slot: str
    debiasing_prompts: tuple[DebiasingPrompt | None, ...]  # None: no debiasing prompt (id 0)
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

    @property
    def n_series(self) -> tuple[int, int]:
        """Count the series that name no gender, and those that name one."""
        n = len(self.occupations) * len(self.template_ids) * len(self.debiasing_prompts)
        return n, 0 if self.templates else n * len(self.study.requested)

    def part(self, shard: Shard) -> PersonasDesign:
        """Keep the shard's occupations with all their prompts: Algorithm 5 decides over whole series."""
        return replace(self, occupations=shard.among(self.occupations))

    def describe(self) -> dict[str, Any]:
        """Describe everything that was asked, with occupations and prompts in full."""
        return describe_lists(
            self,
            **lists_of_templates(self, self.occupations),
            prompts=list(map(asdict, self.prompts)),
        )

    def question(self) -> dict[str, Any]:
        """List what must agree to share one folder: what changes a key or a batch."""
        study = self.study
        texts: dict[str, Any] = {}
        for prompt in self.prompts:
            genders = list(map(list, prompt.genders))
            texts[f"{prompt.name}, {prompt.prompt_format}"] = [prompt.open, prompt.requested, genders]
        texts |= {f"template {t.id}": [t.question, t.opening] for t in self.templates}
        texts |= {f"debiasing prompt {i.id}": i.text for i in self.debiasing_prompts if i is not None}
        stated = {name: getattr(study, name) for name in ("task", "articles", "system_prompt", "thinking")}
        sampling = asdict(self.sampling)
        return {"study": study.name, **stated, "sampling": sampling, "seed": study.seed, "texts": texts}

    def sign(self, models: Mapping[str, ModelEntry], **analysis: str) -> str:
        """Write the line under every table; `analysis`: what only an analysis knows."""
        study = self.study
        shown = {"n": "" if study.name == "texts" else str(study.per_gender), "seed": str(study.seed)}
        # Nothing where English may be meant, and no folder's place.
        of_language = "" if study.language in (AUTO, ENGLISH) else study.language.rsplit("/", 1)[-1]
        shown |= {"variant": study.variant, "language": of_language, **analysis}
        return sign_design(study, models, self.describe()["digest"], shown)


def resolve(study: PersonasStudy) -> PersonasDesign:
    """Read what the study names, choose from it, and check that it fits together."""
    listed = load_items(study.occupations.source)
    names = [item.name for item in listed]
    items = select(study.occupations.select, names, range(1, len(listed) + 1), listed, "occupations")
    read, debiasing = [study.occupations.source, study.templates.source], study.debiasing_prompts
    prompts: tuple[PersonaPrompt, ...] = ()
    templates: tuple[Template, ...] = ()
    slot = ""
    if study.task == "persona":
        prompts = _choose_prompts(study)
        if debiasing.select != "none":
            raise StudyError(f"{study.name}: debiasing_prompts need task = continuation.")
    else:
        loaded = load_templates(study.templates.source)
        slot, opening = loaded.slot, []
        for number, template in enumerate(loaded.templates, start=1):
            if template.opening:  # ids are positions in the file, as the paper numbers them
                opening.append(replace(template, id=number, frame=None))
        ids = [template.id for template in opening]
        templates = tuple(select(study.templates.select, [], ids, opening, "templates"))
        if debiasing.source is not None:
            read.append(debiasing.source)
    if not items or not (prompts or templates):
        raise StudyError(f"{study.name}: no {'templates' if items else 'occupations'} are left.")
    _check_files(study)
    chosen = choose_debiasing_prompts(study.name, debiasing.source, parts_of(debiasing.select), _NO_SOURCE)
    sources = {source: source_digest(source) for source in read}
    design = PersonasDesign(study, tuple(items), prompts, templates, slot, chosen, sources)
    n_open, n_requested = design.n_series
    most = n_open * Filling.from_study(study).most + n_requested * study.per_gender
    if most > MOST_SAMPLES:
        raise StudyError(f"{most:,} texts are more than {MOST_SAMPLES:,}: lower max_samples or per_gender.")
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
    """Choose the prompts in the study's wording, each with its completion format where it has one."""
    listed = load_persona_prompts(study.templates.source)
    names = list(dict.fromkeys(prompt.name for prompt in listed))
    chosen = set(select(study.templates.select, names, range(1, len(names) + 1), names, "templates"))
    prompts = tuple(p for p in listed if p.name in chosen and p.wording in (None, study.wording))
    chosen -= {prompt.name for prompt in prompts}
    if missing := [name for name in names if name in chosen]:
        raise StudyError(f"{study.templates.source} has no {study.wording} wording of {', '.join(missing)}.")
    return prompts


# --- in the manifest of a run ----------------------------------------------------------------------


class Stored(StoredLists):
    """A study of personas, as its manifest holds it under `resolved`."""

    prompts: tuple[PersonaPrompt, ...]
    imported: dict[str, JsonValue] | None = None


def read(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> PersonasDesign:
    """Read the design that a manifest describes; `overrides` may set analysis keys only."""
    stored = Stored.model_validate(resolved)
    if "language" not in resolved["study"]:  # older than the key
        resolved = {**resolved, "study": {**resolved["study"], "language": ENGLISH}}
    study, lists = cast("PersonasStudy", read_study(resolved, overrides)), attributes(stored, _STORED)
    return PersonasDesign(study, stored.items, **lists)


def signed_columns(group: str | None, person: str | None) -> dict[str, str]:
    """Sign the columns of groups and known genders by their digests: that line cannot hold free text."""
    columns = {"groups": group, "known": person}
    return {name: digest(column)[:12] for name, column in columns.items() if column is not None}


def unite(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Unite two designs of one study; how many texts are sampled must agree."""
    for name in ("per_gender", "batch", "max_samples"):
        if (one := first["study"][name]) != (other := second["study"][name]):
            raise RunError(f"The runs have {name} = {one} and {name} = {other}: they cannot be merged.")
    return united(first, second, "items", "prompts", "templates", "debiasing_prompts")
