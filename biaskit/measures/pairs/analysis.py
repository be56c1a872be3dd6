"""From stored rows of sentence pairs to the public tables of a run (methods/probabilities#pairs)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.common.plain import attributes
from biaskit.common.provenance import canonical_json
from biaskit.common.wording import joined
from biaskit.compare.comparison import merge_tests
from biaskit.errors import RunError
from biaskit.measurement import words
from biaskit.measures.pairs.compare import between_models_on_pairs
from biaskit.measures.pairs.design import PairsDesign, read
from biaskit.progress import Watcher
from biaskit.records import ALL, ScoreRequest, SentencePair
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import read_manifest
from biaskit.runs.score_rows import as_json, describe_analysis, fault_of
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.stats.arrays import FloatArray
from biaskit.stats.clustered import Gap, gap_of_pairs, mean_of_pairs, wilson_of_clusters
from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.contrasts import adjust, one_row
from biaskit.stats.crossed import share_interval
from biaskit.stats.proportions import at_an_end
from biaskit.stats.verdict import Rule
from biaskit.tables.query import Row, column, defined, distinct, named, where
from biaskit.tables.schema import SCHEMAS, Column
from biaskit.tables.sets import TableSet

METHODS_VERSION = {"pairs": 3}
"""Raised when the same rows would give other tables."""
CHOICES = ("margin", "tie_zone", "conclusion", "skip_bad_lines")
"""Keys that analysis.json states, so that the same tables can be made again."""
OF_ALL, OF_LANGUAGES = "pairs", "languages"  # contrasts
Planned = dict[str, Sequence[ScoreRequest]]
"""Model → the request of each pair."""
ONE_SIDE = "no language has pairs of both directions: stereotypes cannot be told from other preferences"


def tables(run: Path, overrides: Mapping[str, Any] | None = None, watcher: Watcher | None = None) -> TableSet:
    """Make every table of a run from its rows, rows between its models included."""
    manifest, made = read_manifest(run), TableSet(run)
    design = read(manifest.resolved, overrides)
    study, models = design.study, manifest.models
    reading, answerers = Reading(), Answerers()
    planned: Planned = {}
    for label, entry in models.items():
        planned[label] = list(design.requests(entry.fingerprint, entry.estimator_key))
    answers, n_unused = _answers(run, design, planned, reading, answerers)
    scores, used = _scores(design, planned, answers)
    groups, tests = group_rows(scores, study.margin)
    tests = adjust(tests, Rule(strict=study.strict))
    if len(models) > 1:
        between = between_models_on_pairs(scores, manifest.resolved["pairs"], study.margin)
        tests = merge_tests(tests, between, Rule(("female",), study.strict))
    made.add("pair_scores", scores)
    made.add("pair_groups", groups)
    if tests:
        made.add("tests", tests)
    made.notes += reading.notes
    notes = [*design.notes, *_notes(scores, groups)]
    how: dict[str, Any] = {"methods": METHODS_VERSION, "rows_digest": used, "n_prompts": len(scores)}
    describe_analysis(made, design, manifest, answerers, notes, keys=CHOICES, n_unused=n_unused, **how)
    return made


def _answers(
    run: Path, design: PairsDesign, planned: Planned, reading: Reading, answerers: Answerers
) -> tuple[dict[str, Row], int]:
    """Read every row once, and say what is wrong with one that does not fit (or leave it out).

    Returns what each request's row says, by key, and how many rows were not needed.
    """
    path, skip_bad = rows_file(run, "pairs"), design.study.skip_bad_lines
    if not path.is_file():
        raise RunError(f"{run} has no {path.name}: nothing was stored there. Rerun the command.")
    words_of = {request.key: request.target_words for request in chain.from_iterable(planned.values())}
    answers, n_unused = dict[str, Row](), 0
    for row in answerers.counting(read_rows(path, skip_bad=skip_bad, reading=reading)):
        if row["key"] not in words_of:
            n_unused += 1
        elif (fault := fault_of(row, words_of[row["key"]])) is not None:
            reading.refuse(path, fault, skip_bad=skip_bad)
        else:
            answerers.add_answers(row)
            answers[row["key"]] = {name: row[name] for name in ("estimator", "target_words")}
    return answers, n_unused


def _scores(design: PairsDesign, planned: Planned, answers: Mapping[str, Row]) -> tuple[list[Row], str]:
    """Make the rows of pair_scores in study order, and the digest of the rows that were used."""
    made, sums = list[Row](), hashlib.sha256()
    for label, requests in planned.items():
        keys = [request.key for request in requests]
        estimator = next((answers[key]["estimator"] for key in keys if key in answers), None)
        for pair, key in zip(design.pairs, keys, strict=True):
            said = answers[key]["target_words"] if key in answers else None
            if said is not None:
                sums.update(canonical_json([key, said]).encode("ascii"))
            made.append(score_of(pair, said) | {"model": label, "estimator": estimator})
    return made, sums.hexdigest()


def group_rows(scores: Sequence[Row], margins: Mapping[str, float]) -> tuple[list[Row], list[Contrast]]:
    """Make the rows of pair_groups, and the tests of their gaps."""
    groups: list[Row] = []
    tests: list[Contrast] = []
    for model in distinct(scores, "model"):
        for language, stereotype, rows in _groups(where(scores, model=model)):
            known = defined(rows, "female_share")
            shares = np.array(column(known, "female_share"))
            gap = gap_of_pairs(shares, known) if known else None
            scope = {"model": model, "estimator": rows[0]["estimator"]}
            scope |= {"language": language, "stereotype": stereotype}
            groups.append(_averages(known, shares, gap, len(rows)) | scope)
            if gap is None or stereotype != ALL:
                continue
            own = Scope("pairs", OF_ALL if language == ALL else OF_LANGUAGES, model, model, unit="pair")
            own = replace(own, gender="female", group_a=language, group_b=language)
            if at_an_end(gap.women, gap.men):
                known = defined(known, "log_ratio")
                gap = gap_of_pairs(np.array(column(known, "log_ratio")), known, limit=math.inf)
                own = replace(own, quantity="log_ratio")
            if gap is not None:
                test = one_row("crossed", gap.test, scope=own, n=gap.n_pairs, margins=margins, note=None)
                tests.append(test)
    return groups, tests


def _empty(table: str) -> dict[str, Any]:
    """Make a row without a number, to be filled in."""
    return dict.fromkeys(part.name for part in SCHEMAS[table].parts if isinstance(part, Column))


def score_of(pair: SentencePair, said: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Compare the sentences of one pair, as a row holds them; without an answer a row with the reason."""
    from scipy.special import expit, softmax

    row = _empty("pair_scores") | attributes(pair, ("language", "stereotype", "item", "direction"))
    if said is None:
        return row | {"reason": "no answer stored"}
    log_prob = {e["group"]: -math.inf if e["log_prob"] is None else float(e["log_prob"]) for e in said}
    # Of each sentence those from the first token that differs.
    tokens = {e["group"]: len(e.get("token_ids") or e.get("tokens") or ()) for e in said}
    women, men = log_prob["female"], log_prob["male"]
    if women == men == -math.inf:
        return row | {"reason": "both sentences are impossible"}
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


def _groups(scores: Sequence[Row]) -> Iterator[tuple[str, str, list[Row]]]:
    """Yield all pairs, then each language, each stereotype and each of both; one alone is not said twice."""
    names_of: dict[str, list[str]] = {}
    for name in ("stereotype", "language"):
        names = distinct(scores, name)
        names_of[name] = [ALL, *names] if len(names) > 1 else [ALL]
    for stereotype, language in product(*names_of.values()):
        rows = list(scores) if language == ALL else where(scores, language=language)
        if rows := rows if stereotype == ALL else where(rows, stereotype=stereotype):
            yield language, stereotype, rows


def _averages(known: Sequence[Row], shares: FloatArray, gap: Gap | None, n: int) -> dict[str, Any]:
    """Average pairs, stereotypes with equal weight; `known`: those of `n` that have an answer."""
    missing = f"no answer to {n - len(known)} of {n} pairs" if len(known) < n else None
    turned = sum((r["log_ratio"] or 0.0) * (r["log_ratio_per_token"] or 0.0) < 0 for r in known)
    row = _empty("pair_groups") | {"n_pairs": len(known), "n_directed": 0, "n_per_token_differs": turned}
    row["reason"] = missing
    if not known:
        return row
    row["female_share"], spread = mean_of_pairs(shares, known)
    if spread.variance is not None and spread.dof is not None:
        interval = share_interval(row["female_share"], spread.variance, spread.dof)
        row["ci_low"], row["ci_high"] = map(float, interval)
    if three := defined(known, "diverse_share"):
        row["diverse_share"] = mean_of_pairs(np.array(column(three, "diverse_share")), three)[0]
    if directed := defined(known, "expected"):
        # A pair whose sentences are equally probable is none that the stereotype expects, as in CrowS-Pairs.
        expected = np.array(column(directed, "expected"), np.float64)
        row["n_directed"] = len(directed)
        row["expected_rate"], of_rate = mean_of_pairs(expected, directed)
        ends = wilson_of_clusters(row["expected_rate"], len(directed), of_rate)
        row["expected_low"], row["expected_high"] = ends or (None, None)
    if gap is None:
        lacking = ONE_SIDE if len(distinct(directed, "stereotype")) > 1 else None
        return {**row, "reason": joined([missing, spread.reason, lacking])}
    row |= {"share_where_female": gap.women, "share_where_male": gap.men, "gap": gap.test.estimate}
    row["gap_low"], row["gap_high"] = gap.test.ci95 or (None, None)
    return {**row, "reason": joined([missing, spread.reason, gap.test.reason])}


def _notes(scores: Sequence[Row], groups: Sequence[Row]) -> Iterator[str]:
    notes = words("pairs")["notes"]
    if not named(scores, "direction"):
        yield notes["no_direction"]
    for row in where(groups, language=ALL, stereotype=ALL):
        model, n = row["model"], len(where(scores, model=row["model"]))
        if row["n_pairs"] < n:
            yield notes["no_share"].format(model, n - row["n_pairs"], n)
        if ONE_SIDE in (row["reason"] or ""):
            yield f"{model}: {ONE_SIDE}"
        if row["n_per_token_differs"]:
            yield notes["lengths"].format(model, row["n_per_token_differs"], row["n_pairs"])
