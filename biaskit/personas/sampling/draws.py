"""The generation engine's first half: series of draws → rounds → texts on disk, where analysis starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from biaskit.errors import BiaskitError, ModelError
from biaskit.models.base import TextGenerator, closing_stream
from biaskit.personas.power import plan_sentence
from biaskit.personas.sampling.design import (
    DrawSeries,
    PersonasDesign,
    form_for,
    part_of,
)
from biaskit.personas.sampling.drawn import TextsBeside, scope_of
from biaskit.personas.sampling.held import OwnRows, StoredTexts, stored_texts
from biaskit.personas.sampling.open_draws import OpenDraws
from biaskit.personas.sampling.stored_design import compatibility, describe_design, design_signature
from biaskit.personas.texts.association import associate_answer
from biaskit.personas.texts.documents import why_not
from biaskit.progress import ModelPlan
from biaskit.records import Draw, DrawRequest, Failed, Plan, PromptForm
from biaskit.runs.drift import Drift
from biaskit.runs.manifest import model_entry
from biaskit.runs.prompts import SamePrompts
from biaskit.runs.reuse import Answers
from biaskit.runs.session import Outcome, Session
from biaskit.runs.store import RowWriter
from biaskit.runs.usage import Usage


def draw_texts(
    design: PersonasDesign, session: Session[TextGenerator], resolved: dict[str, Any] | None = None
) -> Outcome:
    """Draw every text that has no row yet and store it; the same call goes on where it stopped.

    `resolved`: the design's description, where it is at hand.
    """
    study, run = design.study, session.run
    generators = session.begin(
        "personas",
        study.name,
        question=partial(compatibility, design),
        resolved=lambda: describe_design(design) if resolved is None else resolved,
    )
    forms = _forms(design, generators, session)
    own, beside = part_of(design, session.shard), TextsBeside()
    if session.dry_run:
        stored = stored_texts(run, design, skip_bad=study.skip_bad_lines)
        for label, form in forms.items():
            try:
                _Sampler(own, generators[label], form, stored, beside, session).plan(())
            except ModelError as error:
                session.leave_out(label, error)
            generators[label].close()
        return session.outcome
    if not forms:
        return session.outcome
    with session.writing("personas", study) as writer:
        stored = stored_texts(run, design, skip_bad=study.skip_bad_lines)
        stored.spans = writer.spans  # which know what this start appends as well
        for label, form in forms.items():
            generator = generators[label]
            entry = model_entry(generator.identity, form)
            entry["batch_size"] = session.manifest["models"].get(label, {}).get("batch_size")
            sampler = _Sampler(own, generator, form, stored, beside, session)
            with session.turn(generator, entry, partial(design_signature, design)):
                try:
                    sampler.plan(writer.answered.get(label, ()))
                    sampler.draw(writer)
                except ModelError as error:
                    session.leave_out(label, error)
    return session.outcome


def _forms(
    design: PersonasDesign, generators: Mapping[str, TextGenerator], session: Session[TextGenerator]
) -> dict[str, PromptForm]:
    """Each model's own form: a personas run has one form per model (docs/methods.md#completion-forms)."""
    forms: dict[str, PromptForm] = {}
    for label, generator in generators.items():
        try:
            forms[label] = form_for(design.study, generator.identity)
        except ModelError as error:
            session.leave_out(label, error)
    if len(set(forms.values())) > 1:
        listed = ", ".join(f"{label} {form}" for label, form in forms.items())
        taken = [generators[label].identity.forms for label in forms]
        common = [form for form in ("chat", "completion", "raw") if all(form in each for each in taken)]
        hint = f" --prompt-form {common[0]} makes them comparable, in another run." if common else ""
        session.outcome.notes.append(
            f"Prompt forms differ between the models ({listed}): they are not compared.{hint}"
        )
    return forms


class _Sampler:
    """One model's draws: what is planned, what each round requests, what is stored."""

    def __init__(
        self,
        design: PersonasDesign,
        generator: TextGenerator,
        form: PromptForm,
        stored: StoredTexts,
        beside: TextsBeside,
        session: Session[TextGenerator],
    ) -> None:
        self.design = design
        self.generator = generator
        self.label = generator.identity.label
        self.form = form
        self.session = session
        self.stored = stored
        self.beside = beside
        fingerprint = generator.identity.fingerprint
        self.draws = OpenDraws(design, form, fingerprint, stored.genders)
        known = session.manifest["models"]
        others = (label for label, entry in known.items() if entry["fingerprint"] == fingerprint)
        labels = tuple(dict.fromkeys((self.label, *others)))
        self.own = OwnRows(labels, self.draws.series_of, self.draws.keys_of)
        self.same = SamePrompts(generator)
        self.new_tokens = self.n_rows = 0  # of this start
        self.taken: Answers[tuple[str | None]] = Answers()

    def plan(self, answered: Collection[str]) -> None:
        """Show how many draws are to come, as a range where Algorithm 5 decides.

        `answered`: who answered the stored rows of this model.
        """
        if self.draws.stored:
            skip_bad = self.design.study.skip_bad_lines
            self.own.hold(self.session.run, self.stored, self.same, skip_bad=skip_bad)
        missing, later = self.draws.outlook()
        if missing:
            self._find_answers(answered)
            missing, later = self.draws.outlook()
        planned: Plan[DrawRequest] = Plan((), calls=0, prompt_tokens=0, new_tokens_max=0, cost_max=0.0)
        seconds: float | None = 0.0
        new_tokens = self.design.sampling.max_new_tokens * len(missing)
        if missing:
            planned = self._planned(missing)
            seconds = self.generator.estimate_seconds(new_tokens)

        def at_most(value: float | None) -> float | None:
            return value * (len(missing) + later) / len(missing) if missing and value else value

        n_there = sum(key in self.draws.stored for key in self.draws.of_key)
        n_taken = sum(key in self.taken.values for key in self.draws.of_key)
        shown = ModelPlan(
            run=self.session.run,
            label=self.label,
            form=self.form,
            n_cells=n_there + len(missing),
            n_stored=n_there - n_taken,
            n_taken=n_taken,
            taken_from=self.taken.sources,
            n_batches=0,
            prompt_tokens=planned.prompt_tokens,
            seconds=seconds,
            unit="draws",
            n_cells_most=min(self.draws.n_most, n_there + len(missing) + later),
            new_tokens=new_tokens,
            seconds_most=at_most(seconds),
            calls=planned.calls if self.generator.identity.where == "api" else None,
            cost=planned.cost_max,
            cost_most=at_most(planned.cost_max),
            shows=plan_sentence(self.design) if self.session.shard.whole else "",
        )
        self.session.show_plan(shown)

    def _find_answers(self, answered: Collection[str]) -> None:
        """Look for this model's texts in other runs of the folder, and keep those that are needed."""
        found: dict[DrawSeries, dict[int, str]] = {}  # draw → key

        def fits(row: Mapping[str, Any], run: str) -> tuple[str | None] | None:
            try:
                series, draw = self.own.series_of[scope_of(row)], row["draw"]
                most = self.draws.filling.most if series.specified_gender is None else self.draws.filling.n
                known = self.own.keys_of(series)(draw) if draw in range(most) else None
                if known != row["key"] or known in self.draws.stored:
                    return None
                if why_not(row) or not self.same.holds(row, series.prompt, run):
                    return None
                honorifics = self.design.study.honorifics
                gender = associate_answer(row["text"], row["finish_reason"], honorifics=honorifics).gender
            except (BiaskitError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                return None
            found.setdefault(series, {})[draw] = row["key"]
            return (gender,)

        rows_of = partial(self.beside.rows, self.own.keys_in)
        self.taken = self.session.find_answers("personas", self.generator, fits, answered, rows_of)
        self.session.outcome.notes += self.same.notes()
        self.draws.stored.update((key, gender) for key, (gender,) in self.taken.values.items())
        needed: set[str] = set()
        for series, of_draw in found.items():
            most = self.draws.reaches(series)
            needed |= {key for draw, key in of_draw.items() if draw < most}
        for key in self.taken.values.keys() - needed:
            del self.draws.stored[key]
        self.taken.keep(needed)

    def _planned(self, requests: Sequence[DrawRequest]) -> Plan[DrawRequest]:
        try:
            return self.generator.plan_draws(requests)
        except ModelError as error:
            found = self.draws.of_key.get(getattr(error, "request_key", ""))
            if found is None:
                raise
            where = f"{self.label}, prompt {found[0].template_id}, occupation {found[0].occupation!r}"
            raise type(error)(f"{where}: {error}") from error

    def draw(self, writer: RowWriter) -> None:
        """Round after round, until no series is open; a failed draw is requested once more in its round."""
        self.taken.copy(writer, self._taken_over)
        usage = Usage(self.session.run, self.label)
        known = writer.answered.get(self.label, ())
        accept, taken = self.session.accept_drift, self.taken.sources
        drift = Drift(self.generator.identity, known, accept=accept, taken=taken)
        number, still_open = 0, list(self.draws.open_series)
        offline = self.session.outcome.offline is not None
        try:
            while offline and self._draw_due(writer, drift, usage):
                pass  # what came may have opened a round whose answers are at hand too
            while (still_open or number == 0) and not offline:
                requests = self.draws.round(number, still_open)
                for last in (False, True):
                    if any(self.draws.is_missing(request) for request in requests):
                        self._draw_round(number, requests, writer, drift, usage, last=last)
                number += 1
                still_open = [series for series in still_open if self.draws.is_open(series, number)]
        finally:
            if self.n_rows or self.generator.used():
                self._note_usage(usage, last=True)

    def _taken_over(self, row: Mapping[str, Any]) -> dict[str, Any]:
        self.stored.drawn.add(row)
        return {**row, "model": self.label}

    def _draw_due(self, writer: RowWriter, drift: Drift, usage: Usage) -> bool:
        """Where nobody is asked: the draws that are due, once; whether one of them came."""
        due, before = self.draws.outlook()[0], self.n_rows
        if due:
            self._draw_round(0, due, writer, drift, usage, last=False)
        return self.n_rows > before

    def _note_usage(self, usage: Usage, *, last: bool = False) -> None:
        used = {"rows": self.n_rows, "new_tokens": self.new_tokens, **self.generator.used()}
        usage.note(used, last=last)

    def _draw_round(
        self,
        number: int,
        requests: Sequence[DrawRequest],
        writer: RowWriter,
        drift: Drift,
        usage: Usage,
        *,
        last: bool,
    ) -> None:
        """Draw what a round lacks, and write it.

        Where neighbours share a forward, batches are cut from the whole round, stored draws included, so that
        a resumed run has those of an unbroken one.
        """
        whole = self.generator.whole_batches
        plan = self._planned(requests if whole else [r for r in requests if self.draws.is_missing(r)])
        pending = [batch for batch in plan.batches if any(self.draws.is_missing(r) for r in batch)]
        self.session.keep_batch_size(self.generator)
        missing = sum(self.draws.is_missing(request) for request in requests)
        written = 0
        shown = f"{self.label}, round {number + 1}"
        self.session.watcher.progress(shown, 0, missing)
        self._note_usage(usage)
        with closing_stream(self.generator.generate(pending)) as groups:
            for group in drift.watch(groups):
                fresh = [answer for answer in group if answer.key not in self.draws.stored]
                rows = [self._row(answer) for answer in fresh if isinstance(answer, Draw)]
                writer.append(rows)
                for row in rows:
                    self.stored.drawn.add(row)
                self.session.note_prompts(self.label, rows)
                self.new_tokens += sum(row["n_tokens"] or 0 for row in rows)
                self._note(fresh, last=last)
                written += len(rows)
                self.n_rows += len(rows)
                self.session.watcher.progress(shown, written, missing)
                self.session.keep_batch_size(self.generator)
                self._note_usage(usage)

    def _note(self, answers: Sequence[Draw | Failed], *, last: bool) -> None:
        for answer in answers:
            if isinstance(answer, Draw):
                honorifics = self.design.study.honorifics
                found = associate_answer(answer.text, answer.finish, honorifics=honorifics)
                self.draws.stored[answer.key] = found.gender
            elif last:
                self.draws.given_up.add(answer.key)
        if last:
            self.session.outcome.count_failures(self.label, answers)

    def _row(self, answer: Draw) -> dict[str, Any]:
        """A row of generations.jsonl (docs/reading.md#rows)."""
        series, request = self.draws.of_key[answer.key]
        return {
            "key": answer.key,
            "model": self.label,
            **series.scope(),
            "draw": request.number,
            "seed": request.seed if answer.seeded else None,
            "prompt_form": self.form,
            "prompt": answer.prompt,
            "system": series.prompt.system,
            "text": answer.text,
            "finish_reason": answer.finish,
            "n_tokens": answer.answered.new_tokens,
            "prompt_tokens": answer.answered.prompt_tokens,
            "answered_by": answer.answered.by,
            "answered_at": answer.answered.at,
        }
