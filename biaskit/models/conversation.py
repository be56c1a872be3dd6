"""A prompt as messages, and the word boundary to what follows it; the same for every backend."""

from __future__ import annotations

from biaskit.errors import ModelError, TokenizationError
from biaskit.records import Expression, Prompt, ScoreRequest

CONTINUE_TEXT = "Continue the following text with its next word. Answer with that word only."
"""The user turn of `chat-continue` begins with this; ours (docs/methods.md#prompt-forms)."""


def messages_of(prompt: Prompt, *, takes_system: bool) -> list[dict[str, str]]:
    """Role and content of every turn of a chat prompt, without the beginning of the answer.

    A system prompt is never dropped or moved: a model without a place for it is refused with `ModelError`.
    The dialogue's opening line goes there too, or begins the first user turn.
    """
    system = [text for text in (prompt.system, prompt.preamble) if text]
    turns: list[dict[str, str]] = []
    for turn in prompt.turns:
        turns.append({"role": "user", "content": turn.question})
        turns.append({"role": "assistant", "content": turn.answer})
    text = f"{CONTINUE_TEXT}\n\n{prompt.text}" if prompt.form == "chat-continue" else prompt.text
    turns.append({"role": "user", "content": text})
    if prompt.system and not takes_system:
        raise ModelError("the model's chat template takes no system role; leave out the system prompt")
    if prompt.preamble and not takes_system:
        turns[0]["content"] = f"{prompt.preamble}\n{turns[0]['content']}"
        system = []
    return ([{"role": "system", "content": "\n".join(system)}] if system else []) + turns


def starts_turn(prompt: Prompt) -> bool:
    """Whether what follows begins an assistant turn: then an expression needs no space before it."""
    return prompt.form in ("chat", "chat-continue") or (prompt.form == "chat-prefill" and not prompt.prefill)


def join_continuation(prompt: str, expression: str, *, turn_start: bool) -> tuple[str, ...]:
    """The forms in which `expression` can follow `prompt`, word boundary included.

    The word boundary belongs to the continuation: after text it is one space. At the start of an
    assistant turn the first word has none, and the form with a space is scored beside it.
    """
    if turn_start:
        return (expression, " " + expression)
    if prompt != prompt.rstrip():
        raise TokenizationError(
            "the prompt ends in white space, so the expression's own space would be a second one:"
            " end the template in a letter or a punctuation mark"
        )
    return (" " + expression,)


def forms_of(request: ScoreRequest, before: str) -> list[tuple[Expression, str]]:
    """Every form of every expression of a request that can follow the text `before`."""
    turn_start = starts_turn(request.prompt)
    return [
        (expression, text)
        for expression in request.expressions
        for text in join_continuation(before, expression.text, turn_start=turn_start)
    ]
