"""Which gap a study of decisions would show, as its plan says (methods/averages#power)."""

from __future__ import annotations

from biaskit.common.wording import count, percent, points
from biaskit.corpora.variance import load_decision_variance
from biaskit.measurement import words
from biaskit.measures.decisions.design import DecisionsDesign
from biaskit.measures.decisions.printing import who
from biaskit.stats.power import FEWEST_UNITS, NOT_JUDGED, POWER, Design, Side, is_named, smallest_difference
from biaskit.stats.verdict import first_level

_SAYS = words("decisions")["power"]


def plan_sentence(design: DecisionsDesign, estimator: str, samples: int | None, n_models: int = 1) -> str:
    """Say before a run which gap it can detect; "" where no yes or no decides on people with names.

    The gap is that of sex, or of race where only one sex is decided on; the level is its first lead's
    (methods/tests#tree). P(yes) is put at one half, where it varies most. Of people without names, demo's
    run with names says nothing.
    """
    wordings = [asked.name for asked in design.questions if not asked.choose and asked.score is None]
    if not wordings or not any(person.name for person in design.people):
        return ""
    races = [person.race for person in design.people if person.race]
    groups, found = design.contrast, [person.sex for person in design.people]
    n_leads = len({asked.name for asked in design.questions}) * n_models
    n_questions = 1 + (len({*races}) > 1) + (n_models > 1)
    if not {*groups} <= {*found}:
        base, *others = sorted({*races}, key=lambda race: (race != design.study.reference_race, race))
        groups, found = (others[0], base), races
        n_leads, n_questions = n_leads * len(others), n_questions - 1
    sizes = [found.count(group) for group in groups]
    tested = planned_test(design, sizes, samples and samples * wordings.count(wordings[0]))
    a, b = map(who, groups)
    if tested is None:
        return str(_SAYS["few"]).format(a=a, b=b, why=NOT_JUDGED, fewest=FEWEST_UNITS)
    difference = smallest_difference(tested, first_level(n_questions, n_leads, strict=design.study.strict))
    if not is_named(difference):
        return str(_SAYS["too_large"]).format(a=a, b=b, why=NOT_JUDGED)
    units = f"{count(sum(sizes), 'person', 'people')}, {count(len(design.cases), 'case')}"
    more = _SAYS["bounds"] if estimator == "top-k" else ""
    shown = {"points": points(difference), "units": units, "power": percent(POWER), "more": more}
    return str(_SAYS["shown"]).format(a=a, b=b, **shown)


def planned_test(design: DecisionsDesign, sizes: list[int], samples: int | None) -> Design | None:
    """Describe the test of two groups of `sizes` people, crossed with cases; None for fewer than five people.

    `samples`: texts of a person in a case.
    """
    known = load_decision_variance()
    scale = (0.25 / (known.p_yes * (1 - known.p_yes))) ** 2
    person, cell, of_cases = (scale * v for v in (known.var_person, known.var_cell, known.var_case))
    if samples:
        cell += 0.25 / samples
    if min(sizes) < FEWEST_UNITS or len(design.cases) < 2:
        return None
    return Design(tuple(Side(n, person, cell) for n in sizes), len(design.cases), of_cases)
