"""Content, findings and figures → one HTML file: what stands in the open, and data for its script.

Findings, limits, models, deviations and provenance are plain HTML. Tables, drawings, prompts, texts and words
are JSON, deflated, base64, in inert elements that the page's one script unpacks; the script only ever writes
text. Whatever is foreign passes `foreign.shown` on its way in (docs/reading.md#foreign-text).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.report.content import Content, Gate
from biaskit.report.figures.figure import Figure
from biaskit.report.findings.finding import Finding, Sentences
from biaskit.report.page import fitting, labels, listed_tables
from biaskit.report.page.drawing import UnfitDrawing, drawing
from biaskit.report.page.foreign import LONGEST_SENTENCE, LONGEST_TEXT, all_shown, cut, shown
from biaskit.report.questions import QUESTIONS, QuestionId
from biaskit.wording import count, listed

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).resolve().parent
_MEGABYTE = 1_000_000
_ROOM = 2_000
"""Bytes kept free for the sentences that say what was left out."""
MOST_OPEN = 3
"""Sentences that stand in the open under a question, beside those of the first screen."""
WITHOUT_SCRIPT = 2
"""The first figures stand in the page itself; the others are unpacked by its script."""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole HTML file, and a sentence for each thing that it leaves out."""

    html: bytes
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plate:
    """A figure on the page; `column` is the same for a phone, empty where it has none."""

    id: str
    place: int  # among the page's drawings
    question: QuestionId
    title: str
    caption: str
    alt: str
    svg: str
    column: str = ""
    reason: str = ""  # why it is not drawn


@dataclass(frozen=True, slots=True)
class Section:
    """A question with all that answers it: one figure and short sentences in the open, the rest in a fold."""

    id: QuestionId
    heading: str
    open: tuple[Plate, ...]
    said: list[dict[str, str]]  # in the open
    above: bool  # whether sentences of the first screen answer it
    findings: list[dict[str, str]]  # all, with what they were measured with
    plates: list[Plate]
    tables: list[tuple[str, listed_tables.ListedTable]]  # with the name of their part where there are several
    asked: list[dict[str, Any]]
    prompts: str  # engine
    texts: bool
    words: bool

    @property
    def stands(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.answered or self.words or self.texts or self.prompts or self.id == "sure")

    @property
    def answered(self) -> bool:
        """Whether it says something in the open, and not only that nothing was measured."""
        return bool(self.open) or any(one["kind"] != "not-measured" for one in self.findings)


def render_page(
    content: Content,
    said: Sentences,
    figures: Sequence[Figure],
    *,
    max_mb: float = 3.0,
) -> Page:
    """Make the page; over `max_mb` megabytes (10^6 bytes) it leaves things out and says which.

    Same input, same bytes. A figure whose SVG could run or load something is not drawn, and says so; one that
    has no data is not on the page.
    """
    plates = [_plate(figure, number) for number, figure in enumerate(figures)]
    drawings = [("", "") if plate.place < WITHOUT_SCRIPT else (plate.svg, plate.column) for plate in plates]
    whole = _whole(content, said, plates)
    fixed = len(_html(whole, {}, {}))
    packed: dict[tuple[object, ...], str] = {}
    for extent in fitting.smaller(content, drawings):
        data = _packed(content, drawings, extent, packed)
        if fixed + sum(map(len, data.values())) + _ROOM <= max_mb * _MEGABYTE:
            break
    left_out = fitting.left_out(content, drawings, extent)
    html = _html(whole, data, left_out)
    notes = [f"left out of the page for its size: {what}" for what in left_out.values()]
    if len(html) > max_mb * _MEGABYTE:
        notes.append(
            f"the page has {len(html) / _MEGABYTE:.2f} MB, over report.max_mb = {max_mb:g}: "
            "what is left of it is not left out"
        )
    return Page(html, tuple(shown(note) for note in notes))


_BEGINNING = (
    b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    b"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-"
)
"""Every page begins so, those of earlier versions too."""


def is_page(content: bytes) -> bool:
    """Whether a file is a page that biaskit made, which a new one may replace."""
    return content.startswith(_BEGINNING)


def _packed(
    content: Content,
    drawings: Sequence[fitting.Drawn],
    extent: fitting.Extent,
    done: dict[tuple[object, ...], str],
) -> dict[str, str]:
    """The data by name; what an earlier, larger extent packed in the same way is taken from `done`."""
    data = {}
    for name, make in fitting.data_of(content, drawings, extent).items():
        key = (name, *(getattr(extent, field) for field in fitting.DECIDED_BY[name]))
        if key not in done:
            done[key] = _deflated(make())
        data[name] = done[key]
    return data


def _deflated(value: Any) -> str:
    text = json.dumps(all_shown(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 6)).decode("ascii")


def _html(whole: Mapping[str, Any], data: Mapping[str, str], left_out: Mapping[str, str]) -> bytes:
    from markupsafe import Markup

    template = _environment().get_template("page.html.j2")
    script = (_HERE / "page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    text = template.render(
        **whole,
        data=data,
        left_out=left_out,
        script=Markup(script),  # noqa: S704  (a file of this package)
        script_hash=digest,
        style=Markup((_HERE / "page.css").read_text("utf-8")),  # noqa: S704
    )
    return text.encode("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _finalized(value: Any) -> Any:
    """Every expression of the template passes here before it is escaped."""
    from markupsafe import Markup

    if value is None:
        return "–"
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _whole(content: Content, said: Sentences, plates: Sequence[Plate]) -> dict[str, Any]:
    every = [*_sections(content, said, plates)]
    sections = [one for one in every if one.stands]
    sections.sort(key=lambda one: (one.id == "sure", not one.answered))
    for one in every:  # the last section keeps what a question without an answer has
        if not one.stands:
            sections[-1].tables.extend(one.tables)
            sections[-1].plates.extend(one.plates)
            sections[-1].findings.extend(one.findings)
    return {
        "content": content,
        "title": cut(content.title) or "Report",
        "measured_line": measured_line(content),
        "hero": next(iter(plates), None),
        "leading": [_finding(one) for one in said.leading],
        "sections": sections,
        "gate": _gate(content.gate),
        "interval": _typeset(cut(said.interval, LONGEST_SENTENCE)),
        "reading": said.reading,
        "limits": [_typeset(cut(one, LONGEST_SENTENCE)) for one in said.limits],
        "not_measured": [cut(one, LONGEST_SENTENCE).split("`") for one in said.not_measured],
        "notes": list(dict.fromkeys((*content.notes, *(n for part in content.parts for n in part.notes)))),
        "models": [(part, model) for part in content.parts for model in part.models],
        "on_disk": [
            (name, why)
            for name, why in labels.NOT_ON_PAGE.items()
            if any(part.tables.get(name) for part in content.parts)
        ],
        "classes": labels.CLASSES,
        "without_script": WITHOUT_SCRIPT,
        "drawn": _markup,  # a drawing that `drawing` let through
        "cut": cut,
        "longest": {"sentence": LONGEST_SENTENCE, "text": LONGEST_TEXT},
    }


def _markup(svg: str) -> Any:
    from markupsafe import Markup

    return Markup(svg)  # noqa: S704


def _sections(content: Content, said: Sentences, plates: Sequence[Plate]) -> Iterator[Section]:
    tables = listed_tables.list_tables(content)
    asked = fitting.questions(content)
    of_texts, of_prompts = bool(content.examples), {one.engine for one in content.prompts}
    for question in QUESTIONS:
        own = [plate for plate in plates[1:] if plate.question == question.id]
        shown = [plate for plate in own if not plate.reason][:1]
        engine = {"say": "probe", "write": "personas"}.get(question.id, "")
        yield Section(
            id=question.id,
            heading=question.heading,
            open=tuple(shown),
            said=[_finding(one) for one in said.findings[said.n_leading :] if one.question == question.id][
                :MOST_OPEN
            ],
            above=any(one.question == question.id for one in said.leading),
            findings=[_finding(one) for one in said.findings if one.question == question.id],
            plates=[plate for plate in own if plate not in shown],
            tables=[(_part_of(content, one), one) for one in tables if _question_of(one) == question.id],
            asked=[one for one in asked if _engine_of(content, one["id"]) == engine],
            prompts=engine if engine in of_prompts else "",
            texts=question.id == "write" and of_texts,
            words=question.id == "how" and bool(content.words),
        )


def _question_of(table: listed_tables.ListedTable) -> QuestionId:
    if table.name == "tests" and table.number == listed_tables.BETWEEN:
        return "models"
    return labels.QUESTION_OF_TABLE.get(table.name, "sure")


def _part_of(content: Content, table: listed_tables.ListedTable) -> str:
    """Which part a table is of, where that has to be said."""
    if table.number == listed_tables.BETWEEN or len(content.parts) < 2:
        return ""
    part = content.parts[table.number - 1]
    return f"{part.engine}, {cut(part.study)}"


def _engine_of(content: Content, anchor: str) -> str:
    """The engine whose questions a table of templates or instructions holds."""
    return content.parts[int(anchor.split("-")[1]) - 1].engine


def measured_line(content: Content) -> str:
    """What was measured, in one line: models, studies, how many answers, when."""
    labels_ = list(dict.fromkeys(model.label for part in content.parts for model in part.models))
    bits = [listed([cut(label, 40) for label in labels_]) if len(labels_) < 3 else f"{len(labels_)} models"]
    for part in content.parts[:3]:
        n_cells = len(part.tables.get("probe_cells", ()))
        n_texts = len(part.tables.get("associations", ()))
        n = count(n_cells, "prompt") if part.engine == "probe" else count(n_texts, "text")
        bits.append(f"{cut(part.study, 40)}: {n}" if n_cells or n_texts else cut(part.study, 40))
    days = [
        day
        for part in content.parts
        for m in part.models
        for day in (m.first_answered, m.last_answered)
        if day
    ]
    if days:
        first, last = min(days), max(days)
        bits.append(first if first == last else f"{first} to {last}")
    return " · ".join(bits)


def _gate(gate: Gate | None) -> dict[str, str] | None:
    """The badge of a comparison of two models, as a release manager asks for it."""
    if gate is None:
        return None
    if gate.holds:
        return {"kind": "holds", "text": f"Equivalent in all {gate.n_rows:,} differences"}
    if not gate.n_rows:
        return {"kind": "fails", "text": "Not shown to be equivalent: nothing was compared"}
    said = f"Not shown to be equivalent in {gate.n_failing:,} of {count(gate.n_rows, 'difference')}"
    return {"kind": "fails", "text": said}


def _finding(one: Finding) -> dict[str, str]:
    return {
        "text": _typeset(cut(one.text, LONGEST_SENTENCE)),
        "verdict": labels.VERDICTS.get(one.verdict, cut(one.verdict)),
        "kind": one.verdict if one.verdict in labels.VERDICTS else "shown",
        "measured_with": cut(one.measured_with, LONGEST_SENTENCE),
    }


def _typeset(sentence: str) -> str:
    """A percent sign does not begin a line."""
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", sentence)


def _plate(figure: Figure, place: int) -> Plate:
    anchor, title = f"figure-{figure.name}", cut(figure.title)
    told = (cut(figure.caption, LONGEST_SENTENCE), cut(figure.alt, LONGEST_SENTENCE))
    try:
        svg = drawing(figure.svg, f"f{place}-", shown(told[1]))
        column = drawing(figure.column.svg, f"f{place}c-", shown(told[1])) if figure.column else ""
    except UnfitDrawing as error:
        return Plate(
            anchor, place, figure.question, title, *told, "", reason=f"its drawing was refused: {error}"
        )
    return Plate(anchor, place, figure.question, title, *told, svg, column)
