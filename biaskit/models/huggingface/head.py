"""The output head on the few positions that are needed, in float32, slice by slice of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

ListedTokens = tuple[tuple[int, float], ...]  # id, natural log-probability; the most probable first
SLICE_ELEMENTS = 1 << 21
"""Logits held at once: rows times vocabulary slice. 2 M numbers stay near the processor."""
TURNED = 1 << 11
"""Tokens of a slice whose logits are copied to where a model's own head would have them."""


class OutputHead:
    """A causal model's map from hidden states to log-probabilities.

    Scales and caps are read from the configuration under the names that transformers uses; a family
    that does it in another way is caught by the check after loading, not trusted.
    """

    def __init__(self, model: Any) -> None:
        layer = model.get_output_embeddings()
        config = model.config.get_text_config(decoder=True)
        self.weight: torch.Tensor = layer.weight  # (vocabulary, hidden)
        self.bias: torch.Tensor | None = getattr(layer, "bias", None)
        # What the output is multiplied by before the cap: Cohere multiplies, Granite divides.
        self.scale = 1.0 / float(getattr(config, "logits_scaling", None) or 1.0)
        for name in ("logit_scale", "lm_head_multiplier"):
            self.scale *= float(getattr(config, name, None) or 1.0)
        self.softcap: float | None = getattr(config, "final_logit_softcapping", None)

    def slices(self, hidden: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """First token and float32 logits (rows, tokens) of each slice; the next one overwrites them."""
        rows, vocabulary = hidden.shape[0], self.weight.shape[0]
        width = max(1, min(vocabulary, SLICE_ELEMENTS // max(1, rows)))
        # One piece of memory for all slices: fresh pages for each cost a fifth of the time. Tokens come first
        # in it: few rows times many tokens take MKL 1.6 times as long the other way round (two AMD cores).
        room = torch.empty(width, rows, device=hidden.device)
        for start in range(0, vocabulary, width):
            part = slice(start, start + width)
            weight = self.weight[part].float()
            logits = torch.mm(weight, hidden.T, out=room[: weight.shape[0]]).T
            if self.bias is not None:
                logits += self.bias[part].float()
            if self.scale != 1.0:
                logits *= self.scale
            if self.softcap is not None:
                logits.div_(self.softcap).tanh_().mul_(self.softcap)
            yield start, logits

    def log_probs(
        self,
        hidden: torch.Tensor,
        asked: torch.Tensor,
        boundary: torch.Tensor | None = None,
        listing: Listing | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Natural log-probabilities of `asked` tokens after each row; exact over the whole vocabulary.

        hidden: (rows, hidden); asked: (n,) token ids; boundary: (vocabulary,) bool or None; `listing`
        keeps the most probable tokens of the first rows, as many as it has, and is closed here.
        Returns float64 on the CPU, (rows, n) and, with `boundary`, (rows,): the log-probability that
        the next token is one of those marked. Memory: one slice of logits, never rows times vocabulary.
        """
        hidden = hidden.to(self.weight.device).float()
        total, marked = _RunningLogSumExp(hidden), _RunningLogSumExp(hidden)
        # Read from the same slices that are summed, so that probabilities add up to one and no more.
        picked = torch.empty(len(hidden), len(asked), dtype=torch.float64)
        for start, logits in self.slices(hidden):
            end = start + logits.shape[1]
            inside = (asked >= start) & (asked < end)
            if bool(inside.any()):
                picked[:, inside] = logits[:, (asked[inside] - start).to(logits.device)].cpu().double()
            if boundary is not None and bool((ends := boundary[start:end]).any()):
                marked.add(logits[:, ends])
            if listing is not None:
                listing.add(start, logits)
            total.add(logits)  # the last: it writes over the logits
        normaliser = total.value()
        if listing is not None:
            listing.normalise(normaliser)
        scored = picked - normaliser[:, None]
        return scored, (marked.value() - normaliser if boundary is not None else None)


def turn(layer: Any) -> None:
    """Let a model's own output layer compute tokens times rows, slice by slice, as `OutputHead` does.

    The same sums, in less time where a CPU computes in float32; any other layer stays as it is. The next
    call writes over the logits of the one before: fresh pages would cost a twentieth of a step, and
    `generate` copies them.
    """
    plain = type(layer) is torch.nn.Linear and layer.bias is None
    if not plain or layer.weight.device.type != "cpu" or layer.weight.dtype != torch.float32:
        return

    kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        rows, weight = hidden.reshape(-1, hidden.shape[-1]), layer.weight
        if len(rows) not in kept:
            kept.clear()
            kept[len(rows)] = (
                hidden.new_empty(len(rows), len(weight)),
                hidden.new_empty(min(TURNED, len(weight)), len(rows)),
            )
        logits, room = kept[len(rows)]
        for start in range(0, len(weight), TURNED):
            part = weight[start : start + TURNED]
            logits[:, start : start + TURNED] = torch.mm(part, rows.T, out=room[: len(part)]).T
        return logits.view(*hidden.shape[:-1], -1)

    layer.forward = forward


class Listing:
    """The k most probable tokens of the first rows, kept over slices of logits that come one by one."""

    def __init__(self, rows: int, k: int) -> None:
        self.rows, self.k = rows, k
        self._best = torch.empty(rows, 0)
        self._ids = torch.empty(rows, 0, dtype=torch.long)
        self._log_probs = torch.empty(rows, 0, dtype=torch.float64)

    def add(self, start: int, logits: torch.Tensor) -> None:
        """Take in one slice (rows and more, tokens) that begins at token `start`; it is left as it is."""
        listed = logits[: self.rows]
        if self._best.shape[1] < self.k:
            raised = torch.arange(self.rows)
        else:
            # Common tokens have low ids: most later slices hold nothing for most rows, and a maximum is
            # a tenth of the price of a sorted list.
            raised = (listed.amax(dim=1).cpu() > self._best[:, -1]).nonzero().flatten()
        if not len(raised):
            return
        some = listed if len(raised) == self.rows else listed[raised.to(listed.device)]
        values, places = some.topk(min(self.k, some.shape[1]), dim=1)
        best = torch.cat([self._best[raised], values.cpu()], dim=1)
        ids = torch.cat([self._ids[raised], places.cpu() + start], dim=1)
        best, kept = best.topk(min(self.k, best.shape[1]), dim=1)
        ids = ids.gather(1, kept)
        if self._best.shape[1] < best.shape[1]:  # every row is among them
            self._best, self._ids = best, ids
        else:
            self._best[raised], self._ids[raised] = best, ids

    def normalise(self, total: torch.Tensor) -> None:
        """Subtract each row's log-sum-exp over the whole vocabulary; (rows and more,), float64."""
        self._log_probs = (self._best.double() - total[: self.rows, None].cpu()).clamp(max=0.0)
        self._finite = torch.isfinite(total[: self.rows]).tolist()

    def tokens(self) -> list[ListedTokens | None]:
        """Each row's tokens, the most probable first, equal ones by id; None where logits are not finite.

        Impossible tokens are left out.
        """
        rows = zip(self._ids.tolist(), self._log_probs.tolist(), self._finite, strict=True)
        return [
            tuple(
                sorted(
                    ((i, x) for i, x in zip(ids, values, strict=True) if x > -torch.inf),
                    key=lambda token: (-token[1], token[0]),
                )
            )
            if finite
            else None
            for ids, values, finite in rows
        ]


class _RunningLogSumExp:
    """log(sum(exp(x))) over slices that arrive one after another, per row; sums across slices in double."""

    def __init__(self, like: torch.Tensor) -> None:
        self.peak = torch.full((like.shape[0],), -torch.inf, dtype=torch.float32)
        self.sum = torch.zeros(like.shape[0], dtype=torch.float64)

    def add(self, logits: torch.Tensor) -> None:
        """Take in one slice (rows, tokens); `logits` is overwritten."""
        peak = torch.maximum(self.peak, logits.amax(dim=1).cpu())
        anchor = _finite(peak)
        here = logits.sub_(anchor.to(logits.device)[:, None]).exp_().sum(dim=1).cpu().double()
        self.sum = self.sum * torch.exp((self.peak - anchor).double()) + here
        self.peak = peak

    def value(self) -> torch.Tensor:
        """(rows,), float64, on the CPU."""
        return _finite(self.peak).double() + self.sum.log()


def _finite(peak: torch.Tensor) -> torch.Tensor:
    # A row that has seen only -inf has no peak to subtract: exp(-inf - -inf) would be NaN.
    return torch.where(torch.isinf(peak) & (peak < 0), torch.zeros_like(peak), peak)
