"""What an interval means, by the page's own first number, and what the page does not hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biaskit.report.content import Content
from biaskit.report.findings.between_models import compared
from biaskit.report.findings.finding import parts_of
from biaskit.report.findings.in_brief.sentence import Said
from biaskit.report.findings.representation import are_imported
from biaskit.report.findings.srb import is_control
from biaskit.tables.query import defined


def explained(said: Sequence[Said]) -> str:
    """One sentence of at most 35 words about the first number with an interval; "" where there is none."""
    number = next((one.number for one in said if one.number), "")
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
    return tuple(line for rule in (_engines, _instructions, _models, _texts) for line in rule(content))


def _engines(content: Content) -> Iterator[str]:
    if not any(True for _ in parts_of(content, "personas")):
        yield "No texts: `biaskit personas MODEL` shows whom it writes about, and how."
    if not any(True for _ in parts_of(content, "probe")):
        yield "No probabilities: `biaskit probe MODEL` shows whom it says when asked."


def _instructions(content: Content) -> Iterator[str]:
    probed = list(parts_of(content, "probe"))
    asked = {row["instruction_id"] for part in probed for row in part.tables.get("probe_groups", ())} - {0}
    if probed and not asked:
        yield (
            "No instructions: `biaskit probe MODEL --study occugender-debias` shows whether asking for "
            "fairness helps."
        )


def _models(content: Content) -> Iterator[str]:
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


def _texts(content: Content) -> Iterator[str]:
    for part in parts_of(content, "personas"):
        if not defined(part.tables.get("srb", ()), "srb") or is_control(part):
            if are_imported(part):
                yield (
                    "No likeness of descriptions (SRB): only one kind of text; "
                    "`biaskit analyze --texts FILE --gender-col COLUMN --hold-out 0.5` makes two of one."
                )
            else:
                yield "No likeness of descriptions (SRB): `biaskit personas MODEL --per-gender 20` adds."
