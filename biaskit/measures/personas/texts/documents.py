"""The texts of a run as the analysis uses them: in study order, with their genders, tokenised; read once."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from biaskit.common.marks import first_mark, legible
from biaskit.common.plain import group_by
from biaskit.common.provenance import canonical_json
from biaskit.corpora.languages import ENGLISH
from biaskit.errors import RunError, UsageError
from biaskit.measures.personas.design import PersonasDesign
from biaskit.measures.personas.sampling.filling import Filling, Tally
from biaskit.measures.personas.sampling.series import sample_keys, series_of_design
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.association import NOT_INFERRED, Association, associate_answer
from biaskit.measures.personas.texts.copies import Shingles, shingles_of, units
from biaskit.measures.personas.texts.names import NameEvidence
from biaskit.measures.personas.texts.outcomes import DECLINES, NO_DESCRIPTION, declines, text_outcome
from biaskit.measures.personas.texts.recognition import LanguageEvidence, LanguageReading
from biaskit.measures.personas.texts.tokens import TokenisedTexts, tokeniser
from biaskit.models.entry import ModelEntry
from biaskit.records import GENDERS, Finish
from biaskit.runs.drift import Answerers
from biaskit.runs.manifest import Manifest, read_manifest
from biaskit.runs.store import Reading, read_rows, rows_file
from biaskit.stats.resampling import generator
from biaskit.tables.reasons import OTHER_LANGUAGE, UNREAD

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

KEY = attrgetter("key")
"""Of a text."""
INFERRED, REQUESTED = "inferred", "requested"
NO_TEXTS = {INFERRED: "no texts without a requested gender", REQUESTED: "no texts with a requested gender"}


@dataclass(frozen=True, slots=True)
class TextDocument:
    """One text: where it comes from, and what was counted in it. `place` is its row in the tokens."""

    key: str
    model: str
    occupation: str
    template_id: str
    sample: int
    requested_gender: str | None
    finish: Finish | None
    empty: bool
    association: Association
    place: int
    debiasing_id: int | None = None
    context: str | None = None
    person_gender: str | None = None  # of the person described, as the user's own column knows it
    group: str | None = None  # what the user's own column says of it
    outcome: str | None = None  # by the rules on its words; of an imported text only whether it declines
    read: bool = True  # false where the rules cannot read it, or most of its author's texts
    english: bool | None = None  # whether it is, by itself; None: it says too little
    told: str | None = None  # the code of its language, likewise
    copy_of: str | None = None  # the key of the first text that it is a copy of
    alone: bool = False  # whether it counts by itself, copy or not
    mark: str | None = None  # the first written line mark, tag or code in it

    @property
    def origin(self) -> str:
        """Whether the prompt named the gender."""
        return INFERRED if self.requested_gender is None else REQUESTED

    @property
    def gender(self) -> str | None:
        """The gender its words count for: requested (unless held out), else known, else inferred.

        None for a text that was refused, is empty, or that the rules cannot read.
        """
        if self.refused or self.empty:
            return None
        return self.requested_gender or self.person_gender or self.inferred_gender

    @property
    def inferred_gender(self) -> str | None:
        """What the rules say, whatever is requested or known."""
        return self.association.gender if self.read else None

    @property
    def unit(self) -> str:
        """What it is one of with its copies, unless each counts: a unit of evidence, by the first's key."""
        return self.key if self.alone else self.copy_of or self.key

    @property
    def refused(self) -> bool:
        """Refused or filtered; in a file, which does not tell how texts end, in words that name no gender."""
        in_words = self.finish is None and self.outcome == DECLINES and not self.association.gender
        return in_words or self.finish in NOT_INFERRED

    @property
    def evades(self) -> bool:
        """Whether its words decline or lecture; never of an imported text (`finish` None), taken as it is."""
        judged = self.finish is not None and self.read and not (self.refused or self.empty)
        return judged and self.outcome in NO_DESCRIPTION

    @property
    def describes(self) -> bool:
        """Whether its words may mark a gender or a group, and enter lists, scores and calibration."""
        return not (self.refused or self.empty or self.evades)


@dataclass(frozen=True)
class TextDocuments:
    """Every text of the question in study order."""

    texts: tuple[TextDocument, ...]
    tokens: TokenisedTexts
    evidence: Mapping[str, NameEvidence]  # model → how its texts write the listed names
    readings: Mapping[str, LanguageReading]  # model → the language that its texts are read in
    models: tuple[str, ...]
    occupations: tuple[str, ...]
    template_ids: tuple[str, ...]
    rows_digest: str
    imported: bool = False
    n_unused: int = 0  # stored rows that this question does not need
    group_column: str | None = None  # the column that each text's `group` comes from
    person_column: str | None = None  # the column of the known genders

    def counts_of(self, texts: Iterable[TextDocument]) -> csr_matrix:
        """Pick the counts of some texts, `[texts, words]`."""
        return self.tokens.counts[[text.place for text in texts]]

    @cached_property
    def origins(self) -> frozenset[str]:
        """The origins of which there is at least one text."""
        return frozenset(text.origin for text in self.texts)

    def lacking(self, what: str) -> dict[str, str]:
        """Map the models of whose texts `what` is not made (`Language.offers`) to the reason."""
        reasons = {}
        for model, reading in self.readings.items():
            if not reading.offers(what):
                reasons[model] = OTHER_LANGUAGE if reading.reason is None else f"{UNREAD}: {reading.reason}"
        return reasons

    @cached_property
    def languages(self) -> dict[str, str | None]:
        """Map each model to the code of its language (None: not read), unless all are read in English."""
        languages = {model: reading.language for model, reading in self.readings.items()}
        codes = {model: read.code if read else None for model, read in languages.items()}
        return {} if {*codes.values()} <= {ENGLISH} else codes

    def of_models(self, models: Iterable[str]) -> TextDocuments:
        """Keep the texts of some models."""
        kept = tuple(models)
        return replace(self, models=kept, texts=tuple(text for text in self.texts if text.model in kept))


@dataclass(slots=True)
class _StoredTexts:
    """What one pass over the rows collects, whether this question needs it or not."""

    by_key: dict[str, TextDocument] = field(default_factory=dict)
    evidence: defaultdict[str, NameEvidence] = field(default_factory=lambda: defaultdict(NameEvidence))
    """Model, as the rows name it → how its texts write the listed names."""
    languages: dict[str, LanguageEvidence] = field(default_factory=dict)
    """Model → which languages its texts are in."""
    doubtful: dict[str, str] = field(default_factory=dict)
    """Key → the text, where it may be read in another language than English."""
    shingles: dict[str, Shingles] = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)
    tokens: TokenisedTexts = field(init=False)

    def documents(
        self,
        study: PersonasStudy,
        texts: Sequence[TextDocument],
        evidence: Mapping[str, NameEvidence],
        languages: Mapping[str, LanguageEvidence],
        **about: Any,
    ) -> TextDocuments:
        """Make the documents of a study of some of the texts."""
        readings = {label: of_model.reading() for label, of_model in languages.items()}
        rows = b"".join(map(self.digests.__getitem__, map(KEY, texts)))
        as_read, digest = _as_read(texts, study, readings, self), hashlib.sha256(rows).hexdigest()
        return TextDocuments(as_read, self.tokens, evidence, readings, rows_digest=digest, **about)


def manifest_of_texts(run: Path, why: str) -> Manifest:
    """Read the manifest of a run of texts. Raises `UsageError` for another run; `why`: what needs texts."""
    manifest = read_manifest(run)
    if manifest.measurement != "personas":
        raise UsageError(f"{run} is a run of biaskit {manifest.measurement}{why} (biaskit personas).")
    return manifest


def texts_of(
    run: Path,
    manifest: Manifest,
    design: PersonasDesign,
    reading: Reading | None = None,
    answerers: Answerers | None = None,
) -> TextDocuments:
    """Read the texts of a run that its question needs; without any: `RunError`."""
    path = rows_file(run, "personas")
    if not path.is_file():
        raise RunError(f"{run} has no {path.name}: nothing was stored there. Rerun the personas command.")
    reading, skip_bad = reading or Reading(), design.study.skip_bad_lines
    rows = believed(read_rows(path, skip_bad=skip_bad, reading=reading), path, reading, skip_bad=skip_bad)
    rows = (answerers or Answerers()).counting(rows, answers=True)
    if imported := manifest.imported:
        documents = read_imported(design, rows, imported.get("group_col"))
        documents = replace(documents, person_column=imported.get("person_gender_col"))
    else:
        documents = read_documents(design, manifest.models, rows)
    if not documents.texts:
        raise RunError(f"{run} has no texts of this study yet. Rerun the personas command.")
    return documents


def read_documents(
    design: PersonasDesign, models: Mapping[str, ModelEntry], rows: Iterable[Mapping[str, Any]]
) -> TextDocuments:
    """Read a sampled study's texts, looked up batch by batch; `models`: label → its manifest entry."""
    stored = _read(design, rows)
    texts: list[TextDocument] = []
    evidence: dict[str, NameEvidence] = {}
    languages: dict[str, LanguageEvidence] = {}
    for label, entry in models.items():
        evidence[label], languages[label] = NameEvidence(), LanguageEvidence()  # for a model without texts
        for samples in _needed(design, entry, stored.by_key):
            texts += [replace(text, model=label) for text in samples]
            if samples:
                # A row keeps the label it was sampled under; the model under another label finds it by key.
                evidence[label] = stored.evidence[samples[0].model]
                languages[label] = stored.languages[samples[0].model]
    unused = stored.by_key.keys() - set(map(KEY, texts))
    occupations = tuple(item.name for item in design.occupations)
    about = {"models": tuple(models), "occupations": occupations, "template_ids": design.template_ids}
    return stored.documents(design.study, texts, evidence, languages, **about, n_unused=len(unused))


def read_imported(
    design: PersonasDesign, rows: Iterable[Mapping[str, Any]], group_column: str | None = None
) -> TextDocuments:
    """Read every imported text; occupations in the order of the study's list, then of appearance."""
    stored = _read(design, rows, imported=True)
    texts = sorted(stored.by_key.values(), key=attrgetter("sample"))
    models = dict.fromkeys(map(attrgetter("model"), texts))
    written = dict.fromkeys(map(attrgetter("occupation"), texts))
    listed = [item.name for item in design.occupations if item.name in written]
    occupations = dict.fromkeys((*listed, *written))
    templates = dict.fromkeys(map(attrgetter("template_id"), texts))
    about: dict[str, Any] = {"models": tuple(models), "occupations": tuple(occupations)}
    about |= {"template_ids": tuple(templates), "group_column": group_column}
    return stored.documents(design.study, texts, stored.evidence, stored.languages, **about, imported=True)


def _read(
    design: PersonasDesign, rows: Iterable[Mapping[str, Any]], *, imported: bool = False
) -> _StoredTexts:
    stored, study = _StoredTexts(), design.study
    split, own, reading = tokeniser(study.tokenizer), study.own_language, study.reading

    def texts() -> Iterator[Sequence[str]]:
        for place, row in enumerate(rows):
            key, text, finish = row["key"], row["text"], row["finish_reason"]
            outcome = None if imported else text_outcome(text, finish).outcome
            if imported and declines(text):  # nothing else is asked of one: it is what the user says it is
                outcome = DECLINES
            of_row: dict[str, Any] = {name: row.get(name) for name in _OF_ROW}
            as_read = legible(text)
            languages = stored.languages.setdefault(row["model"], LanguageEvidence(own))
            of_row["english"], of_row["told"] = languages.add(as_read)
            if own is None and not of_row["english"]:
                stored.doubtful[key] = text
            stored.by_key[key] = TextDocument(
                **of_row,
                finish=finish,
                empty=not text.strip(),
                association=associate_answer(text, finish, **reading),
                place=place,
                outcome=outcome,
                mark=first_mark(text) if as_read != text else None,
            )
            stored.shingles[key] = shingles_of(text, own)
            stored.evidence[row["model"]].add(as_read)
            content = canonical_json([key, text, finish])
            stored.digests[key] = hashlib.sha256(content.encode("ascii")).digest()
            yield split(text)

    stored.tokens = TokenisedTexts.from_words(texts())  # fills `stored` on its way
    return stored


def believed(
    rows: Iterable[dict[str, Any]], path: Path, reading: Reading, *, skip_bad: bool
) -> Iterator[dict[str, Any]]:
    """Yield the rows that can be a text of this run; any other is an error, or left out and counted."""
    for row in rows:
        if why := why_not(row):
            reading.refuse(path, why, skip_bad=skip_bad)
        else:
            yield row


def why_not(row: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a row, if anything: a line that is JSON with a key may still be no text."""
    if lacking := [name for name in _ROW if name not in row]:
        return f"it lacks {', '.join(lacking)}"
    if not all(isinstance(row[name], str) for name in ("model", "occupation", "template_id", "text")):
        return "its text, model, occupation or template is not a text"
    if type(row["sample"]) is not int or row["sample"] < 0:
        return "its `sample` is not a number"
    if row["requested_gender"] not in (None, *GENDERS):
        return "its gender is not one that a prompt can request"
    if row.get("person_gender") not in (None, *GENDERS):
        return "the gender of its person is unknown"
    if row["finish_reason"] not in (None, *get_args(Finish)):
        return "its finish reason is unknown"
    if not isinstance(row.get("group"), str | None):
        return "its group is not a text"
    return None


_OF_ROW = (
    *("key", "model", "occupation", "template_id", "sample", "requested_gender"),
    *("debiasing_id", "context", "person_gender", "group"),
)
"""What a text takes from its row as it stands."""
_ROW = ("model", "occupation", "template_id", "requested_gender", "sample", "finish_reason", "text")
"""What analysis reads of a row of personas.jsonl."""


def _needed(
    design: PersonasDesign, entry: ModelEntry, stored: Mapping[str, TextDocument]
) -> Iterator[list[TextDocument]]:
    """Yield the stored texts of each series of a model, in sample order.

    Only the key says that a text is the model's and not an earlier version's. A series is read batch by batch
    for as long as it was to be sampled: texts that an earlier study with other numbers left behind are not
    needed. Requested series have exactly n samples.
    """
    filling = Filling.from_study(design.study)
    for series in series_of_design(design, entry.prompt_format):
        key_of_sample = sample_keys(series, entry.fingerprint, design)
        texts: list[TextDocument] = []
        tally = Tally(filling)
        sample_batches = map(filling.of_batch, range(-(-filling.most // filling.batch)))
        for samples in (range(design.study.per_gender),) if series.requested_gender else sample_batches:
            of_batch = []
            for sample in samples:
                text = stored.get(key_of_sample(sample))
                if text is None:
                    continue
                expected = (series.occupation, series.template_id, series.requested_gender, sample)
                if (text.occupation, text.template_id, text.requested_gender, text.sample) != expected:
                    raise RunError(
                        f"The row {text.key} says {text.occupation}, {text.template_id}, sample {text.sample}"
                        f", and its key says {series.occupation}, {series.template_id}, sample {sample}:"
                        " rows were changed. Restore the file."
                    )
                of_batch.append(text)
            texts += of_batch
            if tally.add(text.association.gender for text in of_batch) != "open":
                break
        yield texts


def _as_read(
    listed: Sequence[TextDocument],
    study: PersonasStudy,
    readings: Mapping[str, LanguageReading],
    stored: _StoredTexts,
) -> tuple[TextDocument, ...]:
    """Mark copies, and texts in a language that the rules cannot read; hold genders out (srb#hold-out).

    Doubtful texts, which were read as English, are read again where their author's language is another.
    """
    held_out, texts, shingles = _held_out(listed, study), list[TextDocument](), list[Shingles]()
    for text in listed:
        language = readings[text.model].language
        of_text = stored.shingles[text.key]
        if text.key in stored.doubtful and language is not None and language.code != ENGLISH:
            written = stored.doubtful[text.key]
            text = replace(text, association=associate_answer(written, text.finish, language=language))
            of_text = shingles_of(written, language)
        texts.append(text)
        shingles.append(of_text)
    prompt_of = attrgetter("occupation", "template_id", "debiasing_id", "context", "requested_gender")
    # The prompts of imported texts are not known: those of an author are compared with one another.
    prompts = [(text.model, text.finish and prompt_of(text)) for text in texts]
    firsts = units(shingles, prompts)
    found = []
    for i, text in enumerate(texts):
        copy_of = None if firsts[i] == i else texts[firsts[i]].key
        gender = None if i in held_out else text.requested_gender
        reading = readings[text.model]
        association, is_read = text.association, reading.reads(text.english, text.told)
        if not is_read:
            why = "not-english" if reading.is_english else "not-read"
            association = replace(association, gender=None, rule_id=why)
        # What a model writes again it is likely to write; a file repeats a text for other reasons.
        alone = study.copies == "all" or (study.copies == "auto" and text.finish is not None)
        outcome = text.outcome if text.english or reading.offers("outcomes") else None
        given: dict[str, Any] = {"copy_of": copy_of, "requested_gender": gender, "outcome": outcome}
        found.append(replace(text, association=association, read=is_read, alone=alone, **given))
    return tuple(found)


def _held_out(texts: Sequence[TextDocument], study: PersonasStudy) -> set[int]:
    """Choose the places of texts that lose their gender: part of each model, occupation and gender."""
    chosen: set[int] = set()
    if study.hold_out is None:
        return chosen
    group_of = attrgetter("model", "occupation", "requested_gender")
    with_gender = [i for i, text in enumerate(texts) if text.requested_gender is not None]
    for group, places in group_by(with_gender, lambda i: group_of(texts[i])).items():
        order = generator(study.seed, "hold-out", group).permutation(len(places))
        chosen.update(places[i] for i in order[: int(study.hold_out * len(places))].tolist())
    return chosen
