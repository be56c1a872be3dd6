"""What `bk.score_continuations` does: log-probabilities of continuations, of no study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Unpack

from biaskit.arguments import checked
from biaskit.common.provenance import key_of
from biaskit.errors import ModelError, UsageError
from biaskit.models.options import LocalOptions, ScoringOptions, WordBoundary
from biaskit.models.spec import open_scorer
from biaskit.records import Failed, Prompt, ScoreRequest, TargetWord
from biaskit.runs.start import LocalArguments, stated

if TYPE_CHECKING:
    import pandas as pd


@checked(LocalArguments)
def score_continuations(
    model: str,
    prompts: Sequence[str],
    target_words: Mapping[str, Sequence[str]] | Sequence[str],
    *,
    word_boundary: WordBoundary = "token",
    **options: Unpack[LocalArguments],
) -> pd.DataFrame:
    """Score each continuation of each prompt: exact natural log-probabilities.

    >>> from pathlib import Path
    >>> _ = Path("model.jsonl").write_text('{"log_probs": {" she": -0.7, " he": -1.2}}')
    >>> scored = bk.score_continuations("scripted:model.jsonl", ["The nurse said that"], ["she", "he"])
    >>> scored[["target_word", "log_prob"]].values.tolist()
    [[' she', -0.7], [' he', -1.2]]

    Args:
        model: a spec such as `demo` or `hf:ORG/NAME`.
        prompts: raw text without a space at the end: the space belongs to the continuation.
        target_words: the continuations, a list, or a dict of gender group and list.
        word_boundary: token, a space before each continuation as in the papers; word, times the probability
            that the word ends there.

    Returns one row per prompt and continuation, in the order given: prompt_index (from 0), prompt, group (""
    for a list), target word (with its space), log_prob (at most 0). Raises `ModelError` where the model
    cannot score a prompt.
    """
    import pandas as pd

    listed = target_words if isinstance(target_words, Mapping) else {"": target_words}
    for texts in (prompts, *listed.values()):
        if isinstance(texts, str):
            raise UsageError(f"{texts!r} is one text where a list is wanted: write [{texts!r}].")
    wanted: tuple[TargetWord, ...] = tuple(
        TargetWord(group, text) for group, texts in listed.items() for text in texts
    )
    if not len(prompts) or not wanted:
        raise UsageError("Give at least one prompt and one target word.")
    requests = [ScoreRequest(key_of([i, text]), Prompt(text), wanted) for i, text in enumerate(prompts)]
    local, scoring = LocalOptions(**stated(**options)), ScoringOptions(word_boundary=word_boundary)
    with closing(open_scorer(model, label=model, local=local, scoring=scoring)) as scorer:
        plan = scorer.plan_scores(requests)
        answers = {answer.key: answer for group in scorer.score(plan.batches) for answer in group}
    rows = []
    for i, (request, prompt) in enumerate(zip(requests, prompts, strict=True)):
        answer = answers[request.key]
        if isinstance(answer, Failed):
            raise ModelError(f"{model} cannot score prompt {i}: {answer.reason}.")
        rows += [(i, prompt, e.group, e.text, e.high) for e in answer.log_probs]
    return pd.DataFrame(rows, columns=["prompt_index", "prompt", "group", "target_word", "log_prob"])
