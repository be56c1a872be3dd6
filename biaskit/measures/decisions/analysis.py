"""From stored rows to decisions.csv and the tables of groups, gaps and places (methods/decisions)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.common.provenance import digest
from biaskit.errors import RunError
from biaskit.measurement import words
from biaskit.measures.decisions.compare import between_models
from biaskit.measures.decisions.design import Asked, DecisionsDesign, read
from biaskit.measures.decisions.findings import SCORE
from biaskit.measures.decisions.gaps import gaps_of
from biaskit.measures.decisions.order import decision_order
from biaskit.measures.decisions.ratios import decision_groups
from biaskit.progress import Watcher
from biaskit.records import ALL, ScoreRequest, TargetWord
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import Manifest, read_manifest
from biaskit.runs.sample_batches import SampleBatches, add_up
from biaskit.runs.score_rows import describe_analysis, fault_of
from biaskit.runs.shares.cells import cell_shares
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.contrasts import adjust
from biaskit.stats.verdict import Rule
from biaskit.tables.query import Row, defined, distinct, where
from biaskit.tables.schema import SCHEMAS
from biaskit.tables.sets import TableSet

if TYPE_CHECKING:
    import pandas as pd

METHODS_VERSION = {"decisions": 1}
"""Raised when the same rows would give other tables."""
CHOICES = ("margin", "reference_race", "min_category", "seed", "conclusion", "skip_bad_lines")
"""Keys that analysis.json states, so that the same tables can be made again."""
COLUMNS = tuple(SCHEMAS["decisions"].says)


def tables(run: Path, overrides: Mapping[str, Any] | None = None, watcher: Watcher | None = None) -> TableSet:
    """Make every table of a run from its rows, rows between its models included."""
    manifest, made = read_manifest(run), TableSet(run)
    design, reading, answerers = read(manifest.resolved, overrides), Reading(), Answerers()
    path = rows_file(run, "decisions")
    if not path.is_file():
        raise RunError(f"{run} has no {path.name}: nothing was stored there. Rerun the command.")
    stored = answerers.counting(read_rows(path, skip_bad=design.study.skip_bad_lines, reading=reading))
    notes, unused = list(words("decisions")["notes"].values()), 0
    if design.imported:
        rows: list[Row] = list(stored)
        notes = list(design.imported["notes"])
    else:
        rows, unused = _answered(design, manifest, stored, path, reading)
    by_model = _Statistics(design)
    tests: list[Contrast] = []
    for model in manifest.models:
        tests += by_model.add(where(rows, model=model), model)
    tests += between_models(rows, list(manifest.models), design.study)
    made.add("decisions", list(map(_public, rows)))
    judged = adjust(tests, Rule(strict=design.study.strict))
    verdicts = {id(row): own.verdict for row, own in zip(tests, judged, strict=True)}
    for row, test in by_model.gaps:
        row["verdict"] = verdicts[id(test)]
    made.add("decision_gaps", [row for row, _ in by_model.gaps])
    for name, found in by_model.tables.items():
        made.add(name, found)
    if judged:
        made.add("tests", judged)
    made.notes += reading.notes
    used = digest(list(map(_public, rows)))
    describe_analysis(
        *(made, design, manifest, answerers, notes),
        keys=CHOICES,
        methods=METHODS_VERSION,
        rows_digest=used,
        n_prompts=len(rows),
        n_unused=unused,
    )
    return made


def _public(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in COLUMNS}


def _answered(
    design: DecisionsDesign,
    manifest: Manifest,
    stored: Iterator[dict[str, Any]],
    path: Path,
    reading: Reading,
) -> tuple[list[Row], int]:
    """Make the rows of decisions.csv in study order; and count stored rows that are not needed."""
    planned: dict[str, list[tuple[Asked, ScoreRequest]]] = {}
    by_key: dict[str, dict[int, dict[str, Any]]] = {}
    words_of: dict[str, Sequence[TargetWord]] = {}
    for label, entry in manifest.models.items():
        asked = design.requests(entry.fingerprint, entry.estimator_key, entry.prompt_format)
        planned[label] = asked
        for _, request in asked:
            by_key[request.key], words_of[request.key] = {}, request.target_words
    unused = 0
    for row in stored:
        own = by_key.get(row.get("first", ""))
        if own is None:
            unused += 1
        elif (fault := fault_of(row, words_of[row["first"]])) is not None:
            reading.refuse(path, fault, skip_bad=design.study.skip_bad_lines)
        else:
            own[row.get("batch", 0)] = row
    rows: list[Row] = []
    for label, entries in planned.items():
        batches = SampleBatches.up_to(manifest.models[label].samples, design.study.max_samples_per_prompt)
        for one, request in entries:
            found = by_key[request.key].get(0)
            if found is not None and found["estimator"] == "sampling":
                found = add_up(by_key[request.key], batches)[0]
            rows += decided(one, found, label)
    return rows, unused


def decided(asked: Asked, stored: Row | None, model: str) -> Iterator[Row]:
    """Yield the decision of a stored answer: one for each person who is shown."""
    question = asked.question
    word = "word" if question.score else "token"
    found = cell_shares(None, stored, question.groups, word_boundary=word)
    own: dict[str, Any] = {"model": model, "estimator": found.estimator, "question": question.name}
    own |= {"wording": question.wording, "job": asked.case.job, "case": asked.case.case}
    own |= {"coverage": found.coverage, "n_answers": found.matched, "reason": found.reason}
    own |= {"answered": found.shares is not None, "p_low": None, "p_high": None}
    pair = " | ".join(sorted(person.name or person.stated for person in asked.people))
    for place, person in enumerate(asked.people):
        row = {**own, "person": person.name, "sex": person.sex, "race": person.race}
        row |= {"position": place + 1 if question.choose else None, "pair": pair if question.choose else ""}
        row |= {"p_yes": None, "selected": None}
        if found.share_ends and not question.score:
            row["p_low"], row["p_high"] = found.share_ends[place]
        if found.shares and question.score:
            parts = zip(question.groups, found.shares, strict=True)
            row["p_yes"] = sum(int(group) * part for group, part in parts)
        elif found.shares:
            share = found.shares[place]
            row |= {"p_yes": share, "selected": float(share >= 0.5)}
        yield row


class _Statistics:
    """The tables of groups, gaps and places, model by model and question by question."""

    def __init__(self, design: DecisionsDesign) -> None:
        self.design = design
        self.gaps: list[tuple[dict[str, Any], Contrast]] = []
        names = ("decision_groups", "decision_equal", "decision_order")
        self.tables: dict[str, list[Row]] = {name: [] for name in names}

    def add(self, rows: Sequence[Row], model: str) -> list[Contrast]:
        """Add the decisions of a model; returns the tests of its gaps."""
        study, tests = self.design.study, []
        for question in distinct(rows, "question"):
            frame, how = frame_of(where(rows, question=question)), how_asked(self.design, question)
            made = decision_groups(frame, seed=study.seed, min_category=study.min_category, **how)
            for name, table in zip(("decision_groups", "decision_equal"), made, strict=True):
                self._put(name, model, table)
            if how["choice"]:
                self._put("decision_order", model, decision_order(frame, choice=how["choice"]))
            margin = None if how["scores"] else study.margin.get("gap")
            same = [
                race for race in distinct(rows, "race") if race.casefold() == study.reference_race.casefold()
            ]
            for gap in gaps_of(frame, reference_race=(same or [""])[0], **how):
                test = gap.contrast(model, margin)
                if how["scores"]:
                    test = replace(test, quantity=SCORE)
                if gap.row["job"] != ALL:
                    test = replace(test, contrast=f"{test.contrast}_in_job")
                self.gaps.append(({**gap.row, "model": model}, test))
                tests.append(test)
            listed = where(self.tables["decision_groups"], model=model, question=question, job=ALL)
            tests += map(_of_ratio, filter(itemgetter("verdict"), defined(listed, "ratio")))
        return tests

    def _put(self, table: str, model: str, frame: pd.DataFrame) -> None:
        columns = tuple(SCHEMAS[table].says)
        listed = frame.assign(model=model).astype(object)
        for row in listed.where(listed.notna(), None).to_dict("records"):
            self.tables[table].append({name: row.get(name) for name in columns})


def _of_ratio(row: Row) -> Contrast:
    """Make the row of tests.csv that `biaskit check` holds against four fifths."""
    own = Scope("decisions", "ratio", row["model"], row["model"], context=row["question"], quantity="ratio")
    stated = {name: getattr(own, name) for name in own.__dataclass_fields__}
    stated |= {"group_a": row["category"], "unit": "decision", "kind": "ratio", "estimate": row["ratio"]}
    return Contrast(**stated, ci_low=row["ratio_low"], ci_high=row["ratio_high"], n_a=row["n"])


def how_asked(design: DecisionsDesign, question: str) -> dict[str, Any]:
    """Say how a question was asked, as the statistics take it."""
    [wording, *_] = [own for own in design.questions if own.name == question]
    return {"choice": wording.choose, "scores": wording.score is not None}


def frame_of(rows: Sequence[Row]) -> pd.DataFrame:
    """Make a DataFrame of rows of decisions.csv, an undefined number NaN."""
    import pandas as pd

    frame = pd.DataFrame(list(rows))
    numbers = ("position", "p_yes", "selected", "p_low", "p_high", "coverage", "n_answers")
    return frame.astype(dict.fromkeys(numbers, float))
