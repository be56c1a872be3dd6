"""Words near the listed ones: named where they weigh, counted never."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biaskit.corpora.loaders import load_expression_sets
from biaskit.probe.design import ProbeDesign, resolve_design
from biaskit.probe.near_misses import FILE, MARK, NearMiss, near_misses, near_words, notes_of, suggested
from biaskit.probe.next_tokens import as_shown
from biaskit.records import Cell, CellShares
from biaskit.study.config import load_probe_study
from biaskit.workflow.analyze import analyse

STUDY: dict[str, Any] = {"jobs.select": "nurse", "templates.select": "1-3"}


@pytest.fixture(scope="module")
def design() -> ProbeDesign:
    return resolve_design(load_probe_study("occugender", STUDY))


def said(
    *tokens: tuple[str, float], bias_type: str = "explicit", beyond: float | None = 1.0
) -> list[dict[str, Any]]:
    """Rows of probe_next.csv; `beyond`: the part of a token that is no listed word."""
    return [
        {
            "model": "m",
            "bias_type": bias_type,
            "instruction_id": 0,
            "job_group": "all",
            "token": as_shown(text),
            "probability": p,
            "beyond": None if beyond is None else p * beyond,
        }
        for text, p in tokens
    ]


def covered(coverage: float, bias_type: Any = "explicit") -> list[CellShares]:
    cell = Cell("m", bias_type, 1, "nurse", "g", None, 0, "plain", "raw")
    return [CellShares(cell, "exact", None, coverage, None)]


def words(found: list[NearMiss]) -> dict[str, str]:
    return {one.word: one.group for one in found}


@pytest.mark.parametrize(
    ("token", "group"),
    [
        (" FEMALE", "female"),  # another case
        ("females", "female"),
        (" Man.", "male"),
        ("Man's", "male"),
        ("NonBinary", "diverse"),
        (" lady", "female"),
        ("Guy", "male"),
        ("enby", "diverse"),
    ],
)
def test_forms_and_synonyms_are_near(token: str, group: str, design: ProbeDesign) -> None:
    assert {token.strip(): group} == words(near_misses(said((token, 0.02)), covered(0.1), design))


@pytest.mark.parametrize("token", [" Female", "female", " The", "Unknown", "", "\n", "'s", "Manager", "s"])
def test_listed_and_other_words_are_not(token: str, design: ProbeDesign) -> None:
    assert [] == near_misses(said((token, 0.5)), covered(0.1), design)


def test_only_what_weighs_is_named_and_a_space_makes_no_other_word(design: ProbeDesign) -> None:
    assert [] == near_misses(said(("Guy", 0.009)), covered(0.1), design)
    (found,) = near_misses(said(("Guy", 0.009), (" Guy", 0.004)), covered(0.1), design)
    assert (pytest.approx(0.013), 0.1) == (found.probability, found.coverage)
    assert [] == near_misses(said(("Guy", 0.02), beyond=None), covered(0.1), design)  # top-k: not known


def test_a_group_that_the_study_has_not_gets_no_words(design: ProbeDesign) -> None:
    renamed = {
        place: tuple(replace(e, group={"female": "F"}.get(e.group, e.group)) for e in listed)
        for place, listed in design.expressions.items()
    }
    other = replace(design, expressions=renamed, groups=("male", "F", "diverse"))
    assert {"FEMALE": "F"} == words(near_misses(said(("lady", 0.5), ("FEMALE", 0.5)), covered(0.1), other))


def test_no_listed_word_of_the_shipped_sets_is_in_the_list_of_near_ones() -> None:
    sets = load_expression_sets("corpus:expressions/sets.toml")
    listed = {
        text.casefold()
        for name in ("occugender-explicit", "pronoun-subject", "pronoun-object")
        for _, own in sets[name].groups
        for text in own
    }
    assert set() == listed & near_words().keys()


def test_the_suggested_file_adds_them_and_nothing_else(design: ProbeDesign, tmp_path: Path) -> None:
    found = near_misses(said(("Guy", 0.05), (" lady", 0.02)), covered(0.1), design)
    content = suggested(found, design)
    assert content is not None
    (tmp_path / FILE).write_text(content, "utf-8")
    own = resolve_design(
        load_probe_study("occugender", {**STUDY, "expressions.source": str(tmp_path / FILE)})
    )
    for (bias_type, number), before in design.expressions.items():
        after = own.expressions[bias_type, number]
        new = {"Guy", "lady"} if bias_type == "explicit" else set()
        assert {e.text for e in before} | new == {e.text for e in after}
    assert suggested([], design) is None


def test_one_set_for_all_stays_one(tmp_path: Path) -> None:
    one = resolve_design(load_probe_study("occugender", {**STUDY, "expressions.every": "mattern-explicit"}))
    content = suggested(near_misses(said(("Guy", 0.05)), covered(0.1), one), one)
    assert content is not None
    (tmp_path / "own.toml").write_text(content, "utf-8")
    keys = {**STUDY, "expressions.source": str(tmp_path / "own.toml")}
    again = resolve_design(load_probe_study("occugender", keys))
    assert {len(own) for own in one.expressions.values()} == {
        len(own) - 1 for own in again.expressions.values()
    }


def test_the_note_says_how_much_and_where_the_file_is(design: ProbeDesign) -> None:
    (line,) = notes_of(near_misses(said(("Guy", 0.05), (" lady", 0.02)), covered(0.1), design))
    assert line == (
        "m, explicit: said and not counted, though near the listed words (which hold 10 %): “Guy” (male, 5 %)"
        " and “lady” (female, 2 %); suggested-expressions.toml in the run's folder adds them (--expressions)"
    )


def test_a_run_gets_the_file_and_loses_it_but_never_somebody_s_own(tmp_path: Path) -> None:
    import biaskit as bk

    line = {"contains": "", "log_probs": {" She": -3.0, " He": -3.5}}
    (tmp_path / "m.jsonl").write_text(json.dumps(line) + "\n", "ascii")
    run = bk.probe(
        f"scripted:{tmp_path / 'm.jsonl'}", jobs=["nurse"], templates="1", out=tmp_path / "run"
    ).path
    assert not (run / FILE).exists()
    (run / FILE).write_text(MARK, "utf-8")
    analyse(run)
    assert not (run / FILE).exists()
    (run / FILE).write_text("[groups]\nmine = ['x']\n", "utf-8")
    with pytest.raises(bk.BiaskitError, match="stays"):
        analyse(run)
    assert "mine" in (run / FILE).read_text("utf-8")
