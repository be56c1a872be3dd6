"""From the probabilities of sentence pairs to their tables and tests (methods/probabilities#pairs)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from biaskit.common.wording import joined
from biaskit.measures.probe.rows import as_json
from biaskit.records import Cell, SentencePair
from biaskit.stats.arms import OF_PAIRS, Arm
from biaskit.stats.arrays import FloatArray
from biaskit.stats.clustered import Gap, gap_of_pairs, spread_of_pairs, wilson_of_clusters
from biaskit.stats.contrasts import Row, one_row, scope_of
from biaskit.stats.crossed import share_interval
from biaskit.tables.query import Row as StoredRow
from biaskit.tables.query import distinct, where
from biaskit.tables.schema import SCHEMAS, Column

ALL = "all"
"""The language, or the stereotype, of a row over all of them."""
OF_ALL, OF_LANGUAGES = "pairs", "languages"  # contrasts
ONE_SIDE = "no language has pairs of both directions: stereotypes cannot be told from other preferences"
Sentences = Sequence[Mapping[str, Any]]
"""The expressions of a stored row."""


def pair_tables(
    cells: Sequence[Cell],
    sentences: Sequence[Sentences | None],  # beside each cell, what its row says of them
    estimators: Mapping[str, str],  # by model
    pairs: Sequence[SentencePair],
    margins: Mapping[str, float],
) -> dict[str, list[Row]]:
    """Make the rows of pair_scores, pair_groups and tests, by table name."""
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
        for language, stereotype, rows in _groups(where(scores, model=model)):
            known = [row for row in rows if row.get("female_share") is not None]
            shares = np.array([row["female_share"] for row in known])
            gap = gap_of_pairs(shares, known) if known else None
            scope = {"model": model, "estimator": rows[0]["estimator"]}
            scope |= {"language": language, "stereotype": stereotype}
            groups.append({**scope, **_averages(known, shares, gap, len(rows))})
            if gap is not None and stereotype == ALL:
                contrast = scope_of(Arm(model, *OF_PAIRS), OF_ALL if language == ALL else OF_LANGUAGES)
                contrast = replace(contrast, gender="female", group_a=language, group_b=language, unit="pair")
                tests.append(
                    one_row("crossed", gap.test, scope=contrast, n=gap.n_pairs, margins=margins, note=None)
                )
    return {**_filled("pair_scores", scores), **_filled("pair_groups", groups), "tests": tests}


def _filled(table: str, rows: Sequence[Row]) -> dict[str, list[Row]]:
    columns = [part.name for part in SCHEMAS[table].parts if isinstance(part, Column)]
    return {table: [{name: row.get(name) for name in columns} for row in rows]}


def _score(pair: SentencePair, said: Sentences | None) -> Row:
    """Compare the sentences of one pair; without an answer a row without numbers, and the reason."""
    from scipy.special import expit, softmax

    row: Row = {name: getattr(pair, name) for name in ("language", "stereotype", "item", "direction")}
    if said is None:
        return {**row, "reason": "no answer stored"}
    log_prob = {e["group"]: -math.inf if e["log_prob"] is None else float(e["log_prob"]) for e in said}
    # Of each sentence those from the first token that differs.
    tokens = {e["group"]: len(e.get("token_ids") or e.get("tokens") or ()) for e in said}
    women, men = log_prob["female"], log_prob["male"]
    if women == men == -math.inf:
        return {**row, "reason": "both sentences are impossible"}
    log_ratio = women - men
    row |= {"log_ratio": as_json(log_ratio), "female_share": float(expit(log_ratio))}
    if "diverse" in log_prob:
        row["diverse_share"] = float(softmax([log_prob["diverse"], women, men])[0])
    if tokens["female"] and tokens["male"]:
        row |= {"n_tokens_female": tokens["female"], "n_tokens_male": tokens["male"]}
        row["log_ratio_per_token"] = as_json(women / tokens["female"] - men / tokens["male"])
    if pair.direction:
        row["expected"] = log_ratio > 0 if pair.direction == "female" else log_ratio < 0
    return row


def _groups(scores: Sequence[StoredRow]) -> Iterator[tuple[str, str, list[StoredRow]]]:
    """Yield all pairs, then each language, each stereotype and each of both; one alone is not said twice."""
    languages, stereotypes = ([ALL, *distinct(scores, name)] for name in ("language", "stereotype"))
    languages, stereotypes = (names if len(names) > 2 else [ALL] for names in (languages, stereotypes))
    for stereotype, language in product(stereotypes, languages):
        of_both = {"language": language, "stereotype": stereotype}
        if rows := where(scores, **{name: value for name, value in of_both.items() if value != ALL}):
            yield language, stereotype, rows


def _averages(known: Sequence[StoredRow], shares: FloatArray, gap: Gap | None, n: int) -> Row:
    """Average pairs, each with equal weight; `known`: those of `n` that have an answer, with their shares."""
    missing = f"no answer to {n - len(known)} of {n} pairs" if len(known) < n else None
    turned = [(r["log_ratio"] or 0.0) * (r.get("log_ratio_per_token") or 0.0) < 0 for r in known]
    row: Row = {"n_pairs": len(known), "n_directed": 0, "n_per_token_differs": sum(turned), "reason": missing}
    if not known:
        return row
    spread, row["female_share"] = spread_of_pairs(shares, known), float(shares.mean())
    if spread.variance is not None and spread.dof is not None:
        interval = share_interval(shares.mean(), spread.variance, spread.dof)
        row["ci_low"], row["ci_high"] = map(float, interval)
    diverse = [r["diverse_share"] for r in known if r.get("diverse_share") is not None]
    row["diverse_share"] = float(np.mean(diverse)) if diverse else None
    if directed := [r for r in known if r.get("expected") is not None]:
        # A pair whose sentences are equally probable is none that the stereotype expects, as in CrowS-Pairs.
        expected = np.array([float(r["expected"]) for r in directed])
        rate = float(expected.mean())
        row |= {"n_directed": len(directed), "expected_rate": rate}
        ends = wilson_of_clusters(rate, len(directed), spread_of_pairs(expected, directed))
        row["expected_low"], row["expected_high"] = ends or (None, None)
    if gap is None:
        lacking = ONE_SIDE if directed and len({r["stereotype"] for r in directed}) > 1 else None
        return {**row, "reason": joined([missing, spread.reason, lacking])}
    row |= {"share_where_female": gap.women, "share_where_male": gap.men, "gap": gap.test.estimate}
    row["gap_low"], row["gap_high"] = gap.test.ci95 or (None, None)
    return {**row, "reason": joined([missing, spread.reason, gap.test.reason])}


def notes_of_pairs(tables: Mapping[str, Sequence[StoredRow]]) -> Iterator[str]:
    """Yield the warnings that belong beside the tables of pairs."""
    for row in where(tables["pair_groups"], language=ALL, stereotype=ALL):
        n = len(where(tables["pair_scores"], model=row["model"]))
        if row["n_pairs"] < n:
            missing = f"{row['model']}: {n - row['n_pairs']} of {n} pairs have no share"
            yield f"{missing}; pair_scores.csv gives the reasons"
        if not row["n_directed"]:
            yield "no pair has a direction: what stereotypes expect is not measured"
        if ONE_SIDE in (row["reason"] or ""):
            yield f"{row['model']}: {ONE_SIDE}"
        if n_differs := row["n_per_token_differs"]:
            yield (
                f"{row['model']}: in {n_differs} of {row['n_pairs']} pairs the other sentence is the more"
                " probable one per token: the two differ in length (pair_scores.csv)"
            )
    if len({row["estimator"] for row in tables["pair_groups"]}) > 1:
        yield "estimators differ between the models: they may explain part of a difference"
