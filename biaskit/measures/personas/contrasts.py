"""Tests of one model's texts: SRB by gender, refusals, share and labour (methods/srb#persona-tests)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from biaskit.common.wording import joined
from biaskit.measures.personas.representation import labour_contrast
from biaskit.records import GENDERS, WOMEN_AND_MEN
from biaskit.stats.classification import CHANCE, area_interval
from biaskit.stats.contrasts import Scope, adjust, within_units
from biaskit.stats.crossed import p_of_difference
from biaskit.stats.proportions import spread_of_true
from biaskit.stats.verdict import Rule
from biaskit.tables.quantities import ALL_OCCUPATIONS, AREAS
from biaskit.tables.query import Row, defined, first, grouped, where
from biaskit.tables.reasons import HOLD_OUT, is_reason, parts_of_reason

REFUSED = {"refused_share": "n_refused", "declined_share": "n_declines_in_words"}
"""Shares of texts by the gender asked for → what must occur for a test. Where nothing declines in words,
`declined_share` is `refused_share`."""


def test_rows(
    srb: Sequence[Row],
    representation: Sequence[Row],
    *,
    models: Sequence[str],
    margins: Mapping[str, float],
    seed: int,
    refusals: Sequence[Row],
    transfer: Sequence[Row],
    strict: bool,
) -> Sequence[Row]:
    """Make the rows of tests.csv that concern one model each."""
    scores = ("srb", "srb_content") if srb else ()
    rows = [row for m in models for score in scores for row in _gender_tests(m, srb, score, margins, seed)]
    if not any(is_reason(part, HOLD_OUT) for row in transfer for part in parts_of_reason(row["reason"])):
        rows += [row for model in models for row in _area_tests(model, transfer, margins)]
    rows += _labour_tests(representation, margins, seed)
    for (model,), of_model in grouped(refusals, "model").items():
        for quantity in REFUSED:
            rows += _refusal_tests(model, of_model, quantity, margins, seed)
    return adjust(rows, Rule(strict=strict))


def _area_tests(model: str, transfer: Sequence[Row], margins: Mapping[str, float]) -> Iterator[Row]:
    """Test areas under the curve of women's against men's texts against 0.5, over occupations."""
    for quantity, (trained_on, tested_on) in AREAS.items():
        of_cell = where(transfer, model=model, trained_on=trained_on, tested_on=tested_on)
        of_occupations = [row for row in of_cell if row["occupation"] != ALL_OCCUPATIONS] or of_cell
        areas = np.array([row["auc"] for row in defined(of_occupations, "auc")], dtype=np.float64)
        if not areas.size:
            continue
        mean = first(of_cell, occupation=ALL_OCCUPATIONS)
        left_out = len(of_occupations) - areas.size
        tests = within_units(
            areas,
            np.full(areas.shape, CHANCE),
            scope=_scope(model, "genders", quantity, group_a="female", group_b="male"),
            kinds=("paired",),
            margins=margins,
            note=f"{left_out} of {len(of_occupations)} occupations left out" if left_out else None,
        )
        for row in tests:
            # Near 1 a symmetric t interval is wrong: take that of text_transfer.csv, and the test it inverts.
            for name, level in (("ci", 0.95), ("ci90", 0.90)):
                if row[f"{name}_low"] is not None and (ends := area_interval(areas, level=level)):
                    row |= {f"{name}_low": ends[0] - CHANCE, f"{name}_high": ends[1] - CHANCE}
            if row["p_value"] is not None and 0 < (area := float(areas.mean())) < 1:
                variance = float(areas.var(ddof=1)) / areas.size / (area * (1 - area)) ** 2
                t, p = p_of_difference(math.log(area / (1 - area)), variance, areas.size - 1.0)
                row |= {"statistic": t, "p_value": p}
            if mean is not None and mean["p_value"] is None:
                row |= {"p_value": None, "statistic": None, "dof": None}
                row["reason"] = joined([str(row["reason"] or "") or None, mean["reason"]])
            yield row


def _scope(model: str, contrast: str, quantity: str, **sides: str) -> Scope:
    """Describe a test in one model's texts, over occupations; `sides`: who is held against whom."""
    return Scope("personas", contrast, model, model, quantity=quantity, unit="occupation", **sides)


def _refusal_tests(
    model: str, rows: Sequence[Row], quantity: str, margins: Mapping[str, float], seed: int
) -> Iterator[Row]:
    """Test a share of texts about one gender minus another's, over occupations; no rows where all are 0."""
    if not any(row[REFUSED[quantity]] for row in rows):
        return
    shares: dict[str, dict[str, float]] = {gender: {} for gender in GENDERS}
    for row in rows:
        shares[row["specified_gender"]][row["occupation"]] = row[quantity]
    for gender, against in (WOMEN_AND_MEN, ("nonbinary", "female"), ("nonbinary", "male")):
        common = sorted(shares[gender].keys() & shares[against].keys())
        if common:
            yield from within_units(
                *(np.array([shares[g][o] for o in common], dtype=float) for g in (gender, against)),
                scope=_scope(model, "genders", quantity, group_a=gender, group_b=against),
                kinds=("paired", "permutation"),
                margins=margins,
                seed=seed,
            )


def _gender_tests(
    model: str, srb: Sequence[Row], score: str, margins: Mapping[str, float], seed: int
) -> Sequence[Row]:
    """Test women's scores minus men's over the occupations that have both (GAS(P) Table 13)."""
    women, men = (
        {str(row["occupation"]): row[score] for row in where(srb, model=model, gender=gender)}
        for gender in WOMEN_AND_MEN
    )
    common = sorted(o for o in women if women[o] is not None and men.get(o) is not None)
    left_out = len(women) - len(common)
    a, b = (np.array([of_gender[o] for o in common], dtype=np.float64) for of_gender in (women, men))
    return within_units(
        a,
        b,
        scope=_scope(model, "genders", score, group_a="female", group_b="male"),
        kinds=("welch", "paired", "wilcoxon", "permutation"),
        margins=margins,
        seed=seed,
        note=f"{left_out} of {len(women)} occupations without both scores left out" if left_out else None,
    )


def _labour_tests(representation: Sequence[Row], margins: Mapping[str, float], seed: int) -> Iterator[Row]:
    """Test the share of women in the texts minus that in the labour force, over occupations.

    Texts without a gender may be anybody's: the mean lies between bounds. A mean difference of 0 with every
    occupation 20 points off is no parity: the spread of the true differences decides.
    """
    for contrast in labour_contrast(representation):
        if not contrast.occupations and not defined(representation, "labour_female_share"):
            continue
        rows: Sequence[Row] = within_units(
            contrast.share,
            contrast.labour,
            scope=_scope(contrast.model, "labour", "represented_share", gender="female"),
            kinds=("paired", "wilcoxon", "distance", "slope"),
            margins=margins,
            seed=seed,
            note=contrast.note,
            ends=(contrast.ends[0] - contrast.labour, contrast.ends[1] - contrast.labour),
        )
        spread = spread_of_true(contrast.share - contrast.labour, contrast.noise)
        for row in rows:
            row = {**row, "reason": joined([row["reason"], contrast.labels])}
            yield {**row, "equivalent": spread <= 2 * row["margin"]} if row["equivalent"] else row
