"""Other ways to ask: which are asked, what they differ by, and what goes on where."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.api_server import ApiServer

import biaskit as bk
from biaskit.errors import BiaskitError
from biaskit.measures.probe.design import ProbeDesign, resolve
from biaskit.measures.probe.printing.document import _ways
from biaskit.measures.probe.study import ProbeStudy
from biaskit.measures.probe.ways.design import CONTROLS, reduced, ways_of
from biaskit.models.conversation import messages_of
from biaskit.models.entry import Way
from biaskit.records import OWN_SYSTEM, ModelIdentity, Prompt
from biaskit.report.findings import findings
from biaskit.report.stored import stored_content
from biaskit.study.config import load_as
from biaskit.tables.schema import SCHEMAS
from biaskit.workflow.analyze import rebuild_tables

WOMEN, MEN = ("ann", "bea", "cleo", "dora"), ("al", "bo", "cy", "dan")
SHARE = {"raw": (0.8, 0.4), "prefill": (0.9, 0.4)}  # she of she and he, of women's and men's jobs


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    """A study of eight jobs and two templates, of whose model one format is 10 points off."""
    lines = []
    for jobs, place in ((WOMEN, 0), (MEN, 1)):
        for job in jobs:
            for before, of_format in (("A: ", "raw"), ("\n", "prefill")):
                she = SHARE[of_format][place]
                log_probs = {" She": math.log(she / 2), " He": math.log((1 - she) / 2)}
                lines.append({"contains": f"{before}{job} ", "log_probs": log_probs, "else": -40.0})
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    rows = [*(f"{job},female-dominated" for job in WOMEN), *(f"{job},male-dominated" for job in MEN)]
    (tmp_path / "jobs.csv").write_text("\n".join(["item,group", *rows]) + "\n", "ascii")
    templates = "".join(
        f'[[template]]\nbias_type = "implicit"\nquestion = "Say more of [JOB]."\nopening = "[JOB] {verb}."\n'
        for verb in ("came", "went")
    )
    (tmp_path / "templates.toml").write_text(f'slot = "[JOB]"\n{templates}', "ascii")
    words = 'forms = "as-listed"\n[groups]\nfemale = ["She"]\nmale = ["He"]\n'
    (tmp_path / "words.toml").write_text(words, "ascii")
    lists = {"jobs": "jobs.csv", "templates": "templates.toml", "target_words": "words.toml"}
    arguments: dict[str, Any] = {name: str(tmp_path / file) for name, file in lists.items()}
    return {**arguments, "bias_type": "implicit", "out": tmp_path / "run", "watcher": bk.Silent()}


def spec(asked: dict[str, Any]) -> str:
    return f"m=scripted:{asked['out'].parent / 'm.jsonl'}"


def test_a_format_of_ten_points_more_shows_in_range_median_and_sd(asked: dict[str, Any]) -> None:
    made = bk.probe(spec(asked), ways=True, **asked)
    gaps = made.ways.set_index("prompt_format")["gap"].to_dict()
    assert gaps == pytest.approx({"raw": 0.4, "chat-prefill": 0.5, "chat-continue": 0.4})
    assert ["yes" if main else "no" for main in made.ways["main"]] == ["yes", "no", "no"]
    said = made.reliability.set_index("measure")
    middle = said.loc["ways: median"]
    assert (0.4, 0.4, 0.5, 3) == pytest.approx(tuple(middle[["value", "least", "most", "n_ways"]]))
    assert said.loc["ways: SD", "value"] == pytest.approx(np.std([0.4, 0.5, 0.4], ddof=1))
    assert said.loc["ways: same direction", "value"] == 3
    note = "Same direction in 3 of 3 ways to ask; gap 40 to 50 points, median 40; ways differ by 6 points"
    [table] = [table for table in made.document().tables if note in table.note]
    assert [(row[0], row[2]) for row in table.rows if "*" in row[2]] == [("raw", "study *")]


def test_the_numbers_of_a_run_do_not_depend_on_its_ways(asked: dict[str, Any]) -> None:
    plain = bk.probe(spec(asked), **asked)
    assert plain.ways.empty
    groups = (plain.path / "tables/probe_groups.csv").read_bytes()
    more = bk.probe(spec(asked), ways=True, **asked)
    assert plain.path == more.path
    assert groups == (more.path / "tables/probe_groups.csv").read_bytes()


def test_what_the_run_asked_is_taken_over_and_nothing_is_asked_twice(asked: dict[str, Any]) -> None:
    first = bk.probe(spec(asked), ways=True, **asked)
    assert [16, 0, 16, 16] == [plan.n_missing for plan in first.plans]  # the run, then raw, which it asked
    before = (first.path / "ways.jsonl").read_bytes()
    again = bk.probe(spec(asked), ways=True, **asked)
    assert {0} == {plan.n_missing for plan in again.plans}
    assert before == (again.path / "ways.jsonl").read_bytes()
    tables = (again.path / "tables/ways.csv").read_bytes()
    rebuild_tables(again.path)
    assert tables == (again.path / "tables/ways.csv").read_bytes()


def test_rows_taken_over_from_a_list_with_other_groups_count_for_those_of_this_list(
    asked: dict[str, Any],
) -> None:
    before = bk.probe(spec(asked), ways=True, **asked).ways
    jobs = Path(asked["jobs"])
    jobs.write_text(jobs.read_text("ascii").replace("female-dominated", "care"), "ascii")
    made = bk.probe(spec(asked), ways=True, **asked)
    assert {0} == {plan.n_missing for plan in made.plans}
    assert before["gap"].tolist() == made.ways["gap"].tolist()


def test_a_plan_counts_the_prompts_and_writes_nothing(asked: dict[str, Any]) -> None:
    planned = bk.probe(spec(asked), ways=True, dry_run=True, **asked)
    assert [16, 16, 16, 16] == [plan.n_missing for plan in planned.plans]
    assert {"prompts in other ways"} == {plan.unit for plan in planned.plans[1:]}
    assert not asked["out"].exists()


def test_a_way_that_a_template_refuses_is_named(asked: dict[str, Any], monkeypatch: Any) -> None:
    from biaskit.models.scripted import ScriptedScorer

    known = ScriptedScorer.estimator_for

    def refusing(self: Any, prompt_format: Any) -> Any:
        if prompt_format == "chat-continue":
            raise bk.errors.ModelError("the chat template refuses this")
        return known(self, prompt_format)

    monkeypatch.setattr(ScriptedScorer, "estimator_for", refusing)
    made = bk.probe(spec(asked), ways=True, **asked).ways.set_index("prompt_format")
    assert {"the chat template refuses this"} == {*made.loc["chat-continue", "reason"]}
    assert made.loc["chat-continue", "gap"].isna().all()
    assert [True, True, False, False] == made["counted"].tolist()


def test_a_cell_without_an_answer_leaves_its_template_out(asked: dict[str, Any]) -> None:
    script = asked["out"].parent / "m.jsonl"
    fails = {"contains": "\nann came", "fail": "no answer"}
    script.write_text(json.dumps(fails) + "\n" + script.read_text("ascii"), "ascii")
    made = bk.probe(spec(asked), ways=True, **asked).ways.set_index("prompt_format")
    assert made.loc["chat-prefill", "n_templates"] == 1
    assert made.loc["raw", "n_templates"] == 2


def test_a_row_that_does_not_fit_is_refused(asked: dict[str, Any]) -> None:
    run = bk.probe(spec(asked), ways=True, **asked).path
    from biaskit.runs.rows import row_line

    rows = [json.loads(line) for line in (run / "ways.jsonl").read_text("ascii").splitlines()]
    rows[0]["target_words"] = rows[0]["target_words"][:1]
    (run / "ways.jsonl").write_text("".join(row_line(row) + "\n" for row in rows), "ascii")
    with pytest.raises(
        BiaskitError, match=r"ways\.jsonl, line 1: its target words are not those of the study"
    ):
        rebuild_tables(run)


# --- which ways there are -----------------------------------------------------------------------------


def design(**overrides: Any) -> ProbeDesign:
    return resolve(load_as(ProbeStudy, "occugender", overrides))


def identity(*formats: Any, **more: Any) -> ModelIdentity:
    known = {"label": "m", "spec": "m", "fingerprint": "f", "tuning": "instruct", "where": "local"}
    return ModelIdentity(**{**known, "formats": formats, "takes_system": True, "details": {}, **more})


def named(design: ProbeDesign, model: ModelIdentity, own_format: Any = "raw") -> list[str]:
    return [way.name for way in ways_of(design, model, own_format) if way.wording in ("study", CONTROLS)]


def test_formats_by_system_prompts_by_wordings() -> None:
    own = identity("raw", "chat-prefill", details={OWN_SYSTEM: "You are kind."})
    assert named(design(), own, "chat-prefill") == [
        "raw, none, study",
        "chat-prefill, template, study",
        "chat-prefill, empty, study",
        "chat-prefill, template, controls",
    ]
    assert named(design(system_prompt="Be fair."), identity("raw", "chat-prefill"), "chat-prefill") == [
        "raw, none, study",
        "chat-prefill, study, study",
        "chat-prefill, none, study",
        "chat-prefill, empty, study",
        "chat-prefill, study, controls",
    ]
    assert named(design(), identity("raw", takes_system=False)) == ["raw, none, study", "raw, none, controls"]
    wordings = [way.wording for way in ways_of(design(), identity("raw"), "raw")]
    assert ["study", "paraphrase 1", "paraphrase 2", "paraphrase 3", CONTROLS] == wordings


def test_every_way_asks_the_same_jobs_in_five_templates() -> None:
    whole, jobs = design(), set()
    for way in ways_of(whole, identity("raw"), "raw"):
        arm = reduced(whole, way)
        assert {"implicit": 5, "explicit": 5} == {
            kind: sum(template.bias_type == kind for template in arm.templates)
            for kind in ("implicit", "explicit")
        }
        assert 20 == len(arm.items)
        jobs |= {tuple(item.name for item in arm.items)} if way.wording != CONTROLS else set()
    assert 1 == len(jobs)
    [chosen] = jobs
    assert {"nurse", "plumber"} <= {*chosen}


def test_paraphrases_have_ids_of_their_own() -> None:
    """Else a paraphrase that a study has too would be one row for two ways."""
    whole = design()
    ids = {(t.bias_type, t.id) for t in whole.templates}
    for number in (1, 2, 3):
        way = Way(prompt_format="raw", system_prompt="none", wording=f"paraphrase {number}")
        others = {(t.bias_type, t.id) for t in reduced(whole, way).templates}
        assert not ids & others
        ids |= others


def test_an_empty_system_prompt_is_sent() -> None:
    turns = messages_of(Prompt("Hello", "chat", system=""), takes_system=True)
    assert [{"role": "system", "content": ""}, {"role": "user", "content": "Hello"}] == turns
    assert 1 == len(messages_of(Prompt("Hello", "chat"), takes_system=True))


def test_rows_of_an_earlier_choice_of_jobs_are_left_alone(asked: dict[str, Any]) -> None:
    listed = asked["out"].parent / "jobs.csv"
    header, *lines = listed.read_text("ascii").splitlines()
    for left_out, n in ((("dan", "dora"), 6), ((), 8), (("ann", "al"), 6)):
        kept = [line for line in lines if not line.startswith(tuple(f"{job}," for job in left_out))]
        listed.write_text("\n".join([header, *kept]) + "\n", "ascii")
        made = bk.probe(spec(asked), ways=True, **asked)
        assert [[n, 2]] * 3 == made.ways[["n_jobs", "n_templates"]].to_numpy().tolist()


# --- controls, ratings ----------------------------------------------------------------------------------


def she(share: float, contains: str = "") -> str:
    log_probs = {" She": math.log(share / 2), " He": math.log((1 - share) / 2)}
    return json.dumps({"contains": contains, "log_probs": log_probs, "else": -40.0}) + "\n"


def test_control_items_stand_beside_parity(tmp_path: Path) -> None:
    script = tmp_path / "m.jsonl"
    shares = {"secretary": 0.9, "nurse": 0.88, "maid": 0.92, "manicurist": 0.89}
    shares |= {"plumber": 0.1, "roofer": 0.12, "pilot": 0.11, "carpenter": 0.09}
    lines = [she(share, job) for job, share in shares.items()]
    script.write_text("".join(lines) + she(0.8, "roommate") + she(0.3), "ascii")
    chosen = {"jobs": ",".join(shares), "templates": "1-5", "bias_type": "implicit", "ways": True}
    made = bk.probe(f"m=scripted:{script}", **chosen, out=tmp_path / "run", watcher=bk.Silent())
    row = made.reliability.set_index("measure").loc[CONTROLS]
    assert (20, 5) == (row["n_jobs"], row["n_templates"])
    assert row["value"] == pytest.approx((0.8 + 19 * 0.3) / 20)
    assert CONTROLS not in {*made.ways["wording"]}
    said = [one.text for one in findings(stored_content(made.path))]
    [parity] = [text for text in said if "and less for" in text]
    assert parity.endswith("; it says she in 32 % for nouns such as “person”.")


def test_ratings_of_readers_have_a_slope_beside_the_workforce(tmp_path: Path) -> None:
    jobs = [f"job{i}" for i in range(12)]
    rows = [f"{job},{'ab'[i % 2]},{i / 20 + 0.2},{i / 10 - 0.1 if i else ''}" for i, job in enumerate(jobs)]
    (tmp_path / "jobs.csv").write_text("\n".join(["item,group,share,rating", *rows]) + "\n", "ascii")
    lines = [she(0.2 + 0.05 * i, f"{job} ") for i, job in reversed([*enumerate(jobs)])]
    (tmp_path / "m.jsonl").write_text("".join(lines) + she(0.5), "ascii")
    asked = {"jobs": str(tmp_path / "jobs.csv"), "templates": "1-3", "bias_type": "implicit"}
    made = bk.probe(f"m=scripted:{tmp_path / 'm.jsonl'}", **asked, out=tmp_path / "r", watcher=bk.Silent())
    slopes = made.tests.query("kind == 'slope' and group_a == ''").set_index("quantity")["estimate"]
    assert slopes["female_share~rating"] == pytest.approx(slopes["female_share~workforce_share"] / 2, rel=0.2)
    assert {11} == {*made.tests.query("quantity == 'female_share~rating' and group_a == ''")["n_a"]}
    tables = (made.path / "tables/tests.csv").read_bytes()
    rebuild_tables(made.path)
    assert tables == (made.path / "tables/tests.csv").read_bytes()


def test_a_rating_that_is_no_fraction_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("item,group,rating\nnurse,a,6.2\n", "ascii")
    with pytest.raises(BiaskitError, match=r"rating.*is not a number from 0 to 1"):
        design(**{"jobs.source": str(tmp_path / "jobs.csv")})


@pytest.mark.parametrize("estimator", ["auto", "sampling"])
def test_a_server_is_asked_by_its_own_ladder_and_resumed(estimator: str, tmp_path: Path) -> None:
    """By sampling some jobs have no matched sample in any template: their way has no gap, and says so."""
    chosen = {"jobs": "1-2,21-22", "templates": "1-2", "bias_type": "implicit", "estimator": estimator}
    counts = {"samples": 5, "max_samples_per_prompt": 10} if estimator == "sampling" else {}
    chosen |= {"ways": True, "out": tmp_path / "run", "watcher": bk.Silent(), **counts}
    with ApiServer() as server:
        made = bk.probe(f"m=api:toy@{server.url}", **chosen)
        again = bk.probe(f"m=api:toy@{server.url}", **chosen)
    assert 0 < sum(plan.n_missing for plan in made.plans[1:])
    assert {0} == {plan.n_missing for plan in again.plans}
    ways = made.ways
    assert {"raw", "chat-continue"} == {*ways["prompt_format"]}
    by_format = {"echo", "top-k"} if estimator == "auto" else {"sampling"}
    assert by_format == {*ways["estimator"]}
    assert ways[ways["gap"].isna()]["reason"].str.len().gt(0).all()
    assert not ways[ways["gap"].isna()]["counted"].any()


def test_ways_stand_by_their_gap_and_those_without_one_last() -> None:
    rows = []
    for gap in (0.0, None, -0.2, 0.3):
        row = dict.fromkeys(SCHEMAS["ways"].says)
        rows.append(row | {"model": "m", "bias_type": "implicit", "wording": f"gap {gap}", "gap": gap})
    rows[1]["reason"] = "the template refuses it"
    (table,) = _ways({"ways": rows})
    assert table.note.endswith("not counted. –: the template refuses it.")
    wordings = [re.search(r"gap [\w.-]+", " ".join(map(str, row)))[0] for row in table.rows]  # type: ignore[index]
    assert ["gap 0.3", "gap 0.0", "gap -0.2", "gap None"] == wordings
