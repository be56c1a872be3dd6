"""Statistics of personas on plain lists, without a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from biaskit.arguments import TEXTS, checked
from biaskit.common.plain import attributes
from biaskit.common.wording import short
from biaskit.corpora.loaders import english_counts
from biaskit.errors import UsageError
from biaskit.measures.personas.texts.copies import shingles_of, units
from biaskit.measures.personas.texts.gender_codes import GenderCodes
from biaskit.measures.personas.texts.names import says_gender
from biaskit.measures.personas.texts.tokens import TokenisedTexts
from biaskit.measures.personas.words.lists import word_lists
from biaskit.measures.personas.words.log_odds import Prior, counts_in

if TYPE_CHECKING:
    import pandas as pd


@checked(texts=TEXTS, gender=TEXTS, prompt=TEXTS)
def marked_words(
    texts: Sequence[str],
    gender: Sequence[str],
    *,
    method: Literal["calibrated", "marked-personas"] = "calibrated",
    prompt: Sequence[str] | None = None,
    prior: Prior | None = None,
    tokenizer: Literal["papers", "words"] = "papers",
    permutations: int = 199,
    seed: int = 1,
) -> pd.DataFrame:
    """Find the words that mark women's texts against men's, and the reverse.

    >>> said = ["calm and warm", "warm and kind", "tall and loud", "loud and bold"] * 5
    >>> prompt = [f"prompt {i // 4}" for i in range(20)]
    >>> found = bk.marked_words(said, ["F", "F", "M", "M"] * 5, prompt=prompt, method="marked-personas")
    >>> found[["gender", "word", "z"]].round(1).values.tolist()
    [['female', 'warm', 2.1], ['male', 'loud', 2.1]]

    Args:
        texts, gender: a list of texts and the gender of each: female, male, nonbinary or a code of files (F,
            w, man, NB, …); with non-binary texts each gender is also compared with both others (against all).
        method: calibrated (Calibrated Marked Words, hybrid Brown prior; of copies in one prompt one of each
            gender counts) or marked-personas (every text counts).
        prompt: what each text answers; the permutation baseline shuffles genders within it.
        prior: alpha and constants of the calibrated method; by default alpha 0.15, as in GAS(P).
        tokenizer: papers, the letters a-z alone; words, Unicode words with their hyphens.
        permutations, seed: of the shuffles.

    Returns one row per word: gender, against, rank, word, z (positive: marks `gender`), q_value,
    count_target, count_unmarked, documents_target, documents_unmarked, list_p_value (of the list's length),
    is_gender_word, list_p_value_beyond (without gendered words). A list that is undefined has no rows. Raises
    `UsageError` where lengths differ or a gender is unknown.
    """
    import pandas as pd

    if len(texts) != len(gender):
        raise UsageError("marked_words takes a list of texts and a list of their genders, equally long.")
    if prior is not None and not isinstance(prior, Prior):
        raise UsageError(f"prior is {short(repr(prior))}: give a Prior, or leave it out.")
    # A gender that is unknown or not requested has no place in a comparison.
    codes = GenderCodes()
    if unknown := sorted({code for code in map(str, gender) if code not in codes or codes[code] is None}):
        raise UsageError(f"Gender {unknown[0]!r} is not known: write female, male or nonbinary.")
    genders = [str(codes[str(code)]) for code in gender]
    if prompt is not None and len(prompt) != len(texts):
        raise UsageError("prompt has another length than texts: give one for each text.")
    tokens = TokenisedTexts.build(texts, tokenizer)
    prompts = list(prompt) if prompt is not None else [""] * len(texts)
    unit = list(range(len(texts)))
    if method == "calibrated":  # the scripts of Marked Personas count every text
        unit = units(list(map(shingles_of, texts)), prompts)
    first_of: dict[tuple[int, str], int] = {}
    for i, of_text in enumerate(zip(unit, genders, strict=True)):
        first_of.setdefault(of_text, i)
    kept = list(first_of.values())
    words, english = tokens.words, counts_in(english_counts("table"), tokens.words)
    of_kept, within = [genders[i] for i in kept], [prompts[i] for i in kept]
    how: Any = {"seed": seed, "prior": prior or Prior(), "methods": (method,), "n_shuffles": permutations}
    how |= {"row_key": ("", "", ""), "left_out": says_gender(words, ())}
    lists = word_lists(tokens.counts[kept], words, of_kept, within, english, **how)
    rows = []
    for word_list in lists:
        of_list = attributes(word_list, ("gender", "against"))
        of_list |= {"list_p_value": word_list.p_value, "list_p_value_beyond": word_list.p_value_beyond}
        rows += [of_list | marked.row() for marked in word_list.words]
    columns = ["gender", "against", "rank", "word", "z", "q_value", "count_target", "count_unmarked"]
    columns += ["documents_target", "documents_unmarked"]
    columns += ["list_p_value", "is_gender_word", "list_p_value_beyond"]
    return pd.DataFrame(rows, columns=columns)
