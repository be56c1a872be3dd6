"""A section for a model card, in Markdown: what was measured, what came of it, limits, how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.exchange.source import ExportFiles, Source
from biaskit.foreign import fenced, markdown
from biaskit.report.content import Content
from biaskit.report.findings import say
from biaskit.report.findings.finding import Finding, Sentences
from biaskit.report.page.labels import VERDICTS
from biaskit.runs.collection import Part
from biaskit.tables.query import Row, where
from biaskit.wording import count, listed, people, percent, percent_range, share_with_interval

MOST_ROWS = 12
MOST_SENTENCES = 10
HEADING = "## Gender bias"
_ASKED = {"explicit": "asked outright", "implicit": "finishing a sentence"}


def as_card(source: Source) -> ExportFiles:
    """One section; headings begin at the second level."""
    return ExportFiles({"card.md": card(source.content).encode()}, "card.md", (NOTE,))


NOTE = "card.md is a section: paste it into a model's README.md, and say there where the run can be had"


def card(content: Content) -> str:
    """The section of what stored runs say."""
    said = say(content)
    lines = [HEADING, "", *_measured(content)]
    for part in content.parts:
        lines += ["", *_numbers(part)]
    lines += ["", "### What the numbers say", "", *_sentences(said), "", markdown(said.reading)]
    lines += ["", "### What they cannot show", "", *(f"- {markdown(one)}" for one in said.limits)]
    lines += ["", "### Repeat and cite", "", *_repeat(content)]
    return "\n".join(lines) + "\n"


def _measured(content: Content) -> Iterator[str]:
    for part in content.parts:
        for model in part.models:
            days = [day for day in (model.first_answered, model.last_answered) if day]
            when = "" if not days else f", {days[0]}" + (f" to {days[-1]}" if days[0] != days[-1] else "")
            n = _asked(part, model.label)
            how = f", {model.estimator} estimator" if model.estimator else ""
            form = f", {model.prompt_form} prompts" if model.prompt_form else ""
            print_ = f" (fingerprint {model.fingerprint[:12]})" if model.fingerprint else ""
            line = f"{model.label}{print_}: study {part.study}, {n}{how}{form}{when}."
            yield f"- {markdown(line)}"
        if part.summary:
            yield f"- {markdown(f'{part.study}: {part.summary}.')}"
    made = (one.get("versions", {}).get("biaskit") for part in content.parts for one in part.analyses)
    if by := listed([markdown(f"biaskit {one}") for one in dict.fromkeys(made) if one]):
        yield f"- Measured with {by}."
    yield from (f"- {markdown(line)}" for line in content.verified)


def _asked(part: Part, model: str) -> str:
    if part.engine == "probe":
        rows = where(part.tables.get("probe_cells", ()), model=model)
        jobs = {row["job"] for row in rows}
        return f"{count(len(rows), 'prompt')} of {count(len(jobs), 'job')}"
    return count(len(where(part.tables.get("associations", ()), model=model)), "text")


# --- numbers ---------------------------------------------------------------------------------------------


def _numbers(part: Part) -> Iterator[str]:
    if part.engine == "probe":
        yield "### What it says of a job"
        yield ""
        yield "Shares of the probability on the listed words, with 95 % intervals over jobs and templates;"
        yield "coverage is what these words hold of all its probability."
        yield ""
        yield from _table(*_probe(part))
    else:
        yield "### Whom it writes about"
        yield ""
        yield "Share of women in the texts that speak of a gender, with 95 % intervals; bounds: if all texts"
        yield "without a gender were men’s, or women’s."
        yield ""
        yield from _table(*_texts(part))


def _probe(part: Part) -> tuple[list[str], list[list[str]], str]:
    groups = list(part.groups)
    head = ["Model", "Asked", "Jobs", *(people(group) for group in groups), "Coverage"]
    usual = [
        row
        for row in part.tables.get("probe_groups", ())
        if row["instruction_id"] == 0 and row["setting"] == "plain"
    ]
    rows: dict[tuple[str, str, str], list[Row]] = {}
    for row in usual or part.tables.get("probe_groups", ()):
        rows.setdefault((row["model"], row["bias_type"], row["job_group"]), []).append(row)
    shown = []
    for (model, bias_type, jobs), own in rows.items():
        by_group = {row["gender"]: row for row in own}
        shares = [_share(by_group.get(group)) for group in groups]
        coverage = own[0]["coverage"]
        held = "–" if coverage is None else f"{percent(coverage)} %"
        shown.append([model, _ASKED.get(bias_type, bias_type), f"{jobs} ({own[0]['n_jobs']})", *shares, held])
    return head, shown, "probe_groups.csv"


def _share(row: Row | None) -> str:
    return "–" if row is None else share_with_interval(row["share"], row["ci_low"], row["ci_high"])


def _texts(part: Part) -> tuple[list[str], list[list[str]], str]:
    head = ["Model", "Occupation", "women", "Bounds", "Texts", "No gender"]
    rows = []
    for row in where(part.tables.get("representation", ()), template_id="all"):
        share = share_with_interval(row["female_share"], row["ci_low"], row["ci_high"])
        low, high = row["share_if_dropped_male"], row["share_if_dropped_female"]
        bounds = "–" if low is None or high is None else f"{percent_range(low, high)} %"
        none = f"{percent(row['n_unassociated'] / row['n_texts'])} %" if row["n_texts"] else "–"
        rows.append([row["model"], row["occupation"], share, bounds, f"{row['n_texts']:,}", none])
    return head, rows, "representation.csv"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], file: str) -> Iterator[str]:
    if not rows:
        yield "Nothing was measured."
        return
    yield f"| {' | '.join(map(markdown, head))} |"
    yield f"|{'|'.join('---' for _ in head)}|"
    for row in rows[:MOST_ROWS]:
        yield f"| {' | '.join(map(markdown, row))} |"
    if len(rows) > MOST_ROWS:
        yield ""
        yield f"{count(len(rows) - MOST_ROWS, 'row')} more in `{file}`."


# --- sentences -------------------------------------------------------------------------------------------


def _sentences(said: Sentences) -> Iterator[str]:
    found = [one for one in said.findings if one.verdict != "not-measured"]
    if not found:
        yield "Nothing was measured that says something."
    yield from (_sentence(one) for one in found[:MOST_SENTENCES])
    if len(found) > MOST_SENTENCES:
        yield f"- {count(len(found) - MOST_SENTENCES, 'sentence')} more on the page of `biaskit report`."


def _sentence(one: Finding) -> str:
    verdict = VERDICTS.get(one.verdict, one.verdict)
    return f"- {markdown(one.text)}" + (f" *({markdown(verdict)})*" if verdict else "")


def _repeat(content: Content) -> Iterator[str]:
    commands = list(dict.fromkeys(one for part in content.parts for one in part.commands if one))
    yield fenced("\n".join([*(" ".join(one.split()) for one in commands), "biaskit verify RUN"]))
    yield ""
    signed = list(dict.fromkeys(one for part in content.parts for one in part.signatures if one))
    yield "Signature of the numbers:"
    yield ""
    yield fenced("\n".join(" ".join(one.split()) for one in signed))
    if content.bibtex:
        yield ""
        yield "The instruments are of:"
        yield ""
        yield fenced(content.bibtex)
