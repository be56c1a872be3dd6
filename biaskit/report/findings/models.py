"""Say how models differ: what differs most, and how many comparisons have which verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from biaskit.common.wording import count, listed, number_range, short
from biaskit.report.content import Content
from biaskit.report.findings.blocks import SIDES, coverage_behind, one_group, two_groups
from biaskit.report.findings.finding import DIRECTED, Topic, measured_by, noted, outcome_of, parts_of, shared
from biaskit.report.findings.kinds import IN_NUMBERS, claim, of_models
from biaskit.report.findings.sentence import STRENGTH, Foreign, Said, opening, said, sentence, who, within
from biaskit.stats.verdict import Verdict
from biaskit.tables.coverage import WEAK, is_under
from biaskit.tables.query import Row, distinct, grouped, where

N_LARGEST = 2
_PAIRED = {"share": "pair_share", "group_gap": "pair_gap"}  # subjects of pairs of sentences
_COUNTED: dict[Verdict, tuple[str, str]] = {
    "higher": ("differs clearly", "differ clearly"),
    "equivalent": ("is about the same", "are about the same"),
    "no-clear-difference": ("is unclear", "are unclear"),
    "not-identified": ("is not identified", "are not identified"),
    "no-verdict": ("has no conclusion", "have no conclusion"),
    "shown": ("has no number with an interval", "have no number with an interval"),
    "not-measured": ("is not measured", "are not measured"),
}
"""Verdict → what is said of one comparison, and of several."""


def models(content: Content) -> Iterator[Said]:
    """Say the largest clear differences and count all comparisons; groups of models have sentences apart."""
    labels = {model.label for part in content.parts for model in part.models}
    single: list[Row] = []
    of_groups: list[Row] = []
    for row in compared(content):
        (single if labels.issuperset((row["model_a"], row["model_b"])) else of_groups).append(row)
    for rows in filter(None, (single, *grouped(of_groups, "model_a", "model_b").values())):
        clear = [row for row in rows if outcome_of(row) in DIRECTED]
        clear.sort(key=lambda row: (row["quantity"] in IN_NUMBERS, -abs(row["estimate"])))
        shown = [_of_row(content, row) for row in (rows if len(rows) == 1 else clear[:N_LARGEST])]
        yield from shown[:1]
        if len(rows) > 1:
            yield _summary(content, rows)
        yield from shown[1:]


def compared(content: Content) -> list[Row]:
    """Pick the rows that sentences speak of: leads, and the details of those that are named."""
    rows = where(content.between.get("tests", ()), question="models")
    return [row for row in rows if row["lead"] or outcome_of(row) != "shown"]


def _topic(rows: Sequence[Row]) -> Topic:
    return "gaps" if all(row["quantity"] == "srb_spread" for row in rows) else "models"


def _measured(content: Content, rows: Sequence[Row]) -> str:
    kinds = listed([f"{kind} intervals" for kind in distinct(rows, "kind")])
    forms = listed([f"{form} prompts" for form in distinct(rows, "prompt_form") if form])
    numbers = [row["n_a"] for row in rows if row["n_a"]]
    size = f"{number_range(numbers)} {rows[0]['unit']}s" if numbers else ""
    labels = list(dict.fromkeys([*distinct(rows, "model_b"), *distinct(rows, "model_a")]))
    names = listed([short(model) for model in labels]) if len(labels) <= 3 else count(len(labels), "model")
    known, notes = {model.label for part in content.parts for model in part.models}, []
    if not known.issuperset(labels):
        notes.append("means of these models only")
    return measured_by(kinds, forms, size, names, notes=[*notes, *noted(rows)])


def _summary(content: Content, rows: Sequence[Row]) -> Said:
    """Count comparisons by verdict, higher and lower as one: the order of two models means nothing."""
    # A gap has no margin: it is counted where it differs alone.
    rows = [row for row in rows if row["quantity"] != "group_gap" or outcome_of(row) in DIRECTED] or rows
    verdicts = [outcome_of(row) for row in rows]
    sides: list[Verdict] = ["higher" if verdict == "lower" else verdict for verdict in verdicts]
    counts, n, pairs = Counter(sides), len(sides), {(row["model_a"], row["model_b"]) for row in rows}
    a, b = next(iter(pairs))
    coverage = coverage_behind(content, rows)
    weak = is_under(coverage, WEAK)
    # The clause on coverage holds of answers alone.
    lead = opening("", coverage, whose="their") if all(row["bias_type"] for row in rows) else ""
    lead = f"{lead}, " if lead else "weak evidence: " * weak
    subject = "between {a} and {b}" if len(pairs) == 1 else "between models"
    if counts["equivalent"] == n:
        text = f"all {n} comparisons {subject} are about the same{{within}}."
    elif counts["no-clear-difference"] == n:
        text = f"no clear difference {subject}" + (f" in any of {n} comparisons." if n > 1 else ".")
    else:
        counted = [f"{counts[v]} {words[counts[v] > 1]}" for v, words in _COUNTED.items() if counts[v]]
        text = f"of {n} comparisons {subject}, {listed(counted)}."
    margins = within(*(row for row in rows if row["quantity"] not in IN_NUMBERS))
    text = sentence(lead + text, a=Foreign(a), b=Foreign(b), within=margins)
    verdict = shared(sides) if counts["higher"] < n else "shown"
    strength, using = min(STRENGTH[v] for v in verdicts), _measured(content, rows)
    return said(text, _topic(rows), "models", verdict, using, strength=strength, weak=weak)


def _of_row(content: Content, row: Row) -> Said:
    part = next(parts_of(content, "probe"), None) or content.parts[0]
    of_sides = [coverage_behind(content, [row], [side]) for side in SIDES]
    quantity = row["quantity"] if row["bias_type"] != "pairs" else _PAIRED[row["quantity"]]
    return claim(
        *(of_models(quantity), row, _topic([row]), _measured(content, [row])),
        coverage=coverage_behind(content, [row]),
        pieces={
            "opening": opening(row["bias_type"], *of_sides, whose="their") or "in texts",
            "a": Foreign(row["model_a"]),
            "b": Foreign(row["model_b"]),
            "higher": "higher" if outcome_of(row) == "higher" else "lower",
            "who": who(row["gender"] or "female"),
            "jobs": one_group(part, row["group_a"] or ""),
            "groups": two_groups(part, row["group_a"] or "", row["group_b"] or ""),
        },
    )
