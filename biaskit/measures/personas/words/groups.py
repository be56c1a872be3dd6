"""Which words mark the groups of a user's own column, alone and crossed with gender.

See methods/words#groups; Marked Personas (Cheng et al. 2023). A group is held against the unmarked ones, or
against all others where none is; a crossed one (Black women) also against the other gender.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from biaskit.common.wording import short
from biaskit.errors import StudyError, nearest
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.copies import distinct
from biaskit.measures.personas.texts.documents import TextDocument, TextDocuments
from biaskit.measures.personas.texts.tokens import letters
from biaskit.measures.personas.words.contrasts import WordList, contrast_lists
from biaskit.measures.personas.words.gender_words import is_gender_word, says_gender
from biaskit.measures.personas.words.labelled_texts import Contrast, LabelledTexts, Labels, labelled_texts
from biaskit.measures.personas.words.log_odds import METHODS
from biaskit.measures.personas.words.run_lists import Progress, length_notes, names_of, prior_of
from biaskit.records import GENDERS, WOMEN_AND_MEN
from biaskit.stats.crossed import joined
from biaskit.stats.resampling import generator
from biaskit.tables.query import Row

OTHERS = "others"
"""What a group is held against where none is unmarked: the texts of all other groups together."""
EVERY_GENDER = ""  # the gender of a row that takes a group's texts whatever their gender
Cell = tuple[str, str]  # a group and a gender; texts of nobody's gender have `EVERY_GENDER`


@dataclass(frozen=True, slots=True)
class GroupList:
    """The words that mark a group, or one gender of it, by one method."""

    model: str
    group: str
    gender: str
    words: WordList


@dataclass(frozen=True, slots=True)
class GroupLists:
    """Every list of a run's groups, and the words that name a group by themselves."""

    column: str
    lists: tuple[GroupList, ...]
    names: Mapping[str, frozenset[str]]  # model → names among its words
    own_words: frozenset[str]


def make_group_lists(
    documents: TextDocuments, study: PersonasStudy, english: Mapping[str, int], progress: Progress
) -> GroupLists | None:
    """Make the lists of every group and crossed group; None without a column. Raises `StudyError`."""
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
    lists: list[GroupList] = []
    for done, model in enumerate(documents.models):
        progress(done, len(documents.models))
        left_out = says_gender(documents.tokens.words, names[model])
        left_out |= np.array([letters(word) in own_words for word in documents.tokens.words], dtype=np.bool_)
        lists += _of_model(documents, study, english, model, groups, unmarked, left_out)
    progress(len(documents.models), len(documents.models))
    return GroupLists(column, tuple(lists), names, own_words)


def check_unmarked(unmarked: Sequence[str], groups: Sequence[str], column: str) -> tuple[str, ...]:
    """Check the unmarked groups, and return each once; `StudyError` if one is no group, or none is left."""
    for name in unmarked:
        if name not in groups:
            listed = ", ".join(short(group) for group in groups[:12]) + (", …" if len(groups) > 12 else "")
            raise StudyError(
                f"unmarked: {short(column)} has no {short(repr(name))}.{nearest(name, groups)}"
                f" It has {listed}."
            )
    if groups and set(unmarked) >= set(groups):
        raise StudyError(f"unmarked names every group of {short(column)}: leave out the groups of interest.")
    return tuple(dict.fromkeys(unmarked))


def words_of_labels(groups: Sequence[str]) -> frozenset[str]:
    """Split the groups' names into words of letters a-z: at white space, and at all that is no letter."""
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
    of_groups = (text for text in documents.texts if text.model == model and text.group is not None)
    texts = distinct((text for text in of_groups if text.describes), _cell)
    cells = sorted({_cell(text) for text in texts}, key=lambda cell: (groups.index(cell[0]), cell[1]))
    contrasts = list(_contrasts(cells, groups, unmarked))
    crossed = [triple for triple in contrasts if triple[1] != EVERY_GENDER]
    words = documents.tokens.words
    labelled = labelled_texts(
        documents.tokens.counts[[text.place for text in texts]],
        words,
        [str(cells.index(_cell(text))) for text in texts],
        [_within(text, text.gender or EVERY_GENDER) for text in texts],
        np.array([english.get(word, 0) for word in words], dtype=np.float64),
        tuple(str(place) for place in range(len(cells))),
        left_out,
        whole_topic=study.prior_scope == "all",
    )
    lists = _lists(labelled, contrasts, study, model, "groups")
    if crossed:
        # The other null of a crossed group: genders shuffled within the group, among texts that have one.
        within = [_within(text, f"{groups.index(str(text.group))} {bool(text.gender)}") for text in texts]
        also = _lists(replace(labelled, strata=tuple(within)), crossed, study, model, "genders")
        for key, by_gender in also.items():  # the larger null counts
            word_list, nulls = lists[key], dict[str, Any]()
            for name in _NULLS:
                values = (getattr(word_list, name), getattr(by_gender, name))
                nulls[name] = None if None in values else max(values)
            reasons = dict.fromkeys(reason for reason in (word_list.reason, by_gender.reason) if reason)
            lists[key] = replace(word_list, **nulls, reason=joined(list(reasons)))
    for (group, gender, _), word_list in lists.items():
        yield GroupList(model, group, gender, word_list)


def _cell(text: TextDocument) -> Cell:
    return str(text.group), text.gender or EVERY_GENDER


def _within(text: TextDocument, and_also: str) -> str:
    """Name the stratum in which labels are shuffled: one prompt, one origin, and whatever else is kept."""
    return "\n".join((text.occupation, text.template_id, text.origin, and_also))


def _lists(
    texts: LabelledTexts,
    named_contrasts: Sequence[tuple[str, str, Contrast]],
    study: PersonasStudy,
    model: str,
    shuffled: str,
) -> dict[tuple[str, str, str], WordList]:
    """Map (group, gender, method) to its list, beside the null of one kind of shuffles."""
    rng = generator(study.seed, "group_lists", [model, shuffled])
    contrasts = [contrast for _, _, contrast in named_contrasts]
    keys = [(group, gender, method) for group, gender, _ in named_contrasts for method in METHODS]
    lists = contrast_lists(
        texts, contrasts, prior_of(study), METHODS, rng, study.permutations, shuffled=shuffled
    )
    return dict(zip(keys, lists, strict=True))


# --- who is held against whom --------------------------------------------------------------------------


def _contrasts(
    cells: Sequence[Cell], groups: Sequence[str], unmarked: Sequence[str]
) -> Iterator[tuple[str, str, Contrast]]:
    """Yield (group, gender, contrast) for each group, then for its genders."""

    def labels_of(name: str, part: int) -> Labels:
        return tuple(i for i, cell in enumerate(cells) if cell[part] == name)

    of_gender = {gender: labels for gender in GENDERS if (labels := labels_of(gender, 1))}
    for group in groups:
        in_group = labels_of(group, 0)
        all_others = tuple(i for i in range(len(cells)) if i not in in_group)
        # An unmarked group is held against each of the marked ones, as Marked Personas does for White.
        opponents = unmarked if group not in unmarked else [name for name in groups if name not in unmarked]
        against = {name: labels_of(name, 0) for name in opponents} if unmarked else {OTHERS: all_others}
        yield group, EVERY_GENDER, _contrast(group, in_group, list(against.items()))
        for gender in of_gender if len(of_gender) > 1 else ():
            target = tuple(i for i in in_group if cells[i][1] == gender)
            if in_group and target == in_group:  # it would be the group's list under another name
                continue
            # Women against men and men against women; non-binary people against both.
            rivals = [rival for rival in WOMEN_AND_MEN if rival != gender and rival in of_gender]
            rivals = rivals or [rival for rival in of_gender if rival != gender]
            sides = [*against.items(), *((rival, of_gender[rival]) for rival in rivals)]
            yield group, gender, _contrast(f"{group} {gender}", target, sides)


def _contrast(name: str, target: Labels, sides: Sequence[tuple[str, Labels]]) -> Contrast:
    return Contrast(
        target=target,
        against=tuple(labels for _, labels in sides),
        name=name,
        opponents=tuple("other" if opponent == OTHERS else opponent for opponent, _ in sides),
        said_against=" & ".join(opponent for opponent, _ in sides),
    )


_NULLS = (
    *("null_mean", "null_p95", "p_value", "p_value_max_z"),
    *("null_p95_beyond", "p_value_beyond", "p_value_max_z_beyond"),
)


# --- tables --------------------------------------------------------------------------------------------


def group_word_rows(lists: GroupLists) -> Iterator[Row]:
    """Yield the rows of group_words.csv: every marked word of every list."""
    for group_list in lists.lists:
        for marked in group_list.words.words:
            yield {
                **_scope(lists, group_list),
                **asdict(marked),
                "is_name": marked.word in lists.names[group_list.model],
                "is_gender_word": is_gender_word(marked.word),
                "is_group_word": letters(marked.word) in lists.own_words,
            }


def group_list_rows(lists: GroupLists) -> Iterator[Row]:
    """Yield the rows of group_lists.csv: how long each list is, beside its null."""
    columns = ("n_marked", "n_marked_beyond", *_NULLS, "n_target", "n_unmarked", "reason")
    for group_list in lists.lists:
        yield {**_scope(lists, group_list), **{name: getattr(group_list.words, name) for name in columns}}


def _scope(lists: GroupLists, group_list: GroupList) -> Row:
    of_group = {name: getattr(group_list, name) for name in ("model", "group", "gender")}
    of_list = {name: getattr(group_list.words, name) for name in ("against", "method")}
    return {**of_group, **of_list, "column": lists.column}


def group_notes(lists: GroupLists, documents: TextDocuments, study: PersonasStudy) -> Iterator[str]:
    """Note texts in no group, what a group is compared with, and lists of few texts."""
    column = short(lists.column)
    if without := sum(text.group is None for text in documents.texts):
        yield f"{without:,} of {len(documents.texts):,} texts have no {column}: they are in no group's list"
    if not study.unmarked:
        yield f"no reference group of {column} (--unmarked): each is compared with all others together"
    yield from length_notes(
        [group_list.words for group_list in lists.lists],
        f"lists of {column}",
        "labels, all without gendered words, names and the groups' own names",
        "group_lists.csv",
    )
