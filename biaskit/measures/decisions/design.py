"""What a study of decisions asks: its lists, the prompt and key of each decision, the manifest's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple, cast

from biaskit.common.plain import attributes, group_by
from biaskit.common.provenance import ROW_FORMAT, SCORING_VERSION, digest, first_named, key_of
from biaskit.corpora.rows import Source
from biaskit.corpora.sources import shown, source_digest
from biaskit.errors import StudyError
from biaskit.measures.decisions.lists import (
    Case,
    Person,
    Question,
    check_groups,
    draw,
    pairs_of,
    read_cases,
    read_people,
    read_questions,
    slots_of,
)
from biaskit.measures.decisions.study import DecisionsStudy
from biaskit.models.entry import ModelEntry
from biaskit.records import Prompt, PromptFormat, ScoreRequest, TargetWord, as_record
from biaskit.runs.collection import StoredRun, differ
from biaskit.runs.designs import describe_lists, read_study, sign_design
from biaskit.runs.manifest import StoredDesign
from biaskit.runs.merge import united
from biaskit.runs.sample_batches import SampleBatches

_LISTS = ("cases", "people", "questions")
ANSWER = "Answer:"
"""Begins the answer where a model takes raw text and the wording has no opening of its own."""


class Asked(NamedTuple):
    """One prompt: a wording, a case, and the people in the order in which they are shown."""

    question: Question
    case: Case
    people: tuple[Person, ...]

    @property
    def scope(self) -> dict[str, Any]:
        """The columns of a row that say what it answers."""
        names = " | ".join(person.shown for person in self.people)
        place = {"question": self.question.name, "template_id": self.question.wording}
        return place | {"job": self.case.job, "case": self.case.case, "person": names}

    def prompt(self, prompt_format: PromptFormat) -> Prompt:
        """Build the prompt; raw text goes on with the opening of the answer."""
        text, opening = self.question.put(self.case, self.people), self.question.opening
        if prompt_format == "chat-prefill":
            return Prompt(text, prompt_format, prefill=opening)
        return Prompt(f"{text}\n{opening or ANSWER}", prompt_format)


@dataclass(frozen=True)
class DecisionsDesign:
    """A study with its lists read: everything that each model is asked."""

    study: DecisionsStudy
    cases: tuple[Case, ...]
    people: tuple[Person, ...]  # empty where each case names its person
    questions: tuple[Question, ...]
    sources: dict[str, str]  # every list → its SHA-256
    imported: Mapping[str, Any] | None = None  # decisions that were at hand

    @property
    def contrast(self) -> tuple[str, str]:
        """The two sexes that are compared, the first minus the second."""
        return "female", "male"

    @cached_property
    def asked(self) -> list[Asked]:
        """Every prompt in study order: people run fastest, since they share the beginning."""
        made: list[Asked] = []
        for question in self.questions:
            shown: list[tuple[Person, ...]] = [(person,) for person in self.people]
            if question.choose:
                shown = [order for a, b in pairs_of(self.people) for order in ((a, b), (b, a))]
            for case in self.cases:
                own = [(Person("", case.sex, case.race),)]
                made += [Asked(question, case, people) for people in (shown or own)]
        return made

    def describe(self) -> dict[str, Any]:
        """Describe everything that was asked, with all lists in full."""
        lists = {name: list(map(as_record, getattr(self, name))) for name in _LISTS}
        described = describe_lists(self, **lists, contrast=list(self.contrast))
        return described | ({"imported": dict(self.imported)} if self.imported else {})

    def question(self) -> dict[str, Any]:
        """List what must agree for two commands to share one folder."""
        asked: dict[str, Any] = {"study": self.study.name, "thinking": self.study.thinking}
        asked |= {"texts": {}, "people": {}}
        for case in self.cases:
            asked["texts"][f"{case.case} {case.sex} {case.race}".strip()] = [case.text, case.job]
        for person in self.people:
            asked["people"][person.shown] = [person.sex, person.race, *map(list, person.more)]
        for question in self.questions:
            asked[f"{question.name}, {question.wording}"] = as_record(question)
        return asked

    def sign(self, models: Mapping[str, ModelEntry]) -> str:
        """Write the line that stands under every table: each choice that changes one of its numbers."""
        shown = {"estimator": ",".join(sorted({entry.estimator_name for entry in models.values()}))}
        shown |= {"seed": str(self.study.seed), "reference_race": self.study.reference_race}
        return sign_design(self.study, models, self.describe()["digest"], shown)

    def requests(
        self, fingerprint: str, estimator: object, prompt_format: PromptFormat
    ) -> list[tuple[Asked, ScoreRequest]]:
        """Make the request of each prompt; needs no model."""
        made = []
        told = first_named(estimator) if isinstance(estimator, Mapping) else estimator
        facts: dict[str, object] = {"row_format": ROW_FORMAT, "scoring": SCORING_VERSION}
        facts |= {"model": fingerprint, "estimator": told}
        for asked in self.asked:
            prompt, answers = asked.prompt(prompt_format), asked.question.answers
            own = {"decision": asked.scope, "prompt": first_named(as_record(prompt)), "expressions": answers}
            words = tuple(TargetWord(*answer) for answer in answers)
            made.append((asked, ScoreRequest(key_of({**facts, **own}), prompt, words)))
        return made

    def planned(self, entry: ModelEntry) -> list[tuple[Asked, ScoreRequest]]:
        """Make the requests of a model in a manifest."""
        return self.requests(entry.fingerprint, entry.estimator_key, entry.prompt_format)

    def batches(self, entry: ModelEntry) -> SampleBatches:
        """Say in which batches a model in a manifest is asked for samples."""
        return SampleBatches.up_to(entry.samples, self.study.max_samples_per_prompt)


def resolve(study: DecisionsStudy, given: Mapping[str, Source] | None = None) -> DecisionsDesign:
    """Read and check the lists of a study; `given`: lists that are in memory, in their place."""
    source: dict[str, Source] = {name: getattr(study, name) for name in _LISTS} | dict(given or {})
    cases = read_cases(source["cases"], study.jobs, study.n_cases)
    named = any(case.sex or case.race for case in cases)  # each text says who it is about
    questions = read_questions(source["questions"], eval_texts=named)
    people: tuple[Person, ...] = ()
    if named:
        check_groups(cases, str(study.cases))
        source.pop("people")
        if any(question.choose for question in questions):
            raise StudyError("Two people are chosen between in cases that do not name one: leave out choose.")
    else:
        texts = [*(case.text for case in cases), *(q.layout + q.text for q in questions)]
        slots = set[str]().union(*map(slots_of, texts))
        people = draw(read_people(source["people"], slots), study.n_people, study.seed)
        _check_prompts(cases, people, questions)
    lists: dict[str, Any] = {"cases": cases, "people": people, "questions": questions}
    sources = {}
    for name, stated in source.items():
        if isinstance(stated, str):
            sources[stated] = source_digest(stated)
        else:
            sources[f"{name} in memory"] = digest(list(map(as_record, lists[name])))
    return DecisionsDesign(study, **lists, sources=sources)


def _check_prompts(cases: Sequence[Case], people: Sequence[Person], questions: Sequence[Question]) -> None:
    """Refuse slots that nobody fills where two are shown, and groups that are asked in the same words."""
    one_of_each = [own[0] for own in group_by(people, attrgetter("sex", "race")).values()]
    for question, case in product(questions, cases):
        place = f"{question.name} ({question.wording}), case {shown(case.case)}"
        if question.choose:
            if slots := slots_of(case.text + question.layout + question.text):
                raise StudyError(f"{place}: two are shown, and nobody fills [{min(slots)}]. Remove it.")
        elif len({question.put(case, [person]) for person in one_of_each}) < len(one_of_each):
            raise StudyError(f"{place}: people of two groups get one prompt. Write [NAME] into its text.")


# --- in the manifest of a run ----------------------------------------------------------------------


class Stored(StoredDesign):
    """A study of decisions, as its manifest holds it under `resolved`."""

    cases: tuple[Case, ...]
    people: tuple[Person, ...]
    questions: tuple[Question, ...]
    imported: dict[str, Any] | None = None


def read(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> DecisionsDesign:
    """Read the design that a manifest describes; `overrides` may set analysis keys only."""
    stored, study = Stored.model_validate(resolved), read_study(resolved, overrides)
    lists: dict[str, Any] = attributes(stored, (*_LISTS, "sources", "imported"))
    return DecisionsDesign(cast("DecisionsStudy", study), **lists)


def unite(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Make one design of two of the same study: what either asked, in the first's order."""
    merged = united(first, second, *_LISTS)
    return {**merged, "sources": {**second["sources"], **first["sources"]}}


def one_part(run: StoredRun, other: StoredRun) -> bool:
    """Tell whether two runs of one study decide on the same cases and people."""
    return not any(differ(run, other, name) for name in ("texts", "people"))
