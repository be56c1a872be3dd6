"""The exact scorer: one forward per prompt for all target words (methods/estimators#exact), or its top k."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from biaskit.errors import ModelError, UsageError
from biaskit.models.huggingface.folder import ModelFolder
from biaskit.models.huggingface.head import HEAD_CHECKED, ListedTokens, OutputHead, TopTokens, use_onednn
from biaskit.models.huggingface.listing import TokenTexts, as_listed, named_tokens
from biaskit.models.huggingface.prefixes import PrefixBlock, PromptRow, cut_blocks
from biaskit.models.huggingface.preparing import Prepared, name_misread, name_prefixes, prepare
from biaskit.models.huggingface.rendering import boundary_vocabulary
from biaskit.models.huggingface.states import NodeStates, Windows, nodes_of, windows_of
from biaskit.models.options import LocalOptions, ScoringOptions
from biaskit.models.thoughts import begins_thought, inside_thought
from biaskit.models.token_trie import TokenIds, TokenTrie, build_trie
from biaskit.records import Estimator, Failed, ListedToken, LogProb, Plan, PromptFormat, Scored, ScoreRequest

HEAD_TOLERANCE = {"float32": 2e-4, "bfloat16": 0.2, "float16": 0.2}
"""Largest difference from the model's own forward that is float noise; a missed scale differs by over 0.6."""
BFLOAT16_STEP = 2.0**-8
"""Relative spacing of a bfloat16 number: the model's own 16-bit logits are that coarse."""
MOST_PROMPTS = 64  # of a batch
MOST_CHECKED = 1024
"""Tokens of the longest prompt that the trie's forward is checked on: more than a window that an
architecture may not declare."""
NOT_FINITE = "the model's logits are not finite (NaN or infinite)"


class TransformersScorer(NodeStates):
    """A local causal model as a `ContinuationScorer`; weights load at the first batch."""

    purpose = "scoring"

    def __init__(
        self,
        folder: ModelFolder,
        *,
        label: str,
        spec: str,
        local: LocalOptions = LocalOptions(),
        scoring: ScoringOptions = ScoringOptions(),
    ) -> None:
        self.scoring = scoring
        self._top_k = scoring.k if scoring.estimator == "top-k" else None
        if self._top_k is not None and scoring.word_boundary == "word":
            raise UsageError(
                "top-k sees only the next token, not where a word ends: set word_boundary=token,"
                " or choose the estimator sampling or exact."
            )
        super().__init__(folder, label=label, spec=spec, local=local)
        self._texts = TokenTexts(self._renderer.tokenizer)
        self._boundary: torch.Tensor | None = None
        self._prepared: dict[str, Prepared] = {}
        self._rows_of: dict[str, tuple[PrefixBlock, tuple[PromptRow, ...]]] = {}  # by a batch's first key
        self._in_order: list[Prepared] = []
        self._ready: dict[str, list[Scored | Failed]] = {}  # the warm-up's batch

    @contextmanager
    def lent(self, batch_size: int) -> Iterator[TransformersScorer]:
        """Lend tokenizer and weights to a scorer whose plans settle nothing of this one's."""
        other = copy(self)
        other._batch_size = batch_size
        try:
            yield other
        finally:  # the weights are taken over, and checked on this one's own prompts
            self._lent, self._usual_threads = other._model, other._usual_threads

    def estimator_for(self, prompt_format: PromptFormat) -> Estimator:
        """Return `exact` in every format that the model takes, or `top-k` if that was chosen."""
        if prompt_format == "sentence" and self._top_k is not None:
            raise ModelError("top-k does not give the probability of a whole sentence: leave it out.")
        if prompt_format not in (*self.identity.formats, "sentence"):
            raise ModelError(
                f"{self.identity.label} has no chat template for the prompt format {prompt_format}."
            )
        return Estimator("exact") if self._top_k is None else Estimator("top-k", k=self._top_k)

    def plan_scores(self, requests: Sequence[ScoreRequest]) -> Plan[ScoreRequest]:
        """Tokenise, check every pair of prompt and target word, find shared prefixes, cut the batches."""
        self._ready, self._rows_of = {}, {}
        requests = tuple(requests)  # read several times
        ends = self.scoring.word_boundary == "word"
        self._prepared = prepare(self._renderer, requests, ends=ends, prompts_only=self._top_k is not None)
        prepared = self._in_order = [self._prepared[request.key] for request in requests]
        notes = name_misread(self._renderer)
        notes += name_prefixes(prepared, refuse=self.scoring.on_prefix == "refuse")
        sentences = any(request.prompt.prompt_format == "sentence" for request in requests)
        longest = max((max(len(p.text), len(p.ids) + len(p.trie.levels)) for p in prepared), default=0)
        most = self._most_positions()
        if most is not None and most < longest:
            raise ModelError(
                f"{self.identity.label}: a prompt with its target words is {longest} tokens long, the model"
                f" has {most} positions. Shorten the templates, debiasing prompts or dialogue."
            )
        self._extends = self._can_extend(longest)
        if not self._batch_size:
            # Keys and values of every layer for a prompt and a row of each of its nodes, and a dozen float32
            # activations of one layer.
            nodes = 1 if sentences else max((len(p.trie.nodes) for p in prepared), default=0)
            each = longest * (2 * self._n_layers() * (1 + nodes) + 12 * 4)
            self._batch_size = self._affordable(each, 0, MOST_PROMPTS) if prepared else MOST_PROMPTS
        share = self.scoring.share_prefixes and self._extends
        kinds = [0 if sentences else id(p.trie) for p in prepared]  # equal target words share one
        inner = [len(p.trie.nodes) - 1 for p in prepared]
        ids = [p.ids for p in prepared]
        blocks = cut_blocks(ids, kinds, batch_size=self._batch_size, inner=inner, share=share)
        batches = []
        tokens = 0  # through the model's body: shared prefixes once, then each batch's own
        for block in blocks:
            tokens += sum(map(len, block.prefixes))
            for rows in block.batches:
                batch = tuple(requests[row.index] for row in rows)
                batches.append(batch)
                self._rows_of[batch[0].key] = (block, rows)
                tokens += self._own_tokens(batch)
        return Plan(tuple(batches), len(batches), tokens, new_tokens_max=0, cost_max=0.0, notes=notes)

    def _own_tokens(self, batch: Sequence[ScoreRequest]) -> int:
        """Count a batch's own tokens: the rest of each prompt, and its inner nodes."""
        rows = self._rows_of[batch[0].key][1]
        return sum(len(row.rest) + len(self._in_order[row.index].trie.nodes) - 1 for row in rows)

    def _can_extend(self, longest: int) -> bool:
        """Return whether this architecture's cache has only layers whose rows can be gathered exactly."""
        # Rotary factors that change with a text's length would meet in one cache.
        rope = getattr(self._text_config, "rope_parameters", None) or {}
        if rope.get("rope_type") in ("longrope", "dynamic"):
            most = getattr(self._text_config, "max_position_embeddings", 0)
            if longest > int(rope.get("original_max_position_embeddings") or most):
                return False
        try:
            layers = DynamicCache(config=self._config).layers
        except Exception:
            return False
        return all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)

    def estimate_seconds(self, batches: Sequence[Sequence[ScoreRequest]]) -> float | None:
        """Load, score the first batch, extrapolate by multiplications; `score` reuses that batch."""
        self._load()
        if not batches:
            return 0.0
        first = batches[0]
        started = time.perf_counter()
        block, rows = self._rows_of[first[0].key]
        with self._forward():
            cache = self._prefix_cache(block)
        self._ready = {first[0].key: self._answer(rows, cache)}
        seconds = time.perf_counter() - started
        return seconds * sum(self._work(batch) for batch in batches[1:]) / self._work(first)

    def _work(self, batch: Sequence[ScoreRequest]) -> float:
        """Count a batch's multiplications: the body's for its own tokens, the head's for its nodes."""
        head: int = self._head.weight.numel()
        body = max(1, self._folder.n_parameters - head)
        nodes = sum(len(self._prepared[request.key].trie.nodes) for request in batch)
        return body * self._own_tokens(batch) + head * nodes

    def score(self, batches: Iterable[Sequence[ScoreRequest]]) -> Iterator[Sequence[Scored | Failed]]:
        """Answer the planned batches one after another."""
        self._load()
        block_in_cache: PrefixBlock | None = None
        cache: Any = None
        for batch in batches:
            ready = self._ready.pop(batch[0].key, None)
            if ready is not None:
                yield ready
                continue
            block, rows = self._rows_of[batch[0].key]
            if block is not block_in_cache:
                with self._forward():
                    block_in_cache, cache = block, self._prefix_cache(block)
            yield self._answer(rows, cache)

    def _answer(self, rows: Sequence[PromptRow], cache: Any) -> list[Scored | Failed]:
        return self._in_parts(rows, "prompt", lambda part: self._score_rows(part, cache))

    def _score_rows(self, rows: Sequence[PromptRow], cache: Any) -> list[Scored | Failed]:
        prepared = [self._in_order[row.index] for row in rows]
        tries = [p.trie for p in prepared]
        distinct = {id(trie): trie for trie in tries}
        token_ids = sorted(set().union(*(trie.token_ids for trie in distinct.values())))
        with torch.inference_mode():
            hidden = self._hidden_states(rows, [p.ids for p in prepared], tries, cache)
            # The first rows are the ends of the prompts (`_hidden_states`): only these are listed.
            listing = TopTokens(len(rows), self._top_k or max(1, self.scoring.next_tokens))
            scored, ends = self._head.log_probs(hidden, torch.tensor(token_ids), self._boundary, listing)
        lists = listing.tokens()
        for tokens, p in zip(lists, prepared, strict=True):
            if tokens and not p.rest and begins_thought(first := self._renderer.marked([tokens[0][0]])):
                raise ModelError(inside_thought(f"after the prompt the model begins a thought ({first!r})"))
        if self._top_k is not None:
            return [self._listed(*row) for row in zip(prepared, lists, strict=True)]
        totals = _sum_steps(tries, token_ids, scored.numpy(), None if ends is None else ends.numpy())
        return [self._result(*row) for row in zip(prepared, totals, lists, strict=True)]

    def _result(
        self, prepared: Prepared, totals: NDArray[np.float64], tokens: ListedTokens | None
    ) -> Scored | Failed:
        """Answer a prompt by the exact log-probabilities of its continuations."""
        # A continuation may be impossible (-inf), never undefined and never more likely than certain.
        if np.isnan(totals).any() or (totals > 1e-4).any():
            return Failed(prepared.key, NOT_FINITE)
        log_probs = []
        for c, value in zip(prepared.continuations, np.minimum(0.0, totals).tolist(), strict=True):
            log_probs.append(LogProb(c.group, c.text, value, value, c.ids))
        listed_next = None
        if tokens is not None and self.scoring.next_tokens:
            names = named_tokens([token for token, _ in tokens], prepared.continuations, self._texts)
            listed_next = tuple(ListedToken(names[token], value, token) for token, value in tokens)
        answered = self._answered(len(prepared.ids), 0)
        return Scored(
            *(prepared.key, prepared.rendered, "exact", tuple(log_probs), answered),
            left_out=prepared.left_out,
            listed_next=listed_next,
        )

    def _listed(self, prepared: Prepared, tokens: ListedTokens | None) -> Scored | Failed:
        """Answer a prompt by its listed tokens (estimator top-k)."""
        if tokens is None:
            return Failed(prepared.key, NOT_FINITE)
        log_probs, listed = as_listed(prepared.continuations, tokens, self._texts)
        answered = self._answered(len(prepared.ids), 0)
        return Scored(
            *(prepared.key, prepared.rendered, "top-k", log_probs, answered),
            listed={"": listed},
            left_out=prepared.left_out,
        )

    def _load(self) -> None:
        if self._model is not None:
            return
        longest = max(self._prepared.values(), key=lambda prepared: len(prepared.text), default=None)
        try:
            self._take(self._weights(longest.text[:HEAD_CHECKED] if longest else ()), longest)
        except (ModelError, MemoryError, torch.OutOfMemoryError):
            self.close()
            raise
        except Exception as error:  # whatever a stranger's code raises
            self.close()
            raise ModelError(
                f"{self.identity.label}: biaskit does not support {self.identity.details['architecture']}"
                f" ({str(error)[:120]!r}). Please report this architecture."
            ) from error

    def _take(self, model: Any, longest: Prepared | None) -> None:
        """Use a loaded model, after checking head and cache against its own plain forward."""
        self._model = model
        if self._folder.loaded is None:  # a model in memory keeps its own layers
            use_onednn(model)
        # Where the prefix names no part (Llama 4), base_model is the whole model.
        self._decoder = model.base_model if model.base_model is not model else model.model
        self._head = OutputHead(model)
        rows = min(self._head.weight.shape[0], model.get_input_embeddings().weight.shape[0])
        self._check_ids({i for p in self._prepared.values() for i in (*p.ids, *p.trie.token_ids)}, rows)
        if self.scoring.word_boundary == "word":
            marks = boundary_vocabulary(self._renderer.tokenizer, self._head.weight.shape[0])
            self._boundary = torch.tensor(marks, device=self._head.weight.device)
        if longest is None:
            return
        with torch.inference_mode():
            plain = self._check_head(longest)
            self._windows = windows_of(self._config) if self._extends else None
            if self._windows is not None and not self._tree_is_exact(longest, self._windows, plain):
                self._windows = None
            self._extends = self._windows is not None or (self._extends and self._cache_is_exact(longest))

    def _off_by(self, hidden: torch.Tensor, ids: TokenIds, token_ids: Sequence[int]) -> tuple[float, float]:
        """Return the largest difference in log-probability from a plain forward, and the noise allowed."""
        tokens = torch.tensor(token_ids)
        computed, _ = self._head.log_probs(hidden, tokens)
        logits = self._model(input_ids=torch.tensor([ids], device=self._model.device)).logits[0, -1].float()
        allowed = HEAD_TOLERANCE[self.placement.dtype]
        if self.placement.dtype != "float32":
            allowed += BFLOAT16_STEP * float(logits.abs().max())
        expected = logits.log_softmax(-1)[tokens.to(logits.device)].cpu()
        finite = bool(torch.isfinite(expected).all())  # NaN says nothing of a head: every cell will fail
        return (float((computed - expected).abs().max()) if finite else 0.0), allowed

    def _check_head(self, prepared: Prepared) -> torch.Tensor:
        """Compare our head with the model's own on one prompt. Raises `ModelError` if they differ.

        Returns the last hidden state of the prompt's beginning, (1, hidden).
        """
        ids = prepared.text[:HEAD_CHECKED]
        first_tokens = sorted({c.ids[0] for c in prepared.continuations})
        hidden = self._body([ids])
        largest, allowed = self._off_by(hidden, ids, first_tokens)
        if not largest <= allowed:  # nor is NaN
            report = "Please report this architecture. Until then use `--estimator sampling`."
            raise ModelError(
                f"{self.identity.label}: the output head of {self.identity.details['architecture']} is not"
                f" understood: log-probabilities differ from the model's own by {largest:.2g}"
                f" (allowed {allowed:g}). "
                + ("Merge its adapter, or leave the head out of it." if self._head.adapted else report)
            )
        return hidden

    def _tree_is_exact(self, longest: Prepared, windows: Windows, plain: torch.Tensor) -> bool:
        """Return whether a trie after a shared prefix gives the same in one forward as a plain forward.

        `plain`: the state that `_check_head` returned. The text's last two tokens become a branch after
        another one, in a padded row. Architectures that count positions or windows in slots, or take no
        such mask, go level by level.
        """
        ids = longest.text[:MOST_CHECKED]
        if len(ids) < 4:
            return False
        third = max(1, len(ids) // 3)
        branch, other = ids[-2:], (0 if ids[-2] else 1, ids[-1])
        trie = build_trie([branch, other], ends=True)
        rest = ids[third:-2] or ids[third - 1 : -2]
        cache = DynamicCache(config=self._model.config)
        try:
            self._body([ids[: -2 - len(rest)]], cache)
            rows = [PromptRow(0, 0, rest), PromptRow(1, 0, (*rest, *branch[:1]))]
            branched = self._tree(rows, [trie, trie], cache, windows)[0][trie.nodes.index(branch)]
        except Exception:  # an architecture that takes no masks or positions says so in its own way
            return False
        if len(ids) > HEAD_CHECKED:
            plain = self._body([ids])
        both = torch.stack([branched, plain[0]])
        scored, _ = self._head.log_probs(both, torch.tensor(longest.trie.token_ids))
        difference = float((scored[0] - scored[1]).abs().max())
        # NaN of both says nothing about the tree: every cell will fail with that reason.
        return difference <= HEAD_TOLERANCE[self.placement.dtype] or not bool(torch.isfinite(scored[1]).all())

    def _cache_is_exact(self, prepared: Prepared) -> bool:
        """Return whether a prompt in parts gives a plain forward's numbers: some models ignore a cache."""
        ids = prepared.text[:HEAD_CHECKED]
        if len(ids) < 3:
            return True
        cache, third = DynamicCache(config=self._model.config), max(1, len(ids) // 3)
        self._body([ids[:third]], cache)
        self._body([ids[third:-1]], cache)
        cache.batch_select_indices(torch.tensor([0, 0]))
        largest, allowed = self._off_by(self._body([ids[-1:], ids[-1:]], cache), ids, prepared.trie.token_ids)
        return largest <= allowed

    def close(self) -> None:
        """Free the weights."""
        self._decoder = self._boundary = None
        self._ready = {}
        super().close()


def _sum_steps(
    tries: Sequence[TokenTrie],
    token_ids: Sequence[int],
    scored: NDArray[np.float64],
    ends: NDArray[np.float64] | None,
) -> list[NDArray[np.float64]]:
    """Sum the tokens' log-probabilities along each target word: for each row (sequences,), float64.

    `scored`: (places of `nodes_of`, token ids); `ends`: (places,).
    """
    place = {node_and_row: k for k, node_and_row in enumerate(nodes_of(tries))}
    rows_of: dict[int, list[int]] = {}
    for i, trie in enumerate(tries):
        rows_of.setdefault(id(trie), []).append(i)
    totals: list[NDArray[np.float64]] = [np.empty(0)] * len(tries)
    for rows in rows_of.values():
        trie = tries[rows[0]]
        columns = np.searchsorted(token_ids, trie.token_ids)
        places = np.array([place[node, i] for node in range(len(trie.nodes)) for i in rows])
        places = places.reshape(len(trie.nodes), len(rows))
        sums = np.zeros((len(rows), len(trie.sequences)))
        for k, steps in enumerate(trie.steps):
            for node, column in steps:
                sums[:, k] += scored[places[node], columns[column]]
            if ends is not None and trie.ends is not None:
                sums[:, k] += ends[places[trie.ends[k]]]
        for i, of_row in zip(rows, sums, strict=True):
            totals[i] = of_row
    return totals
