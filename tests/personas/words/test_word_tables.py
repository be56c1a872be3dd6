"""The manuscript's table of marked words: whose, how many of how many, none where chance gives as many."""

from __future__ import annotations

from typing import Any

from fakes.latex import check_latex

from biaskit.measures.personas.printing.words import MOST_ROWS, word_tables
from biaskit.report.render.latex import latex_files

Row = dict[str, Any]


def a_list(gender: str, against: str, p: float | None, **more: Any) -> Row:
    scope = {"model": "a", "occupation": "nurse", "origin": "requested", "gender": gender, "against": against}
    numbers = {"n_marked_beyond": 2, "null_p95_beyond": 1.5, "p_value_beyond": p}
    numbers |= {"n_target": 40, "n_unmarked": 50, "reason": "" if p is not None else "no calibration word"}
    return {**scope, "method": "calibrated", **numbers, **more}


def a_word(of: Row, word: str, z: float, **more: Any) -> Row:
    scope = {name: of[name] for name in ("model", "occupation", "origin", "gender", "against", "method")}
    counts = {"count_target": 9, "documents_target": 7, "count_unmarked": 3, "documents_unmarked": 2}
    plain = {"is_name": False, "is_gender_word": False}
    return {**scope, "word": word, "z": z, "q_value": 0.01, **counts, **plain, **more}


def test_words_of_lists_beyond_chance_stand_with_z_and_their_counts() -> None:
    women, men, nb = (
        a_list("female", "male", 0.005),
        a_list("male", "female", 0.6),
        a_list("nonbinary", "all", 0.01),
    )
    words = [
        a_word(women, "kind", 3.0),
        a_word(women, "she", 19.0, is_gender_word=True),
        a_word(women, "mary", 9.0, is_name=True),
        a_word(women, "warm", 4.5),
        a_word(men, "strong", 5.0),
        a_word(nb, "fluid", 2.5, documents_unmarked=0),
        a_word({**women, "method": "marked-personas"}, "been", 7.0),
    ]
    [made] = word_tables({"word_lists": [women, men, nb], "marked_words": words})
    assert made.name == "marked-words"
    assert made.table.title == (
        "Words that mark women and non-binary people, without gendered words and names: a, gender in the"
        " prompt"
    )
    assert made.table.rows == (
        ("women", "warm", "4.50", "0.0100", "9", "7", "40", "2", "50"),
        ("women", "kind", "3.00", "0.0100", "9", "7", "40", "2", "50"),
        ("non-binary", "fluid", "2.50", "0.0100", "9", "7", "40", "0", "50"),
    )
    assert (
        "Women against men: 2 words; 95 % of lists with shuffled genders have at most 1.5." in made.table.note
    )
    assert "Non-binary people against all others: 1 word;" in made.table.note
    assert check_latex(latex_files([made])["marked-words.tex"].decode()) == 1


def test_a_list_no_longer_than_chance_has_no_table() -> None:
    women = a_list("female", "male", 0.4)
    assert [] == list(word_tables({"word_lists": [women], "marked_words": [a_word(women, "kind", 3.0)]}))
    unknown = a_list("female", "male", None, n_marked_beyond=None, null_p95_beyond=None)
    assert [] == list(word_tables({"word_lists": [unknown], "marked_words": [a_word(unknown, "kind", 3.0)]}))
    assert [] == list(word_tables({}))


def test_what_texts_say_unasked_comes_first_and_models_have_tables_of_their_own() -> None:
    asked = a_list("female", "male", 0.001)
    unasked = [a_list("female", "male", 0.001, model=m, origin="inferred", occupation=j)
               for m in "ab" for j in ("cook", "nurse")]  # fmt: skip
    words = [a_word(one, f"w{i}", 9 - i / 100) for one in unasked for i in range(30)]
    tables = {"word_lists": [asked, *unasked], "marked_words": [*words, a_word(asked, "asked", 30.0)]}
    made = list(word_tables(tables))
    assert [one.name for one in made] == ["marked-words-a", "marked-words-b"]
    for one in made:
        assert "gender not in the prompt" in one.table.title
        assert len(one.table.rows) == MOST_ROWS
        assert one.table.rows[:2] == tuple(
            ("women", job, "w0", "9.00", "0.0100", "9", "7", "40", "2", "50") for job in ("cook", "nurse")
        )
        assert f"the strongest {MOST_ROWS} of 60 words in 2 lists." in one.table.note
