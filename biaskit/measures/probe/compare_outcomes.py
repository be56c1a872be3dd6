"""Tests between models on the outcomes of their sampled answers, over the cells that both answered.

The share of an outcome is its part of a cell's answers (methods/probabilities#continuations).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biaskit.common.wording import listed
from biaskit.compare.pairs import SidePair
from biaskit.compare.same_prompts import PromptTexts
from biaskit.measures.probe.compare_cells import Answers, answers_of, pair_rows
from biaskit.models.entry import ModelEntry
from biaskit.stats.contrast import Contrast
from biaskit.tables.quantities import ANSWERS_OF_MODELS, OUTCOME_SHARE, TESTED_OUTCOMES


def outcomes_of(
    rows: Sequence[Mapping[str, Any]], models: Mapping[str, ModelEntry], where: str, asked: PromptTexts
) -> dict[str, Answers]:
    """Read the models of one run from its rows of probe_prompts.csv, with outcomes in place of genders.

    `models`: label → its entry in the manifest, which says how long a text may be. A pair of job and
    template without an answer is a gap, as a failed cell is.
    """
    shares: list[dict[str, Any]] = []
    for row in rows:
        if row.get("n_answers"):
            shares.append({**row, **_shares(row), "estimator": _length(models.get(row["model"]))})
    return answers_of(shares, TESTED_OUTCOMES, where, asked, gaps=True)


def _shares(row: Mapping[str, Any]) -> dict[str, float]:
    """Number and share of each outcome of a cell, as masses and shares of a group; answers as coverage."""
    numbers: dict[str, float] = {"coverage": row["n_answers"]}
    for name in TESTED_OUTCOMES:
        numbers[f"{name}_mass"] = row[f"n_{name}"]
        numbers[f"{name}_share"] = row[f"n_{name}"] / row["n_answers"]
    return numbers


def _length(entry: ModelEntry | None) -> str:
    """Say how long texts may be, in place of an estimator: texts of other lengths come to other outcomes."""
    asked = entry and (entry.continuations or entry)
    most = asked.estimator.max_new_tokens if asked and asked.estimator else None
    return f"texts of {most} tokens" if most else "texts"


def pair_rows_of_outcomes(
    pair: SidePair, answers: Mapping[str, Answers], margins: Mapping[str, float]
) -> list[Contrast]:
    """Test each outcome's share, later − earlier, paired and crossed; no row unless all models answered."""
    if not all(model in answers for side in pair for model in side.models):
        return []
    rows, _ = pair_rows(pair, answers, margins, quantity=OUTCOME_SHARE, contrast=ANSWERS_OF_MODELS)
    return rows


def without_answers(models: Sequence[str], answers: Mapping[str, Answers]) -> Iterator[str]:
    """Name the models without sampled answers where others have some."""
    missing = [model for model in models if model not in answers]
    if missing and len(missing) < len(models):
        yield (
            f"{listed(missing)} {'has' if len(missing) == 1 else 'have'} no sampled answers, so answers are"
            " not compared with theirs: probe --continue N samples some."
        )
