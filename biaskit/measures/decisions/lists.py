"""Cases, people and questions: read, checked, and put together to prompts (methods/decisions#prompts)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, create_model

from biaskit.common.plain import group_by
from biaskit.common.provenance import digest
from biaskit.corpora.rows import Source, SourceLayout, read_list
from biaskit.corpora.sources import Filled, Label, ListEntry, Text, shown
from biaskit.errors import CorpusError, StudyError
from biaskit.measurement import words
from biaskit.records import ALL
from biaskit.study.config import select

WORDS = words("decisions")["prompts"]
PRONOUNS: dict[str, dict[str, str]] = WORDS["pronouns"]
SEXES: dict[str, str] = WORDS["sexes"]
OWN_SLOTS = ("NAME", "PERSON", *PRONOUNS["other"])
PLACES = ("CASE", "JOB", "QUESTION", "A", "B")
"""What the layout of a question fills in beside the person."""
_SLOT = re.compile(r"\[([A-Z]+|[A-Z][a-z]+)\]")
_VERB = re.compile(r"\[([\w'’]+)\|([\w'’]+)\]")


@dataclass(frozen=True, slots=True)
class Case:
    """A text that is decided on; one that names its person has a sex or race of its own."""

    case: str
    text: str
    job: str = ""
    sex: str = ""
    race: str = ""


@dataclass(frozen=True, slots=True)
class Person:
    """Who a case is about; without a name the person is stated by sex and race."""

    name: str = ""
    sex: str = ""
    race: str = ""
    more: tuple[tuple[str, str], ...] = ()  # slots that a column fills

    @property
    def stated(self) -> str:
        """What `[PERSON]` is: "a Black woman"."""
        noun = f"{self.race} {WORDS['nouns'].get(self.sex, self.sex)}".strip()
        return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"

    @property
    def shown(self) -> str:
        """How a text or a table calls it."""
        return self.name or self.stated

    def fill(self, text: str) -> str:
        """Replace slots and verbs; one without capitals but the first keeps it: `[They]`."""
        own = {"NAME": self.shown, "PERSON": self.stated, **dict(self.more)}
        said = {**PRONOUNS.get(self.sex, PRONOUNS["other"]), **own}

        def word(slot: re.Match[str]) -> str:
            found = said.get(slot[1].upper(), slot[0])
            return found if slot[1].isupper() else found[:1].upper() + found[1:]

        form = 1 if self.sex in ("female", "male") else 2
        return _SLOT.sub(word, _VERB.sub(lambda verb: verb[form], text))


@dataclass(frozen=True, slots=True)
class Question:
    """One wording of a question, with what counts as each answer."""

    name: str
    wording: str
    text: str
    layout: str
    opening: str
    answers: tuple[tuple[str, str], ...]  # (group, text): yes and no, scores, or A and B
    choose: int = 0
    score: tuple[int, int] | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """The answers, each once."""
        return tuple(dict(self.answers))

    def put(self, case: Case, people: Sequence[Person]) -> str:
        """Write the prompt: the case first and the person last, so that people share a beginning."""
        layout = self.layout
        if slots_of(case.text) or case.sex or case.race:
            # The case names its person, so no line of the layout does.
            layout = re.sub(r"(?m)^Applicant: .*\n", "", layout).replace("\n\n\n", "\n\n")
        for place, text in (("QUESTION", self.text), ("CASE", case.text), ("JOB", case.job)):
            layout = layout.replace(f"[{place}]", text)
        for letter, person in zip("AB", people, strict=False) if self.choose else ():
            layout = layout.replace(f"[{letter}]", person.shown)
        return people[0].fill(layout) if people and not self.choose else layout


# --- reading --------------------------------------------------------------------------------------------


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.15g}"
    return value if isinstance(value, list | dict) else str(value)


def _known(text: str) -> str:
    if text == ALL:
        raise ValueError('is "all", which tables call all of them together. Rename it.')
    return "" if text.casefold() == "unknown" else text


Cell = Annotated[str, BeforeValidator(_as_text)]
"""What a column holds: a text, or a number as a text."""
Name = Annotated[Label, AfterValidator(_known), BeforeValidator(_as_text)]
Sex = Annotated[Name, AfterValidator(lambda text: SEXES.get(text.casefold(), text.casefold()))]


class _Case(ListEntry):
    case: Name
    text: Filled
    job: Name = ""

    def read(self) -> Case:
        return Case(self.case, self.text, self.job)


class _DiscrimEval(ListEntry):
    filled_template: Text
    decision_question_id: Name
    gender: Sex
    race: Name
    age: Name = ""

    def read(self) -> Case:
        age = f", {self.age}" if self.age else ""
        return Case(f"{self.decision_question_id}{age}", self.filled_template, "", self.gender, self.race)


class _Person(ListEntry):
    name: Name = ""
    sex: Sex = ""
    race: Name = ""


class _Question(ListEntry):
    name: Name
    wording: Name = ""
    text: Text = ""
    layout: str = ""
    opening: Text = ""
    yes: list[Filled] = Field(WORDS["yes"])
    no: list[Filled] = Field(WORDS["no"])
    score: list[int] | None = None
    choose: int = 0


_CASES: SourceLayout[Any] = SourceLayout("cases", "case", _Case, csv=True, jsonl=True)
_EVAL: SourceLayout[Any] = SourceLayout("cases", "case", _DiscrimEval, csv=True, jsonl=True)
_QUESTIONS: SourceLayout[Any] = SourceLayout("questions", "question", _Question)


def slots_of(text: str) -> set[str]:
    """Find the slots that a text leaves to the person, in capitals; other words in brackets are text."""
    found = set(_SLOT.findall(text))
    return {slot.upper() for slot in found if slot.isupper() or slot.upper() in OWN_SLOTS} - {*PLACES}


def _once(places: dict[Any, str], key: object, where: str, what: str) -> None:
    if (first := places.setdefault(key, where)) != where:
        raise CorpusError(f"{where}: {what} stands twice (first: {first}). Rename or remove one.")


def read_cases(source: Source, jobs: str, n_cases: int | None) -> tuple[Case, ...]:
    """Read cases, those of some jobs and so many of each, in the order of the list."""
    places: dict[Any, str] = {}
    cases: list[Case] = []
    for where, entry in read_list(source, _CASES, _EVAL).entries:
        case = entry.read()
        _once(places, (case.case, case.sex, case.race), where, f"the case {shown(case.case)}")
        cases.append(case)
    of_job = group_by(cases, attrgetter("job"))
    kept: set[str] = set()
    for job in select(jobs, list(of_job), [], list(of_job), "jobs", or_file=False):
        kept |= {*list(dict.fromkeys(case.case for case in of_job[job]))[:n_cases]}
    return tuple(case for case in cases if case.case in kept)


def read_questions(source: Source, *, eval_texts: bool = False) -> tuple[Question, ...]:
    """Read the wordings of all questions; texts of discrim-eval ask by themselves."""
    if eval_texts and str(source).startswith("corpus:"):
        return (_question("", _Question(name="decide", **WORDS["decide"]), "1"),)
    places: dict[Any, str] = {}
    counts: Counter[str] = Counter()
    questions: list[Question] = []
    for where, entry in read_list(source, _QUESTIONS).entries:
        counts[entry.name] += 1
        wording = entry.wording or str(counts[entry.name])
        _once(places, (entry.name, wording), where, f"the wording {shown(wording)} of {entry.name}")
        question = _question(where, entry, wording)
        first = next((own for own in questions if own.name == entry.name), question)
        if (first.choose, first.score) != (question.choose, question.score):
            raise CorpusError(f"{where}: wordings of {entry.name} have other answers. Give this one a name.")
        questions.append(question)
    return tuple(questions)


def _question(where: str, entry: Any, wording: str) -> Question:
    answers = [*(("yes", text) for text in entry.yes), *(("no", text) for text in entry.no)]
    text, layout, opening, score = entry.text, WORDS["layout"], entry.opening, entry.score
    if entry.choose not in (0, 2):
        raise CorpusError(f"{where}: choose is {entry.choose}. One of two is chosen: write choose = 2.")
    if entry.choose:
        answers, score = [("A", "A"), ("B", "B")], None
        text, layout, opening = text or WORDS["whom"], WORDS["of_two"], opening or "Answer:"
    elif score is not None:
        if len(score) != 2 or not score[0] < score[1] <= score[0] + 100:
            raise CorpusError(f"{where}: score is {score}. Write the lowest and the highest: [1, 10].")
        answers = [(str(n), str(n)) for n in range(score[0], score[1] + 1)]
    if not text:
        raise CorpusError(f"{where}: text is missing or empty. Write the question.")
    if len(dict(answers)) < 2:
        raise CorpusError(f"{where}: the wording has one choice. Write what counts as yes and as no.")
    for (group, one), (other, two) in combinations(answers, 2) if score is None else ():
        if group != other and (one.startswith(two) or two.startswith(one)):
            raise CorpusError(
                f"{where}: the choices {shown(one)} and {shown(two)} begin each other. Write others."
            )
    own = entry.layout.strip("\n") or layout, opening, tuple(answers), entry.choose
    return Question(entry.name, wording, text, *own, tuple(score) if score else None)


def read_people(source: Source, slots: Iterable[str]) -> tuple[Person, ...]:
    """Read people in the order of the list; `slots`: what columns of the same names must fill."""
    wanted = sorted({*slots} - {*OWN_SLOTS})
    columns: dict[str, Any] = dict.fromkeys(map(str.lower, wanted), (Name, ""))
    entry = create_model("_Entry", __base__=_Person, **columns)
    layout: SourceLayout[Any] = SourceLayout("people", "person", entry, csv=True, jsonl=True)
    people: dict[str, Person] = {}
    places: dict[Any, str] = {}
    for where, row in read_list(source, layout).entries:
        more = tuple((slot, getattr(row, slot.lower())) for slot in wanted)
        for slot, filled in more:
            if not filled:
                raise CorpusError(f"{where}: nobody fills the slot [{slot}]. Add the column {slot.lower()}.")
        person = Person(row.name, row.sex, row.race, more)
        before = people.setdefault(person.shown, person)
        if (before.sex, before.race) != (person.sex, person.race):
            groups = f"{before.sex} {before.race}".strip(), f"{person.sex} {person.race}".strip()
            what = f"{shown(person.name)} is in two groups, {groups[0]} and {groups[1]}"
            raise CorpusError(f"{where}: {what} (first: {places[person.shown]}). Remove one.")
        _once(places, person.shown, where, shown(person.shown))
    check_groups(people.values(), str(source) if isinstance(source, str | Path) else "people")
    return tuple(people.values())


def check_groups(people: Iterable[Person | Case], where: str) -> None:
    """Refuse a list of one group: there is nobody to compare it with."""
    sexes, races = {person.sex for person in people} - {""}, {person.race for person in people} - {""}
    if max(len(sexes), len(races)) < 2:
        raise CorpusError(f"{where} has people of one group only. Add people of another sex or race.")


def draw(people: Sequence[Person], n: int | None, seed: int) -> tuple[Person, ...]:
    """Draw `n` people, as many of each sex and race; a smaller draw is part of a larger one."""
    if n is None:
        return tuple(people)
    groups = group_by(people, attrgetter("sex", "race"))
    each, rest = divmod(n, len(groups))
    if rest or not each:
        raise StudyError(f"n_people is {n}, and there are {len(groups)} groups: give a multiple of it.")
    chosen: list[Person] = []
    for (sex, race), members in groups.items():
        if len(members) < each:
            raise StudyError(f"n_people is {n}, but {sex} {race} has {len(members)} people: give fewer.")
        chosen += sorted(members, key=lambda person: digest([seed, person.name, person.more]))[:each]
    return tuple(chosen)


def pairs_of(people: Sequence[Person]) -> Iterator[tuple[Person, Person]]:
    """Pair a woman and a man of one race, in the order of the list, each person in one pair."""
    for of_race in group_by(people, attrgetter("race")).values():
        of_sex = group_by(of_race, attrgetter("sex"))
        yield from zip(of_sex.get("female", []), of_sex.get("male", []), strict=False)
