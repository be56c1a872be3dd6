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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.report.content import Content
from biaskit.report.figures.figure import Figure, Missing
from biaskit.report.findings.finding import Finding
from biaskit.report.page import fitting, labels, listed_tables
from biaskit.report.page.drawing import UnfitDrawing, drawing
from biaskit.report.page.foreign import LONGEST_SENTENCE, LONGEST_TEXT, all_shown, cut, shown

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).resolve().parent
_MEGABYTE = 1_000_000
LEADING = 8
"""Findings that stand in the open; the others are one click away."""
_ROOM = 2_000
"""Bytes kept free for the sentences that say what was left out."""

SECTIONS: tuple[tuple[str, str], ...] = (
    ("findings", "Findings"),
    ("limits", "What these numbers cannot show"),
    ("models", "Models"),
    ("figures", "Figures"),
    ("tables", "Tables"),
    ("prompts", "Prompts"),
    ("texts", "Example texts"),
    ("words", "Marked words in context"),
    ("deviations", "Deviations from the papers"),
    ("provenance", "Provenance"),
)
"""Ids and headings, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole HTML file, and a sentence for each thing that it leaves out."""

    html: bytes
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plate:
    """A figure on the page: drawn where there is no reason against it."""

    id: str
    title: str
    caption: str = ""
    alt: str = ""
    svg: str = ""
    reason: str = ""


def render_page(
    content: Content,
    findings: Sequence[Finding],
    cannot_show: Sequence[str],
    figures: Sequence[Figure | Missing],
    *,
    max_mb: float = 3.0,
    reading: str = "",
) -> Page:
    """Make the page; over `max_mb` megabytes (10^6 bytes) it leaves things out and says which.

    `reading` says once how the findings are to be read.
    Same input, same bytes. A figure whose SVG could run or load something is not drawn, and says so.
    """
    plates = [_plate(figure, number) for number, figure in enumerate(figures)]
    drawings = [plate.svg for plate in plates]
    whole = {**_whole(content, findings, cannot_show, plates), "reading": reading}
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
    content: Content, drawings: Sequence[str], extent: fitting.Extent, done: dict[tuple[object, ...], str]
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


def _whole(
    content: Content, findings: Sequence[Finding], cannot_show: Sequence[str], plates: Sequence[Plate]
) -> dict[str, Any]:
    tables = listed_tables.list_tables(content)
    anchors = [table.anchor for table in tables] + [plate.id for plate in plates]

    def of(number: int) -> list[listed_tables.ListedTable]:
        return [table for table in tables if table.anchor.startswith(f"table-{number}-")]

    return {
        "content": content,
        "title": cut(content.title) or "Report",
        "sections": SECTIONS,
        "engines": labels.ENGINES,
        "findings": _findings(findings, anchors),
        "cannot_show": [_typeset(cut(one, LONGEST_SENTENCE)) for one in cannot_show],
        "notes": list(dict.fromkeys((*content.notes, *(n for part in content.parts for n in part.notes)))),
        "models": [(part, model) for part in content.parts for model in part.models],
        "plates": plates,
        "between": of(listed_tables.BETWEEN),
        "tables": [(part, of(number)) for number, part in enumerate(content.parts, 1)],
        "asked": fitting.questions(content),
        "on_disk": [
            (name, why)
            for name, why in labels.NOT_ON_PAGE.items()
            if any(part.tables.get(name) for part in content.parts)
        ],
        "classes": labels.CLASSES,
        "measured": [(part, listed_tables.measured_with(part.models, ())) for part in content.parts],
        "cut": cut,
        "longest": {"sentence": LONGEST_SENTENCE, "text": LONGEST_TEXT},
    }


def _findings(findings: Sequence[Finding], anchors: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """The first ones in the open, the rest and what was not measured one click away, in the order given."""
    found = [
        {
            "text": _typeset(cut(one.text, LONGEST_SENTENCE)),
            "topic": labels.TOPICS.get(one.topic, cut(one.topic)),
            "verdict": labels.VERDICTS.get(one.verdict, cut(one.verdict)),
            "kind": one.verdict if one.verdict in labels.VERDICTS else "shown",
            "measured_with": cut(one.measured_with, LONGEST_SENTENCE),
            "anchor": (anchor := _of_topic(one.topic, _resolved(one.anchor, anchors), anchors)),
            "where": dict(SECTIONS).get(anchor, "the table" if anchor.startswith("table-") else "the figure"),
        }
        for one in findings
    ]
    measured = [one for one in found if one["kind"] != "not-measured"]
    return {
        "lead": measured[:LEADING],
        "more": measured[LEADING:],
        "not_measured": [one for one in found if one["kind"] == "not-measured"],
    }


def _typeset(sentence: str) -> str:
    """A percent sign does not begin a line."""
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", sentence)


TOPIC_FIGURES = {
    "probe-explicit": "jobs",
    "probe-implicit": "jobs",
    "debiasing": "debiasing",
    "representation": "scatter",
    "srb": "srb",
    "transfer": "transfer",
    "groups": "groups",
    "models": "models",
    "gaps": "gaps-explicit",
    "relations": "gaps-explicit",
}
"""The figure that shows what a topic's findings say; where two parts have one, the whole section is meant."""


def _of_topic(topic: str, anchor: str, anchors: Sequence[str]) -> str:
    figure = f"figure-{TOPIC_FIGURES.get(topic)}"
    alone = figure in anchors and f"{figure}-2" not in anchors
    meant = anchor == "figures" or (topic, anchor) == ("models", "tables")
    return figure if meant and alone else anchor


def _resolved(anchor: str, anchors: Sequence[str]) -> str:
    """The anchor where the page has it; else a table of the same name; else the section of its kind."""
    anchor = anchor.removeprefix("#")
    if anchor in anchors or anchor in dict(SECTIONS):
        return anchor
    table = anchor.rpartition("-")[2]
    alike = (other for other in anchors if other.startswith("table-") and other.endswith(f"-{table}"))
    return next(alike, "figures" if anchor.startswith("figure-") else "tables")


def _plate(figure: Figure | Missing, number: int) -> Plate:
    anchor, title = f"figure-{figure.name}", cut(figure.title)
    if isinstance(figure, Missing):
        return Plate(anchor, title, reason=cut(figure.reason, LONGEST_SENTENCE))
    caption, alt = cut(figure.caption, LONGEST_SENTENCE), cut(figure.alt, LONGEST_SENTENCE)
    try:
        return Plate(anchor, title, caption, alt, drawing(figure.svg, f"f{number}-"))
    except UnfitDrawing as error:
        return Plate(anchor, title, caption, alt, reason=f"its drawing was refused: {error}")
