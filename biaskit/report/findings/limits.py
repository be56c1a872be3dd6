"""What numbers cannot show, what an interval means, what the page lacks (methods/index#cannot-show)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biaskit.common.files import toml_beside
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
_SAID: Mapping[str, Any] = toml_beside(__file__)


def cannot_show(content: Content) -> tuple[str, ...]:
    """Say what the numbers cannot show, from limits of every such measurement to those of this one."""
    probed, written = list(parts_of(content, "probe")), list(parts_of(content, "personas"))
    groups = [row for part in content.parts for row in part.tables.get("probe_groups", ())]
    tables = ("probe_jobs", "representation")
    items = [row for part in content.parts for name in tables for row in part.tables.get(name, ())]
    of_pairs = content.parts and all("pair_groups" in part.tables for part in content.parts)
    limits = [*_SAID["of_pairs" if of_pairs else "always"]]
    limits += [_SAID["diverse"]] if "diverse" in distinct(groups, "gender") else []
    limits += [_SAID["labour"]] if any(row.get("labour_female_share") is not None for row in items) else []
    for part in probed:
        limits += [f"{short(part.study)}: {sentence}" for sentence in _of_probe(part)]
    for part in written:
        n = len(distinct(part.tables.get("representation", ()), "occupation"))
        if 0 < n < FEW_ITEMS:
            only = f"{short(part.study)}: {count(n, 'occupation')} only"
            limits.append(f"{only}, so tests over occupations detect only large effects.")
    shares = [row["share"] for row in defined(groups, "share")]
    limits += [_SAID["extreme"]] if any(not 0.05 <= share <= 0.95 for share in shares) else []
    studies = {part.study.split(" (")[0] for part in content.parts}
    limits += [_SAID["two_clusters"]] if studies & {"occugender", "occugender-debias", "mattern"} else []
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
    if forms == ["sentence"]:
        yield _SAID["pairs"]
        return
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
        yield _SAID["imported"]
    if any(part.tables.get("representation") for part in parts):
        yield _SAID["by_words"]
    if False in sources:
        yield _SAID["settings"]
    vectors = {row["vectors"] for part in parts for row in defined(part.tables.get("srb", ()), "srb")}
    if vectors:
        yield _SAID["raw_srb"]
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
