"""Tables made of decisions.csv: rates, ratios, gaps and places of small logs, by hand, and of rankings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from needs import not_beside

from biaskit.measures.decisions.compare import between_models
from biaskit.measures.decisions.design import resolve
from biaskit.measures.decisions.gaps import UNANSWERED, gaps_of
from biaskit.measures.decisions.order import decision_order
from biaskit.measures.decisions.power import plan_sentence, planned_test
from biaskit.measures.decisions.ratios import decision_groups
from biaskit.stats.cases import Decisions, within_cases
from biaskit.stats.crossed import crossed_test, spread_of_difference
from biaskit.stats.power import smallest_difference
from biaskit.study.config import load_study
from biaskit.tables.schema import SCHEMAS

RANKINGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "decisions"


def decisions(**more: Any) -> pd.DataFrame:
    """Two questions' wordings about six women and six men in five cases of two jobs."""
    rng, rows = np.random.default_rng(1), []
    for person, case, wording in np.ndindex(12, 5, 2):
        own = {"model": "m", "question": "hire", "wording": f"w{wording}", "job": "ab"[case % 2]}
        own |= {"case": f"c{case}", "person": f"p{person}", "sex": ["female", "male"][person % 2]}
        own |= {"race": ["White", "Black"][person // 2 % 2], "position": None, "n_answers": None}
        rows.append(
            {**own, "p_yes": rng.random(), "selected": None, "pair": "", "p_low": None, "p_high": None}
        )
    return pd.DataFrame(rows).assign(**more)


def decision_gaps(rows: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """The table decision_gaps.csv, each row with the verdict that it has alone."""
    made = gaps_of(rows, **how)
    return pd.DataFrame([{**gap.row, "verdict": gap.contrast("m", 0.05).conclusion} for gap in made])


def of(table: pd.DataFrame, **values: object) -> Any:
    """The one row with these values."""
    for name, value in values.items():
        table = table[table[name] == value]
    [row] = table.to_dict("records")
    return row


def test_gaps_of_a_full_table_are_those_of_crossed_mean_squares() -> None:
    rows = decisions(race="", job="a")
    table = rows.groupby(["sex", "person", "case"])["p_yes"].mean().unstack()
    women, men = table.loc["female"].to_numpy(), table.loc["male"].to_numpy()
    expected = crossed_test(women.mean() - men.mean(), spread_of_difference(women, men))
    [gap] = gaps_of(rows)
    assert gap.row["gap"] == pytest.approx(expected.estimate, abs=1e-12)
    assert (gap.row["ci_low"], gap.row["ci_high"]) == pytest.approx(expected.ci95, rel=0.02)
    assert gap.contrast("m", 0.05).conclusion == "no-clear-difference"
    assert gap.contrast("m", 0.9).conclusion == "equivalent"
    logit = np.log(table / (1 - table)).mean(axis=1).groupby(level="sex").mean()
    assert gap.row["logit_gap"] == pytest.approx(logit["female"] - logit["male"])


def test_every_contrast_has_its_row() -> None:
    made = decision_gaps(decisions())
    assert made.columns.tolist() == [*SCHEMAS["decision_gaps"].says]
    of_all = made[made["job"] == "all"]
    assert of_all[["contrast", "group_a", "group_b"]].to_numpy().tolist() == [
        ["sex", "female", "male"],
        ["race", "Black", "White"],
        ["sex_within_race", "female × White", "male × White"],
        ["sex_within_race", "female × Black", "male × Black"],
    ]
    assert made[made["job"] != "all"]["contrast"].tolist() == ["sex", "race"] * 2
    assert of(made, job="a", contrast="sex")["n_cases"] == 3
    other = decision_gaps(decisions(), reference_race="Black")
    assert of(other, job="all", contrast="race")["gap"] == pytest.approx(-of_all["gap"].iloc[1])


def test_a_wording_without_an_answer_leaves_the_others_level() -> None:
    rows = decisions(race="", job="a")
    rows["p_yes"] = 0.2 + 0.5 * (rows["wording"] == "w1") + 0.1 * (rows["sex"] == "female")
    rows["p_yes"] += np.random.default_rng(2).normal(0, 1e-9, len(rows))
    rows.loc[[3], "p_yes"] = None
    assert of(decision_gaps(rows), contrast="sex")["gap"] == pytest.approx(0.1, abs=0.005)


def test_over_a_tenth_unanswered_in_a_group_leaves_no_p() -> None:
    rows = decisions(job="a")
    women = rows.index[rows["sex"] == "female"]
    rows.loc[women[:6], "p_yes"] = None
    assert of(decision_gaps(rows), contrast="sex")["p_value"] > 0
    rows.loc[women[:7], "p_yes"] = None
    row = of(decision_gaps(rows), contrast="sex")
    assert np.isnan(row["p_value"])
    assert (row["reason"], row["verdict"]) == (UNANSWERED, "no-verdict")


def test_bounds_of_a_list_widen_a_gap_and_intervals_of_samples_do_not() -> None:
    rows = decisions(race="", job="a")
    plain = of(decision_gaps(rows), contrast="sex")
    ends = {"p_low": rows["p_yes"] - 0.01, "p_high": rows["p_yes"] + 0.02}
    wide = of(decision_gaps(rows.assign(**ends)), contrast="sex")
    assert wide["gap"] == pytest.approx(plain["gap"])
    assert wide["ci_high"] == pytest.approx(plain["ci_high"] + 0.03)
    assert wide["ci_low"] == pytest.approx(plain["ci_low"] - 0.03)
    sampled = of(decision_gaps(rows.assign(**ends, n_answers=30)), contrast="sex")
    assert sampled["ci_high"] == pytest.approx(plain["ci_high"])


def test_answers_that_all_agree_are_no_certainty() -> None:
    rows = decisions(race="", job="a", n_answers=1).assign(p_yes=0.0)
    row = of(decision_gaps(rows), contrast="sex")
    assert row["gap"] == 0
    # 60 answers of each group, p = 1/62: 1.96 √(2 p (1 − p)/62).
    assert row["ci_high"] == pytest.approx(1.96 * (2 * (1 / 62) * (61 / 62) / 62) ** 0.5, rel=1e-3)


def test_flips_by_hand() -> None:
    picked = pd.DataFrame({"case": list("aaaabbbb"), "sex": ["female", "female", "male", "male"] * 2})
    rows = picked.assign(person=list("stuv") * 2, race="", question="q", selected=[1, 1, 1, 0, 1, 0, 0, 0])
    row = of(decision_gaps(rows), contrast="sex")
    # Case a: 1 · ½ to women, none to men; case b: ½ · 1 and none. Two of one sex: (0 + 1)/2 and (1 + 0)/2.
    assert (row["to_a"], row["to_b"], row["same_group"]) == (0.5, 0.0, 0.5)
    assert row["gap"] == pytest.approx(0.5)


def test_people_who_are_stated_are_no_sample() -> None:
    rows = decisions(race="", job="a")
    stated = rows.groupby(["case", "wording", "sex"], as_index=False)["p_yes"].mean()
    row = of(decision_gaps(stated.assign(question="q")), contrast="sex")
    d = stated.groupby(["case", "sex"])["p_yes"].mean().unstack()
    d = d["female"] - d["male"]
    expected = crossed_test(float(d.mean()), _paired(d.to_numpy()))
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(expected.ci95)


def _paired(d: Any) -> Any:
    from biaskit.stats.crossed import Spread

    return Spread(np.asarray(d.var(ddof=1) / len(d)), np.asarray(len(d) - 1.0), None, (), len(d))


def test_rates_unknown_and_excluded_categories() -> None:
    rows = decisions(job="a")
    rows.loc[rows["person"] == "p0", "sex"] = "unknown"
    groups, equal = decision_groups(rows, seed=1)
    assert sorted({*groups["rate_kind"]}) == ["expected", "selected"]
    women = of(groups, by="sex", rate_kind="expected", category="female")
    mean = rows[rows["sex"] == "female"].groupby(["person", "case"])["p_yes"].mean().mean()
    assert (women["n"], women["n_people"]) == (25, 5)
    assert women["rate"] == pytest.approx(mean)
    assert of(groups, by="sex", rate_kind="selected", category="female")["verdict"] == ""
    assert {*equal[equal["by"] == "sex"]["n_unknown"]} == {5}
    assert decision_groups(rows, seed=1)[1].equals(equal)
    few, _ = decision_groups(rows, seed=1, min_category=0.45)
    assert of(few, by="sex", rate_kind="expected", category="female")["excluded"]
    assert np.isnan(of(few, by="sex", rate_kind="expected", category="female")["ratio"])
    scores, _ = decision_groups(rows.assign(p_yes=10 * rows["p_yes"]), seed=1, scores=True)
    assert {*scores["rate_kind"]} == {"above-median"}


def test_two_in_both_orders() -> None:
    rows = []
    # robust, fragile, near even
    for case, (first, second) in enumerate([(0.9, 0.8), (0.9, 0.2), (0.52, 0.48)]):
        for place, p in ((1, first), (2, second)):
            own = {"case": f"c{case}", "pair": "x", "question": "q"}
            rows.append(own | {"person": "w", "sex": "female", "position": place, "p_yes": p})
            rows.append(own | {"person": "m", "sex": "male", "position": 3 - place, "p_yes": 1 - p})
    table = pd.DataFrame(rows)
    order = decision_order(table, choice=2)
    first = of(order, position=1)
    assert (first["robust"], first["fragile"], first["near_even"]) == pytest.approx((1 / 3,) * 3)
    assert first["rate"] == pytest.approx((0.9 + 0.2 + 0.9 + 0.8 + 0.52 + 0.52) / 6)
    assert of(decision_gaps(table, choice=2), contrast="sex")["gap"] == pytest.approx(
        2 * np.mean([0.85, 0.55, 0.5]) - 1
    )
    assert decision_order(table, choice=0).empty


def rankings() -> pd.DataFrame:
    """The published rankings, a row for each person shown: the first full name of the answer is chosen."""
    if not (RANKINGS / "bloomberg-rankings.csv").is_file():
        not_beside("the rankings of Bloomberg are not in ../shared/data")
    rows = []
    names = {"A": "Asian", "B": "Black", "H": "Hispanic", "W": "White"}
    for case, row in enumerate(pd.read_csv(RANKINGS / "bloomberg-rankings.csv").itertuples()):
        answer = str(row.answer).lower()
        shown = str(row.shown).split("|")
        places = [answer.find(name.lower()) % 10**6 for name in shown]  # one that is not found is last
        for i, (name, group) in enumerate(zip(shown, str(row.groups).split("|"), strict=True)):
            own = {"model": row.model, "job": row.job, "case": case, "person": name, "position": i + 1}
            own |= {"race": names[group[0]], "sex": "female" if group[2] == "W" else "male"}
            rows.append({**own, "selected": int(i == int(np.argmin(places))), "question": ""})
    return pd.DataFrame(rows)


def test_six_published_tables() -> None:
    rows = rankings()
    published = pd.read_csv(RANKINGS / "performance_ranking.csv")
    equal, sexes, smallest = 0, {}, {}
    for (model, job), table in rows.groupby(["model", "job"]):
        groups, _ = decision_groups(table, seed=1, choice=8)
        groups = groups[groups["by"] == "sex+race"].set_index("category")
        for row in published[(published["model"] == model) & (published["job"] == job)].itertuples():
            race = {"A": "Asian", "B": "Black", "H": "Hispanic", "W": "White"}[str(row.demo)[0]]
            own = groups.loc[f"{'female' if str(row.demo)[2] == 'W' else 'male'} × {race}"]
            equal += own["selected"] == row.top and abs(own["ratio"] - row.disparate_impact_ratio) < 1e-12
        sexes[model, job] = of(decision_gaps(table, choice=8), contrast="sex")
        smallest[model, job] = groups.loc[groups["ratio"].idxmin()]
    assert equal == 48
    known = ("gpt-3.5-turbo", "HR specialist")
    row, low = sexes.pop(known), smallest[known]
    assert [round(100 * row[name], 2) for name in ("gap", "ci_low", "ci_high")] == [4.85, 3.23, 6.47]
    assert all(other["ci_low"] < 0 < other["ci_high"] for other in sexes.values())
    assert low[["ratio", "ratio_low", "ratio_high"]].astype(float).round(2).tolist() == [0.53, 0.36, 0.79]
    assert low["verdict"] == "below"
    engineer = smallest["gpt-3.5-turbo", "software engineer"]
    assert (round(engineer["ratio"], 2), engineer["verdict"]) == (0.76, "not-decided")
    order = decision_order(rows[rows["model"] == "gpt-3.5-turbo"], choice=8)
    assert of(order, job="software engineer", position=1)["rate"] == pytest.approx(0.834)


def test_the_plan_says_which_gap_would_show() -> None:
    design: Any = resolve(load_study("hiring"))  # type: ignore[arg-type]
    said = plan_sentence(design, "exact", None)
    assert said.startswith(
        "Detectable difference between women and men: 2 points (40 people, 32 cases); 80 %"
    )
    tested = planned_test(design, [20, 20], None)
    assert tested is not None
    # The standard error of the demo's own run, 0.0048 at P = 0.36: that of one half is larger by 1.083.
    assert tested.variance() ** 0.5 == pytest.approx(0.0048 * 0.25 / (0.3614 * 0.6386), rel=0.01)
    assert smallest_difference(tested, 0.025) == pytest.approx(0.0169, abs=0.0005)
    assert "top-k" in plan_sentence(design, "top-k", None)
    few: Any = resolve(load_study("hiring", {"n_people": 8}))  # type: ignore[arg-type]
    assert "fewer than 5 people" in plan_sentence(few, "exact", None)


def test_a_planned_gap_is_found_in_80_percent_of_runs() -> None:
    design: Any = resolve(load_study("hiring", {"n_cases": 2, "n_people": 16}))  # type: ignore[arg-type]
    tested = planned_test(design, [8, 8], 10)
    assert tested is not None
    gap, rng, found = smallest_difference(tested), np.random.default_rng(1), 0
    rows = Decisions(*np.repeat([[0, 1], [0, 0]], 64, axis=1), *map(np.ravel, np.indices((16, 8))))
    for _ in range(300):
        x = 0.5 + gap * (np.arange(16) < 8)[:, None] + rng.normal(0, tested.sides[0].job ** 0.5, (16, 1))
        x = (x + rng.normal(0, tested.sides[0].cell ** 0.5, (16, 8))).ravel()
        one = within_cases(rows, x, 0, 1)
        assert one is not None
        found += crossed_test(one.estimate, one.spread).p_value < 0.05
    assert 0.74 <= found / 300 <= 0.86


def test_the_change_of_a_gap_lies_between_what_both_lists_leave_open() -> None:
    after, before = decisions(), decisions()
    before["p_yes"] = np.random.default_rng(2).random(len(before))
    for rows, open_ in ((after, 0.02), (before, 0.05)):
        rows["selected"] = 1.0
        rows["p_low"], rows["p_high"] = rows["p_yes"] - open_, rows["p_yes"] + 2 * open_
    both = pd.concat([before.assign(model="a"), after.assign(model="b")]).to_dict("records")
    design = resolve(load_study("hiring"))  # type: ignore[arg-type]
    (change, *_), _ = between_models(both, {"a": "", "b": ""}, design)
    # A woman's change is from 0.02 + 2 × 0.05 less to 2 × 0.02 + 0.05 more, a man's as well.
    assert (-0.21, 0.21) == pytest.approx(
        (change.bound_low - change.estimate, change.bound_high - change.estimate)
    )
    assert change.ci_low < change.bound_low
    assert change.bound_high < change.ci_high
    # what lies beside shares of samples is no bound
    drawn = [{**row, "n_answers": 10} for row in both]
    (sampled, *_), _ = between_models(drawn, {"a": "", "b": ""}, design)
    assert (None, change.estimate) == (sampled.bound_low, sampled.estimate)


def test_where_few_decisions_changed_counting_alone_leaves_this_spread() -> None:
    # Twelve women and 120 men, each decided on once; three men are selected before and not after.
    people = [*[("female", n) for n in range(12)], *[("male", n) for n in range(120)]]
    both = []
    for model in ("a", "b"):
        for sex, n in people:
            selected = float(n % 2 and not (model == "b" and sex == "male" and n in (1, 41, 81)))
            own = {"model": model, "case": f"c{n % 12}", "person": f"{sex}{n}", "sex": sex, "race": ""}
            both.append({**own, "selected": selected, "question": "hire", "wording": "", "job": ""})
    empty = dict.fromkeys(("p_yes", "p_low", "p_high", "n_answers", "position"))
    design = resolve(load_study("hiring"))  # type: ignore[arg-type]
    [change], _ = between_models([{**row, **empty} for row in both], {"a": "", "b": ""}, design)
    women, men = (2 / 14) / 14, (5 / 122 - (3 / 122) ** 2) / 122
    half = 1.959964 * math.sqrt(women + men)
    assert change.ci_low == pytest.approx(change.estimate - half, rel=1e-5)
    assert change.estimate == pytest.approx(3 / 120)
