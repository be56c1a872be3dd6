"""Frames and factors of templates: read from a row, checked as a whole (docs/studies.md#frames)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from biaskit.corpora.sources import SourceRow, label_of, shown
from biaskit.errors import CorpusError
from biaskit.records import Template

_NAME = re.compile(r"[^\W_](?:[\w -]*\w)?")
"""Names of factors and levels stand in one cell of a table, "fairness=mentioned, asks=gender"."""


def factors_of(row: SourceRow) -> tuple[tuple[str, str], ...]:
    """The factors of a template with their levels; none where the row names none."""
    value = row.values.get("factors") or {}
    if not isinstance(value, dict):
        raise CorpusError(
            f"{row.where}: factors is {shown(value)}, which is not a table. Write, in a .toml file,"
            ' factors = { fairness = "mentioned", asks = "gender" }.'
        )
    inside = SourceRow(f"{row.where}: factors", value)
    found = tuple((name, label_of(inside, name)) for name in value)
    for text in (text for pair in found for text in pair):
        if not _NAME.fullmatch(text):
            raise CorpusError(
                f"{row.where}: {shown(text)} cannot name a factor or its level. Use letters, digits, spaces"
                " and hyphens."
            )
    return found


def check_frames(templates: Sequence[Template], where: str) -> None:
    """Refuse frames that could not be compared: each is there in every arm, and in each arm once."""
    for bias_type in dict.fromkeys(t.bias_type for t in templates):
        own = [t for t in templates if t.bias_type == bias_type]
        if any(t.frame or t.factors for t in own):
            _check_whole(own, f"{where}, {bias_type} templates")


def _check_whole(templates: Sequence[Template], where: str) -> None:
    names = [name for name, _ in templates[0].factors]
    for t in templates:
        if t.frame is None:
            raise CorpusError(f"{where}: {t.id} has no frame, and others have. Name the frame of each.")
        if sorted(name for name, _ in t.factors) != sorted(names):
            raise CorpusError(
                f"{where}: {t.id} does not have the factors of the first one,"
                f" {', '.join(names) or 'none'}. Write the same factors in each."
            )
    if not names:
        return
    for name in names:
        levels = list(dict.fromkeys(dict(t.factors)[name] for t in templates))
        if len(levels) != 2:
            raise CorpusError(
                f"{where}: the factor {shown(name)} has {len(levels)} levels ({', '.join(levels)})."
                " Give each factor two."
            )
    there = Counter((t.frame, frozenset(t.factors)) for t in templates)
    n_arms, frames = 2 ** len(names), Counter(t.frame for t in templates)
    twice = {frame for (frame, _), count in there.items() if count > 1}
    for frame, n in frames.items():
        if n != n_arms or frame in twice:
            raise CorpusError(
                f"{where}: the frame {shown(frame)} does not have each of the {n_arms} combinations of the"
                " factors' levels exactly once. Write one template for each."
            )
