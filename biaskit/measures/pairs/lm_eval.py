"""Pairs of sentences as tasks of lm-evaluation-harness (`exchange/lm_eval_task.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from biaskit.exchange.lm_eval_task import Asked, line_of, metrics_of, words_of_request
from biaskit.measures.pairs.design import read
from biaskit.models.token_trie import shortest_extensions
from biaskit.runs.collection import StoredRun
from biaskit.runs.manifest import estimator_of


def tasks(run: StoredRun, notes: list[str]) -> Iterator[Asked]:
    """Yield each model with one task, whose lines are the pairs."""
    design = read(run.manifest["resolved"])
    metrics = metrics_of(design.groups)
    metric_of = dict(zip(design.groups, metrics, strict=True))
    tokens_of = {row["key"]: row["expressions"] for row in run.rows()}
    for label, entry in run.manifest["models"].items():
        asked = Asked(label, {"sentences": []}, metrics)
        requests = design.requests(entry["fingerprint"], entry["estimator"])
        for number, (pair, request) in enumerate(zip(design.pairs, requests, strict=True), 1):
            said = tokens_of.get(request.key) or words_of_request(request, pair.prefix)
            tokens = [tuple(sentence.get("token_ids") or ()) for sentence in said]
            longer = shortest_extensions(tokens) if all(tokens) else [[] for _ in said]
            texts = [sentence["text"] for sentence in said]
            line = line_of(pair.prefix, texts, [metric_of[sentence["group"]] for sentence in said], longer)
            asked.lines["sentences"].append({"template_id": number, "job": pair.item, **line})
        if (how := estimator_of(entry)) != "exact":
            notes.append(f"{label} was measured by {how}; the harness needs every log-probability")
        yield asked
