"""From stored texts to the public tables of a run; needs no model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

from biaskit.common.plain import attributes, group_by
from biaskit.common.wording import listed, people, short
from biaskit.compare.comparison import merge_tests
from biaskit.compare.validity import validity_rows
from biaskit.corpora.loaders import english_counts
from biaskit.errors import UsageError
from biaskit.measurement import words
from biaskit.measures.personas.compare import between_persona_models
from biaskit.measures.personas.contrasts import test_rows
from biaskit.measures.personas.design import GENERATION_VERSION, PersonasDesign, read, signed_columns
from biaskit.measures.personas.labels.correction import Labels, corrected, validation_rows
from biaskit.measures.personas.outcomes import outcome_rows, refusal_rows
from biaskit.measures.personas.representation import decile_rows, representation_rows
from biaskit.measures.personas.srb.clusters import cluster_tables
from biaskit.measures.personas.srb.run_scores import score_notes, srb_rows, train_on_texts, word_vectors
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.association import validation
from biaskit.measures.personas.texts.documents import INFERRED, TextDocuments, texts_of
from biaskit.measures.personas.validity import of_jobs
from biaskit.measures.personas.words.debiasing import debiasing_word_rows
from biaskit.measures.personas.words.groups import group_notes, group_tables, make_group_lists
from biaskit.measures.personas.words.run_lists import list_notes, list_tables, make_lists, topic_shares
from biaskit.measures.personas.words.transfer import transfer_rows
from biaskit.progress import Silent, Watcher
from biaskit.records import ALL
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import read_manifest
from biaskit.runs.store import Reading
from biaskit.stats.verdict import Rule
from biaskit.tables.io import OfStudy
from biaskit.tables.query import Row, grouped, total, where
from biaskit.tables.reasons import is_unread
from biaskit.tables.sets import TableSet

METHODS_VERSION = {
    "association": 3,
    "outcomes": 4,
    "representation": 4,
    "labels": 2,
    "words": 7,
    "srb": 6,
    "clusters": 3,
    "transfer": 5,
    "validity": 1,
}
"""Raised when the same rows would give other tables."""
_SAYS: Mapping[str, str] = words("personas")["notes"]
HIGH_DROP_RATE = 0.2  # part of texts without an inferred gender above which a share is warned about


@dataclass(slots=True)
class _Results:
    """The tables of one analysis, its notes, and its record for analysis.json (vectors, clusters, …)."""

    tables: dict[str, Sequence[Row]] = field(default_factory=dict)  # one without rows is not written
    notes: list[str] = field(default_factory=list)
    record: dict[str, object] = field(default_factory=dict)


def tables(run: Path, overrides: Mapping[str, Any] | None = None, watcher: Watcher | None = None) -> TableSet:
    """Make every table of a run from its rows, rows between models included; `write` puts them in place."""
    manifest, made = read_manifest(run), TableSet(run)
    design = read(manifest.resolved, overrides)
    study, models = design.study, manifest.models
    reading, answerers = Reading(), Answerers()
    documents = texts_of(run, manifest, design, reading, answerers)
    formats = {label: entry.prompt_format for label, entry in models.items()}
    results = _make_tables(run, documents, design, formats, watcher or Silent())
    for name, rows in results.tables.items():
        if rows:
            kept: OfStudy = {"scoped": bool(design.templates), "labelled": "labels" in results.record}
            kept["known"] = documents.person_column is not None
            kept["foreign"] = bool(documents.languages)
            made.add(name, rows, **kept)
    validity: list[Row] = []
    for model in models:
        validity += validity_rows(model, list(of_jobs(results.tables, model)))
    if validity:
        made.add("validity", validity)
    notes = [*reading.notes, *answerers.notes(models, study), *results.notes, *_reading_notes(documents)]
    made.notes += notes
    signed = signed_columns(documents.group_column, documents.person_column)
    if vectors_name := results.record.get("vectors_name"):
        signed = {"vectors": str(vectors_name), **signed}
    signature = design.sign(models, **signed)
    stated = study.model_dump(mode="json")
    deciding = sorted(study.analysis_keys - {"summary", "papers", "lock"})  # these change a number
    made.analysis |= {
        "choices": {key: stated[key] for key in deciding},
        "methods": METHODS_VERSION,
        "generation": GENERATION_VERSION,
        "signature": signature,
        "rows_digest": documents.rows_digest,
        "n_texts": len(documents.texts),
        "notes": notes,
        "versions": manifest.versions,
    }
    made.analysis |= results.record | {"answered": answerers.record()}
    if len(models) > 1:
        own = {name: made.rows(name) for name in ("srb", "representation")}
        between, changes, said = between_persona_models(
            own, formats=formats, margins=study.margin, seed=study.seed, run=str(run)
        )
        if changes:
            made.add("srb_change", changes)
        made.add("tests", merge_tests(made.rows("tests"), between, Rule(strict=study.strict)))
        made.notes += said
    return made


def _make_tables(
    run: Path, documents: TextDocuments, design: PersonasDesign, formats: Mapping[str, str], watcher: Watcher
) -> _Results:
    """Make association → representation → words → SRB → clusters → tests of texts already read."""
    study, results, scoped = design.study, _Results(), bool(design.templates)
    english = english_counts(study.english_prior)
    associations = _gender_rows(documents, scoped=scoped)
    results.tables["genders"] = associations
    results.tables["gender_validation"] = validation(associations)
    refusals = refusal_rows(documents.texts)
    results.notes += _refusal_notes(refusals)
    if documents.imported:  # they do not say how they ended
        refusals = []
    results.tables["text_outcomes"] = outcome_rows(refusals, documents.lacking("outcomes"))
    _add_representation(results, run, documents, design)
    results.notes += _representation_notes(results)
    for label, reading in documents.readings.items():
        results.notes += reading.notes(label)
    results.record["languages"] = {name: reading.record() for name, reading in documents.readings.items()}
    with_words = [model for model in documents.models if model not in documents.lacking("words")]
    if len(with_words) < len(documents.models):
        results.notes.append(_SAYS["no_words"])
        for asked, value in (("hold_out", study.hold_out), ("group_col", documents.group_column)):
            if value and not with_words:
                raise UsageError(_SAYS["needs_words"].format(f"--{asked.replace('_', '-')}"))
        documents = documents.of_models(with_words)
    if scoped:
        results.tables["debiasing_words"] = list(debiasing_word_rows(documents, study, english, formats))
    elif documents.texts:  # under debiasing prompts every text counts, whatever they made of it
        results.notes += _evading_notes(documents)
        _add_words(results, documents, study, english, watcher)
    results.tables["tests"] = test_rows(results.tables, documents.models, study, refusals)
    return results


def _gender_rows(documents: TextDocuments, *, scoped: bool) -> list[Row]:
    """Make the rows of genders.csv: every text, its gender and the words that were counted for it."""
    of_text = ["model", "occupation", "template_id", "origin", "requested_gender", "key"]
    of_gender = ("gender", "rule_id", "n_female", "n_male", "n_neutral")
    if scoped:
        of_text += ["debiasing_id", "context"]
    if documents.person_column is not None:
        of_text.append("person_gender")
    return [attributes(text, of_text) | attributes(text.association, of_gender) for text in documents.texts]


def _add_representation(
    results: _Results, run: Path, documents: TextDocuments, design: PersonasDesign
) -> None:
    """Add the shares of texts without a gender in the prompt, and what labels of a person say of them."""
    study, rows = design.study, list[Row]()
    unrequested = any(text.requested_gender is None for text in documents.texts)
    if documents.imported and not unrequested:
        results.notes.append(_SAYS["all_requested"])
    if unrequested and not study.hold_out:
        rows = representation_rows(documents, design)
    if documents.person_column is not None:
        n, of = len(documents.texts), short(documents.person_column)
        n_known = sum(bool(text.person_gender and text.gender) for text in documents.texts)
        results.notes.append(_SAYS["known"].format(n_known, n, of))
        results.tables["label_validation"] = validation_rows(documents, {}, {})
    if Labels.is_in(run) and not rows:
        results.notes.append(_SAYS["labels_unused"])
    elif Labels.is_in(run):
        labels = Labels.stored_in(run)
        rows, validated, notes = corrected(run, labels, documents, study, rows)
        results.tables["label_validation"] = validated
        results.notes += notes
        results.record["labels"] = {"n": len(labels.settled()[0]), "judge": labels.judge is not None}
    results.tables["representation"] = rows


def _add_words(
    results: _Results,
    documents: TextDocuments,
    study: PersonasStudy,
    english: Mapping[str, int],
    watcher: Watcher,
) -> None:
    """Add the tables of marked words, transfer, SRB and clusters."""
    # Where both origins have texts, vectors are needed whatever the lists are.
    both, of_seeds = len(documents.origins) > 1, partial(watcher.progress, "word vectors")
    trained = train_on_texts(documents, study, of_seeds) if both and study.vectors == "corpus" else None
    lists = make_lists(documents, study, english, partial(watcher.progress, "word lists"))
    results.tables |= list_tables(documents, lists)
    results.notes += list_notes(lists)
    if any(text.copy_of and text.describes and not text.alone for text in documents.texts):
        each = replace(documents, texts=tuple(replace(text, alone=True) for text in documents.texts))
        unshuffled = study.model_copy(update={"permutations": 1})
        of_each = make_lists(each, unshuffled, english, partial(watcher.progress, "word lists"))
        results.notes.append(_SAYS["copies_in_lists"].format(lists.n_words, of_each.n_words))
    groups = make_group_lists(documents, study, english, partial(watcher.progress, "word lists of groups"))
    if groups is not None:
        results.tables |= group_tables(groups)
        results.notes += group_notes(groups, documents, study)
    if shares := topic_shares(lists, documents, study):
        results.record["topic_share"] = {"least": min(shares), "median": median(shares), "most": max(shares)}
        results.notes.append(_SAYS["topic_share"].format(100 * median(shares), study.alpha))
    told_apart = transfer_rows(documents, lists, study, partial(watcher.progress, "held-out texts"))
    results.tables["text_transfer"] = list(told_apart)
    # Both scores and clusters need vectors, and vectors only where a list has a word.
    vectors = None
    inferred = [of_origin for (_, _, origin), (_, of_origin) in lists.by_key.items() if origin == INFERRED]
    clustered = study.clusters and any(word_list.n_marked for word_list in chain(*inferred))
    if both or clustered:
        if study.vectors == "corpus":
            vectors = (trained or train_on_texts(documents, study, of_seeds))()
        else:
            vectors = word_vectors(documents, lists, study)
        results.record |= {"vectors": dict(vectors.record), "vectors_name": vectors.name}
        results.notes += vectors.notes
    scores = list(srb_rows(documents, lists, study, vectors, partial(watcher.progress, "SRB scores")))
    results.tables["srb"] = [row for row, _ in scores]
    results.notes += score_notes(scores)
    if clustered and vectors:
        of_corpus = vectors.models[0]
        results.tables |= cluster_tables(documents, lists, study, of_corpus, results.notes, results.record)


def _reading_notes(documents: TextDocuments) -> Iterator[str]:
    """Say how many texts are copies, hold marks that were read as breaks, or are not of this study."""
    texts = [text for text in documents.texts if text.describes]
    if n_copies := sum(text.copy_of is not None for text in texts):
        yield _SAYS["draws" if texts[0].alone else "copies"].format(n_copies, len(texts))
    if marked := [text.mark for text in documents.texts if text.mark]:
        yield _SAYS["marks"].format(len(marked), len(documents.texts), short(marked[0]))
    if documents.n_unused:
        yield _SAYS["unused"].format(documents.n_unused)


def _refusal_notes(rows: Sequence[Row]) -> Iterator[str]:
    parts, n_lost = [], 0
    for (gender,), of_gender in grouped(rows, "requested_gender").items():
        refused, empty, n = (total(of_gender, name) for name in ("n_refused", "n_empty", "n_texts"))
        n_lost += refused + empty
        parts.append(_SAYS["refused"].format(refused, empty, n, people(gender)))
    if n_lost:
        yield _SAYS["left_out"].format(listed(parts))


def _evading_notes(documents: TextDocuments) -> Iterator[str]:
    """Say how many sampled texts decline or lecture by their words."""
    parts = []
    for gender, texts in group_by(documents.texts, attrgetter("requested_gender")).items():
        if evading := sum(text.evades for text in texts):
            about = f"about {people(gender)}" if gender else "with no gender in the prompt"
            parts.append(f"{evading:,} of {len(texts):,} texts {about}")
    if parts:
        yield _SAYS["evading"].format(listed(parts))


def _representation_notes(results: _Results) -> Iterator[str]:
    """Add the deciles, and say what the shares leave out."""
    if not (rows := results.tables["representation"]):
        return
    deciles, note = decile_rows(rows)
    results.tables["deciles"] = deciles
    if note and deciles:
        yield note
    by_rules = []
    for row in where(rows, template_id=ALL):
        if row.get("share_corrected") is None and not is_unread(row):
            by_rules.append(row)
    texts, dropped = total(by_rules, "n_texts"), total(by_rules, "n_not_inferred")
    refused, empty = total(by_rules, "n_refused"), total(by_rules, "n_empty")
    if texts and dropped > HIGH_DROP_RATE * texts:
        yield _SAYS["no_gender"].format(dropped, texts, 100 * dropped / texts)
    if refused or empty:
        yield _SAYS["no_text"].format(refused, empty)
