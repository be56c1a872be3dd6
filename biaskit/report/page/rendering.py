"""Render content, findings and figures as one HTML file that shows everything without its script.

Jinja escapes every expression; hidden characters show as escapes (reference/reasons#foreign-text). Figures
are images in the page, so nothing in them can run or reach it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from biaskit.common.foreign import visible
from biaskit.common.wording import count, listed
from biaskit.measurement import measurement, measurements
from biaskit.report.content import Content, Equivalence, ExampleText, PromptShown, Span
from biaskit.report.figures.drawing import Figure
from biaskit.report.findings.finding import Finding, Sentences
from biaskit.report.page import labels
from biaskit.report.page.tables import ListedTable, gender, list_tables
from biaskit.report.questions import OF_TEXTS, QUESTIONS, QuestionId
from biaskit.tables.schema import SCHEMAS

if TYPE_CHECKING:
    from jinja2 import Environment

T = TypeVar("T")
Answer = TypeVar("Answer", Figure, Finding, ListedTable, ExampleText)
_HERE = Path(__file__).resolve().parent
MOST_OPEN = 3  # sentences shown outside the fold of a question, beside those of the first screen
MOST_PROMPTS, MOST_TEXTS = 100, 60
LONGEST_NAME, LONGEST_TEXT = 300, 20_000  # characters of a cell or a name, and of a prompt or a text
_BEGINNING = (
    b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    b"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-"
)
"""The first bytes of every page."""


def is_page(content: bytes) -> bool:
    """Whether a file is a page made by biaskit, which a new one may replace."""
    return content.startswith(_BEGINNING)


@dataclass(frozen=True, slots=True)
class Section:
    """A question with its answers: one figure and short sentences in the open, the rest in a fold."""

    id: QuestionId
    heading: str
    open: Sequence[Figure]
    said: Sequence[Finding]  # in the open
    above: bool  # whether sentences of the first screen answer it
    findings: list[Finding]  # all, with what they were measured with
    figures: list[Figure]
    tables: list[ListedTable]
    prompts: Sequence[PromptShown]
    texts: Sequence[ExampleText]

    @property
    def answered(self) -> bool:
        """Whether it says something in the open, and not only that nothing was measured."""
        return bool(self.open) or any(finding.verdict != "not-measured" for finding in self.findings)

    @property
    def stands(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.answered or self.texts or self.prompts or self.id == "sure")


def render_page(content: Content, said: Sentences, figures: Sequence[Figure]) -> bytes:
    """Make the page; the same input gives the same bytes."""
    from markupsafe import Markup

    every = [*_sections(content, said, figures)]
    sections = [section for section in every if section.stands]
    sections.sort(key=lambda section: (section.id == "sure", not section.answered))
    for section in every:  # the last section takes what a question without an answer has
        if not section.stands:
            sections[-1].tables.extend(section.tables)
            sections[-1].figures.extend(section.figures)
            sections[-1].findings.extend(section.findings)
    notes = dict.fromkeys(content.notes)
    for part in content.parts:
        notes |= dict.fromkeys(part.notes)
    on_disk = {}
    for name, schema in SCHEMAS.items():
        if schema.not_on_page and any(part.tables.get(name) for part in content.parts):
            on_disk[name] = schema.not_on_page
    script = (_HERE / "page.js").read_text("utf-8")
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    own_files = {
        "script": Markup(script),  # noqa: S704  (a file of this package)
        "script_hash": base64.b64encode(digest).decode("ascii"),
        "style": Markup((_HERE / "page.css").read_text("utf-8")),  # noqa: S704
    }
    models = [(part, model) for part in content.parts for model in part.models]
    first_screen = {
        "title": content.title or "Report",
        "measured_line": measured_line(content),
        "hero": next(iter(figures), None),
        "equivalence": _equivalence(content.equivalence),
    }
    behind: dict[QuestionId, tuple[str, str]] = {}
    for section in sections:
        if what := "texts" * bool(section.texts) or "prompts" * bool(section.prompts):
            behind[section.id] = f"{what}-{section.id}", what
    for section in sections if behind else ():  # what has none of its own was measured with the first
        behind.setdefault(section.id, next(iter(behind.values())))
    below: dict[str, Any] = {"sections": sections, "behind": behind, "notes": list(notes)}
    below |= {"models": models, "on_disk": on_disk}
    template = _environment().get_template("page.html.j2")
    html = template.render(content=content, said=said, labels=labels, **first_screen, **below, **own_files)
    return html.encode("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"cut": cut, "long": lambda text: cut(text, LONGEST_TEXT)}
    # A percent sign stays with its number.
    nbsp = "\N{NO-BREAK SPACE}%"
    environment.filters |= {"sentence": lambda text: re.sub(r"(?<=\d) %", nbsp, cut(text, 2_000))}
    environment.filters |= {"base64": lambda data: base64.b64encode(data).decode("ascii"), "gender": gender}
    environment.globals |= {"pieces": pieces, "read_as": _read_as}
    return environment


def _shown(value: Any) -> Any:
    """Prepare the value of every expression of the template, before it is escaped."""
    from markupsafe import Markup

    if value is None:
        return "–"
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return visible(value.replace("\r\n", "\n"), keep="\n\t")


def cut(text: object, longest: int = LONGEST_NAME) -> str:
    """Cut a text that is too long, and say how many characters it had."""
    full = str(text)
    return full if len(full) <= longest else f"{full[:longest]} … (cut: {len(full):,} characters)"


def _sections(content: Content, said: Sentences, figures: Sequence[Figure]) -> Iterator[Section]:
    tables = list_tables(content)
    asked = {kind.name: kind.question for kind in measurements()}  # where the prompts of each kind stand
    for question, heading in (OF_TEXTS if content.imported else QUESTIONS).items():
        drawn, findings = _answering(question, figures[1:]), _answering(question, said.findings)
        n_leading = len(_answering(question, said.leading))
        prompts = [prompt for prompt in content.prompts if asked[prompt.measurement] == question]
        texts = _some(_answering(question, content.examples), MOST_TEXTS)
        said_below = findings[n_leading:][:MOST_OPEN]
        yield Section(
            id=question,
            heading=heading,
            open=drawn[:1],
            said=said_below,
            above=n_leading > 0,
            findings=findings,
            figures=drawn[1:],
            tables=_answering(question, tables),
            prompts=_some(prompts, MOST_PROMPTS),
            texts=texts,
        )


def _answering(question: QuestionId, things: Sequence[Answer]) -> list[Answer]:
    return [thing for thing in things if thing.question == question]


def _some(things: Sequence[T], most: int) -> Sequence[T]:
    """Pick at most so many, spread evenly."""
    return things[:: -(-len(things) // most)] if things else things


def measured_line(content: Content) -> str:
    """Say in one line what was measured: models, studies, how many answers, when."""
    names = content.labels
    bits = [listed([cut(name, 40) for name in names]) if len(names) < 3 else f"{len(names)} models"]
    if content.imported and len(names) == 1:  # the file says it
        bits = []
    for part in content.parts[:3]:
        kind = measurement(part.measurement)
        n = len(part.tables.get(kind.each, ()))
        bits += [*kind.measured(part)] or [cut(part.study, 40) + f": {count(n, kind.unit)}" * bool(n)]
    days = [day for model in content.models for day in (model.first_answered, model.last_answered) if day]
    return " · ".join([*bits, " to ".join(dict.fromkeys((min(days), max(days))))] if days else bits)


def _equivalence(equivalence: Equivalence | None) -> Mapping[str, str] | None:
    if equivalence is None:
        return None
    if equivalence.holds:
        text = f"Equivalent in all {equivalence.n_rows:,} differences"
    elif equivalence.n_rows:
        of_all = count(equivalence.n_rows, "difference")
        text = f"Not shown to be equivalent in {equivalence.n_failing:,} of {of_all}"
    else:
        text = "Not shown to be equivalent: nothing was compared"
    return {
        "kind": "holds" if equivalence.holds else "fails",
        "text": text + ", weak evidence" * equivalence.weak,
    }


def _read_as(example: ExampleText) -> list[str]:
    counts = Counter(span.counts_as for span in example.spans)
    counted = [f"{counts[kind]} {what}" for kind, (_, what) in labels.CLASSES.items() if counts[kind]]
    rule, asked_for = labels.RULES.get(example.rule_id or "", ""), example.requested_gender
    why = f": {rule}" if rule else ""
    read = [f"requested: {gender(asked_for)}" if asked_for else "gender not in the prompt"]
    if example.person_gender:
        read.append(f"known: {gender(example.person_gender)}")
    if example.debiasing_id:
        read.append(f"debiasing prompt {example.debiasing_id}")
    if example.outcome:
        read.append(labels.OUTCOMES.get(example.outcome, example.outcome))
    counts_for = example.person_gender or example.gender
    read.append(f"counted as a text about {gender(counts_for)}" if counts_for else "no gender inferred")
    read.append(f"rule “{example.rule_id}”{why}" if example.rule_id else "no rule fits")
    read.append(f"words counted: {', '.join(counted) or 'none'}")
    return read


def pieces(text: str, spans: Sequence[Span]) -> Iterator[tuple[str, str]]:
    """Split a text into pieces: (text, "") and (counted word, its class)."""
    text, at = text[:LONGEST_TEXT], 0
    for span in sorted(spans, key=lambda span: span.start):
        if at <= span.start < span.end <= len(text) and span.counts_as in labels.CLASSES:
            yield text[at : span.start], ""
            yield text[span.start : span.end], span.counts_as
            at = span.end
    if at < len(text):
        yield text[at:], ""
