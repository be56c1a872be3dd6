"""Studies: defaults, file, options; later wins, and an unknown key names the nearest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biaskit.errors import StudyError
from biaskit.measurement import measurement
from biaskit.measures.decisions.design import resolve as resolve_decisions
from biaskit.measures.decisions.study import DecisionsStudy
from biaskit.measures.pairs.design import resolve as resolve_pairs
from biaskit.measures.pairs.study import PairsStudy
from biaskit.measures.personas.design import resolve as resolve_personas
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.study import ProbeStudy
from biaskit.runs.start import overrides_of
from biaskit.study.config import (
    describe_keys,
    is_path,
    load_as,
    load_study,
    parse_setting,
    select,
    study_names,
)

# Jobs x templates x (debiasing prompts and none) x contexts.
N_PROMPTS = {
    "occugender": 40 * (25 + 25),
    "occugender-debias": 40 * (5 + 5) * (6 + 1),
    "mattern": 40 * (1 + 3) * (6 + 1) * 2,
    "fields-of-study": 33 * (12 + 12),
    "gasp-occupations": 63 * (25 + 25),
    "framing": 40 * 8 * 4,
    "wording": 40 * (4 * 10 + 4 * 10),
}

# Occupations x prompts x (debiasing prompts and none), and with a gender in the prompt.
N_PAIRS = {"pairs": 12 * 3 * 4}
N_DECISIONS = {"hiring": 4 * 8 * 40 * 2}
N_SERIES = {
    "gasp": (63 * 2, 63 * 2 * 3),
    "gasp-pilot": (8 * 2, 8 * 2 * 3),
    "mattern-generation": (40 * 3 * (6 + 1), 0),
}

OWN = """\
name = "own"
[jobs]
source = "jobs.txt"
[templates]
source = "templates.txt"
[target_words]
every = "occugender-explicit"
"""


def message_of(call: Any, *arguments: Any) -> str:
    """The one line that a wrong study is refused with."""
    with pytest.raises(StudyError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A study file of a user, with its lists beside it."""
    (tmp_path / "jobs.txt").write_text("baker\nmiller\n", encoding="utf-8")
    (tmp_path / "templates.txt").write_text("Who is the [JOB]?\n", encoding="utf-8")
    path = tmp_path / "own.toml"
    path.write_text(OWN, encoding="utf-8")
    return path


# --- shipped studies --------------------------------------------------------------------------------


def test_these_studies_are_shipped() -> None:
    assert sorted([*N_PROMPTS, *N_SERIES, *N_PAIRS, *N_DECISIONS]) == study_names()


@pytest.mark.parametrize("name", N_PAIRS)
def test_the_shipped_pairs_are_all_asked(name: str) -> None:
    assert N_PAIRS[name] == len(resolve_pairs(load_as(PairsStudy, name)).pairs)


@pytest.mark.parametrize("name", N_DECISIONS)
def test_a_shipped_study_decides_on_all_cases_and_people(name: str) -> None:
    assert N_DECISIONS[name] == len(resolve_decisions(load_as(DecisionsStudy, name)).asked)


@pytest.mark.parametrize("name", N_SERIES)
def test_a_shipped_study_draws_its_series(name: str) -> None:
    assert N_SERIES[name] == resolve_personas(load_as(PersonasStudy, name)).n_series


@pytest.mark.parametrize("name", N_PROMPTS)
def test_a_shipped_study_asks_its_full_product(name: str) -> None:
    assert N_PROMPTS[name] == resolve(load_study(name)).n_prompts


def test_only_debias_and_mattern_run_debiasing_prompts_and_only_mattern_a_dialogue() -> None:
    asked = {name: resolve(load_study(name)) for name in N_PROMPTS}
    assert {"occugender-debias", "mattern"} == {n for n, q in asked.items() if len(q.debiasing_prompts) > 1}
    assert {"mattern"} == {n for n, q in asked.items() if "dialogue" in q.contexts}


def test_matterns_levels_are_pairs_of_debiasing_prompts() -> None:
    assert {"high": (1, 2), "medium": (3, 4), "low": (5, 6)} == resolve(load_study("mattern")).levels


def test_matterns_fourth_prompt_is_followed_by_object_pronouns() -> None:
    asked = resolve(load_study("mattern"))
    found = {key: {e.text for e in listed} for key, listed in asked.target_words.items()}
    assert {"He", "he", "She", "she", "They", "they"} == found["implicit", 1] == found["implicit", 2]
    assert {"him", "Him", "her", "Her", "them", "Them"} == found["implicit", 3]


# --- unknown and wrong keys -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("min_coverag", "min_coverage"),
        ("jobs.selekt", "select"),
        ("templates.slott", "slot"),
        ("debiasing_positon", "debiasing_position"),
        ("table.explizit", "explicit"),
        ("word-boundary", "word_boundary"),
    ],
)
def test_an_unknown_key_is_an_error_that_names_the_nearest(key: str, nearest: str) -> None:
    message = message_of(load_study, "occugender", {key: "x"})
    assert f"unknown key '{key}'" in message
    assert f"Did you mean '{nearest}'?" in message


def test_a_missing_key_is_named(own: Path) -> None:
    own.write_text(OWN.replace('name = "own"\n', ""), encoding="utf-8")
    assert "'name' is missing" in message_of(load_study, str(own))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("articles", "correct"),
        ("min_coverage", 1.5),
        ("min_coverage", "much"),
        ("seed", -1),
        ("word_boundary", "letter"),
        ("interval", "wald"),
        ("lock", "maybe"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(key: str, value: Any) -> None:
    message = message_of(load_study, "occugender", {key: value})
    assert f"{key} = {value}" in message


def test_every_problem_is_counted_and_the_first_is_told() -> None:
    assert "(and 1 more problem)" in message_of(load_study, "occugender", {"nonsense": 1, "seed": -1})


def test_an_unknown_study_names_the_nearest_and_all() -> None:
    message = message_of(load_study, "ocugender")
    assert "Did you mean 'occugender'?" in message
    assert all(name in message for name in N_PROMPTS)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"name = ", "TOML"), (b"name = '\xff'", "not UTF-8"), ("name = 1".encode("utf-16"), "UTF-16")],
)
def test_a_study_file_that_is_no_toml_is_refused(own: Path, content: bytes, said: str) -> None:
    own.write_bytes(content)
    message = message_of(load_study, str(own))
    assert said in message
    assert str(own) in message


def test_a_study_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "There is no file" in message_of(load_study, str(tmp_path / "no.toml"))


def test_a_mark_of_the_encoding_is_no_part_of_a_study(own: Path) -> None:
    own.write_bytes(b"\xef\xbb\xbfname = 'own'")
    assert "the key 'jobs' is missing" in message_of(load_study, str(own))


# --- later wins -------------------------------------------------------------------------------------


def test_defaults_then_the_file_then_options(own: Path) -> None:
    assert "as-published" == load_study(str(own)).articles
    own.write_text('articles = "grammatical"\n' + OWN, encoding="utf-8")
    assert "grammatical" == load_study(str(own)).articles
    assert "as-published" == load_study(str(own), {"articles": "as-published"}).articles


def test_an_option_replaces_a_key_and_leaves_its_neighbours() -> None:
    study = load_study("occugender-debias", {"templates.select": "3"})
    assert ("corpus:occugender/templates.toml", "3") == (study.templates.source, study.templates.select)


def test_the_lists_of_a_study_file_lie_beside_it(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    asked = resolve(load_study(str(own)))
    assert ["baker", "miller"] == [item.name for item in asked.items]


def test_a_path_on_the_command_line_is_relative_to_the_current_folder(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.csv").write_text("item,group\nsmith,all\n", encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    study = load_study(str(own), overrides_of(ProbeStudy, "own", {"jobs": "mine.csv"}))
    assert ["smith"] == [item.name for item in resolve(study).items]


# --- --set ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("articles=grammatical", ("articles", "grammatical")),
        ("min_coverage=0.05", ("min_coverage", 0.05)),
        ("skip_bad_lines=true", ("skip_bad_lines", True)),
        ("margin.share=0.1", ("margin.share", 0.1)),
        ('contrast=["they", "he"]', ("contrast", ["they", "he"])),
        ("jobs.select=1,3-5", ("jobs.select", "1,3-5")),
        ("system_prompt=a = b", ("system_prompt", "a = b")),
        ('system_prompt="quoted"', ("system_prompt", "quoted")),
        (" seed = 7", ("seed", 7)),
        ("system_prompt=", ("system_prompt", "")),
    ],
)
def test_a_setting_is_toml_where_it_is_toml_else_text(text: str, expected: tuple[str, Any]) -> None:
    assert expected == parse_setting(text)


@pytest.mark.parametrize(
    ("kind", "name", "quantity"),
    [
        (ProbeStudy, "occugender", "share"),
        (ProbeStudy, "occugender", "group_gap"),
        (PairsStudy, "pairs", "share"),
        (PersonasStudy, "gasp", "represented_share"),
    ],
)
def test_a_margin_in_points_is_refused_since_it_would_pass_anything(
    kind: Any, name: str, quantity: str
) -> None:
    for points in (1, 5):
        said = message_of(load_as, kind, name, {f"margin.{quantity}": points})
        assert f"margin.{quantity} is a fraction: 0.05 is 5 points." in said
    assert load_as(kind, name, {f"margin.{quantity}": 0.99}).margin[quantity] == 0.99


def test_a_margin_of_a_score_may_be_any_number() -> None:
    assert load_as(PersonasStudy, "gasp", {"margin.srb": 5}).margin["srb"] == 5


@pytest.mark.parametrize("text", ["articles", "=x", " =x", ""])
def test_a_setting_without_key_or_value_says_how_to_write_one(text: str) -> None:
    assert "key.sub=value" in message_of(parse_setting, text)


@pytest.mark.parametrize(("key", "chosen"), [("jobs", "3"), ("debiasing_prompts", "2"), ("templates", "5")])
def test_a_single_id_can_be_set(key: str, chosen: str) -> None:
    study = load_study("occugender", dict([parse_setting(f"{key}.select={chosen}")]))
    assert getattr(study, key).select in (chosen, (chosen,))


@pytest.mark.parametrize("text", ["name=2024", "system_prompt=42", "table.explicit=3", "name=true"])
def test_a_text_that_looks_like_a_number_can_be_set(text: str) -> None:
    key, _, value = text.partition("=")
    study = load_study("occugender", dict([parse_setting(text)])).model_dump()
    for part in key.split("."):
        study = study[part]
    assert value == study


@pytest.mark.parametrize(("study", "model"), [("occugender", ProbeStudy), ("gasp", PersonasStudy)])
def test_every_key_has_a_description_and_can_be_set_to_its_default(study: str, model: Any) -> None:
    for key, default, description in describe_keys(model):
        assert description, key
        listed = ("models", "margin", "gender_codes", "requested")
        if default not in ("(required)", "(none)", "", "{}") and key not in listed:
            value = parse_setting(f"{key}={default}")[1]
            base = {"debiasing_prompts.source": "corpus:occugender/debiasing-prompts.toml"}
            load_study(study, {**base, key: value})


@pytest.mark.parametrize("kind_name", ["probe", "personas"])
def test_the_analysis_keys_are_keys(kind_name: str) -> None:
    known = {key.split(".")[0] for key, _, _ in describe_keys(measurement(kind_name).study)}
    assert known >= measurement(kind_name).study.analysis_keys


# --- list options -----------------------------------------------------------------------------------

NAMES = ["nurse", "7", "plumber, senior", "plumber", "a-b", "1-2", "x"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("all", NAMES),
        ("none", []),
        ("nurse", ["nurse"]),
        ("nurse,plumber", ["nurse", "plumber"]),
        (" plumber , nurse ", ["nurse", "plumber"]),
        ("1", ["nurse"]),
        ("2-4", ["7", "plumber, senior", "plumber"]),
        ("1,3-4,x", ["nurse", "plumber, senior", "plumber", "x"]),
        ("nurse,1,1-1", ["nurse"]),
        # A name goes before an id.
        ("7", ["7"]),
        ("1-2", ["1-2"]),
        ("a-b", ["a-b"]),
        ("plumber, senior", ["plumber, senior"]),
        (("plumber, senior", "x"), ["plumber, senior", "x"]),
        (["3", "nurse"], ["nurse", "plumber, senior"]),
    ],
)
def test_a_list_option_takes_names_ids_and_ranges_in_list_order(choice: Any, expected: list[str]) -> None:
    assert expected == select(choice, NAMES, range(1, len(NAMES) + 1), NAMES, "jobs")


@pytest.mark.parametrize("choice", ["0", "8", "5-9", "4-3", "0-2", "99999999999999999999"])
def test_an_id_outside_the_list_is_an_error_that_names_the_ids(choice: str) -> None:
    names = ["a", "b", "c", "d", "e"]
    assert "1 to 5" in message_of(select, choice, names, range(1, 6), names, "jobs")


@pytest.mark.parametrize(
    ("choice", "nearest"), [("nurze", "nurse"), ("plumer", "plumber"), ("nurse,plumer", "plumber")]
)
def test_an_unknown_name_is_an_error_with_the_nearest_one(choice: str, nearest: str) -> None:
    assert f"Did you mean '{nearest}'?" in message_of(
        select, choice, NAMES, range(1, len(NAMES) + 1), NAMES, "jobs"
    )


@pytest.mark.parametrize("choice", ["", ",", "nurse,", "-", "1-", "-3", "1--3", "1.5", "²"])
def test_what_is_neither_name_nor_id_is_an_error(choice: str) -> None:
    message_of(select, choice, NAMES, range(1, len(NAMES) + 1), NAMES, "jobs")


@given(st.sets(st.integers(1, 40), min_size=1), st.randoms(use_true_random=False))
def test_ids_choose_the_same_in_any_order_and_any_spelling(chosen: set[int], random: Any) -> None:
    entries = [f"job {i}" for i in range(1, 41)]
    expected = [entries[i - 1] for i in sorted(chosen)]
    parts = [random.choice([str(i), f"{i}-{i}", entries[i - 1]]) for i in chosen]
    random.shuffle(parts)
    assert expected == select(",".join(parts), entries, range(1, 41), entries, "jobs")


PATHS = ("a/b", "./nurse", "jobs.csv", "jobs.txt", "jobs.toml", "/x", "~/y")


@pytest.mark.parametrize("text", [*PATHS, "nurse", "1-5", "jobs.json", "csv", "a.csv.gz", "all"])
def test_what_is_a_path_and_what_a_name(text: str) -> None:
    assert is_path(text) == (text in PATHS)


def test_a_file_replaces_the_list_and_all_of_it_is_used() -> None:
    overrides = overrides_of(ProbeStudy, "own", {"templates": "mine.csv"})
    assert {"templates.source": "mine.csv", "templates.select": "all"}.items() <= overrides.items()
    assert ("own-own-lists", "") == (overrides["name"], overrides["summary"])
    study = load_study("occugender-debias", overrides)
    assert ("mine.csv", "all") == (study.templates.source, study.templates.select)


def test_names_choose_from_the_list() -> None:
    assert {"jobs.select": "nurse,plumber"} == overrides_of(ProbeStudy, "own", {"jobs": "nurse,plumber"})
    assert {"jobs.select": ("nurse", "plumber")} == overrides_of(
        ProbeStudy, "own", {"jobs": ["nurse", "plumber"]}
    )
    assert {} == overrides_of(ProbeStudy, "own", {"jobs": None})


@pytest.mark.parametrize("name", ["fields-of-study", "gasp-occupations"])
def test_a_study_without_debiasing_prompts_can_be_asked_for_none(name: str) -> None:
    asked = resolve(load_study(name, overrides_of(ProbeStudy, "own", {"debiasing_prompts": "none"})))
    assert (None,) == asked.debiasing_prompts


def test_a_study_without_debiasing_prompts_takes_a_file_of_them(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("Be fair.\n", encoding="utf-8")
    asked = resolve(
        load_study("fields-of-study", overrides_of(ProbeStudy, "own", {"debiasing_prompts": str(file)}))
    )
    assert [None, "Be fair."] == [i and i.text for i in asked.debiasing_prompts]


# --- does it fit together ---------------------------------------------------------------------------


def resolved_with(**overrides: Any) -> None:
    resolve(load_study("occugender", {key.replace("__", "."): v for key, v in overrides.items()}))


def test_a_contrast_must_name_two_groups_of_the_study() -> None:
    assert "femal" in message_of(lambda: resolved_with(contrast=["femal", "male"]))
    assert "twice" in message_of(lambda: resolved_with(contrast=["male", "male"]))


def test_a_target_word_set_that_is_not_there_is_named() -> None:
    message = message_of(lambda: resolved_with(target_words__every="pronoun-subjekt"))
    assert "pronoun-subject" in message


def test_a_slot_that_no_template_has_is_an_error() -> None:
    assert "[TRADE]" in message_of(lambda: resolved_with(templates__slot="[TRADE]"))


def test_a_study_of_nothing_is_an_error() -> None:
    message_of(lambda: resolved_with(jobs__select="none"))
    message_of(lambda: resolved_with(templates__select="none"))


def test_a_study_whose_set_lacks_female_or_male_contrasts_its_first_two_groups(tmp_path: Path) -> None:
    file = tmp_path / "faiths.toml"
    file.write_text('[groups]\nzen = ["Zen"]\nsufi = ["Sufi"]\nfemale = ["She"]\n', encoding="utf-8")
    asked = resolve(load_study("occugender", {"target_words.source": str(file)}))
    assert (("zen", "sufi", "female"), ("zen", "sufi")) == (asked.groups, asked.contrast)


def test_a_group_whose_column_is_taken_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    # probe_jobs.csv has a column workforce_share of its own.
    file = tmp_path / "sets.toml"
    file.write_text('[groups]\nmale = ["He"]\nworkforce = ["She"]\n', encoding="utf-8")
    assert "workforce" in message_of(lambda: resolved_with(target_words__source=str(file)))


def test_a_folder_called_like_a_shipped_study_hides_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run kept as `framing/` must not end its own analysis."""
    (tmp_path / "framing").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_study("framing").measurement == "probe"
    (tmp_path / "mine").mkdir()
    with pytest.raises(StudyError, match="no study 'mine'"):
        load_study("mine")
