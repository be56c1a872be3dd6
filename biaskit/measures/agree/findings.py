"""Say whether answers and texts agree, and which gaps do (methods/comparisons#headline, #relations)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count, plain_number, short
from biaskit.measurement import measurement, words
from biaskit.measures.personas.findings.scores import is_control, vectors_of
from biaskit.measures.probe.findings.blocks import ProbeBlock, blocks_in
from biaskit.report.content import Content, parts_of
from biaskit.report.findings.claims import Templates, claim
from biaskit.report.findings.finding import DIRECTED, MEASURED, measured_by, noted, outcome_of
from biaskit.report.findings.groups import two_groups
from biaskit.report.findings.models import coverage_behind
from biaskit.report.findings.sentence import (
    DETAIL,
    HEADLINE,
    RESTATED,
    Foreign,
    Piece,
    Sentence,
    filled,
    opening,
    pronoun,
    sentence_of,
    why,
    within,
)
from biaskit.runs.collection import Part
from biaskit.stats.contrast import Contrast, Verdict
from biaskit.tables.quantities import AREAS, BETWEEN_KINDS, RELATIONS, relation
from biaskit.tables.query import defined, distinct, first, named, undefined, where

NOISY = "noise in either number pulls the correlation towards 0"
_WORDS = words("agree")


def findings(content: Content) -> Iterator[Sentence]:
    """Say what both measurements show of each model; then the relations over occupations."""
    texts = [part for part in parts_of(content.parts, "personas") if not is_control(part)]
    for block in blocks_in(content):
        for part in texts:
            for model in block.models:
                of_answers, of_texts = outcome_of(block.between_groups(model)), texts_verdict(part, model)
                if of_answers in MEASURED and of_texts in MEASURED:
                    yield _headline(block, part, model, of_answers, of_texts)
    yield from _relations(content)


def limits(parts: Sequence[Part]) -> Iterator[str]:
    """Say what is unknown where only answers or only texts were measured, or no model of both."""
    written: set[str] = set()
    answered: set[str] = set()
    for part in parts:
        labels = written if part.measurement == "personas" else answered
        labels |= {model.label for model in part.models}
    said = _WORDS["limits"]
    if not answered:
        yield said["no_probabilities"]
    elif not written:
        if all(measurement(part.measurement).unit != "text" for part in parts):
            yield said["no_texts"]
    elif not answered & written:
        yield said["no_label"]


def texts_verdict(part: Part, model: str) -> Verdict:
    """Take the verdict of what leads the question how a model writes (methods/tests#verdicts)."""
    leads = where(part.tests, question="how", lead=True, model_a=model)
    lead = first([*defined(leads, "p_value"), *leads])
    below = outcome_of(lead) == "lower" and lead is not None and lead.quantity in AREAS
    return "no-clear-difference" if below else outcome_of(lead)  # under chance nothing is separated


def _headline(block: ProbeBlock, part: Part, model: str, of_answers: Verdict, of_texts: Verdict) -> Sentence:
    apart = of_texts in DIRECTED
    # "Equally" needs equivalence to be shown: an interval too wide to tell is not enough.
    even = of_answers == "equivalent" and apart
    said = "neither"
    if even:
        said = "even"
    elif apart:
        said = "both" if of_answers in DIRECTED else "texts"
    elif of_answers in DIRECTED:
        said = "answers"
    pieces: dict[str, Piece] = {"opening": block.opening(model, of_two=True), "model": Foreign(model)}
    row = block.between_groups(model)
    if even and row is not None:
        pieces |= {"who": pronoun(row.gender or "female"), "within": within(row)}
        pieces["groups"] = two_groups(block.part, row.group_a or "", row.group_b or "")
    text = filled(_WORDS["headline"][said], **pieces)
    vectors = vectors_of(defined(part.tables.get("srb", ()), "srb"))
    using = measured_by(f"{block.prompt_format} prompts against texts", *vectors, short(model))
    weak = block.is_weak(model)
    return sentence_of(
        *(text, "relations", "agree", of_texts, using),
        about="agree-headline",
        strength=HEADLINE if even and not weak else RESTATED,
        weak=weak,
    )


def _relations(content: Content) -> Iterator[Sentence]:
    missing: list[Contrast] = []
    for y, x in RELATIONS if content.reference in ("workforce", "both") else BETWEEN_KINDS:
        rows = where(content.tests, quantity=relation(y, x), kind="spearman")
        missing += undefined(rows, "estimate")
        for row in defined(rows, "estimate"):
            if row.conclusion != "shown":
                yield _of_relation(content, y, x, row)
    if missing:
        n = count(len(missing), *_WORDS["links"])
        text = filled("{n} over occupations not measured ({why}).", n=n, why=why(missing[0]))
        using = _measured(missing, [])
        yield sentence_of(text, "relations", "agree", "not-measured", using, about="agree-relations")


def _of_relation(content: Content, y: str, x: str, row: Contrast) -> Sentence:
    coverage = coverage_behind(content, [row], of_two=False)  # a gap of shares of all target words
    asked = opening(row.bias_type, coverage)
    over = f"over {count(row.n_a or 0, 'occupation')}, "
    using = _measured([row], [NOISY] if x != "workforce_gap" else [])
    pieces = {
        "opening": f"{asked}: {over}" if asked else over,
        "rho": f"correlation {plain_number(row.estimate)}",
    }
    if row.ci_low is not None:
        pieces["rho"] += " [{} to {}]".format(*map(plain_number, row.shown))
    return claim(
        *(_templates(y, x), row, "relations", using),
        model=row.model_a,
        coverage=coverage,
        about="agree-relations",
        least=0 if (y, x) in BETWEEN_KINDS else DETAIL,
        pieces=pieces,
    )


def _templates(y: str, x: str) -> Templates:
    """Make the words for whether two gaps go together over occupations."""
    wide, x_name = _WORDS["wide"][x]
    higher, lower, y_name = _WORDS["goes_with"][y]
    subject = "{model}" if x == "workforce_gap" else "it"
    # A direction has its correlation however long the names are.
    names = f"{x_name} and {y_name} in {{model}}"
    rises = f"where {wide}, {subject} {higher} ({{rho}}).", f"{names}: {{rho}}."
    falls = f"where {wide}, {subject} {lower} ({{rho}}).", f"{names}: {{rho}}."
    unclear = f"no clear link between {names} ({{rho}}).", f"no clear link between {names}."
    says: dict[Verdict, tuple[str, str]] = {
        "higher": rises,
        "lower": falls,
        "equivalent": unclear,
        "no-clear-difference": unclear,
    }
    return Templates(
        question="agree",
        lead="{opening}",
        what=f"the link between {x_name} and {y_name}",
        says=says,
    )


def _measured(rows: Sequence[Contrast], notes: Sequence[str]) -> str:
    models = distinct(rows, "model_a")
    labels = short(*models) if len(models) == 1 else count(len(models), "model")
    formats = [f"{prompt_format} prompts" for prompt_format in named(rows, "prompt_format")]
    return measured_by("Spearman, bootstrap over occupations", *formats, labels, notes=[*notes, *noted(rows)])
