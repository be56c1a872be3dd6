"""What the numbers of a report cannot show, what an interval means, and what the page does not hold.

See docs/methods.md#cannot-show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.finding import parts_of
from biaskit.report.findings.models import compared
from biaskit.report.findings.scores import is_control
from biaskit.report.findings.write import are_imported
from biaskit.runs.collection import Part
from biaskit.tables.query import defined, distinct
from biaskit.wording import count, listed, percent, short

FEW_TEMPLATES = 5
FEW_ITEMS = 10
WIDE_BOUNDS = 0.1


def cannot_show(content: Content) -> tuple[str, ...]:
    """Sentences, from what is true of every such measurement to what is special in this one."""
    return tuple(dict.fromkeys(sentence for rule in _RULES for sentence in rule(content)))


def _always(_: Content) -> Iterator[str]:
    yield "“They” is the only neutral pronoun that is measured; other neutral pronouns are not."
    yield (
        "A share under parity is not a verdict: what it should be is left open, so each number names its "
        "reference."
    )
    yield (
        "The numbers hold for these prompts, these occupations and these words, not for every use of a "
        "model; and no clear difference is not the same as no difference."
    )


def _diverse(content: Content) -> Iterator[str]:
    if any("diverse" in distinct(part.tables.get("probe_groups", ()), "gender") for part in content.parts):
        yield (
            "“Diverse” holds both “non-binary” and “gender unknown”: a high share of it need not mean that "
            "non-binary people are seen."
        )


def _labour(content: Content) -> Iterator[str]:
    tables = [
        part.tables.get(name, ()) for part in content.parts for name in ("probe_jobs", "representation")
    ]
    if any(row.get("labour_female_share") is not None for table in tables for row in table):
        yield "Labour data are U.S. statistics; they say little of other countries and other years."


def _few(content: Content) -> Iterator[str]:
    for part in parts_of(content, "probe"):
        yield from (f"{short(part.study)}: {sentence}" for sentence in _few_asked(part))
    for part in parts_of(content, "personas"):
        n = len(distinct(part.tables.get("representation", ()), "occupation"))
        if 0 < n < FEW_ITEMS:
            only = f"{short(part.study)}: {count(n, 'occupation')} only"
            yield f"{only}, so tests over occupations see large effects alone."


def _few_asked(part: Part) -> Iterator[str]:
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


def _extremes(content: Content) -> Iterator[str]:
    rows = [row for part in content.parts for row in part.tables.get("probe_groups", ())]
    if any(row["share"] is not None and not 0.05 <= row["share"] <= 0.95 for row in rows):
        yield "Intervals of mean shares below 5 % or above 95 % may be too short."


def _coverage(content: Content) -> Iterator[str]:
    for part in parts_of(content, "probe"):
        cells = defined(part.tables.get("probe_cells", ()), "coverage")
        low = sum(bool(row["below_floor"]) for row in cells)
        if low:
            yield (
                f"{short(part.study)}: in {low:,} of {count(len(cells), 'cell')} the listed words hold less "
                f"than {percent(part.floor)} % of the probability (coverage); their shares rest on little, "
                "and what the model would say instead is not known."
            )


def _estimators(content: Content) -> Iterator[str]:
    for part in parts_of(content, "probe"):
        rows = part.tables.get("probe_groups", ())
        found = [estimator for estimator in distinct(rows, "estimator") if estimator]
        if len(found) > 1:
            yield (
                f"{short(part.study)}: models were measured with different estimators ({listed(found)}); "
                "part of a difference between them may be the estimator's."
            )
        widths = [row["share_high"] - row["share_low"] for row in defined(rows, "share_low", "share_high")]
        if any(width > WIDE_BOUNDS for width in widths):
            yield (
                f"{short(part.study)}: a service that shows only its most probable words leaves bounds of up "
                f"to {percent(max(widths))} points around a share; intervals and tests use the words it "
                "shows."
            )
        if "sampling" in found:
            yield f"{short(part.study)}: shares by sampling come from few draws per cell, with their noise."


def _forms(content: Content) -> Iterator[str]:
    for engine, what in (("probe", "probe"), ("personas", "texts")):
        models = [model for part in parts_of(content, engine) for model in part.models]
        forms = list(dict.fromkeys(model.prompt_form for model in models if model.prompt_form))
        if len(forms) == 1:
            yield f"The {what} used one prompt form ({short(forms[0])}); another form may give other numbers."
        elif forms:
            yield (
                f"The {what} used several prompt forms ({listed([short(form) for form in forms])}); models "
                "in different forms are not compared."
            )


def _texts(content: Content) -> Iterator[str]:
    parts = list(parts_of(content, "personas"))
    if any(model.where == "texts" for part in parts for model in part.models):
        yield (
            "Imported texts come as they are: how they were prompted, sampled and selected is not known "
            "here, and they are not balanced."
        )
    if any(part.tables.get("representation") for part in parts):
        yield (
            "A text's gender is read off words such as “she” and “Mr”; texts without an association are not "
            "missing at random, and the shares leave them out."
        )
    if any(model.where != "texts" for part in parts for model in part.models):
        yield (
            "The texts are draws at the run's own sampling settings (temperature, top_p, length); other "
            "settings give other texts."
        )


def _srb(content: Content) -> Iterator[str]:
    scored = [defined(part.tables.get("srb", ()), "srb") for part in parts_of(content, "personas")]
    vectors = {row["vectors"] for rows in scored for row in rows}
    if vectors:
        yield (
            "A raw SRB also measures how long the word vectors were trained: it is compared within one "
            "vector model only, never with a paper's or another run's; its z can be compared."
        )
    if len(vectors) > 1:
        yield f"The scores rest on {len(vectors)} vector models, so their SRB values do not meet in a test."


def _two_clusters(content: Content) -> Iterator[str]:
    studies = {part.study.split(" (")[0] for part in content.parts}
    if studies & {"occugender", "occugender-debias", "mattern"}:
        yield (
            "OccuGender's jobs are two extreme clusters of the labour force: a slope over all of them is "
            "mostly the difference between the clusters."
        )


def _apart(content: Content) -> Iterator[str]:
    probe = {model.label for part in parts_of(content, "probe") for model in part.models}
    texts = {model.label for part in parts_of(content, "personas") for model in part.models}
    if not probe:
        yield "The prober did not run here: nothing is known of the probabilities behind the texts."
    elif not texts:
        yield "No texts were generated here: how women and men are described is not known."
    elif not probe & texts:
        yield "No model was measured by both engines under one name, so nothing ties their numbers together."


_RULES = (
    *(_always, _diverse, _labour, _coverage, _few, _extremes, _two_clusters),
    *(_estimators, _forms, _texts, _srb, _apart),
)


# --- the interval, and what the page does not hold --------------------------------------------------------


def explained(numbers: Sequence[str]) -> str:
    """One sentence of at most 35 words about the first number with an interval; "" where there is none."""
    number = next(filter(None, numbers), "")
    if not number:
        return ""
    value, _, interval = number.partition("[")
    ends = interval.rstrip("]").replace("–", " to ").replace(" to ", " and ", 1)
    measured = f"{value.strip()} in what was measured; " if value else ""
    return (
        f"“{number}” means: {measured}the true number most likely lies between {ends}, for such ranges hold "
        "it 95 times in 100."
    )


def not_measured(content: Content) -> tuple[str, ...]:
    """One line for each thing that the page lacks, with the command, in backticks, that would measure it."""
    return tuple(
        line
        for rule in (_lacks_engine, _lacks_instructions, _lacks_models, _lacks_scores)
        for line in rule(content)
    )


def _lacks_engine(content: Content) -> Iterator[str]:
    if not any(True for _ in parts_of(content, "personas")):
        yield "No texts: `biaskit personas MODEL` shows whom it writes about, and how."
    if not any(True for _ in parts_of(content, "probe")):
        yield "No probabilities: `biaskit probe MODEL` shows whom it says when asked."


def _lacks_instructions(content: Content) -> Iterator[str]:
    probed = list(parts_of(content, "probe"))
    asked = {row["instruction_id"] for part in probed for row in part.tables.get("probe_groups", ())} - {0}
    if probed and not asked:
        yield (
            "No instructions: `biaskit probe MODEL --study occugender-debias` shows whether asking for "
            "fairness helps."
        )


def _lacks_models(content: Content) -> Iterator[str]:
    labels = {model.label for part in content.parts for model in part.models}
    if len(labels) == 1 and is_imported(content):
        yield "One source only: `biaskit analyze --texts FILE --model-col COLUMN` sets several side by side."
    elif len(labels) == 1:
        engine = content.parts[0].engine
        yield f"One model only: `biaskit {engine} MODEL OTHER` measures two, and compares them."
    elif len(labels) > 1 and not compared(content):
        yield "No comparison of models: `biaskit compare RUN RUN` holds one against another."


def is_imported(content: Content) -> bool:
    """Whether the page holds texts alone that were brought along."""
    return all(part.engine == "personas" and are_imported(part) for part in content.parts)


def _lacks_scores(content: Content) -> Iterator[str]:
    for part in parts_of(content, "personas"):
        if not defined(part.tables.get("srb", ()), "srb") or is_control(part):
            if are_imported(part):
                yield (
                    "No likeness of descriptions (SRB): only one kind of text; "
                    "`biaskit analyze --texts FILE --gender-col COLUMN --hold-out 0.5` makes two of one."
                )
            else:
                yield "No likeness of descriptions (SRB): `biaskit personas MODEL --per-gender 20` adds."
