"""What the numbers cannot show, and numbers as words."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.findings_rows import (
    REPRESENTED,
    SCORES,
    SHARES,
    WOMENS,
    content,
    group_rows,
    many,
    personas_part,
    probe_part,
    score,
)

from biaskit.common.wording import percent, plain_number, point_number, points, short
from biaskit.report.content import Content
from biaskit.report.findings import cannot_show
from biaskit.report.findings.limits import explained

# --- numbers as words --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0, "0"),
        (1, "1" + "00"),
        (0.5231, "52"),
        (0.0042, "0.4"),
        (0.0001, "<0.1"),
        (0.9999, ">99.9"),
        (0.996, "99.6"),
    ],
)
def test_percent_never_rounds_to_none_or_all(fraction: float, text: str) -> None:
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0, "0 points"), (0.01, "1 point"), (-0.01, "−1 point"), (0.004, "0.4 points"), (0.0002, "0.02 points")],
)
def test_points(fraction: float, text: str) -> None:
    assert points(fraction) == text


def test_small_scores_keep_their_sign() -> None:
    assert plain_number(-0.001) == "−0.001"
    assert point_number(-0.0994, 1) == "−9.9"
    assert short("é" * 81) == "é" * 79 + "…"


# --- limits ------------------------------------------------------------------------------------------


ALWAYS = (
    "“They” is the only neutral pronoun",
    "A share that differs from parity is not wrong",
    "The numbers apply to these",
)


def limit(made: Content, text: str) -> list[str]:
    return [one for one in cannot_show(made) if text in one]


def test_limits_that_always_hold() -> None:
    for made in (content(), many(1), many(5)):
        for beginning in ALWAYS:
            assert 1 == sum(one.startswith(beginning) for one in cannot_show(made))


def probed(*more: dict[str, Any], **changes: Any) -> Content:
    return content(probe_part({"probe_groups": [*group_rows(SHARES, **changes), *more]}))


OTHER = group_rows(SHARES, model="n", estimator="top-k")
FEMALE = {WOMENS: (0.97, 0.02, 0.01)}
TWO_VECTORS = [*SCORES, score("cook", "female", 0.1, vectors="b")]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (many(2), "includes both “non-binary” and “gender unknown”"),
        (content(personas_part({"representation": REPRESENTED})), "Labour statistics are from the U.S."),
        (probed(n_templates=1), "conditional on one template"),
        (probed(n_templates=2), "conditional on two templates"),
        (probed(n_jobs=1), "conditional on one job"),
        (probed(n_templates=4), "as few as 4 templates"),
        (probed(n_jobs=6), "as few as 6 jobs"),
        (content(personas_part({"representation": REPRESENTED})), "gasp: 3 occupations only"),
        (content(probe_part({"probe_groups": group_rows(FEMALE)})), "above 95 % may be too short"),
        (probed(*OTHER), "different estimators (exact and top-k)"),
        (probed(share_low=0.2, share_high=0.7), "bounds of up to 50 points"),
        (probed(estimator="sampling"), "few samples per prompt"),
        (content(probe_part({})), "one prompt format (raw)"),
        (content(personas_part({}, where="texts")), "How imported texts were prompted"),
        (content(personas_part({})), "run's own settings"),
        (content(personas_part({"srb": SCORES})), "how long the word vectors were trained"),
        (content(personas_part({"srb": TWO_VECTORS})), "from 2 vector models"),
        (content(probe_part({})), "two extreme clusters"),
        (content(probe_part({})), "No texts were generated"),
        (content(personas_part({})), "biaskit probe did not run"),
        (
            content(probe_part({}), personas_part({}, "other")),
            "No model has the same label in both measurements",
        ),
    ],
)
def test_limits_that_apply(made: Content, text: str) -> None:
    assert len(limit(made, text)) == 1


@pytest.mark.parametrize("number", ["45 % [32–60]", "[−28 to 26 points]", "52 points [50 to 53]"])
def test_the_explained_interval_promises_what_simulations_show(number: str) -> None:
    said = explained(["", number, "1 % [0–2]"])
    assert said.startswith(f"“{number}” means: ")
    assert said.endswith("about 95 in 100 intervals contain it, fewer of those picked for excluding 0.")
    assert len(said.split()) <= 35


def test_limits_that_do_not_apply_are_not_said() -> None:
    tables = {"probe_groups": [one for one in group_rows(SHARES) if one["gender"] != "diverse"]}
    made = content(probe_part(tables, study="own"), personas_part({}, where="texts"))
    of_rows = (
        "gender unknown",
        "Labour statistics",
        "conditional",
        "as few as",
        "estimators",
        "bounds",
        "clusters",
    )
    of_runs = (
        "conditional",
        "run's own settings",
        "did not run",
        "No texts",
        "No model",
        "vectors",
        "too short",
    )
    assert [] == [text for text in (*of_rows, *of_runs) if limit(made, text)]
