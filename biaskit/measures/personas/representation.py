"""Who is represented, beside labour statistics (methods/representation#representation)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from biaskit.common.wording import count, joined
from biaskit.corpora.languages import ENGLISH
from biaskit.measures.personas.design import PersonasDesign
from biaskit.measures.personas.texts.documents import TextDocuments
from biaskit.records import ALL, WOMEN_AND_MEN
from biaskit.stats.arms import FEMALE_DOMINATED, MALE_DOMINATED
from biaskit.stats.arrays import FloatArray
from biaskit.stats.proportions import Proportion, mean_of_proportions, proportion
from biaskit.tables.query import Row, by_person, defined, grouped, where, without_debiasing, women_among

_Scope = tuple[int | None, str | None]  # debiasing prompt and context
_Block = tuple[str, _Scope, str, str]


def representation_rows(documents: TextDocuments, design: PersonasDesign) -> list[Row]:
    """Make the rows of representation.csv, per model and occupation each template and then `all`.

    They are of texts whose prompt named no gender. Of a sampled run the samples of the first batch enter:
    later ones were asked because of what the first ones said, and their number depends on the outcome. Of
    imported texts all enter, and an occupation that a model has no text of has no rows.

    Under debiasing prompts each has rows of its own. A model whose language no rules read has counts and the
    reason, but no share, unless genders are known (n_known is then a column). A sample of a model,
    occupation, template or debiasing prompt that is not listed is a `ValueError`: left out silently it would
    be missing from a share.
    """
    models, occupations, templates = documents.models, documents.occupations, documents.template_ids
    unread, languages = documents.lacking("represented"), documents.languages
    known, batch = documents.person_column is not None, design.study.batch or design.study.per_gender
    workforce = {item.name: (item.workforce_share, item.year) for item in design.occupations}
    scopes = [(i.id if i else 0, "plain") for i in design.debiasing_prompts] if design.templates else []
    tallies: dict[_Block, Counter[str]] = {}
    copies = Counter[tuple[_Block, str, str]]()
    for text in documents.texts:
        if text.requested_gender is not None or not (documents.imported or text.sample < batch):
            continue
        of_text = (text.model, (text.debiasing_id, text.context), text.occupation, text.template_id)
        tally = tallies.setdefault(of_text, Counter())
        tally.update(["n_texts", f"n_{text.gender or 'not_inferred'}"])
        tally.update(
            n_refused=int(text.refused),
            n_empty=int(text.empty and text.finish != "length"),
            n_cut=int(text.finish == "length"),
        )
        tally["n_not_english"] += not (text.gender or text.read or text.refused or text.empty)
        tally["n_known"] += bool(text.gender and text.person_gender)
        if text.gender:
            # Of a unit of c copies the first counts 1² = 1, the second 2² − 1² = 3: in all c².
            copies[of_text, text.unit, text.gender] += 1
            tally.update(n_squared=2 * copies[of_text, text.unit, text.gender] - 1)
    every_scope: Sequence[_Scope] = scopes or [(None, None)]
    if strangers := tallies.keys() - set(product(models, every_scope, occupations, templates)):
        raise ValueError(f"Texts of {min(strangers, key=repr)} are not among what is represented.")
    rows: list[Row] = []
    for model, scope, occupation in product(models, every_scope, occupations):
        of_templates = {t: tallies.get((model, scope, occupation, t), Counter()) for t in templates}
        if documents.imported and not any(of_templates.values()):
            continue
        share, year = workforce.get(occupation, (None, None))
        of_work: Row = {"workforce_share": share, "workforce_year": year}
        of_scope: Row = {"debiasing_id": scope[0], "context": scope[1]} if scopes else {}
        unknown = None if known else unread.get(model)
        for template, counts, shares in _of_occupation(of_templates, unknown):
            of_item = {"model": model, "occupation": occupation, "template_id": template}
            numbers = {name: counts[name] for name in _COUNTS} | shares.columns()
            foreign: dict[str, Any] = {"n_not_english": counts["n_not_english"]}
            if known:
                foreign["n_known"] = counts["n_known"]
            if languages:
                foreign["language"] = languages[model]
            reason = shares.reason
            if reason and languages.get(model, ENGLISH) not in (None, ENGLISH):
                reason = reason.replace("not in English", "in another language")
            rows.append({**of_item, **numbers, **of_work, **foreign, **of_scope, "reason": reason})
    return rows


@dataclass(frozen=True, slots=True)
class _Shares:
    """The numbers of one row; the bounds are the female share if all dropped texts were women, or men."""

    female: Proportion
    nonbinary: Proportion
    bounds: tuple[float, float] | None
    reason: str | None

    def columns(self) -> dict[str, Any]:
        """Name the numbers as representation.csv does."""
        row: dict[str, Any] = {"female_share": self.female.estimate}
        row["ci_low"], row["ci_high"] = self.female.ci95 or (None, None)
        row |= {"se": self.female.se, "nonbinary_share": self.nonbinary.estimate}
        row["nonbinary_ci_low"], row["nonbinary_ci_high"] = self.nonbinary.ci95 or (None, None)
        row["share_if_dropped_female"], row["share_if_dropped_male"] = self.bounds or (None, None)
        return row


_COUNTS = (
    *("n_texts", "n_female", "n_male", "n_nonbinary", "n_not_inferred"),
    *("n_refused", "n_empty", "n_cut"),
)


def _of_occupation(
    tallies: Mapping[str, Counter[str]], unread: str | None
) -> Iterator[tuple[str, Mapping[str, int], _Shares]]:
    """Yield counts and shares of each template, then of `all`; no shares of texts that are `unread`: why."""
    of_template = {template: _shares(counts) for template, counts in tallies.items()}
    none = _Shares(Proportion(None), Proportion(None), None, unread)
    for template, counts in tallies.items():
        yield template, counts, none if unread else of_template[template]
    yield ALL, sum(tallies.values(), Counter()), none if unread else _mean(of_template)


def _shares(counts: Mapping[str, int]) -> _Shares:
    female, nonbinary = counts["n_female"], counts["n_nonbinary"]
    inferred, n_texts = female + counts["n_male"] + nonbinary, counts["n_texts"]
    reason = "one text with an inferred gender: no standard error" if inferred == 1 else None
    if not inferred:
        reason = "no text with an inferred gender" if n_texts else "no text"
    independent = inferred**2 / counts["n_squared"] if inferred else 0
    if independent < inferred:
        reason = f"copies: {inferred} texts with a gender are worth {independent:.1f} independent ones"
    if foreign := counts["n_not_english"]:
        reason = joined([reason, f"{foreign} of {count(n_texts, 'text')} not in English"])
    shares = proportion(female, inferred, independent), proportion(nonbinary, inferred, independent)
    bounds = ((female + counts["n_not_inferred"]) / n_texts, female / n_texts) if n_texts else None
    return _Shares(*shares, bounds, reason)


def _mean(shares: Mapping[str, _Shares]) -> _Shares:
    """Average over templates; a number that one template lacks is missing here too, with its reason."""
    female = mean_of_proportions(list(map(attrgetter("female"), shares.values())))
    nonbinary = mean_of_proportions(list(map(attrgetter("nonbinary"), shares.values())))
    bounds, every = None, list(map(attrgetter("bounds"), shares.values()))
    if every and all(every):
        if_female, if_male = (math.fsum(side) / len(every) for side in zip(*every, strict=True))
        bounds = if_female, if_male
    reasons = [part.reason and f"{template}: {part.reason}" for template, part in shares.items()]
    return _Shares(female, nonbinary, bounds, joined(reasons))


WORKFORCE_SIDES = (FEMALE_DOMINATED, MALE_DOMINATED)


def decile_rows(rows: Sequence[Row]) -> tuple[list[Row], str | None]:
    """Make the rows of deciles.csv (GAS(P) Figure 2), and a note on the occupations that are not in them.

    Per model, template and side of the workforce (a workforce share of exactly 0.5 is female-dominated) ten
    rows, [0, 0.1), …, [0.9, 1], with the number of occupations whose female_share lies there, also where it
    is 0. Rows under a debiasing prompt do not enter. Without any workforce share: no rows.
    """
    deciles: list[Row] = []
    notes = []
    for (model, template), of_template in grouped(without_debiasing(rows), "model", "template_id").items():
        both = defined(of_template, "female_share", "workforce_share")
        # An occupation without a share in one template has none in `all`, so its note counts every loss.
        if template == ALL and (n_out := len(of_template) - len(both)):
            why = "left out: no share or no workforce share"
            notes.append(f"{model}: {n_out} of {len(of_template)} occupations {why}")
        counts = Counter[tuple[str, int]]()
        for row in both:  # the mean of 1/10 and 7/10 is 0.4, and rounding puts it a hair below
            decile = min(math.floor(row["female_share"] * 10 + 1e-12), 9)
            counts[WORKFORCE_SIDES[row["workforce_share"] < 0.5], decile] += 1
        for side, decile in product(WORKFORCE_SIDES, range(10)):
            ends = {"decile_low": decile / 10, "decile_high": (decile + 1) / 10}
            scope = {"model": model, "template_id": template, "workforce_side": side}
            deciles.append({**scope, **ends, "n_occupations": counts[side, decile]})
    if not defined(rows, "workforce_share"):
        return [], "no occupation has a workforce share"
    return deciles, joined(notes)


@dataclass(frozen=True, slots=True, eq=False)
class WorkforceContrast:
    """Share of women in a model's texts and in the workforce, occupation by occupation."""

    model: str
    occupations: tuple[str, ...]  # by name, so that no order of rows changes a sum
    share: FloatArray  # [n], women's part of women and men: the workforce counts no others
    workforce: FloatArray  # [n]
    ends: tuple[FloatArray, FloatArray]  # [n], the share if all texts without a gender were men's, women's
    noise: FloatArray  # [n], variance of the share that the number of texts brings
    n: int  # occupations, with those that were left out
    labels: str | None  # how many labels of a person corrected shares, how many genders are known


def workforce_contrast(rows: Sequence[Row]) -> list[WorkforceContrast]:
    """Pair represented shares and workforce shares for the tests of their difference, one contrast per model.

    Shares are means over prompts without a debiasing prompt; occupations that lack one are left out
    (methods/representation#workforce-slope).
    """
    contrasts = []
    plain = without_debiasing(rows)
    prompts_of = grouped(plain, "model", "occupation")
    for (model,), of_model in grouped(where(plain, template_id=ALL), "model").items():
        shares: dict[str, tuple[float, ...]] = {}
        both = defined(of_model, "female_share", "workforce_share")
        for row in sorted(both, key=itemgetter("occupation")):
            of_two = women_among(WOMEN_AND_MEN, prompts_of[model, row["occupation"]])
            if of_two is not None:
                shares[str(row["occupation"])] = (row["workforce_share"], *of_two)
        workforce, share, low, high, noise = np.array([*shares.values()], np.float64).reshape(-1, 5).T
        n, labels = len(of_model), by_person(of_model)
        contrasts.append(
            WorkforceContrast(model, tuple(shares), share, workforce, (low, high), noise, n, labels)
        )
    return contrasts
