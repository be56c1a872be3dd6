"""Tests between models on the outcomes of their drawn answers, over the cells that both answered.

The share of an outcome is its part of a cell's answers (methods/probabilities#continuations).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biaskit.common.wording import listed
from biaskit.compare.pairs import SidePair
from biaskit.compare.probe import Answers, answers_of, pair_rows
from biaskit.compare.same_prompts import PromptTexts
from biaskit.stats.contrasts import Row
from biaskit.tables.quantities import ANSWERS_OF_MODELS, OUTCOME_SHARE, TESTED_OUTCOMES
from biaskit.tables.query import distinct, grouped


def outcomes_of(
    rows: Sequence[Mapping[str, Any]],
    models: Mapping[str, Mapping[str, Any]],
    where: str,
    asked: PromptTexts | None = None,
) -> dict[str, Answers]:
    """Read the models of one run from its rows of probe_cells.csv, with outcomes in place of genders.

    `models`: label → its entry in the manifest, which says how long a text may be. A pair of job and
    template without an answer is a gap, as a failed cell is.
    """
    shares: list[dict[str, Any]] = []
    for row in (row for row in rows if row.get("n_answers")):
        entry, n = models.get(row["model"], {}), row["n_answers"]
        estimator = entry.get("continuations", entry).get("estimator")
        most = estimator.get("max_new_tokens") if isinstance(estimator, Mapping) else None
        # Texts of other lengths come to other outcomes: the length stands for the estimator.
        how = {"coverage": n, "estimator": f"texts of {most} tokens" if most else "texts"}
        of_outcomes = {
            f"{name}_{what}": row[f"n_{name}"] / (n if what == "share" else 1)
            for name in TESTED_OUTCOMES
            for what in ("mass", "share")
        }
        shares.append({**row, **of_outcomes, **how})
    numbers = [*(f"{name}_{what}" for name in TESTED_OUTCOMES for what in ("mass", "share")), "coverage"]
    for rows_of_arm in grouped(
        shares, "model", "bias_type", "instruction_id", "setting", "prompt_form"
    ).values():
        answered = {(row["job"], row["template_id"]) for row in rows_of_arm}
        empty = {**rows_of_arm[0], **dict.fromkeys(numbers), "estimator": None}
        group_of = {row["job"]: row["job_group"] for row in rows_of_arm}
        shares += [
            {**empty, "job": job, "job_group": group, "template_id": template}
            for job, group in group_of.items()
            for template in distinct(rows_of_arm, "template_id")
            if (job, template) not in answered
        ]
    return answers_of(shares, TESTED_OUTCOMES, where, asked)


def pair_rows_of_outcomes(
    pair: SidePair, answers: Mapping[str, Answers], margins: Mapping[str, float]
) -> list[Row]:
    """Test each outcome's share, later − earlier, paired and crossed; no row unless all models answered."""
    if not all(model in answers for side in pair for model in side.models):
        return []
    rows, _ = pair_rows(pair, answers, margins, quantity=OUTCOME_SHARE, contrast=ANSWERS_OF_MODELS)
    return rows


def without_answers(models: Sequence[str], answers: Mapping[str, Answers]) -> Iterator[str]:
    """Name the models without drawn answers where others have some."""
    missing = [model for model in models if model not in answers]
    if missing and len(missing) < len(models):
        yield (
            f"{listed(missing)} {'has' if len(missing) == 1 else 'have'} no sampled answers, so answers are"
            " not compared with theirs: probe --continue N samples some."
        )
