"""Which words mark the groups of a user's own column, alone and crossed with gender.

See methods/words#groups; Marked Personas (Cheng et al. 2023). A group is held against the unmarked ones, or
against all others where none is; a crossed one (Black women) also against the other gender.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from biaskit.common.plain import attributes
from biaskit.common.wording import joined, short
from biaskit.errors import StudyError, nearest
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.copies import distinct
from biaskit.measures.personas.texts.documents import TextDocument, TextDocuments
from biaskit.measures.personas.texts.names import says_gender
from biaskit.measures.personas.texts.tokens import letters, mask
from biaskit.measures.personas.words.contrasts import WordList, contrast_lists
from biaskit.measures.personas.words.labelled_texts import Contrast, LabelledTexts, Labels, labelled_texts
from biaskit.measures.personas.words.log_odds import METHODS, counts_in
from biaskit.measures.personas.words.run_lists import NOTES, Progress, length_notes, names_of, prior_of
from biaskit.records import GENDERS, WOMEN_AND_MEN
from biaskit.stats.resampling import generator
from biaskit.tables.query import Row

OTHERS = "others"
"""What a group is held against where none is unmarked: the texts of all other groups together."""
EVERY_GENDER = ""  # the gender of a row that takes a group's texts whatever their gender
Cell = tuple[str, str]  # a group and a gender; texts of nobody's gender have `EVERY_GENDER`


_Key = tuple[str, str, str, str]  # model, group, gender (a `Cell`) and method of a list


@dataclass(frozen=True, slots=True)
class GroupLists:
    """Every list of a run's groups, and the words that name a group by themselves."""

    column: str
    lists: Mapping[_Key, WordList]
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
    groups = [*dict.fromkeys(text.group for text in documents.texts if text.group is not None)]
    unmarked = check_unmarked(study.unmarked, groups, column)
    own_words, names = words_of_labels(groups), names_of(documents, study)
    lists: dict[_Key, WordList] = {}
    for done, model in enumerate(documents.models):
        progress(done, len(documents.models))
        left_out = says_gender(documents.tokens.words, names[model])
        left_out |= mask(documents.tokens.words, lambda word: letters(word) in own_words)
        lists |= _of_model(documents, study, english, model, groups, unmarked, left_out)
    progress(len(documents.models), len(documents.models))
    return GroupLists(column, lists, names, own_words)


def check_unmarked(unmarked: Sequence[str], groups: Sequence[str], column: str) -> tuple[str, ...]:
    """Check the unmarked groups, and return each once; `StudyError` if one is no group, or none is left."""
    for name in unmarked:
        if name not in groups:
            listed = ", ".join(map(short, groups[:12])) + (", …" if len(groups) > 12 else "")
            raise StudyError(
                f"unmarked: {short(column)} has no {short(repr(name))}.{nearest(name, groups)}"
                f" It has {listed}."
            )
    if groups and set(unmarked) >= set(groups):
        raise StudyError(f"unmarked names every group of {short(column)}: leave out the groups of interest.")
    return tuple(dict.fromkeys(unmarked))


def words_of_labels(groups: Sequence[str]) -> frozenset[str]:
    """Split the groups' names into words of letters a-z: at white space, and at all that is no letter."""
    together = " ".join(groups)
    return frozenset(filter(None, map(letters, [*together.split(), *re.split(r"[\W_]+", together)])))


def _of_model(
    documents: TextDocuments,
    study: PersonasStudy,
    english: Mapping[str, int],
    model: str,
    groups: Sequence[str],
    unmarked: Sequence[str],
    left_out: np.ndarray,
) -> dict[_Key, WordList]:
    of_model = [text for text in documents.texts if text.model == model and text.group is not None]
    texts = distinct(filter(attrgetter("describes"), of_model), _cell)
    cells = sorted(set(map(_cell, texts)), key=lambda cell: (groups.index(cell[0]), cell[1]))
    contrasts = dict(_contrasts(cells, groups, unmarked))
    words, names = documents.tokens.words, tuple(map(str, range(len(cells))))
    labels = [names[cells.index(_cell(text))] for text in texts]
    strata = [_within(text, text.gender or EVERY_GENDER) for text in texts]
    counts, of_english = documents.counts_of(texts), counts_in(english, words)
    whole = study.prior_scope == "all"
    labelled = labelled_texts(counts, words, labels, strata, of_english, names, left_out, whole_topic=whole)
    lists = _lists(labelled, contrasts, study, model, "groups")
    crossed = {key: contrast for key, contrast in contrasts.items() if key[1] != EVERY_GENDER}
    if crossed:
        # The other null of a crossed group: genders shuffled within the group, among texts that have one.
        within = [_within(text, f"{groups.index(str(text.group))} {bool(text.gender)}") for text in texts]
        also = _lists(replace(labelled, strata=tuple(within)), crossed, study, model, "genders")
        for key, by_gender in also.items():
            one, nulls = lists[key], dict[str, Any]()
            for name in _NULLS:  # the larger number; none where one of them is undefined
                values = getattr(one, name), getattr(by_gender, name)
                nulls[name] = None if None in values else max(values)
            lists[key] = replace(one, **nulls, reason=joined([one.reason, by_gender.reason]))
    return lists


def _cell(text: TextDocument) -> Cell:
    return str(text.group), text.gender or EVERY_GENDER


def _within(text: TextDocument, and_also: str) -> str:
    """Name the stratum in which labels are shuffled: one prompt, one origin, and whatever else is kept."""
    return "\n".join((text.occupation, text.template_id, text.origin, and_also))


def _lists(
    texts: LabelledTexts, contrasts: Mapping[Cell, Contrast], study: PersonasStudy, model: str, shuffled: str
) -> dict[_Key, WordList]:
    """Make the lists of a model, beside the null of one kind of shuffles."""
    rng = generator(study.seed, "group_lists", [model, shuffled])
    how = prior_of(study), METHODS, rng, study.permutations
    lists = contrast_lists(texts, list(contrasts.values()), *how, shuffled=shuffled)
    keys = [(model, *cell, method) for cell in contrasts for method in METHODS]
    return dict(zip(keys, lists, strict=True))


def _contrasts(
    cells: Sequence[Cell], groups: Sequence[str], unmarked: Sequence[str]
) -> Iterator[tuple[Cell, Contrast]]:
    """Yield the contrast of each group, then those of its genders."""
    of_group: dict[str, Labels] = dict.fromkeys(groups, ())
    of_gender: dict[str, Labels] = {}
    for place, (group, gender) in enumerate(cells):
        of_group[group] += (place,)
        of_gender[gender] = (*of_gender.get(gender, ()), place)
    genders = [gender for gender in GENDERS if gender in of_gender]
    marked = [group for group in groups if group not in unmarked]
    for group, in_group in of_group.items():
        # An unmarked group is held against each of the marked ones, as Marked Personas does for White.
        opponents = marked if group in unmarked else unmarked
        sides = [(name, of_group[name]) for name in opponents]
        if not unmarked:
            sides = [(OTHERS, tuple(place for place in range(len(cells)) if place not in in_group))]
        yield (group, EVERY_GENDER), _contrast(group, in_group, sides)
        for gender in genders if len(genders) > 1 else ():
            target = tuple(place for place in in_group if cells[place][1] == gender)
            if in_group and target == in_group:  # it would be the group's list under another name
                continue
            # Women against men and men against women, where there are both; everybody else against all.
            others = [other for other in genders if other != gender]
            others = [other for other in others if other in WOMEN_AND_MEN] or others
            rivals = [(rival, of_gender[rival]) for rival in others]
            yield (group, gender), _contrast(f"{group} {gender}", target, [*sides, *rivals])


def _contrast(name: str, target: Labels, sides: Sequence[tuple[str, Labels]]) -> Contrast:
    opponents, against = zip(*sides, strict=True)
    in_messages = tuple("other" if opponent == OTHERS else opponent for opponent in opponents)
    return Contrast(target, against, name, in_messages, said_against=" & ".join(opponents))


_NULLS = (
    *("null_mean", "null_p95", "p_value", "p_value_max_z"),
    *("null_p95_beyond", "p_value_beyond", "p_value_max_z_beyond"),
)


def group_tables(lists: GroupLists) -> dict[str, list[Row]]:
    """Make the public tables of the groups' lists, by name."""
    return {"group_words": list(_word_rows(lists)), "group_lists": list(_list_rows(lists))}


def _word_rows(lists: GroupLists) -> Iterator[Row]:
    """Yield the rows of group_words.csv: every marked word of every list."""
    for key, word_list in lists.lists.items():
        scope, names = _scope(lists, key), lists.names[key[0]]
        for marked in word_list.words:
            own = {"is_name": marked.word in names, "is_group_word": letters(marked.word) in lists.own_words}
            yield {**scope, **marked.row(), **own}


def _list_rows(lists: GroupLists) -> Iterator[Row]:
    """Yield the rows of group_lists.csv: how long each list is, beside its null."""
    columns = ("n_marked", "n_marked_beyond", *_NULLS, "n_target", "n_unmarked", "reason")
    for key, word_list in lists.lists.items():
        yield {**_scope(lists, key), **attributes(word_list, columns)}


def _scope(lists: GroupLists, key: _Key) -> Row:
    scope = dict(zip(("model", "group", "gender", "method"), key, strict=True))
    return {**scope, "against": lists.lists[key].against, "column": lists.column}


def group_notes(lists: GroupLists, documents: TextDocuments, study: PersonasStudy) -> Iterator[str]:
    """Note texts in no group, what a group is compared with, and lists of few texts."""
    column = short(lists.column)
    if without := sum(text.group is None for text in documents.texts):
        yield NOTES["no_group"].format(without, len(documents.texts), column)
    if not study.unmarked:
        yield NOTES["no_reference"].format(column)
    shuffled = "labels, all without gendered words, names and the groups' own names"
    yield from length_notes(lists.lists.values(), f"lists of {column}", shuffled, "group_lists.csv")
