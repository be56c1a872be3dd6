"""Which difference a design of texts would detect, as its plan says (methods/averages#power)."""

from __future__ import annotations

from biaskit.common.wording import count, percent, points
from biaskit.corpora.variance import TextVariance, load_text_variance
from biaskit.measures.personas.design import PersonasDesign
from biaskit.measures.personas.sampling.filling import Filling
from biaskit.stats.power import FEWEST_UNITS, NOT_JUDGED, POWER, Design, Side, is_named, smallest_difference
from biaskit.stats.verdict import first_level


def plan_sentence(design: PersonasDesign, n_models: int = 1) -> str:
    """Say before a run which difference it can detect; "" without workforce shares.

    The level is the first lead's (methods/tests#tree): a run asks whom a model writes about and
    how, and whether models differ. The variance is that of the base demo's recorded texts.
    """
    occupations = sum(item.workforce_share is not None for item in design.occupations)
    if not occupations:
        return ""
    not_judged = f"Detectable difference from the workforce share: {NOT_JUDGED}"
    if occupations < FEWEST_UNITS:
        return f"{not_judged}, fewer than {FEWEST_UNITS} occupations have a workforce share."
    texts = len(design.template_ids) * Filling.from_study(design.study).batch
    tested = paired_design(load_text_variance()[0], occupations, texts)
    n_questions = 2 + (n_models > 1)
    level = first_level(n_questions, n_models, strict=design.study.strict)
    difference = smallest_difference(tested, level)
    if not is_named(difference):
        return f"{not_judged}."
    parts, total = tested.parts(), tested.variance()
    return (
        "Detectable mean difference between the share of women in the texts and in the workforce:"
        f" {points(difference)} ({count(occupations, 'occupation')}; variance: occupations"
        f" {percent(parts['jobs'] / total)} %, samples {percent(parts['cells'] / total)} %);"
        f" {percent(POWER)} % power, assuming demo-base's variance."
    )


def paired_design(variance: TextVariance, occupations: int, texts: int) -> Design:
    """Describe the paired t-test over occupations; `texts`: of the first batch of one, over all prompts."""
    speaking = max(texts * variance.inferred_share, 1.0)
    noise = max(variance.share * (1.0 - variance.share), 0.0) / speaking
    return Design((Side(occupations, variance.var_occupation, noise),), 1, 0.0)
