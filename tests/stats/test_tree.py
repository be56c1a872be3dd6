"""The tree of questions: against plain loops, and what it promises (methods/tests#tree)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit
from statsmodels.stats.multitest import multipletests

from biaskit.stats.contrast import AREAS, LEVEL, Contrast
from biaskit.stats.verdict import ROLES, Role, Rule, with_verdicts

Row = dict[str, Any]
DOF, SE = 9.0, 0.05
STRICT = Rule(strict=True)


def row_of(place: tuple[str, str, str, str], p: float, model: str = "m", **more: Any) -> Row:
    """A row of a role whose p-value is this, women's share or women minus men."""
    kind_name, kind, quantity, contrast = place
    estimate = float(stdtrit(DOF, 1 - p / 2)) * SE
    half95, half90 = (float(stdtrit(DOF, end)) * SE for end in (0.975, 0.95))
    row = {"measurement": kind_name, "kind": kind, "quantity": quantity}
    row["family"] = f"{kind_name}/{quantity}/{kind}/{contrast}"
    other = f"{model}0" if contrast == "models" else model
    row |= {"model_a": model, "model_b": other, "group_a": "female", "group_b": "male"}
    context = "dialogue-plain" if contrast == "contexts" else "plain"
    row |= {"bias_type": "explicit", "context": context, "prompt_format": "raw"}
    asked = {"debiasing": "1", "levels": "high"}.get(contrast, "0")
    row |= {"debiasing_a": asked, "debiasing_b": "0"}
    row |= {
        "gender": "female" if "share" in quantity else None,
        "estimate": estimate,
        "p_value": p,
        "dof": DOF,
    }
    row |= {"ci_low": estimate - half95, "ci_high": estimate + half95}
    row |= {"ci90_low": estimate - half90, "ci90_high": estimate + half90}
    row["n_a"] = int(DOF) + 2
    return row | dict.fromkeys(("margin", "equivalent", "reason")) | more


GROUPS = ("probe", "crossed", "share", "groups")
ASYMMETRY = ("probe", "crossed", "asymmetry", "groups")
WRITE = ("personas", "paired", "represented_share", "workforce")
P_VALUES = (st.integers(0, 10**6 - 1) | st.integers(0, 60_000)).map(lambda i: (i + 0.37) / 10**6)
"""None of them is just a level."""


def judged(*rows: Row, **options: Any) -> list[Contrast]:
    return with_verdicts(rows, **options)[0]


def named(*rows: Row, **options: Any) -> list[bool]:
    return [row["verdict"] in ("higher", "lower") for row in judged(*rows, **options)]


# --- against plain loops -----------------------------------------------------------------------------------


def loop(pages: dict[str, list[float]]) -> dict[str, set[int]]:
    """Question → the leads that are named, by the rules as methods/index writes them."""
    q = len(pages)
    p_of = {}
    for question, p_values in pages.items():
        in_order, m = sorted(p_values), len(p_values)
        p_of[question] = min(m * in_order[k - 1] / k for k in range(1, m + 1))
    r = 0
    for candidate in range(1, q + 1):
        if sorted(p_of.values())[candidate - 1] <= 0.05 * candidate / q:
            r = candidate
    answered = sorted(p_of, key=lambda question: p_of[question])[:r]
    out: dict[str, set[int]] = {question: set() for question in pages}
    for question in answered:
        p_values = pages[question]
        m, alpha = len(p_values), 0.05 * r / q
        k = max((k for k in range(1, m + 1) if sorted(p_values)[k - 1] <= alpha * k / m), default=0)
        out[question] = {i for i, p in enumerate(p_values) if k and p <= sorted(p_values)[k - 1]}
    return out


@given(st.lists(st.lists(P_VALUES, min_size=1, max_size=5, unique=True), min_size=1, max_size=3))
def test_leads_are_named_as_plain_loops_name_them(pages: list[list[float]]) -> None:
    places = [GROUPS, WRITE, ("personas", "paired", "refused_share", "genders")][: len(pages)]
    rows = [
        row_of(place, p, f"m{i}")
        for place, page in zip(places, pages, strict=True)
        for i, p in enumerate(page)
    ]
    expected = loop({str(i): page for i, page in enumerate(pages)})
    assert named(*rows) == [i in expected[str(n)] for n, page in enumerate(pages) for i in range(len(page))]


@given(st.lists(st.tuples(P_VALUES, P_VALUES), min_size=1, max_size=4, unique=True))
def test_details_are_named_by_holm_under_named_leads_alone(pairs: list[tuple[float, float]]) -> None:
    leads = [row_of(GROUPS, p, f"m{i}") for i, (p, _) in enumerate(pairs)]
    details = [row_of(ASYMMETRY, p, f"m{i}") for i, (_, p) in enumerate(pairs)]
    found = named(*leads, *details)
    under = sorted((p, i) for i, (_, p) in enumerate(pairs) if found[i])
    expected: set[int] = set()
    for n_left, (p, i) in zip(range(len(under), 0, -1), under, strict=True):
        if p > LEVEL / n_left:  # one question: alpha_q is 0.05 where any lead is named
            break
        expected.add(i)
    assert found[len(pairs) :] == [i in expected for i in range(len(pairs))]
    shown = [row["verdict"] for row in judged(*leads, *details)[len(pairs) :]]
    assert all((verdict == "shown") == (not lead) for verdict, lead in zip(shown, found, strict=False))


@given(st.lists(st.lists(P_VALUES, min_size=1, max_size=4, unique=True), min_size=1, max_size=3))
def test_the_strict_rule_is_holm_at_four_fifths_of_a_question_s_own_part(pages: list[list[float]]) -> None:
    places = [GROUPS, WRITE, ("personas", "paired", "refused_share", "genders")][: len(pages)]
    for place, page in zip(places, pages, strict=True):
        rows = [row_of(other, p) for other, (p, *_) in zip(places, pages, strict=True) if other != place]
        found = judged(*(row_of(place, p, f"m{i}") for i, p in enumerate(page)), *rows, rule=STRICT)
        adjusted = multipletests(page, 0.04 / len(pages), method="holm")[0].tolist()
        assert [row["verdict"] == "higher" for row in found[: len(page)]] == adjusted
        assert all((row["shown_low"] > 0) == (row["verdict"] == "higher") for row in found)


# --- what it promises --------------------------------------------------------------------------------------


@given(st.data())
def test_the_interval_shown_excludes_0_where_a_direction_is_named(data: st.DataObject) -> None:
    places = [place for place in ROLES if place[2] not in AREAS]
    claims = st.tuples(st.sampled_from(places), st.sampled_from("abc"))
    drawn = data.draw(st.dictionaries(claims, P_VALUES, min_size=1, max_size=12))
    rows = [row_of(place, p, model) for (place, model), p in drawn.items()]
    for row in judged(*rows):
        excludes = row["shown_low"] > 0 or row["shown_high"] < 0
        if row["verdict"] != "shown":
            assert excludes == (row["verdict"] == "higher"), row
            wider = row["shown_high"] - row["shown_low"] >= row["ci_high"] - row["ci_low"] - 1e-12
            assert wider or row["kind"] == "spearman"  # whose 95 % interval is a bootstrap's


@pytest.mark.parametrize("n_models", [1, 4])
def test_a_page_where_nothing_differs_names_a_direction_in_one_of_twenty(n_models: int) -> None:
    rng, n, false = np.random.default_rng(30), 1000, 0
    places = list(ROLES)
    for _ in range(n):
        drawn = rng.random((n_models, len(places))).tolist()
        rows = [
            row_of(place, p, f"m{i}")
            for i in range(n_models)
            for place, p in zip(places, drawn[i], strict=True)
        ]
        false += any(named(*rows))
    assert false / n <= LEVEL + 4.5 * (LEVEL * (1 - LEVEL) / n) ** 0.5


def test_the_strict_rule_keeps_its_five_percent_whatever_else_is_true() -> None:
    """The tree names a false one of 20 in some 9 % of pages here, since 16 of their answers are true."""
    rng, n, false = np.random.default_rng(32), 400, {Rule(): 0, STRICT: 0}
    for _ in range(n):
        p_values = [*[1e-9] * 16, *rng.random(4)]
        rows = [row_of(GROUPS, p, f"m{i}") for i, p in enumerate(p_values)]
        for rule in false:
            false[rule] += any(named(*rows, rule=rule)[16:20])
    most = LEVEL + 3 * (LEVEL * (1 - LEVEL) / n) ** 0.5
    assert false[STRICT] / n <= most < false[Rule()] / n


def test_a_true_answer_does_not_make_other_questions_false_more_often() -> None:
    rng, n, false = np.random.default_rng(31), 1000, 0
    for _ in range(n):
        rows = [row_of(GROUPS, 1e-9), *(row_of(WRITE, p, f"m{i}") for i, p in enumerate(rng.random(3)))]
        found = named(*rows)
        assert found[0]
        false += any(found[1:])
    assert false / n <= LEVEL + 4.5 * (LEVEL * (1 - LEVEL) / n) ** 0.5


def test_another_run_of_a_page_may_have_another_main_context() -> None:
    plain, talk = [row_of(GROUPS, 0.001)], [row_of(GROUPS, 0.001, "n", context="dialogue")]
    assert ["higher", "higher"] == [row["verdict"] for rows in with_verdicts(plain, talk) for row in rows]


# --- who is in it --------------------------------------------------------------------------------------


def test_the_same_comparison_in_two_tables_is_one_claim() -> None:
    rows = [row_of(GROUPS, 0.03), row_of(GROUPS, 0.9, "n")]
    apart, twice = with_verdicts(rows), with_verdicts(rows, rows[:1])
    assert apart[0] == twice[0]
    assert apart[0][:1] == twice[1]


@pytest.mark.parametrize(
    "more",
    [
        {"gender": "male"},
        {"context": "dialogue"},
        {"debiasing_a": "2", "debiasing_b": "2"},
        {"family": "probe/share/crossed/bias-types"},
    ],
)
def test_what_the_tree_does_not_name_is_shown_and_counts_for_nothing(more: Row) -> None:
    lead, other = judged(row_of(GROUPS, 0.04), row_of(GROUPS, 0.001, "n", **more))
    assert (lead["verdict"], other["verdict"]) == ("higher", "shown")
    assert (other["shown_low"], other["shown_high"]) == (other["ci_low"], other["ci_high"])


def test_a_lower_rank_leads_only_where_nothing_of_the_higher_was_measured() -> None:
    transfer, srb = (("personas", "paired", q, "genders") for q in ("auc_transfer", "srb_content"))
    led = judged(row_of(transfer, 0.2), row_of(srb, 0.001))
    assert ["no-clear-difference", "shown"] == [row["verdict"] for row in led]
    unmeasured = row_of(transfer, 0.2, p_value=None)
    assert ["no-verdict", "higher"] == [r["verdict"] for r in judged(unmeasured, row_of(srb, 0.001))]
    assert [True, True] == named(row_of(transfer, 0.001), row_of(srb, 0.001))


def test_of_own_groups_those_of_the_contrast_are_in_the_tree() -> None:
    rows = [row_of(GROUPS, 0.001, gender=gender) for gender in ("young", "old")]
    assert [False, True] == named(*rows, rule=Rule(("old",)))


def test_every_role_is_of_a_kind_that_is_judged() -> None:
    for place, role in ROLES.items():
        assert isinstance(role, Role)
        assert judged(row_of(place, 1.0))[0]["verdict"] != "", place


def test_an_area_is_shown_on_the_scale_of_its_interval() -> None:
    place = ("personas", "paired", "auc_transfer", "genders")
    (row,) = judged(row_of(place, 1e-5, estimate=0.4, ci_low=0.3, ci_high=0.45))
    assert (0.3, 0.45) == pytest.approx((row["shown_low"], row["shown_high"]), abs=0.01)
    (wider,) = [r for r in judged(row, row_of(WRITE, 1.0)) if r["quantity"] == "auc_transfer"]
    assert row["shown_low"] > wider["shown_low"] > 0
    assert row["shown_high"] < wider["shown_high"] < 0.5
