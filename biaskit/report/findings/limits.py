"""What the numbers of a report cannot show, what an interval means, and what the page does not hold.

See docs/methods.md#cannot-show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.common.wording import count, listed, percent, short
from biaskit.report.content import Content
from biaskit.report.findings.finding import parts_of
from biaskit.report.findings.models import compared
from biaskit.report.findings.scores import is_control
from biaskit.report.findings.texts import are_imported
from biaskit.runs.collection import Part
from biaskit.tables.query import defined, distinct

FEW_TEMPLATES = 5
FEW_ITEMS = 10
WIDE_BOUNDS = 0.1
_ALWAYS = (
    "“They” is the only neutral pronoun that is measured; other neutral pronouns are not.",
    "A share under parity is not a verdict: what it should be is left open, so each number names its "
    "reference.",
    "The numbers hold for these prompts, these occupations and these words, not for every use of a model; "
    "and no clear difference is not the same as no difference.",
)
_DIVERSE = (
    "“Diverse” holds both “non-binary” and “gender unknown”: a high share of it need not mean that "
    "non-binary people are seen."
)
_LABOUR = "Labour data are U.S. statistics; they say little of other countries and other years."
_EXTREME = "Intervals of mean shares below 5 % or above 95 % may be too short."
_TWO_CLUSTERS = (
    "OccuGender's jobs are two extreme clusters of the labour force: a slope over all of them is mostly the "
    "difference between the clusters."
)
_IMPORTED = (
    "Imported texts come as they are: how they were prompted, sampled and selected is not known here, and "
    "they are not balanced."
)
_BY_WORDS = (
    "A text's gender is read off words such as “she” and “Mr”; texts without an association are not missing "
    "at random, and the shares leave them out."
)
_SETTINGS = (
    "The texts are draws at the run's own sampling settings (temperature, top_p, length); other settings "
    "give other texts."
)
_RAW_SRB = (
    "A raw SRB also measures how long the word vectors were trained: it is compared within one vector model "
    "only, never with a paper's or another run's."
)


def cannot_show(content: Content) -> tuple[str, ...]:
    """Say what the numbers cannot show, from limits of every such measurement to those of this one."""
    probed, written = list(parts_of(content, "probe")), list(parts_of(content, "personas"))
    groups = [row for part in content.parts for row in part.tables.get("probe_groups", ())]
    tables = ("probe_jobs", "representation")
    items = [row for part in content.parts for name in tables for row in part.tables.get(name, ())]
    limits = [*_ALWAYS]
    limits += [_DIVERSE] if "diverse" in distinct(groups, "gender") else []
    limits += [_LABOUR] if any(row.get("labour_female_share") is not None for row in items) else []
    for part in probed:
        limits += [f"{short(part.study)}: {sentence}" for sentence in _of_probe(part)]
    for part in written:
        n = len(distinct(part.tables.get("representation", ()), "occupation"))
        if 0 < n < FEW_ITEMS:
            only = f"{short(part.study)}: {count(n, 'occupation')} only"
            limits.append(f"{only}, so tests over occupations see large effects alone.")
    limits += [_EXTREME] if any(not 0.05 <= row["share"] <= 0.95 for row in defined(groups, "share")) else []
    studies = {part.study.split(" (")[0] for part in content.parts}
    limits += [_TWO_CLUSTERS] if studies & {"occugender", "occugender-debias", "mattern"} else []
    limits += [*_forms(probed, "probe"), *_forms(written, "texts"), *_of_texts(written)]
    for model in (model for part in content.parts for model in part.models if model.own_system):
        own = f"{short(model.label)}: where no system prompt was given, its chat template wrote its own"
        limits.append(f"{own} (“{short(model.own_system)}”), and the numbers hold with that.")
    probe, texts = ({model.label for part in parts for model in part.models} for parts in (probed, written))
    if not probe:
        limits.append("The prober did not run here: nothing is known of the probabilities behind the texts.")
    elif not texts:
        limits.append("No texts were generated here: how women and men are described is not known.")
    elif not probe & texts:
        limits.append("No model was measured by both engines under one name: nothing ties their numbers.")
    return tuple(dict.fromkeys(limits))


def _of_probe(part: Part) -> Iterator[str]:
    """Say where a study of the prober rests on little: templates, jobs, estimators."""
    rows = part.tables.get("probe_groups", ())
    templates = min((row["n_templates"] for row in rows if row["n_templates"]), default=0)
    jobs = min((row["n_jobs"] for row in rows if row["n_jobs"]), default=0)
    if templates == 1:
        yield "some numbers are conditional on one template; another wording may give others."
    elif 0 < templates <= FEW_TEMPLATES:
        yield f"as few as {count(templates, 'template')}; intervals over so few are wide or too short."
    if jobs == 1:
        yield "some numbers are conditional on one job and say nothing about other jobs."
    elif 0 < jobs < FEW_ITEMS:
        yield f"as few as {count(jobs, 'job')} in a group; other jobs may differ."
    estimators = [estimator for estimator in distinct(rows, "estimator") if estimator]
    if len(estimators) > 1:
        yield (
            f"models were measured with different estimators ({listed(estimators)}); part of a difference "
            "between them may be the estimator's."
        )
    widths = [row["share_high"] - row["share_low"] for row in defined(rows, "share_low", "share_high")]
    if any(width > WIDE_BOUNDS for width in widths):
        yield (
            "a service that shows only its most probable words leaves bounds of up to "
            f"{percent(max(widths))} points around a share; intervals and the tests beside them hold these."
        )
    if "sampling" in estimators:
        yield "shares by sampling come from few draws per cell, with their noise."


def _forms(parts: Sequence[Part], what: str) -> Iterator[str]:
    models = [model for part in parts for model in part.models]
    forms = list(dict.fromkeys(model.prompt_form for model in models if model.prompt_form))
    if len(forms) == 1:
        yield f"The {what} used one prompt form ({short(forms[0])}); another form may give other numbers."
    elif forms:
        yield (
            f"The {what} used several prompt forms ({listed([short(form) for form in forms])}); models in "
            "different forms are not compared."
        )


def _of_texts(parts: Sequence[Part]) -> Iterator[str]:
    sources = {model.where == "texts" for part in parts for model in part.models}
    if True in sources:
        yield _IMPORTED
    if any(part.tables.get("representation") for part in parts):
        yield _BY_WORDS
    if False in sources:
        yield _SETTINGS
    vectors = {row["vectors"] for part in parts for row in defined(part.tables.get("srb", ()), "srb")}
    if vectors:
        yield _RAW_SRB
    if len(vectors) > 1:
        yield f"The scores rest on {len(vectors)} vector models, so their SRB values do not meet in a test."


# --- the interval, and what the page does not hold --------------------------------------------------------


def explained(numbers: Sequence[str]) -> str:
    """Explain the first number with an interval in at most 35 words; "" where there is none."""
    number = next(filter(None, numbers), "")
    if not number:
        return ""
    value, _, interval = number.partition("[")
    ends = interval.rstrip("]").replace("–", " to ").replace(" to ", " and ", 1)
    measured = f"{value.strip()} in what was measured; " if value else ""
    return (
        f"“{number}” means: {measured}the true number most likely lies between {ends}, for such ranges hold "
        "it at least 95 times in 100."
    )


def not_measured(content: Content) -> tuple[str, ...]:
    """Say what the page lacks, a line each, with the command in backticks that would measure it."""
    probed, written = list(parts_of(content, "probe")), list(parts_of(content, "personas"))
    lines = []
    if not written:
        lines.append("No texts: `biaskit personas MODEL` shows whom it writes about, and how.")
    if not probed:
        lines.append("No probabilities: `biaskit probe MODEL` shows whom it says when asked.")
    asked = {row["instruction_id"] for part in probed for row in part.tables.get("probe_groups", ())}
    if probed and not asked - {0}:
        study = "`biaskit probe MODEL --study occugender-debias`"
        lines.append(f"No instructions: {study} shows whether asking for fairness helps.")
    labels = {model.label for part in content.parts for model in part.models}
    if len(labels) == 1 and not probed and all(map(are_imported, written)):
        columns = "`biaskit analyze --texts FILE --model-col COLUMN`"
        lines.append(f"One source only: {columns} sets several side by side.")
    elif len(labels) == 1:
        command = f"`biaskit {content.parts[0].engine} MODEL OTHER`"
        lines.append(f"One model only: {command} measures two, and compares them.")
    elif labels and not compared(content):
        lines.append("No comparison of models: `biaskit compare RUN RUN` holds one against another.")
    for part in written:
        if defined(part.tables.get("srb", ()), "srb") and not is_control(part):
            continue
        if are_imported(part):
            halves = "`biaskit analyze --texts FILE --gender-col COLUMN --hold-out 0.5`"
            only = "No likeness of descriptions (SRB): only one kind of text"
            lines.append(f"{only}; {halves} makes two of one.")
        else:
            lines.append("No likeness of descriptions (SRB): `biaskit personas MODEL --per-gender 20` adds.")
    return tuple(lines)
