"""From stored texts to the public tables of a run; needs no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from biaskit.common.plain import attributes
from biaskit.common.wording import listed, people, short
from biaskit.compare.comparison import merge_tests
from biaskit.corpora.loaders import english_counts
from biaskit.measures.personas.compare import between_persona_models
from biaskit.measures.personas.contrasts import test_rows
from biaskit.measures.personas.design import GENERATION_VERSION, PersonasDesign, read, signed_groups
from biaskit.measures.personas.labels.correction import Labels, corrected
from biaskit.measures.personas.outcomes import outcome_rows, refusal_rows
from biaskit.measures.personas.representation import ALL_TEMPLATES, decile_rows, representation_rows
from biaskit.measures.personas.srb.clusters import cluster_tables
from biaskit.measures.personas.srb.run_scores import WordVectors, score_notes, srb_rows, word_vectors
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.association import validation
from biaskit.measures.personas.texts.documents import INFERRED, TextDocuments, texts_of
from biaskit.measures.personas.texts.outcomes import DECLINES
from biaskit.measures.personas.words.debiasing import debiasing_word_rows
from biaskit.measures.personas.words.groups import (
    group_list_rows,
    group_notes,
    group_word_rows,
    make_group_lists,
)
from biaskit.measures.personas.words.run_lists import (
    RunLists,
    list_notes,
    list_tables,
    make_lists,
    topic_shares,
)
from biaskit.measures.personas.words.transfer import transfer_rows
from biaskit.progress import Silent, Watcher
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import read_manifest
from biaskit.runs.store import Reading
from biaskit.stats.verdict import Rule
from biaskit.tables.query import Row, grouped, where
from biaskit.tables.reasons import NOT_ENGLISH, parts_of_reason
from biaskit.tables.sets import TableSet

METHODS_VERSION = {
    "association": 2,
    "outcomes": 3,
    "representation": 2,
    "labels": 1,
    "words": 5,
    "srb": 5,
    "clusters": 2,
    "transfer": 4,
}
"""Raised when the same rows would give other tables."""
TABLE_NAMES = (
    *("genders", "gender_validation", "text_outcomes", "representation", "deciles"),
    "label_validation",
    *("marked_words", "word_lists"),
    *("word_overlap", "word_methods", "debiasing_words", "srb", "clusters", "silhouette", "tests"),
    *("text_transfer", "group_words", "group_lists"),
)
HIGH_DROP_RATE = 0.2  # part of texts without an association above which a share is warned about


@dataclass(slots=True)
class _Results:
    """The tables of one analysis, its notes, and its record for analysis.json (vectors, clusters, …)."""

    tables: dict[str, Sequence[Row]] = field(default_factory=dict)
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
    for name in TABLE_NAMES:
        if rows := results.tables.get(name):  # a table that was not made is absent
            made.add(name, rows, scoped=bool(design.templates), labelled="labels" in results.record)
    notes = [*reading.notes, *answerers.notes(models, study), *results.notes, *_reading_notes(documents)]
    if documents.n_unused:
        notes.append(f"{documents.n_unused} stored texts are not part of this study and were not used")
    made.notes += notes
    signed = signed_groups(documents.group_column)
    if vectors_name := results.record.get("vectors_name"):
        signed = {"vectors": str(vectors_name), **signed}
    made.analysis |= {
        "choices": _choices(study),
        "methods": METHODS_VERSION,
        "generation": GENERATION_VERSION,
        "signature": design.sign(models, **signed),
        "rows_digest": documents.rows_digest,
        "n_texts": len(documents.texts),
        "notes": notes,
        "versions": manifest.versions,
    }
    made.analysis |= results.record | {"answered": answerers.record()}
    if len(models) > 1:
        _add_rows_between(made, study, formats)
    return made


def _choices(study: PersonasStudy) -> dict[str, Any]:
    """List the analysis keys of a study that decide a number."""
    stated = study.model_dump(mode="json")
    return {key: stated[key] for key in sorted(PersonasStudy.analysis_keys - {"summary", "papers", "lock"})}


def _add_rows_between(made: TableSet, study: PersonasStudy, formats: Mapping[str, str]) -> None:
    """Add the tests between the models of one run."""
    rows, changes, notes = between_persona_models(
        {name: made.rows(name) for name in ("srb", "representation")},
        formats=formats,
        margins=study.margin,
        seed=study.seed,
        run=str(made.run),
    )
    if changes:
        made.add("srb_change", changes)
    made.add("tests", merge_tests(made.rows("tests"), rows, Rule(strict=study.strict)))
    made.notes += notes


def _make_tables(
    run: Path, documents: TextDocuments, design: PersonasDesign, formats: Mapping[str, str], watcher: Watcher
) -> _Results:
    """Make association → representation → words → SRB → clusters → tests of texts already read."""
    study, results, scoped = design.study, _Results(), bool(design.templates)
    english = english_counts(study.english_prior)
    associations = _gender_rows(documents, scoped=scoped)
    results.tables["genders"] = associations
    results.tables["gender_validation"] = validation(associations)
    # Imported texts do not say how they ended.
    refusals = [] if documents.imported else refusal_rows(documents.texts)
    results.tables["text_outcomes"] = outcome_rows(refusals, documents.unread)
    results.notes += _refusal_notes(refusals)
    representation = _add_representation(results, run, documents, design)
    results.notes += _representation_notes(representation, results)
    of_english: dict[str, object] = {}
    for label, evidence in documents.english.items():
        of_english[label] = evidence.record()
        if note := evidence.note(label):
            results.notes.append(note)
    results.record["english"] = of_english
    if scoped:
        results.tables["debiasing_words"] = list(debiasing_word_rows(documents, study, english, formats))
    else:  # under debiasing prompts every text counts, whatever they made of it
        results.notes += _evading_notes(documents)
        _add_words(results, documents, study, english, watcher)
    results.tables["tests"] = test_rows(
        results.tables.get("srb", ()),
        representation,
        models=documents.models,
        margins=study.margin,
        seed=study.seed,
        refusals=refusals,
        transfer=results.tables.get("text_transfer", ()),
        strict=study.strict,
    )
    return results


def _gender_rows(documents: TextDocuments, *, scoped: bool) -> list[Row]:
    """Make the rows of genders.csv: every text, its gender and the words that were counted for it."""
    of_text = ["model", "occupation", "template_id", "origin", "requested_gender", "key"]
    of_association = ("gender", "rule_id", "n_female", "n_male", "n_neutral")
    if scoped:
        of_text += ["debiasing_id", "context"]
    return [
        attributes(text, of_text) | attributes(text.association, of_association) for text in documents.texts
    ]


def _add_representation(
    results: _Results, run: Path, documents: TextDocuments, design: PersonasDesign
) -> Sequence[Row]:
    """Add the shares of texts without a gender in the prompt, and what labels of a person say of them."""
    study, rows = design.study, list[Row]()
    unrequested = [text for text in documents.texts if text.requested_gender is None]
    if documents.imported and not unrequested:
        results.notes.append(
            "every text has a requested gender, so there is no “who is represented” and no SRB; without"
            " --gender-col there is “who is represented”, by inferred gender (SRB needs both kinds)"
        )
    if unrequested and not study.hold_out:
        scopes = [(i.id if i else 0, "plain") for i in design.debiasing_prompts] if design.templates else []
        workforce = {item.name: (item.workforce_share, item.year) for item in design.occupations}
        rows = representation_rows(
            unrequested,
            workforce,
            models=documents.models,
            occupations=documents.occupations,
            templates=documents.template_ids,
            batch=None if documents.imported else (study.batch or study.per_gender),
            scopes=scopes,
            unread=documents.unread,
        )
    if Labels.is_in(run) and not rows:
        results.notes.append("labels are not used: without texts of no requested gender there is no share")
    elif Labels.is_in(run):
        labels = Labels.stored_in(run)
        rows, validated, notes = corrected(run, labels, documents, study, rows)
        results.tables["label_validation"] = validated
        results.notes += notes
        results.record["labels"] = {"n": len(labels.settled()[0]), "judge": labels.judge is not None}
    results.tables["representation"] = rows
    return rows


def _add_words(
    results: _Results,
    documents: TextDocuments,
    study: PersonasStudy,
    english: Mapping[str, int],
    watcher: Watcher,
) -> None:
    """Add the tables of marked words, transfer, SRB and clusters."""
    lists = make_lists(documents, study, english, partial(watcher.progress, "word lists"))
    results.tables |= list_tables(documents, lists)
    results.notes += list_notes(lists)
    groups = make_group_lists(documents, study, english, partial(watcher.progress, "word lists of groups"))
    if groups is not None:
        results.tables["group_words"] = list(group_word_rows(groups))
        results.tables["group_lists"] = list(group_list_rows(groups))
        results.notes += group_notes(groups, documents, study)
    if shares := topic_shares(lists, documents, study):
        results.record["topic_share"] = {"least": min(shares), "median": median(shares), "most": max(shares)}
        results.notes.append(
            f"the hybrid prior takes {100 * median(shares):.2g} % of its weight from the compared texts"
            f" (median over lists; alpha {study.alpha:g}), the rest from English"
        )
    told_apart = transfer_rows(documents, lists, study, partial(watcher.progress, "held-out texts"))
    results.tables["text_transfer"] = list(told_apart)
    # Both scores and clusters need vectors, and vectors only where a list has a word.
    vectors: WordVectors | None = None
    clustered = study.clusters and _has_words_to_cluster(lists)
    if len(documents.origins) > 1 or clustered:
        vectors = word_vectors(documents, lists, study, partial(watcher.progress, "word vectors"))
        results.record |= {"vectors": dict(vectors.record), "vectors_name": vectors.name}
        results.notes += vectors.notes
    scores = list(srb_rows(documents, lists, study, vectors, partial(watcher.progress, "SRB scores")))
    results.tables["srb"] = [row for row, _ in scores]
    results.notes += score_notes(scores)
    if clustered and vectors:
        of_corpus = vectors.models[0]
        results.tables |= cluster_tables(documents, lists, study, of_corpus, results.notes, results.record)


def _has_words_to_cluster(lists: RunLists) -> bool:
    for (_, _, origin), (_, word_lists) in lists.by_key.items():
        if origin == INFERRED and any(word_list.n_marked for word_list in word_lists):
            return True
    return False


# --- notes ---------------------------------------------------------------------------------------------


def _reading_notes(documents: TextDocuments) -> Iterator[str]:
    """Say how many texts are copies, and how many hold marks that were read as breaks between words."""
    texts = [text for text in documents.texts if text.describes]
    if n_copies := sum(text.copy_of is not None for text in texts):
        yield (
            f"{n_copies:,} of {len(texts):,} texts are copies, equal or nearly equal to another: they count"
            " once for each gender in word lists, scores and AUCs, and do not narrow the interval of a share"
        )
    if marked := [text.mark for text in documents.texts if text.mark]:
        yield (
            f"{len(marked):,} of {len(documents.texts):,} texts contain written line marks, tags or character"
            f" codes, first {short(marked[0])}: marks and tags count as breaks, codes as their characters"
        )


def _refusal_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Say how many texts of a requested gender were refused or are empty."""
    parts, n_lost = [], 0
    for (gender,), of_gender in grouped(rows, "requested_gender").items():
        n: Counter[str] = Counter()
        for row in of_gender:
            n.update({name: row[name] for name in ("n_refused", "n_empty", "n_texts")})
        n_lost += n["n_refused"] + n["n_empty"]
        parts.append(
            f"{n['n_refused']} refused or filtered and {n['n_empty']} empty of {n['n_texts']} about"
            f" {people(gender)}"
        )
    if n_lost:
        yield f"of the texts with a gender in the prompt, {listed(parts)}: left out of lists and scores"


def _evading_notes(documents: TextDocuments) -> Iterator[str]:
    """Say how many texts decline or lecture by their words; imported ones are used all the same."""
    if documents.imported:
        if n := sum(text.outcome == DECLINES for text in documents.texts if text.read):
            n_of_all = f"{n:,} of {len(documents.texts):,}"
            yield f"{n_of_all} texts seem to decline; all imported texts are used"
        return
    n_of = Counter(text.requested_gender for text in documents.texts)
    evading = Counter(text.requested_gender for text in documents.texts if text.evades)
    parts = []
    for gender, n in n_of.items():
        if evading[gender]:
            about = f"about {people(gender)}" if gender else "with no gender in the prompt"
            parts.append(f"{evading[gender]:,} of {n:,} texts {about}")
    if parts:
        yield (
            f"{listed(parts)} decline or lecture instead of describing a person: left out of word lists and"
            " SRB scores"
        )


def _representation_notes(rows: Sequence[Row], results: _Results) -> Iterator[str]:
    """Add the deciles, and say what the shares leave out."""
    if not rows:
        return
    deciles, note = decile_rows(rows)
    results.tables["deciles"] = deciles
    if note and deciles:
        yield note
    texts = dropped = refused = empty = 0
    for row in where(rows, template_id=ALL_TEMPLATES):
        if row.get("share_corrected") is None and NOT_ENGLISH not in parts_of_reason(row["reason"]):
            texts, dropped = texts + row["n_texts"], dropped + row["n_not_inferred"]
            refused, empty = refused + row["n_refused"], empty + row["n_empty"]
    if texts and dropped > HIGH_DROP_RATE * texts:
        yield (
            f"{dropped} of {texts} texts ({100 * dropped / texts:.0f} %) name no gender and are left out of"
            " the shares; they are not missing at random: share_if_dropped_* are the bounds"
        )
    if refused or empty:
        yield f"{refused} texts were refused or filtered and {empty} are empty: they have no gender"
