"""A section for a model card, in Markdown: what was measured, what came of it, limits, how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from biaskit.common.foreign import fenced, markdown
from biaskit.common.wording import count
from biaskit.exchange.source import ExportFiles, Source
from biaskit.measurement import measurement
from biaskit.report.content import Content
from biaskit.report.findings import sentences
from biaskit.report.page.labels import VERDICTS
from biaskit.runs.collection import Model, Part

MOST_ROWS = 12
MOST_SENTENCES = 10
PUBLISHED = {"file": "file", "file_sha256": "SHA-256", "general.name": "named", "general.license": "licence"}
"""What a GGUF file is known by, and its words here."""
NOTE = "card.md is a section for a model's README.md; add there where to get the run"


class CardTable(NamedTuple):
    """A small table of one kind, from its table `published`."""

    title: str
    about: str  # what its numbers are, in Markdown
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def as_card(source: Source) -> ExportFiles:
    """Make one section, whose headings begin at the second level."""
    source.takes_only()
    return ExportFiles({"card.md": card(source.content).encode()}, "card.md", (NOTE,))


def card(content: Content) -> str:
    """Write the section of what stored runs say."""
    return "\n".join(["## Gender bias", "", *_lines(content)]) + "\n"


def _lines(content: Content) -> Iterator[str]:
    for part in content.parts:
        for model in part.models:
            yield f"- {markdown(_about(part, model))}"
        if part.summary:
            yield f"- {markdown(f'{part.study}: {part.summary}.')}"
    yield from (f"- {markdown(line)}" for line in content.verified)
    for part in content.parts:
        yield from _numbers(part)
    statements = sentences(content)
    findings = [finding for finding in statements.findings if finding.verdict != "not-measured"]
    yield from ("", "### What the numbers say", "")
    for finding in findings[:MOST_SENTENCES]:
        verdict = VERDICTS.get(finding.verdict, finding.verdict)
        yield f"- {markdown(finding.text)}" + (f" *({markdown(verdict)})*" if verdict else "")
    if len(findings) > MOST_SENTENCES:
        yield f"- {count(len(findings) - MOST_SENTENCES, 'sentence')} more on the page of `biaskit report`."
    yield from ("", markdown(statements.reading), "", "### What they cannot show", "")
    yield from (f"- {markdown(limit)}" for limit in statements.limits)
    yield from ("", "### Repeat and cite", "")
    commands = dict.fromkeys(command for part in content.parts for command in part.commands if command)
    signed = dict.fromkeys(line for part in content.parts for line in part.signatures if line)
    yield fenced("\n".join([*(" ".join(command.split()) for command in commands), "biaskit verify RUN"]))
    yield from ("", "Signature of the numbers:", "", fenced("\n".join(signed)))
    if content.bibtex:
        yield from ("", "Instruments:", "", fenced(content.bibtex))


def _about(part: Part, model: Model) -> str:
    """Say of a model how it was asked, what it is known by, and when it answered."""
    about = [f"study {part.study}"]
    if model.estimator:
        about.append(f"{model.estimator} estimator")
    if model.prompt_format:
        about.append(f"{model.prompt_format} prompts")
    if model.fingerprint:
        about.append(f"fingerprint {model.fingerprint[:12]}")
    about += [f"{words} {model.details[key]}" for key, words in PUBLISHED.items() if key in model.details]
    days = dict.fromkeys(filter(None, (model.first_answered, model.last_answered)))
    if days:
        about.append(" to ".join(days))
    return f"{model.label}: {', '.join(about)}."


def _numbers(part: Part) -> Iterator[str]:
    """Yield the lines of a small table of one kind."""
    kind = measurement(part.measurement)
    table = kind.card(part)
    shown_tables = [table] if table else []
    for full in () if table else kind.headline(part):
        shown_tables.append(CardTable(markdown(full.title), markdown(full.note), full.columns(), full.rows))
    for shown in shown_tables:
        yield from ("", f"### {shown.title}", "")
        yield shown.about
        yield from ("", f"| {' | '.join(map(markdown, shown.head))} |", f"|{'---|' * len(shown.head)}")
        for row in shown.rows[:MOST_ROWS]:
            yield f"| {' | '.join(map(markdown, row))} |"
        if len(shown.rows) > MOST_ROWS:
            yield from ("", f"{count(len(shown.rows) - MOST_ROWS, 'row')} more in `{kind.published[0]}.csv`.")
