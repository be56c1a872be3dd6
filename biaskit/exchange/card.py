"""A section for a model card, in Markdown: what was measured, what came of it, limits, how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.foreign import fenced, markdown
from biaskit.common.wording import count, people, percent, percent_range, share_with_interval
from biaskit.exchange.source import ExportFiles, Source
from biaskit.report.content import Content
from biaskit.report.findings import sentences
from biaskit.report.findings.sentence import OPENINGS
from biaskit.report.page.labels import VERDICTS
from biaskit.runs.collection import Part
from biaskit.tables.query import Row, where

MOST_ROWS = 12
MOST_SENTENCES = 10
PUBLISHED = {"file": "file", "file_sha256": "SHA-256", "general.name": "named", "general.license": "licence"}
"""What a GGUF file is known by, and its words here."""
NOTE = "card.md is a section for a model's README.md; add there where to get the run"


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
            days = " to ".join(dict.fromkeys(filter(None, (model.first_answered, model.last_answered))))
            about = (
                f"study {part.study}",
                model.estimator and f"{model.estimator} estimator",
                model.prompt_form and f"{model.prompt_form} prompts",
                model.fingerprint and f"fingerprint {model.fingerprint[:12]}",
                *(
                    f"{words} {model.details[key]}"
                    for key, words in PUBLISHED.items()
                    if key in model.details
                ),
                days,
            )
            line = f"{model.label}: {', '.join(filter(None, about))}."
            yield f"- {markdown(line)}"
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


def _numbers(part: Part) -> Iterator[str]:
    """Yield the lines of a small table of one engine."""
    if "pair_groups" in part.tables:
        yield from ("", "### Pairs of sentences", "")
        yield "Share of the feminine sentence in the probability of both, and how often the sentence that a"
        yield "stereotype expects is the more probable one, with 95 % intervals."
        file, head = "pair_groups.csv", ["Model", "Language", "Stereotype", "women", "Expected", "Pairs"]
        rows: Sequence[Sequence[str]] = [_of_pairs(row) for row in part.tables["pair_groups"]]
    elif part.engine == "probe":
        yield from ("", "### What it says about a job", "")
        yield "Shares of the probability on the target words, with 95 % intervals over jobs and templates;"
        yield "coverage is the probability on these words, out of all next words."
        file, head = "probe_groups.csv", ["Model", "Prompts", "Jobs", *map(people, part.groups), "Coverage"]
        rows = _probe(part)
    else:
        yield from ("", "### Who it writes about", "")
        yield "Share of women in the texts that name a gender, with 95 % intervals; bounds: if all texts"
        yield "without a gender were about men, or about women."
        file, head = "representation.csv", ["Model", "Occupation", "women", "Bounds", "Texts", "No gender"]
        rows = [_texts(row) for row in where(part.tables.get("representation", ()), template_id="all")]
    yield from ("", f"| {' | '.join(map(markdown, head))} |", f"|{'|'.join('---' for _ in head)}|")
    yield from (f"| {' | '.join(map(markdown, row))} |" for row in rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        yield from ("", f"{count(len(rows) - MOST_ROWS, 'row')} more in `{file}`.")


def _probe(part: Part) -> Sequence[Sequence[str]]:
    every = part.tables.get("probe_groups", ())
    rows: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in where(every, instruction_id=0, setting="plain") or every:
        rows.setdefault((row["model"], row["bias_type"], row["job_group"]), {})[row["gender"]] = row
    shown = []
    for (model, bias_type, jobs), by_group in rows.items():
        shares = [
            share_with_interval(row["share"], row["ci_low"], row["ci_high"])
            for row in map(by_group.__getitem__, part.groups)
        ]
        first = next(iter(by_group.values()))
        coverage = "–" if first["coverage"] is None else f"{percent(first['coverage'])} %"
        asked = OPENINGS.get(bias_type, bias_type)
        shown.append([model, asked, f"{jobs} ({first['n_jobs']})", *shares, coverage])
    return shown


def _of_pairs(row: Row) -> Sequence[str]:
    numbers = ("female_share", "ci_low", "ci_high"), ("expected_rate", "expected_low", "expected_high")
    shown = [share_with_interval(*map(row.__getitem__, names)) for names in numbers]
    return [row["model"], row["language"], row["stereotype"], *shown, str(row["n_pairs"])]


def _texts(row: Row) -> Sequence[str]:
    share = share_with_interval(row["female_share"], row["ci_low"], row["ci_high"])
    low, high = row["share_if_dropped_male"], row["share_if_dropped_female"]
    bounds = "–" if low is None or high is None else f"{percent_range(low, high)} %"
    none = f"{percent(row['n_unassociated'] / row['n_texts'])} %" if row["n_texts"] else "–"
    return [row["model"], row["occupation"], share, bounds, f"{row['n_texts']:,}", none]
