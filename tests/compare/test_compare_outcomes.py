"""What sampled answers come to, model against model: counts known by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from fakes.numbered_runs import entry
from scipy import stats

from biaskit.compare.pairs import Side, SidePair
from biaskit.compare.same_prompts import PromptTexts
from biaskit.measures.probe.compare_outcomes import outcomes_of, pair_rows_of_outcomes, without_answers
from biaskit.stats.contrast import Contrast
from biaskit.stats.contrasts import adjust
from biaskit.stats.crossed import spread_of_mean

JOBS = {"nurse": "women's", "teacher": "women's", "pilot": "men's", "smith": "men's"}
OF_FIVE = {  # model → job → answers of five that decline, after template 1 and after 2
    "old": {"nurse": (0, 1), "teacher": (1, 1), "pilot": (0, 0), "smith": (2, 1)},
    "new": {"nurse": (3, 2), "teacher": (4, 4), "pilot": (1, 1), "smith": (2, 2)},
}
OF_24 = {"fingerprint": "f", "estimator": {"name": "sampling", "max_new_tokens": 24}}


def answer_row(model: str, job: str, template: int, declines: int, n: int = 5) -> dict[str, Any]:
    scope = {"model": model, "bias_type": "explicit", "debiasing_id": 0, "context": "plain"}
    scope |= {"prompt_format": "raw", "template_id": template, "job": job, "job_group": JOBS[job]}
    none = dict.fromkeys((f"n_{name}" for name in ("unknown", "both", "restates", "empty", "other")), 0)
    return {**scope, **none, "n_answers": n, "n_listed": n - declines, "n_declines": declines}


def rows_of(model: str) -> list[dict[str, Any]]:
    return [
        answer_row(model, job, template, declines)
        for job, both in OF_FIVE[model].items()
        for template, declines in enumerate(both, start=1)
    ]


def of_run(model: str, rows: list[dict[str, Any]], **question: Any) -> dict[str, Any]:
    return dict(outcomes_of(rows, {model: entry(continuations=OF_24)}, model, PromptTexts(question)))


PAIR: SidePair = (Side("new", ("new",)), Side("old", ("old",)))


def found(rows: list[Contrast], **values: object) -> Contrast:
    [row] = [row for row in rows if all(row[name] == value for name, value in values.items())]
    return row


def test_the_difference_is_that_of_the_cells_of_both_paired_by_job() -> None:
    rows = adjust(
        pair_rows_of_outcomes(PAIR, of_run("old", rows_of("old")) | of_run("new", rows_of("new")), {})
    )
    scope = {"gender": "declines", "group_a": "women's"}
    paired, crossed = (found(rows, **scope, kind=kind) for kind in ("paired", "crossed"))
    # nurse: (3 + 2 − 0 − 1) / 10 = 0.4; teacher: (4 + 4 − 1 − 1) / 10 = 0.6
    assert 0.5 == pytest.approx(paired["estimate"]) == pytest.approx(crossed["estimate"])
    test = stats.ttest_rel([0.5, 0.8], [0.1, 0.2])
    assert (test.statistic, test.pvalue) == pytest.approx((paired["statistic"], paired["p_value"]))
    spread = spread_of_mean(np.array([[0.6, 0.2], [0.6, 0.6]]))
    assert spread.variance is not None
    half = stats.t.ppf(0.975, spread.dof) * math.sqrt(spread.variance)
    assert (max(0.5 - half, -1), min(0.5 + half, 1)) == pytest.approx((crossed["ci_low"], crossed["ci_high"]))
    of_men = found(rows, gender="declines", group_a="men's", kind="paired")
    assert 0.15 == pytest.approx(of_men["estimate"])  # pilot (1 + 1) / 10, smith (2 + 2 − 2 − 1) / 10
    assert {"probe/outcome_share/paired/answers-models", "probe/outcome_share/crossed/answers-models"} == {
        row["family"] for row in rows
    }
    assert {"new"} == {row["model_a"] for row in rows}
    assert {"listed", "unknown", "both", "declines"} == {row["gender"] for row in rows}


def test_cells_that_only_one_model_answered_are_left_out_with_their_template() -> None:
    short = [row for row in rows_of("new") if (row["job"], row["template_id"]) != ("nurse", 2)]
    rows = pair_rows_of_outcomes(PAIR, of_run("old", rows_of("old")) | of_run("new", short), {})
    row = found(rows, gender="declines", group_a="women's", kind="paired")
    assert 0.6 == pytest.approx(row["estimate"])  # template 1 alone: (3 − 0 + 4 − 1) / 10
    assert "template 2 of 2 left out" in str(row["reason"])


def test_prompts_that_are_other_texts_are_not_compared() -> None:
    texts = [{"texts": {"explicit template 1": text, "explicit template 2": "same"}} for text in ("a", "b")]
    answers = of_run("old", rows_of("old"), **texts[0]) | of_run("new", rows_of("new"), **texts[1])
    row = found(
        pair_rows_of_outcomes(PAIR, answers, {}), gender="declines", group_a="women's", kind="crossed"
    )
    assert 0.4 == pytest.approx(row["estimate"])  # template 2 alone: (2 − 1 + 4 − 1) / 10
    assert "another text" in str(row["reason"])


def test_a_model_without_answers_has_no_row_and_is_named() -> None:
    answers = of_run("new", rows_of("new"))
    assert [] == pair_rows_of_outcomes(PAIR, answers, {})
    assert ["old has no sampled answers"] == [
        note.partition(", so")[0] for note in without_answers(["old", "new"], answers)
    ]
    assert [] == list(without_answers(["old"], {}))
