"""From the probabilities of sentence pairs to their tables and tests (methods/probabilities#pairs)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from biaskit.records import WOMEN_AND_MEN, Cell, SentencePair
from biaskit.stats.arms import OF_PAIRS, Arm
from biaskit.stats.clustered import gap_of_pairs, spread_of_pairs, wilson_of_clusters
from biaskit.stats.contrasts import Row, one_row, scope_of
from biaskit.stats.crossed import joined, share_interval
from biaskit.tables.query import Row as StoredRow
from biaskit.tables.query import distinct, where
from biaskit.tables.schema import SCHEMAS, Column

ALL = "all"
"""The language, or the stereotype, of a row over all of them."""
OF_ALL, OF_LANGUAGES = "pairs", "languages"  # contrasts
ONE_SIDE = "all pairs expect the same side: a stereotype cannot be told from a general preference"
Sentences = Sequence[Mapping[str, Any]]
"""The expressions of a stored row."""


def pair_tables(
    cells: Sequence[Cell],
    sentences: Sequence[Sentences | None],
    estimators: Mapping[str, str],
    pairs: Sequence[SentencePair],
    margins: Mapping[str, float],
) -> dict[str, list[Row]]:
    """Make the rows of pair_scores, pair_groups and tests, by table name.

    `cells` and, beside each, what its row says of its sentences; `estimators`: by model.
    """
    scores: list[Row] = [
        {
            "model": cell.model,
            "estimator": estimators.get(cell.model),
            **_score(pairs[cell.template_id - 1], said),
        }
        for cell, said in zip(cells, sentences, strict=True)
    ]
    groups: list[Row] = []
    tests: list[Row] = []
    for model in distinct(scores, "model"):
        of_model = where(scores, model=model)
        for language, stereotype, rows in _groups(of_model):
            groups.append(_group_row(language, stereotype, rows))
            if stereotype == ALL:
                tests += _test(language, rows, margins)
    made = {"pair_scores": scores, "pair_groups": groups}
    columns = {name: [part.name for part in SCHEMAS[name].parts if isinstance(part, Column)] for name in made}
    filled = {name: [{c: row.get(c) for c in columns[name]} for row in rows] for name, rows in made.items()}
    return {**filled, "tests": tests}


def _score(pair: SentencePair, said: Sentences | None) -> Row:
    """Compare the sentences of one pair; without an answer a row without numbers, and the reason.

    `log_ratio`: log P(feminine) − log P(masculine); `log_ratio_per_token` divides each by the number of its
    tokens from the first that differs.
    """
    row: Row = {"language": pair.language, "stereotype": pair.stereotype, "item": pair.item}
    row["direction"] = pair.direction
    if said is None:
        return {**row, "reason": "no answer stored"}
    log_prob = {e["group"]: -math.inf if e["log_prob"] is None else float(e["log_prob"]) for e in said}
    tokens = {e["group"]: len(e.get("token_ids") or e.get("tokens") or ()) for e in said}
    women, men = log_prob["female"], log_prob["male"]
    if women == men == -math.inf:
        return {**row, "reason": "both sentences are impossible"}
    log_ratio = women - men
    row |= {
        "log_ratio": log_ratio if math.isfinite(log_ratio) else None,
        "female_share": _logistic(log_ratio),
    }
    if "diverse" in log_prob:
        peak = max(log_prob.values())
        mass = {group: math.exp(value - peak) for group, value in log_prob.items()}
        row["diverse_share"] = mass["diverse"] / math.fsum(mass.values())
    if tokens["female"] and tokens["male"]:
        per_token = women / tokens["female"] - men / tokens["male"]
        row |= {"n_tokens_female": tokens["female"], "n_tokens_male": tokens["male"]}
        row |= {"log_ratio_per_token": per_token if math.isfinite(per_token) else None}
    if pair.direction:
        row["expected"] = log_ratio > 0 if pair.direction == "female" else log_ratio < 0
    return row


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x)) if x > -700 else 0.0


def _groups(scores: Sequence[StoredRow]) -> Iterator[tuple[str, str, list[StoredRow]]]:
    """Yield all pairs, then each language, each stereotype and each of both; one alone is not said twice."""
    languages, stereotypes = ([ALL, *distinct(scores, name)] for name in ("language", "stereotype"))
    languages, stereotypes = (names if len(names) > 2 else [ALL] for names in (languages, stereotypes))
    for stereotype, language in product(stereotypes, languages):
        of_both = {"language": language, "stereotype": stereotype}
        if rows := where(scores, **{name: value for name, value in of_both.items() if value != ALL}):
            yield language, stereotype, rows


def _group_row(language: str, stereotype: str, rows: Sequence[StoredRow]) -> Row:
    """Average the pairs of a language and a stereotype, each with equal weight."""
    known = [row for row in rows if row.get("female_share") is not None]
    missing = (
        f"no answer to {len(rows) - len(known)} of {len(rows)} pairs" if len(known) < len(rows) else None
    )
    differing = [
        row
        for row in known
        if (per_token := row.get("log_ratio_per_token")) is not None
        and row["log_ratio"] is not None
        and per_token * row["log_ratio"] < 0
    ]
    row: Row = {name: rows[0][name] for name in ("model", "estimator")}
    row |= {"language": language, "stereotype": stereotype, "n_pairs": len(known)}
    row |= {"n_per_token_differs": len(differing), "n_directed": 0}
    if not known:
        return {**row, "reason": missing}
    shares = np.array([row["female_share"] for row in known])
    spread, mean = spread_of_pairs(shares, known), float(shares.mean())
    row["female_share"] = mean
    if spread.variance is not None and spread.dof is not None:
        row["ci_low"], row["ci_high"] = map(float, share_interval(mean, spread.variance, spread.dof))
    diverse = [r["diverse_share"] for r in known if r.get("diverse_share") is not None]
    row["diverse_share"] = float(np.mean(diverse)) if diverse else None
    reasons = [missing, spread.reason]
    if directed := [r for r in known if r.get("expected") is not None]:
        # A pair whose sentences are equally probable is none that the stereotype expects, as in CrowS-Pairs.
        expected = np.array([float(r["expected"]) for r in directed])
        rate = float(expected.mean())
        low, high = wilson_of_clusters(rate, len(expected), spread_of_pairs(expected, directed)) or (
            None,
            None,
        )
        row |= {"n_directed": len(directed), "expected_rate": rate}
        row |= {"expected_low": low, "expected_high": high}
    if (gap := gap_of_pairs(shares, known)) is not None:
        for direction in WOMEN_AND_MEN:
            of_side = [r["female_share"] for r in where(known, direction=direction)]
            row[f"share_where_{direction}"] = float(np.mean(of_side))
        low, high = gap.ci95 or (None, None)
        row |= {"gap": gap.estimate, "gap_low": low, "gap_high": high}
        reasons.append(gap.reason)
    elif directed and stereotype == ALL:
        reasons.append(ONE_SIDE)
    return {**row, "reason": joined(reasons)}


def _test(language: str, rows: Sequence[StoredRow], margins: Mapping[str, float]) -> Iterator[Row]:
    """Make the row of tests.csv of all pairs, or of a language, where stereotypes expect both sides."""
    known = [row for row in rows if row.get("female_share") is not None]
    gap = gap_of_pairs(np.array([row["female_share"] for row in known]), known)
    if gap is not None:
        model, contrast = str(rows[0]["model"]), OF_ALL if language == ALL else OF_LANGUAGES
        scope = scope_of(Arm(model, *OF_PAIRS), contrast)
        scope = replace(scope, gender="female", group_a=language, group_b=language, unit="pair")
        n = sum(row["direction"] is not None for row in known)
        yield one_row("crossed", gap, scope=scope, n=n, margins=margins, note=None)


def notes_of_pairs(tables: Mapping[str, Sequence[StoredRow]]) -> Iterator[str]:
    """Yield the warnings that belong beside the tables of pairs."""
    for row in where(tables["pair_groups"], language=ALL, stereotype=ALL):
        n = len(where(tables["pair_scores"], model=row["model"]))
        if row["n_pairs"] < n:
            missing = f"{row['model']}: {n - row['n_pairs']} of {n} pairs have no share"
            yield f"{missing}; pair_scores.csv gives the reasons"
        if n_differs := row["n_per_token_differs"]:
            yield (
                f"{row['model']}: in {n_differs} of {row['n_pairs']} pairs the other sentence is the more"
                " probable one per token: the two differ in length (pair_scores.csv)"
            )
    if len({row["estimator"] for row in tables["pair_groups"]}) > 1:
        yield "estimators differ between the models: they may explain part of a difference"
