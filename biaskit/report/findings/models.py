"""Say how models differ: what differs most, and how many comparisons have which verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean

from biaskit.common.wording import count, listed, number_range, percent, point_number, points_range, short
from biaskit.measurement import FOLDERS, words
from biaskit.records import ALL, UNNAMED
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.claims import Templates, claim
from biaskit.report.findings.finding import DIRECTED, measured_by, noted, outcome_of, shared
from biaskit.report.findings.groups import SPLIT, moved, nearer_to, one_group, two_groups
from biaskit.report.findings.sentence import (
    OPENING,
    STRENGTH,
    WEAK_EVIDENCE,
    Foreign,
    Piece,
    Sentence,
    asked_as,
    beside,
    filled,
    opening,
    pronoun,
    sentence_of,
    tells,
    who,
    within,
)
from biaskit.runs.collection import Part, rule_of
from biaskit.stats.contrast import Contrast, Verdict
from biaskit.stats.power import difference_found
from biaskit.study.keys import is_fraction
from biaskit.tables.coverage import WEAK, Coverage, coverage_of, is_under, table_with_coverage
from biaskit.tables.query import (
    Row,
    among,
    column,
    defined,
    distinct,
    first,
    grouped,
    in_main_context,
    named,
    where,
)

SIDES = ("model_a", "model_b")
N_LARGEST = 2
MOST_NAMED = 2
UNTOLD: tuple[Verdict, ...] = ("no-clear-difference", "not-measured")
"""Verdicts of which no other sentence need speak: their comparisons are named."""
IN_NUMBERS = ("srb_content", "srb_spread")
"""Quantities whose differences are said without a number: they are no shares."""
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


def models(content: Content) -> Iterator[Sentence]:
    """Say the largest clear differences and count all comparisons; groups of models have sentences apart."""
    labels = {*content.labels}
    single: list[Contrast] = []
    of_groups: list[Contrast] = []
    for row in compared(content):
        rows_of_kind = single if labels.issuperset(row.models) else of_groups
        rows_of_kind.append(row)
    for rows in filter(None, (single, *grouped(of_groups, "model_a", "model_b").values())):
        largest = rows
        if len(rows) > 1:
            clear = [row for row in rows if outcome_of(row) in DIRECTED]
            clear.sort(key=lambda row: (row.quantity in IN_NUMBERS, -abs(row.estimate)))
            largest = clear[:N_LARGEST]
            if not clear and len({row.models for row in rows}) == 1:  # what was asked is this difference
                unclear = [row for row in rows if outcome_of(row) == "no-clear-difference" and tells(row)]
                largest = sorted(unclear, key=lambda row: row.whole != "group_gap")[:1]
        shown = [_of_row(content, row) for row in largest]
        yield from shown[:1]
        if len(rows) > 1:
            yield _summary(content, rows)
        yield from shown[1:]


def compared(content: Content) -> list[Contrast]:
    """Pick the rows that sentences speak of: leads, and the details of those that are named."""
    rows = where(content.tests, question="models")
    return [row for row in rows if row.lead or outcome_of(row) != "shown"]


def _topic(rows: Sequence[Contrast]) -> str:
    return "gaps" if all(row.quantity == "srb_spread" for row in rows) else "models"


def _measured(content: Content, rows: Sequence[Contrast]) -> str:
    kinds = listed([f"{kind} intervals" for kind in distinct(rows, "kind")])
    formats = listed([f"{prompt_format} prompts" for prompt_format in named(rows, "prompt_format")])
    numbers = named(rows, "n_a")
    size = f"{number_range(numbers)} {rows[0].unit}s" if numbers else ""
    labels = list(dict.fromkeys([*distinct(rows, "model_b"), *distinct(rows, "model_a")]))
    names = listed([*map(short, labels)]) if len(labels) <= 3 else count(len(labels), "model")
    notes = noted(rows)
    if not {*content.labels}.issuperset(labels):
        notes.insert(0, "means of these models only")
    return measured_by(kinds, formats, size, names, notes=notes)


def _summary(content: Content, rows: Sequence[Contrast]) -> Sentence:
    """Count comparisons by verdict, higher and lower as one: the order of two models means nothing."""
    verdicts = list(map(outcome_of, rows))
    sides: list[Verdict] = ["higher" if verdict == "lower" else verdict for verdict in verdicts]
    counts, n, pairs = Counter(sides), len(sides), {row.models for row in rows}
    a, b = next(iter(pairs))
    coverage = coverage_behind(content, rows)
    weak = is_under(coverage, WEAK)
    # The clause on coverage holds of answers alone.
    two = _two(content, rows[0]) if all(row.is_binary for row in rows) else ()
    lead = opening("", coverage, of=two, whose="their") if all(row.bias_type for row in rows) else ""
    lead = lead or WEAK_EVIDENCE * weak
    subject = "between {a} and {b}" if len(pairs) == 1 else "between models"
    if counts["equivalent"] == n:
        texts = [f"all {n} comparisons {subject} are about the same{{within}}."]
    elif counts["no-clear-difference"] == n:
        of_all = f"no clear difference {subject} in any of {n} comparisons"
        texts = [f"{of_all}{_found(rows)}.", f"{of_all}."]
    else:
        counted, with_names = [], []
        for verdict, said in _COUNTED.items():
            if counts[verdict]:
                counted.append(f"{counts[verdict]} {said[counts[verdict] > 1]}")
                which = [row for row, side in zip(rows, sides, strict=True) if side == verdict]
                with_names.append(counted[-1] + _names(content, which, rows) * (verdict in UNTOLD))
        text = f"of {n} comparisons {subject}, {{}}."
        texts = [text.format(listed(said), a="{a}", b="{b}") for said in (with_names, counted)]
        texts = [texts[0].replace("about the same", "about the same{within}"), *texts]
    margins = within(*(row for row in rows if outcome_of(row) == "equivalent"))
    texts = [OPENING * bool(lead) + text for text in texts]
    text = filled(*texts, opening=lead, a=Foreign(a), b=Foreign(b), within=margins)
    verdict = shared(sides) if counts["higher"] < n else "shown"
    strength, using = min(STRENGTH[v] for v in verdicts), _measured(content, rows)
    return sentence_of(text, _topic(rows), "models", verdict, using, strength=strength, weak=weak)


def _found(rows: Sequence[Contrast]) -> str:
    """Say which differences such a run finds, by the error of its own rows; "" of none that is possible."""
    found = [difference_found(row) for row in rows if is_fraction(row.quantity) and row.ci_low is not None]
    known = [size for size in found if size < 1]
    if not known:
        return ""
    sizes = points_range(min(known), max(known)) if len(known) > 1 else point_number(known[0])
    return f"; {sizes} points would be found in 80 % of runs"


def _names(content: Content, which: Sequence[Contrast], rows: Sequence[Contrast]) -> str:
    """Name a few comparisons: ' (gap, women’s jobs)', with the way to ask where the page has several."""
    names: dict[str, None] = {}
    for row in which if len(which) <= MOST_NAMED else ():
        name = "gap" if row.quantity.endswith("_gap") else _subject(row).split(" ", 1)[1]
        if row.group_a in SPLIT and not row.quantity.endswith("_gap"):
            name = nearer_to(_part(content, row), replace(row, estimate=1.0))
        name = name.partition(" {")[0].removesuffix(" is")
        ways = distinct(rows, "bias_type")
        names[f"{row.bias_type} {name}" if len(ways) > 1 else name] = None
    return f" ({', '.join(names)})" if len(names) == len(which) and names else ""


def _of_row(content: Content, row: Contrast) -> Sentence:
    part, two = _part(content, row), _two(content, row)
    of_sides = [coverage_behind(content, [row], [side]) for side in SIDES]
    a, b = row.group_a or "", row.group_b or ""
    gender = row.gender or "female"
    pieces: dict[str, Piece] = {"a": Foreign(row.model_a), "b": Foreign(row.model_b)}
    pieces["opening"] = opening(asked_as(row), *of_sides, of=two, whose="their") or _in_texts(content, row)
    pieces["higher"] = "higher" if outcome_of(row) == "higher" else "lower"
    pieces |= {"who": who(gender), "they": ""}
    if two:
        pieces |= {"who": pronoun(gender), "they": _neither(content, row)}
    pieces |= {"jobs": one_group(part, a), "groups": two_groups(part, a, b)}
    if row.quantity.endswith("_gap"):
        moves = moved(*(_gap(content, row, side) for side in (row.model_b, row.model_a)))
        side = f"towards {nearer_to(part, row)}"
        if not a:  # of pairs of sentences
            side = "towards stereotypes" if row.estimate > 0 else "from stereotypes"
        pieces["more"] = {"widens": "larger", "narrows": "smaller"}.get(moves, f"further {side}")
    using, coverage = _measured(content, [row]), coverage_behind(content, [row])
    return claim(_templates(row), row, _topic([row]), using, coverage=coverage, pieces=pieces)


def _in_texts(content: Content, row: Contrast) -> str:
    """Say whether texts stand for those of other occupations, or a user's own for themselves."""
    if row.unit != "text":
        return "in texts"
    every = _part(content, row).tables.get("representation", ())
    return "in these texts" if distinct(every, "occupation") == [UNNAMED] else "in texts of these occupations"


def _gap(content: Content, row: Contrast, side: str) -> Contrast | None:
    """Find the gap between the groups of a row in one model's own answers, or what its own pairs follow."""
    same = {name: row[name] for name in ("measurement", "bias_type", "prompt_format", "gender")}
    quantity = row.quantity.replace("group_gap", "share").removesuffix("_gap")
    same |= {name: row[name] for name in ("context", "debiasing_a", "debiasing_b")}
    same |= {name: row[name] or ALL for name in ("group_a", "group_b")}
    return first(content.every_test, model_a=side, model_b=side, kind="crossed", quantity=quantity, **same)


def _part(content: Content, row: Contrast) -> Part:
    own = (part for part in content.parts if part.measurement == row.measurement)
    return next(own, content.parts[0])


def _two(content: Content, row: Contrast) -> tuple[str, ...]:
    """Name the two groups that a number is of, where it is not of all target words."""
    return _part(content, row).contrast if row.is_binary else ()


def _neither(content: Content, row: Contrast) -> str:
    """Say what belongs to neither of two groups, of each side: '; they in 11 and 23 %', means over jobs."""
    shares: dict[str, list[str]] = {}
    way = {"bias_type": row.bias_type, "prompt_format": row.prompt_format, "debiasing_id": 0}
    for side, part in product(row.models, parts_of(content.parts, row.measurement)):
        rows = part.tables.get(table_with_coverage(row.measurement), ())
        rows = in_main_context(where(rows, model=side, **way))
        of_groups = among(defined(rows, "share"), "job_group", (row.group_a, row.group_b))
        for (gender,), own in grouped(of_groups, "gender").items():
            if gender not in part.contrast:
                shares.setdefault(gender, []).append(percent(fmean(column(own, "share"))))
    said = {
        gender: f"{' and '.join(dict.fromkeys(own))} %" for gender, own in shares.items() if len(own) == 2
    }
    return beside("", said)


def _templates(row: Contrast) -> Templates:
    """Make the words for one model against another in the quantity of a row."""
    subject = _subject(row)
    short_subject = subject.replace(" between {groups}", "")
    if row.quantity in IN_NUMBERS:
        clear = [f"without gendered words, {subject} clearly {{higher}} for {{a}} than for {{b}}."]
        intervals = [""]
    else:
        clear = [
            f"{subject} {{amount}} {{more}} for {{a}} than for {{b}}{{ends}}{{they}}.",
            f"{subject} {{amount}} {{more}} for {{a}} than {{b}}{{ends}}{{they}}.",
            f"{short_subject} {{amount}} {{more}} for {{a}} than {{b}}{{ends}}{{they}}.",
        ]
        intervals = ["{measured}", "{estimate}"]
    same = "{} not clearly different for {{a}} and {{b}}"
    unclear = []
    for interval in intervals:
        unclear += [f"{same.format(name)}{interval}{{they}}." for name in (subject, short_subject)]
    unclear.append(f"{same.format(subject)}{{they}}.")
    return Templates(
        question="models",
        lead="{opening}, ",
        what="{a} against {b}",
        says={
            "higher": clear,
            "lower": clear,
            "equivalent": (f"{subject} about the same for {{a}} and {{b}}{{within}}{{they}}.",),
            "no-clear-difference": unclear,
        },
    )


def _subject(row: Contrast) -> str:
    """Find subject and verb, those of the row's own folder before those of another."""
    for name in (row.measurement, *FOLDERS):
        subjects: dict[str, str] = words(name).get("subjects", {})
        if row.whole in subjects:
            return subjects[row.whole]
    raise KeyError(row.quantity)


def coverage_behind(
    content: Content, rows: Sequence[Contrast], sides: Sequence[str] = SIDES, *, of_two: bool = True
) -> Coverage:
    """Find least and greatest coverage behind rows of tests; a mean over models stands for the page."""
    every: list[Row] = []
    for part in content.parts:
        shares = part.tables.get(table_with_coverage(part.measurement), ())
        every += in_main_context(where(shares, debiasing_id=0))
    labels = set(column(every, "model"))
    named = set()
    for test in rows:
        for side in sides:
            label = test[side] if test[side] in labels else None
            named.add((label, test.bias_type, test.prompt_format))
    behind = []
    for row in every:
        way = (row["bias_type"], row["prompt_format"])
        if (row["model"], *way) in named or (None, *way) in named:
            behind.append(row)
    return coverage_of(behind, of_two=of_two and rule_of(content.parts).binary)
