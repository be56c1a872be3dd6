"""Which texts are compared: eligibility, first n by prompt and gender (methods/texts#eligibility)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from biaskit.measures.personas.sampling.rounds import Filling
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.copies import distinct
from biaskit.measures.personas.texts.documents import ASSOCIATED, SPECIFIED, TextDocument, TextDocuments
from biaskit.records import GENDERS, WOMEN_AND_MEN
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
    def genders(self) -> tuple[str, ...]:
        """The gender of each text."""
        return tuple(text.gender or "" for text in self.texts)


def text_comparisons(documents: TextDocuments, study: PersonasStudy) -> Iterator[TextComparison]:
    """Yield the texts of every model and occupation, without and with a gender in the prompt."""
    groups: dict[tuple[str, str, str], list[TextDocument]] = {}
    for text in documents.texts:
        groups.setdefault((text.model, text.occupation, text.origin), []).append(text)
    for key in product(documents.models, documents.occupations, (ASSOCIATED, SPECIFIED)):
        drawn = groups.get(key, [])
        if key[2] in documents.origins and (drawn or not documents.imported):
            yield _comparison(documents, study, *key, drawn)


def _comparison(
    documents: TextDocuments,
    study: PersonasStudy,
    model: str,
    occupation: str,
    origin: str,
    drawn: Sequence[TextDocument],
) -> TextComparison:
    of_somebody = [text for text in drawn if text.gender is not None]
    usable = distinct((text for text in of_somebody if text.describes), lambda text: text.gender)
    if documents.imported:
        return TextComparison(model, occupation, origin, tuple(usable))
    # Draws stop when enough are associated: a few that decline make lists shorter, not impossible.
    was_filled = origin == ASSOCIATED and not study.hold_out
    if was_filled and (reason := _why_ineligible(documents, study, of_somebody, len(drawn))):
        return TextComparison(model, occupation, origin, (), reason)
    n, chosen = study.per_gender, list[TextDocument]()
    for template, gender in product(documents.template_ids, GENDERS):
        texts = [t for t in usable if t.template_id == template and t.gender == gender]
        if study.balance != "first" and len(texts) > n:  # n of them, as released
            rng = generator(study.seed, "balance", (model, occupation, origin, template, gender))
            texts = [texts[place] for place in sorted(rng.permutation(len(texts))[:n].tolist())]
        chosen += texts[:n]  # the first n in draw order
    return TextComparison(model, occupation, origin, tuple(chosen))


def _why_ineligible(
    documents: TextDocuments, study: PersonasStudy, texts: Sequence[TextDocument], n_drawn: int
) -> str | None:
    """Say why an occupation has no lists: a prompt that did not reach n women and n men."""
    if not n_drawn:
        return "no texts were sampled"
    filling = Filling.from_study(study)
    short = []
    for template in documents.template_ids:
        of_template = [text for text in texts if text.template_id == template]
        women, men = (sum(t.gender == gender for t in of_template) for gender in WOMEN_AND_MEN)
        if min(women, men) < filling.n:
            short.append(f"prompt {template} has {women} texts of women and {men} of men")
    return f"{'; '.join(short)}; {filling.n} of each are needed" if short else None
