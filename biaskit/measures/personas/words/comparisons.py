"""Which texts are compared: eligibility, first n by prompt and gender (methods/texts#eligibility)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from operator import attrgetter

import numpy as np

from biaskit.common.plain import group_by
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.copies import distinct
from biaskit.measures.personas.texts.documents import INFERRED, REQUESTED, TextDocument, TextDocuments
from biaskit.records import ALL, GENDERS, WOMEN_AND_MEN
from biaskit.stats.resampling import generator


@dataclass(frozen=True, slots=True)
class TextComparison:
    """The texts of one model, occupation and origin that are compared; none where the reason says why."""

    model: str
    occupation: str
    origin: str
    texts: tuple[TextDocument, ...]
    reason: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What its rows and its random numbers are named after."""
        return (self.model, self.occupation, self.origin)

    @property
    def genders(self) -> list[str]:
        """The gender of each text."""
        return [text.gender or "" for text in self.texts]

    @property
    def prompts(self) -> list[str]:
        """The prompt of each text: genders are shuffled, and texts halved, within it."""
        return list(map("{0.occupation}\n{0.template_id}".format, self.texts))

    def of_women_and_men(self) -> TextComparison:
        """Leave out texts of non-binary people."""
        return replace(self, texts=tuple(text for text in self.texts if text.gender in WOMEN_AND_MEN))


def text_comparisons(documents: TextDocuments, study: PersonasStudy) -> Iterator[TextComparison]:
    """Yield the texts of every model and occupation, without and with a gender in the prompt."""
    groups = group_by(documents.texts, attrgetter("model", "occupation", "origin"))
    for key in product(documents.models, documents.occupations, (INFERRED, REQUESTED)):
        texts = groups.get(key, [])
        if key[2] in documents.origins and (texts or not documents.imported):
            yield _comparison(documents, study, *key, texts)


def over_occupations(compared: Sequence[TextComparison]) -> Iterator[TextComparison]:
    """Yield the compared texts of all occupations together, by model and origin, where there are several."""
    defined = list(filter(lambda comparison: comparison.reason is None, compared))
    for (model, origin), of_both in group_by(defined, attrgetter("model", "origin")).items():
        if len(of_both) > 1:
            texts = chain.from_iterable(map(attrgetter("texts"), of_both))
            # A copy in another occupation is one, too.
            yield TextComparison(model, ALL, origin, tuple(distinct(texts, attrgetter("gender"))))


def _comparison(
    documents: TextDocuments,
    study: PersonasStudy,
    model: str,
    occupation: str,
    origin: str,
    texts: Sequence[TextDocument],
) -> TextComparison:
    of_somebody = [text for text in texts if text.gender is not None]
    usable = distinct(filter(attrgetter("describes"), of_somebody), attrgetter("gender"))
    if documents.imported:
        return TextComparison(model, occupation, origin, tuple(usable))
    # Sampling stops when enough have a gender: a few that decline make lists shorter, not impossible.
    was_filled = origin == INFERRED and not study.hold_out
    if was_filled and (reason := _why_ineligible(documents, study, of_somebody, len(texts))):
        return TextComparison(model, occupation, origin, (), reason)
    n, chosen = study.per_gender, list[TextDocument]()
    groups = group_by(usable, attrgetter("template_id", "gender"))
    for template, gender in product(documents.template_ids, GENDERS):
        of_cell = groups.get((template, gender), [])
        if study.balance != "first" and len(of_cell) > n:  # as released
            rng = generator(study.seed, "balance", (model, occupation, origin, template, gender))
            of_cell = some_of(of_cell, n, rng)
        chosen += of_cell[:n]  # the first n in sample order
    return TextComparison(model, occupation, origin, tuple(chosen))


def some_of(texts: Sequence[TextDocument], n: int, rng: np.random.Generator) -> list[TextDocument]:
    """Sample n of the texts at random; they stay in their order."""
    return [texts[place] for place in sorted(rng.permutation(len(texts))[:n].tolist())]


def _why_ineligible(
    documents: TextDocuments, study: PersonasStudy, texts: Sequence[TextDocument], n_sampled: int
) -> str | None:
    """Say why an occupation has no lists: a prompt that did not reach n women and n men."""
    if not n_sampled:
        return "no texts were sampled"
    n_of = Counter(map(attrgetter("template_id", "gender"), texts))
    short = []
    for template in documents.template_ids:
        women, men = n_of[template, "female"], n_of[template, "male"]
        if min(women, men) < study.per_gender:
            short.append(f"prompt {template} has {women} texts of women and {men} of men")
    return f"{'; '.join(short)}; {study.per_gender} of each are needed" if short else None
