"""A stored run held against its model, which is queried once more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from biaskit.errors import BiaskitError
from biaskit.measurement import Measurement
from biaskit.models.base import closing_stream
from biaskit.models.entry import ModelEntry
from biaskit.models.spec import is_api
from biaskit.progress import Watcher
from biaskit.records import Failed, Sample, SampleRequest, Scored
from biaskit.runs.designs import Design
from biaskit.runs.start import ApiArguments, LocalArguments, api_options, local_options
from biaskit.runs.verification import Check, Outcome, Pair
from biaskit.stats.same_counts import p_of_same_counts
from biaskit.tables.query import Row

TOLERANCES = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.25, "server": 0.25, "script": 1e-9}
"""How far a log-probability may move with processor, batch and library, by the dtype of the weights.

Batch shapes alone move float32 by up to 6e-5, two machines by less than 1e-3; the others keep 11 and 8 bits.
"""
ROUNDED = ("bfloat16", "float16", "server")
"""Where sums depend on processor and batch so far that they may turn a sample."""
NEGLIGIBLE = math.log(1e-9)
"""Below a probability of 1e-9 the difference of two logarithms says nothing of a share."""
ALPHA = 0.05
"""How often samples of one distribution may be called different, over all cells of a model together."""


class VerifyArguments(LocalArguments, ApiArguments, total=False):
    """How the models of a run are reached once more."""


@dataclass(frozen=True, slots=True)
class Again:
    """How the models of a run are queried once more."""

    kind: Measurement
    design: Design
    call: VerifyArguments
    watcher: Watcher
    seed: int

    def checks(self, label: str, spec: str, entry: ModelEntry, drawn: Sequence[Pair]) -> Iterator[Check]:
        """Check whether a model is the run's, and whether it answers again as the drawn rows say."""
        name = f"{self.kind.unit}s"
        if entry.where != "scripted":  # what was drawn without a seed comes out otherwise
            drawn = [
                (row, r) for row, r in drawn if not isinstance(r, SampleRequest) or row["seed"] is not None
            ]
        called = "a callable cannot be queried from a command" if spec.startswith("writer:") else ""
        if called or not drawn:
            yield Check.left_out(name, called or "it has no row that could be queried again", label)
            return
        requests = [request for _, request in drawn]
        texts = isinstance(requests[0], SampleRequest)
        answers: dict[str, Any] = {}
        try:
            with closing(self._opened(label, spec, entry, texts=texts)) as model:
                faults, identity = [], model.identity
                if identity.fingerprint != entry.fingerprint:
                    details = identity.details.items()
                    apart = [f"{key} {value}" for key, value in details if value != entry.details.get(key)]
                    faults = [f"not the run's model: {', '.join(apart) or identity.fingerprint[:12]}"]
                yield Check.of("model", faults, "the same", label)
                batches = (model.plan_samples if texts else model.plan_scores)(requests).batches
                self.watcher.progress(label, 0, len(requests))
                with closing_stream((model.generate if texts else model.score)(batches)) as groups:
                    for group in groups:
                        answers |= {answer.key: answer for answer in group}
                        self.watcher.progress(label, len(answers), len(requests))
        except BiaskitError as error:
            yield Check.left_out("model", f"it cannot be queried here: {error}", label)
            return
        pairs = [(row, answers[r.key]) for row, r in drawn if isinstance(answers.get(r.key), Sample | Scored)]
        if not pairs:
            failed = (answer.reason for answer in answers.values() if isinstance(answer, Failed))
            yield Check.left_out(name, f"none was answered: {next(failed, 'no answer came')}", label)
            return
        where = {"api": "server", "scripted": "script"}
        dtype = where.get(entry.where, str(entry.details.get("dtype")))
        if texts:
            found = _compare_texts(self.kind, pairs, dtype)
        elif "counts" in pairs[0][0]:
            found = _compare_samples(pairs, dtype, self.seed)
        else:
            found = _compare_points(self.kind, pairs, dtype)
        n_unanswered = len(drawn) - len(pairs)
        text = f"{len(pairs):,} queried again, {found.pop('text')}"
        if n_unanswered:
            text += f"; {n_unanswered:,} not answered"
        outcome: Outcome = "not-checked" if n_unanswered or found["beyond"] else "agrees"
        if found["beyond"] and not (texts and dtype in ROUNDED):
            outcome = "differs"
        yield Check(name=name, outcome=outcome, text=text, model=label, asked=len(pairs), **found)

    def _opened(self, label: str, spec: str, entry: ModelEntry, *, texts: bool) -> Any:
        """Open a model as the run had it: with its dtype, its estimator, its template's date and thoughts."""
        study = self.design.study
        before = entry.batch_size if texts else None  # a batch's shape may turn a sample
        local = local_options(self.call, study, self.call.get("batch_size") or before).as_before(entry)
        how: dict[str, Any] = {"label": label, "local": local}
        if is_api(spec):
            how |= {"api": api_options(self.call, {label: spec}, self.watcher, study), "known": entry}
        return self.kind.open_model(self.design, spec, asked_as=entry, **how)


def _compare_texts(kind: Measurement, pairs: Sequence[tuple[Row, Sample]], dtype: str) -> dict[str, Any]:
    """Compare texts byte for byte. Returns fields of a `Check`, as the next two do."""
    others = []
    for row, answer in pairs:
        if (row["prompt"], row["text"], row["finish_reason"]) != (answer.prompt, answer.text, answer.finish):
            others.append(kind.named(row))
    if not others:
        return {"text": "the same", "beyond": 0}
    why = f" ({dtype}: rounding may change a sample)" if dtype in ROUNDED else ""
    return {"text": f"{len(others):,} differ: {others[0]}{why}", "beyond": len(others)}


def _compare_samples(pairs: Sequence[tuple[Row, Scored]], dtype: str, seed: int) -> dict[str, Any]:
    """Compare samples one by one where the cell's seed repeats them, else counts by one permutation test."""
    if dtype in ("float32", "script"):
        beyond = sum([*map(tuple, row["answers"])] != list(answer.answers or ()) for row, answer in pairs)
        return {"text": f"the samples of {beyond or 'none'} differ", "beyond": beyond}
    tallies = []
    for row, answer in pairs:
        group_of = {e.text: e.group for e in answer.log_probs}
        before = _tally(group_of, row["counts"], row["samples"])
        tallies.append((before, _tally(group_of, answer.counts or {}, answer.samples or 0)))
    p = p_of_same_counts(tallies, seed)
    text = f"samples compared by a permutation test, p = {p:.2g}"
    return {"text": text, "beyond": len(pairs) if p < ALPHA else 0}


def _tally(group_of: Mapping[str, str], counts: Mapping[str, int], samples: int) -> list[int]:
    """Count samples by gender group, and those that name none."""
    named = dict.fromkeys(group_of.values(), 0)
    for text, n in counts.items():
        named[group_of[text]] += n
    return [*named.values(), samples - sum(named.values())]


def _compare_points(kind: Measurement, pairs: Sequence[tuple[Row, Scored]], dtype: str) -> dict[str, Any]:
    """Compare log-probabilities, or lists of them, within the tolerance of the run's dtype."""
    tolerance = TOLERANCES.get(dtype, TOLERANCES["bfloat16"])
    farthest = [max(_distances(row, answer, kind.named(row)), default=(0.0, "")) for row, answer in pairs]
    largest, where = max(farthest)
    beyond = sum(distance > tolerance for distance, _ in farthest)
    text = f"largest difference {largest:.1e}, tolerance {tolerance:g} ({dtype})"
    if beyond:
        text += f"; {beyond:,} above it, most at {where}"
    known = largest if math.isfinite(largest) else None
    return {"text": text, "beyond": beyond, "largest": known, "tolerance": tolerance}


def _distances(row: Row, answer: Scored, where: str) -> Iterator[tuple[float, str]]:
    """Yield how far each log-probability of a row is from today's, and where that is."""
    if row["prompt"] != answer.prompt:
        yield math.inf, f"{where}: the prompt has changed"
    elif answer.listed is not None:
        for before in {*row["listed"], *answer.listed}:
            then, now = (dict(listed.get(before, ())) for listed in (row["listed"], answer.listed))
            # A token that only one list has stands at the end of the other's.
            ends = [min(listed.values(), default=-math.inf) for listed in (then, now)]
            for token in {*then, *now}:
                yield _distance(then.get(token, ends[0]), now.get(token, ends[1])), f"{where}: {token!r}"
    else:
        stored = {(e["group"], e["text"]): e["log_prob"] for e in row["target_words"]}
        for e in answer.log_probs:
            yield _distance(stored.get((e.group, e.text)), e.high), f"{where}: {e.text!r}"


def _distance(before: float | None, after: float | None) -> float:
    low, high = sorted(-math.inf if log is None else log for log in (before, after))
    return 0.0 if high < NEGLIGIBLE else high - low
