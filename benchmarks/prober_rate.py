"""What the exact scorer computes and how fast: tokens, GFLOP/s beside the machine's, largest error.

    python benchmarks/prober_rate.py [--jobs nurse,plumber] [--plain 40]

All prompts of OccuGender for demo-base, or those of some jobs. Computed tokens are all that go through the
body, padding included; the least is each distinct beginning of a text once. Rates: the multiplications of
weights at every computed token and row of the head, by user CPU seconds, beside the machine's rate. A random
sample of prompts is compared with a plain forward for each target word. Set OMP_NUM_THREADS=1.
Nothing is asserted.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from typing import Any

import torch
from gpu import folder_of, requests
from work import user_seconds

from biaskit.models.huggingface.scorer import TransformersScorer
from biaskit.models.options import LocalOptions


class Timed:
    """A part of the model that counts its tokens or rows, and its user CPU seconds."""

    def __init__(self, call: Callable[..., Any], size: Callable[..., int]) -> None:
        self.call, self.size = call, size
        self.n, self.calls, self.seconds = 0, 0, 0.0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.n, self.calls = self.n + self.size(*args, **kwargs), self.calls + 1
        started = user_seconds()
        try:
            return self.call(*args, **kwargs)
        finally:
            self.seconds += user_seconds() - started


def machine_rate() -> float:
    """Return the float32 GFLOP/s of 256 × 640 by 640 × 2,048 in user CPU seconds, the best of five."""
    a, b, rates = torch.randn(256, 640), torch.randn(640, 2_048), []
    for _ in range(5):
        started = user_seconds()
        for _ in range(40):
            a @ b
        rates.append(40 * 2 * 256 * 640 * 2_048 / (user_seconds() - started) / 1e9)
    return max(rates)


def plain_log_prob(model: Any, prompt: tuple[int, ...], word: tuple[int, ...]) -> float:
    """Return a target word's log-probability by one forward of the whole text, without a cache."""
    ids = torch.tensor([[*prompt, *word]])
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=len(word) + 1).logits[0, :-1]
    log_probs = logits.double().log_softmax(-1)
    return float(log_probs[torch.arange(len(word)), torch.tensor(word)].sum())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", default="all")
    parser.add_argument("--templates", default="all")
    parser.add_argument("--plain", type=int, default=20, help="prompts compared with plain forwards")
    args = parser.parse_args()
    asked = requests(args.jobs, args.templates)
    scorer = TransformersScorer(
        folder_of("demo-base"), label="m", spec="demo-base", local=LocalOptions("cpu", "float32")
    )
    batches = scorer.plan_scores(asked).batches
    scorer._load()
    prepared = list(scorer._prepared.values())
    least = {p.ids[:k] for p in prepared for k in range(1, len(p.ids) + 1)}
    least |= {p.ids + node for p in prepared for node in p.trie.nodes}
    model, head = scorer._model, scorer._head.weight.numel()
    weights = sum(p.numel() for p in scorer._decoder.parameters() if p.ndim > 1) - head  # tied embeddings
    body = scorer._decoder.forward = Timed(scorer._decoder.forward, lambda input_ids, **_: input_ids.numel())
    rows = scorer._head.log_probs = Timed(scorer._head.log_probs, lambda hidden, *_: len(hidden))
    before, started = machine_rate(), user_seconds()
    answers = {answer.key: answer for group in scorer.score(batches) for answer in group}
    seconds = user_seconds() - started
    machine = max(before, machine_rate())
    del scorer._decoder.forward
    print(f"{len(asked):,} prompts, {len(batches)} batches: {seconds:.1f} s")
    print(f"tokens computed {body.n:,} in {body.calls} forwards, least {len(least):,}; rows {rows.n:,}")
    print(f"machine, float32, 256 × 640 by 640 × 2,048: {machine:.1f} GFLOP/s")
    for name, part, each in (("forward", body, weights), ("head", rows, head)):
        rate = 2 * part.n * each / part.seconds / 1e9
        print(f"{name:8} {part.seconds:7.1f} s {rate:6.1f} GFLOP/s, {100 * rate / machine:.0f} %")
    print(f"the rest {seconds - body.seconds - rows.seconds:7.1f} s")
    apart = 0.0
    for request in random.Random(1).sample(asked, min(args.plain, len(asked))):
        for word in answers[request.key].log_probs:
            plain = plain_log_prob(model, scorer._prepared[request.key].ids, word.token_ids)
            apart = max(apart, abs(plain - word.high))
    print(f"largest difference in log-probability from a plain forward: {apart:.1e}")


if __name__ == "__main__":
    main()
