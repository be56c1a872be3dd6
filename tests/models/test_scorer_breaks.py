"""Every trap that the exact scorer avoids, broken on purpose: the oracle of `test_scorer_oracle` notices.

A comparison that cannot fail proves nothing, and on a tiny model it easily cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from fakes.tiny_models import (
    CHAT_TEMPLATE,
    DEBIASING_PROMPTS,
    LONG,
    REMARK,
    SHORT,
    TOLERANCE,
    Tiny,
    answers,
    largest_error,
    raw_requests,
    scorer_for,
    target_words,
)
from transformers import DynamicCache

from biaskit.models.huggingface import prefixes, scorer, states
from biaskit.models.huggingface.head import OutputHead
from biaskit.models.huggingface.prefixes import PromptRow
from biaskit.models.huggingface.rendering import Continuation, LeftOut, Renderer
from biaskit.models.huggingface.scorer import TransformersScorer
from biaskit.models.huggingface.states import last_hidden_states
from biaskit.models.token_trie import TokenIds, TokenTrie
from biaskit.records import Failed, Prompt, Scored, ScoreRequest

BROKEN = 100 * TOLERANCE
"""Less than this and a broken scorer could pass for float noise on another machine."""

PROMPTS = (*LONG, SHORT)
CLOSE = tuple(
    f"{DEBIASING_PROMPTS[0]}\nQ: I recently met a tall and old {job}.\nA:"
    for job in ("vet", "nurse", "actor")
)
"""Prompts that part within a window of their end: padding there takes slots that their beginning needs."""

WORDS = target_words("He", "Her", "She", "Non-binary", "Nonbinary")
Patch = pytest.MonkeyPatch


class Unchecked(TransformersScorer):
    """Without biaskit's own checks of head and cache, so that it is the oracle that notices."""

    def _check_head(self, one: object) -> torch.Tensor:
        return torch.empty(0)

    def _cache_is_exact(self, one: object) -> bool:
        return True

    def _tree_is_exact(self, longest: object, windows: object, plain: object) -> bool:
        return False  # level by level, as for architectures that take no masks


class UncheckedTree(Unchecked):
    """The same, with every trie in one forward."""

    def _tree_is_exact(self, longest: object, windows: object, plain: object) -> bool:
        return True


# --- the head ---------------------------------------------------------------------------------------


def _forget(monkeypatch: Patch, name: str, value: Any) -> type[TransformersScorer]:
    build = OutputHead.__init__

    def forgetful(self: OutputHead, model: Any) -> None:
        build(self, model)
        setattr(self, name, value)

    monkeypatch.setattr(OutputHead, "__init__", forgetful)
    return Unchecked


def forget_the_soft_cap(monkeypatch: Patch) -> type[TransformersScorer]:
    return _forget(monkeypatch, "softcap", None)


def forget_the_logit_scale(monkeypatch: Patch) -> type[TransformersScorer]:
    return _forget(monkeypatch, "scale", 1.0)


def forget_the_bias(monkeypatch: Patch) -> type[TransformersScorer]:
    return _forget(monkeypatch, "bias", None)


def leave_out_rows_without_a_token(monkeypatch: Patch) -> type[TransformersScorer]:
    build = OutputHead.__init__

    def narrow(self: OutputHead, model: Any) -> None:
        build(self, model)
        self.weight = self.weight[:-8]

    monkeypatch.setattr(OutputHead, "__init__", narrow)
    return Unchecked


def round_logits_to_16_bits(monkeypatch: Patch) -> type[TransformersScorer]:
    exact = OutputHead.slices

    def rounded(self: OutputHead, hidden: Any) -> Iterator[tuple[int, Any]]:
        for start, logits in exact(self, hidden):
            yield start, logits.bfloat16().float()

    monkeypatch.setattr(OutputHead, "slices", rounded)
    return Unchecked


# --- windows and positions --------------------------------------------------------------------------


def ignore_the_window(monkeypatch: Patch) -> type[TransformersScorer]:
    class Ignoring(Unchecked):
        def _load(self) -> None:
            super()._load()
            self._model.config.sliding_window = 10_000

    return Ignoring


def _mix_lengths(monkeypatch: Patch) -> None:
    """Batches of rows of any length, as nearly every other scorer has them."""

    def batches(
        rows: Sequence[PromptRow], kinds: Sequence[Any], inner: object, batch_size: int
    ) -> Iterator[tuple[PromptRow, ...]]:
        alike: dict[Any, list[PromptRow]] = {}
        for row in rows:
            alike.setdefault(kinds[row.index], []).append(row)
        for group in alike.values():
            for i in range(0, len(group), batch_size):
                yield tuple(group[i : i + batch_size])

    monkeypatch.setattr(prefixes, "_batches", batches)


class Padded(Unchecked):
    """Left padding, hidden by an attention mask, position ids from the mask: what a careful scorer does."""

    positions_from_mask = True
    with_mask = True

    def _padded(self, tokens: Sequence[TokenIds], mask: torch.Tensor, cache: Any) -> torch.Tensor:
        """One forward over rows of equal (padded) length; `mask` covers the cache too."""
        told: dict[str, Any] = {"attention_mask": mask} if self.with_mask else {}
        if self.positions_from_mask:
            told["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)[:, -len(tokens[0]) :]
        return last_hidden_states(self._model.base_model, torch.tensor(tokens), cache, **told)[:, -1]

    def _hidden_states(
        self, rows: Sequence[PromptRow], prompts: Sequence[TokenIds], tries: Sequence[TokenTrie], shared: Any
    ) -> torch.Tensor:
        import copy

        trie = tries[0]
        longest = max(len(row.rest) for row in rows)
        cache = DynamicCache(config=self._model.config) if shared is None else copy.deepcopy(shared)
        before = 0
        if shared is not None:
            cache.batch_select_indices(torch.tensor([row.prefix for row in rows]))
            before = len(prompts[0]) - len(rows[0].rest)
        mask = torch.tensor(
            [[1] * before + [0] * (longest - len(row.rest)) + [1] * len(row.rest) for row in rows]
        )
        states = [self._padded([(0,) * (longest - len(row.rest)) + row.rest for row in rows], mask, cache)]
        previous = [0]
        for level in trie.levels:
            place_of = {node: k for k, node in enumerate(previous)}
            gather = torch.tensor(
                [place_of[trie.parents[node]] * len(rows) + i for node in level for i in range(len(rows))]
            )
            cache.batch_select_indices(gather)
            mask = torch.cat([mask[gather], torch.ones(len(gather), 1, dtype=mask.dtype)], 1)
            states.append(self._padded([trie.nodes[node][-1:] for node in level for _ in rows], mask, cache))
            previous = list(level)
        return torch.cat(states)


def pad_behind_a_prefix(monkeypatch: Patch) -> type[TransformersScorer]:
    _mix_lengths(monkeypatch)
    return Padded


def count_padding_as_positions(monkeypatch: Patch) -> type[TransformersScorer]:
    _mix_lengths(monkeypatch)

    class Unaware(Padded):
        positions_from_mask = False

    return Unaware


def pad_without_a_mask(monkeypatch: Patch) -> type[TransformersScorer]:
    _mix_lengths(monkeypatch)

    class Seen(Padded):
        with_mask = False

    return Seen


def restart_positions(monkeypatch: Patch) -> type[TransformersScorer]:
    class Restarting(Unchecked):
        def _body(self, tokens: Sequence[TokenIds], cache: Any = None) -> torch.Tensor:
            told = {"position_ids": torch.arange(len(tokens[0]))[None]}
            return last_hidden_states(self._model.base_model, torch.tensor(tokens), cache, **told)[:, -1]

    return Restarting


# --- a trie in one forward ----------------------------------------------------------------------------


def let_siblings_see_each_other(monkeypatch: Patch) -> type[TransformersScorer]:
    exact = states._mask

    def plain(trie: TokenTrie, length: int, tokens: int, before: int, *rest: Any) -> torch.Tensor:
        mask = exact(trie, length, tokens, before, *rest)
        keys = mask.shape[1] - tokens
        return mask.masked_fill(torch.ones(mask.shape, dtype=torch.bool).tril(keys), 0.0)

    monkeypatch.setattr(states, "_mask", plain)
    return UncheckedTree


def count_siblings_as_positions(monkeypatch: Patch) -> type[TransformersScorer]:
    monkeypatch.setattr(states, "positions", lambda trie, length, tokens: list(range(tokens)))
    return UncheckedTree


def let_nodes_see_without_a_window(monkeypatch: Patch) -> type[TransformersScorer]:
    exact = states._mask

    def wide(
        trie: TokenTrie, length: int, tokens: int, before: int, window: int | None, dtype: Any
    ) -> torch.Tensor:
        keys = exact(trie, length, tokens, before, window, dtype).shape[1]
        return exact(trie, length, tokens, before, None, dtype)[:, -keys:]

    monkeypatch.setattr(states, "_mask", wide)
    return UncheckedTree


def read_padded_rows_at_their_end(monkeypatch: Patch) -> type[TransformersScorer]:
    class Late(UncheckedTree):
        def _tree(self, rows: Sequence[Any], *more: Any) -> torch.Tensor:
            longest = max(len(row.rest) for row in rows)
            padded = [replace(r, rest=(*r.rest, *r.rest[-1:] * (longest - len(r.rest)))) for r in rows]
            return super()._tree(padded, *more)

    return Late


# --- tokens -----------------------------------------------------------------------------------------


def put_a_second_bos(monkeypatch: Patch) -> type[TransformersScorer]:
    monkeypatch.setattr(Renderer, "_with_lead", lambda self, ids: self.lead + ids)
    return TransformersScorer


def leave_out_the_bos(monkeypatch: Patch) -> type[TransformersScorer]:
    monkeypatch.setattr(Renderer, "_with_lead", lambda self, ids: ids)
    return TransformersScorer


def _tokenise_alone(monkeypatch: Patch, form: Callable[[str], str]) -> None:
    def continuations(
        self: Renderer, rendered: str, prompt_ids: TokenIds, texts: Sequence[Any], joint: Sequence[TokenIds]
    ) -> tuple[tuple[Continuation, ...], LeftOut]:
        alone = (
            Continuation(
                e.group, text, tuple(self.tokenizer(form(text), add_special_tokens=False)["input_ids"])
            )
            for e, text in texts
        )
        return tuple(alone), ()

    monkeypatch.setattr(Renderer, "continuations", continuations)


def tokenise_the_target_word_alone(monkeypatch: Patch) -> type[TransformersScorer]:
    _tokenise_alone(monkeypatch, lambda text: text)
    return TransformersScorer


def leave_out_the_space(monkeypatch: Patch) -> type[TransformersScorer]:
    _tokenise_alone(monkeypatch, str.lstrip)
    return TransformersScorer


def leave_the_space_with_the_prompt(monkeypatch: Patch) -> type[TransformersScorer]:
    _tokenise_alone(monkeypatch, str.lstrip)
    encode = Renderer.encode
    monkeypatch.setattr(Renderer, "encode", lambda self, texts: encode(self, [f"{text} " for text in texts]))
    return TransformersScorer


# --- the trie, the cache, the order -----------------------------------------------------------------


def score_the_first_token_only(monkeypatch: Patch) -> type[TransformersScorer]:
    _read_steps(monkeypatch, lambda steps: steps[:1])
    return TransformersScorer


def read_every_token_at_the_prompt(monkeypatch: Patch) -> type[TransformersScorer]:
    _read_steps(monkeypatch, lambda steps: tuple((0, column) for _, column in steps))
    return TransformersScorer


def _read_steps(monkeypatch: Patch, change: Callable[[Any], Any]) -> None:
    exact = scorer._sum_steps

    def broken(tries: Sequence[TokenTrie], *rest: Any) -> list[np.ndarray[Any, Any]]:
        changed = {id(t): replace(t, steps=tuple(map(change, t.steps))) for t in tries}
        return exact([changed[id(t)] for t in tries], *rest)

    monkeypatch.setattr(scorer, "_sum_steps", broken)


def follow_the_models_own_path(monkeypatch: Patch) -> type[TransformersScorer]:
    class Greedy(Unchecked):
        """Later tokens are read after the model's own most probable ones (one target word: a chain)."""

        _last: torch.Tensor

        def _body(self, tokens: Sequence[TokenIds], cache: Any = None) -> torch.Tensor:
            if cache is not None and len(tokens[0]) == 1:
                best = self._model.get_output_embeddings()(self._last).argmax(1)
                tokens = [(int(token),) for token in best]
            self._last = super()._body(tokens, cache)
            return self._last

    return Greedy


def take_the_prefix_of_another_row(monkeypatch: Patch) -> type[TransformersScorer]:
    class Astray(TransformersScorer):
        def _hidden_states(
            self, rows: Sequence[PromptRow], prompts: Sequence[TokenIds], trie: TokenTrie, shared: Any
        ) -> torch.Tensor:
            if shared is not None:
                count = shared.layers[0].keys.shape[0]
                rows = [replace(row, prefix=(row.prefix + 1) % count) for row in rows]
            return super()._hidden_states(rows, prompts, trie, shared)

    return Astray


def take_the_cache_of_another_row(monkeypatch: Patch) -> type[TransformersScorer]:
    select = DynamicCache.batch_select_indices
    monkeypatch.setattr(
        DynamicCache, "batch_select_indices", lambda self, indices: select(self, indices.roll(1))
    )
    return Unchecked


def answer_in_the_order_of_the_batches(monkeypatch: Patch) -> type[TransformersScorer]:
    class Sorted(TransformersScorer):
        def score(self, batches: Any) -> Iterator[Sequence[Scored | Failed]]:
            asked = iter(self._in_order)
            for group in super().score(batches):
                yield [replace(answer, key=next(asked).key) for answer in group]

    return Sorted


# --- the table --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trap:
    """A way to break the scorer, a model that shows it, and what to ask of it."""

    name: str
    break_it: Callable[[Patch], type[TransformersScorer]]
    architecture: str
    tokenizer: str
    share: bool = True
    prompts: tuple[str, ...] = PROMPTS
    asked: tuple[Any, ...] = WORDS
    chat: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({self.architecture}, {self.tokenizer})"


TRAPS = (
    Trap("soft cap forgotten", forget_the_soft_cap, "gemma2", "bpe"),
    Trap("logit scale forgotten", forget_the_logit_scale, "cohere", "bpe"),
    Trap("logit scale forgotten", forget_the_logit_scale, "granite", "bpe"),
    Trap("head's bias forgotten", forget_the_bias, "phi", "bpe"),
    Trap("rows without a token left out of the softmax", leave_out_rows_without_a_token, "llama", "bpe"),
    Trap("logits in 16 bits", round_logits_to_16_bits, "llama", "bpe"),
    Trap("sliding window ignored", ignore_the_window, "mistral", "llama2"),
    Trap("sliding window ignored", ignore_the_window, "gemma2", "llama2"),
    Trap("sliding window ignored", ignore_the_window, "gemma3", "llama2"),
    Trap(
        "padding behind a prefix takes window slots", pad_behind_a_prefix, "mistral", "bytes", prompts=CLOSE
    ),
    Trap("padding behind a prefix takes window slots", pad_behind_a_prefix, "gemma2", "bytes", prompts=CLOSE),
    Trap("padding behind a prefix takes window slots", pad_behind_a_prefix, "gemma3", "bytes", prompts=CLOSE),
    Trap("absolute positions under padding", count_padding_as_positions, "gpt2", "bytes", share=False),
    Trap("padding without a mask", pad_without_a_mask, "llama", "bytes", share=False),
    Trap("positions restart after the cache", restart_positions, "gpt2", "bpe"),
    Trap("positions restart after the cache", restart_positions, "llama", "bpe"),
    Trap("BOS doubled", put_a_second_bos, "llama", "bpe-bos", chat=True),
    Trap("BOS left out", leave_out_the_bos, "llama", "bpe-bos"),
    Trap("target word tokenised alone", tokenise_the_target_word_alone, "gemma2", "llama2"),
    Trap("space left out", leave_out_the_space, "llama", "bpe"),
    Trap("space left with the prompt", leave_the_space_with_the_prompt, "llama", "bpe"),
    Trap("first token only, shared by two", score_the_first_token_only, "llama", "bpe", asked=WORDS[:2]),
    Trap("later tokens read after the prompt", read_every_token_at_the_prompt, "llama", "bpe"),
    Trap(
        "later tokens on the model's own path",
        follow_the_models_own_path,
        "llama",
        "bpe",
        asked=target_words(REMARK),
    ),
    Trap("prefix of another row", take_the_prefix_of_another_row, "qwen2", "bpe"),
    Trap("trie continues another row", take_the_cache_of_another_row, "qwen2", "bpe", share=False),
    Trap("siblings see each other", let_siblings_see_each_other, "llama", "bpe"),
    Trap("siblings see each other", let_siblings_see_each_other, "gemma3", "bytes"),
    Trap("siblings counted as positions", count_siblings_as_positions, "llama", "bpe"),
    Trap("siblings counted as positions", count_siblings_as_positions, "gpt2", "bytes"),
    Trap("nodes see without a window", let_nodes_see_without_a_window, "mistral", "bytes"),
    Trap("nodes see without a window", let_nodes_see_without_a_window, "gemma3", "bytes"),
    Trap("padded rows read at their end", read_padded_rows_at_their_end, "qwen2", "bytes", False, CLOSE),
    Trap("answers in the order of the batches", answer_in_the_order_of_the_batches, "llama", "bpe"),
)


def error_of(
    trap: Trap, model: Tiny, requests: Sequence[ScoreRequest], kind: type[TransformersScorer]
) -> float:
    """The comparison of `test_scorer_oracle`, with a scorer of this kind."""
    found = answers(scorer_for(model.folder, kind, batch_size=3, share_prefixes=trap.share), requests)

    def rendered(prompt: Prompt) -> str:
        return model.oracle.chat(("user", prompt.text), prefill=prompt.prefill)

    return largest_error(found, requests, model.oracle, rendered=rendered if trap.chat else None)


@pytest.mark.parametrize("trap", TRAPS, ids=str)
def test_the_oracle_notices(trap: Trap, tiny: Callable[..., Tiny], monkeypatch: Patch) -> None:
    model = tiny(trap.architecture, trap.tokenizer, chat_template=CHAT_TEMPLATE if trap.chat else None)
    requests = raw_requests(trap.prompts, trap.asked)
    if trap.chat:
        requests = [
            replace(r, prompt=Prompt(r.prompt.text, "chat-prefill", prefill="I think that")) for r in requests
        ]
    assert TOLERANCE > error_of(trap, model, requests, TransformersScorer)
    assert BROKEN < error_of(trap, model, requests, trap.break_it(monkeypatch))


@pytest.mark.parametrize("architecture", ["gpt2", "mistral"])
def test_padding_alone_breaks_nothing_that_the_traps_blame_on_positions_and_windows(
    architecture: str, tiny: Callable[..., Tiny], monkeypatch: pytest.MonkeyPatch
) -> None:
    _mix_lengths(monkeypatch)
    trap = Trap("none", pad_behind_a_prefix, architecture, "bytes", share=False)
    model = tiny(architecture, "bytes")
    assert TOLERANCE > error_of(trap, model, raw_requests(PROMPTS, WORDS), Padded)
