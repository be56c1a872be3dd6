"""Say whether answers and texts agree, and which gaps do (methods/comparisons#headline, #relations)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count, short
from biaskit.report.content import Content
from biaskit.report.findings.blocks import ProbeBlock, blocks_in, coverage_behind
from biaskit.report.findings.finding import DIRECTED, MEASURED, measured_by, noted, outcome_of, parts_of
from biaskit.report.findings.kinds import claim, of_link
from biaskit.report.findings.scores import is_control, vectors_of
from biaskit.report.findings.sentence import (
    DETAIL,
    HEADLINE,
    RESTATED,
    Foreign,
    Said,
    opening,
    said,
    sentence,
    why,
)
from biaskit.runs.collection import Part
from biaskit.stats.verdict import Verdict, verdict_of
from biaskit.tables.quantities import AREAS, BETWEEN_ENGINES, RELATIONS, relation
from biaskit.tables.query import Row, defined, first, undefined, where

NOISY = "noise in either number pulls the correlation towards 0"


def agree(content: Content) -> Iterator[Said]:
    """Say what both engines show of each model; then the relations over occupations."""
    for block in blocks_in(content):
        for part in parts_of(content, "personas"):
            for model in block.models if not is_control(part) else ():
                probe, texts = outcome_of(block.between_groups(model)), of_texts(part, model)
                if probe in MEASURED and texts in MEASURED:
                    yield _headline(block, part, model, probe, texts)
    yield from _relations(content)


def of_texts(part: Part, model: str) -> Verdict:
    """Take the verdict of what leads the question how a model writes (methods/tests#verdicts)."""
    leads = where(part.tables.get("tests", ()), question="how", lead=True, model_a=model)
    lead = first([*defined(leads, "p_value"), *leads])
    below = outcome_of(lead) == "lower" and lead is not None and lead["quantity"] in AREAS
    return "no-clear-difference" if below else outcome_of(lead)  # under chance nothing is separated


def _headline(block: ProbeBlock, part: Part, model: str, probe: Verdict, texts: Verdict) -> Said:
    apart = texts in DIRECTED
    # "Balanced" needs equivalence to be shown: an interval too wide to tell is not enough.
    even = probe == "equivalent" and apart
    if even:
        template = "{opening}, {model} looks balanced, but its texts describe women and men differently."
    elif apart and probe not in DIRECTED:
        template = (
            "{opening}, {model} shows no clear difference, but its texts describe women and men differently."
        )
    elif apart:
        template = "{opening}, {model} shows a difference, and its texts describe women and men differently."
    elif probe in DIRECTED:
        template = "{opening}, {model} shows a difference, but its texts show no clear one."
    else:
        template = "{opening}, neither {model}’s answers nor its texts show a clear difference."
    text = sentence(template, opening=block.opening(model), model=Foreign(model))
    vectors = vectors_of(defined(part.tables.get("srb", ()), "srb"))
    using = measured_by(f"{block.form} prompts against texts", *vectors, short(model))
    weak, about = block.is_weak(model), "agree-headline"
    strength = HEADLINE if even and not weak else RESTATED
    return said(text, "relations", "agree", texts, using, about=about, strength=strength, weak=weak)


def _relations(content: Content) -> Iterator[Said]:
    missing: list[Row] = []
    for y, x in RELATIONS if content.reference in ("labour", "both") else BETWEEN_ENGINES:
        rows = where(content.between.get("tests", ()), quantity=relation(y, x), kind="spearman")
        missing += undefined(rows, "estimate")
        for row in (row for row in defined(rows, "estimate") if verdict_of(row) != "shown"):
            n = f"over {count(row['n_a'] or 0, 'occupation')}, "
            coverage = coverage_behind(content, [row])
            asked = opening(row["bias_type"], coverage)
            yield claim(
                *(of_link(y, x), row, "relations", _related([row], [NOISY] if x != "labour_gap" else [])),
                model=row["model_a"],
                coverage=coverage,
                about="agree-relations",
                least=0 if (y, x) in BETWEEN_ENGINES else DETAIL,
                pieces={"opening": f"{asked}: {n}" if asked else n},
            )
    if missing:
        text = sentence(
            "{n} over occupations not measured ({why}).",
            n=count(len(missing), "link between answers, texts and workforce shares",
                    "links between answers, texts and workforce shares"),
            why=why(missing[0]),
        )  # fmt: skip
        using = _related(missing, [])
        yield said(text, "relations", "agree", "not-measured", using, about="agree-relations")


def _related(rows: Sequence[Row], notes: Sequence[str]) -> str:
    models = dict.fromkeys(row["model_a"] for row in rows)
    who = short(*models) if len(models) == 1 else count(len(models), "model")
    forms = [f"{form} prompts" for form in dict.fromkeys(row["prompt_form"] for row in rows) if form]
    return measured_by("Spearman, bootstrap over occupations", *forms, who, notes=[*notes, *noted(rows)])
