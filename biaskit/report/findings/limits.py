"""What the numbers of a report cannot show, what an interval means, and what the page does not hold.

See methods/index#cannot-show.
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
    "“They” is the only neutral pronoun that is measured.",
    "A share that differs from parity is not wrong in itself: what it should be is for readers to judge.",
    "The numbers apply to these prompts, occupations and words, not to every use of a model; and no clear "
    "difference does not mean no difference.",
)
_DIVERSE = (
    "“Diverse” includes both “non-binary” and “gender unknown”: a high share need not mean that non-binary "
    "people are represented."
)
_LABOUR = "Labour statistics are from the U.S.; they say little about other countries and years."
_EXTREME = "Intervals of mean shares below 5 % or above 95 % may be too short."
_TWO_CLUSTERS = (
    "OccuGender's jobs are two extreme clusters of the workforce: a slope over all of them mostly reflects "
    "the difference between the clusters."
)
_IMPORTED = "How imported texts were prompted, sampled and selected is unknown, and they are not balanced."
_BY_WORDS = (
    "A text's gender is inferred from words such as “she” and “Mr”; texts without a gender are left out of "
    "the shares, and they are not missing at random."
)
_SETTINGS = (
    "The texts are samples at the run's own settings (temperature, top_p, length); other settings give other "
    "texts."
)
_RAW_SRB = (
    "Raw SRB also depends on how long the word vectors were trained: compare it only within one vector "
    "model, never with a paper's or another run's."
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
            limits.append(f"{only}, so tests over occupations detect only large effects.")
    limits += [_EXTREME] if any(not 0.05 <= row["share"] <= 0.95 for row in defined(groups, "share")) else []
    studies = {part.study.split(" (")[0] for part in content.parts}
    limits += [_TWO_CLUSTERS] if studies & {"occugender", "occugender-debias", "mattern"} else []
    limits += [*_forms(probed, "probe"), *_forms(written, "texts"), *_of_texts(written)]
    for model in (model for part in content.parts for model in part.models if model.own_system):
        own = f"{short(model.label)}: without a system prompt, its chat template inserted its own"
        limits.append(f"{own} (“{short(model.own_system)}”), and the numbers apply to that.")
    probe, texts = ({model.label for part in parts for model in part.models} for parts in (probed, written))
    if not probe:
        limits.append("biaskit probe did not run: the probabilities behind the texts are unknown.")
    elif not texts:
        limits.append("No texts were generated: how women and men are described is unknown.")
    elif not probe & texts:
        limits.append("No model has the same label in both engines, so their numbers cannot be linked.")
    return tuple(dict.fromkeys(limits))


def _of_probe(part: Part) -> Iterator[str]:
    """Say where a study of `probe` has little evidence: templates, jobs, estimators."""
    rows = part.tables.get("probe_groups", ())
    templates = min((row["n_templates"] for row in rows if row["n_templates"]), default=0)
    jobs = min((row["n_jobs"] for row in rows if row["n_jobs"]), default=0)
    if templates == 1:
        yield "some numbers are conditional on one template; other templates may give others."
    elif 0 < templates <= FEW_TEMPLATES:
        yield f"as few as {count(templates, 'template')}: intervals over so few are wide or too short."
    if jobs == 1:
        yield "some numbers are conditional on one job and say nothing about other jobs."
    elif 0 < jobs < FEW_ITEMS:
        yield f"as few as {count(jobs, 'job')} in a group; other jobs may differ."
    estimators = [estimator for estimator in distinct(rows, "estimator") if estimator]
    if len(estimators) > 1:
        yield (
            f"models were measured with different estimators ({listed(estimators)}), which may explain part "
            "of a difference between them."
        )
    widths = [row["share_high"] - row["share_low"] for row in defined(rows, "share_low", "share_high")]
    if any(width > WIDE_BOUNDS for width in widths):
        yield (
            f"an API that lists only its top tokens leaves bounds of up to {percent(max(widths))} points "
            "around a share; intervals and tests include these bounds."
        )
    if "sampling" in estimators:
        yield "shares by sampling come from few samples per prompt, so they are noisy."


def _forms(parts: Sequence[Part], what: str) -> Iterator[str]:
    models = [model for part in parts for model in part.models]
    forms = list(dict.fromkeys(model.prompt_form for model in models if model.prompt_form))
    if len(forms) == 1:
        yield f"The {what} used one prompt format ({short(forms[0])}); others may give other numbers."
    elif forms:
        yield (
            f"The {what} used several prompt formats ({listed([short(form) for form in forms])}); models "
            "with different formats are not compared."
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
        yield f"The scores come from {len(vectors)} vector models, whose SRB values are not compared."


# --- the interval, and what the page lacks ----------------------------------------------------------------


def explained(numbers: Sequence[str]) -> str:
    """Explain the first number with an interval in at most 35 words; "" where there is none."""
    number = next(filter(None, numbers), "")
    if not number:
        return ""
    value, _, interval = number.partition("[")
    ends = interval.rstrip("]").replace("–", " to ").replace(" to ", " and ", 1)
    measured = f"{value.strip()} measured; " if value else ""
    return (
        f"“{number}” means: {measured}the true value is probably between {ends}; such intervals contain it "
        "at least 95 times in 100."
    )


def not_measured(content: Content) -> tuple[str, ...]:
    """Say what the page lacks, a line each, with the command in backticks that would measure it."""
    probed, written = list(parts_of(content, "probe")), list(parts_of(content, "personas"))
    lines = []
    if not written:
        lines.append("No texts: `biaskit personas MODEL` shows who it writes about, and how.")
    if not probed:
        lines.append("No probabilities: `biaskit probe MODEL` measures them.")
    asked = {row["instruction_id"] for part in probed for row in part.tables.get("probe_groups", ())}
    if probed and not asked - {0}:
        study = "`biaskit probe MODEL --study occugender-debias`"
        lines.append(f"No debiasing prompts: {study} shows whether they help.")
    labels = {model.label for part in content.parts for model in part.models}
    if len(labels) == 1 and not probed and all(map(are_imported, written)):
        columns = "`biaskit analyze --texts FILE --model-col COLUMN`"
        lines.append(f"One source only: {columns} compares several.")
    elif len(labels) == 1:
        command = f"`biaskit {content.parts[0].engine} MODEL OTHER`"
        lines.append(f"One model only: {command} measures and compares two.")
    elif labels and not compared(content):
        lines.append("No comparison of models: `biaskit compare RUN RUN` makes one.")
    for part in written:
        if defined(part.tables.get("srb", ()), "srb") and not is_control(part):
            continue
        if are_imported(part):
            halves = "`biaskit analyze --texts FILE --gender-col COLUMN --hold-out 0.5`"
            lines.append(f"No SRB: only one kind of text; {halves} splits it in two.")
        else:
            lines.append("No SRB: `biaskit personas MODEL --per-gender 20` adds it.")
    return tuple(lines)
