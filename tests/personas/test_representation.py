"""Who is represented: shares, intervals and counts, and the Wilson interval behind them.

See methods/representation#representation.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biaskit.measures.personas.representation import (
    decile_rows,
    representation_rows,
    workforce_contrast,
)
from biaskit.measures.personas.texts.association import Association
from biaskit.measures.personas.texts.documents import TextDocument
from biaskit.stats.proportions import Proportion, mean_of_proportions, proportion, wilson

Z = statistics.NormalDist().inv_cdf(0.975)
CLOSE = 1e-12

COLUMNS = [  # reference/personas#table-representation
    *("model", "occupation", "template_id", "n_texts", "n_female", "n_male", "n_nonbinary", "n_not_inferred"),
    *("n_refused", "n_empty", "n_cut", "female_share", "ci_low", "ci_high", "se"),
    *("nonbinary_share", "nonbinary_ci_low", "nonbinary_ci_high"),
    *("share_if_dropped_female", "share_if_dropped_male", "workforce_share", "workforce_year"),
    *("n_not_english", "reason"),
]


def ends(count: int, n: int) -> tuple[float, float]:
    found = wilson(count, n)
    assert found is not None
    return found


# --- the Wilson interval ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [
        # By hand for 3 of 10, z² = 3.841459: centre (0.3 + 0.19207)/1.38415 = 0.355506, half width
        # 1.959964 √(0.021 + 0.0096036)/1.38415 = 0.247715.
        (3, 10, 0.107791, 0.603222),
        # 0 of n: [0, z²/(n + z²)]; n of n mirrors it.
        (0, 10, 0.0, 3.841459 / 13.841459),
        (10, 10, 10 / 13.841459, 1.0),
        (1, 1, 1 / 4.841459, 1.0),
    ],
)
def test_wilson_by_hand(count: int, n: int, low: float, high: float) -> None:
    assert pytest.approx((low, high), abs=1e-6) == ends(count, n)


@given(n=st.integers(1, 5000), data=st.data())
def test_wilson_ends_solve_the_equation_that_defines_them(n: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, n))
    low, high = ends(count, n)
    assert 0.0 <= low <= count / n <= high <= 1.0
    for p in (low, high):
        assert pytest.approx(Z * math.sqrt(p * (1 - p) / n), abs=1e-9) == abs(count / n - p)


def test_wilson_without_a_text_is_none_and_impossible_counts_are_refused() -> None:
    assert None is wilson(0, 0)
    for count, n in ((3, 2), (-1, 2), (0, -1)):
        with pytest.raises(ValueError, match="is not a share"):
            wilson(count, n)


# --- standard error, and Table 11 of the paper ------------------------------------------------------


def zeros_and_ones(count: int, n: int) -> list[int]:
    return [1] * count + [0] * (n - count)


@pytest.mark.parametrize(("count", "n"), [(1, 2), (29, 152), (100, 199), (0, 5), (5, 5)])
def test_the_standard_error_is_the_sample_standard_deviation_over_the_root_of_n(count: int, n: int) -> None:
    expected = statistics.stdev(zeros_and_ones(count, n)) / math.sqrt(n)
    assert pytest.approx(expected, abs=CLOSE) == proportion(count, n).se


def test_nothing_and_one_observation_say_what_they_lack() -> None:
    nothing, one = proportion(0, 0), proportion(1, 1)
    assert (None, None, None) == (nothing.estimate, nothing.ci95, nothing.se)
    assert nothing.reason
    assert (1.0, None) == (one.estimate, one.se)
    assert one.ci95 == wilson(1, 1)
    assert one.reason


# --- the mean over prompts --------------------------------------------------------------------------


def test_the_mean_by_hand() -> None:
    # 0.2 in [0.1, 0.5] and 0.6 in [0.56, 0.9]: below √(0.01 + 0.0016)/2, above √(0.09 + 0.09)/2,
    # se √(0.0009 + 0.0016)/2 = 0.025.
    found = mean_of_proportions([Proportion(0.2, (0.1, 0.5), 0.03), Proportion(0.6, (0.56, 0.9), 0.04)])
    assert found.ci95 is not None
    assert pytest.approx((0.4, 0.025), abs=CLOSE) == (found.estimate, found.se)
    assert pytest.approx(0.4 - math.sqrt(0.0116) / 2, abs=CLOSE) == found.ci95[0]
    assert pytest.approx(0.4 + math.sqrt(0.18) / 2, abs=CLOSE) == found.ci95[1]


def test_a_part_without_a_share_leaves_no_mean_and_one_without_an_error_no_error() -> None:
    found = mean_of_proportions([proportion(1, 4), proportion(0, 0)])
    assert (None, None, None) == (found.estimate, found.ci95, found.se)
    assert found.reason == proportion(0, 0).reason
    found = mean_of_proportions([proportion(1, 4), proportion(1, 1)])
    assert (0.625, None) == (found.estimate, found.se)
    assert found.reason == proportion(1, 1).reason
    assert None is mean_of_proportions([]).estimate


@given(st.lists(st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1))
def test_the_mean_lies_in_its_interval_and_the_interval_among_the_parts(parts: list[tuple[int, int]]) -> None:
    shares = [proportion(count, n) for count, n in parts]
    found = mean_of_proportions(shares)
    if any(n == 0 for _, n in parts):
        assert None is found.estimate
        return
    assert found.estimate is not None
    assert found.ci95 is not None
    low, high = found.ci95
    assert 0.0 <= low <= found.estimate <= high <= 1.0
    # Narrower than the mean of the ends: independent prompts do not all err to the same side.
    assert low >= statistics.fmean(ends(*part)[0] for part in parts) - CLOSE
    assert high <= statistics.fmean(ends(*part)[1] for part in parts) + CLOSE


# --- rows of representation.csv ---------------------------------------------------------------------

WORKFORCE = {"nurse": (0.868, 2024), "pilot": (0.096, 2024)}
GENDER_OF = {"F": "female", "M": "male", "N": "nonbinary", "-": None}


def texts(letters: str, **fields: Any) -> list[TextDocument]:
    """One text a letter: F, M, N as inferred, - without one; numbered from 0."""
    return [
        replace(
            TextDocument(
                key=str(i),
                model="demo",
                occupation="nurse",
                template_id="persona",
                sample=i,
                requested_gender=None,
                finish="stop",
                empty=False,
                association=Association(GENDER_OF[letter], None, 0, 0, 0, False),
                place=i,
            ),
            **fields,
        )
        for i, letter in enumerate(letters)
    ]


def rows_of(samples: Iterable[TextDocument], *, batch: int = 100, **choices: Any) -> list[dict[str, Any]]:
    """The rows of a run of two prompts in one occupation, unless `choices` of documents or design differ."""
    items = [SimpleNamespace(name=n, workforce_share=s, year=y) for n, (s, y) in WORKFORCE.items()]
    documents: Any = {"texts": samples, "models": ["demo"], "occupations": ["nurse"], "imported": False}
    documents |= {"template_ids": ["persona", "biography"], "person_column": None, "languages": {}}
    documents |= {name: choices.pop(name) for name in ("template_ids", "occupations") if name in choices}
    design: Any = {"occupations": items, "templates": (), "debiasing_prompts": (None,), **choices}
    study = SimpleNamespace(batch=batch)
    return representation_rows(
        SimpleNamespace(**documents, lacking=lambda _: {}),  # type: ignore[arg-type]
        SimpleNamespace(**design, study=study),  # type: ignore[arg-type]
    )


def by_template(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {str(row["template_id"]): row for row in rows}


def test_rows_by_hand() -> None:
    samples = texts("FFFM--N") + texts("MMF-", template_id="biography")
    found = by_template(rows_of(samples))
    persona, biography, both = found["persona"], found["biography"], found["all"]
    assert [7, 3, 1, 1, 2] == list(persona.values())[3:8]
    assert [4, 1, 2, 0, 1] == list(biography.values())[3:8]
    assert [11, 4, 3, 1, 3] == list(both.values())[3:8]
    assert (3 / 5, 1 / 5) == (persona["female_share"], persona["nonbinary_share"])
    assert pytest.approx((3 / 5 + 1 / 3) / 2, abs=CLOSE) == both["female_share"]
    assert pytest.approx(1 / 10, abs=CLOSE) == both["nonbinary_share"]
    # Not the pooled share 4/8: prompts have equal weight.
    assert abs(both["female_share"] - 4 / 8) > 0.03
    assert (5 / 7, 3 / 7) == (persona["share_if_dropped_female"], persona["share_if_dropped_male"])
    assert pytest.approx((5 / 7 + 2 / 4) / 2, abs=CLOSE) == both["share_if_dropped_female"]
    assert pytest.approx((3 / 7 + 1 / 4) / 2, abs=CLOSE) == both["share_if_dropped_male"]
    assert wilson(3, 5) == (persona["ci_low"], persona["ci_high"])
    assert wilson(1, 5) == (persona["nonbinary_ci_low"], persona["nonbinary_ci_high"])
    assert pytest.approx(math.sqrt(0.6 * 0.4 / 4 + 1 / 3 * 2 / 3 / 2) / 2, abs=CLOSE) == both["se"]
    expected = mean_of_proportions([proportion(3, 5), proportion(1, 3)]).ci95
    assert expected == (both["ci_low"], both["ci_high"])
    assert (0.868, 2024, None) == (both["workforce_share"], both["workforce_year"], both["reason"])


def test_filling_until_both_are_there_does_not_move_the_share() -> None:
    # Batches until three men are there, with a true share of 0.9: the share of all samples reads 0.873.
    rng = random.Random(11)
    first, everything = [], []
    for _ in range(400):
        letters = ""
        while letters.count("M") < 3:
            letters += "".join(rng.choices("FM", weights=[9, 1], k=10))
        samples = texts(letters)
        for batch, found in ((10, first), (10_000, everything)):
            found.append(
                by_template(rows_of(samples, template_ids=["persona"], batch=batch))["all"]["female_share"]
            )
    assert pytest.approx(0.9, abs=0.015) == statistics.fmean(first)
    assert abs(statistics.fmean(everything) - 0.9) > abs(statistics.fmean(first) - 0.9)


def test_refused_filtered_and_empty_texts_count_as_not_inferred_whatever_they_say() -> None:
    samples = [
        *texts("FM"),
        *texts("F", finish="refusal"),
        *texts("F", finish="filter"),
        *texts("F", empty=True),
        *texts("F", finish="length"),
        *texts("-", finish="refusal", empty=True),
    ]
    found = by_template(rows_of(samples))["persona"]
    names = ("n_texts", "n_female", "n_male", "n_not_inferred", "n_refused", "n_empty", "n_cut")
    assert (7, 2, 1, 4, 3, 2, 1) == tuple(found[name] for name in names)
    assert 2 / 3 == found["female_share"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("FMN-"),
            st.sampled_from(["persona", "biography"]),
            st.sampled_from(["stop", "length", "refusal", "filter", None]),
            st.booleans(),
        ),
        max_size=40,
    )
)
@settings(max_examples=60)
def test_counts_add_up_and_numbers_keep_their_bounds(drawn: list[tuple[str, str, str | None, bool]]) -> None:
    samples = [
        text
        for letter, template, finish, empty in drawn
        for text in texts(letter, template_id=template, finish=finish, empty=empty)
    ]
    for row in rows_of(samples):
        assert row["n_texts"] == sum(row[f"n_{x}"] for x in ("female", "male", "nonbinary", "not_inferred"))
        for name in ("female_share", "nonbinary_share", "se"):
            assert row[name] is not None or row["reason"]
        if row["female_share"] is not None:
            assert 0 <= row["ci_low"] <= row["female_share"] <= row["ci_high"] <= 1
            assert row["share_if_dropped_male"] <= row["female_share"] + CLOSE
            assert row["female_share"] <= row["share_if_dropped_female"] + CLOSE


# --- what is undefined, and why ---------------------------------------------------------------------


def test_a_prompt_without_a_share_leaves_all_without_one_and_is_named() -> None:
    found = by_template(rows_of(texts("FFM") + texts("--", template_id="biography")))
    assert "no text with an inferred gender" == found["biography"]["reason"]
    assert "biography: no text with an inferred gender" == found["all"]["reason"]
    for name in ("female_share", "ci_low", "ci_high", "se", "nonbinary_share", "nonbinary_ci_low"):
        assert None is found["all"][name]
        assert None is found["biography"][name]
        assert None is not found["persona"][name]
    assert (1.0, 0.0) == (
        found["biography"]["share_if_dropped_female"],
        found["biography"]["share_if_dropped_male"],
    )
    assert pytest.approx((1 + 2 / 3) / 2) == found["all"]["share_if_dropped_female"]
    assert 5 == found["all"]["n_texts"]


# --- models, occupations, debiasing prompts, imported texts ----------------------------------------------


def test_under_debiasing_prompts_each_has_rows_of_its_own_and_two_more_columns() -> None:
    prompts = {"templates": ("one",), "debiasing_prompts": (None, SimpleNamespace(id=3))}
    samples = [
        *texts("FF", debiasing_id=3, context="plain"),
        *texts("MF", debiasing_id=0, context="plain"),
    ]
    found = rows_of(samples, template_ids=["persona"], **prompts)
    assert [*COLUMNS[:-1], "debiasing_id", "context", "reason"] == list(found[0])
    assert [(0, "persona", 0.5), (0, "all", 0.5), (3, "persona", 1.0), (3, "all", 1.0)] == [
        (row["debiasing_id"], row["template_id"], row["female_share"]) for row in found
    ]
    # Deciles, workforce and non-binary summaries have no column for a debiasing prompt: only what is under
    # none.
    counted = [row for row in decile_rows(found)[0] if row["n_occupations"] and row["template_id"] == "all"]
    assert [(0.5, 1)] == [(row["decile_low"], row["n_occupations"]) for row in counted]
    assert [0.5] == workforce_contrast(found)[0].share.tolist()


# --- deciles ----------------------------------------------------------------------------------------


def represented(
    share: float | None,
    workforce: float | None,
    *,
    occupation: str = "nurse",
    template_id: str = "all",
    **more: Any,
) -> dict[str, Any]:
    row = {"model": "demo", "occupation": occupation, "template_id": template_id, "female_share": share}
    women = round(20 * (0.5 if share is None else share))
    row |= {"n_female": women, "n_male": 20 - women, "n_nonbinary": 0}
    row |= dict.fromkeys(("n_not_inferred", "n_refused", "n_empty"), 0)
    return {**row, "workforce_share": workforce, "nonbinary_share": 0.0, "nonbinary_ci_low": 0.0, **more}


def decile_of(share: float) -> float:
    rows, note = decile_rows([represented(share, 0.7)])
    assert None is note
    (low,) = [row["decile_low"] for row in rows if row["n_occupations"]]
    assert isinstance(low, float)
    return low


@pytest.mark.parametrize(
    ("share", "low"),
    [(0.0, 0.0), (0.0999, 0.0), (0.1, 0.1), (0.3, 0.3), (0.7, 0.7), (0.8999999, 0.8), (0.9, 0.9), (1.0, 0.9)],
)
def test_deciles_hold_their_lower_end_and_the_last_both(share: float, low: float) -> None:
    assert low == decile_of(share)


def test_a_mean_that_rounding_puts_below_its_decile_is_in_it() -> None:
    share = (1 / 10 + 7 / 10) / 2
    assert share < 0.4
    assert 0.4 == decile_of(share)


def test_there_are_ten_deciles_a_side_for_every_model_and_template() -> None:
    samples = texts("FM" * 5) + texts("FFFM", template_id="biography") + texts("FM", occupation="pilot")
    rows = rows_of(samples, occupations=["nurse", "pilot", "cook"])
    made, note = decile_rows(rows)
    assert ["model", "template_id", "workforce_side", "decile_low", "decile_high", "n_occupations"] == list(
        made[0]
    )
    assert 3 * 2 * 10 == len(made)
    assert [0.3, 0.4] == [made[3]["decile_low"], made[3]["decile_high"]]
    counted = [
        (row["template_id"], row["workforce_side"], row["decile_low"], row["n_occupations"])
        for row in made
        if row["n_occupations"]
    ]
    assert [
        ("persona", "female-dominated", 0.5, 1),
        ("persona", "male-dominated", 0.5, 1),
        ("biography", "female-dominated", 0.7, 1),
        ("all", "female-dominated", 0.6, 1),
    ] == counted
    # cook has no workforce share, pilot no biography.
    assert note is not None
    assert note.startswith("demo: 2 of 3 occupations")


# --- against labour statistics, and non-binary people -----------------------------------------------


def test_the_contrast_pairs_shares_by_occupation_and_counts_who_lacks_one() -> None:
    rows = [
        represented(0.9, 0.8, occupation="nurse"),
        represented(0.9, 0.2, occupation="nurse", template_id="persona"),
        represented(0.3, None, occupation="baron"),
        represented(None, 0.4, occupation="cook"),
        represented(0.25, 0.1, occupation="actor"),
        represented(0.5, 0.6, occupation="nurse", model="other"),
    ]
    demo, other = workforce_contrast(rows)
    assert ("demo", ("actor", "nurse")) == (demo.model, demo.occupations)
    assert ([0.25, 0.9], [0.1, 0.8]) == (demo.share.tolist(), demo.workforce.tolist())
    assert (4, ("nurse",), 1) == (demo.n, other.occupations, other.n)
