"""Which words a debiasing prompt adds and takes away (methods/words#open-ended-generation; Mattern §5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter

from biaskit.common.plain import attributes, group_by
from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.copies import distinct
from biaskit.measures.personas.texts.documents import TextDocuments
from biaskit.measures.personas.texts.names import says_gender
from biaskit.measures.personas.words.lists import word_lists
from biaskit.measures.personas.words.log_odds import counts_in
from biaskit.measures.personas.words.run_lists import BEYOND, chosen, is_pronoun, names_of
from biaskit.records import NO_DEBIASING
from biaskit.tables.query import Row

MARKED_FOR = {"female": "debiasing", "male": "none"}
"""Lists are made as for two genders; here `female` are texts with the debiasing prompt, `male` without."""


def debiasing_word_rows(
    documents: TextDocuments, study: PersonasStudy, english: Mapping[str, int], formats: Mapping[str, str]
) -> Iterator[Row]:
    """Yield the rows of debiasing_words.csv: per model and prompt, over all occupations, no pronouns.

    The null shuffles which texts had the debiasing prompt, within template and occupation.
    """
    words, names = documents.tokens.words, names_of(documents, study)
    of_english = counts_in(english, words)
    for model in documents.models:
        texts = [text for text in documents.texts if text.model == model and not (text.empty or text.refused)]
        texts_of = group_by(texts, attrgetter("debiasing_id"))
        for number in sorted(texts_of.keys() - {None, NO_DEBIASING}):
            of_both = [text for text in texts if text.debiasing_id in (number, NO_DEBIASING)]
            compared = distinct(of_both, attrgetter("debiasing_id"))
            genders = ["female" if text.debiasing_id == number else "male" for text in compared]
            # An occupation and its template have as many texts under the debiasing prompt as without it.
            strata = [f"{text.occupation}\n{text.template_id}" for text in compared]
            of_texts = documents.counts_of(compared), words, genders, strata, of_english
            how = {**chosen(study), "left_out": says_gender(words, names[model])}
            lists = word_lists(*of_texts, row_key=[model, "instruction", str(number)], **how)
            scope = {"model": model, "context": "plain", "prompt_format": formats.get(model, "")}
            for word_list in lists:
                of_list = attributes(word_list, ("method", *BEYOND))
                of_list |= {"debiasing_id": number, "marked_for": MARKED_FOR[word_list.gender]}
                words_shown = [marked for marked in word_list.words if not is_pronoun(marked.word)]
                for rank, marked in enumerate(words_shown, start=1):
                    yield {**scope, **of_list, **replace(marked, rank=rank).row()}
