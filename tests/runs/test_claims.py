"""No table is called a paper's that is not: what was asked decides, wherever lists lie (`runs/claims.py`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from biaskit.measures.personas.design import resolve as resolve_texts
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.probe.design import resolve
from biaskit.measures.probe.study import ProbeStudy
from biaskit.runs.claims import DEBIASING, GASP, MATTERN, OCCUGENDER, Claim, claims_of, papers_of, summary_of
from biaskit.study.config import load_as

JOBS, TEMPLATES = ROOT / "corpora/occugender/jobs.csv", ROOT / "corpora/occugender/templates.toml"
EXPLICIT, IMPLICIT = OCCUGENDER["explicit"], OCCUGENDER["implicit"]
Resolved = dict[str, Any]


def asked(study: str, **keys: Any) -> Resolved:
    """What a manifest holds of a study of the probe; `__` stands for the dot of a key."""
    settings = {name.replace("__", "."): value for name, value in keys.items()}
    design = resolve(load_as(ProbeStudy, study, settings))
    found: Resolved = json.loads(json.dumps(design.describe()))
    return found


def texts(study: str, **keys: Any) -> Resolved:
    settings = {name.replace("__", "."): value for name, value in keys.items()}
    found: Resolved = json.loads(
        json.dumps(resolve_texts(load_as(PersonasStudy, study, settings)).describe())
    )
    return found


def claimed(resolved: Resolved) -> dict[str, Claim]:
    return {name: claim for name, claim in claims_of(resolved).items() if claim}


@pytest.mark.parametrize(
    ("study", "keys", "tables"),
    [
        ("occugender", {}, {EXPLICIT, IMPLICIT}),
        ("occugender", {"min_coverage": 0.1}, {EXPLICIT, IMPLICIT}),
        ("occugender", {"jobs__select": "nurse"}, set()),
        ("occugender", {"bias_type": "explicit"}, set()),
        ("occugender", {"articles": "grammatical"}, set()),
        ("occugender", {"target_words__every": "mattern-explicit"}, set()),
        ("occugender", {"name": "mine"}, set()),
        ("occugender-debias", {}, {DEBIASING}),
        ("occugender-debias", {"debiasing_prompts__select": "1,3"}, set()),
        ("mattern", {}, set(MATTERN.values())),
        ("mattern", {"context": "plain"}, set()),
        ("fields-of-study", {}, set()),
    ],
)
def test_a_run_claims_a_papers_tables_where_it_asked_the_shipped_study(
    study: str, keys: dict[str, Any], tables: set[str]
) -> None:
    assert dict.fromkeys(tables, Claim.WHOLE) == claimed(asked(study, **keys))


@pytest.mark.parametrize(
    ("keys", "whole"), [({}, True), ({"wording": "released"}, True), ({"per_gender": 20}, False)]
)
def test_texts_are_gasps_where_gasp_was_asked(keys: dict[str, Any], whole: bool) -> None:
    assert whole == claims_of(texts("gasp", **keys))[GASP]


def test_a_shipped_list_that_is_another_one_now_is_not_the_papers() -> None:
    run = asked("occugender")
    run["sources"] = dict.fromkeys(run["sources"], "0" * 64)
    assert {} == claimed(run)


def changed(path: Path, tmp_path: Path, change: Callable[[str], str]) -> str:
    copy = tmp_path / path.name
    copy.write_text(change(path.read_text("utf-8")), "utf-8")
    return str(copy)


def test_a_studys_line_is_said_of_the_whole_of_it_alone() -> None:
    whole = str(load_as(ProbeStudy, "occugender").summary)
    assert whole == summary_of(asked("occugender"))
    assert "" == summary_of(asked("occugender", jobs__select="nurse"))
    assert "mine" == summary_of(asked("occugender", name="own", summary="mine"))


def test_lists_are_cited_where_they_were_used_and_the_method_always(tmp_path: Path) -> None:
    assert ("occugender",) == papers_of(asked("occugender"))
    assert ("mattern", "occugender") == papers_of(asked("mattern"))
    jobs = changed(JOBS, tmp_path, lambda text: text.replace("secretary", "clerk"))
    assert ("occugender", "gasp") == papers_of(asked("gasp-occupations"))
    assert ("occugender",) == papers_of(asked("gasp-occupations", jobs__source=jobs))
    assert ("occugender", "fields-of-study") == papers_of(asked("fields-of-study"))
    assert ("mattern", "occugender", "gasp") == papers_of(texts("mattern-generation"))
    assert ("gasp",) == papers_of(texts("gasp-pilot", occupations__source=jobs, occupations__select="all"))
    assert ("mattern", "occugender") == papers_of(asked("occugender", name="mine", papers=["mattern"]))
