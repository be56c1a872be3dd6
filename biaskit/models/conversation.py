"""A prompt as messages, and the word boundary before its continuation; the same for every backend."""

from __future__ import annotations

from biaskit.errors import ModelError, TokenizationError
from biaskit.records import Prompt, ScoreRequest, TargetWord

CONTINUE_TEXT = "Continue the following text with its next word. Answer with that word only."
"""The user turn of `chat-continue` begins with this; ours (methods/prompts#prompt-formats)."""


def messages_of(prompt: Prompt, *, takes_system: bool) -> list[dict[str, str]]:
    """Return role and content of every turn of a chat prompt, without the beginning of the answer.

    A system prompt is never dropped or moved: raises `ModelError` if the model has no system role.
    A dialogue's opening line goes into the system message, or begins the first user turn without one.
    """
    system = [text for text in (prompt.system, prompt.preamble) if text is not None]
    turns: list[dict[str, str]] = []
    for turn in prompt.turns:
        turns.append({"role": "user", "content": turn.question})
        turns.append({"role": "assistant", "content": turn.answer})
    text = f"{CONTINUE_TEXT}\n\n{prompt.text}" if prompt.prompt_format == "chat-continue" else prompt.text
    turns.append({"role": "user", "content": text})
    if prompt.system is not None and not takes_system:
        raise ModelError("the model's chat template takes no system role; leave out the system prompt")
    if prompt.preamble and not takes_system:
        turns[0]["content"] = f"{prompt.preamble}\n{turns[0]['content']}"
        system = []
    return ([{"role": "system", "content": "\n".join(system)}] if system else []) + turns


def forms_of(request: ScoreRequest, before: str) -> tuple[tuple[TargetWord, str], ...]:
    """Return each target word in every form that can follow the text `before`, word boundary included.

    The word boundary belongs to the continuation: after text it is one space. At the start of an
    assistant turn the first word has none, and the form with a space is scored beside it. A sentence that
    follows nothing has none either.
    """
    prompt_format, prefill = request.prompt.prompt_format, request.prompt.prefill
    begins = prompt_format == "chat-prefill" and not prefill
    starts_turn = begins or prompt_format in ("chat", "chat-continue")
    if not starts_turn and before != before.rstrip():
        raise TokenizationError(
            "the prompt ends in white space, so a target word's own space would be a second one:"
            " end the template in a letter or a punctuation mark"
        )
    spaces: tuple[str, ...] = (" ",)
    if starts_turn:
        spaces = ("", " ")
    elif prompt_format == "sentence" and not before:
        spaces = ("",)
    return tuple((e, space + e.text) for e in request.target_words for space in spaces)
