"""Sampling from a local model; each sample has noise of its own, so neighbours change nothing."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import (
    GenerationConfig,
    StoppingCriteria,
    StoppingCriteriaList,
)
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from biaskit.errors import ModelError, TokenizationError
from biaskit.models.base import naming
from biaskit.models.huggingface.folder import ModelFolder
from biaskit.models.huggingface.head import cut_head, use_onednn
from biaskit.models.huggingface.local_model import LocalModel, end_ids
from biaskit.models.huggingface.rendering import ANCHOR_TOKENS, MARK_TOKENS
from biaskit.models.options import LocalOptions
from biaskit.models.thoughts import begins_thought, parted, thought_ended
from biaskit.models.token_trie import TokenIds
from biaskit.records import Failed, Finish, Plan, Prompt, Sample, SampleRequest, Sampling

MOST_TEXTS = 96  # of a batch
WARM_UP, WARM_UP_TOKENS = "warm-up", 6  # key and length of its texts


class TransformersGenerator(LocalModel):
    """A local causal model as a `TextGenerator`; weights load at the first batch."""

    purpose = "generation"

    def __init__(
        self, folder: ModelFolder, *, label: str, spec: str, local: LocalOptions = LocalOptions()
    ) -> None:
        super().__init__(folder, label=label, spec=spec, local=local)
        self._ends: list[int] = []  # ids that end a text
        self._prompts: dict[Prompt, tuple[str, TokenIds]] = {}  # prompt → rendered text, its ids
        self._thought_tokens = local.thought_tokens

    def plan_samples(self, requests: Sequence[SampleRequest]) -> Plan[SampleRequest]:
        """Plan batches of prompts of one length: their rows need no padding and no mask."""
        together: dict[Any, list[SampleRequest]] = {}
        for request in requests:
            with naming(request):
                length = self._n_prompt_tokens(request)
            together.setdefault((length, request.sampling), []).append(request)
        if not self._batch_size:
            # Keys and values of every layer, and four float32 rows of logits: top_p sorts them as a whole.
            longest = 0
            for request in requests:
                longest = max(longest, len(self._prompts[request.prompt][1]) + self._most_new(request))
            each = longest * 2 * self._n_layers()
            vocabulary = int(getattr(self._text_config, "vocab_size", 0) or 50_000)
            most = self._affordable(each, 16 * vocabulary, MOST_TEXTS)
            self._batch_size = most if requests else MOST_TEXTS
        batches: list[tuple[SampleRequest, ...]] = []
        for listed in together.values():
            batches += _evenly(listed, self._batch_size)
        prompt_tokens = sum(len(self._prompts[request.prompt][1]) for request in requests)
        new_tokens = sum(map(self._most_new, requests))
        return Plan(tuple(batches), len(batches), prompt_tokens, new_tokens, cost_max=0.0)

    def _most_new(self, request: SampleRequest) -> int:
        return request.sampling.max_new_tokens + (self._room(request) if self._renderer.thinks else 0)

    def _room(self, request: SampleRequest) -> int:
        """Return the most tokens that thoughts get beside the answer's: those that the positions leave."""
        if request.prompt.prompt_format in ("raw", "completion") or request.key == WARM_UP:
            return 0
        left = (self._most_positions() or math.inf) - len(self._prompts[request.prompt][1])
        return int(min(self._thought_tokens, left - request.sampling.max_new_tokens))

    def _n_prompt_tokens(self, request: SampleRequest) -> int:
        """Store a prompt's ids and return their number. Raises `ModelError` if the answer has no room."""
        prompt, most = request.prompt, self._most_positions()
        if prompt not in self._prompts:
            rendered = self._renderer.render(prompt)
            self._prompts[prompt] = rendered, self._renderer.encode([rendered])[0]
        n = len(self._prompts[prompt][1])
        if not n:
            raise TokenizationError("the prompt has no tokens")
        total = n + request.sampling.max_new_tokens
        if most is not None and total > most:
            raise ModelError(
                f"a prompt of {n} tokens and its answer make {total}, the model has {most}"
                " positions. Lower --max-new-tokens."
            )
        return n

    def estimate_seconds(self, n_new_tokens: int) -> float | None:
        """Load the model, time a few tokens of a planned prompt in a full batch, extrapolate by tokens."""
        if not n_new_tokens or not self._prompts:
            return 0.0
        self._load()
        prompt, sampling = next(iter(self._prompts)), Sampling(max_new_tokens=WARM_UP_TOKENS)
        texts = [SampleRequest(WARM_UP, prompt, sampling, seed) for seed in range(self._batch_size)]
        self._in_parts(texts, "text", self._new_ids)  # sets up kernels, and halves a batch that is too large
        started = time.perf_counter()
        self._new_ids(texts[: self._batch_size])
        return (time.perf_counter() - started) * n_new_tokens / (self._batch_size * WARM_UP_TOKENS)

    def generate(self, batches: Iterable[Sequence[SampleRequest]]) -> Iterator[Sequence[Sample | Failed]]:
        """Answer the planned batches one after another."""
        with self._forward():
            self._load()
        for batch in batches:
            yield self._in_parts(batch, "text", self._sample)

    def _sample(self, batch: Sequence[SampleRequest]) -> list[Sample | Failed]:
        texts = self._new_ids(batch)
        return [self._result(request, new) for request, new in zip(batch, texts, strict=True)]

    def _new_ids(self, batch: Sequence[SampleRequest]) -> list[TokenIds | None]:
        """Return each sample's new token ids, end of text included; None if its logits were not finite.

        The batch keeps its shape until its last text ends: a smaller one would round differently, and a
        sample would depend on when its neighbours end.
        """
        sampling, ends, room = batch[0].sampling, self._ends, min(map(self._room, batch))
        config = GenerationConfig(
            max_new_tokens=sampling.max_new_tokens + room,
            eos_token_id=ends or None,
            pad_token_id=ends[0] if ends else 0,
            use_cache=True,
        )
        prompts, opened = [], []
        for request in batch:
            rendered, ids = self._prompts[request.prompt]
            prompts.append(ids)
            opened.append(self._renderer.opened(request.prompt, rendered))
        tokens = torch.tensor(prompts, device=self._model.device)
        limit = AnswerLimit(len(prompts[0]), sampling.max_new_tokens, self._renderer.marked, opened)
        with torch.inference_mode(), ThreadPoolExecutor(threads := torch.get_num_threads()) as pool:
            each = pool.map if threads > 1 else map
            noise = GumbelNoise([request.seed for request in batch], sampling, each)
            out = self._model.generate(
                input_ids=tokens,
                attention_mask=torch.ones_like(tokens),
                generation_config=config,
                stopping_criteria=StoppingCriteriaList([limit] if room else []),
                custom_generate=partial(self._decode, noise),
            )
        texts: list[TokenIds | None] = []
        rows = out[:, tokens.shape[1] :].tolist()
        for row, most, broken in zip(rows, limit.lengths, noise.broken, strict=True):
            last = next((k for k, token in enumerate(row) if token in ends), len(row))  # padding follows
            texts.append(None if broken else tuple(row[: last + 1][:most]))
        return texts

    def _decode(self, noise: GumbelNoise, model: Any, ids: torch.Tensor, **options: Any) -> torch.Tensor:
        """Continue prompts (rows, tokens) as `generate` would, but without copies of logits and cache."""
        pad, ends = options.pop("generation_config").pad_token_id, options.pop("stopping_criteria")
        del options["logits_processor"]  # of which there are none
        keep_in_buffers(options.get("cache", options.get("past_key_values")), ends.max_length)
        going, n_prompt = torch.ones(len(ids), dtype=torch.bool, device=ids.device), ids.shape[1]
        while bool(going.any()):
            first = ids.shape[1] == n_prompt
            length = None if first or not options["use_cache"] else 1
            inputs = model.prepare_inputs_for_generation(
                ids, next_sequence_length=length, is_first_iteration=first, **options
            )
            with nullcontext() if first else model._optimize_model_for_decode():  # of a mixture of experts
                out = model(**inputs, return_dict=True)
            options = model._update_model_kwargs_for_generation(out, options)
            head = self._head
            slices = [(0, out.logits[:, -1].float())] if head is None else head.slices(head.states)
            new = noise.sample(slices, going.tolist()).to(ids.device)
            ids = torch.cat([ids, torch.where(going, new, pad)[:, None]], dim=1)
            going = going & ~ends(ids, None)
        return ids

    def _result(self, request: SampleRequest, new: TokenIds | None) -> Sample | Failed:
        if new is None:
            return Failed(request.key, "the model's logits are not finite (NaN or infinite)")
        rendered, ids = self._prompts[request.prompt]
        opened = self._renderer.opened(request.prompt, rendered)
        finish: Finish = "stop" if new and new[-1] in self._ends else "length"
        # SentencePiece drops the space before a first token: decoding after the prompt's end keeps it.
        tokenizer = self._renderer.tokenizer
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        anchor = list(ids[-ANCHOR_TOKENS:])
        before = tokenizer.decode(anchor, **options)
        joined = tokenizer.decode([*anchor, *new], **options)
        text = joined[len(before) :] if joined.startswith(before) else tokenizer.decode(new, **options)
        answered = self._answered(len(ids), len(new))
        # Marks of thoughts may be special tokens, which that text lacks.
        marked = parted(Sample(request.key, rendered, self._renderer.marked(new), finish, answered), opened)
        if marked.raw is not None:
            return marked
        return Sample(request.key, rendered, str(text), finish, answered)

    def _load(self) -> None:
        if self._model is not None:
            return
        ids = next((ids for _, ids in self._prompts.values()), ())
        self._model = self._weights(ids)
        stated = getattr(self._model.generation_config, "eos_token_id", None)
        if self._folder.loaded is not None:  # may have lost its settings to an earlier opening of this call
            stated = (self._folder.generation or {}).get("eos_token_id")
        self._ends = end_ids(stated, self._renderer)
        # generate() takes settings that a call leaves open from the model's own file: a repetition penalty
        # or a list of suppressed tokens there would change every distribution.
        self._model.generation_config = GenerationConfig()
        rows = self._model.get_input_embeddings().weight.shape[0]
        try:
            self._check_ids(set(chain.from_iterable(ids for _, ids in self._prompts.values())), rows)
        except ModelError:
            self.close()
            raise
        if ids and self._folder.loaded is None:  # a model in memory keeps its own layers
            use_onednn(self._model)
            with self._forward():
                self._head = cut_head(self._model, ids)


class AnswerLimit(StoppingCriteria):  # type: ignore[misc]  # transformers has no types
    """Ends a text whose answer has its tokens; those of a thought before it do not count."""

    def __init__(
        self, n_prompt: int, most: int, decode: Callable[[Sequence[int]], str], opened: Sequence[str]
    ) -> None:
        self._n_prompt, self._most, self._decode, self._opened = n_prompt, most, decode, opened
        self.lengths: list[int | None] = [None] * len(opened)  # None: not known yet

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:  # noqa: ARG002
        """Return for each row whether it ends here; called after every token."""
        n = input_ids.shape[1] - self._n_prompt
        if None in self.lengths:
            for i, new in enumerate(input_ids[:, self._n_prompt :].tolist()):
                if self.lengths[i] is not None:
                    continue
                if not self._opened[i] and begins_thought(self._decode(new[:MARK_TOKENS])) is False:
                    self.lengths[i] = self._most
                elif thought_ended(self._decode(new[-MARK_TOKENS:])):
                    self.lengths[i] = n + self._most
        ended = [length is not None and n >= length for length in self.lengths]
        return torch.tensor(ended, device=input_ids.device)


def keep_in_buffers(cache: Any, most: int) -> None:
    """Let a cache keep its `most` tokens in buffers, else it is copied as a whole at every token."""
    for layer in getattr(cache, "layers", ()):
        if type(layer) in (DynamicLayer, DynamicSlidingWindowLayer):
            layer.update = partial(_update, layer, most, [])


def _update(layer: Any, most: int, buffers: list[Any], keys: Any, values: Any, *_: Any, **__: Any) -> Any:
    """Return what the layer's own update would: keys and values (rows, heads, tokens, size) in sight."""
    before = layer.get_seq_length()
    end = before + keys.shape[-2]
    if not buffers:
        layer.lazy_initialization(keys, values)
        buffers += [new.new_empty(*new.shape[:2], most, new.shape[-1]) for new in (keys, values)]
    for buffer, new in zip(buffers, (keys, values), strict=True):
        buffer[:, :, before:end] = new
    seen = kept = 0  # the first token
    if layer.is_sliding:
        layer.cumulative_length = end
        seen, kept = (max(0, n - layer.sliding_window + 1) for n in (before, end))
    layer.keys, layer.values = (buffer[:, :, kept:end] for buffer in buffers)
    return buffers[0][:, :, seen:end], buffers[1][:, :, seen:end]


class GumbelNoise:
    """Samples from softmaxes: each row's largest sum of its logits and Gumbel noise from its own generator.

    The noise is -log of standard exponentials, one for every token of the vocabulary and step, added to the
    float32 logits after temperature and top_p (the Gumbel-max trick).
    """

    def __init__(self, seeds: Sequence[int], sampling: Sampling, each: Callable[..., Any] = map) -> None:
        self._generators = [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]
        self._sampling, self._each = sampling, each  # `each` may share the rows out to threads
        self.broken = [False] * len(seeds)
        self._buffers = threading.local()  # each thread's exponentials and sums

    def sample(self, slices: Iterable[tuple[int, torch.Tensor]], going: Sequence[bool]) -> torch.Tensor:
        """Return tokens (rows,) from slices: a first token, float32 logits (rows, tokens). 0: not `going`."""
        temperature, top_p = self._sampling.temperature, self._sampling.top_p
        slices = ((start, logits / temperature if temperature != 1.0 else logits) for start, logits in slices)
        if top_p < 1.0:
            slices = [(0, _nucleus(torch.cat([logits.clone() for _, logits in slices], dim=1), top_p))]
        rows = [i for i, goes in enumerate(going) if goes and not self.broken[i]]
        tokens, largest = [0] * len(going), [-math.inf] * len(going)
        for start, logits in slices:
            on_cpu = logits.cpu().numpy()
            found = self._each(self._largest, rows, [on_cpu[i] for i in rows])
            for i, (place, value) in zip(rows, found, strict=True):
                # -inf marks tokens that top_p left out; a largest of NaN or +inf says the model is broken.
                self.broken[i] |= not value < math.inf
                if value > largest[i]:
                    tokens[i], largest[i] = start + place, value
        for i in rows:
            self.broken[i] |= largest[i] == -math.inf
        return torch.tensor(tokens)

    def _largest(self, i: int, logits: NDArray[np.float32]) -> tuple[int, float]:
        """Return place and value of a row's largest sum; subtracting logarithms of exponentials adds noise.

        Drawn in double precision: numpy's float32 exponentials are exactly 0 once in 2^23 samples, which
        would make some token of a vocabulary of 262,144 certain at one step in 32. Buffers are reused: to
        allocate them costs as much time as to fill them.
        """
        buffers = self._buffers
        if len(getattr(buffers, "sums", ())) < len(logits):
            buffers.exponentials, buffers.sums = np.empty(len(logits)), np.empty(len(logits), np.float32)
        exponentials, sums = buffers.exponentials[: len(logits)], buffers.sums[: len(logits)]
        self._generators[i].standard_exponential(out=exponentials)
        np.copyto(sums, exponentials, casting="same_kind")
        np.log(sums, out=sums)
        np.subtract(logits, sums, out=sums)
        place = int(sums.argmax())
        return place, float(sums[place])


def _nucleus(scores: torch.Tensor, top_p: float) -> torch.Tensor:
    """Set all but the smallest set of tokens whose probability reaches `top_p` to -inf."""
    ordered, places = scores.sort(dim=-1, descending=True)
    before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
    out = torch.full_like(scores, -torch.inf)
    nucleus = torch.where(before < top_p, ordered, torch.full_like(ordered, -torch.inf))
    return out.scatter(-1, places, nucleus)


def _evenly(requests: Sequence[SampleRequest], largest: int) -> Iterator[tuple[SampleRequest, ...]]:
    """Cut batches of nearly equal size: a short last one would cost as much time as a full one."""
    n = -(-len(requests) // largest)
    ends = [len(requests) * (i + 1) // n for i in range(n)]
    for start, end in zip([0, *ends], ends, strict=False):
        yield tuple(requests[start:end])
