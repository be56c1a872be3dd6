"""The output head at the few positions that are needed, in float32, by slices of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

ListedTokens = tuple[tuple[int, float], ...]  # id, natural log-probability; the most probable first
SLICE_ELEMENTS = 1 << 21
"""Logits in memory at once: rows times tokens of a slice. 2 M numbers stay in the processor's cache."""
HEAD_CHECKED = 64  # tokens of the prompt that the output head is checked on
ONEDNN = bool(torch.backends.mkl.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise"))  # type: ignore
ONEDNN_ROWS = 8  # on AMD twice as fast as MKL with AVX-512, by a tenth with AVX2; slower for fewer rows


class OutputHead:
    """A causal model's map from hidden states to log-probabilities.

    Scales and caps are read from the configuration under transformers' names; the check after loading
    catches a family that uses others.
    """

    states: torch.Tensor  # (rows, hidden) of the last forward, after `cut_head`

    def __init__(self, model: Any) -> None:
        layer = model.get_output_embeddings()
        # ModernBERT's decoder has a layer of its own before the output embeddings, and calls that the head.
        own = getattr(model, "lm_head", None)
        self.before: Any = own if own is not layer else None
        config = model.config.get_text_config(decoder=True)
        self.weight: torch.Tensor = layer.weight  # (vocabulary, hidden)
        self.bias: torch.Tensor | None = getattr(layer, "bias", None)
        self.adapted = type(layer) is not torch.nn.Linear
        if self.adapted:  # what it makes of zeros and of single ones, as of one text
            with torch.no_grad():
                self.bias = layer(torch.zeros_like(self.weight[None, :1]))[0, 0]
                ones = torch.eye(self.weight.shape[1], dtype=self.weight.dtype, device=self.weight.device)
                self.weight = (layer(ones[None])[0] - self.bias).T
        # Factor on the output before the cap: Cohere multiplies, Granite divides.
        self.scale = 1.0 / float(getattr(config, "logits_scaling", None) or 1.0)
        for name in ("logit_scale", "lm_head_multiplier"):
            self.scale *= float(getattr(config, name, None) or 1.0)
        self.softcap: float | None = getattr(config, "final_logit_softcapping", None)

    def slices(self, hidden: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield first token and float32 logits (rows, tokens) of each slice; the next one overwrites them.

        They are computed in the type of `hidden`, (rows, hidden).
        """
        (rows, _), vocabulary, dtype = hidden.shape, len(self.weight), hidden.dtype
        width = max(1, min(vocabulary, SLICE_ELEMENTS // max(1, rows)))
        turned = dtype == torch.float32 and not _by_onednn(hidden)
        # One buffer for all slices: a new one for each costs a fifth of the time. Its first axis is tokens:
        # few rows times many tokens take MKL 1.6 times as long the other way round (two AMD cores).
        buffer = torch.empty(width if turned else 0, rows, device=hidden.device)
        for start in range(0, vocabulary, width):
            part = slice(start, start + width)
            weight = self.weight[part].to(dtype)
            bias = None if self.bias is None else self.bias[part].to(dtype)
            if turned:
                logits = torch.mm(weight, hidden.T, out=buffer[: weight.shape[0]]).T
                if bias is not None:
                    logits += bias
            else:
                logits = linear(hidden, weight, bias)
            if self.scale != 1.0:
                logits *= self.scale
            if self.softcap is not None:
                logits.div_(self.softcap).tanh_().mul_(self.softcap)
            yield start, logits.float()

    def log_probs(
        self,
        hidden: torch.Tensor,  # (rows, hidden)
        token_ids: torch.Tensor,  # (n,)
        boundary: torch.Tensor | None = None,  # (vocabulary,) bool
        listing: TopTokens | None = None,  # collects the tokens of its first rows, and is normalised here
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return natural log-probabilities of tokens after each row, exact over the whole vocabulary.

        Returns float64 on the CPU, (rows, n) and, with `boundary`, (rows,): the log-probability that
        the next token is marked in it. Memory: one slice of logits, never rows times vocabulary.
        """
        hidden = hidden.to(self.weight.device)
        hidden = (hidden if self.before is None else self.before(hidden.to(self.weight.dtype))).float()
        total, marked = _RunningLogSumExp(hidden), _RunningLogSumExp(hidden)
        # Read from the same slices that are summed, so that probabilities add up to one and no more.
        picked = torch.empty(len(hidden), len(token_ids), dtype=torch.float64)
        for start, logits in self.slices(hidden):
            end = start + logits.shape[1]
            inside = (token_ids >= start) & (token_ids < end)
            if bool(inside.any()):
                picked[:, inside] = logits[:, (token_ids[inside] - start).to(logits.device)].cpu().double()
            if boundary is not None and bool((ends := boundary[start:end]).any()):
                marked.add(logits[:, ends])
            if listing is not None:
                listing.add(start, logits)
            total.add(logits)  # last, since it overwrites the logits
        normaliser = total.value()
        if listing is not None:
            listing.normalise(normaliser)
        scored = picked - normaliser[:, None]
        return scored, (marked.value() - normaliser if boundary is not None else None)


def cut_head(model: Any, ids: Sequence[int]) -> OutputHead | None:
    """Let a model's forward give no logits: the returned head's slices give them from its `states`.

    None, and nothing has changed, for a layer that is more than weights on a CPU, or if the slices are not
    the model's own logits after `ids`: a family may make more of them than `OutputHead` knows.
    """
    layer = model.get_output_embeddings()
    if type(layer) is not torch.nn.Linear or layer.weight.device.type != "cpu":
        return None
    head, own, exact = OutputHead(model), layer.forward, layer.weight.dtype == torch.float32
    if not exact and (head.scale, head.softcap) != (1.0, None):
        return None  # each step rounds, and a family has an order of its own

    def forward(states: torch.Tensor, whole: bool = False) -> Any:
        head.states = states[:, -1]
        return own(states) if whole else states.new_empty(*states.shape[:-1], 0)

    vars(layer)["forward"] = partial(forward, whole=True)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids[:HEAD_CHECKED]])).logits[0, -1].float()
        sliced = torch.cat([part[0].clone() for _, part in head.slices(head.states)])
    relative, absolute = (1e-5, 2e-4) if exact else (2.0**-8, 0.2)  # of float noise
    same = sliced.shape == logits.shape and torch.allclose(sliced, logits, relative, absolute)
    vars(layer)["forward"] = forward if same else own
    return head if same else None


def use_onednn(model: Any) -> None:
    """Let a model's linear layers multiply as `linear` does."""
    for layer in model.modules():
        # Accelerate's own forward fetches weights that lie elsewhere.
        if type(layer) is torch.nn.Linear and "forward" not in vars(layer):
            vars(layer)["forward"] = partial(linear, weight=layer.weight, bias=layer.bias)


def linear(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Return states (..., in) times weights (out, in), by oneDNN where that is quicker than MKL."""
    if not _by_onednn(states):
        return torch.nn.functional.linear(states, weight, bias)
    out: torch.Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
    return out


def _by_onednn(states: torch.Tensor) -> bool:
    many = states.numel() >= ONEDNN_ROWS * states.shape[-1]
    return ONEDNN and many and states.dtype == torch.float32 and states.device.type == "cpu"


class TopTokens:
    """The k most probable tokens of the first rows, over slices of logits that come one by one."""

    def __init__(self, rows: int, k: int) -> None:
        self.rows, self.k = rows, k
        self._best = torch.empty(rows, 0)
        self._ids = torch.empty(rows, 0, dtype=torch.long)

    def add(self, start: int, logits: torch.Tensor) -> None:
        """Read one slice of logits (at least `rows`, tokens) that begins at token `start`."""
        listed = logits[: self.rows]
        if self._best.shape[1] < self.k:
            raised = torch.arange(self.rows)
        else:
            # Common tokens have low ids: most later slices change no row, and a maximum takes a tenth of
            # the time of a sorted list.
            raised = (listed.amax(dim=1).cpu() > self._best[:, -1]).nonzero().flatten()
        if not len(raised):
            return
        if len(raised) < self.rows:
            listed = listed[raised.to(listed.device)]
        values, places = listed.topk(min(self.k, listed.shape[1]), dim=1)
        best = torch.cat([self._best[raised], values.cpu()], dim=1)
        ids = torch.cat([self._ids[raised], places.cpu() + start], dim=1)
        best, places = best.topk(min(self.k, best.shape[1]), dim=1)
        ids = ids.gather(1, places)
        if self._best.shape[1] < best.shape[1]:  # not k yet: `raised` is every row
            self._best, self._ids = best, ids
        else:
            self._best[raised], self._ids[raised] = best, ids

    def normalise(self, total: torch.Tensor) -> None:
        """Subtract each row's log-sum-exp over the whole vocabulary: `total` (at least `rows`,), float64."""
        self._log_probs = (self._best.double() - total[: self.rows, None].cpu()).clamp(max=0.0)
        self._finite = torch.isfinite(total[: self.rows]).tolist()

    def tokens(self) -> list[ListedTokens | None]:
        """Return each row's possible tokens, most probable first, then by id; None: logits are not finite."""
        by_row: list[ListedTokens | None] = []
        rows = zip(self._ids.tolist(), self._log_probs.tolist(), self._finite, strict=True)
        for ids, values, finite in rows:
            possible = ((i, value) for i, value in zip(ids, values, strict=True) if value > -torch.inf)
            tokens = tuple(sorted(possible, key=lambda token: (-token[1], token[0])))
            by_row.append(tokens if finite else None)
        return by_row


class _RunningLogSumExp:
    """log(sum(exp(x))) of each row over slices that come one by one; sums across slices in double."""

    def __init__(self, like: torch.Tensor) -> None:
        self.peak = torch.full((like.shape[0],), -torch.inf, dtype=torch.float32)
        self.sum = torch.zeros(like.shape[0], dtype=torch.float64)

    def add(self, logits: torch.Tensor) -> None:
        """Add one slice (rows, tokens); overwrites `logits`."""
        peak = torch.maximum(self.peak, logits.amax(dim=1).cpu())
        anchor = _finite(peak)
        here = logits.sub_(anchor.to(logits.device)[:, None]).exp_().sum(dim=1).cpu().double()
        self.sum = self.sum * torch.exp((self.peak - anchor).double()) + here
        self.peak = peak

    def value(self) -> torch.Tensor:
        """Return the result (rows,), float64, on the CPU."""
        return _finite(self.peak).double() + self.sum.log()


def _finite(peak: torch.Tensor) -> torch.Tensor:
    """Replace -inf by 0."""
    # A row that has seen only -inf has no peak to subtract: exp(-inf - -inf) would be NaN.
    return torch.where(torch.isinf(peak) & (peak < 0), torch.zeros_like(peak), peak)
