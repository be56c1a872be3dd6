"""Words of a user's own groups: against the released script's way, plain loops, and simulated truth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from fakes.scored import z_scores
from hypothesis import given, settings
from hypothesis import strategies as st

from biaskit.errors import StudyError
from biaskit.measures.personas.design import PersonasDesign
from biaskit.measures.personas.findings.words import surely_longer
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.documents import TextDocuments, read_imported
from biaskit.measures.personas.words.groups import (
    GroupLists,
    group_notes,
    group_tables,
    make_group_lists,
    words_of_labels,
)
from biaskit.measures.personas.words.log_odds import THRESHOLD, Prior
from biaskit.study.config import build_study
from biaskit.tables.query import Row, defined, where

ENGLISH = {"the": 69_971, "a": 23_195, "of": 36_412, "he": 9_548, "she": 2_860, "law": 299, "art": 208}
COMMON = ("a", "law", "of", "the", "job", "town", "the", "works", "with", "a", "life", "of", "the", "is")
RARE = tuple(f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(60))


@dataclass(frozen=True)
class World:
    """Texts with a group and a gender each; an empty group is none."""

    texts: tuple[str, ...]
    groups: tuple[str, ...]
    genders: tuple[str | None, ...]

    def documents(self, model: str = "m") -> TextDocuments:
        rows = [
            {
                "key": f"k{i}",
                "model": model,
                "occupation": "texts",
                "template_id": "texts",
                "requested_gender": gender,
                "sample": i,
                "text": text,
                "finish_reason": None,
                "group": group or None,
            }
            for i, (text, group, gender) in enumerate(zip(self.texts, self.groups, self.genders, strict=True))
        ]
        return read_imported(DESIGN, rows, "race")

    def lists(self, **keys: Any) -> GroupLists:
        made = make_group_lists(self.documents(), study(**keys), ENGLISH, lambda *_: None)
        assert made is not None
        return made

    def rows(self, **keys: Any) -> list[Row]:
        return group_tables(self.lists(**keys))["group_lists"]

    def reordered(self, order: Sequence[int]) -> World:
        return World(*(tuple(column[i] for i in order) for column in (self.texts, self.groups, self.genders)))

    def renamed(self, names: Mapping[str, str]) -> World:
        return replace(self, groups=tuple(names.get(group, group) for group in self.groups))

    def counts(self, group: str | None = None, gender: str | None = None) -> Counter[str]:
        """Words of the texts of a group, of a gender, or of both."""
        found = zip(self.texts, self.groups, self.genders, strict=True)
        return Counter(
            word
            for text, g, s in found
            if g and group in (None, g) and gender in (None, s)
            for word in text.split()
        )


def study(**keys: Any) -> PersonasStudy:
    occupations = {"source": "corpus:gasp/occupations.csv"}
    content = {"name": "texts", "measurement": "personas", "occupations": occupations}
    made = build_study({**content, "permutations": 19, **keys}, {}, "test")
    assert isinstance(made, PersonasStudy)
    return made


DESIGN = PersonasDesign(
    study=study(), occupations=(), prompts=(), templates=(), slot="", debiasing_prompts=(None,), sources={}
)
PRONOUN = {"female": "she", "male": "he", "nonbinary": "they", None: ""}
RACES = ("White", "Black", "Asian")


def simulated(
    seed: int,
    *,
    own: Mapping[str, str] = {},
    races: Sequence[str] = RACES,
    genders: Sequence[str | None] = ("female", "male"),
    n: int = 10,
    gendered: Mapping[str, str] = {},
) -> World:
    """n texts of each group and gender: common words, rare ones, a pronoun, words of the group and gender."""
    rng = np.random.default_rng(seed)
    texts: list[tuple[str, str, str | None]] = []
    for race in races:
        for gender in genders:
            for _ in range(n):
                words = [*rng.choice(COMMON, 16), *rng.choice(RARE, 8), *[PRONOUN[gender]] * 3]
                for mine in (own.get(race, ""), gendered.get(str(gender), "")):
                    words += list(rng.choice(mine.split(), 12)) if mine and rng.random() < 0.9 else []
                texts.append((" ".join(words), race, gender))
    return World(*zip(*texts, strict=True))


OWN = {
    "White": "tall blue mild pale quick fair",
    "Black": "bold proud deep rich keen able",
    "Asian": "calm neat slim firm soft kind",
}
GENDERED = {
    "female": "warm gentle sweet tender light dear",
    "male": "loud strong broad tough rough hard",
    "nonbinary": "open free new own odd fond",
}
# Words that the others use too, only less: such a list can be long by chance, and is told from it.
OFTEN = {race: " ".join(RARE[20 * i : 20 * i + 20]) for i, race in enumerate(RACES)}
OFTEN_GENDERED = {gender: " ".join(RARE[15 * i : 15 * i + 15]) for i, gender in enumerate(("female", "male"))}
PLAIN = simulated(3, own=OWN, gendered=GENDERED)
THREE = simulated(4, own=OWN, gendered=GENDERED, genders=("female", "male", "nonbinary"))


def words_of(lists: GroupLists, group: str, gender: str, method: str) -> list[Row]:
    return where(group_tables(lists)["group_words"], group=group, gender=gender, method=method)


# --- against other code ----------------------------------------------------------------------------


def released(target: Counter[str], unmarked: Counter[str], prior: Counter[str]) -> dict[str, float]:
    """get_log_odds of the released marked_words.py, written out."""
    n1, n2, n0 = (sum(counts.values()) for counts in (target, unmarked, prior))
    found = {}
    for word, of_all in prior.items():
        a, b = target[word] + of_all, unmarked[word] + of_all
        odds = math.log(a / (n1 + n0 - a)) - math.log(b / (n2 + n0 - b))
        found[word] = odds / math.sqrt(1 / a + 1 / b)
    return found


@pytest.mark.parametrize("world", [PLAIN, THREE], ids=["two genders", "three genders"])
@pytest.mark.parametrize("unmarked", [("White",), ("White", "Asian")])
def test_marked_personas_with_the_whole_topic_is_the_released_script(
    world: World, unmarked: tuple[str, ...]
) -> None:
    lists = world.lists(unmarked=unmarked, prior_scope="all")
    genders = [one for one in ("female", "male", "nonbinary") if one in world.genders]
    n_words = 0
    for group in RACES:
        against = unmarked if group not in unmarked else [race for race in RACES if race not in unmarked]
        for gender in ("", *genders):
            rivals = {"female": ["male"], "male": ["female"], "nonbinary": ["female", "male"], "": []}[gender]
            target = world.counts(group, gender or None)
            opponents = [world.counts(race) for race in against]
            opponents += [world.counts(gender=one) for one in rivals]
            z = [released(target, other, world.counts()) for other in opponents]
            expected = {w: sum(one[w] for one in z) for w in target if all(one[w] > THRESHOLD for one in z)}
            found = {row["word"]: row["z"] for row in words_of(lists, group, gender, "marked-personas")}
            assert found == pytest.approx(expected, rel=1e-9)
            n_words += len(found)
    assert n_words > 10


@pytest.mark.parametrize("method", ["calibrated", "marked-personas"])
@pytest.mark.parametrize("gender", ["", "female"])
def test_without_unmarked_groups_a_group_is_held_against_all_others_together(
    method: str, gender: str
) -> None:
    """By `z_scores`, which has tests of its own: each pair with topic counts of its own."""
    lists = PLAIN.lists()
    target = PLAIN.counts("Black", gender or None)
    opponents = [PLAIN.counts("White") + PLAIN.counts("Asian")]
    opponents += [PLAIN.counts(gender="male")] if gender else []
    passed: list[dict[str, float]] = []
    for other in opponents:
        words = sorted({*target, *other})
        z = z_scores(
            [target[w] for w in words],
            [other[w] for w in words],
            words=words,
            english=[ENGLISH.get(w, 0) for w in words],
            method=method,
            prior=Prior(),
        )
        passed.append(dict(zip(words, z.tolist(), strict=True)))
    expected = {w: sum(z[w] for z in passed) for w in target if all(z[w] > THRESHOLD for z in passed)}
    rows = words_of(lists, "Black", gender, method)
    assert {row["word"]: row["z"] for row in rows} == pytest.approx(expected, rel=1e-9)
    assert rows
    assert {row["against"] for row in rows} == {"others & male" if gender else "others"}
    for row in rows:
        both = PLAIN.counts("White") + PLAIN.counts("Asian")
        both += PLAIN.counts("Black", "male") if gender else Counter[str]()  # each text once
        assert (row["count_target"], row["count_unmarked"]) == (target[row["word"]], both[row["word"]])


# --- nulls -------------------------------------------------------------------------------------------


def chance(rows: Iterable[Row], **scope: object) -> list[float]:
    return [row["p_value_beyond"] for row in where(list(rows), method="calibrated", **scope)]


def test_where_gender_alone_differs_no_group_and_no_crossed_group_is_longer_than_chance() -> None:
    """Women's words pass for Black women against White people, half of whom are men; race has no part."""
    worlds = [simulated(seed, gendered=OFTEN_GENDERED, n=14) for seed in range(3)]
    found = [row for world in worlds for row in world.rows(unmarked=["White"], permutations=39)]
    crossed = [row for row in where(found, method="calibrated") if row["gender"]]
    assert max(row["n_marked_beyond"] for row in crossed) > 5
    assert sum(p <= 0.025 for p in chance(found)) <= 2  # of 27
    assert not surely_longer(defined(where(found, method="calibrated"), "p_value_beyond"))


def test_where_a_group_and_a_gender_differ_together_the_crossed_group_is_found() -> None:
    world = simulated(1, n=25)
    crown = "crown braids twists coils curls ebony"
    black_women = [one == ("Black", "female") for one in zip(world.groups, world.genders, strict=True)]
    pairs = zip(world.texts, black_women, strict=True)
    texts = tuple(f"{crown} {text[: -len(crown)]}" if own else text for text, own in pairs)
    lists = replace(world, texts=texts).lists(unmarked=["White"], permutations=99)
    assert set(crown.split()) <= {row["word"] for row in words_of(lists, "Black", "female", "calibrated")}
    rows = group_tables(lists)["group_lists"]
    assert chance(rows, group="Black", gender="female")[0] <= 0.05
    assert chance(rows, group="Asian", gender="female")[0] > 0.05


@pytest.mark.slow
def test_with_shuffled_labels_at_most_one_page_of_twenty_names_a_list() -> None:
    """200 worlds of two groups' and two genders' texts in which the labels say nothing."""
    world = simulated(8, own=OFTEN, gendered=OFTEN_GENDERED, n=8)
    n_wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(world.texts))
        shuffled = replace(world, texts=tuple(world.texts[i] for i in order))
        rows = where(shuffled.rows(unmarked=["White"], permutations=99, seed=seed), method="calibrated")
        n_wrong += bool(surely_longer(defined(rows, "p_value_beyond")))
    assert n_wrong <= 16  # 5 % of 200 is 10; above 16 with probability 0.03


# --- what does not matter ----------------------------------------------------------------------------


@settings(max_examples=3, deadline=None)
@given(st.permutations(range(len(THREE.texts))))
def test_the_order_of_the_texts_changes_no_word_and_no_length(order: list[int]) -> None:
    numbers = ("n_marked", "n_marked_beyond", "n_target", "n_unmarked", "reason")

    def kept(world: World) -> tuple[list[Row], list[Row]]:
        """Words and lengths by what names them; rivals stand as texts come."""
        lists = world.lists(unmarked=["White"])
        tables = [*group_tables(lists).values()]
        for row in [*tables[0], *tables[1]]:
            row["against"] = " & ".join(sorted(row["against"].split(" & ")))
            row |= {name: round(row[name], 9) for name in ("z", "q_value") if name in row}
        names = ("group", "against", "gender", "method")
        lengths = [{name: row[name] for name in (*names, *numbers)} for row in tables[1]]
        return sorted(tables[0], key=str), sorted(lengths, key=str)

    # The shuffles, and so the nulls, depend on the order, as those of genders do.
    assert kept(THREE.reordered(order)) == kept(THREE)


# --- odd input ---------------------------------------------------------------------------------------


def test_texts_without_a_group_are_in_no_list_and_counted() -> None:
    some = replace(PLAIN, groups=tuple("" if i % 5 == 0 else g for i, g in enumerate(PLAIN.groups)))
    documents = some.documents()
    lists = make_group_lists(documents, study(), ENGLISH, lambda *_: None)
    assert lists is not None
    rows = where(group_tables(lists)["group_lists"], gender="", method="calibrated")
    assert {row["n_target"] + row["n_unmarked"] for row in rows} == {sum(map(bool, some.groups))}
    notes = list(group_notes(lists, documents, study()))
    assert notes[0] == "12 of 60 texts have no race: they are in no group's list"
    assert "no reference group of race (--unmarked): each is compared with all others together" in notes


def test_a_group_that_a_model_lacks_has_the_reason() -> None:
    documents = PLAIN.documents()
    of_two = tuple(
        replace(t, model="n") if t.group != "White" and t.sample % 2 else t for t in documents.texts
    )
    of_one = documents.evidence["m"]
    documents = replace(documents, texts=of_two, models=("m", "n"), evidence={"m": of_one, "n": of_one})
    lists = make_group_lists(documents, study(unmarked=["White"]), ENGLISH, lambda *_: None)
    assert lists is not None
    rows = [row for row in group_tables(lists)["group_lists"] if row["model"] == "n"]
    assert {row["reason"] for row in rows} == {
        "no White texts",
        "no White female texts",
        "no White male texts",
    }
    assert {row["reason"] for row in group_tables(lists)["group_lists"] if row["model"] == "m"} == {None}


@pytest.mark.parametrize(
    ("unmarked", "message"),
    [
        (["white"], "unmarked: race has no 'white'. Did you mean"),
        (["Klingon"], "It has White, Black, Asian."),
        (list(RACES), "every group of race"),
    ],
)
def test_an_unmarked_group_that_cannot_be_is_one_line(unmarked: list[str], message: str) -> None:
    with pytest.raises(StudyError) as error:
        PLAIN.lists(unmarked=unmarked)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_words_of_the_groups_names_are_told_and_left_out_beyond() -> None:
    own = words_of_labels(["a Middle-Eastern", "non white", "Ærø", "日本", "Two_Spirit"])
    assert own == {
        *["a", "middleeastern", "middle", "eastern", "non", "white", "r", "two", "spirit", "twospirit"]
    }
    world = simulated(5, own={"Black": "black black proud"}, n=12)
    lists = world.lists(unmarked=["White"])
    marked = {row["word"]: row["is_group_word"] for row in words_of(lists, "Black", "", "calibrated")}
    assert marked["black"] is True
    assert marked["proud"] is False
    (row,) = where(group_tables(lists)["group_lists"], group="Black", gender="", method="calibrated")
    assert row["n_marked_beyond"] <= row["n_marked"] - 1
