"""Stored tables as the papers lay them out: OccuGender's Tables 3-4 and 9-18, Mattern's Tables 3-4."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from biaskit.probe.cells import Questions
from biaskit.records import NO_INSTRUCTION
from biaskit.report.document import Document, Heading, TitledTable

Row = Mapping[str, Any]
LETTERS = {"male": "M", "female": "F", "diverse": "D"}
SETTINGS = {"plain": "Without dialogue", "dialogue": "With dialogue"}


def lay_out(
    questions: Questions, tables: Mapping[str, Sequence[Row]], notes: Sequence[str], signature: str
) -> Document:
    """The paper's tables for what was asked, from probe_groups.csv and probe_levels.csv."""
    groups = tables.get("probe_groups", [])
    several = len(questions.instructions) > 1
    made = (
        _by_instruction(questions, groups, tables.get("probe_levels", []))
        if several
        else _by_model(questions, groups)
    )
    return Document(tuple(made), tuple(notes), signature)


def _by_model(questions: Questions, groups: Sequence[Row]) -> list[TitledTable]:
    """A table per bias type and setting; a model has its shares ± SE and what surrounds them line by line."""
    made = []
    for bias_type in _in_order(groups, "bias_type"):
        for setting in _in_order(groups, "setting"):
            rows = [r for r in groups if r["bias_type"] == bias_type and r["setting"] == setting]
            if not rows:
                continue
            job_groups = _job_groups(rows)
            lines = []
            for model in _in_order(rows, "model"):
                own = [r for r in rows if r["model"] == model]
                lines.append((_named(model, own), *_shares(own, job_groups, questions)))
                lines.append(("  95 % interval", *_between(own, job_groups, questions, "ci_low", "ci_high")))
                estimators = _in_order(own, "estimator")
                if "top-k" in estimators:
                    bounds = _between(own, job_groups, questions, "share_low", "share_high")
                    lines.append(("  bounds (top-k)", *bounds))
                if "sampling" in estimators:
                    lines.append(("  SE of the draws", *_errors_of_draws(own, job_groups, questions)))
            made.append(
                TitledTable(
                    title=_title(questions, bias_type, setting),
                    header=_header(("Model",), [("", None)], job_groups, questions),
                    rows=tuple(lines),
                    note=_what(rows),
                )
            )
    return made


def _title(questions: Questions, bias_type: str, setting: str) -> str:
    title = questions.study.table.explicit if bias_type == "explicit" else questions.study.table.implicit
    where = f", {SETTINGS[setting].lower()}" if setting == "dialogue" else ""
    return f"{title}{where}: % of the probability on the listed words"


def _named(model: str, rows: Sequence[Row]) -> str:
    """A model with its estimator, where that is not the exact one (METHODS §1.6)."""
    estimator = next((r["estimator"] for r in rows if r["estimator"]), "exact")
    return model if estimator == "exact" else f"{model} ({estimator})"


def _what(rows: Sequence[Row]) -> str:
    templates = max((r["n_templates"] or 0 for r in rows), default=0)
    counts = {r["job_group"]: r["n_jobs"] for r in rows}
    jobs = " and ".join(f"{n} {group}" for group, n in counts.items()) + " jobs"
    estimators = _in_order(rows, "estimator")
    bounds = (
        "; bounds (top-k): the means of the least and greatest shares that the listed tokens leave possible"
        if "top-k" in estimators
        else ""
    )
    draws = "; SE of the draws: already inside the interval" if "sampling" in estimators else ""
    return (
        f"± standard error over {templates} templates; interval over jobs and templates{bounds}{draws};"
        f" cov. = probability on the listed words (coverage); {jobs}."
    )


def _by_instruction(questions: Questions, groups: Sequence[Row], levels: Sequence[Row]) -> list[TitledTable]:
    """Rows are instructions, level averages between them; columns bias types, or settings where both ran."""
    made = []
    both_settings = len(_in_order(groups, "setting")) > 1
    for model in _in_order(groups, "model"):
        own = [r for r in groups if r["model"] == model]
        averages = [r for r in levels if r["model"] == model]
        types = _in_order(own, "bias_type")
        split: list[tuple[str, list[tuple[str, Row]]]] = []
        if both_settings:
            for bias_type in types:
                title = (
                    questions.study.table.explicit
                    if bias_type == "explicit"
                    else questions.study.table.implicit
                )
                split.append(
                    (
                        title,
                        [
                            (SETTINGS[s], {"bias_type": bias_type, "setting": s})
                            for s in _in_order(own, "setting")
                        ],
                    )
                )
        else:
            titles = {"explicit": questions.study.table.explicit, "implicit": questions.study.table.implicit}
            title = questions.study.summary or "; ".join(titles[t] for t in types)
            split.append((title, [(t.capitalize(), {"bias_type": t}) for t in types]))
        for title, blocks in split:
            name = _named(model, own)
            made.append(_instruction_table(questions, f"{title}, {name}", own, averages, blocks))
    return made


def _instruction_table(
    questions: Questions,
    title: str,
    rows: Sequence[Row],
    levels: Sequence[Row],
    blocks: list[tuple[str, Row]],
) -> TitledTable:
    job_groups = _job_groups(rows)
    lines: list[tuple[str, ...]] = []

    def add(name: str, found: Sequence[Row], *, average: bool = False) -> None:
        cells: list[str] = []
        for _, chosen in blocks:
            inside = [r for r in found if all(r[k] == v for k, v in chosen.items())]
            cells += _plain_shares(inside, job_groups, questions, coverage=not average)
        lines.append((name, *cells))

    add("None", [r for r in rows if r["instruction_id"] == NO_INSTRUCTION])
    level_of = {i.id: i.level for i in questions.instructions if i is not None}
    for number, level in level_of.items():
        add(f"{level} {number}" if level else str(number), [r for r in rows if r["instruction_id"] == number])
        last = [i for i, other in level_of.items() if other == level][-1] == number
        if level and last:
            add(f"{level} average", [r for r in levels if r["level"] == level], average=True)
    return TitledTable(
        title=f"{title}: % of the probability on the listed words",
        header=_header(("Instruction",), [(name, None) for name, _ in blocks], job_groups, questions),
        rows=tuple(lines),
        note="cov. = probability on the listed words (coverage); [ ] where its median is below the floor.",
    )


def _header(
    first: tuple[str, ...], blocks: list[tuple[str, None]], job_groups: Sequence[str], questions: Questions
) -> tuple[tuple[Heading, ...], ...]:
    width = len(questions.groups) + 1
    lead = tuple(Heading("") for _ in first)
    lines = []
    if any(name for name, _ in blocks):
        lines.append((*lead, *(Heading(name, width * len(job_groups)) for name, _ in blocks)))
    lines.append((*lead, *(Heading(group, width) for _ in blocks for group in job_groups)))
    names = [Heading(LETTERS.get(g, g)) for g in questions.groups] + [Heading("cov.")]
    lines.append(
        (*(Heading(text) for text in first), *(h for _ in blocks for _ in job_groups for h in names))
    )
    return tuple(lines)


def _find(rows: Sequence[Row], job_group: str, gender: str) -> Row | None:
    return next((r for r in rows if r["job_group"] == job_group and r["gender"] == gender), None)


def _shares(rows: Sequence[Row], job_groups: Sequence[str], questions: Questions) -> list[str]:
    cells: list[str] = []
    for job_group in job_groups:
        found = [_find(rows, job_group, gender) for gender in questions.groups]
        for row in found:
            shown = "–" if row is None or row["share"] is None else f"{100 * row['share']:.1f}"
            if row is not None and row["se_templates"] is not None:
                shown += f" ± {100 * row['se_templates']:.1f}"
            cells.append(_bracketed(shown, row, questions))
        cells.append(_coverage(found))
    return cells


def _between(
    rows: Sequence[Row], job_groups: Sequence[str], questions: Questions, low: str, high: str
) -> list[str]:
    """The two columns named, as percentages from one to the other."""
    return _shown(
        rows,
        job_groups,
        questions,
        lambda row: None if row[low] is None else f"{100 * row[low]:.1f}–{100 * row[high]:.1f}",
    )


def _errors_of_draws(rows: Sequence[Row], job_groups: Sequence[str], questions: Questions) -> list[str]:
    return _shown(
        rows,
        job_groups,
        questions,
        lambda row: None if row["se_sampling"] is None else f"{100 * row['se_sampling']:.1f}",
    )


def _shown(
    rows: Sequence[Row],
    job_groups: Sequence[str],
    questions: Questions,
    show: Callable[[Row], str | None],
) -> list[str]:
    cells: list[str] = []
    for job_group in job_groups:
        for gender in questions.groups:
            row = _find(rows, job_group, gender)
            cells.append((show(row) if row else None) or "–")
        cells.append("")
    return cells


def _plain_shares(
    rows: Sequence[Row], job_groups: Sequence[str], questions: Questions, *, coverage: bool
) -> list[str]:
    cells: list[str] = []
    for job_group in job_groups:
        found = [_find(rows, job_group, gender) for gender in questions.groups]
        for row in found:
            shown = "–" if row is None or row["share"] is None else f"{100 * row['share']:.1f}"
            cells.append(_bracketed(shown, row, questions))
        cells.append(_coverage(found) if coverage else "")
    return cells


def _bracketed(shown: str, row: Row | None, questions: Questions) -> str:
    """A share whose group's median coverage is under the floor stands in brackets."""
    median = row.get("coverage_median") if row is not None else None
    return f"[{shown}]" if median is not None and median < questions.study.coverage_floor else shown


def _coverage(found: Sequence[Row | None]) -> str:
    value = next((row["coverage"] for row in found if row is not None), None)
    return "–" if value is None else f"{value:.3f}" if value < 0.0995 else f"{value:.2f}"


def _job_groups(rows: Sequence[Row]) -> list[str]:
    """As the papers print them where they have the papers' names, else in order of appearance."""
    found = _in_order(rows, "job_group")
    return sorted(found, key=lambda group: group != "female-dominated")


def _in_order(rows: Sequence[Row], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows))
