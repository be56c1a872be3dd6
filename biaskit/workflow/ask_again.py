"""How `biaskit verify` asks a run's models again, each by its own, and what their answers come to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from biaskit.errors import BiaskitError
from biaskit.models.base import ContinuationScorer, Model, TextGenerator, closing_stream
from biaskit.models.options import LocalOptions, ScoringOptions
from biaskit.models.spec import full_spec, open_generator, open_scorer
from biaskit.personas.sampling.asked_again import begins_alike, is_same, text_name
from biaskit.probe.asked_again import (
    OF_SERVERS,
    TOLERANCES,
    Apart,
    answer_by_group,
    apart,
    cell_name,
    counts_by_group,
    drawn_apart,
)
from biaskit.progress import Watcher
from biaskit.provenance import versions
from biaskit.records import Draw, DrawRequest, Failed, Scored, ScoreRequest
from biaskit.runs.drift import model_of
from biaskit.runs.manifest import estimator_of
from biaskit.runs.verification import Check, Outcome
from biaskit.stats.same_counts import p_of_same_counts
from biaskit.wording import listed
from biaskit.workflow.calls import CallOptions
from biaskit.workflow.probe import scoring_of
from biaskit.workflow.verified_rows import Engine, LookedAt, Row

ALPHA = 0.05
"""How often a clean sampled run may be called different, over all its cells together."""
_DECIDE = ("torch", "transformers", "tokenizers")
"""Packages whose version may turn a draw or move a last digit."""
EXACTLY = 1e-9
"""Of scripted answers, which compute nothing."""


@dataclass(slots=True)
class Asking:
    """A run's models, asked again."""

    manifest: Mapping[str, Any]
    engine: Engine[Any]
    call: CallOptions
    specs: Mapping[str, str]  # label → what stands for the manifest's spec
    seed: int
    watcher: Watcher

    def checks(self, looked: LookedAt[Any]) -> list[Check]:
        """What each model is, and what it answers to the rows that were drawn."""
        if self.manifest["resolved"].get("imported"):
            said = "imported texts: nobody here was asked for them, and nobody can be asked again"
            return [Check("texts", "not-checked", said)]
        found: list[Check] = []
        for label, entry in self.manifest["models"].items():
            drawn = looked.drawn.get(label, [])
            what = f"{self.engine.unit}s"
            if not drawn and (twin := self._twin(label, entry, looked)):
                found.append(Check(what, "agrees", f"it is the same model as {twin}", label))
                continue
            if not drawn:
                found.append(Check(what, "not-checked", "it has no row that could be asked again", label))
                continue
            try:
                found += self._of_model(label, entry, drawn, looked.n_of[label])
            except BiaskitError as error:
                found.append(Check("model", "not-checked", f"it cannot be asked here: {error}", label))
        return found

    def _twin(self, label: str, entry: Mapping[str, Any], looked: LookedAt[Any]) -> str:
        """Another label of the same model, under which its rows were looked at; empty where there is none."""
        asked = ("fingerprint", "prompt_form", "estimator")
        return next(
            (
                other
                for other, its in self.manifest["models"].items()
                if other != label and other in looked.drawn and all(its.get(n) == entry.get(n) for n in asked)
            ),
            "",
        )

    def _of_model(
        self, label: str, entry: Mapping[str, Any], drawn: Sequence[tuple[Row, Any]], n: int
    ) -> list[Check]:
        model = self._opened(label, entry)
        try:
            checks = [_identity(label, entry, model)]
            ask = self._texts if self.engine.unit == "text" else self._cells
            return [*checks, ask(label, entry, model, drawn, n)]
        finally:
            model.close()

    def _opened(self, label: str, entry: Mapping[str, Any]) -> Any:
        """The model as the run had it: its dtype, its estimator, its template's date."""
        spec = self.specs.get(label, str(entry["spec"]))
        study = self.engine.design.study
        local = LocalOptions(
            self.call.device,
            self.call.dtype,
            entry.get("batch_size") if self.engine.unit == "text" else None,
            template_date=study.template_date,
        ).as_before(entry)
        more: dict[str, Any] = {"label": label, "local": local}
        if entry.get("where") == "api" or full_spec(spec).startswith(("api:", "openai:")):
            more |= {"api": self.call.api({label: spec}, self.watcher), "known": entry}
        if self.engine.unit == "text":
            return open_generator(spec, **more)
        return open_scorer(spec, **more, scoring=self._scoring(entry))

    def _scoring(self, entry: Mapping[str, Any]) -> ScoringOptions:
        """What the run measured of this model, by the estimator that it came to."""
        how, usual = entry.get("estimator", "exact"), replace(scoring_of(self.engine.design), next_tokens=0)
        if not isinstance(how, Mapping):
            return replace(usual, estimator="auto")
        named = {"k": how.get("k"), "draws": how.get("draws"), "new_tokens": how.get("max_new_tokens")}
        given = {name: value for name, value in named.items() if value is not None}
        return replace(usual, estimator=how["name"], **given)

    # --- cells ---

    def _cells(
        self,
        label: str,
        entry: Mapping[str, Any],
        scorer: ContinuationScorer,
        drawn: Sequence[tuple[Row, ScoreRequest]],
        n: int,
    ) -> Check:
        now = scorer.estimator_for(entry["prompt_form"]).in_key()
        if now != entry.get("estimator", "exact"):
            other = estimator_of({"estimator": now})
            said = f"its estimator is {estimator_of(entry)}, and it can be asked by {other} here"
            return Check("cells", "not-checked", said, label)
        plan = scorer.plan_scores([request for _, request in drawn])
        answers = self._answers(label, scorer.score(plan.batches), len(drawn))
        pairs = [(row, one) for row, request in drawn if isinstance(one := answers.get(request.key), Scored)]
        of = f"{len(pairs):,} of {n:,} cells asked again"
        if not pairs:
            return Check("cells", "not-checked", f"none was answered: {_reason(answers)}", label)
        found = self._counts(label, entry, pairs, of) if "counts" in pairs[0][0] else None
        found = found or _points(label, entry, pairs, of)
        found = _answered_by_another(found, entry, pairs)
        return _with_missing(found, len(drawn) - len(pairs), answers)

    def _answers(self, label: str, groups: Iterator[Any], n: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.watcher.progress(label, 0, n)
        with closing_stream(groups) as stream:
            for group in stream:
                found |= {answer.key: answer for answer in group}
                self.watcher.progress(label, len(found), n)
        return found

    def _counts(
        self, label: str, entry: Mapping[str, Any], pairs: Sequence[tuple[Row, Scored]], of: str
    ) -> Check:
        """Draws with seeds of their own one by one; others by their counts."""
        n = sum(row["draws"] for row, _ in pairs)
        if entry.get("where") != "api" and all("answers" in row for row, _ in pairs):
            wrong = {cell_name(row): drawn_apart(row, answer) for row, answer in pairs}
            wrong = {name: number for name, number in wrong.items() if number}
            if not wrong:
                said = f"{of}, all {n:,} draws the same"
                return Check("cells", "agrees", said, label, len(pairs), 0)
            if not (other := self._other_versions()):
                said = f"{of}, {sum(wrong.values()):,} of {n:,} draws are others: {listed(list(wrong)[:3])}"
                return Check("cells", "differs", said, label, len(pairs), len(wrong))
            of += f" (drawn with {other}, so draws are held against each other by their counts)"
        groups = self.engine.design.groups
        counts = [(counts_by_group(row, groups), answer_by_group(answer, groups)) for row, answer in pairs]
        p = p_of_same_counts(counts, self.seed)
        said = f"{of}, {n:,} draws: counts {'differ' if p < ALPHA else 'agree'}, p = {p:.2g} over all cells"
        return Check("cells", "differs" if p < ALPHA else "agrees", said, label, len(pairs), p_value=p)

    def _other_versions(self) -> str:
        """What of the packages that decide a draw is another one than the run's."""
        stored, here = self.manifest.get("versions", {}), versions()
        apart_ = [f"{name} {stored.get(name)}" for name in _DECIDE if stored.get(name) != here.get(name)]
        return listed(apart_) if apart_ else ""

    # --- texts ---

    def _texts(
        self,
        label: str,
        entry: Mapping[str, Any],
        generator: TextGenerator,
        drawn: Sequence[tuple[Row, DrawRequest]],
        n: int,
    ) -> Check:
        seeded = [(row, request) for row, request in drawn if row.get("seed") is not None]
        if entry.get("where") == "scripted":
            seeded = list(drawn)
        if not seeded:
            said = "its server draws without our seeds: no text can be asked for again"
            return Check("texts", "not-checked", said, label)
        plan = generator.plan_draws([request for _, request in seeded])
        answers = self._answers(label, generator.generate(plan.batches), len(seeded))
        pairs = [(row, one) for row, request in seeded if isinstance(one := answers.get(request.key), Draw)]
        if not pairs:
            return Check("texts", "not-checked", f"none was answered: {_reason(answers)}", label)
        found = self._same_texts(
            label, entry, pairs, f"{len(pairs):,} of {n:,} texts drawn again from their seeds"
        )
        return _with_missing(found, len(seeded) - len(pairs), answers)

    def _same_texts(
        self, label: str, entry: Mapping[str, Any], pairs: Sequence[tuple[Row, Draw]], of: str
    ) -> Check:
        """Byte for byte; where sums round otherwise here, a text that begins alike is no contradiction."""
        wrong = [(row, answer) for row, answer in pairs if not is_same(row, answer)]
        if not wrong:
            return Check("texts", "agrees", f"{of}, byte for byte the same", label, len(pairs), 0)
        alike = sum(begins_alike(row, answer) for row, answer in wrong)
        why = self._other_versions()
        why = f"the run was drawn with {why}" if why else _rounding(entry)
        said = f"{of}, {len(wrong):,} are others: {listed([text_name(row) for row, _ in wrong[:3]])}"
        outcome: Outcome = "differs"
        if why and 2 * alike >= len(wrong):
            outcome = "not-checked"
            said += f"; {alike:,} of them begin alike and part later, which can come from rounding ({why})"
        return Check("texts", outcome, said, label, len(pairs), len(wrong))


def _rounding(entry: Mapping[str, Any]) -> str:
    """Why two machines, or two batches of one, may turn a draw; empty in float32."""
    dtype = str(entry.get("details", {}).get("dtype", ""))
    return f"{dtype} sums depend on processor and batch" if dtype in ("bfloat16", "float16") else ""


def _identity(label: str, entry: Mapping[str, Any], model: Model) -> Check:
    """Whether the model that was opened is the one in the manifest."""
    identity = model.identity
    if identity.fingerprint == entry["fingerprint"]:
        what = (
            "the same address and name"
            if identity.where == "api"
            else "the same weights, tokenizer and dtype"
        )
        what = "the same script" if identity.where == "scripted" else what
        return Check("model", "agrees", f"{what} ({identity.fingerprint[:12]})", label)
    stored = entry.get("details", {})
    names = [name for name in {**stored, **identity.details} if name not in ("device", "revision")]
    others = [
        f"{name} {_shortly(identity.details.get(name))}, the run's {_shortly(stored.get(name))}"
        for name in names
        if identity.details.get(name) != stored.get(name)
    ]
    told = "; ".join(others) or f"{identity.fingerprint[:12]}, the run's {str(entry['fingerprint'])[:12]}"
    return Check("model", "differs", f"another model than the run's: {told}", label)


def _shortly(value: object) -> str:
    text = str(value)
    return text[:12] if len(text) == 64 else text[:40]


def _points(label: str, entry: Mapping[str, Any], pairs: Sequence[tuple[Row, Scored]], of: str) -> Check:
    """Points or lists of tokens within the tolerance of the run's dtype."""
    tolerance, why = _tolerance(entry)
    far = [(row, apart(row, answer)) for row, answer in pairs]
    most: tuple[Row, Apart] = max(far, key=lambda one: one[1].largest)
    largest = most[1].largest
    beyond = sum(one.largest > tolerance for _, one in far)
    shown = largest if math.isfinite(largest) else None
    said = f"{of}, largest difference in log-probability {largest:.1e}, tolerance {tolerance:g} ({why})"
    if beyond:
        where = f"{cell_name(most[0])}: {most[1].where}"
        size = f"by up to {largest:.3g}, tolerance {tolerance:g} ({why})" if shown is not None else ""
        said = (
            f"{of}, {beyond:,} {'differs' if beyond == 1 else 'differ'}{' ' if size else ''}{size}: {where}"
        )
    return Check(
        "cells", "differs" if beyond else "agrees", said, label, len(pairs), beyond, shown, tolerance
    )


def _tolerance(entry: Mapping[str, Any]) -> tuple[float, str]:
    dtype = entry.get("details", {}).get("dtype")
    if entry.get("where") == "scripted":
        return EXACTLY, "a script"
    if entry.get("where") == "api":
        return OF_SERVERS, "a server"
    return TOLERANCES.get(str(dtype), TOLERANCES["bfloat16"]), str(dtype)


def _answered_by_another(
    found: Check, entry: Mapping[str, Any], pairs: Sequence[tuple[Row, Scored]]
) -> Check:
    """A server that answers under another model's name than it did."""
    if entry.get("where") != "api":
        return found
    before = {model_of(str(row.get("answered_by"))) for row, _ in pairs}
    now = {model_of(answer.answered.by) for _, answer in pairs}
    if now <= before:
        return found
    said = f"{found.text}; {listed(sorted(now - before))} answers now, {listed(sorted(before))} did"
    return replace(found, outcome="differs", text=said)


def _with_missing(found: Check, n: int, answers: Mapping[str, Any]) -> Check:
    if not n:
        return found
    outcome = "not-checked" if found.outcome == "agrees" else found.outcome
    return replace(found, outcome=outcome, text=f"{found.text}; {n:,} were not answered: {_reason(answers)}")


def _reason(answers: Mapping[str, Any]) -> str:
    return next((one.reason for one in answers.values() if isinstance(one, Failed)), "no answer came")
