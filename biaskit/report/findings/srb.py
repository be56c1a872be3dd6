"""Whether women and men are described differently: SRB over occupations (docs/methods.md#persona-tests)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from biaskit.report.content import Content
from biaskit.report.findings.finding import (
    NUMBER,
    Finding,
    Outcome,
    Rank,
    Ranked,
    agreeing,
    difference,
    noted,
    of_models,
    outcome_of,
    parts_of,
    reasons_of,
    shared,
    tally,
    women_against_men,
)
from biaskit.report.findings.representation import texts_measured
from biaskit.runs.collection import Part
from biaskit.tables.query import Row, defined, distinct, undefined
from biaskit.wording import count, listed, plain_number, short

WHAT = (
    "SRB: whether the words of a gender's texts, with no gender in the prompt, lie nearer to those of texts "
    "about a woman on request (negative) or about a man (positive). "
)
CONTROL = "Positive control, no result (half of the texts about women and men, as if no gender were named): "
BEYOND = 0.05


def srb(content: Content) -> Iterator[Ranked]:
    """Findings of every part of the generation engine; each has one vector model."""
    for part in parts_of(content, "personas"):
        found = of_models(part, part.tables.get("srb", ()), _of_one, _of_many)
        # The score is explained once, where it first stands.
        first_measured = next((one for one in found if one.verdict != "not-measured"), None)
        for one in found:
            said = replace(one, text=WHAT + one.text) if one is first_measured else one
            yield ranked(part, said)


def is_control(part: Part) -> bool:
    """Whether its scores are of texts whose prompts named a gender, taken as if they had not."""
    return any(row.get("control") for row in part.tables.get("srb", ()))


def ranked(part: Part, finding: Finding) -> Ranked:
    """A finding leads, but a positive control: it says so first and comes to no verdict."""
    if not is_control(part):
        return Rank.LEAD, finding
    verdict = finding.verdict if finding.verdict == "not-measured" else "shown"
    return Rank.DETAIL, replace(finding, text=CONTROL + finding.text, verdict=verdict)


def women_minus_men(part: Part, model: str) -> Row | None:
    """The paired test of women's SRB against men's, without gender words (docs/methods.md#srb-content)."""
    return women_against_men(part, model, "srb_content")


def vectors_of(rows: Sequence[Row]) -> str:
    """The vector models of the scores, and whether a half was held out."""
    named = listed([short(vectors) for vectors in distinct(rows, "vectors") if vectors])
    held_out = any(row.get("control") for row in rows)
    return ", ".join([f"vectors {named}"] * bool(named) + ["positive control (hold-out)"] * held_out)


def _using(part: Part, models: Sequence[str], rows: Sequence[Row]) -> str:
    known = defined(rows, "srb")
    n = count(len(distinct(known, "occupation")), "occupation")
    return ", ".join(bit for bit in (vectors_of(known), n, texts_measured(part, models, [])) if bit)


def _meaning(verdict: Outcome) -> str:
    """What a difference says; that each lies nearer to its own gender would be more than it shows."""
    near = {"lower": "nearer to", "higher": "farther from"}.get(verdict)
    return f": women's texts lie {near} texts about women on request than men's texts do" if near else ""


def _of_one(part: Part, model: str, rows: Sequence[Row]) -> Finding:
    name, using = short(model), _using(part, [model], rows)
    known = defined(rows, "srb")
    missing = undefined(rows, "srb")
    if not known:
        text = f"SRB (how differently {name} describes women and men): not measured ({reasons_of(missing)})."
        return Finding(text, "srb", "not-measured", using)
    test = women_minus_men(part, model)
    verdict = outcome_of(test)
    n = len(distinct(known, "occupation"))
    whole = women_against_men(part, model, "srb")
    text = f"In {name}'s texts women's SRB minus men's over {count(n, 'occupation')} is "
    text += (
        f"{'not measured' if whole is None or whole['estimate'] is None else _number(whole)}, gender words "
    )
    text += f"included; without them it is {difference(test, NUMBER, more='')}{_meaning(verdict)}. "
    text += _beyond(known)
    text += noted([test] if test is not None else [])
    turned = sum(row["srb"] * row["srb_matched"] < 0 for row in defined(known, "srb_matched"))
    if turned:
        text += f" {count(turned, 'score')} would change the sign with word lists of one length."
    if missing:
        text += f" {count(len(missing), 'score')} not measured ({reasons_of(missing)})."
    verdict = "shown" if verdict == "not-measured" else verdict
    return Finding(text, "srb", verdict, using)


def _beyond(rows: Sequence[Row]) -> str:
    tested = defined(rows, "srb_content_p_value")
    if not tested:
        return f"No score without gender words has a null ({reasons_of(rows)})."
    beyond = [row for row in tested if row["srb_content_p_value"] <= BEYOND]
    chance = (
        "no more than chance gives" if len(beyond) <= BEYOND * len(tested) else "chance gives one in twenty"
    )
    text = f"One by one, {len(beyond):,} of {count(len(tested), 'score')} {agreeing(len(beyond), 'lie')} "
    text += f"beyond the null (shuffled genders, p ≤ 0.05; {chance})"
    return f"{text}."


def _of_many(part: Part, models: Sequence[str], rows: Sequence[Row]) -> Finding:
    using = _using(part, models, rows)
    known = defined(rows, "srb")
    if not known:
        text = f"SRB (how differently {count(len(models), 'model')} describe women and men): not measured "
        return Finding(f"{text}({reasons_of(rows)}).", "srb", "not-measured", using)
    found = [test for model in models if (test := women_minus_men(part, model)) is not None]
    verdicts = [outcome_of(test) for test in found]
    counted = tally(
        verdicts,
        more="lie above 0",
        less="lie below 0 (women's texts nearer to texts about women on request than men's texts are)",
    )
    text = f"Women's SRB minus men's in {count(len(models), 'model')}, without gender words: {counted}"
    ends = sorted(defined(found, "estimate"), key=lambda test: test["estimate"])
    named = dict.fromkeys(_end(test) for test in ends[:1] + ends[-1:])
    text += f"; from {' to '.join(named)}. " if named else ". "
    text += _beyond(known)
    if len(known) < len(rows):
        missing = undefined(rows, "srb")
        text += f" {count(len(missing), 'score')} not measured ({reasons_of(missing)})."
    return Finding(text, "srb", shared(verdicts), using)


def _end(test: Row) -> str:
    return f"{_number(test)} ({short(test['model_a'])})"


def _number(test: Row) -> str:
    ends = "" if test["ci_low"] is None else f" [{NUMBER.ends(test['ci_low'], test['ci_high'])}]"
    return f"{plain_number(test['estimate'])}{ends}"
