"""What framing and wording change, as tables: from probe_factors.csv, probe_wording.csv and tests.csv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.records import NO_INSTRUCTION
from biaskit.report.render.document import Heading, TitledTable
from biaskit.stats.verdict import verdict_of
from biaskit.tables.quantities import OF_FACTORS
from biaskit.tables.query import Row, Tables, contrast_of, distinct, first, grouped, where
from biaskit.wording import people, percent, percent_range, point_number, points_range

SCOPE = ("model", "bias_type", "setting", "prompt_form")
EVERY_FRAME = "all"


def factor_tables(genders: Sequence[tuple[str, str]], gender: str, tables: Tables) -> Iterator[TitledTable]:
    """For each model, bias type and setting: its arms, then what each factor changes in one gender's share.

    `genders`: each gender group with its heading; `gender` is the one that the changes are of. Rows under an
    instruction stand in the files alone.
    """
    tests = [
        row
        for row in where(tables.get("tests", ()), quantity="share", kind="crossed", gender=gender)
        if contrast_of(row) in OF_FACTORS and ": " not in row["instruction_a"]
    ]
    rows = where(tables.get("probe_factors", ()), instruction_id=NO_INSTRUCTION)
    for (model, bias_type, setting, form), own in grouped(rows, *SCOPE).items():
        scope = {"model_a": model, "bias_type": bias_type, "setting": setting, "prompt_form": form}
        named = _named(model, bias_type, setting)
        yield _arms(own, genders, named)
        yield _changes(where(tests, **scope), gender, named)


def _named(model: str, bias_type: str, setting: str) -> str:
    return f"{model}, {bias_type} prompts{'' if setting == 'plain' else ', with dialogue'}"


def _arms(rows: Sequence[Row], genders: Sequence[tuple[str, str]], named: str) -> TitledTable:
    groups = distinct(rows, "job_group")
    lines = []
    for (arm,), own in grouped(rows, "arm").items():
        cells = []
        for group in groups:
            found = [first(own, job_group=group, gender=gender) for gender, _ in genders]
            cells += [_share(row) for row in found]
            cells.append(_coverage(found[0]))
        lines.append((arm, *cells))
    width = len(genders) + 1
    names = [*(letter for _, letter in genders), "cov."] * len(groups)
    return TitledTable(
        title=f"Framings, {named}: % of the probability on the listed words",
        header=(
            (Heading(""), *(Heading(group, width) for group in groups)),
            tuple(map(Heading, ("Framing", *names))),
        ),
        rows=tuple(lines),
        note=f"The same {max((row['n_frames'] for row in rows), default=0)} frames in each framing.",
    )


def _share(row: Row | None) -> str:
    return "–" if row is None or row["share"] is None else f"{100 * row['share']:.1f}"


def _coverage(row: Row | None) -> str:
    value = None if row is None else row["coverage"]
    return "–" if value is None else f"{value:.3f}" if value < 0.0995 else f"{value:.2f}"


def _changes(rows: Sequence[Row], gender: str, named: str) -> TitledTable:
    lines = []
    for (a, b), own in grouped(rows, "instruction_a", "instruction_b").items():
        for row in own:
            group_a, group_b = row["group_a"], row["group_b"]
            of = group_a if group_a == group_b else f"{group_a} − {group_b}"
            what = f"{a} − {b}" if row is own[0] else ""
            lines.append((what, of, _points(row), _interval(row), verdict_of(row).replace("-", " ")))
    return TitledTable(
        title=f"What framing changes in the share of {people(gender)}, {named}",
        header=(tuple(map(Heading, ("Change", "Jobs", "Points", "95 % interval", "Verdict"))),),
        rows=tuple(lines),
        note="Interval over jobs and frames; the verdict counts all comparisons of the run.",
        n_text=2,
    )


def _points(row: Row) -> str:
    return "–" if row["estimate"] is None else point_number(row["estimate"], 1)


def _interval(row: Row) -> str:
    return "–" if row["ci_low"] is None else points_range(row["ci_low"], row["ci_high"])


def wording_tables(gender: str, rows: Sequence[Row]) -> Iterator[TitledTable]:
    """For each model, bias type and setting: one gender's difference in each frame's wordings."""
    plain = [row for row in where(rows, instruction_id=NO_INSTRUCTION, gender=gender) if row["group_b"]]
    for (model, bias_type, setting, _), own in grouped(plain, *SCOPE).items():
        for (group_a, group_b), of_pair in grouped(own, "group_a", "group_b").items():
            named = _named(model, bias_type, setting)
            yield TitledTable(
                title=f"Wording, {named}: share of {people(gender)}, {group_a} − {group_b} jobs, in points",
                header=(tuple(map(Heading, ("Frame", "Mean", "Least", "Greatest", "Same sign", "95 %"))),),
                rows=tuple(_line(row) for row in of_pair),
                note=line_of_wording(first(of_pair, frame=EVERY_FRAME)),
            )


def _line(row: Row) -> tuple[str, ...]:
    numbers = (
        "–" if row[name] is None else point_number(row[name], 1) for name in ("mean", "least", "greatest")
    )
    ends = "" if row["ci_low"] is None else f"{percent_range(row['ci_low'], row['ci_high'])} %"
    frame = "every frame" if row["frame"] == EVERY_FRAME else row["frame"]
    return (frame, *numbers, same_sign(row), ends)


def same_sign(row: Row) -> str:
    """'9 of 10', the paraphrases whose difference has the sign of the mean over all."""
    return "–" if row["n_same_sign"] is None else f"{row['n_same_sign']} of {row['n_wordings']}"


def line_of_wording(row: Row | None) -> str:
    """What the row of every frame says of the variance, in a sentence."""
    if row is None or row["wording_share"] is None:
        return f"Share of wording not measured ({row['reason'] if row else 'no row'})."
    ends = ""
    if row["wording_share_low"] is not None:
        ends = f" [{percent_range(row['wording_share_low'], row['wording_share_high'])}]"
    return f"{percent(row['wording_share'])} %{ends} of the variance between templates is wording."
