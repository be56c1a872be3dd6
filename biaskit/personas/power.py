"""What a design of the generation engine can show before it runs (docs/methods.md#power)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from biaskit.corpora.variance import TextVariance, load_text_variance
from biaskit.errors import RunError
from biaskit.personas.representation import labour_contrast
from biaskit.personas.sampling.design import PersonasDesign
from biaskit.personas.sampling.rounds import Filling
from biaskit.stats.power import POWER, Design, Side, power, smallest_difference
from biaskit.tables.query import Row, mean_over_prompts, where
from biaskit.wording import count, percent, points

MOST = 1000
"""Occupations, or texts of a prompt, that a search goes up to."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a design is, as far as representation rests on it."""

    occupations: int  # with a labour share
    prompts: int
    texts: int  # of the first round of each prompt


@dataclass(frozen=True, slots=True)
class Outlook:
    """A study with the variance that is assumed of its texts."""

    variance: TextVariance
    size: Size

    def at(self, size: Size) -> Outlook:
        """The same question asked with another design."""
        return replace(self, size=size)

    def larger(self) -> dict[str, list[Size]]:
        """What can be made larger, each by itself, by growing size."""
        return {
            "texts": [replace(self.size, texts=n) for n in range(1, MOST + 1)],
            "occupations": [replace(self.size, occupations=n) for n in range(2, MOST + 1)],
        }

    def design(self) -> Design:
        """The paired t-test over occupations: one number of each, the noise of its draws in it."""
        v, size = self.variance, self.size
        texts = max(size.prompts * size.texts * v.associated_share, 1.0)
        noise = max(v.share * (1.0 - v.share), 0.0) / texts
        return Design((Side(size.occupations, v.var_occupation, noise),), 1, 0.0)

    def shown(self) -> Shown:
        """What it can show."""
        reason = "fewer than two occupations with a labour share" if self.size.occupations < 2 else None
        design = self.design()
        found = None if reason else smallest_difference(design)
        if reason is None and found is None:
            reason = "no difference is large enough"
        parts = design.parts()
        total = sum(parts.values())
        sources = {"occupations": parts["jobs"], "draws": parts["cells"]}
        shares = {name: part / total if total else 0.0 for name, part in sources.items()}
        return Shown(self.size, found, shares, reason)

    def shows(self, difference: float) -> bool:
        """Whether a difference would show in 80 % of runs."""
        return self.size.occupations > 1 and power(self.design(), difference) >= POWER


@dataclass(frozen=True, slots=True)
class Shown:
    """The smallest mean difference from labour statistics that a design shows in 80 % of runs."""

    size: Size
    difference: float | None
    parts: dict[str, float]  # occupations, draws: of the variance, as fractions
    reason: str | None = None


def outlook_of(design: PersonasDesign, variance: TextVariance) -> Outlook:
    """A study as it would be asked."""
    known = sum(item.labour_female_share is not None for item in design.occupations)
    return Outlook(variance, Size(known, len(design.template_ids), Filling.of(design.study).batch))


def variance_of_tables(representation: Sequence[Row], model: str, where_from: str) -> TextVariance:
    """The variance of one model's texts.

    Formula: s² of (share of women − labour share) over occupations, less the mean of se², at least 0.
    `where_from` names the run in the error of one that has too few occupations.
    """
    own = where(representation, model=model)
    known = [c for c in labour_contrast(own) if len(c.occupations) > 1]
    if not known:
        raise RunError(
            f"{where_from} has no variance of {model}: it takes two occupations with a share and a labour"
            " share."
        )
    contrast = known[0]
    rows = [row for row in mean_over_prompts(own) if row["occupation"] in contrast.occupations]
    noise = float(np.mean([(row["se"] or 0.0) ** 2 for row in rows]))
    between = float(np.var(contrast.share - contrast.labour, ddof=1))
    texts = sum(row["n_texts"] for row in rows)
    associated = 1.0 - sum(row["n_unassociated"] for row in rows) / texts
    share = float(np.mean(contrast.share))
    return TextVariance(model, share, associated, max(between - noise, 0.0), len(contrast.occupations))


def plan_sentence(design: PersonasDesign) -> str:
    """What a plan says before it runs, by the demo model's recorded texts; "" without labour statistics."""
    outlook = outlook_of(design, load_text_variance()[0])
    return sentence(outlook.shown(), "as the demo does") if outlook.size.occupations else ""


def sentence(shown: Shown, varies: str) -> str:
    """The smallest difference in words, with where its variance comes from."""
    if shown.difference is None:
        return f"No difference between the share of women and labour statistics would show: {shown.reason}."
    sources = ", ".join(f"{name} {percent(part)} %" for name, part in shown.parts.items())
    over = count(shown.size.occupations, "occupation")
    return (
        f"A mean difference of {points(shown.difference)} (over {over}; variance: {sources}) between the"
        f" share of women in the texts and in the labour force would show in {percent(POWER)} % of such runs,"
        f" by itself, if the model varies {varies} (see biaskit plan)."
    )
