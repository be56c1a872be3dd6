"""Models of several runs against each other, the four gaps and their relations, from made-up tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from fakes.numbered_runs import (
    GROUPS,
    JOBS,
    TEMPLATES,
    WORKFORCE,
    drawn,
    probe_run,
    seal,
    share_of,
    texts_run,
)
from fakes.tables import write_table
from scipy import stats

from biaskit.compare.aliases import key_of, read_aliases
from biaskit.compare.check import require_equivalent, verdict_in_words
from biaskit.compare.comparison import ComparisonTables, compare_collection
from biaskit.compare.pairs import Side, family_of, named_groups
from biaskit.errors import CorpusError, UsageError
from biaskit.measures.agree.gaps import BothKinds, gap_rows, workforce_table
from biaskit.measures.personas.compare import Texts, pair_rows_of_texts, texts_of
from biaskit.runs.collection import StoredRun, gather
from biaskit.runs.manifest import Manifest
from biaskit.stats.contrast import Contrast
from biaskit.stats.contrasts import adjust
from biaskit.tables.io import read_table_rows

pytestmark = pytest.mark.usefixtures("no_waiting")


# --- runs of made-up numbers -------------------------------------------------------------------------


def compared(
    *paths: Path, margins: Mapping[str, float] | None = None, groups: Sequence[str] = (), **more: Any
) -> ComparisonTables:
    collection = gather(paths)
    labels = [label for run in collection.runs for label in run.manifest.models]
    chosen = {"share": 0.05, "represented_share": 0.05} if margins is None else margins
    sides = named_groups(groups, labels)
    return compare_collection(collection, groups=sides, margins=chosen, **more)


def find(rows: Sequence[Mapping[str, Any]], **values: object) -> Any:
    found = [row for row in rows if all(row[name] == value for name, value in values.items())]
    assert len(found) == 1, f"{len(found)} rows have {values}"
    return found[0]


def pairs_of(made: ComparisonTables, kind_name: str) -> set[tuple[Any, Any]]:
    return {(r["model_a"], r["model_b"]) for r in made.tests if r["family"].startswith(f"{kind_name}/")
            and r["family"].endswith("/models")}  # fmt: skip


def note(made: ComparisonTables, part: str) -> str:
    found = [note for note in made.notes if part in note]
    assert len(found) == 1, made.notes
    return found[0]


# --- the prober over several runs --------------------------------------------------------------------


def test_models_of_two_runs_are_compared_on_the_cells_both_have(tmp_path: Path) -> None:
    one = probe_run(tmp_path / "one", "old", jobs=JOBS[:8], templates=(1, 2, 3))
    two = probe_run(tmp_path / "two", "new+0.1", jobs=JOBS[2:], templates=(2, 3, 4))
    made = compared(one, two)
    row = find(made.tests, kind="paired", gender="female", group_a="women's")
    jobs = [job for job in JOBS[2:8] if WORKFORCE[job] >= 0.5]
    a, b = ([np.mean([share_of(m, job, t) for t in (2, 3)]) for job in jobs] for m in ("new+0.1", "old"))
    expected = stats.ttest_rel(a, b)
    assert ("new+0.1", "old") == (row["model_a"], row["model_b"])
    assert (np.mean(a) - np.mean(b), expected.pvalue) == pytest.approx((row["estimate"], row["p_value"]))
    assert row["estimate"] > 0.08
    assert "5 jobs left out, not in every model" in row["reason"]
    assert "only the 2 templates common to all" in row["reason"]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"texts": {"explicit template 2": ["Another [JOB]?", ""]}}, 2),
        ({"target_words": {"explicit:3": [["male", "man"], ["female", "she"]]}}, 3),
    ],
)
def test_an_id_is_the_same_template_only_if_text_and_target_words_are(
    tmp_path: Path, change: Any, left: int
) -> None:
    made = compared(probe_run(tmp_path / "one", "a"), probe_run(tmp_path / "two", "b", **change))
    kept = [t for t in TEMPLATES if t != left]
    row = find(made.tests, kind="crossed", gender="female", group_a="men's")
    men = [job for job in JOBS if WORKFORCE[job] < 0.5]
    a, b = (np.mean([share_of(m, job, t) for job in men for t in kept]) for m in ("b", "a"))
    assert a - b == pytest.approx(row["estimate"])
    assert "1 templates with another text" in row["reason"]


def test_another_slot_alone_or_another_order_of_target_words_is_no_other_text(tmp_path: Path) -> None:
    texts = {f"explicit template {t}": [f"What of a [X], {t}?", ""] for t in TEMPLATES}
    turned = {f"explicit:{t}": [["female", "she"], ["male", "he"]] for t in TEMPLATES}
    two = probe_run(tmp_path / "two", "b", texts=texts, target_words=turned, question={"slot": "[X]"})
    made = compared(probe_run(tmp_path / "one", "a"), two)
    assert [] == [note for note in made.notes if "left out" in note]
    assert made.tests


def test_a_debiasing_prompt_of_another_text_is_not_compared_and_is_named(tmp_path: Path) -> None:
    one = probe_run(tmp_path / "one", "a", debiasing_prompts=(0, 1, 2))
    two = probe_run(
        tmp_path / "two", "b", debiasing_prompts=(0, 1, 2), texts={"debiasing prompt 2": "Be unfair."}
    )
    made = compared(one, two)
    assert {"0", "1"} == {row["debiasing_a"] for row in made.tests}
    assert "explicit, debiasing prompt 2, plain" in note(made, "Left out")


def test_a_job_in_another_group_is_left_out_and_named(tmp_path: Path) -> None:
    two = probe_run(tmp_path / "two", "b", job_group={"clerk": "men's"})
    made = compared(probe_run(tmp_path / "one", "a"), two)
    assert all("1 jobs left out, not in every model" in str(row["reason"]) for row in made.tests)
    women = sum(WORKFORCE[job] >= 0.5 for job in JOBS)
    for group, n in (("women's", women - 1), ("men's", len(JOBS) - women)):
        assert n == find(made.tests, kind="paired", gender="female", group_a=group)["n_a"]


def test_other_gender_groups_are_not_compared_but_another_order_is(tmp_path: Path) -> None:
    turned = probe_run(tmp_path / "turned", "b+0.1", groups=("diverse", "male", "female"))
    one = probe_run(tmp_path / "one", "a")
    other = probe_run(tmp_path / "other", "c", groups=("x", "y", "z"))
    made = compared(one, turned, other)
    assert {("b+0.1", "a")} == pairs_of(made, "probe")
    # The builder gives its groups 0.9 - w, w and 0.1 in their order: here men's share is w.
    row = find(made.tests, kind="paired", gender="male", group_a="men's")
    men = [job for job in JOBS if WORKFORCE[job] < 0.5]
    b = [np.mean([share_of("b+0.1", job, t) for t in TEMPLATES]) for job in men]
    a = [np.mean([0.9 - share_of("a", job, t) for t in TEMPLATES]) for job in men]
    assert np.mean(b) - np.mean(a) == pytest.approx(row["estimate"])
    assert "c (x, y, z) and a (male, female, diverse) have different gender groups" in "".join(made.notes)


def test_two_formats_are_not_compared(tmp_path: Path) -> None:
    run = probe_run(tmp_path / "one", "a", "b", formats={"b": "chat-prefill"})
    made = compared(run)
    assert [] == made.tests
    assert "(raw: a; chat-prefill: b)" in note(made, "no test between")


def test_a_model_without_a_cell_is_noted_and_does_not_pass(tmp_path: Path) -> None:
    run = probe_run(tmp_path / "r", "a", "b", noise=0.001)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["models"]["gone"] = {**manifest["models"]["a"]}
    (run / "manifest.json").write_text(json.dumps(manifest))
    made = compared(run)
    assert "gone has no row in" in note(made, "no row in")
    found = require_equivalent(made.tests, "models", made.pairs)
    assert [] == list(found.failing)
    assert ("gone and a (probe)", "gone and b (probe)") == found.not_compared


def test_what_differs_between_the_runs_is_said(tmp_path: Path) -> None:
    one = probe_run(tmp_path / "one", "a")
    prompt = {"system_prompt": "You are kind.", "word_boundary": "word"}
    two = probe_run(tmp_path / "two", "b", question=prompt)
    made = compared(one, two)
    assert pairs_of(made, "probe") == {("b", "a")}
    said = note(made, "system_prompt differs")
    assert "none in" in said
    assert "You are kind." in said


@pytest.mark.parametrize(
    ("estimators", "command"),
    [
        (("exact", {"name": "top-k", "k": 20}), "`biaskit probe 'a=gguf:my model.gguf' --estimator top-k`"),
        (
            ({"name": "top-k", "k": 20}, {"name": "top-k", "k": 5}),
            "`biaskit probe 'a=gguf:my model.gguf' --estimator top-k --set k=5`",
        ),
        (
            ({"name": "sampling", "samples": 10}, {"name": "top-k", "k": 5}),
            "`biaskit probe b=api:b --estimator sampling --set samples=10`",
        ),
    ],
)
def test_models_by_other_estimators_get_the_command_that_asks_them_alike(
    estimators: Sequence[Any], command: str, tmp_path: Path
) -> None:
    specs = ("gguf:my model.gguf", "api:b")
    one, two = (
        probe_run(tmp_path / label, label, entries={label: {"spec": spec, "estimator": estimator}})
        for label, spec, estimator in zip("ab", specs, estimators, strict=True)
    )
    said = note(compared(one, two), "Estimators differ")
    assert "they may explain part of a difference" in said
    assert command in said


@pytest.mark.parametrize("name", ["echo", "selected-ids"])
def test_estimators_of_one_number_get_no_warning(name: str, tmp_path: Path) -> None:
    one = probe_run(tmp_path / "a", "a", entries={"a": {"spec": "gguf:a", "estimator": "exact"}})
    two = probe_run(tmp_path / "b", "b", entries={"b": {"spec": "api:b", "estimator": {"name": name}}})
    made = compared(one, two)
    assert not [
        said for said in (*made.notes, *(row.reason or "" for row in made.tests)) if "stimators" in said
    ]


# --- groups of models --------------------------------------------------------------------------------


def test_a_group_is_the_mean_of_its_models_in_every_cell(tmp_path: Path) -> None:
    run = probe_run(tmp_path / "one", "a", "b", "c+0.1", "d+0.2")
    made = compared(run, groups=["small=a,b", "large=c+0.1, d+0.2"])
    row = find(made.tests, kind="paired", gender="female", group_a="men's", model_a="large", model_b="small")
    men = [job for job in JOBS if WORKFORCE[job] < 0.5]

    def of(*models: str) -> list[float]:
        return [float(np.mean([share_of(m, job, t) for m in models for t in TEMPLATES])) for job in men]

    expected = stats.ttest_rel(of("c+0.1", "d+0.2"), of("a", "b"))
    assert (expected.statistic, expected.pvalue) == pytest.approx((row["statistic"], row["p_value"]))
    assert 0.13 < row["estimate"] < 0.17
    assert row["family"] == "probe/share/paired/models"


FAMILIES = {
    "a": {"tuning": "base", "spec": "hf:org/Llama-3.1-8B"},
    "b": {"tuning": "instruct", "spec": "hf:other/Llama-3.1-8B-Instruct@abc"},
    "c": {"tuning": "base", "spec": "models/gemma-2-9b"},
    "d": {"tuning": "instruct", "spec": "hf:org/gemma-2-9b-it"},
    "e": {"tuning": "instruct", "spec": "hf:org/Qwen2.5-7B-Instruct"},
    "f": {"where": "api", "tuning": "unknown"},
}


def test_api_and_tuning_make_groups_of_their_own(tmp_path: Path) -> None:
    made = compared(probe_run(tmp_path / "one", *FAMILIES, entries=FAMILIES))
    found = {(row["model_a"], row["model_b"]) for row in made.tests}
    assert ("instruct models", "base models") in found
    assert ("API models", "open-weight models") in found
    of_base = find(made.tests, kind="paired", gender="male", group_a="men's", model_b="base models")
    men = [job for job in JOBS if WORKFORCE[job] < 0.5]
    mean = {m: np.mean([0.9 - share_of(m, job, t) for job in men for t in TEMPLATES]) for m in "abcd"}
    # e has no partner: its family would else pass for its tuning.
    expected = (mean["b"] + mean["d"]) / 2 - (mean["a"] + mean["c"]) / 2
    assert expected == pytest.approx(of_base["estimate"])
    assert "these 2 models: b, d." in note(made, "instruct models are the mean")
    assert "without a partner, or with several: e" in note(made, "paired by family")


@pytest.mark.parametrize("digests", ["one", "two"])
def test_one_model_asked_twice_is_no_group(digests: str, tmp_path: Path) -> None:
    entries = {
        "here": {"spec": "gguf:one.gguf", "details": {"weights": "one"}},
        "again": {"spec": "gguf:copy.gguf", "details": {"weights": digests}},
        "served": {"where": "api", "spec": "api:one@http://127.0.0.1:8000/v1"},
    }
    made = compared(probe_run(tmp_path / "one", *entries, entries=entries))
    assert ("API models" in {row["model_a"] for row in made.tests}) == (digests == "two")
    assert any("open-weight" in note for note in made.notes) == (digests == "two")


def test_models_of_unrelated_names_are_no_family(tmp_path: Path) -> None:
    entries = {
        "a": {"tuning": "base", "spec": "hf:org/one-1b"},
        "b": {"tuning": "instruct", "spec": "hf:org/two-1b-it"},
        "c": {"tuning": "instruct", "spec": "hf:org/one-3b-it"},
    }
    made = compared(probe_run(tmp_path / "one", "a", "b", "c", entries=entries))
    assert "instruct models" not in {row["model_a"] for row in made.tests}
    assert "a, b, c" in note(made, "paired by family")


@pytest.mark.parametrize(
    ("spec", "family"),
    [
        ("hf:meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("hf:mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),
        ("hf:mistralai/Mistral-7B-v0.3@main", "mistral-7b-v0.3"),
        ("C:\\models\\gemma-2-9b-it\\", "gemma-2-9b"),
        ("./models/qwen2.5-7b-chat.gguf", "qwen2.5-7b"),
        ("demo", "demo"),
    ],
)
def test_a_family_is_the_name_without_how_it_was_tuned(spec: str, family: str) -> None:
    assert family_of(spec) == family


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (["a=b", "y=a"], "a model is called so"),
        (["x=a", "y=nobody"], "no model 'nobody'"),
        (["x=a", "y=a,b"], "a is in the group x already"),
        (["x=a", "x=b"], "such a group already"),
        (["x=a"], "has nothing to be compared with"),
        (["x"], "NAME=LABEL"),
        (["=HYPERLINK=a", "y=b"], "NAME=LABEL"),
        (["@x=a", "y=b"], "a spreadsheet would run"),
    ],
)
def test_a_group_that_cannot_be_is_refused(groups: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        named_groups(groups, ["a", "b", "c"])


# --- texts over several runs -------------------------------------------------------------------------


def test_shares_in_texts_are_compared_over_runs_but_srb_of_other_vectors_is_not(tmp_path: Path) -> None:
    one, two = texts_run(tmp_path / "one", "a"), texts_run(tmp_path / "two", "b+0.1", vectors="corpus:bbbb")
    made = compared(one, two)
    assert {"represented_share"} == {row["quantity"] for row in made.tests}
    assert [] == made.rows["srb_change"]
    row = find(made.tests, kind="paired")
    assert ("b+0.1", "a", True) == (row["model_a"], row["model_b"], row["estimate"] > 0.05)
    assert "trains one vector model" in note(made, "different word vectors")


def test_srb_is_compared_within_one_vector_model(tmp_path: Path) -> None:
    one = texts_run(tmp_path / "one", "a", vectors="pretrained:cccc")
    two = texts_run(tmp_path / "two", "b", vectors="pretrained:cccc")
    made = compared(one, two)
    row = find(made.tests, kind="welch", quantity="srb", gender="male")
    a, b = ([0.2 + 0.3 * drawn("srb", m, job, "male") for job in JOBS] for m in "ba")
    expected = stats.ttest_ind(a, b, equal_var=False)
    assert (expected.statistic, expected.pvalue) == pytest.approx((row["statistic"], row["p_value"]))
    change = find(made.rows["srb_change"], occupation="COOK", gender="female")
    assert ("a", "b") == (change["model_old"], change["model_new"])
    old, new = (-0.2 - 0.3 * drawn("srb", m, "cook", "female") for m in "ab")
    assert -100 * (new - old) / abs(old) == pytest.approx(change["percent_change"])


def test_vectors_of_marked_lists_are_never_those_of_another_run(tmp_path: Path) -> None:
    one = texts_run(tmp_path / "one", "a", "b", vectors="marked-lists")
    two = texts_run(tmp_path / "two", "c", vectors="marked-lists")
    made = compared(one, two)
    srb = {(r["model_a"], r["model_b"]) for r in made.tests if r["quantity"] == "srb"}
    assert {("b", "a")} == srb
    assert {("a", "b")} == {(row["model_old"], row["model_new"]) for row in made.rows["srb_change"]}


def test_texts_of_two_formats_or_of_other_prompts_are_not_compared(tmp_path: Path) -> None:
    one = texts_run(tmp_path / "one", "a")
    two = texts_run(tmp_path / "two", "b", formats={"b": "completion"})
    three = texts_run(tmp_path / "three", "c", open_text="Tell of a [OCCUPATION]")
    made = compared(one, two, three)
    assert [] == made.tests
    assert "different prompt formats (chat: a, c; completion: b)" in "".join(made.notes)
    assert "c and a had different prompts (biography, persona)" in "".join(made.notes)


# --- the four gaps -----------------------------------------------------------------------------------


def both_kinds(*tables: dict[str, Any]) -> BothKinds:
    probe, personas = (StoredRun(Path("run"), Manifest.new("probe", "s"), {}, own, {}) for own in tables)
    return BothKinds("m", probe, personas, "m", "m")


def test_the_four_gaps_by_hand() -> None:
    jobs = [
        {"model": "m", "bias_type": "explicit", "prompt_format": "raw", "debiasing_id": i, "context": s,
         "job": "Nurse", "female_share": f, "male_share": 0.2, "workforce_share": 0.5, "reason": ""}
        for i, s, f in ((0, "plain", 0.7), (1, "plain", 0.1), (0, "dialogue", 0.1))
    ]  # fmt: skip
    texts = [
        {"model": "m", "occupation": "nurse", "template_id": t, "workforce_share": 0.9,
         "n_female": f, "n_male": m, "n_nonbinary": n}
        for t, f, m, n in (("p", 6, 2, 2), ("q", 30, 10, 0), ("all", 36, 12, 2))
    ]  # fmt: skip
    srb = [
        {
            "model": "m",
            "occupation": "nurse",
            "gender": g,
            "srb": 9.0,
            "srb_content": s,
            "vectors": "corpus:1",
            "reason": "",
        }
        for g, s in (("female", -0.3), ("male", 0.1))
    ]  # fmt: skip
    both = both_kinds({"probe_jobs": jobs}, {"representation": texts, "srb": srb})
    workforce, apart = workforce_table(texts, jobs, {})
    rows, notes = gap_rows(both, workforce, {})
    assert [] == notes
    assert len(rows) == 1
    row = rows[0]
    # Mean of (6 - 2)/10 and (30 - 10)/40, not (36 - 12)/50; workforce of the texts' run.
    expected = (0.5, 0.45, 0.8, 0.4)
    assert expected == pytest.approx(
        tuple(row[g] for g in ("probe_gap", "represented_gap", "workforce_gap", "srb_spread"))
    )
    assert ("nurse", "corpus:1", None) == (row["occupation"], row["vectors"], row["reason"])
    assert ["differ between the measurements for 1 occupations (Nurse)" in note for note in apart] == [True]


def test_a_gap_that_is_undefined_has_its_reason() -> None:
    jobs = [{"model": "m", "bias_type": "implicit", "prompt_format": "raw", "debiasing_id": 0,
             "context": "plain", "job": "cook", "female_share": None, "male_share": None,
             "workforce_share": None, "reason": "all prompts failed"}]  # fmt: skip
    texts = [{"model": "m", "occupation": "cook", "template_id": "p", "workforce_share": None,
              "n_female": 0, "n_male": 0, "n_nonbinary": 0}]  # fmt: skip
    of = {"model": "m", "occupation": "cook", "vectors": "", "reason": "no list"}
    srb = [{**of, "gender": gender, "srb": None, "srb_content": None} for gender in ("female", "male")]
    both = both_kinds({"probe_jobs": jobs}, {"representation": texts, "srb": srb})
    rows, _ = gap_rows(both, workforce_table(texts, jobs, {})[0], {})
    assert [None] * 4 == [rows[0][g] for g in ("probe_gap", "represented_gap", "workforce_gap", "srb_spread")]
    assert rows[0]["reason"] == (
        "probe_gap: all prompts failed; represented_gap: no text with a gender (p);"
        " workforce_gap: no workforce share; srb_spread: no list"
    )


def test_gaps_are_joined_by_lower_case_and_relations_match_scipy(tmp_path: Path) -> None:
    probe = probe_run(tmp_path / "p", "m", bias_types=("explicit", "implicit"), noise=0.3)
    made = compared(probe, texts_run(tmp_path / "t", "m"))
    assert 2 * len(JOBS) == len(made.rows["gaps"])
    assert {job.upper() for job in JOBS} == {row["occupation"] for row in made.rows["gaps"]}
    own = [row for row in made.rows["gaps"] if row["bias_type"] == "implicit"]
    for y, x in (
        ("represented_gap", "probe_gap"),
        ("srb_spread", "probe_gap"),
        ("probe_gap", "workforce_gap"),
    ):
        quantity = f"{y}~{x}"
        xs, ys = [row[x] for row in own], [row[y] for row in own]
        line = find(made.tests, quantity=quantity, kind="slope", bias_type="implicit")
        rank = find(made.tests, quantity=quantity, kind="spearman", bias_type="implicit")
        assert stats.linregress(xs, ys).slope == pytest.approx(line["estimate"])
        assert stats.spearmanr(xs, ys).statistic == pytest.approx(rank["estimate"])
        assert line["ci_low"] < line["estimate"] < line["ci_high"]
        assert (len(JOBS), "occupation") == (line["n_a"], line["unit"])
        fit = sm.OLS(ys, sm.add_constant(xs)).fit(cov_type="HC3", use_t=True)
        assert (fit.pvalues[1], *fit.conf_int()[1]) == pytest.approx(
            (line["p_value"], line["ci_low"], line["ci_high"])
        )
        assert stats.spearmanr(xs, ys).pvalue == pytest.approx(rank["p_value"])
    contrasts = {row["family"].rpartition("/")[2]: row["quantity"] for row in made.tests}
    assert {"gaps", "workforce"} == set(contrasts)
    spread = [row for row in made.tests if row["quantity"] == "srb_spread~represented_gap"]
    assert ["", ""] == [row["bias_type"] for row in spread]


def test_the_bootstrap_of_a_relation_is_a_plain_loop(tmp_path: Path) -> None:
    from biaskit.stats.resampling import generator

    made = compared(probe_run(tmp_path / "p", "m", noise=0.3), texts_run(tmp_path / "t", "m"))
    row = find(made.tests, quantity="represented_gap~probe_gap", kind="spearman")
    own = sorted(made.rows["gaps"], key=lambda gap: gap["occupation"])
    key = ["compare", "gaps", "represented_gap~probe_gap", "m", "explicit", "raw", "spearman"]
    picks = generator(1, "tests", key).integers(0, len(own), size=(2000, len(own)))
    x, y = (np.array([gap[name] for gap in own]) for name in ("probe_gap", "represented_gap"))
    correlations = [stats.spearmanr(x[p], y[p]).statistic for p in picks]
    assert np.percentile(correlations, [2.5, 97.5]) == pytest.approx((row["ci_low"], row["ci_high"]))


def test_fewer_than_ten_occupations_have_no_relation_but_their_number(tmp_path: Path) -> None:
    made = compared(probe_run(tmp_path / "p", "m", jobs=JOBS[:9]), texts_run(tmp_path / "t", "m"))
    row = find(made.tests, quantity="represented_gap~probe_gap", kind="slope")
    assert (None, None, 9) == (row["estimate"], row["ci_low"], row["n_a"])
    assert "9 occupations with both gaps, at least 10 are needed" in row["reason"]
    assert "2 occupations of only one measurement have no gaps" in note(made, "only one measurement")


def test_gaps_of_two_models_are_tested_over_common_occupations(tmp_path: Path) -> None:
    probe = probe_run(tmp_path / "p", "m", "n+0.1")
    made = compared(probe, texts_run(tmp_path / "t", "m", "n+0.1"), margins={"probe_gap": 0.3})
    row = find(made.tests, measurement="compare", quantity="probe_gap", kind="paired")
    a, b = ([g["probe_gap"] for g in made.rows["gaps"] if g["model"] == m] for m in ("n+0.1", "m"))
    expected = stats.ttest_rel(a, b)
    assert (expected.statistic, expected.pvalue) == pytest.approx((row["statistic"], row["p_value"]))
    assert ("n+0.1", "m", True) == (row["model_a"], row["model_b"], row["estimate"] > 0.15)
    assert (0.3, True) == (row["margin"], row["equivalent"])
    quantities = {r["quantity"] for r in made.tests if r["family"].startswith("compare/")
                  and r["family"].endswith("/models")}  # fmt: skip
    assert {"probe_gap", "represented_gap", "srb_spread"} == quantities


def test_gaps_in_other_formats_and_spreads_of_other_vectors_are_not_tested(tmp_path: Path) -> None:
    probe = probe_run(tmp_path / "p", "m", "n", formats={"n": "chat-prefill"})
    one = texts_run(tmp_path / "t", "m")
    two = texts_run(tmp_path / "u", "n", vectors="corpus:bbbb")
    made = compared(probe, one, two)
    tested = {r["quantity"] for r in made.tests if r["measurement"] == "compare" and r["kind"] == "paired"}
    assert {"represented_gap"} == tested
    assert {"corpus:aaaa", "corpus:bbbb"} == {row["vectors"] for row in made.rows["gaps"]}


def test_gaps_over_other_templates_are_not_tested(tmp_path: Path) -> None:
    one = probe_run(tmp_path / "p", "m")
    two = probe_run(tmp_path / "q", "n", templates=(1, 2))
    made = compared(one, two, texts_run(tmp_path / "t", "m", "n"))
    tested = {r["quantity"] for r in made.tests if r["measurement"] == "compare" and r["kind"] == "paired"}
    assert {"represented_gap", "srb_spread"} == tested


def test_with_one_measurement_there_are_no_gaps_and_aliases_get_a_note(tmp_path: Path) -> None:
    only_probe = probe_run(tmp_path / "p", "m", "n")
    made = compared(only_probe, aliases={"nurse": "registered nurse"})
    assert [] == made.rows["gaps"]
    assert "only biaskit probe ran" in note(made, "no gaps")
    assert not [said for said in compared(only_probe).notes if "gaps" in said]


def test_a_label_of_two_runs_is_joined_by_its_own_name(tmp_path: Path) -> None:
    one, two = probe_run(tmp_path / "p", "m"), probe_run(tmp_path / "q", "m", noise=0.2)
    made = compared(one, two, texts_run(tmp_path / "t", "m"))
    assert {"m (p)", "m (q)"} == {row["model"] for row in made.rows["gaps"]}
    assert ("m (q)", "m (p)") in pairs_of(made, "probe")
    # The texts are the same model's on both sides: only the prober's gap is tested.
    tested = {r["quantity"] for r in made.tests if r["measurement"] == "compare" and r["kind"] == "paired"}
    assert {"probe_gap"} == tested


def test_holm_runs_over_the_whole_file(tmp_path: Path) -> None:
    made = compared(probe_run(tmp_path / "p", "a", "b", "c"), probe_run(tmp_path / "q", "d"))
    tested = [row for row in made.tests if row["family"] == "probe/share/paired/models"]
    assert len(tested) == 6 * 2 * 3
    smallest = min((row for row in tested if row["p_value"]), key=lambda row: row["p_value"])
    n = sum(row["p_value"] is not None for row in tested)
    assert min(1.0, n * smallest["p_value"]) == pytest.approx(smallest["p_adjusted"])


# --- aliases -----------------------------------------------------------------------------------------


def test_aliases_join_names_of_the_measurements(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    file.write_text("Nurse,Registered Nurse\nclerk , office clerk\n", encoding="utf-8")
    aliases = read_aliases(file)
    assert {"nurse": "registered nurse", "clerk": "office clerk"} == aliases
    assert key_of("nurse", aliases) == key_of("REGISTERED  nurse", aliases)
    probe = probe_run(tmp_path / "p", "m", jobs=("Nurse", "cook"))
    texts = texts_run(tmp_path / "t", "m", jobs=("Nurse", "cook"))
    table = texts / "tables" / "representation.csv"
    table.write_text(table.read_text().replace("NURSE", "registered nurse"))
    seal(texts)
    assert {"COOK"} == {row["occupation"] for row in compared(probe, texts).rows["gaps"]}
    joined = compared(probe, texts, aliases=aliases)
    assert {"COOK", "registered nurse"} == {row["occupation"] for row in joined.rows["gaps"]}
    assert "--aliases: no run has 'office clerk'." in joined.notes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b,c\n", "two columns"),
        ("", "No columns"),
        ("nurse,\n", "two names"),
        ('"nurse,x\n', "names.csv: "),
        ("nurse\n", "two columns"),
    ],
)
def test_a_file_of_aliases_that_says_nothing_clear_is_refused(
    tmp_path: Path, content: str, said: str
) -> None:
    file = tmp_path / "names.csv"
    file.write_text(content)
    with pytest.raises(CorpusError, match=said):
        read_aliases(file)


def test_two_names_of_one_measurement_that_mean_the_same_are_left_out_and_named(tmp_path: Path) -> None:
    file = tmp_path / "names.tsv"
    file.write_text("cook\tpilot\n")
    probe, texts = probe_run(tmp_path / "p", "m"), texts_run(tmp_path / "t", "m")
    made = compared(probe, texts, aliases=read_aliases(file))
    assert not {"COOK", "PILOT"} & {row["occupation"] for row in made.rows["gaps"]}
    assert "cook and pilot are one name" in note(made, "m: cook and")


# --- what is required --------------------------------------------------------------------------------


def test_equivalence_needs_every_row_and_every_pair(tmp_path: Path) -> None:
    run = probe_run(tmp_path / "p", "a", "b", noise=0.005)
    made = compared(run)
    good = require_equivalent(made.tests, "models", made.pairs)
    assert good.holds
    assert good.n_rows == sum((row["kind"], row["quantity"]) == ("crossed", "share") for row in made.tests)
    empty = [replace(row, verdict="no-verdict") if i == 1 else row for i, row in enumerate(made.tests)]
    assert not require_equivalent(empty, "models", made.pairs).holds
    assert not require_equivalent([], "models").holds
    assert not require_equivalent(made.tests, "models", [*made.pairs, ("probe", "c", "a")]).holds
    assert not require_equivalent(made.tests, "genders").holds
    with pytest.raises(UsageError, match="Did you mean 'models'"):
        require_equivalent(made.tests, "model")


def test_shares_that_bounds_leave_open_are_not_equivalent(tmp_path: Path) -> None:
    """Two models whose points agree and whose bounds go from 17 to 75 %."""
    run = probe_run(tmp_path / "p", "a", "b", noise=0.005)
    assert require_equivalent(compared(run).tests).holds
    file = run / "tables" / "probe_prompts.csv"
    rows = [dict(row) for row in read_table_rows(file)]
    for row in rows:
        row["estimator"] = "top-k"
        for gender in GROUPS:
            row |= {f"{gender}_share_low": 0.17, f"{gender}_share_high": 0.75}
    write_table(file, "probe_prompts", rows, groups=GROUPS, contrast=("female", "male"))
    seal(run)
    open_ = require_equivalent(compared(run).tests)
    assert not open_.holds
    assert {"not-identified", "shown"} == {one.row.verdict for one in open_.failing}
    assert open_.n_rows == len(open_.failing)
    women = next(one.row for one in open_.failing if one.row.gender == "female")
    assert verdict_in_words(women).startswith("not identified")


def test_texts_that_name_no_gender_bound_what_is_said_between_models() -> None:
    """70 % women of the half that names a gender may be fewer than 40 % of texts that all name one."""

    def of(model: str, women: int, men: int, n_open: int, refused: int = 0) -> Texts:
        row = {"model": model, "template_id": "all", "n_female": women, "n_male": men, "n_nonbinary": 0,
               "n_not_inferred": n_open + refused, "n_refused": refused, "n_empty": 0,
               "female_share": women / (women + men)}  # fmt: skip
        rows = [{**row, "occupation": f"o{i}", "n_female": women + i % 2} for i in range(6)]
        return texts_of({"representation": rows}, {model: "chat"}, run=model, seed=1)[model]

    def row_of(a: Texts, b: Texts) -> Contrast:
        sides = Side(a.model, (a.model,)), Side(b.model, (b.model,))
        rows, _ = pair_rows_of_texts(sides, {a.model: a, b.model: b}, {"represented_share": 0.05})
        return next(row for row in rows if row.kind == "paired")

    known, half = of("known", 40, 60, 0), of("half", 35, 15, 50)
    row = row_of(half, known)
    least, most = (
        sum((35 + i % 2 + extra) / (100 + i % 2) - (40 + i % 2) / (100 + i % 2) for i in range(6)) / 6
        for extra in (0, 50)
    )
    assert (row["bound_low"], row["bound_high"]) == (pytest.approx(least), pytest.approx(most))
    assert (row["estimate"], row["p_value"]) == (pytest.approx(0.3), 1.0)
    assert adjust([row])[0]["verdict"] == "not-identified"
    refuses = row_of(of("refuses", 35, 15, 0, refused=50), known)
    assert refuses["bound_low"] == pytest.approx(refuses["bound_high"]), "refused texts are about nobody"
    assert refuses["bound_low"] == pytest.approx(0.3, abs=0.01)
