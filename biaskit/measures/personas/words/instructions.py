"""Which words an instruction adds and takes away (methods/words#open-ended-generation; Mattern §5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace

import numpy as np

from biaskit.measures.personas.study import PersonasStudy
from biaskit.measures.personas.texts.copies import distinct
from biaskit.measures.personas.texts.documents import TextDocuments
from biaskit.measures.personas.words.gender_words import is_gender_word, says_gender
from biaskit.measures.personas.words.lists import word_lists
from biaskit.measures.personas.words.run_lists import BEYOND, is_pronoun, names_of, prior_of
from biaskit.records import NO_INSTRUCTION
from biaskit.tables.query import Row

MARKED_FOR = {"female": "instruction", "male": "none"}
"""Lists are made as for two genders; here `female` are texts under the instruction, `male` those without."""


def instruction_word_rows(
    documents: TextDocuments, study: PersonasStudy, english: Mapping[str, int], forms: Mapping[str, str]
) -> Iterator[Row]:
    """Yield the rows of instruction_words.csv: per model and instruction, over all occupations, no pronouns.

    The null shuffles which texts had the instruction, within template and occupation.
    """
    names, words = names_of(documents, study), documents.tokens.words
    for model in documents.models:
        texts = [text for text in documents.texts if text.model == model and not (text.empty or text.refused)]
        numbers = {text.instruction_id for text in texts} - {None, NO_INSTRUCTION}
        for number in sorted(number for number in numbers if number is not None):
            of_both = (text for text in texts if text.instruction_id in (number, NO_INSTRUCTION))
            compared = distinct(of_both, lambda text: text.instruction_id)
            lists = word_lists(
                documents.tokens.counts[[text.place for text in compared]],
                words=words,
                genders=["female" if text.instruction_id == number else "male" for text in compared],
                # An occupation and its template have as many texts under the instruction as without it.
                strata=[f"{text.occupation}\n{text.template_id}" for text in compared],
                english=np.array([english.get(word, 0) for word in words], dtype=np.float64),
                seed=study.seed,
                row_key=[model, "instruction", str(number)],
                prior=prior_of(study),
                n_shuffles=study.permutations,
                left_out=says_gender(words, names[model]),
            )
            for word_list in lists:
                words_shown = [marked for marked in word_list.words if not is_pronoun(marked.word)]
                for rank, marked in enumerate(words_shown, start=1):
                    yield {
                        "model": model,
                        "setting": "plain",
                        "prompt_form": forms.get(model, ""),
                        "instruction_id": number,
                        "marked_for": MARKED_FOR[word_list.gender],
                        "method": word_list.method,
                        **asdict(replace(marked, rank=rank)),
                        "is_gender_word": is_gender_word(marked.word),
                        **{name: getattr(word_list, name) for name in BEYOND},
                    }
