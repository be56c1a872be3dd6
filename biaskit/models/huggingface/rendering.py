"""From a prompt to token ids: chat template, the leading BOS, and the boundary before each target word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from jinja2 import meta
from transformers.utils.chat_template_utils import _compile_jinja_template

from biaskit.common.foreign import visible
from biaskit.errors import ModelError, TokenizationError
from biaskit.models.conversation import messages_of
from biaskit.models.matching import starts_new_word
from biaskit.models.thoughts import MARKS, SWITCHES, Thinking, closing, opened_by
from biaskit.models.token_trie import TokenIds, shared_length
from biaskit.records import TEMPLATE_DATE, Prompt, TargetWord

SENTINEL = "Sentinel7"
MARK_TOKENS = 16  # that hold a mark of thoughts, however it is split
ANCHOR_TOKENS = 8  # prompt tokens decoded before an answer, so that it keeps its leading space
CLOCK = "strftime_now"  # the function that a chat template calls for today's date


LeftOut = tuple[tuple[str, str], ...]
"""(group, text) of forms that are not scored: equal to another in this model's tokens, or not writable."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """One scored form: its target word's group, its text with word boundary, its token ids."""

    group: str
    text: str
    ids: TokenIds


class Renderer:
    """A tokenizer that renders and encodes prompts, and the abilities of its chat template."""

    def __init__(
        self, tokenizer: Any, template_date: str = TEMPLATE_DATE, thinking: Thinking = "auto"
    ) -> None:
        self.tokenizer = tokenizer
        self.lead = _leading_special_tokens(tokenizer)
        begins = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        self.start = self.lead or tuple(i for i in begins if i is not None)[:1]  # of a text after nothing
        self.has_template = bool(getattr(tokenizer, "chat_template", None))
        self._source = _template_source(tokenizer) if self.has_template else ""
        self._date = template_date
        self.reads_clock = CLOCK in self._source  # a template can only call names in its source
        self._thinking = thinking
        self._switch = _switch_of(self._source)
        of_template = [pair for pair in MARKS if pair[0] in self._source or pair[1] in self._source]
        of_tokens = [pair for pair in MARKS if _is_token(pair[0], tokenizer)]
        self._marks = next(iter(of_template or of_tokens), None)
        added = {i: token.content for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        special = added | dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True))
        of_marks = "".join((*map("".join, MARKS), "<|start|>", "<|end|>"))
        self._special = {i for i, text in special.items() if text not in of_marks}
        self.thinks = self.has_template and (self._marks or self._switch) is not None  # it may, at least
        try:
            asked = [{"role": "system", "content": SENTINEL}, {"role": "user", "content": "Hello"}]
            self.takes_system = self.has_template and SENTINEL in self._template(asked)
        except ModelError:  # a template may refuse a role in any way
            self.takes_system = False
        self.own_system = self._own_system()
        self.misread: dict[str, str | None] = {}  # form → as its tokens read, None: unknown to the tokenizer

    def _template(self, messages: list[dict[str, str]]) -> str:
        """Render a conversation up to where its answer begins, in transformers' own sandbox of jinja2."""
        if not self.has_template:
            raise ModelError("the model has no chat template. Use --prompt-format raw.")
        try:
            how: dict[str, Any] = {"add_generation_prompt": True}
            if self._switch and self._thinking in SWITCHES[self._switch]:
                how[self._switch] = SWITCHES[self._switch][self._thinking]
            if not self.reads_clock:
                how |= {"chat_template": self._source, "tokenize": False}
                return str(self.tokenizer.apply_chat_template(messages, **how))
            # Through `apply_chat_template`, a clock would reach the template as the text "<function>".
            how |= {"strftime_now": datetime.fromisoformat(self._date).strftime}
            how |= {"messages": messages, "tools": None, "documents": None}
            return str(_compile_jinja_template(self._source).render(self.tokenizer.special_tokens_map, **how))
        except Exception as error:  # foreign code may raise anything
            why = visible(str(error) or type(error).__name__, longest=300)
            raise ModelError(f"the model's chat template refuses this conversation: {why}") from error

    def _own_system(self) -> str:
        """Read what the chat template says before a first question where no system prompt is given."""
        question = {"role": "user", "content": SENTINEL}
        turns = [question, {"role": "assistant", "content": "§"}, question]
        try:
            texts = [self._template(turns[:1]).split(SENTINEL)[-2], self._template(turns).split(SENTINEL)[1]]
        except (ModelError, IndexError):  # no template, or one that refuses a second question
            return ""
        special = map(str, self.tokenizer.added_tokens_decoder.values())
        for mark in (*self.tokenizer.all_special_tokens, *special):
            texts = [text.replace(mark, " ") for text in texts]
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(*map(reversed, texts), strict=False))
        own = texts[0][: len(texts[0]) - sum(1 for _ in alike)]
        return own.strip().removeprefix("system").strip()

    def render(self, prompt: Prompt) -> str:
        """Render a prompt as the string whose continuation is scored."""
        if prompt.prompt_format in ("raw", "completion", "sentence"):
            return prompt.text
        head = self._template(messages_of(prompt, takes_system=self.takes_system))
        opened = self.opened(prompt, head)
        if self._thinking == "off" and self._marks and (opened or not self._switch):
            head, opened = head + closing(opened, self._marks), ""
        if prompt.prefill and (opened or (self.thinks and self._thinking == "on")):
            raise ModelError(
                "a given beginning of the answer leaves no place for thoughts: use --prompt-format"
                " chat-continue, or --set thinking=off"
            )
        return head + prompt.prefill

    def opened(self, prompt: Prompt, rendered: str) -> str:
        """Return the mark of the thought inside which a rendered prompt ends; empty if there is none."""
        if prompt.prompt_format in ("raw", "completion", "sentence"):
            mark = opened_by(rendered)
            return mark if rendered.rstrip().endswith(mark) else ""
        asked = prompt.text.strip()[-40:]  # what follows it is what the template writes of an answer
        return opened_by(rendered.rpartition(asked)[2] if asked in rendered and asked else rendered[-100:])

    def marked(self, ids: Sequence[int]) -> str:
        """Decode tokens of an answer with those special tokens that are marks of thoughts."""
        kept = [i for i in ids if i not in self._special]
        options = {"clean_up_tokenization_spaces": False, "spaces_between_special_tokens": False}
        return str(self.tokenizer.decode(kept, skip_special_tokens=False, **options))

    def turn_ends(self) -> tuple[int, ...]:
        """Return the special token that the chat template writes after an answer; empty if there is none."""
        turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": SENTINEL}]
        if not self.has_template or _is_token("<|channel|>", self.tokenizer):
            return ()  # beside channels <|end|> ends a thought as well as an answer
        try:
            after = self._template(turns).rpartition(SENTINEL)[2].lstrip()
        except ModelError:
            return ()
        ids = self.tokenizer(after, add_special_tokens=False)["input_ids"][:1]
        special = {*self.tokenizer.all_special_ids, *self.tokenizer.added_tokens_decoder}
        return tuple(i for i in ids if i in special)

    def encode(self, texts: Sequence[str]) -> list[TokenIds]:
        """Encode rendered strings, each after exactly the BOS that the tokenizer puts before plain text."""
        try:
            bare = self.tokenizer(
                list(texts),
                add_special_tokens=False,
                return_attention_mask=False,
                padding=False,  # stated, since a tokenizer.json may pad and cut by itself
                truncation=False,
                verbose=False,
            )["input_ids"]
        except (UnicodeEncodeError, TypeError) as error:
            raise TokenizationError(
                "the text has a lone surrogate, which no tokenizer can encode: correct the name"
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
        texts: Sequence[tuple[TargetWord, str]],
        joint: Sequence[TokenIds],
    ) -> tuple[tuple[Continuation, ...], LeftOut]:
        """Return the target words' ids after one prompt, cut from the ids of (prompt + target word).

        Forms of one group with equal ids count once, and forms with the unknown token not at all: these are
        returned beside. Raises `TokenizationError` if a token spans the boundary, since P(target word |
        prompt) then cannot be read from these tokens, or if nothing of a group can be written.
        """
        by_ids: dict[TokenIds, Continuation] = {}
        left_out: list[tuple[str, str]] = []
        for (target_word, text), ids in zip(texts, joint, strict=True):
            added = ids[len(prompt_ids) :]
            if ids[: len(prompt_ids)] != prompt_ids or not added:
                raise TokenizationError(
                    f"the target word {text!r} does not begin at a token boundary after"
                    f" {rendered[-40:]!r}: the tokens of both together do not begin with those of the prompt"
                )
            if text not in self.misread:
                self._read_back(text, prompt_ids, added)
            if self.misread[text] is None:
                left_out.append((target_word.group, text))
                continue
            first = by_ids.setdefault(added, Continuation(target_word.group, text, added))
            if first.text != text:
                left_out.append((target_word.group, text))
            if first.group != target_word.group:
                raise TokenizationError(
                    f"the target words {first.text!r} ({first.group}) and {text!r} ({target_word.group})"
                    " are the same tokens: one probability cannot count for two groups"
                )
        written = {c.group for c in by_ids.values()}
        if lost := next(((group, text) for group, text in left_out if group not in written), None):
            raise TokenizationError(
                f"this model's tokenizer cannot write {lost[1]!r}, nor any other target word of {lost[0]!r}:"
                " it reads unknown tokens. Choose other target words"
            )
        return tuple(by_ids.values()), tuple(left_out)

    def sentences(
        self, before: str, texts: Sequence[tuple[TargetWord, str]], joint: Sequence[TokenIds]
    ) -> tuple[TokenIds, tuple[Continuation, ...]]:
        """Return the tokens that sentences share, and each sentence's tokens after them.

        Every sentence follows the token that begins a text, as in lm-evaluation-harness, also where the
        tokenizer writes none by default: a pair may differ in its first token. A token that the difference
        splits is not shared. Raises `TokenizationError` if two sentences are the same tokens, or if one has
        a token that the model does not know.
        """
        bare = [ids[len(self.lead) :] for ids in joint]
        for (_, text), ids in zip(texts, bare, strict=True):
            if self.tokenizer.unk_token_id in ids:  # None is in no ids
                raise TokenizationError(f"this model's tokenizer cannot write {text!r}")
            read = self.tokenizer.decode(ids, clean_up_tokenization_spaces=False)
            if read.strip() != (before + text).strip():
                self.misread[text] = read
        if len({*bare}) < len(bare):
            raise TokenizationError(f"this model's tokens do not tell {texts[0][1]!r} from another sentence")
        whole = [self.start + ids for ids in bare]
        n = shared_length(whole)
        rest = zip(texts, whole, strict=True)
        return whole[0][:n], tuple(Continuation(e.group, text, ids[n:]) for (e, text), ids in rest)

    def _read_back(self, text: str, prompt_ids: TokenIds, added: TokenIds) -> None:
        """Note how a form's tokens read: as it stands, as another text, or not at all (None)."""
        tokenizer, anchor = self.tokenizer, list(prompt_ids[-ANCHOR_TOKENS:])
        before = tokenizer.decode(anchor, clean_up_tokenization_spaces=False)
        after = tokenizer.decode([*anchor, *added], clean_up_tokenization_spaces=False)
        unknown = tokenizer.unk_token_id is not None and tokenizer.unk_token_id in added
        self.misread[text] = None if unknown else after.removeprefix(before)


def _template_source(tokenizer: Any) -> str:
    try:
        source = tokenizer.get_chat_template()
    except ValueError as error:
        raise ModelError(f"the model's chat template cannot be chosen: {str(error)[:300]}") from error
    if not isinstance(source, str):
        raise ModelError(f"the model's chat template is a {type(source).__name__}, not a text.")
    return source


def _switch_of(source: str) -> str | None:
    """Return the variable by which a template turns thoughts on and off, if it has one."""
    try:
        environment: Any = _compile_jinja_template(source).environment
        names = meta.find_undeclared_variables(environment.parse(source))
    except Exception:  # foreign code; a conversation will say what is wrong with it
        return None
    return next((name for name in SWITCHES if name in names), None)


def _is_token(text: str, tokenizer: Any) -> bool:
    return tokenizer.convert_tokens_to_ids(text) not in (None, tokenizer.unk_token_id)


def _leading_special_tokens(tokenizer: Any) -> TokenIds:
    """Return the ids that the tokenizer puts before plain text by default: none, or one BOS."""
    with_special = tuple(tokenizer("a")["input_ids"])
    bare = tuple(tokenizer("a", add_special_tokens=False)["input_ids"])
    for i in range(len(with_special) - len(bare) + 1):
        if with_special[i : i + len(bare)] == bare:
            return with_special[:i]
    return ()


def boundary_vocabulary(tokenizer: Any, size: int) -> list[bool]:
    """Return for each token id whether it ends the word before it (methods/probabilities#word-end)."""
    anchor = tokenizer("a", add_special_tokens=False)["input_ids"]
    shown = tokenizer.decode(anchor)
    special = set(tokenizer.all_special_ids)
    n_texts = min(size, len(tokenizer))
    texts = tokenizer.batch_decode([[*anchor, i] for i in range(n_texts)], clean_up_tokenization_spaces=False)
    ends = [i in special or starts_new_word(text[len(shown) :]) for i, text in enumerate(texts)]
    return ends + [True] * (size - n_texts)  # padding rows of the embedding have no text
