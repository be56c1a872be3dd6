"""Which words mark the groups of a column of the user's own, alone and crossed with gender.

See docs/methods.md#groups; Marked Personas (Cheng et al. 2023). A group is held against the unmarked ones, or
against all others where none is; a crossed one (Black women) against those and against the other gender.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from biaskit.common.wording import short
from biaskit.errors import StudyError, nearest
from biaskit.personas.texts.documents import TextDocument, TextDocuments
from biaskit.personas.texts.tokens import letters
from biaskit.personas.words.contrasts import WordList, contrast_lists
from biaskit.personas.words.gender_words import is_gender_word, says_gender
from biaskit.personas.words.labelled_texts import Contrast, LabelledTexts, Labels, labelled_texts
from biaskit.personas.words.log_odds import METHODS
from biaskit.personas.words.run_lists import length_notes, names_of, prior_of
from biaskit.records import GENDERS, WOMEN_AND_MEN
from biaskit.stats.crossed import joined
from biaskit.stats.resampling import generator
from biaskit.study.keys import PersonasStudy
from biaskit.tables.query import Row

OTHERS = "others"
"""What a group is held against where none is unmarked: the texts of all other groups together."""
EVERY_GENDER = ""
"""The gender of a row that takes a group's texts whatever their gender."""
Cell = tuple[str, str]
"""A group and a gender; texts of nobody's gender have `EVERY_GENDER`."""


@dataclass(frozen=True, slots=True)
class GroupList:
    """The words that mark a group, or one gender of it, by one method."""

    model: str
    group: str
    gender: str
    words: WordList


@dataclass(frozen=True, slots=True)
class GroupLists:
    """Every list of a run's groups; the words that name a group by themselves."""

    column: str
    lists: tuple[GroupList, ...]
    names: Mapping[str, frozenset[str]]  # model → names among its words
    own_words: frozenset[str]


def make_group_lists(
    documents: TextDocuments,
    study: PersonasStudy,
    english: Mapping[str, int],
    progress: Callable[[int, int], None] | None = None,
) -> GroupLists | None:
    """The lists of every group and crossed group of each model; None where no column of groups was given.

    Raises `StudyError` for unmarked groups that the column does not hold.
    """
    column = documents.group_column
    if column is None:
        if study.unmarked:
            raise StudyError(
                "unmarked names groups, and these texts have none: --group-col names their column."
            )
        return None
    groups = list(dict.fromkeys(text.group for text in documents.texts if text.group is not None))
    unmarked = check_unmarked(study.unmarked, groups, column)
    own_words, names = words_of_labels(groups), names_of(documents, study)
    made: list[GroupList] = []
    for done, model in enumerate(documents.models):
        if progress:
            progress(done, len(documents.models))
        left_out = says_gender(documents.tokens.words, names[model])
        left_out |= np.array([letters(word) in own_words for word in documents.tokens.words], dtype=np.bool_)
        made += _of_model(documents, study, english, model, groups, unmarked, left_out)
    if progress:
        progress(len(documents.models), len(documents.models))
    return GroupLists(column, tuple(made), names, own_words)


def check_unmarked(unmarked: Sequence[str], groups: Sequence[str], column: str) -> tuple[str, ...]:
    """The unmarked groups, each once; `StudyError` where one is no group, or no group is left."""
    for one in unmarked:
        if one not in groups:
            listed = ", ".join(short(group) for group in groups[:12]) + (", …" if len(groups) > 12 else "")
            raise StudyError(
                f"unmarked: {short(column)} holds no {short(repr(one))}.{nearest(one, groups)}"
                f" It holds {listed}."
            )
    if groups and set(unmarked) >= set(groups):
        raise StudyError(f"unmarked names every group of {short(column)}: leave out those to look at.")
    return tuple(dict.fromkeys(unmarked))


def words_of_labels(groups: Sequence[str]) -> frozenset[str]:
    """What the groups are called, in letters a-z: whole words, and their parts at what is no letter."""
    parts = (part for group in groups for part in [*group.split(), *re.split(r"[\W_]+", group)])
    return frozenset(filter(None, map(letters, parts)))


def _of_model(
    documents: TextDocuments,
    study: PersonasStudy,
    english: Mapping[str, int],
    model: str,
    groups: Sequence[str],
    unmarked: Sequence[str],
    left_out: np.ndarray,
) -> Iterator[GroupList]:
    texts = [
        text for text in documents.texts if text.model == model and text.group is not None and text.describes
    ]
    cells = sorted({_cell(text) for text in texts}, key=lambda cell: (groups.index(cell[0]), cell[1]))
    asked = list(_contrasts(cells, groups, unmarked))
    crossed = [one for one in asked if one[1] != EVERY_GENDER]
    words = documents.tokens.words
    labelled = labelled_texts(
        documents.tokens.counts()[[text.place for text in texts]],
        words,
        [str(cells.index(_cell(text))) for text in texts],
        [_within(text, text.gender or EVERY_GENDER) for text in texts],
        np.array([english.get(word, 0) for word in words], dtype=np.float64),
        tuple(str(place) for place in range(len(cells))),
        left_out,
        whole_topic=study.prior_scope == "all",
    )
    found = _lists(labelled, asked, study, model, "groups")
    if crossed:
        # The other null of a crossed group: genders shuffled within the group, among texts that have one.
        within = [_within(text, f"{groups.index(str(text.group))} {bool(text.gender)}") for text in texts]
        also = _lists(replace(labelled, strata=tuple(within)), crossed, study, model, "genders")
        for key, other in also.items():  # its list must be longer than by either null
            one, nulls = found[key], dict[str, Any]()
            for name in _NULLS:
                values = (getattr(one, name), getattr(other, name))
                nulls[name] = None if None in values else max(values)
            reasons = dict.fromkeys(reason for reason in (one.reason, other.reason) if reason)
            found[key] = replace(one, **nulls, reason=joined(list(reasons)))
    for (group, gender, _), one in found.items():
        yield GroupList(model, group, gender, one)


def _cell(text: TextDocument) -> Cell:
    return str(text.group), text.gender or EVERY_GENDER


def _within(text: TextDocument, and_also: str) -> str:
    """The texts among which labels are exchanged: those of one prompt, origin and whatever else is kept."""
    return "\n".join((text.occupation, text.template_id, text.origin, and_also))


def _lists(
    texts: LabelledTexts,
    asked: Sequence[tuple[str, str, Contrast]],
    study: PersonasStudy,
    model: str,
    shuffled: str,
) -> dict[tuple[str, str, str], WordList]:
    """(group, gender, method) → its list, beside the null of one kind of shuffles."""
    rng = generator(study.seed, "group_lists", [model, shuffled])
    contrasts = [contrast for _, _, contrast in asked]
    keys = [(group, gender, method) for group, gender, _ in asked for method in METHODS]
    lists = contrast_lists(
        texts, contrasts, prior_of(study), METHODS, rng, study.permutations, shuffled=shuffled
    )
    return dict(zip(keys, lists, strict=True))


# --- who is held against whom --------------------------------------------------------------------------


def _contrasts(
    cells: Sequence[Cell], groups: Sequence[str], unmarked: Sequence[str]
) -> Iterator[tuple[str, str, Contrast]]:
    """Each group, then its genders: (group, gender, contrast)."""

    def of_group(group: str) -> Labels:
        return tuple(i for i, cell in enumerate(cells) if cell[0] == group)

    def of_gender(gender: str) -> Labels:
        return tuple(i for i, cell in enumerate(cells) if cell[1] == gender)

    genders = [gender for gender in GENDERS if of_gender(gender)]
    for group in groups:
        own = of_group(group)
        rest = tuple(i for i in range(len(cells)) if i not in own)
        # An unmarked group is held against each of the marked ones, as Marked Personas does for White.
        named = unmarked if group not in unmarked else [one for one in groups if one not in unmarked]
        against = {name: of_group(name) for name in named} if unmarked else {OTHERS: rest}
        yield group, EVERY_GENDER, _contrast(group, own, against)
        for gender in genders if len(genders) > 1 else ():
            cell = tuple(i for i in own if cells[i][1] == gender)
            if own and cell == own:  # it would be the group's list with a gender before it
                continue
            # Women against men and men against women; non-binary people against both.
            rivals = [other for other in WOMEN_AND_MEN if other != gender and other in genders]
            rivals = rivals or [other for other in genders if other != gender]
            others: dict[str, Labels] = {other: of_gender(other) for other in rivals}
            yield group, gender, _contrast(f"{group} {gender}", cell, against, others)


def _contrast(
    name: str, target: Labels, of_groups: Mapping[str, Labels], of_genders: Mapping[str, Labels] | None = None
) -> Contrast:
    named = [*of_groups.items(), *(of_genders or {}).items()]
    return Contrast(
        target=target,
        against=tuple(labels for _, labels in named),
        name=name,
        opponents=tuple("other" if said == OTHERS else said for said, _ in named),
        said_against=" & ".join(said for said, _ in named),
    )


_NULLS = (
    *("null_mean", "null_p95", "p_value", "p_value_max_z"),
    *("null_p95_beyond", "p_value_beyond", "p_value_max_z_beyond"),
)


# --- tables --------------------------------------------------------------------------------------------


def group_word_rows(lists: GroupLists) -> Iterator[Row]:
    """group_words.csv: every marked word of every list."""
    for one in lists.lists:
        for marked in one.words.words:
            yield {
                **_scope(lists, one),
                **asdict(marked),
                "is_name": marked.word in lists.names[one.model],
                "is_gender_word": is_gender_word(marked.word),
                "is_group_word": letters(marked.word) in lists.own_words,
            }


def group_list_rows(lists: GroupLists) -> Iterator[Row]:
    """group_lists.csv: how long each list is, beside its null."""
    for one in lists.lists:
        yield {
            **_scope(lists, one),
            **{name: getattr(one.words, name) for name in ("n_marked", "n_marked_beyond", *_NULLS)},
            **{name: getattr(one.words, name) for name in ("n_target", "n_unmarked", "reason")},
        }


def _scope(lists: GroupLists, one: GroupList) -> Row:
    return {
        "model": one.model,
        "column": lists.column,
        "group": one.group,
        "against": one.words.against,
        "gender": one.gender,
        "method": one.words.method,
    }


def group_notes(lists: GroupLists, documents: TextDocuments, study: PersonasStudy) -> Iterator[str]:
    """What is in no group, what a group is held against, and which lists rest on few texts."""
    column = short(lists.column)
    if without := sum(text.group is None for text in documents.texts):
        yield f"{without:,} of {len(documents.texts):,} texts have no {column}: they are in no list of groups"
    if not study.unmarked:
        yield (f"no group of {column} is unmarked (--unmarked): each is held against all others together")
    yield from length_notes(
        [one.words for one in lists.lists],
        f"lists of {column}",
        "labels, all without gender words, names and the groups' own names",
        "group_lists.csv",
    )
