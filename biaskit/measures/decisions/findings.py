"""What decisions show: gaps of sex and of race, the smallest ratio, the first place, flips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from biaskit.common.wording import count, percent, plain_number, short
from biaskit.measurement import words
from biaskit.records import ALL
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.claims import claim, templates_of
from biaskit.report.findings.finding import measured_by, noted
from biaskit.report.findings.sentence import DETAIL, Foreign, Piece, Sentence, filled, sentence_of
from biaskit.report.questions import QuestionId
from biaskit.runs.collection import Part
from biaskit.stats.contrast import Contrast
from biaskit.tables.query import Row, Tables, column, defined, distinct, first, grouped, named, where

TEMPLATES = templates_of("decisions")
SAYS = words("decisions")["shares"]
SCORE = "score"
"""The quantity of a gap in scores."""


def findings(content: Content) -> Iterator[Sentence]:
    """Say of each model and question its gaps, then what is shown beside them."""
    for part in parts_of(content.parts, "decisions"):
        for (model, question), gaps in grouped(part.tables["decision_gaps"], "model", "question").items():
            rows = where(part.tables["decisions"], model=model, question=question)
            using = _measured(rows, gaps)
            for kind in ("sex", "race"):
                for test in where(part.tests, model_a=model, model_b=model, context=question, contrast=kind):
                    if size := first(gaps, job=ALL, contrast=kind, group_a=test.group_a):
                        using = _measured(rows, [size], f"{size['n_cases']} cases, {size['n_people']} people")
                    template = TEMPLATES[f"{kind}_score" if test.quantity == SCORE else kind]
                    about, pieces = f"decisions-{kind}", _pieces(part, rows, test)
                    yield claim(template, test, "decisions", using, model=model, about=about, pieces=pieces)
            yield from _shown(part, {"model": model, "question": question}, using)


def _pieces(part: Part, rows: Sequence[Row], test: Contrast) -> dict[str, Piece]:
    """Name the groups, and how was answered: yes to one person, one of two chosen, a score, a log."""
    wording = first(part.templates, name=rows[0]["question"]) or {}
    kind = "choice" if named(rows, "position") else "yes"
    pieces: dict[str, Piece] = {"a": Foreign(test.group_a), "b": Foreign(test.group_b)}
    if test.quantity == SCORE:
        kind, low, high = "score", test.ci_low, test.ci_high
        interval = f" [{plain_number(low)} to {plain_number(high)}]" if low is not None else ""
        pieces |= {"amount": plain_number(abs(test.estimate or 0.0)), "span": interval, "ends": interval}
        pieces["more"] = "higher" if (test.estimate or 0.0) > 0 else "lower"
    if not named(rows, "estimator"):
        kind = "log" if named(rows, "case") else "no_cases"
    opens, does, to = words("decisions")["says"][kind]
    return {"opens": opens.format(case=short(wording.get("wording"))), "does": does, "to": to, **pieces}


def smallest(tables: Tables, **of: str) -> tuple[Row, Row, Row | None] | None:
    """Find the smallest judged ratio of a model and question, the highest, and what equal groups show."""
    for by in ("sex+race", "sex", "race"):
        known = defined(where(tables.get("decision_groups", ()), **of, by=by, job=ALL), "ratio")
        rows = [row for row in known if row["verdict"]]
        if len(rows) > 1:
            low, high = min(rows, key=itemgetter("ratio")), max(rows, key=itemgetter("ratio"))
            same = {"by": by, "job": ALL, "rate_kind": low["rate_kind"]}
            return low, high, first(tables.get("decision_equal", ()), **of, **same)
    return None


def _shown(part: Part, of: Mapping[str, Any], using: str) -> Iterator[Sentence]:
    """Say the smallest ratio, the first place and the flips: shown, not judged by the tree."""

    def say(template: str, question: QuestionId, **pieces: Piece) -> Sentence:
        text = filled(SAYS[template], model=Foreign(of["model"]), **pieces)
        return sentence_of(text, "decisions", question, measured=using, about="shown", strength=DETAIL)

    if found := smallest(part.tables, **of):
        low, high, equal = found
        median = f"{equal['equal_median']:.2f}" if equal else "–"
        groups = {"category": Foreign(low["category"]), "highest": Foreign(high["category"])}
        question: QuestionId = "race" if "race" in low["by"] else "sex"
        yield say(low["verdict"], question, ratio=ratio(low), equal=median, **groups)
    if place := first(part.tables.get("decision_order", ()), **of, job=ALL, position=1):
        k = max(column(where(part.tables["decision_order"], **of), "position"))
        share = f"{percent(place['rate'])} %"
        if place["ci_low"] is not None:  # one case has none
            share += f" [{percent(place['ci_low'])}–{percent(place['ci_high'])}]"
        yield say("first", "sex", share=share, k=str(k), chance=percent(1 / k))
    flips = first(part.tables["decision_gaps"], **of, job=ALL, contrast="sex")
    if flips is not None and flips["to_a"] is not None and flips["same_group"] is not None:
        x, y = flips["to_a"] + flips["to_b"], flips["same_group"]
        if x or y:  # not where everybody gets the same
            yield say("flips", "sex", x=percent(x), y=percent(y))


def ratio(row: Row) -> str:
    """Write '0.86 [0.70–1.00]'."""
    if row["ratio_low"] is None:
        return f"{row['ratio']:.2f}"
    return f"{row['ratio']:.2f} [{row['ratio_low']:.2f}–{row['ratio_high']:.2f}]"


def _measured(rows: Sequence[Row], gaps: Sequence[Row], size: str = "") -> str:
    over = [count(len(named(rows, name)), name) for name in ("job", "wording") if named(rows, name)]
    estimators = ", ".join(map(str, named(rows, "estimator")))
    return measured_by(estimators, size, " and ".join(over), short(str(rows[0]["model"])), notes=noted(gaps))


def limits(parts: Sequence[Part]) -> Iterator[str]:
    """Say what names and cases do not show."""
    if own := parts_of(parts, "decisions"):
        people = [row for part in own for row in part.tables["decisions"]]
        if named(people, "person") or len(distinct(people, "race")) > 1:
            yield words("decisions")["limits"]["names"]
        yield words("decisions")["limits"]["cases"]
