"""The pairs that models were asked, as a task of lm-evaluation-harness (`exchange/lm_eval_task.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from biaskit.exchange.lm_eval_task import Asked, line_of
from biaskit.measures.pairs.design import read
from biaskit.runs.collection import StoredRun


def tasks(run: StoredRun, notes: list[str]) -> Iterator[Asked]:  # noqa: ARG001 (every kind's arguments)
    """Yield each model with its task: a cell for each pair, whose words are its sentences."""
    design = read(run.manifest.resolved)
    words_of = {row["key"]: row["target_words"] for row in run.rows()}  # with their tokens
    for label, entry in run.manifest.models.items():
        lines = []
        for number, request in enumerate(design.requests(entry.fingerprint, entry.estimator_key), start=1):
            lines.append(line_of(number, "sentence", request, words=words_of.get(request.key)))
        yield Asked(label, {"pairs_sentences": lines}, design.groups)
