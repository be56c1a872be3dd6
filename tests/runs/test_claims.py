"""No table is called a paper's that is not: what was asked decides, wherever lists lie (`runs/claims.py`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli
from fakes.personas_runs import write_script, write_vectors
from places import ROOT

from biaskit.personas.sampling.design import resolve_design as resolve_texts
from biaskit.personas.sampling.stored_design import describe_design as describe_texts
from biaskit.probe.design import resolve_design
from biaskit.probe.stored_design import describe_design
from biaskit.runs.claims import DEBIASING, GASP, MATTERN, OCCUGENDER, Claim, claims_of, papers_of, summary_of
from biaskit.study.config import load_personas_study, load_probe_study

JOBS, TEMPLATES = ROOT / "corpora/occugender/jobs.csv", ROOT / "corpora/occugender/templates.toml"
EXPLICIT, IMPLICIT = OCCUGENDER["explicit"], OCCUGENDER["implicit"]
Resolved = dict[str, Any]


def asked(study: str, **keys: Any) -> Resolved:
    """What a manifest holds of a study of the probe; `__` stands for the dot of a key."""
    settings = {name.replace("__", "."): value for name, value in keys.items()}
    design = resolve_design(load_probe_study(study, settings))
    found: Resolved = json.loads(json.dumps(describe_design(design)))
    return found


def texts(study: str, **keys: Any) -> Resolved:
    settings = {name.replace("__", "."): value for name, value in keys.items()}
    found: Resolved = json.loads(
        json.dumps(describe_texts(resolve_texts(load_personas_study(study, settings))))
    )
    return found


def claimed(resolved: Resolved) -> dict[str, Claim]:
    return {name: claim for name, claim in claims_of(resolved).items() if claim}


WHOLE, PART = Claim.WHOLE, Claim.PART


@pytest.mark.parametrize(
    ("study", "keys", "claims"),
    [
        ("occugender", {}, {EXPLICIT: WHOLE, IMPLICIT: WHOLE}),
        ("occugender", {"jobs__select": "nurse"}, {EXPLICIT: PART, IMPLICIT: PART}),
        ("occugender", {"templates__select": "1-24"}, {EXPLICIT: PART, IMPLICIT: PART}),
        ("occugender", {"bias_type": "explicit"}, {EXPLICIT: WHOLE}),
        ("occugender", {"setting": "both"}, {EXPLICIT: WHOLE, IMPLICIT: WHOLE}),
        ("occugender", {"setting": "dialogue"}, {}),
        ("occugender", {"articles": "grammatical"}, {}),
        ("occugender", {"word_boundary": "word"}, {}),
        ("occugender", {"system_prompt": "Be fair."}, {}),
        ("occugender", {"expressions__every": "mattern-explicit"}, {}),
        ("occugender", {"expressions__explicit": "mattern-explicit"}, {IMPLICIT: WHOLE}),
        (
            "occugender",
            {"expressions__explicit": "occugender-released-explicit"},
            {EXPLICIT: WHOLE, IMPLICIT: WHOLE},
        ),
        ("occugender-debias", {}, {EXPLICIT: PART, IMPLICIT: PART, DEBIASING: WHOLE}),
        (
            "occugender-debias",
            {"instructions__select": "1,3"},
            {EXPLICIT: PART, IMPLICIT: PART, DEBIASING: PART},
        ),
        (
            "occugender-debias",
            {"instructions__source": "corpus:mattern/instructions.toml"},
            {EXPLICIT: PART, IMPLICIT: PART},
        ),
        ("mattern", {}, dict.fromkeys(MATTERN.values(), WHOLE)),
        ("mattern", {"setting": "plain"}, dict.fromkeys(MATTERN.values(), PART)),
        ("mattern", {"instruction_place": "own-line"}, {}),
        ("fields-of-study", {}, {}),
        ("gasp-occupations", {}, {}),
    ],
)  # fmt: skip
def test_a_run_claims_what_it_asked_of_a_paper_and_no_more(
    study: str, keys: dict[str, Any], claims: dict[str, Claim]
) -> None:
    assert claims == claimed(asked(study, **keys))


@pytest.mark.parametrize(
    ("keys", "claim"),
    [
        ({}, WHOLE), ({"wording": "released"}, WHOLE), ({"per_gender": 200}, WHOLE),
        ({"per_gender": 20}, PART), ({"max_new_tokens": 150}, PART), ({"occupations__select": "nurse"}, PART),
        ({"templates__select": "persona"}, PART), ({"specified": ["female", "male"]}, PART),
        ({"temperature": 0.7}, Claim.NONE), ({"articles": "grammatical"}, Claim.NONE),
        ({"occupations__source": "corpus:occugender/jobs.csv"}, Claim.NONE),
    ],
)  # fmt: skip
def test_texts_are_gasps_where_occupations_prompts_and_sampling_are(
    keys: dict[str, Any], claim: Claim
) -> None:
    assert claim == claims_of(texts("gasp", **keys))[GASP]


def changed(path: Path, tmp_path: Path, change: Callable[[str], str]) -> str:
    copy = tmp_path / path.name
    copy.write_text(change(path.read_text("utf-8")), "utf-8")
    return str(copy)


def test_a_copy_of_a_papers_list_is_the_papers_and_one_changed_word_is_not(tmp_path: Path) -> None:
    def same(text: str) -> str:
        return text

    both = {EXPLICIT: WHOLE, IMPLICIT: WHOLE}
    assert both == claimed(asked("occugender", jobs__source=changed(JOBS, tmp_path, same)))
    one_job = changed(JOBS, tmp_path, lambda text: text.replace("secretary", "clerk"))
    assert {} == claimed(asked("occugender", jobs__source=one_job))
    moved = changed(JOBS, tmp_path, lambda text: re.sub("(?m)^(secretary),female", r"\1,male", text))
    assert {} == claimed(asked("occugender", jobs__source=moved))
    first = next(
        t for t in resolve_design(load_probe_study("occugender")).templates if t.bias_type == "explicit"
    )
    worded = changed(TEMPLATES, tmp_path, lambda text: text.replace(first.question, first.question + " Say."))
    assert {IMPLICIT: WHOLE} == claimed(asked("occugender", templates__source=worded))


@pytest.mark.parametrize(
    "damage", [{}, {"study": {}}, {"study": {"engine": "probe"}}, {"study": {"engine": 3}}]
)
def test_a_manifest_that_cannot_be_read_claims_nothing(damage: Resolved) -> None:
    assert {} == claimed(damage)


def test_a_studys_line_is_said_of_the_whole_of_it_alone() -> None:
    whole = str(load_probe_study("occugender").summary)
    assert whole == summary_of(asked("occugender"))
    assert f"Part of: {whole}" == summary_of(asked("occugender", jobs__select="nurse"))
    assert "" == summary_of(asked("occugender", jobs__source="corpus:fields-of-study/fields.csv"))
    assert "mine" == summary_of(asked("occugender", jobs__select="nurse", summary="mine"))


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


# --- what is printed, drawn and written ----------------------------------------------------------------

PLACE = re.compile(r"(?:OccuGender|Mattern et al\.|GAS\(P\)),? (?:Tables?|Figures?) [0-9]+(?:-[0-9]+)?")
SMALL_TEXTS = (
    *("--per-gender", "3", "--max-draws", "9", "--max-new-tokens", "60"),
    *("--set", "permutations=19", "--set", "vectors=pretrained:vectors.txt"),
)


@pytest.fixture
def folder(quick_folder: Path) -> Path:
    """Where lists of one's own lie beside a scripted model."""
    write_vectors(Path("vectors.txt"))
    said = ["She said her day was good.", "He said his day was good.", "The day was good."]
    write_script(Path("m.jsonl"), {"contains": "", "log_probs": {" She": -0.5}, "else": -9, "texts": said})
    Path("jobs.csv").write_text("item,group\nbaker,a\nsmith,b\n", "utf-8")
    Path("templates.csv").write_text(
        "bias_type,question,opening\nexplicit,Who is the [JOB]?,\n"
        "implicit,Who is a [JOB]?,The [JOB] said that\n",
        "utf-8",
    )
    Path("groups.toml").write_text('[groups]\nfemale = ["she"]\nmale = ["he"]\n', "utf-8")
    Path("said.txt").write_text("Be fair.\n", "utf-8")
    Path("mine.toml").write_text(
        'name = "mine"\nengine = "probe"\n[jobs]\nsource = "jobs.csv"\n'
        '[templates]\nsource = "corpus:occugender/templates.toml"\nselect = "1-2"\n'
        '[expressions]\nexplicit = "occugender-explicit"\nimplicit = "pronoun-subject"\n',
        "utf-8",
    )
    return quick_folder


def everything(console: Cli, *command: str) -> tuple[str, set[str]]:
    """What a run and its report say, in every place, and the names of the files that they made."""
    said = console(*command, "a=scripted:m.jsonl", "--out", "r", "--yes")
    assert 0 == said.code, said.err
    latex = console("analyze", "r", "--format", "latex")
    reported = console("report", "r")
    assert 0 == latex.code == reported.code, reported.err
    page = Path("r/report.html").read_text("utf-8").partition("<h3>Deviations from the papers")[0]
    files = [*Path("r/latex").iterdir(), *Path("r/figures").glob("*.svg")]
    texts = [said.out, latex.out, reported.out, page, *(file.read_text("utf-8") for file in files)]
    return " ".join(" ".join(texts).split()), {file.name for file in files}


OWN = [
    ("probe", "--jobs", "jobs.csv", "--templates", "1-2"),
    ("probe", "--templates", "templates.csv", "--jobs", "nurse"),
    ("probe", "--expressions", "groups.toml", "--jobs", "nurse", "--templates", "1-2"),
    ("probe", "--study", "occugender-debias", "--instructions", "said.txt", "--jobs", "jobs.csv"),
    ("probe", "--study", "mattern", "--jobs", "jobs.csv"),
    ("probe", "--study", "./mine.toml"),
    ("probe", "--set", "jobs.source=jobs.csv", "--templates", "1-2"),
    ("personas", "--occupations", "jobs.csv", *SMALL_TEXTS),
    ("personas", "--occupations", "nurse", "--set", "temperature=0.5", *SMALL_TEXTS),
]


@pytest.mark.slow
@pytest.mark.parametrize("command", OWN, ids=lambda words: " ".join(words[:4]))
@pytest.mark.usefixtures("folder")
def test_own_lists_claim_no_papers_table_anywhere(console: Cli, command: tuple[str, ...]) -> None:
    text, names = everything(console, *command)
    assert [] == PLACE.findall(text)
    assert [] == [name for name in names if re.search("table-|tables-|figure-|gasp|mattern", name)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "places", "names"),
    [
        (
            ("probe", "--jobs", "nurse", "--templates", "1-2"),
            {"OccuGender, Table 3", "OccuGender, Table 4", "OccuGender, Tables 3"},
            {"part-of-occugender-table-3.tex", "part-of-occugender-table-4.tex"},
        ),
        (
            ("personas", "--occupations", "nurse,mechanic", *SMALL_TEXTS),
            {"GAS(P), Table 1", "GAS(P), Table 11", "GAS(P), Figure 2"},
            {"part-of-gasp-table-1.tex", "part-of-gasp-table-11.tex"},
        ),
    ],
    ids=["probe", "personas"],
)
@pytest.mark.usefixtures("folder")
def test_a_part_of_a_papers_question_is_called_a_part(
    console: Cli, command: tuple[str, ...], places: set[str], names: set[str]
) -> None:
    text, made = everything(console, *command)
    assert places <= set(PLACE.findall(text))
    assert names <= made
    part = re.findall(rf"[Pp]art of:? (?={PLACE.pattern})", text)
    assert len(PLACE.findall(text)) == len(part), "one is claimed as a whole"
