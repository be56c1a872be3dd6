"""Models against models: what differs, what is equivalent, what is unclear (docs/methods.md#model-pairs)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.blocks import below_floor, blocks_of, jobs_of
from biaskit.report.findings.finding import (
    NUMBER,
    POINTS,
    Finding,
    Outcome,
    Rank,
    Ranked,
    Topic,
    difference,
    margin_of,
    noted,
    outcome_of,
    parts_of,
    reasons_of,
    shared,
    tally,
)
from biaskit.stats.verdict import direction_of
from biaskit.tables.query import Row, contrast_of, defined, distinct, in_main_setting, undefined, where
from biaskit.wording import count, listed, number_range, p_value, people, short

MANY_PAIRS = 3
N_LARGEST = 3
GAPS = {
    "probe_gap": "probe gap (women's minus men's share)",
    "represented_gap": "gap in texts (women's minus men's share)",
    "srb_spread": "SRB spread (men's SRB minus women's)",
}
IN_NUMBERS = ("srb", "srb_spread")


def between_models(content: Content) -> Iterator[Ranked]:
    """Findings of rows that hold one model, or one group of models, against another."""
    rows = compared(content)
    topics: tuple[Topic, ...] = ("models", "gaps")
    for topic in topics:
        own = [row for row in rows if (row["quantity"] in GAPS) == (topic == "gaps")]
        for engine, contrast in dict.fromkeys((row["engine"], contrast_of(row)) for row in own):
            same = [row for row in where(own, engine=engine) if contrast_of(row) == contrast]
            yield from _of_contrast(content, topic, contrast, same)


def compared(content: Content) -> list[Row]:
    """The rows that sentences speak of: a model against another, without an instruction, in one setting."""
    gender = next((part.contrast[0] for part in parts_of(content, "probe") if part.contrast[0]), "female")
    rows = [row for row in content.between.get("tests", ()) if _is_shown(row, gender)]
    in_setting = in_main_setting([row for row in rows if row["setting"]])
    return [row for row in rows if not row["setting"] or row in in_setting]


def _is_shown(row: Row, gender: str) -> bool:
    """Whether a row holds a model against another, without an instruction, for the gender sentences speak of.

    Of the kinds of one comparison, crossed speaks for the prober and paired over occupations for texts.
    """
    if row["model_a"] == row["model_b"] or "~" in row["quantity"] or row["quantity"] == "labour_gap":
        return False
    if row["instruction_a"] not in ("", None, "0") or row["instruction_b"] not in ("", None, "0"):
        return False
    if row["quantity"] == "share":
        return bool(row["kind"] == "crossed" and row["gender"] == gender)
    return bool(row["kind"] == "paired" and row["quantity"] in ("srb", "represented_share", *GAPS))


def _of_contrast(content: Content, topic: Topic, contrast: str, rows: Sequence[Row]) -> Iterator[Ranked]:
    """One finding per pair of groups of models; single models in pairs, or many of them in one finding."""
    models = {model.label for part in content.parts for model in part.models}
    sides = list(dict.fromkeys((row["model_a"], row["model_b"]) for row in rows))
    pairs = [pair for pair in sides if models.issuperset(pair)]
    many = pairs if len(pairs) > MANY_PAIRS else []
    if many:
        own = [row for row in rows if (row["model_a"], row["model_b"]) in many]
        yield Rank.LEAD, _of_many(content, topic, contrast, own, len(many))
    for a, b in (pair for pair in sides if pair not in many):
        yield Rank.LEAD, _of_pair(content, topic, contrast, where(rows, model_a=a, model_b=b))


def _lead(contrast: str) -> str:
    return "" if contrast == "models" else f"Contrast {short(contrast)}. "


def _of_pair(content: Content, topic: Topic, contrast: str, rows: Sequence[Row]) -> Finding:
    a_label, b_label = rows[0]["model_a"], rows[0]["model_b"]
    a, b, using = short(a_label), short(b_label), _using(rows)
    known = defined(rows, "estimate")
    text = f"{_lead(contrast)}{a} compared with {b}"
    if not known:
        return Finding(f"{text}: not measured ({reasons_of(rows)}).", topic, "not-measured", using)
    clauses = [f"{_what(content, row)}, {_difference(row)}{_adjusted(content, row)}" for row in known]
    text += f": {'; '.join(clauses)}.{noted(known)}"
    if len(known) < len(rows):
        missing = undefined(rows, "estimate")
        text += f" {count(len(missing), 'comparison')} not measured ({reasons_of(missing)})."
    text += _weak(content, rows)
    if not {model.label for part in content.parts for model in part.models}.issuperset((a_label, b_label)):
        text += " This speaks of the models in these groups, not of all models of their kind."
    return Finding(text, topic, shared([outcome_of(row) for row in known]), using)


def _what(content: Content, row: Row) -> str:
    """Name the number that is compared."""
    quantity, gender = row["quantity"], row["gender"]
    if quantity == "share":
        part = next(parts_of(content, "probe"), None)
        group = row["group_a"] or ""
        jobs = jobs_of(part, group) if part and group else "all jobs"
        return f"the share of {people(gender)} in {row['bias_type']} prompts, {jobs}"
    if quantity == "srb":
        return f"the SRB of {people(gender)}"
    if quantity == "represented_share":
        return "the share of women in texts"
    return f"the {GAPS[quantity]}" + (f" in {row['bias_type']} prompts" if row["bias_type"] else "")


def _difference(row: Row) -> str:
    if row["quantity"] in IN_NUMBERS:
        return difference(row, NUMBER, more="higher", less="lower")
    return difference(row, POINTS)


def _adjusted(content: Content, row: Row) -> str:
    """The p-values of the test whose unit is the job or the occupation, before and after Holm."""
    twin = _twin(content, row)
    if twin is None or twin["p_adjusted"] is None or twin["p_value"] is None:
        return ""
    return f" (paired {p_value(twin['p_value'])}, after Holm {p_value(twin['p_adjusted'])})"


def _twin(content: Content, row: Row) -> Row | None:
    """The paired row of the same comparison."""
    if row["kind"] == "paired":
        return row
    names = ("engine", "quantity", "gender", "model_a", "model_b", "bias_type", "setting", "prompt_form")
    scope = {name: row[name] for name in (*names, "instruction_a", "instruction_b", "group_a", "group_b")}
    rows = where(content.between.get("tests", ()), kind="paired", **scope)
    return next((twin for twin in rows if contrast_of(twin) == contrast_of(row)), None)


def _of_many(content: Content, topic: Topic, contrast: str, rows: Sequence[Row], n_pairs: int) -> Finding:
    verdicts: list[Outcome] = [outcome_of(row) for row in rows]
    text = f"{_lead(contrast)}{count(len(rows), 'comparison')} between {count(n_pairs, 'pair')} of models "
    text += f"({listed(_quantities(rows))}): {_counted(rows, verdicts)}."
    largest = [row for row in rows if direction_of(row)]
    quantities = distinct(largest, "quantity")
    for quantity in quantities:
        own = sorted(where(largest, quantity=quantity), key=lambda row: -abs(row["estimate"]))
        own = own[: N_LARGEST // len(quantities) or 1]
        clauses = [
            f"{short(row['model_a'], 40)} against {short(row['model_b'], 40)}, {_what(content, row)}, "
            f"{_difference(row)}{_adjusted(content, row)}"
            for row in own
        ]
        text += (
            f" Largest of {count(len(where(rows, quantity=quantity)), 'comparison')}: {'; '.join(clauses)}."
        )
    twins = [twin for row in rows if (twin := _twin(content, row)) is not None]
    adjusted = [twin["p_adjusted"] for twin in defined(twins, "p_adjusted")]
    if adjusted:
        kept = sum(p < 0.05 for p in adjusted)
        text += f" After Holm's correction {kept} of {count(len(adjusted), 'paired test')} stay below 0.05."
    missing = undefined(rows, "estimate")
    text += f" Not measured: {reasons_of(missing)}." if missing else ""
    text += _weak(content, rows)
    return Finding(text, topic, shared(verdicts), _using(rows))


def _counted(rows: Sequence[Row], verdicts: Sequence[Outcome]) -> str:
    """Count verdicts of pairs; which of two models was named first is chance, so the sign is not counted."""
    margin = margin_of([row for row in rows if row["quantity"] not in IN_NUMBERS])
    sides: list[Outcome] = ["higher" if verdict == "lower" else verdict for verdict in verdicts]
    return tally(sides, more="differ", less="", margin=margin)


def _weak(content: Content, rows: Sequence[Row]) -> str:
    """Say which of the models have a coverage under the floor, where shares are compared."""
    weak = under_floor(content, rows)
    if not weak:
        return ""
    whose = listed([short(model) for model in weak])
    return f" Weak evidence, since their coverage is under the floor: shares of {whose}."


def under_floor(content: Content, rows: Sequence[Row]) -> list[str]:
    """The models of shares that are compared whose coverage is under the floor."""
    named = {row[side] for row in where(rows, quantity="share") for side in ("model_a", "model_b")}
    weak = [
        model
        for part in parts_of(content, "probe")
        for block in blocks_of(part)
        for model in block.models
        if model in named and below_floor(block, model)
    ]
    return list(dict.fromkeys(weak))


def _quantities(rows: Sequence[Row]) -> list[str]:
    names = {
        "share": "share by kind of jobs",
        "srb": "SRB",
        "represented_share": "share of women in texts",
        **GAPS,
    }
    return [names[quantity] for quantity in distinct(rows, "quantity")]


def _using(rows: Sequence[Row]) -> str:
    kinds = listed([f"{kind} intervals" for kind in distinct(rows, "kind")])
    forms = listed([f"{form} prompts" for form in distinct(rows, "prompt_form") if form])
    numbers = [row["n_a"] for row in rows if row["n_a"]]
    size = f"{number_range(numbers)} {rows[0]['unit']}s" if numbers else ""
    models = list(dict.fromkeys([*distinct(rows, "model_b"), *distinct(rows, "model_a")]))
    who = listed([short(model) for model in models]) if len(models) <= 3 else count(len(models), "model")
    return ", ".join(bit for bit in (kinds, forms, size, who) if bit)
