"""From stored rows to decisions.csv and the tables of groups, gaps and places (methods/decisions)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.common.provenance import digest
from biaskit.errors import RunError
from biaskit.measures.decisions.compare import between_models, reference_in
from biaskit.measures.decisions.design import Asked, DecisionsDesign, read
from biaskit.measures.decisions.findings import SCORE
from biaskit.measures.decisions.gaps import gaps_of
from biaskit.measures.decisions.order import decision_order
from biaskit.measures.decisions.ratios import decision_groups
from biaskit.progress import Watcher
from biaskit.records import ALL
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import Manifest, read_manifest
from biaskit.runs.sample_batches import add_up
from biaskit.runs.score_rows import describe_analysis, fault_of
from biaskit.runs.shares.cells import cell_shares
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.stats.contrast import Contrast, Scope
from biaskit.stats.contrasts import adjust
from biaskit.stats.verdict import Rule
from biaskit.tables.query import Row, defined, grouped, where
from biaskit.tables.schema import SCHEMAS
from biaskit.tables.sets import TableSet

if TYPE_CHECKING:
    import pandas as pd

METHODS_VERSION = {"decisions": 1}
"""Raised when the same rows would give other tables."""
CHOICES = ("margin", "reference_race", "min_category", "seed", "conclusion", "skip_bad_lines")
"""Keys that analysis.json states, so that the same tables can be made again."""
COLUMNS = tuple(SCHEMAS["decisions"].says)
STATISTICS = ("decision_gaps", "decision_groups", "decision_equal", "decision_order")


def tables(run: Path, overrides: Mapping[str, Any] | None = None, watcher: Watcher | None = None) -> TableSet:
    """Make every table of a run from its rows, rows between its models included."""
    manifest, made = read_manifest(run), TableSet(run)
    design, reading, answerers = read(manifest.resolved, overrides), Reading(), Answerers()
    study, path = design.study, rows_file(run, "decisions")
    if not path.is_file():
        raise RunError(f"{run} has no {path.name}: nothing was stored there. Rerun the command.")
    stored = answerers.counting(read_rows(path, skip_bad=study.skip_bad_lines, reading=reading))
    if design.imported:
        rows, unused, notes = list[Row](stored), 0, list(design.imported["notes"])
    else:
        (rows, unused), notes = _answered(design, manifest, stored, path, reading), []
    public = list(map(_public, rows))
    made.add("decisions", public)
    listed: dict[str, list[dict[str, Any]]] = {name: [] for name in STATISTICS}
    tests: list[Contrast] = []
    for (model, question), own in grouped(rows, "model", "question").items():
        tests += _statistics(design, model, question, own, listed)
    gaps = [place for place, test in enumerate(tests) if test.kind == "crossed"]
    formats = {label: entry.prompt_format for label, entry in manifest.models.items()}
    changes, apart = between_models(rows, formats, design)
    tests += changes
    judged = adjust(tests, Rule(strict=study.strict))
    for row, place in zip(listed["decision_gaps"], gaps, strict=True):
        row["verdict"] = judged[place].verdict
    for name, found in listed.items():
        made.add(name, found)
    if judged:
        made.add("tests", judged)
    made.notes += [*reading.notes, *apart]
    how: dict[str, Any] = {"methods": METHODS_VERSION, "rows_digest": digest(public), "n_prompts": len(rows)}
    describe_analysis(made, design, manifest, answerers, notes, keys=CHOICES, n_unused=unused, **how)
    return made


def _public(row: Row) -> Row:
    return {name: row[name] for name in COLUMNS}


def _answered(
    design: DecisionsDesign, manifest: Manifest, stored: Iterator[Row], path: Path, reading: Reading
) -> tuple[list[Row], int]:
    """Make the rows of decisions.csv in study order; and count stored rows that are not needed."""
    planned = [(name, *one) for name, entry in manifest.models.items() for one in design.planned(entry)]
    words_of = {request.key: request.target_words for _, _, request in planned}
    by_key: dict[str, dict[int, Row]] = {key: {} for key in words_of}
    unused = 0
    for row in stored:
        key = row.get("first", "")
        if key not in by_key:
            unused += 1
        elif (fault := fault_of(row, words_of[key])) is not None:
            reading.refuse(path, fault, skip_bad=design.study.skip_bad_lines)
        else:
            by_key[key][row.get("batch", 0)] = row
    rows: list[Row] = []
    for label, asked, request in planned:
        found = by_key[request.key].get(0)
        if found is not None and found["estimator"] == "sampling":
            found = add_up(by_key[request.key], design.batches(manifest.models[label]))[0]
        rows += decided(asked, found, label)
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


def _statistics(
    design: DecisionsDesign, model: str, question: str, rows: Sequence[Row], listed: Mapping[str, list[Any]]
) -> Iterator[Contrast]:
    """List the groups, gaps and places of a model's answers to one question; yields rows of tests.csv."""
    import pandas as pd

    study, frame = design.study, pd.DataFrame(list(rows))
    wording = next(own for own in design.questions if own.name == question)
    choice, scores = wording.choose, wording.score is not None
    how: dict[str, Any] = {"choice": choice, "scores": scores}

    def put(table: str, made: pd.DataFrame) -> list[Any]:
        objects = made.assign(model=model).reindex(columns=[*SCHEMAS[table].says]).astype(object)
        found: list[Any] = objects.where(objects.notna(), None).to_dict("records")
        listed[table] += found
        return found

    groups, equal = decision_groups(frame, seed=study.seed, min_category=study.min_category, **how)
    ratios = put("decision_groups", groups)
    put("decision_equal", equal)
    if choice:
        put("decision_order", decision_order(frame, choice=choice))
    margin = None if scores else study.margin.get("gap")
    for gap in gaps_of(frame, reference_race=reference_in(rows, study.reference_race), **how):
        test = gap.contrast(model, margin)
        if scores:
            test = replace(test, quantity=SCORE)
        if gap.row["job"] != ALL:
            test = replace(test, contrast=f"{test.contrast}_in_job")
        listed["decision_gaps"].append({**gap.row, "model": model})
        yield test
    for row in defined(where(ratios, job=ALL), "ratio"):
        if row["verdict"]:
            scope = Scope("decisions", "ratio", model, model, context=question, quantity="ratio")
            own = asdict(replace(scope, group_a=row["category"], unit="decision"))
            own |= {"estimate": row["ratio"], "ci_low": row["ratio_low"], "ci_high": row["ratio_high"]}
            yield Contrast(**own, kind="ratio", n_a=row["n"])
