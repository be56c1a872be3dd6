"""How much is looked at where models or occupations are many: it may grow with rows and pairs alone.

Looks are counted, never seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fakes.findings_rows import SHARES, content, group_rows, of_groups, probe_part

from biaskit.compare.gaps import BothEngines, gap_rows, labour_table
from biaskit.compare.gate import judge_policy
from biaskit.compare.outcomes import _whole
from biaskit.compare.pairs import Side
from biaskit.compare.personas import Texts, pair_rows_of_texts, texts_of
from biaskit.compare.policy import read_policy
from biaskit.compare.same_prompts import PromptTexts
from biaskit.report.content import Content
from biaskit.report.findings import say
from biaskit.report.render.headline import headline
from biaskit.tables.quantities import TESTED_OUTCOMES

LOOKS: Counter[str] = Counter()


class Looked(dict[str, Any]):
    """A row that counts how often it is looked at."""

    def get(self, key: str, default: Any = None) -> Any:
        LOOKS["rows"] += 1
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        LOOKS["rows"] += 1
        return super().__getitem__(key)


def looks(act: Any) -> int:
    LOOKS.clear()
    act()
    return LOOKS["rows"]


def grown(made_of: Any, act: Any, few: int = 10, times: int = 4) -> float:
    """How many times the looks at `few` those at `times * few` are, less what that many things need."""
    small, large = (looks(lambda n=n: act(made_of(n))) for n in (few, times * few))
    assert small > 0
    return large / small / times


def probed(n: int) -> Content:
    """As many models with a test each, and jobs that have a difference."""
    labels = [f"m{i}" for i in range(n)]
    rows = [Looked(row) for label in labels for row in group_rows(SHARES, model=label)]
    tests = [
        Looked({**of_groups(0.14, (0.09, 0.19)), "model_a": label, "model_b": label}) for label in labels
    ]
    scope = {"bias_type": "explicit", "instruction_id": 0, "setting": "plain", "prompt_form": "raw"}
    jobs = [
        Looked(
            {**scope, "model": label, "job": job, "female_minus_male": 0.1, "ci_low": 0.05, "ci_high": 0.2}
        )
        for label in labels
        for job in ("nurse", "pilot")
    ]
    return content(probe_part({"probe_groups": rows, "tests": tests, "probe_jobs": jobs}, *labels))


@pytest.mark.parametrize("act", [say, headline])
def test_sentences_and_headline_look_at_each_models_rows_alone(act: Any) -> None:
    assert grown(probed, act) < 1.3


def written(n: int) -> tuple[dict[str, Any], dict[str, str]]:
    labels = [f"m{i}" for i in range(n)]
    shares = [
        Looked({"model": label, "occupation": job, "template_id": "all", "female_share": 0.4})
        for label in labels
        for job in ("nurse", "pilot")
    ]
    scores = [
        Looked({"model": m, "occupation": "nurse", "gender": g, "srb": 0.1, "vectors": "v", "control": ""})
        for m in labels
        for g in ("female", "male")
    ]
    return {"representation": shares, "srb": scores}, dict.fromkeys(labels, "chat")


def test_texts_of_a_run_are_read_model_by_model() -> None:
    assert grown(written, lambda made: texts_of(*made, run="r", seed=1)) < 1.3


class Named(dict[str, Texts]):
    """Models of which only those named may be looked at: going through all for each pair is cubic."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all models were gone through for one pair")

    items = keys = values = __iter__  # type: ignore[assignment]


def test_a_pair_of_texts_looks_at_its_own_models_alone() -> None:
    tables, forms = written(4)
    texts = Named(texts_of(tables, forms, run="r", seed=1))
    pair = Side("m1", ("m1",)), Side("m0", ("m0",))
    rows, _ = pair_rows_of_texts(pair, texts, {})
    assert {row["quantity"] for row in rows} == {"srb", "represented_share"}


def joined(n: int) -> BothEngines:
    names = [f"job {i}" for i in range(n)]
    asked = {"bias_type": "explicit", "prompt_form": "raw", "instruction_id": 0, "setting": "plain"}
    shares = {"female_share": 0.6, "male_share": 0.3, "labour_female_share": 0.5, "reason": ""}
    counts = {"labour_female_share": 0.5, "n_female": 2, "n_male": 1, "n_nonbinary": 0}
    jobs = [Looked({"model": "m", "job": name, **asked, **shares}) for name in names]
    texts = [Looked({"model": "m", "occupation": name, "template_id": "p", **counts}) for name in names]
    return BothEngines("m", {"probe_jobs": jobs}, {"representation": texts, "srb": []}, "m", "m")


def test_gaps_look_at_each_occupations_rows_alone() -> None:
    def made(both: BothEngines) -> None:
        rows = both.personas["representation"], both.probe["probe_jobs"]
        assert len(gap_rows(both, labour_table(*rows, {}), {})[0]) == len(rows[0])

    assert grown(joined, made) < 1.3


def answered(n: int) -> list[Mapping[str, Any]]:
    """Answers to each of as many jobs, two templates; one cell has none."""
    counts = {f"n_{name}": 1 for name in ("listed", *TESTED_OUTCOMES)}
    arm = {"model": "old", "bias_type": "explicit", "instruction_id": 0, "setting": "plain"}
    rows = [
        {**arm, "prompt_form": "raw", "template_id": t, "job": f"job {i}", "job_group": "all", "n_answers": 9}
        for i in range(n)
        for t in (1, 2)
    ]
    return [Looked({**row, **counts}) for row in rows[1:]]


def test_cells_without_an_answer_are_found_by_each_jobs_rows_alone() -> None:
    assert len(_whole([dict(row) for row in answered(5)])) == 10
    assert grown(answered, _whole) < 1.3


def test_the_texts_of_a_template_are_put_together_once_for_all_pairs() -> None:
    asked = PromptTexts({"texts": {"explicit template 1": ["What of a [JOB]?"]}, "slot": "[JOB]"})
    assert asked.template("explicit", 1) is asked.template("explicit", 1)
    assert asked.template("explicit", 1) == [["What of a []?"], []]


class Held(dict[tuple[str, str], float | None]):
    """Coverage that may be gone through once: once for each row is models times pairs."""

    def items(self) -> Any:
        LOOKS["coverage"] += 1
        return super().items()


def test_a_gate_goes_through_the_coverage_of_all_models_once() -> None:
    held = Held({(f"m{i}", "explicit"): 0.2 for i in range(5)})
    rows = [
        {**of_groups(0.0, (-0.01, 0.01)), "model_a": f"m{i}", "model_b": f"m{i}", "verdict": "equivalent"}
        for i in range(5)
    ]
    required = {"contrast": "groups", "quantity": "share", "min_coverage": 0.1}
    LOOKS.clear()
    judge_policy(read_policy({"require": [required]}), rows, coverage=held)
    assert LOOKS["coverage"] == 1
