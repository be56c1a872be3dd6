"""What numbers cannot show, what an interval means, what the page lacks (methods/index#cannot-show)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biaskit.common.wording import listed, short
from biaskit.measurement import ACROSS, folders, measurements, words
from biaskit.report.content import Content, prompt_formats_of
from biaskit.report.findings.claims import shared_words
from biaskit.report.findings.models import compared
from biaskit.runs.collection import Part

LIMITS: Mapping[str, Any] = shared_words()["limits"]
"""Those of several kinds."""
FEW_ITEMS = 10


def cannot_show(content: Content) -> tuple[str, ...]:
    """Say what the numbers cannot show, from limits of every such measurement to those of this one."""
    kinds = {part.measurement for part in content.parts}
    own = words(kinds.pop()).get("limits", {}) if len(kinds) == 1 else {}
    # Those that always hold: the frame's, or those of a page's only kind where it has some.
    limits = [*own.get("always", LIMITS["always"])]
    of_all: list[str] = []  # of what relates the kinds
    for folder in folders():
        (of_all if folder.name in ACROSS else limits).extend(folder.limits(content.parts))
    for model in content.models:
        if model.own_system:
            own = f"{short(model.label)}: without a system prompt, its chat template inserted its own"
            limits.append(f"{own} (“{short(model.own_system)}”), and the numbers apply to that.")
    return tuple(dict.fromkeys(limits + of_all))


def used_formats(parts: Sequence[Part], what: str) -> Iterator[str]:
    """Say which prompt formats were used; `what`: such as "probe"."""
    formats = list(map(short, prompt_formats_of(parts)))
    if len(formats) == 1:
        yield f"The {what} used one prompt format ({formats[0]}); others may give other numbers."
    elif formats:
        yield (
            f"The {what} used several prompt formats ({listed(formats)}); models "
            "with different formats are not compared."
        )


def explained(numbers: Sequence[str]) -> str:
    """Explain the first number with an interval in at most 35 words; "" where there is none."""
    number = next(filter(None, numbers), "")
    if not number:
        return ""
    value, _, interval = number.partition("[")
    ends = interval.rstrip("]").replace("–", " to ").replace(" to ", " and ", 1)
    measured = f"{value.strip()} measured; " if value else ""
    return (
        f"“{number}” means: {measured}the true value is probably between {ends}; about 95 in 100 "
        "intervals contain it, fewer of those picked for excluding 0."
    )


def not_measured(content: Content) -> tuple[str, ...]:
    """Say what the page lacks, a line each, with the command in backticks that would measure it."""
    kind_names = {part.measurement for part in content.parts}
    lines = [kind.lacking for kind in measurements() if kind.lacking and kind.name not in kind_names]
    for folder in folders():
        lines += folder.not_measured(content.parts)
    labels = content.labels
    if len(labels) == 1 and content.imported:
        columns = "`biaskit analyze --texts FILE --model-col COLUMN`"
        lines.append(f"One source only: {columns} compares several.")
    elif len(labels) == 1:
        command = f"`biaskit {content.parts[0].measurement} MODEL OTHER`"
        lines.append(f"One model only: {command} measures and compares two.")
    elif labels and not compared(content):
        lines.append("No comparison of models: `biaskit compare RUN RUN` makes one.")
    return tuple(lines)
