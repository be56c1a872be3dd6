"""The texts of a run as the analysis sees them: in study order, associated, tokenised; read once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from biaskit.errors import RunError
from biaskit.personas.sampling.design import DrawSeries, PersonasDesign, request_for, series_of_design
from biaskit.personas.sampling.rounds import Filling
from biaskit.personas.texts.association import Association, associate_answer
from biaskit.personas.texts.names import NameEvidence
from biaskit.personas.texts.tokens import TokenisedTexts
from biaskit.provenance import canonical_json
from biaskit.records import Finish
from biaskit.stats.resampling import generator

ASSOCIATED, SPECIFIED = "associated", "specified"


@dataclass(frozen=True, slots=True)
class TextDocument:
    """One text: where it comes from, and what was counted in it. `place` is its row in the tokens."""

    key: str
    model: str
    occupation: str
    template_id: str
    draw: int
    specified_gender: str | None
    finish: Finish | None
    empty: bool
    association: Association
    place: int
    instruction_id: int | None = None
    setting: str | None = None
    held_out: bool = False  # its gender was specified and is treated as if it were not

    @property
    def origin(self) -> str:
        """Whether the prompt named the gender."""
        return ASSOCIATED if self.specified_gender is None else SPECIFIED

    @property
    def gender(self) -> str | None:
        """The gender its words count for: as asked, else as associated."""
        return self.specified_gender or self.association.gender


@dataclass(frozen=True)
class TextDocuments:
    """Every text of the question in study order."""

    texts: tuple[TextDocument, ...]
    tokens: TokenisedTexts
    evidence: Mapping[str, NameEvidence]  # model → how its texts write the listed names
    models: tuple[str, ...]
    occupations: tuple[str, ...]
    template_ids: tuple[str, ...]
    rows_digest: str
    imported: bool = False
    n_unused: int = 0  # stored rows that this question does not need
    notes: tuple[str, ...] = ()

    @cached_property
    def origins(self) -> frozenset[str]:
        """The origins of which there is at least one text."""
        return frozenset(text.origin for text in self.texts)


@dataclass(slots=True)
class _Read:
    """What one pass over the rows collects."""

    rows: dict[str, TextDocument] = field(default_factory=dict)
    evidence: dict[str, NameEvidence] = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)


def read_documents(
    design: PersonasDesign, models: Mapping[str, Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]
) -> TextDocuments:
    """The texts that a sampled study needs, of all its models.

    `models`: label → its entry in the manifest. Draws are looked for round by round, as they were asked.
    """
    read, tokens = _read(design, rows)
    found: list[TextDocument] = []
    evidence: dict[str, NameEvidence] = {}
    for label, entry in models.items():
        evidence[label] = NameEvidence()  # of a model that wrote nothing
        for draws in _needed(design, entry, read.rows):
            found += [replace(read.rows[key], model=label) for key in draws]
            if draws:
                # A row has the label it was drawn under; another label of the same model finds it by its key.
                evidence[label] = read.evidence[read.rows[draws[0]].model]
    return _documents(
        found,
        read,
        tokens,
        evidence=evidence,
        models=tuple(models),
        occupations=tuple(item.name for item in design.occupations),
        template_ids=design.template_ids,
        seed=design.study.seed,
        hold_out=design.study.hold_out,
        n_rows=len(read.rows),
    )


def read_imported(design: PersonasDesign, rows: Iterable[Mapping[str, Any]]) -> TextDocuments:
    """Every imported text; occupations in the order of the study's list, else as they come."""
    read, tokens = _read(design, rows)
    found = sorted(read.rows.values(), key=lambda text: text.draw)
    known = [item.name for item in design.occupations]
    present = list(dict.fromkeys(text.occupation for text in found))
    documents = _documents(
        found,
        read,
        tokens,
        evidence=read.evidence,
        models=tuple(dict.fromkeys(text.model for text in found)),
        occupations=(*(name for name in known if name in present), *(n for n in present if n not in known)),
        template_ids=tuple(dict.fromkeys(text.template_id for text in found)),
        seed=design.study.seed,
        hold_out=design.study.hold_out,
        n_rows=len(read.rows),
    )
    return replace(documents, imported=True)


def _read(design: PersonasDesign, rows: Iterable[Mapping[str, Any]]) -> tuple[_Read, TokenisedTexts]:
    read, study = _Read(), design.study

    def texts() -> Iterator[str]:
        for place, row in enumerate(rows):
            check_row(row)
            text, finish = row["text"], row["finish_reason"]
            read.rows[row["key"]] = TextDocument(
                key=row["key"],
                model=row["model"],
                occupation=row["occupation"],
                template_id=str(row["template_id"]),
                draw=row["draw"],
                specified_gender=row["specified_gender"],
                finish=finish,
                empty=not text.strip(),
                association=associate_answer(text, finish, honorifics=study.honorifics),
                place=place,
                instruction_id=row.get("instruction_id"),
                setting=row.get("setting"),
            )
            if row["model"] not in read.evidence:
                read.evidence[row["model"]] = NameEvidence()
            read.evidence[row["model"]].add(text)
            read.digests[row["key"]] = hashlib.sha256(
                canonical_json([row["key"], text, finish]).encode("ascii")
            ).digest()
            yield text

    tokens = TokenisedTexts.build(texts(), study.tokenizer)
    return read, tokens


def check_row(row: Mapping[str, Any]) -> None:
    """A line that is JSON with a key may still be no row of this engine: another program wrote it."""
    lacking = [name for name in _ROW if name not in row]
    if lacking or not isinstance(row["text"], str) or not isinstance(row["draw"], int):
        what = f"lacks {', '.join(lacking)}" if lacking else "has another kind of text or draw"
        raise RunError(
            f"The stored row {row['key']} {what}: the row file is damaged. Restore it, or remove the line."
        )


_ROW = ("model", "occupation", "template_id", "specified_gender", "draw", "finish_reason", "text")
"""What analysis reads of a row of generations.jsonl."""


def _needed(
    design: PersonasDesign, entry: Mapping[str, Any], stored: Mapping[str, TextDocument]
) -> Iterator[list[str]]:
    """For each series of a model the keys of its stored draws, in draw order.

    A series is read round by round for as long as it was to be drawn: texts that an earlier study with
    other numbers left behind are not needed. Specified series have exactly n draws.
    """
    filling = Filling.of(design.study)
    for series in series_of_design(design, entry["prompt_form"]):
        found: dict[int, str] = {}  # draw → key

        def add(draws: range, series: DrawSeries = series, found: dict[int, str] = found) -> None:
            for draw in draws:
                key = request_for(series, draw, entry["fingerprint"], design).key
                if key in stored:
                    found[draw] = key

        if series.specified_gender:
            add(range(design.study.per_gender))
        else:
            for number in range(-(-filling.most // filling.batch)):
                add(filling.round(number))
                genders = {draw: stored[key].association.gender for draw, key in found.items()}
                if filling.verdict(genders, number + 1)[0] != "open":
                    break
        yield list(found.values())


def _documents(
    found: Sequence[TextDocument],
    read: _Read,
    tokens: TokenisedTexts,
    *,
    evidence: Mapping[str, NameEvidence],
    models: tuple[str, ...],
    occupations: tuple[str, ...],
    template_ids: tuple[str, ...],
    seed: int,
    hold_out: float | None,
    n_rows: int,
) -> TextDocuments:
    digest = hashlib.sha256(b"".join(read.digests[text.key] for text in found)).hexdigest()
    texts = _held_out(found, seed, hold_out) if hold_out else tuple(found)
    return TextDocuments(
        texts=texts,
        tokens=tokens,
        evidence=evidence,
        models=models,
        occupations=occupations,
        template_ids=template_ids,
        rows_digest=digest,
        n_unused=n_rows - len({text.key for text in found}),
    )


def _held_out(found: Sequence[TextDocument], seed: int, part: float) -> tuple[TextDocument, ...]:
    """A random part of each (model, occupation, gender) loses its gender: a control.

    See docs/methods.md#hold-out.
    """
    groups: dict[tuple[str, str, str], list[int]] = {}
    for i, text in enumerate(found):
        if text.specified_gender is not None:
            groups.setdefault((text.model, text.occupation, text.specified_gender), []).append(i)
    chosen: set[int] = set()
    for group, places in groups.items():
        n = int(part * len(places))
        picked = generator(seed, "hold-out", group).permutation(len(places))[:n]
        chosen |= {places[i] for i in picked.tolist()}
    return tuple(
        replace(text, specified_gender=None, held_out=True) if i in chosen else text
        for i, text in enumerate(found)
    )
