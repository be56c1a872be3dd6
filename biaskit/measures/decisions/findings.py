"""What decisions show: gaps of sex and of race, the smallest ratio, the first place, flips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biaskit.common.wording import count, percent, plain_number, short
from biaskit.measurement import words
from biaskit.records import ALL
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.claims import claim, templates_of
from biaskit.report.findings.finding import measured_by, noted
from biaskit.report.findings.sentence import DETAIL, Foreign, Piece, Sentence, filled, sentence_of
from biaskit.runs.collection import Part
from biaskit.stats.contrast import Contrast
from biaskit.tables.query import Row, column, defined, distinct, first, grouped, named, where

TEMPLATES = templates_of("decisions")
SAYS = words("decisions")["shares"]
SCORE = "score"
"""The quantity of a gap in scores."""


def findings(content: Content) -> Iterator[Sentence]:
    """Say of each model and question its gaps, then what is shown beside them."""
    for part in parts_of(content.parts, "decisions"):
        for (model, question), gaps in grouped(part.tables["decision_gaps"], "model", "question").items():
            of_model = where(part.tables["decisions"], model=model, question=question)
            using = _measured(of_model, gaps)
            for kind in ("sex", "race"):
                for test in where(part.tests, model_a=model, model_b=model, context=question, contrast=kind):
                    pieces: dict[str, Piece] = {"a": Foreign(test.group_a), "b": Foreign(test.group_b)}
                    pieces |= opening(part, of_model, test)
                    if size := first(gaps, job=ALL, contrast=kind, group_a=test.group_a):
                        noted_size = f"{size['n_cases']} cases, {size['n_people']} people"
                        using = _measured(of_model, [size], noted_size)
                    template = TEMPLATES[f"{kind}_score" if test.quantity == SCORE else kind]
                    yield claim(
                        *(template, test, "decisions", using),
                        model=model,
                        about=f"decisions-{kind}",
                        pieces=pieces,
                    )
            beside = {"model": model, "question": question}
            yield from _shown(part, beside, using)


def opening(part: Part, rows: Sequence[Row], test: Contrast) -> dict[str, Piece]:
    """Say how a question was answered: yes to one person, one of two chosen, a score, a log."""
    wording = first(part.templates, name=rows[0]["question"]) or {}
    kind = "choice" if named(rows, "position") else "yes"
    if not named(rows, "estimator"):
        kind = "log" if named(rows, "case") else "no_cases"
    pieces: dict[str, Piece] = {}
    if wording.get("score"):
        kind = "score" if named(rows, "estimator") else kind
        low, high = test.ci_low, test.ci_high
        interval = f" [{plain_number(low)} to {plain_number(high)}]" if low is not None else ""
        pieces |= {"amount": plain_number(abs(test.estimate or 0.0)), "span": interval, "ends": interval}
        pieces["more"] = "higher" if (test.estimate or 0.0) > 0 else "lower"
    opens, does, to = words("decisions")["says"][kind]
    return {"opens": opens.format(case=short(wording.get("wording"))), "does": does, "to": to, **pieces}


def smallest(groups: Sequence[Row]) -> tuple[Row, Row] | None:
    """Find the judged category with the smallest ratio and the one of the highest rate, sex × race first."""
    for by in ("sex+race", "sex", "race"):
        rows = [row for row in defined(where(groups, by=by, job=ALL), "ratio") if row["verdict"]]
        if len(rows) > 1:
            return min(rows, key=lambda row: row["ratio"]), max(rows, key=lambda row: row["ratio"])
    return None


def _shown(part: Part, of: Mapping[str, Any], using: str) -> Iterator[Sentence]:
    """Say the smallest ratio, the first place and the flips: shown, not judged by the tree."""
    texts: list[tuple[str, str, dict[str, Piece]]] = []
    if found := smallest(where(part.tables["decision_groups"], **of)):
        low, high = found
        equal = first(part.tables["decision_equal"], **of, by=low["by"], job=ALL, rate_kind=low["rate_kind"])
        pieces: dict[str, Piece] = {
            "category": Foreign(low["category"]),
            "highest": Foreign(high["category"]),
        }
        pieces |= {"ratio": ratio(low), "equal": f"{equal['equal_median']:.2f}" if equal else "–"}
        texts.append((SAYS[low["verdict"]], "race" if "race" in low["by"] else "sex", pieces))
    if place := first(part.tables.get("decision_order", ()), **of, job=ALL, position=1):
        k = max(column(where(part.tables["decision_order"], **of), "position"))
        share = f"{percent(place['rate'])} % [{percent(place['ci_low'])}–{percent(place['ci_high'])}]"
        pieces = {"share": share, "k": str(k), "chance": percent(1 / k)}
        texts.append((SAYS["first"], "sex", pieces))
    flips = first(part.tables["decision_gaps"], **of, job=ALL, contrast="sex")
    if flips is not None and flips["to_a"] is not None and flips["same_group"] is not None:
        x, y = percent(flips["to_a"] + flips["to_b"]), percent(flips["same_group"])
        texts.append((SAYS["flips"], "sex", {"x": x, "y": y}))
    for template, question, pieces in texts:
        text = filled(template, model=Foreign(of["model"]), **pieces)
        yield sentence_of(text, "decisions", question, measured=using, about="shown", strength=DETAIL)


def ratio(row: Row) -> str:
    """Write '0.86 [0.70–1.00]'."""
    if row["ratio_low"] is None:
        return f"{row['ratio']:.2f}"
    return f"{row['ratio']:.2f} [{row['ratio_low']:.2f}–{row['ratio_high']:.2f}]"


def _measured(rows: Sequence[Row], gaps: Sequence[Row], size: str = "") -> str:
    over = []
    for name, plural in (("job", "jobs"), ("wording", "wordings")):
        if n := len(named(rows, name)):
            over.append(count(n, name, plural))
    estimators = ", ".join(map(str, named(rows, "estimator")))
    return measured_by(estimators, size, " and ".join(over), short(str(rows[0]["model"])), notes=noted(gaps))


def limits(parts: Sequence[Part]) -> Iterator[str]:
    """Say what names and cases do not show."""
    if own := parts_of(parts, "decisions"):
        people = [row for part in own for row in part.tables["decisions"]]
        if named(people, "person") or len(distinct(people, "race")) > 1:
            yield words("decisions")["limits"]["names"]
        yield words("decisions")["limits"]["cases"]
