"""Tests of one model's texts: SRB by gender, refusals, share and workforce (methods/srb#persona-tests)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from biaskit.common.wording import joined
from biaskit.measures.personas.representation import workforce_contrast
from biaskit.measures.personas.study import PersonasStudy
from biaskit.records import ALL, GENDERS, UNNAMED, WOMEN_AND_MEN
from biaskit.stats.arrays import FloatArray
from biaskit.stats.classification import CHANCE
from biaskit.stats.contrast import MOST_SPREAD, Contrast, Scope
from biaskit.stats.contrasts import adjust, within_units
from biaskit.stats.crossed import MANY, p_of_difference, share_interval
from biaskit.stats.proportions import spread_of_true
from biaskit.stats.verdict import Rule
from biaskit.tables.quantities import AREAS
from biaskit.tables.query import Row, Tables, apart_from, column, defined, first, grouped, lookup, where
from biaskit.tables.reasons import are_held_out

REFUSED = {"refused_share": "n_refused", "declined_share": "n_declines_in_words"}
"""Shares of texts by the gender asked for → what must occur for a test. Where nothing declines in words,
`declined_share` is `refused_share`."""

ONE_OCCUPATION = "conditional on one occupation"
Test = Callable[..., Sequence[Contrast]]
"""`within_units` with the study's margins and seed."""


def test_rows(
    tables: Tables, models: Sequence[str], study: PersonasStudy, refusals: Sequence[Row]
) -> list[Contrast]:
    """Make the rows of tests.csv that concern one model each."""
    test: Test = partial(within_units, margins=study.margin, seed=study.seed)
    srb, transfer = tables.get("srb", ()), tables.get("text_transfer", ())
    rows: list[Contrast] = []
    for model in models if srb else ():
        rows += _gender_tests(test, model, srb, "srb")
        rows += _gender_tests(test, model, srb, "srb_content")
    if not are_held_out(transfer):
        for model in models:
            rows += _area_tests(test, model, transfer)
    rows += _workforce_tests(test, tables["representation"])
    for (model,), of_model in grouped(refusals, "model").items():
        for quantity in REFUSED:
            rows += _refusal_tests(test, model, of_model, quantity)
    return adjust(rows, Rule(strict=study.strict))


def _scope(model: str, contrast: str, quantity: str, **sides: str) -> Scope:
    """Describe a test in one model's texts, over occupations; `sides`: who is held against whom."""
    return Scope("personas", contrast, model, model, quantity=quantity, unit="occupation", **sides)


def _left_out(occupations: Sequence[str], n: int, why: str) -> str | None:
    """Say how many of n occupations are none of those used, and whether one alone is left."""
    n_out, alone = n - len(occupations), len(occupations) == 1 and UNNAMED not in occupations
    return joined([ONE_OCCUPATION * alone, f"{n_out} of {n} occupations {why}" * bool(n_out)])


def _area_tests(test: Test, model: str, transfer: Sequence[Row]) -> Iterator[Contrast]:
    """Test areas under the curve of women's against men's texts against 0.5, over occupations."""
    for quantity, (trained_on, tested_on) in AREAS.items():
        rows = where(transfer, model=model, trained_on=trained_on, tested_on=tested_on)
        mean = first(rows, occupation=ALL)
        of_occupations = apart_from(rows, occupation=ALL) or rows
        used = defined(of_occupations, "auc")
        areas = np.array(column(used, "auc"), dtype=np.float64)
        if not areas.size:
            continue
        scope = _scope(model, "genders", quantity, group_a="female", group_b="male")
        note = _left_out(column(used, "occupation"), len(of_occupations), "left out")
        (row,) = test(areas, np.full(areas.shape, CHANCE), scope=scope, kinds=("paired",), note=note)
        n = areas.size
        if n > 1 and mean is not None and mean["se"] is not None:  # over texts
            over_texts = {"n_a": mean["n_female"], "n_b": mean["n_male"], "reason": mean["reason"]}
            row = replace(row, **over_texts, unit="text", effect_size=None, dof=None)
            row = _on_logit_scale(row, mean["auc"], mean["se"] ** 2, MANY)
        elif row.ci_low is not None:
            row = _on_logit_scale(row, float(areas.mean()), float(areas.var(ddof=1)) / n, n - 1.0)
        if mean is not None and mean["p_value"] is None:  # longer texts are told apart by their length alone
            why = joined([row.reason, mean["reason"]])
            row = replace(row, p_value=None, statistic=None, dof=None, reason=why)
        yield row


def _on_logit_scale(row: Contrast, area: float, variance: float, dof: float) -> Contrast:
    """Compute interval and test of a mean area: near 1 a symmetric t interval is wrong.

    The interval is that of text_transfer.csv, the test the one that it inverts.
    """
    changed: dict[str, float | None] = {}
    for name, level in (("ci", 0.95), ("ci90", 0.90)):
        low, high = share_interval(area, np.array(variance), np.array(dof), level=level)
        changed[f"{name}_low"], changed[f"{name}_high"] = float(low) - CHANCE, float(high) - CHANCE
    logit, of_logit = math.log(area / (1 - area)), variance / (area * (1 - area)) ** 2
    changed["statistic"], changed["p_value"] = p_of_difference(logit, of_logit, dof)
    return replace(row, **changed)  # type: ignore[arg-type]


def _gender_tests(test: Test, model: str, srb: Sequence[Row], score: str) -> Sequence[Contrast]:
    """Test women's scores minus men's over the occupations that have both (GAS(P) Table 13)."""
    scores = grouped(where(srb, model=model), "gender")
    women, men = (lookup(scores.get((gender,), ()), "occupation", score) for gender in WOMEN_AND_MEN)
    common = sorted(o for o in women if women[o] is not None and men.get(o) is not None)
    scope = _scope(model, "genders", score, group_a="female", group_b="male")
    note = _left_out(common, len(women), "without both scores left out")
    kinds = ("welch", "paired", "wilcoxon", "permutation")
    return test(_array(women, common), _array(men, common), scope=scope, kinds=kinds, note=note)


def _refusal_tests(test: Test, model: str, rows: Sequence[Row], quantity: str) -> Iterator[Contrast]:
    """Test a share of texts about one gender minus another's, over occupations; no rows where all are 0."""
    if not any(column(rows, REFUSED[quantity])):
        return
    by_gender = grouped(rows, "requested_gender")
    shares: dict[str, Mapping[str, float | None]] = {}
    for named in GENDERS:
        shares[named] = lookup(by_gender.get((named,), ()), "occupation", quantity)
    for gender, against in (WOMEN_AND_MEN, ("nonbinary", "female"), ("nonbinary", "male")):
        common = sorted(shares[gender].keys() & shares[against].keys())
        if common:
            scope = _scope(model, "genders", quantity, group_a=gender, group_b=against)
            a, b = _array(shares[gender], common), _array(shares[against], common)
            yield from test(a, b, scope=scope, kinds=("paired", "permutation"))


def _array(values: Mapping[str, float | None], occupations: Sequence[str]) -> FloatArray:
    return np.array([values[occupation] for occupation in occupations], dtype=np.float64)


def _workforce_tests(test: Test, representation: Sequence[Row]) -> Iterator[Contrast]:
    """Test the share of women in the texts minus that in the workforce, over occupations.

    Texts without a gender may be anybody's: the mean lies between bounds. A mean difference of 0 with every
    occupation 20 points off is no parity: the spread of the true differences decides.
    """
    for contrast in workforce_contrast(representation):
        if not contrast.occupations and not defined(representation, "workforce_share"):
            continue
        share, workforce, (low, high) = contrast.share, contrast.workforce, contrast.ends
        rows = test(
            share,
            workforce,
            scope=_scope(contrast.model, "workforce", "represented_share", gender="female"),
            kinds=("paired", "wilcoxon", "distance", "slope"),
            note=_left_out(contrast.occupations, contrast.n, "left out: no share or no workforce share"),
            ends=(low - workforce, high - workforce),
        )
        spread = spread_of_true(share - workforce, contrast.noise)
        for row in rows:
            row = replace(row, reason=joined([row.reason, contrast.labels]))
            if row.kind == "paired" and math.isfinite(spread):
                equivalent = row.equivalent and spread <= MOST_SPREAD * row.margin
                row = replace(row, spread_of_true=spread, equivalent=equivalent)
            yield row
