"""From a prompt to token ids: the chat template, the leading BOS, and the boundary to each expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from biaskit.errors import ModelError, TokenizationError
from biaskit.models.conversation import messages_of
from biaskit.models.huggingface.endings import endings_of
from biaskit.models.huggingface.template import ChatTemplate, TemplateRefused
from biaskit.models.matching import starts_new_word
from biaskit.models.token_trie import TokenIds
from biaskit.records import TEMPLATE_DATE, Expression, Prompt

_WAY = {
    "__call__": "transformers.tokenization_utils_base",
    "_encode_plus": "transformers.tokenization_utils_tokenizers",
}
"""Where the methods are defined by which transformers 5 calls the tokenizers library."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """One scored form: the expression it belongs to, its text with word boundary, its token ids."""

    group: str
    text: str
    ids: TokenIds


class Renderer:
    """One tokenizer: renders prompts, encodes them, and knows what its chat template takes."""

    def __init__(self, tokenizer: Any, template_date: str = TEMPLATE_DATE) -> None:
        self.tokenizer = tokenizer
        self.lead = _leading_special_tokens(tokenizer)
        self.has_template = bool(getattr(tokenizer, "chat_template", None))
        self.template = _chat_template(tokenizer, template_date) if self.has_template else None
        self.takes_system = self.has_template and self._reaches("system")

    def _reaches(self, role: str) -> bool:
        """Whether a message of this role comes out of the template at all."""
        probe = "Sentinel7"
        try:
            return probe in self._template(
                [{"role": role, "content": probe}, {"role": "user", "content": "Hello"}]
            )
        except (TemplateRefused, ModelError):  # a template refuses a role in any way, or never ends
            return False

    def _template(self, messages: Sequence[dict[str, str]]) -> str:
        if self.template is None:
            raise ModelError("the model has no chat template. Use --prompt-form raw.")
        return self.template.render(messages)

    def render(self, prompt: Prompt) -> str:
        """The string whose continuation is scored."""
        if prompt.form in ("raw", "completion"):
            return prompt.text
        try:
            return self._template(messages_of(prompt, takes_system=self.takes_system)) + prompt.prefill
        except TemplateRefused as error:
            raise ModelError(f"the model's chat template refuses this conversation: {error}") from error

    def encode(self, texts: Sequence[str]) -> list[TokenIds]:
        """Token ids of rendered strings: exactly the BOS that the tokenizer puts before plain text."""
        try:
            bare = _bare_ids(self.tokenizer, list(texts))
        except (UnicodeEncodeError, TypeError) as error:
            raise TokenizationError(
                "the text holds a lone surrogate, which no tokenizer can encode: correct the name"
            ) from error
        return [self._with_lead(tuple(ids)) for ids in bare]

    def _with_lead(self, ids: TokenIds) -> TokenIds:
        # A chat template often writes the BOS itself; a second one shifts every probability.
        while self.lead and ids[: len(self.lead)] == self.lead:
            ids = ids[len(self.lead) :]
        return self.lead + ids

    def endings(self) -> Callable[[str], str] | None:
        """What finds the ending of a prompt that its expressions depend on; None where it is not known."""
        return endings_of(self.tokenizer.backend_tokenizer) if _is_quick(self.tokenizer) else None

    def continuations(
        self,
        rendered: str,
        prompt_ids: TokenIds,
        texts: Sequence[tuple[Expression, str]],
        joint: Sequence[TokenIds],
    ) -> tuple[Continuation, ...]:
        """The expressions' own ids after one prompt, from the ids of (prompt + expression).

        Raises `TokenizationError` where a token spans the boundary, so that P(expression | prompt)
        could not be read off this tokenization.
        """
        found: dict[TokenIds, Continuation] = {}
        for (expression, text), ids in zip(texts, joint, strict=True):
            own = ids[len(prompt_ids) :]
            if ids[: len(prompt_ids)] != prompt_ids or not own:
                raise TokenizationError(
                    f"the expression {text!r} does not begin at a token boundary after"
                    f" {rendered[-40:]!r}: the tokens of both together do not begin with those of the prompt"
                )
            known = found.setdefault(own, Continuation(expression.group, text, own))
            if known.group != expression.group:
                raise TokenizationError(
                    f"the expressions {known.text!r} ({known.group}) and {text!r} ({expression.group})"
                    " are the same tokens: one probability cannot count for two groups"
                )
        return tuple(found.values())


def _bare_ids(tokenizer: Any, texts: list[str]) -> list[Sequence[int]]:
    """Token ids without special tokens.

    Offsets and masks of the usual way take almost half of its time, and long plans have millions of texts.
    The first text goes that way, which sets truncation, padding and special tokens for the others too.
    """
    usual: dict[str, Any] = {"add_special_tokens": False, "return_attention_mask": False, "verbose": False}
    if not _is_quick(tokenizer):
        return list(tokenizer(texts, **usual)["input_ids"])
    first = list(tokenizer(texts[:1], **usual)["input_ids"])
    quick = tokenizer.backend_tokenizer.encode_batch_fast
    return first + [encoding.ids for encoding in quick(texts[1:], add_special_tokens=False)]


def _is_quick(tokenizer: Any) -> bool:
    """Whether the tokenizers library does all of the encoding: the class has no way of its own."""
    quick = hasattr(getattr(tokenizer, "backend_tokenizer", None), "encode_batch_fast")
    own = {getattr(getattr(type(tokenizer), name, None), "__module__", "") for name in _WAY}
    return quick and own == set(_WAY.values())


def _chat_template(tokenizer: Any, date: str) -> ChatTemplate:
    """The tokenizer's template, with its special tokens as the variables that templates know them by."""
    try:
        source = tokenizer.get_chat_template()
    except ValueError as error:
        raise ModelError(f"the model's chat template cannot be chosen: {str(error)[:300]}") from error
    if not isinstance(source, str):
        raise ModelError(f"the model's chat template is no text but a {type(source).__name__}.")
    return ChatTemplate(source, tokenizer.special_tokens_map, date)


def _leading_special_tokens(tokenizer: Any) -> TokenIds:
    """What the tokenizer puts before plain text by default: nothing or one BOS."""
    with_special = tuple(tokenizer("a")["input_ids"])
    bare = tuple(tokenizer("a", add_special_tokens=False)["input_ids"])
    starts = range(len(with_special) - len(bare) + 1)
    return next((with_special[:i] for i in starts if with_special[i : i + len(bare)] == bare), ())


def boundary_vocabulary(tokenizer: Any, size: int) -> list[bool]:
    """Whether each token id ends the word before it (`word_boundary = word`, docs/methods.md#word-end)."""
    anchor = tokenizer("a", add_special_tokens=False)["input_ids"]
    shown = tokenizer.decode(anchor)
    special = set(tokenizer.all_special_ids)
    known = min(size, len(tokenizer))
    texts = tokenizer.batch_decode([[*anchor, i] for i in range(known)], clean_up_tokenization_spaces=False)
    ends = [i in special or starts_new_word(text[len(shown) :]) for i, text in enumerate(texts)]
    return ends + [True] * (size - known)  # Padding rows of the embedding carry no text.
