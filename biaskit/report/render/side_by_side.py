"""Stored tables of single models with models in rows: shares, instructions, texts and labour, SRB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from biaskit.report.render.contrasts import GENDERS, with_interval
from biaskit.report.render.document import Heading, TitledTable
from biaskit.runs.collection import Model, Part
from biaskit.stats.arms import FEMALE_DOMINATED, MALE_DOMINATED

Row = Mapping[str, Any]
OTHER_VECTORS = "other vectors"
OTHER_FORM = "other prompt form"
NOT_MEASURED = "–: not measured; the run's tables give the reason."


def overview(parts: Sequence[Part]) -> TitledTable | None:
    """One line a model and one of its intervals: women's share in the prober and in texts, and SRB."""
    probes = [part for part in parts if part.engine == "probe"]
    texts = [part for part in parts if part.engine == "personas"]
    places = _places(probes)
    blocks = [("In the prober: % women", [f"{b}, {_short(group)}" for b, group in places])] if places else []
    if texts:
        blocks += [("In texts: %", ["women", "labour"]), ("SRB", ["women", "men"])]
    if not blocks:
        return None
    lines: list[tuple[str, ...]] = []
    vectors = _first_vectors(texts)
    for label, forms in _forms(parts).items():
        first, second = [label, forms], ["  95 % interval", ""]
        for place in places:
            row = _group_row(probes, label, place)
            first.append(_percent(row, "share"))
            second.append(_range(row))
        if texts:
            for cell in (*_represented(texts, label), *_srb_means(texts, label, vectors)):
                first.append(cell)
                second.append("")
        lines.append(tuple(first))
        if places:
            lines.append(tuple(second))
    return TitledTable(
        title="Models side by side",
        header=(
            (Heading("", 2), *(Heading(title, len(columns)) for title, columns in blocks)),
            (
                Heading("Model"),
                Heading("Prompt form"),
                *(Heading(column) for _, columns in blocks for column in columns),
            ),
        ),
        rows=tuple(lines),
        note=_overview_note(bool(places), bool(texts)),
        n_text=2,
    )


def _overview_note(probes: bool, texts: bool) -> str:
    said = []
    if probes:
        said.append(
            "In the prober: of the probability on the listed words, no instruction; F-dom., M-dom.: female-"
            " and male-dominated items."
        )
    if texts:
        said.append(
            "In texts: mean over occupations, gender not in the prompt; labour: of the same occupations."
            " SRB: negative = closer to texts of specified women."
        )
    return " ".join([*said, NOT_MEASURED])


# --- the prober --------------------------------------------------------------------------------------


def share_tables(parts: Sequence[Part]) -> Iterator[TitledTable]:
    """Per bias type: every gender's share of both job groups with interval, coverage and estimator."""
    probes = [part for part in parts if part.engine == "probe"]
    for bias_type in dict.fromkeys(b for b, _ in _places(probes)):
        groups = [group for b, group in _places(probes) if b == bias_type]
        genders = list(dict.fromkeys(gender for part in probes for gender in part.groups))
        lines: list[tuple[str, ...]] = []
        for part in probes:
            for model in part.models:
                rows = [_find(part, model.label, bias_type, group) for group in groups]
                if any(rows):
                    lines += _share_lines(model, rows, genders, part.floor)
        if not lines:
            continue
        names = [Heading(GENDERS.get(gender, gender)) for gender in genders]
        yield TitledTable(
            title=f"{bias_type.capitalize()} prompts: % of the probability on the listed words",
            header=(
                (Heading("", 2), *(Heading(group, len(genders) + 1) for group in groups)),
                (
                    *(Heading("Model"), Heading("Estimator")),
                    *(heading for _ in groups for heading in (*names, Heading("cov."))),
                ),
            ),
            rows=tuple(lines),
            note="Second line: 95 % interval over jobs and templates. cov. = probability on the listed words"
            f" (coverage); [ ] where its median is below the floor. {NOT_MEASURED}",
            n_text=2,
        )


def _share_lines(
    model: Model, rows: Sequence[Mapping[str, Row]], genders: Sequence[str], floor: float
) -> Iterator[tuple[str, ...]]:
    shares, between = [], []
    for found in rows:
        for gender in genders:
            row = found.get(gender)
            low = row is not None and row["coverage_median"] is not None and row["coverage_median"] < floor
            shown = _percent(row, "share")
            shares.append(f"[{shown}]" if low else shown)
            between.append(_range(row))
        coverage = next((row["coverage"] for row in found.values()), None)
        shares.append("–" if coverage is None else f"{coverage:.3f}")
        between.append("")
    yield (model.label, model.estimator, *shares)
    yield ("  95 % interval", "", *between)


def instruction_table(parts: Sequence[Part]) -> TitledTable | None:
    """What each debiasing instruction changes: share under it minus share without, per model."""
    lines: list[tuple[str, ...]] = []
    probes = [part for part in parts if part.engine == "probe"]
    places = _places(probes)
    for part in probes:
        rows = [
            row
            for row in part.tables.get("tests", ())
            if str(row["family"]) == "probe/share/crossed/instructions" and row["setting"] == "plain"
        ]
        for model, number in dict.fromkeys((row["model_a"], row["instruction_a"]) for row in rows):
            own = [r for r in rows if r["model_a"] == model and r["instruction_a"] == number]
            cells = [_one(own, bias_type, group, _own_gender(group, part)) for bias_type, group in places]
            lines.append((model, number, *(with_interval(row) if row else "–" for row in cells)))
    if not lines:
        return None
    headings = [
        Heading(f"{b}, {_short(group)}: {GENDERS.get(_own_gender(group, probes[0]), 'first gender')}")
        for b, group in places
    ]
    return TitledTable(
        title="What an instruction changes: share under it - share without",
        header=((Heading("Model"), Heading("Instruction"), *headings),),
        rows=tuple(lines),
        note="With 95 % interval over jobs and templates; setting plain.",
        n_text=2,
    )


def _one(rows: Sequence[Row], bias_type: str, group: str, gender: str) -> Row | None:
    return next(
        (r for r in rows if r["bias_type"] == bias_type and r["group_a"] == group and r["gender"] == gender),
        None,
    )


def _own_gender(group: str, part: Part) -> str:
    """Whose share an instruction is hoped to move in a job group: men's in male-dominated jobs."""
    return "male" if group == MALE_DOMINATED and "male" in part.groups else part.contrast[0]


def _places(probes: Sequence[Part]) -> list[tuple[str, str]]:
    """(bias type, job group) of the prober's tables, the papers' groups in the papers' order."""
    rows = [row for part in probes for row in part.tables.get("probe_groups", ())]
    found = dict.fromkeys((str(row["bias_type"]), str(row["job_group"])) for row in rows)
    return sorted(found, key=lambda place: (place[0], place[1] != FEMALE_DOMINATED))


def _find(part: Part, label: str, bias_type: str, group: str) -> dict[str, Row]:
    """Gender → row of probe_groups without an instruction, plain where there are settings."""
    own = [
        row
        for row in part.tables.get("probe_groups", ())
        if (row["model"], row["bias_type"], row["job_group"]) == (label, bias_type, group)
        and row["instruction_id"] == 0
    ]
    plain = [row for row in own if row["setting"] == "plain"] or own
    return {str(row["gender"]): row for row in plain}


def _group_row(probes: Sequence[Part], label: str, place: tuple[str, str]) -> Row | None:
    rows = (_find(part, label, *place).get(part.contrast[0]) for part in probes)
    return next((row for row in rows if row is not None), None)


def _short(group: str) -> str:
    return {FEMALE_DOMINATED: "F-dom.", MALE_DOMINATED: "M-dom."}.get(group, group)


# --- texts -------------------------------------------------------------------------------------------


def labour_table(parts: Sequence[Part]) -> TitledTable | None:
    """Share of women in texts beside their share in the labour force, over occupations that have both."""
    lines = []
    for part in parts:
        tests = [r for r in part.tables.get("tests", ()) if r["quantity"] == "represented_share"]
        for model in part.models if part.engine == "personas" else ():
            pairs = [
                (row["female_share"], row["labour_female_share"])
                for row in _all_rows(part, model.label)
                if row["female_share"] is not None and row["labour_female_share"] is not None
            ]
            if not pairs:
                continue
            own = [r for r in tests if r["model_a"] == model.label and r["kind"] == "paired"]
            means = [f"{100 * fmean(values):.1f}" for values in zip(*pairs, strict=True)]
            lines.append((model.label, *means, with_interval(own[0]) if own else "–", str(len(pairs))))
    if not lines:
        return None
    header = ("Model", "women in texts, %", "in the labour force, %", "difference [95 %]", "occupations")
    return TitledTable(
        title="Women in texts and in the labour force",
        header=(tuple(Heading(text) for text in header),),
        rows=tuple(lines),
        note="Difference: share in texts - labour share, a fraction; U.S. labour data.",
    )


def srb_table(parts: Sequence[Part]) -> TitledTable | None:
    """SRB of women and men per model; scores of other vectors than the first model's are not shown."""
    vectors = _first_vectors(parts)
    lines = []
    for part in parts:
        for model in part.models if part.engine == "personas" else ():
            rows = [row for row in part.tables.get("srb", ()) if row["model"] == model.label]
            if not rows:
                continue
            means = _srb_means([part], model.label, vectors)
            z = [_mean(rows, gender, "srb_z") for gender in ("female", "male")]
            genders = [
                row
                for row in part.tables.get("tests", ())
                if str(row["family"]) == "personas/srb/paired/genders" and row["model_a"] == model.label
            ]
            same = OTHER_VECTORS not in means
            difference = with_interval(genders[0]) if genders and same else OTHER_VECTORS if not same else "–"
            n = sum(row["srb"] is not None for row in rows if row["gender"] == "female")
            lines.append((model.label, *means, difference, *z, str(n)))
    if not lines:
        return None
    header = ("Model", "women", "men", "women - men [95 %]", "women, z", "men, z", "occupations")
    return TitledTable(
        title="Subset Representational Bias (SRB)",
        header=(tuple(Heading(text) for text in header),),
        rows=tuple(lines),
        note="Means over occupations; negative = closer to texts of specified women. z: srb_z, against"
        " shuffled genders, the score to set side by side across vector models.",
    )


def change_table(changes: Sequence[Row]) -> TitledTable | None:
    """Percent change of SRB per pair of models and gender (GAS(P) Figure 4), over occupations."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in changes:
        found.setdefault((row["model_old"], row["model_new"], row["gender"]), []).append(row)
    lines = []
    for (old, new, gender), rows in found.items():
        values = [row["percent_change"] for row in rows if row["percent_change"] is not None]
        middle = f"{median(values):+.0f} %" if values else "–"
        nearer = f"{sum(v > 0 for v in values)} of {len(values)}"
        lines.append((f"{old} to {new}", GENDERS.get(gender, gender), middle, nearer, str(len(rows))))
    if not lines:
        return None
    header = ("From, to", "Of", "median change", "nearer to own gender", "occupations")
    return TitledTable(
        title="Percent change of SRB from one model to the other",
        header=(tuple(Heading(text) for text in header),),
        rows=tuple(lines),
        note="A rise means nearer to one's own specified gender; occupations whose old score is near 0 or"
        " points to the other gender have no change.",
        n_text=2,
    )


def _all_rows(part: Part, label: str) -> list[Row]:
    return [
        row
        for row in part.tables.get("representation", ())
        if row["model"] == label and row["template_id"] == "all" and row.get("instruction_id") in (None, 0)
    ]


def _represented(texts: Sequence[Part], label: str) -> tuple[str, str]:
    rows = [row for part in texts for row in _all_rows(part, label) if row["female_share"] is not None]
    labour = [row["labour_female_share"] for row in rows if row["labour_female_share"] is not None]
    return (
        f"{100 * fmean(row['female_share'] for row in rows):.1f}" if rows else "–",
        f"{100 * fmean(labour):.1f}" if labour else "–",
    )


def _first_vectors(parts: Sequence[Part]) -> tuple[str, str] | None:
    """The vector model of the first model with a score; one of marked lists is that part's alone."""
    for part in parts:
        for row in part.tables.get("srb", ()):
            if row["srb"] is not None:
                return _vectors_of(part, row)
    return None


def _vectors_of(part: Part, row: Row) -> tuple[str, str]:
    named = str(row["vectors"]).startswith(("corpus:", "pretrained:"))
    return str(row["vectors"]), "" if named else " ".join(part.runs)


def _srb_means(parts: Sequence[Part], label: str, vectors: tuple[str, str] | None) -> tuple[str, str]:
    for part in parts:
        rows = [row for row in part.tables.get("srb", ()) if row["model"] == label]
        scored = [row for row in rows if row["srb"] is not None]
        if any(_vectors_of(part, row) != vectors for row in scored):
            return OTHER_VECTORS, OTHER_VECTORS
        if scored:
            return _mean(rows, "female", "srb"), _mean(rows, "male", "srb")
    return "–", "–"


def _mean(rows: Sequence[Row], gender: str, column: str) -> str:
    values = [row[column] for row in rows if row["gender"] == gender and row[column] is not None]
    return f"{fmean(values):+.2f}" if values else "–"


# --- cells -------------------------------------------------------------------------------------------


def _forms(parts: Sequence[Part]) -> dict[str, str]:
    """Label → its prompt forms, the prober's first; another form than the first model's is marked."""
    first: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for part in parts:
        for model in part.models:
            usual = first.setdefault(part.engine, model.prompt_form)
            form = model.prompt_form or "none"
            shown = form if model.prompt_form == usual else f"{form} ({OTHER_FORM})"
            found.setdefault(model.label, []).append(shown)
    return {label: " / ".join(dict.fromkeys(forms)) for label, forms in found.items()}


def _percent(row: Row | None, column: str) -> str:
    return "–" if row is None or row[column] is None else f"{100 * row[column]:.1f}"


def _range(row: Row | None) -> str:
    if row is None or row["ci_low"] is None:
        return "–"
    return f"{100 * row['ci_low']:.0f}–{100 * row['ci_high']:.0f}"
