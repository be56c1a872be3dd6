"""Lay out stored tables as the papers do: OccuGender's Tables 3-4 and 9-18, Mattern's Tables 3-4."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from biaskit.common.wording import count, number_range, people, percent, percent_range
from biaskit.measurement import words
from biaskit.measures.probe.findings.reliability import ways_in_numbers
from biaskit.records import NO_DEBIASING
from biaskit.report.findings.groups import in_order
from biaskit.report.next_tokens import line_of_the_rest
from biaskit.report.render.cells import UNDEFINED
from biaskit.report.render.document import Document, Heading, TitledTable, listed_table
from biaskit.report.render.generic import printed_table
from biaskit.tables.coverage import WEAK, coverage_of
from biaskit.tables.quantities import SHARES
from biaskit.tables.query import Row, Tables, defined, distinct, first, grouped, named, where
from biaskit.tables.schema import SCHEMAS

SAYS: Mapping[str, Any] = words("probe")["printed"]
CONTEXTS: Mapping[str, str] = SAYS["contexts"]
Rows = Sequence[Row]
Blocks = Mapping[str, Row]
"""Heading over columns → the values that choose their rows."""
Show = Callable[[Row], str | None]
_Line = tuple[tuple[str, ...], Rows, bool]  # its words, its rows, whether their coverage is shown


@dataclass(frozen=True, slots=True)
class Frame:
    """What a study sets for its tables: gender groups, least coverage, levels of debiasing prompts."""

    groups: tuple[str, ...]
    min_coverage: float
    levels: Mapping[int, str]  # debiasing prompt → its level or ""; without 0
    titles: Mapping[str, str] = field(default_factory=dict)  # by bias type
    summary: str = ""  # title of one table with both bias types
    two: tuple[str, ...] = ()  # the groups whose parts of both are shown too; none in the papers' tables


def probe_document(frame: Frame, tables: Tables, notes: Sequence[str], signature: str) -> Document:
    """Make the paper's tables for what was asked, from probe_groups.csv and probe_levels.csv."""
    groups, next_tokens = tables.get("probe_groups", []), tables.get("probe_next", [])
    shown = []
    if frame.levels:
        shown = _by_debiasing(frame, groups, tables.get("probe_levels", []))
    else:
        # A newcomer reads the first table: those of weak evidence alone come last.
        most = {}
        for (way,), rows in grouped(groups, "bias_type").items():
            most[way] = coverage_of(rows, of_two=bool(frame.two)) or (0, 1)
        types = sorted(most, key=lambda way: most[way][1] < WEAK)
        for bias_type, context in product(types, distinct(groups, "context")):
            scope = {"bias_type": bias_type, "context": context}
            if rows := where(groups, **scope):
                title = f"{frame.titles[bias_type]}{_within(context)}"
                title += ": % of the probability on the target words"
                shown.append(by_model(frame, rows, title, where(next_tokens, **scope)))
    shown += _ways(tables)
    # Outcomes of sampled answers; those under debiasing prompts are in the stored table alone.
    plain = where(tables.get("probe_outcomes", []), debiasing_id=NO_DEBIASING)
    several = len(distinct(plain, "model")) > 1
    for (model, bias_type, context), rows in grouped(plain, "model", "bias_type", "context").items():
        shown.append(_outcomes(rows, model, bias_type, context, several=several))
    return Document(tuple(shown), tuple(notes), signature)


def _ways(tables: Tables) -> Iterator[TitledTable]:
    """Make a table of the ways to ask for each model and bias type, with what they differ by."""
    scopes = grouped(tables.get("ways", []), "model", "bias_type")
    for (model, bias_type), rows in scopes.items():
        of_scope = where(tables.get("reliability", []), model=model, bias_type=bias_type)
        numbers = ways_in_numbers(of_scope)
        says = words("probe")["reliability"]
        said = [says["marks"], says["note"].format(**numbers) if numbers else ""]
        said += map("–: {}.".format, named(where(rows, gap=None), "reason"))
        title = f"Ways to ask {model}, {bias_type}: gap in the share of two between groups of jobs"
        ordered = sorted(rows, key=lambda row: (row["gap"] is None, -(row["gap"] or 0.0)))
        ordered = [{**row, "wording": row["wording"] + (" *" if row["main"] else "")} for row in ordered]
        yield from printed_table(title, SCHEMAS["ways"].printed, ordered, note=" ".join(filter(None, said)))


def _within(context: str) -> str:
    return "" if context == "plain" else f", {CONTEXTS[context].lower()}"


def by_model(frame: Frame, rows: Rows, title: str, next_tokens: Rows = ()) -> TitledTable:
    """Make OccuGender's Tables 3-4: for each model a line of shares ± SE, then lines of intervals and bounds.

    `rows`: of probe_groups.csv, of one bias type, context, format and debiasing prompt; `next_tokens`: of
    probe_next.csv, for a line on what was said instead.
    """
    job_groups = in_order(rows)
    lines = []
    for (model,), of_model in grouped(rows, "model").items():
        name = _named(model, of_model, rows)
        lines.append((name, *_shares(of_model, job_groups, frame, errors=True)))
        surroundings = [("  95 % interval", _between("ci_low", "ci_high"))]
        estimators = distinct(of_model, "estimator")
        if "top-k" in estimators:
            surroundings.append(("  bounds (top-k)", _between("share_low", "share_high")))
        if "sampling" in estimators:
            surroundings.append(("  SE of sampling", _between("se_sampling")))
        if frame.two:
            first_of, second = (SAYS["letters"].get(group, group) for group in frame.two)
            surroundings.append((f"  {first_of} of {second} and {first_of}", _of_two))
        for name, show in surroundings:
            lines.append((name, *_cells(of_model, job_groups, frame, show)))
    return TitledTable(
        title=title,
        header=_header(("Model",), [""], job_groups, frame),
        rows=tuple(lines),
        note=" ".join(filter(None, (_letters(frame, rows) + _what(rows), line_of_the_rest(next_tokens)))),
    )


def _outcomes(rows: Rows, model: str, bias_type: str, context: str, *, several: bool) -> TitledTable:
    groups = distinct(rows, "job_group")
    columns = groups[1:] if len(groups) == 2 else groups
    lines = []
    for (kind,), of_kind in grouped(rows, "outcome").items():
        outcome, _, group = kind.partition(":")
        if group or any(row["n"] for row in of_kind) or outcome == "declines":
            name = f"  {people(group)}" if group else SAYS["outcomes"][outcome]
            lines.append((name, *(share_of(first(of_kind, job_group=column)) for column in columns)))
    # Few jobs or templates make wide intervals.
    jobs, templates = count(_most(rows, "n_jobs"), "job"), count(_most(rows, "n_templates"), "template")
    who = f", {model}" if several else ""
    note = SAYS["answers"].format(_most(rows, "n_answers"), jobs, templates)
    title = f"Answers to {bias_type} prompts{_within(context)}{who}: % of the sampled texts [95 %]"
    return listed_table(title, ["The answer", *(f"{name} jobs" for name in columns)], lines, note=note)


def _most(rows: Rows, name: str) -> int:
    return max(named(rows, name), default=0)


def share_of(row: Row | None, *, of_two: bool = False) -> str:
    """Write a share with its interval, in percent; undefined: –."""
    name, low, high = SHARES[of_two]
    if row is None or row[name] is None:
        return "–"
    interval = "" if row[low] is None else f" [{percent_range(row[low], row[high])}]"
    return percent(row[name]) + interval


def _named(model: str, rows: Rows, table: Rows = ()) -> str:
    """Name a model, with its estimator unless that is exact, and its format where the table has several."""
    estimator = next(iter(named(rows, "estimator")), "exact")
    said = [] if estimator == "exact" else [estimator]
    if len(distinct(table, "prompt_format")) > 1:
        said += distinct(rows, "prompt_format")
    return f"{model} ({', '.join(said)})" if said else model


def _letters(frame: Frame, rows: Rows) -> str:
    """Say which prompt format the table is of, and what its letters mean."""
    meanings = [SAYS["meanings"][group] for group in frame.groups if group in SAYS["meanings"]]
    formats = ", ".join(distinct(rows, "prompt_format"))
    return f"Prompt format: {formats}. " + (f"{', '.join(meanings)}. " if meanings else "")


def _what(rows: Rows) -> str:
    estimators, more = distinct(rows, "estimator"), ""
    for estimator, says in SAYS["of_estimator"].items():
        if estimator in estimators:
            more += says
    templates = number_range(named(rows, "n_templates") or [0])  # of a run that stopped they differ
    return str(SAYS["what"]).format(templates, more, jobs_in(rows), over=over(rows))


def over(rows: Rows) -> str:
    """Say what intervals are over: one job in each group is a condition, and no sample of jobs."""
    sizes = named(rows, "n_jobs")
    return str(SAYS["over"][sizes == [1]])


def jobs_in(rows: Rows) -> str:
    """Count the jobs of each group: '20 female-dominated jobs and 20 male-dominated jobs'."""
    n_jobs = {row["job_group"]: row["n_jobs"] for row in defined(rows, "n_jobs")}
    return " and ".join(count(n, f"{group} job") for group, n in n_jobs.items())


def _by_debiasing(frame: Frame, groups: Rows, levels: Rows) -> list[TitledTable]:
    """Put debiasing prompts and averages of levels in rows, bias types or contexts in columns."""
    shown = []
    both_contexts = len(distinct(groups, "context")) > 1
    for (model,), rows in grouped(groups, "model").items():
        types = distinct(rows, "bias_type")
        split = [(frame.summary or "; ".join(frame.titles[t] for t in types), by_types(types))]
        if both_contexts:
            contexts = distinct(rows, "context")
            split = [(frame.titles[bias_type], by_contexts(bias_type, contexts)) for bias_type in types]
        for title, blocks in split:
            full_title = f"{title}, {_named(model, rows)}: % of the probability on the target words"
            shown.append(by_debiasing(frame, rows, where(levels, model=model), full_title, blocks))
    return shown


def by_contexts(bias_type: str, contexts: Sequence[str]) -> Blocks:
    """Put contexts side by side, of one bias type (Mattern)."""
    return {CONTEXTS[context]: {"bias_type": bias_type, "context": context} for context in contexts}


def by_types(types: Sequence[str]) -> Blocks:
    """Put bias types side by side (OccuGender, Tables 9-18)."""
    return {bias_type.capitalize(): {"bias_type": bias_type} for bias_type in types}


def by_debiasing(
    frame: Frame, rows: Rows, levels: Rows, title: str, blocks: Blocks, *, apart: bool = False
) -> TitledTable:
    """Make a table of one model's debiasing prompts, each level's average after it.

    `rows` are those of probe_groups.csv, `levels` of probe_levels.csv; `apart`: the level has its own column.
    """
    last_of = {level: number for number, level in frame.levels.items()}

    def lead(level: str, name: str) -> tuple[str, ...]:
        return (level, name) if apart else (f"{level} {name}".strip(),)

    lines: list[_Line] = [(lead("", "None"), where(rows, debiasing_id=NO_DEBIASING), True)]
    for number, level in frame.levels.items():
        lines.append((lead(level, str(number)), where(rows, debiasing_id=number), True))
        if level and last_of[level] == number:
            lines.append((lead(level, "average"), where(levels, level=level), False))
    heads = ("Abstraction", "ID") if apart else ("Debiasing prompt",)
    return _of_lines(frame, rows, title, heads, blocks, lines)


def by_debiasing_and_model(frame: Frame, rows: Rows, title: str, blocks: Blocks) -> TitledTable:
    """Make Mattern's Tables 7-8: every model below each debiasing prompt, without averages of levels."""
    lines: list[_Line] = []
    for number, model in product((NO_DEBIASING, *frame.levels), distinct(rows, "model")):
        of_line = where(rows, model=model, debiasing_id=number)
        name = "None" if number == NO_DEBIASING else str(number)
        lines.append(((name, _named(model, of_line, rows)), of_line, True))
    return _of_lines(frame, rows, title, ("ID", "Model"), blocks, lines)


def _of_lines(
    frame: Frame, rows: Rows, title: str, heads: tuple[str, ...], blocks: Blocks, lines: Sequence[_Line]
) -> TitledTable:
    job_groups, shown = in_order(rows), []
    for words_of_line, of_line, coverage in lines:
        cells = list(words_of_line)
        for chosen in blocks.values():
            cells += _shares(where(of_line, **chosen), job_groups, frame, coverage=coverage)
        shown.append(tuple(cells))
    header, note = _header(heads, list(blocks), job_groups, frame), _letters(frame, rows) + SAYS["coverage"]
    return TitledTable(title, header, tuple(shown), note, len(heads))


def _header(
    words: tuple[str, ...], blocks: Sequence[str], job_groups: Sequence[str], frame: Frame
) -> tuple[tuple[Heading, ...], ...]:
    width = len(frame.groups) + 1
    lead = (Heading(""),) * len(words)
    over = [(*lead, *(Heading(name, width * len(job_groups)) for name in blocks))] if any(blocks) else []
    groups = (*lead, *(Heading(group, width) for _ in blocks for group in job_groups))
    names = [*(SAYS["letters"].get(group, group) for group in frame.groups), "cov."]
    return (*over, groups, tuple(map(Heading, (*words, *names * len(job_groups) * len(blocks)))))


def _cells(
    rows: Rows, job_groups: Sequence[str], frame: Frame, show: Show, *, coverage: bool = False
) -> list[str]:
    """Make a cell for each gender of each job group, and one for the coverage (or empty) after them."""
    cells: list[str] = []
    for job_group in job_groups:
        of_group = [first(rows, job_group=job_group, gender=gender) for gender in frame.groups]
        for row in of_group:
            shown = None if row is None else show(row)
            cells.append("–" if shown is None else shown)
        cells.append(_coverage(of_group) if coverage else "")
    return cells


def _shares(
    rows: Rows, job_groups: Sequence[str], frame: Frame, *, errors: bool = False, coverage: bool = True
) -> list[str]:
    """Write shares in percent (`errors`: ± SE over templates), in brackets if coverage is low."""

    def show(row: Row) -> str:
        shown = "–" if row["share"] is None else f"{100 * row['share']:.1f}"
        if errors and row["se_templates"] is not None:
            shown += f" ± {100 * row['se_templates']:.1f}"
        median = row.get("coverage_median")
        return f"[{shown}]" if median is not None and median < frame.min_coverage else shown

    return _cells(rows, job_groups, frame, show, coverage=coverage)


def _between(*columns: str) -> Show:
    """Write the named columns as percentages, joined by a dash."""
    return lambda row: None if row[columns[0]] is None else "–".join(f"{100 * row[c]:.1f}" for c in columns)


def _of_two(row: Row) -> str:
    """Write the part of two groups in percent with its interval; nothing for other groups than the first."""
    if row["binary_share"] is None:
        return ""
    ends = _between("binary_share_ci_low", "binary_share_ci_high")(row)
    return f"{100 * row['binary_share']:.1f}" + (f" [{ends}]" if ends else "")


def _coverage(rows: Sequence[Row | None]) -> str:
    row = next(filter(None, rows), None)
    if row is None or row["coverage"] is None:
        return UNDEFINED
    value = row["coverage"]
    return f"{value:.3f}" if value < 0.0995 else f"{value:.2f}"
