"""Which words an instruction adds to free text, and which it takes away.

See docs/methods.md#open-ended-generation; Mattern §5.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from biaskit.personas.texts.documents import TextDocument, TextDocuments
from biaskit.personas.words.contrasts import WordList
from biaskit.personas.words.gender_words import is_gender_word, says_gender
from biaskit.personas.words.lists import word_lists
from biaskit.personas.words.run_lists import BEYOND, is_pronoun, names_of, prior_of
from biaskit.records import NO_INSTRUCTION
from biaskit.study.keys import PersonasStudy
from biaskit.tables.query import Row

MARKED_FOR = {"female": "instruction", "male": "none"}
"""The lists are made as those of two genders are; here the groups are texts under it and without it."""


def instruction_word_rows(
    documents: TextDocuments,
    study: PersonasStudy,
    english: Mapping[str, int],
    forms: Mapping[str, str],
) -> Iterator[Row]:
    """instruction_words.csv: per model and instruction, all occupations together, pronouns left out.

    The null shuffles which texts had the instruction, within template and occupation.
    """
    names = names_of(documents, study)
    for model in documents.models:
        texts = [text for text in documents.texts if text.model == model and not (text.empty or text.refused)]
        for number in sorted(
            {t.instruction_id for t in texts if t.instruction_id not in (None, NO_INSTRUCTION)}
        ):
            for one in _lists(documents, study, english, model, number, texts, names[model]):
                yield from _rows(one, model, number, forms.get(model, ""))


def _lists(
    documents: TextDocuments,
    study: PersonasStudy,
    english: Mapping[str, int],
    model: str,
    number: int,
    texts: Sequence[TextDocument],
    names: frozenset[str],
) -> list[WordList]:
    compared = [text for text in texts if text.instruction_id in (number, NO_INSTRUCTION)]
    counts, words = documents.tokens.counts(), documents.tokens.words
    return word_lists(
        counts[[text.place for text in compared]],
        words=words,
        genders=["female" if text.instruction_id == number else "male" for text in compared],
        # An occupation and its template have as many texts under the instruction as without it.
        strata=[f"{text.occupation}\n{text.template_id}" for text in compared],
        english=np.array([english.get(word, 0) for word in words], dtype=np.float64),
        seed=study.seed,
        row_key=[model, "instruction", str(number)],
        prior=prior_of(study),
        n_shuffles=study.permutations,
        left_out=says_gender(words, names),
    )


def _rows(marked_list: WordList, model: str, number: int, form: str) -> Iterator[Row]:
    kept = [marked for marked in marked_list.words if not is_pronoun(marked.word)]
    for rank, marked in enumerate(kept, start=1):
        yield {
            "model": model,
            "setting": "plain",
            "prompt_form": form,
            "instruction_id": number,
            "marked_for": MARKED_FOR[marked_list.gender],
            "method": marked_list.method,
            **asdict(replace(marked, rank=rank)),
            "is_gender_word": is_gender_word(marked.word),
            **{name: getattr(marked_list, name) for name in BEYOND},
        }
