"""From a prompt to token ids: the chat template, the leading BOS, and the boundary to each expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from transformers.utils.chat_template_utils import _compile_jinja_template

from biaskit.common.foreign import visible
from biaskit.errors import ModelError, TokenizationError
from biaskit.models.conversation import messages_of
from biaskit.models.matching import starts_new_word
from biaskit.models.token_trie import TokenIds
from biaskit.records import TEMPLATE_DATE, Expression, Prompt

CLOCK = "strftime_now"
"""What a chat template calls for today's date."""


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
        self._source = _template_source(tokenizer) if self.has_template else ""
        self._date = template_date
        self.reads_clock = CLOCK in self._source  # a name that is not in the source cannot be reached by it
        self.takes_system = self.has_template and self._reaches("system")

    def _reaches(self, role: str) -> bool:
        """Whether a message of this role comes out of the template at all."""
        probe = "Sentinel7"
        try:
            return probe in self._template(
                [{"role": role, "content": probe}, {"role": "user", "content": "Hello"}]
            )
        except ModelError:  # a template refuses a role in any way
            return False

    def _template(self, messages: list[dict[str, str]]) -> str:
        """The conversation up to where its answer begins, by transformers' own sandbox of jinja2."""
        if not self.has_template:
            raise ModelError("the model has no chat template. Use --prompt-form raw.")
        try:
            if not self.reads_clock:
                return str(
                    self.tokenizer.apply_chat_template(
                        messages, chat_template=self._source, tokenize=False, add_generation_prompt=True
                    )
                )
            # Said to `apply_chat_template`, a clock would reach the template as the text "<function>".
            return str(
                _compile_jinja_template(self._source).render(
                    **self.tokenizer.special_tokens_map,
                    messages=messages,
                    tools=None,
                    documents=None,
                    add_generation_prompt=True,
                    strftime_now=datetime.fromisoformat(self._date).strftime,
                )
            )
        except Exception as error:  # foreign code: what it raises has no end
            why = visible(str(error) or type(error).__name__, longest=300)
            raise ModelError(f"the model's chat template refuses this conversation: {why}") from error

    def render(self, prompt: Prompt) -> str:
        """The string whose continuation is scored."""
        if prompt.form in ("raw", "completion"):
            return prompt.text
        return self._template(messages_of(prompt, takes_system=self.takes_system)) + prompt.prefill

    def encode(self, texts: Sequence[str]) -> list[TokenIds]:
        """Token ids of rendered strings: exactly the BOS that the tokenizer puts before plain text."""
        try:
            bare = self.tokenizer(
                list(texts),
                add_special_tokens=False,
                return_attention_mask=False,
                padding=False,  # said in full: a tokenizer.json may pad and cut by itself
                truncation=False,
                verbose=False,
            )["input_ids"]
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
        by_ids: dict[TokenIds, Continuation] = {}
        for (expression, text), ids in zip(texts, joint, strict=True):
            own = ids[len(prompt_ids) :]
            if ids[: len(prompt_ids)] != prompt_ids or not own:
                raise TokenizationError(
                    f"the expression {text!r} does not begin at a token boundary after"
                    f" {rendered[-40:]!r}: the tokens of both together do not begin with those of the prompt"
                )
            known = by_ids.setdefault(own, Continuation(expression.group, text, own))
            if known.group != expression.group:
                raise TokenizationError(
                    f"the expressions {known.text!r} ({known.group}) and {text!r} ({expression.group})"
                    " are the same tokens: one probability cannot count for two groups"
                )
        return tuple(by_ids.values())


def _template_source(tokenizer: Any) -> str:
    try:
        source = tokenizer.get_chat_template()
    except ValueError as error:
        raise ModelError(f"the model's chat template cannot be chosen: {str(error)[:300]}") from error
    if not isinstance(source, str):
        raise ModelError(f"the model's chat template is no text but a {type(source).__name__}.")
    return source


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
